package page

import (
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"agentrun/web/gen"
)

var runNames = regexp.MustCompile(`<a href="/runs/[0-9a-f-]{36}">([^<]*)</a>`)

// listed are the names of the runs in a list, in their order.
func listed(p page) []string {
	var names []string
	for _, found := range runNames.FindAllStringSubmatch(p.body, -1) {
		names = append(names, found[1])
	}
	return names
}

func TestRunListFilters(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	one, first := s.mustAgent("name: one\ncommand: [cat]\n")
	two, second := s.mustAgent("name: two\ncommand: [cat]\n")
	list := "/orgs/" + one.OrgID.String() + "/runs"
	b.get(list).want(t, http.StatusOK, "No runs yet", "/agents/"+one.ID.String()+"/access", "Start a run of one")
	s.mustRun(first, "idle")
	s.mustRun(first, "failed", "x")
	s.must(s.store.FailTurn(t.Context(), s.mustClaim().Claim, "no luck"))
	s.mustRun(second, "Running", "x")
	stopped := s.mustRun(second, "stopped")
	if _, err := s.store.StopRun(t.Context(), stopped.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	tomorrow := time.Now().Add(24 * time.Hour).UTC().Format("2006-01-02T15:04")
	yesterday := time.Now().Add(-24 * time.Hour).UTC().Format("2006-01-02")
	for query, want := range map[string][]string{
		"":                                   {"stopped", "Running", "failed", "idle"},
		"text=&status=&agent=&since=&until=": {"stopped", "Running", "failed", "idle"},
		"text=RUNN":                          {"Running"},
		"text=" + stopped.ID.String()[:30]:   {"stopped"},
		"status=finished":                    {"idle"},
		"status=technical_error":             {"failed"},
		"agent=" + two.ID.String():           {"stopped", "Running"},
		"agent=" + one.ID.String() + "&key=" + first.KeyID.String():  {"failed", "idle"},
		"agent=" + one.ID.String() + "&key=" + second.KeyID.String(): nil,
		"key=" + second.KeyID.String():                               {"stopped", "Running", "failed", "idle"}, // Without its agent no key is chosen.
		"since=" + tomorrow:                                          nil,
		"since=" + yesterday:                                         {"stopped", "Running", "failed", "idle"},
		"until=" + tomorrow + "&since=" + yesterday:                  {"stopped", "Running", "failed", "idle"},
		"until=" + yesterday:                                         nil,
		"before=" + stopped.ID.String():                              {"Running", "failed", "idle"},
	} {
		got := b.get(list + "?" + query)
		got.want(t, http.StatusOK)
		if diff := cmp.Diff(want, listed(got)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	for query, want := range map[string]string{
		"status=asleep":                    "There is no such status.",
		"agent=" + uuid.NewString():        "There is no such agent in this organisation.",
		"agent=x":                          "There is no such agent in this organisation.",
		"since=yesterday":                  "A time is written as",
		"before=x":                         "The address is incomplete",
		"text=" + strings.Repeat("x", 201): "longer than 200 characters",
		"text=nothing+fits":                "No run fits",
		"before=" + uuid.Nil.String():      "<h1>Runs</h1>",
	} {
		b.get(list+"?"+query).want(t, http.StatusOK, want)
	}
	full := b.get(list + "?agent=" + one.ID.String())
	full.want(t, http.StatusOK, `<label for="filter-key">Key</label>`, `href="/agents/`+one.ID.String()+`"`, `href="/keys/`+first.KeyID.String()+`"`, ">test</a>")
}

func TestRunListInPlace(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	agent, caller := s.mustAgent("name: one\ncommand: [cat]\n")
	s.mustRun(caller, "the run")
	req := b.request(http.MethodGet, "/orgs/"+agent.OrgID.String()+"/runs?agent="+agent.ID.String())
	req.Header.Set("HX-Request", "true")
	req.Header.Set("HX-Request-Type", "partial")
	got := b.do(req)
	got.want(t, http.StatusOK, `<div id="results"`, "the run", `<hx-partial hx-target="#key-field" hx-swap="outerHTML">`, `id="filter-key"`)
	if strings.Contains(got.body, "<html") || got.Header.Get("Vary") != "HX-Request-Type" {
		t.Errorf("not a part of a page: %v\n%s", got.Header, got.body)
	}
}

func TestRunListPages(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	agent, caller := s.mustAgent("name: one\ncommand: [cat]\n")
	for i := range runsOnPage + 10 {
		s.mustRun(caller, fmt.Sprintf("run %d", i))
	}
	older := regexp.MustCompile(`<a class="button" href="([^"]*)">Older</a>`)
	first := b.get("/orgs/" + agent.OrgID.String() + "/runs?text=run")
	if n := len(listed(first)); n != runsOnPage {
		t.Fatalf("%d runs on the first page", n)
	}
	found := older.FindStringSubmatch(first.body)
	if found == nil {
		t.Fatalf("no way to older runs:\n%s", first.body)
	}
	link, err := url.Parse(strings.ReplaceAll(found[1], "&amp;", "&"))
	if err != nil || link.Query().Get("text") != "run" {
		t.Errorf("the way to older runs: %s", found[1])
	}
	second := b.get(link.String())
	second.want(t, http.StatusOK, ">Newest</a>")
	if got := listed(second); len(got) != 10 || got[0] != "run 9" || got[9] != "run 0" {
		t.Errorf("the second page has %q", got)
	}
	if older.MatchString(second.body) {
		t.Error("the last page goes on")
	}
}

func TestRunListThatGoesOnWithoutARun(t *testing.T) {
	s := newSite(t)
	for name, tc := range map[string]struct {
		list runList
		want []string
	}{
		"none":        {runList{Next: "next"}, []string{"None found yet", "before=next", "Keep looking"}},
		"some":        {runList{Next: "next", Rows: make([]runRow, 3)}, []string{"5,000 runs were looked at", "Keep looking"}},
		"full":        {runList{Next: "next", Rows: make([]runRow, runsOnPage)}, []string{">Older</a>"}},
		"no agent":    {runList{}, []string{"No runs yet", "Create an agent"}},
		"all are off": {runList{Agents: []gen.Agent{{Archived: true}}}, []string{"No runs yet", "Create an agent"}},
	} {
		html := &strings.Builder{}
		if err := s.app.templates["run_list"].ExecuteTemplate(html, "results", tc.list); err != nil {
			t.Fatal(err)
		}
		for _, want := range tc.want {
			if !strings.Contains(html.String(), want) {
				t.Errorf("%s: no %q:\n%s", name, want, html)
			}
		}
	}
}

func TestRunOfADeletedAgent(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	agent, caller := s.mustAgent("name: one\ncommand: [cat]\n")
	run := s.mustRun(caller, "the run")
	if _, err := s.store.DeleteAgent(t.Context(), agent.ID.String()); err != nil {
		t.Fatal(err)
	}
	b.get("/orgs/"+agent.OrgID.String()+"/runs").want(t, http.StatusOK, "the run", `<span class="muted">deleted</span>`)
	b.get("/runs/"+run.ID.String()).want(t, http.StatusOK, "deleted, "+agent.ID.String()[:8])
}
