package handler

import (
	"encoding/json"
	"testing"

	"github.com/go-faster/jx"
)

// FuzzBodyIssues holds the complete list and the generated decoder together:
// nothing is refused without an issue or accepted with one.
func FuzzBodyIssues(f *testing.F) {
	for _, body := range []string{
		"", "null", "[]", "{}", plainBody, `{"name":1,"name":"x","template_id":"` + canonicalTemplate + `"}`,
		`{"name":"\ud800","template_id":"(` + canonicalTemplate + `)","input_text":null,"files":[{"filename":""},5,{}]}`,
		"{\"name\":\"\xff\",\"files\":[0,0,0,0,0,0,0,0,0,0,0]}", `{"\u006eame":"x","template_id":"zz","e":[1e5,{"a":-0.5}]} x`,
	} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		issues := bodyIssues("application/json", body)
		checkWellFormed(t, issues)
		checkWellFormed(t, bodyIssues("text/plain", body))
		req, err := decodeRequest(body)
		switch {
		case err != nil && len(issues) == 0 && !repeatsName(body):
			t.Errorf("%q: no issue, but %v", body, err)
		case err == nil && len(hiddenIssues(body, req)) != len(issues):
			t.Errorf("%q: hiddenIssues differ from %v", body, issues)
		case len(issues) == 0 && !json.Valid(body):
			t.Errorf("%q is not JSON", body)
		}
	})
}

func checkWellFormed(t *testing.T, issues []issue) {
	t.Helper()
	if len(issues) == 0 {
		return
	}
	list, ok := issueList(encodeIssues(t, issues))
	if !ok || len(list) != len(issues) {
		t.Fatalf("%v is not read back", issues)
	}
	for _, issue := range list {
		if fault := malformed(issue); fault != "" {
			t.Errorf("%s: %v", fault, issue)
		}
		if issue["type"] == "value_error" {
			t.Errorf("a rule without an issue of its own: %v", issue)
		}
	}
}

// repeatsName reports whether an object somewhere in value has a name twice.
func repeatsName(value jx.Raw) bool {
	repeats, seen := false, map[string]bool{}
	switch value.Type() {
	case jx.Object:
		eachMember(value, func(name []byte, member jx.Raw) {
			repeats = repeats || seen[string(name)] || repeatsName(member)
			seen[string(name)] = true
		})
	case jx.Array:
		eachItem(value, func(item jx.Raw) { repeats = repeats || repeatsName(item) })
	}
	return repeats
}
