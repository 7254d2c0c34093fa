package page

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"agentrun/storage"
)

func TestAuditLog(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	agent, caller := s.mustAgent("name: <b>one</b>\ncommand: [cat]\n")
	run := s.mustRun(caller, "the run")
	b.post("/runs/"+run.ID.String()+"/stop").wantRedirect(t, "/runs/"+run.ID.String())
	path := "/orgs/" + agent.OrgID.String() + "/audit"
	got := b.get(path)
	got.want(t, http.StatusOK, "stopped a run", `<a href="/runs/`+run.ID.String()+`">the run</a>`, testEmail, "127.0.0.1",
		"applied an agent file", `<a href="/agents/`+agent.ID.String()+`">&lt;b&gt;one&lt;/b&gt;</a>`, "the server itself", "revision 1")
	if strings.Contains(got.body, "signed in") {
		t.Error("the log of an organisation has what was done elsewhere")
	}
	if _, err := s.store.DeleteAgent(t.Context(), agent.ID.String()); err != nil {
		t.Fatal(err)
	}
	if got = b.get(path); strings.Contains(got.body, `href="/agents/`+agent.ID.String()) {
		t.Error("a link leads to an agent that was deleted")
	}
	b.get("/audit").want(t, http.StatusOK, "signed in", "created a user", "applied an agent file", "default")
	s.mustUser("member@example.org", storage.DefaultOrg)
	member := s.signedIn("member@example.org")
	member.get(path).want(t, http.StatusOK, "stopped a run")
	member.get("/audit").want(t, http.StatusForbidden, "Only operators")
}

func TestAuditLogPages(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	for i := range auditOnPage {
		s.mustAgent(fmt.Sprintf("name: agent-%d\ncommand: [cat]\n", i)) // Two entries each.
	}
	older := regexp.MustCompile(`<a class="button" href="([^"]*)">Older</a>`)
	pages, path := 0, "/audit"
	var seen []string
	for path != "" {
		got := b.get(path)
		got.want(t, http.StatusOK)
		seen = append(seen, regexp.MustCompile(`>agent-\d+</a>`).FindAllString(got.body, -1)...)
		path = ""
		if found := older.FindStringSubmatch(got.body); found != nil {
			path = found[1]
		}
		pages++
	}
	if pages != 3 || len(seen) != auditOnPage || seen[0] != fmt.Sprintf(">agent-%d</a>", auditOnPage-1) {
		t.Errorf("%d pages with %d agents", pages, len(seen))
	}
	b.get("/audit?before=1").want(t, http.StatusOK, "The log has no older entries.")
	b.get("/audit?before=x").want(t, http.StatusOK, "created a key")
}

// TestEveryActionIsTold reads which actions storage writes from its source.
func TestEveryActionIsTold(t *testing.T) {
	files, err := filepath.Glob("../../storage/*.go")
	if err != nil {
		t.Fatal(err)
	}
	written := regexp.MustCompile(`(?:audit\(|Action\(|action = |actOnRun\(ctx, id, |changeKey\(ctx, id, )"([a-z]+\.[a-z]+)"`)
	found := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, action := range written.FindAllStringSubmatch(string(text), -1) {
			found[action[1]] = true
		}
	}
	if len(found) < 15 {
		t.Errorf("only %d actions were found: %v", len(found), found)
	}
	for action := range found {
		if actions[action] == "" {
			t.Errorf("%s is written and not told", action)
		}
	}
}
