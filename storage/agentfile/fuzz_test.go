package agentfile_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"

	"agentrun/storage/agentfile"
)

func FuzzParse(f *testing.F) {
	for _, tt := range definitions {
		f.Add(tt.source)
	}
	f.Add("name: x\ncommand: [a]\n---\n{{{")
	f.Add("\tname: &a x\n*a : [<<, !!bool y]\n")
	f.Add("\ufeff%YAML 1.1\n--- |\n \xff")
	f.Fuzz(func(t *testing.T, source string) {
		file, err := agentfile.Parse(source)
		if err != nil {
			checkError(t, err)
			return
		}
		d := file.Definition
		if (len(d.Command) > 0) == (d.Model != "") {
			t.Errorf("command %q and model %q", d.Command, d.Model)
		}
		if d.Name == "" || file.Source != source {
			t.Errorf("name %q, source %q", d.Name, file.Source)
		}
		raw, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var again agentfile.Definition
		if err := json.Unmarshal(raw, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(d, again); diff != "" {
			t.Errorf("JSON changes the definition (-want +got)\n%s", diff)
		}
	})
}

// checkError checks what holds for every refusal.
func checkError(t *testing.T, err error) {
	t.Helper()
	var invalid *agentfile.Error
	if !errors.As(err, &invalid) || len(invalid.Faults) == 0 {
		t.Fatalf("not an *Error with faults: %v", err)
	}
	if strings.ContainsAny(err.Error(), "\r\n") {
		t.Errorf("more than one line: %q", err)
	}
	line := 0
	for _, f := range invalid.Faults {
		if f.Line < line || f.Problem == "" {
			t.Errorf("fault %+v after line %d", f, line)
		}
		line = f.Line
	}
}
