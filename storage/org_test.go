package storage_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-faster/errors"

	"agentrun/storage"
	"agentrun/storage/storagetest"
)

func TestOrganisations(t *testing.T) {
	s := storagetest.Open(t)
	acme, err := s.CreateOrg(t.Context(), "acme")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateOrg(t.Context(), "acme"); !errors.Is(err, storage.ErrNameTaken) {
		t.Errorf("the same name again: got %v, want ErrNameTaken", err)
	}
	for _, ref := range []string{"acme", acme.ID.String()} {
		found, err := s.FindOrg(t.Context(), ref)
		if err != nil || found.ID != acme.ID {
			t.Errorf("FindOrg(%q): %+v, %v", ref, found, err)
		}
	}
	if _, err := s.FindOrg(t.Context(), "nobody"); !errors.Is(err, storage.ErrOrgNotFound) {
		t.Errorf("unknown name: got %v, want ErrOrgNotFound", err)
	}
	orgs, err := s.Orgs(t.Context())
	if err != nil || len(orgs) != 2 || orgs[0].Name != storage.DefaultOrg || orgs[1].Name != "acme" {
		t.Errorf("Orgs: %+v, %v", orgs, err)
	}
}

func TestNames(t *testing.T) {
	s := storagetest.Open(t)
	for name, ok := range map[string]bool{
		"acme": true, "two words": true, "ünï": true, strings.Repeat("ä", 200): true,
		"": false, "  ": false, " acme": false, "a\nb": false, "a\x1b[2J": false, "a\xff": false,
		strings.Repeat("ä", 201): false, "0197f3a2-5b1c-7d3e-8f40-1a2b3c4d5e6f": false,
	} {
		_, err := s.CreateOrg(t.Context(), name)
		if ok && err != nil || !ok && !errors.Is(err, storage.ErrInvalidName) {
			t.Errorf("name %q: got %v", name, err)
		}
	}
}

func TestModelAllowlist(t *testing.T) {
	s := storagetest.Open(t)
	agent := storagetest.MustApply(t, s, storage.DefaultOrg, "name: m\nmodel: openrouter/meta/llama-3\n")
	caller := storagetest.MustCaller(t, s, agent)
	create := func(providers ...string) error {
		id, err := storage.NewRunID()
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.CreateRun(t.Context(), storage.NewRun{
			ID: id, Caller: caller, Template: agent.ID, Name: "run", Providers: providers,
		})
		return err
	}
	var refused *storage.ModelError
	if err := create("local"); !errors.As(err, &refused) || refused.Provider != "openrouter" {
		t.Errorf("provider not configured: got %v", err)
	}
	for _, c := range []struct {
		patterns []string
		ok       bool
	}{
		{[]string{"*"}, true},
		{[]string{}, false},
		{[]string{"openrouter/*"}, true},
		{[]string{"openrouter/meta/llama-?"}, true},
		{[]string{"openrouter/meta/llama"}, false},
		{[]string{"local/*", "openrouter/*/llama-*"}, true},
		{[]string{"local/*"}, false},
		{[]string{"OPENROUTER/*"}, false},
		{[]string{"**3"}, true},
	} {
		org, err := s.SetModels(t.Context(), storage.DefaultOrg, c.patterns)
		if err != nil || !slices.Equal(org.Models, c.patterns) {
			t.Fatalf("SetModels(%q): %q, %v", c.patterns, org.Models, err)
		}
		err = create("openrouter")
		if c.ok && err != nil || !c.ok && !errors.Is(err, storage.ErrModelUnusable) {
			t.Errorf("patterns %q: got %v, want allowed = %v", c.patterns, err, c.ok)
		}
	}
	for _, bad := range []string{"", "a b", "a\n"} {
		if _, err := s.SetModels(t.Context(), storage.DefaultOrg, []string{bad}); !errors.Is(err, storage.ErrInvalidPattern) {
			t.Errorf("pattern %q: got %v, want ErrInvalidPattern", bad, err)
		}
	}
	if _, err := s.SetModels(t.Context(), "nobody", nil); !errors.Is(err, storage.ErrOrgNotFound) {
		t.Errorf("unknown organisation: got %v", err)
	}
}
