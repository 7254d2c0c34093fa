package page

import (
	"os/exec"
	"strings"
	"testing"

	"agentrun/internal/needs"
)

// The values stand in each program as one text of its language, whatever is in
// them. That the programs do their work is tested with the whole server.
func TestSnippetsQuote(t *testing.T) {
	const url, key = `http://h'"\$(id)<x>&`, "ak_x"
	want := map[string]string{
		"curl": `url='http://h'\''"\$(id)<x>&'`, "python": `URL = "http://h'\"\\$(id)<x>&"`, "typescript": `const url = "http://h'\"\\$(id)<x>&";`,
	}
	for _, s := range Snippets(url, "0197f3a2-5b1c-7d3e-8f40-1a2b3c4d5e6f", key) {
		for _, text := range []string{want[s.ID], "0197f3a2-5b1c-7d3e-8f40-1a2b3c4d5e6f", "ak_x"} {
			if !strings.Contains(s.Text, text) {
				t.Errorf("%s has no %s:\n%s", s.ID, text, s.Text)
			}
		}
		if strings.Contains(s.Text, "{{") {
			t.Errorf("%s has a value missing:\n%s", s.ID, s.Text)
		}
	}
	needs.Program(t, "bash")
	out, err := exec.CommandContext(t.Context(), "bash", "-c", want["curl"]+`; printf %s "$url"`).CombinedOutput()
	if err != nil || string(out) != url {
		t.Errorf("a shell reads %q: %v", out, err)
	}
}
