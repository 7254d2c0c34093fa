package storage_test

import (
	"strings"
	"testing"

	"github.com/go-faster/errors"

	"agentrun/storage"
	"agentrun/storage/storagetest"
)

func TestModelAllowed(t *testing.T) {
	s := storagetest.Open(t)
	org, err := s.SetModels(t.Context(), storage.DefaultOrg, []string{"lab/*", "openai/gpt-?"})
	if err != nil {
		t.Fatal(err)
	}
	for model, want := range map[string]bool{
		"lab/a/b:c": true, "openai/gpt-5": true, "openai/gpt-50": false, "lab": false, "": false, "other/lab/x": false,
	} {
		err := s.ModelAllowed(t.Context(), org.ID, model)
		if refused := new(storage.ModelError); (err == nil) != want || err != nil && !errors.As(err, &refused) {
			t.Errorf("%q: %v", model, err)
		}
		if err != nil && !strings.Contains(err.Error(), "lab/*, openai/gpt-?") {
			t.Errorf("%q: the error does not say what is allowed: %v", model, err)
		}
	}
	if err := s.ModelAllowed(t.Context(), storage.OrgID{}, "lab/a"); !errors.Is(err, storage.ErrOrgNotFound) {
		t.Errorf("no organisation: %v", err)
	}
}
