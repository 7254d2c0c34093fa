package storage

import (
	"os"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// The documentation of the history has every kind of event, in the order of the
// code.
func TestEventsAreDocumented(t *testing.T) {
	find := func(path, pattern string) (found []string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(string(text), -1) {
			found = append(found, m[1])
		}
		return found
	}
	if diff := cmp.Diff(find("event.go", `EventKind = "([a-z0-9_]+)"`), find("../docs/events.md", "(?m)^\\| `([a-z0-9_]+)` ")); diff != "" {
		t.Errorf("(-code +documented)\n%s", diff)
	}
}
