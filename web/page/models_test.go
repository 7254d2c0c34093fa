package page

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"agentrun/storage"
	"agentrun/web/gen"
)

func TestModels(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	agent, caller := s.mustAgent("name: one\ncommand: [cat]\n")
	path := "/orgs/" + agent.OrgID.String() + "/models"
	b.get(path).want(t, http.StatusOK, "No model was used", "anthropic", "https://api.anthropic.com", "in the server", ">\n*</textarea>")
	s.mustRun(caller, "the run", "x")
	turn := s.mustClaim()
	s.must(s.store.RecordStep(t.Context(), turn.Claim, storage.Spent{Calls: 3, Input: 20_000, Cached: 500, Output: 4000, Cost: 2_500_000}))
	got := b.get(path)
	got.want(t, http.StatusOK, "3 answers, 20k tokens in, 4k out, $2.50", "<title id=\"chart-title\">Tokens by day</title>", "24,000 tokens",
		`<a href="/agents/`+agent.ID.String()+`">one</a>`, `<a href="/keys/`+caller.KeyID.String()+`">test</a>`, `<td class="number">500</td>`)
	harmless(t, got.body)
	b.post(path, "models", "script/*\r\n\r\n  anthropic/claude-* \r\n").wantRedirect(t, path)
	b.get(path).want(t, http.StatusOK, "script/*\nanthropic/claude-*</textarea>", "The models that agents may use are changed.")
	b.post(path, "models", "script/*\na </textarea><script>").want(t, http.StatusUnprocessableEntity, "script/*\na &lt;/textarea&gt;&lt;script&gt;</textarea>", `aria-invalid="true"`)
	b.get(path).want(t, http.StatusOK, "script/*\nanthropic/claude-*</textarea>")
	s.mustUser("member@example.org", storage.DefaultOrg)
	member := s.signedIn("member@example.org")
	got = member.get(path)
	got.want(t, http.StatusOK, `<li class="mono">script/*</li>`, "Operators of the server decide which.")
	if strings.Contains(got.body, "<textarea") {
		t.Error("a member can write the allowlist")
	}
	member.post(path, "models", "*").want(t, http.StatusForbidden)
	b.post(path, "models", "").wantRedirect(t, path)
	member.get(path).want(t, http.StatusOK, "None: no agent of this organisation can use a model.")
}

func TestChart(t *testing.T) {
	days := make([]gen.DailyUsage, usageDays)
	for i := range days {
		days[i].Day = time.Date(2026, 1, 1+i, 0, 0, 0, 0, time.UTC)
	}
	days[3].Spent = gen.Spent{Input: 1, Output: 1}
	days[29].Spent = gen.Spent{Input: 1 << 40, Output: 1 << 40}
	c := newChart(days)
	for i, col := range c.Columns {
		if col.OutputY < chartTop || col.InputY+col.InputHeight != c.Height || col.OutputY+col.OutputHeight != col.InputY || col.X+col.Width > c.Width {
			t.Errorf("column %d lies outside: %+v", i, col)
		}
	}
	if small, none := c.Columns[3], c.Columns[4]; small.InputHeight != 1 || small.OutputHeight != 1 || none.InputHeight != 0 {
		t.Errorf("little is %d high, nothing %d", small.InputHeight, none.InputHeight)
	}
	if empty := newChart(nil); empty.Width <= 0 {
		t.Errorf("no days: %+v", empty)
	}
}
