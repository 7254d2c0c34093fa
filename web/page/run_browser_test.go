package page

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"agentrun/internal/browser"
	"agentrun/storage"
)

func TestRunPagesInABrowser(t *testing.T) {
	browser.NeedAxe(t)
	s := newSite(t)
	tab := s.openTab(t)
	agent, caller := s.mustAgent("name: word-count\ncommand: [cat]\n")
	run, _ := s.mustLive(caller, "Nightly check of the price list", "")
	org := "/orgs/" + agent.OrgID.String()
	empty, err := s.store.CreateOrg(t.Context(), "empty")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 8 {
		s.mustRun(caller, fmt.Sprintf("Release %d", i), "write the notes")
		turn := s.mustClaim()
		s.must(s.store.RecordStep(t.Context(), turn.Claim, storage.Spent{Calls: 1, Input: 2000, Output: 400, Cost: 1000}))
		s.must(s.store.FinishTurn(t.Context(), turn.Claim, markdownSample))
	}
	stopped := s.mustRun(caller, "A run that somebody stopped and that has a long name without much sense in it", "x")
	if _, err := s.store.StopRun(t.Context(), stopped.ID, "stopped by the operator"); err != nil {
		t.Fatal(err)
	}
	s.mustFile(run, "reports/2026/a-report-with-a-long-name.md", "# Report\n\n- all is well\n")
	s.mustFile(run, "data.csv", "a,b\n1,2\n")
	for name, path := range map[string]string{
		"runs": org + "/runs", "runs-of-agent": org + "/runs?agent=" + agent.ID.String(), "runs-none": "/orgs/" + empty.ID.String() + "/runs",
		"run": "/runs/" + run.ID.String(), "run-stopped": "/runs/" + stopped.ID.String(), "run-event": "/runs/" + run.ID.String() + "/events/5",
		"run-files": "/runs/" + run.ID.String() + "/files", "run-preview": "/runs/" + run.ID.String() + "/preview?path=data.csv",
		"models": org + "/models", "audit": org + "/audit", "audit-all": "/audit",
	} {
		tab.Go(s.server.URL + path)
		tab.LooksWell(name, s.server.URL)
	}
}

const markdownSample = "## Notes\n\nWhat changed, in `main.go`:\n\n- one **thing**\n- [another](https://example.org/x)\n\n```go\nfunc main() {}\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"

func TestRunPageIsLive(t *testing.T) {
	s := newSite(t, atWork(t, nil))
	tab := s.openTab(t)
	_, caller := s.mustAgent("name: word-count\ncommand: [cat]\n")
	run := s.mustRun(caller, "the run")
	tab.Go(s.server.URL + "/runs/" + run.ID.String())
	tab.Wait(`document.querySelector("#run-status").innerText.includes("finished")`)
	// An input that is being written stays while the page changes.
	tab.Type("#input-text", "not sent yet")
	s.mustInput(run, "do it")
	tab.Wait(`document.querySelector("#run-status").innerText.includes("1 input waits")`)
	tab.Wait(`document.querySelector("#input-hint").innerText.includes("waits for its own")`)
	turn := s.mustClaim()
	tab.Wait(`document.querySelector("#input-1 pre")?.innerText === "do it"`)
	for _, h := range happenings("") {
		s.mustRecord(turn.Claim, h.kind, h.data)
	}
	s.must(s.store.FinishTurn(t.Context(), turn.Claim, markdownSample))
	tab.Wait(`document.querySelector("#output-1 h4, #output-1 h3") && document.querySelector("#run-status").innerText === "finished"`)
	tab.Wait(`document.activeElement.id === "input-text" && document.activeElement.value === "not sent yet"`)
	live := browser.Evaluate[string](tab, timelineText)
	s.must(s.store.RecordStep(t.Context(), s.claimAgain(run), storage.Spent{}, mustEvent(t, storage.EventCommandStderr, storage.CommandText{Text: `<hx-partial hx-target="h1">x</hx-partial><img src=x onerror=xss()>`})))
	tab.Wait(`document.querySelector("#timeline").innerText.includes("onerror=xss()")`)
	if _, err := s.store.StopRun(t.Context(), run.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	tab.Wait(`document.querySelector("#run-status").innerText.includes("being stopped")`)
	if title := browser.Evaluate[string](tab, `document.querySelector("h1").innerText`); title != "the run" {
		t.Errorf("the title is %q", title)
	}
	tab.Go(s.server.URL + "/runs/" + run.ID.String())
	if replayed := browser.Evaluate[string](tab, timelineText); len(live) < 1000 || replayed[:len(live)] != live {
		t.Errorf("live:\n%s\nafter a reload:\n%s", live, replayed)
	}
	tab.Quiet("the page", s.server.URL)
}

const timelineText = `[...document.querySelectorAll("#timeline > li")].map(e => e.outerHTML.replace(/ class="htmx-added"/g, "")).join("\n")`

// claimAgain gives the run one more input and begins its turn.
func (s *site) claimAgain(run storage.Run) storage.Claim {
	s.t.Helper()
	s.mustInput(run, "go on")
	return s.mustClaim().Claim
}

func TestRunPageComesBack(t *testing.T) {
	s := newSite(t, atWork(t, nil))
	tab := s.openTab(t)
	_, caller := s.mustAgent("name: word-count\ncommand: [cat]\n")
	run := s.mustRun(caller, "the run", "x")
	tab.Go(s.server.URL + "/runs/" + run.ID.String())
	turn := s.mustClaim()
	tab.Wait(`document.querySelectorAll("#timeline > li").length === 3`)
	s.server.CloseClientConnections()
	for range 5 {
		s.mustRecord(turn.Claim, storage.EventOutputNotUTF8, nil)
	}
	tab.Wait(`document.querySelectorAll("#timeline > li").length === 8`)
	if _, err := s.store.StopRun(t.Context(), run.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	s.must(s.store.FailTurn(t.Context(), turn.Claim, "stopped"))
	tab.Wait(`document.querySelector("#run-status").innerText === "terminated" && !document.querySelector("textarea") && !document.querySelector("#run-stop")`)
	numbers := browser.Evaluate[string](tab, `[...document.querySelectorAll("#timeline > li")].map(e => e.id.slice(6)).join(" ")`)
	if want := "1 2 3 4 5 6 7 8 9 10 11"; numbers != want {
		t.Errorf("the events are %s, want %s", numbers, want)
	}
}

// cuttable is the site behind a line that can be cut: what is asked for at the
// paths that end so is answered with the status, or not at all when it is 0.
func (s *site) cuttable() (address string, cut func(ending string, status int)) {
	s.t.Helper()
	target, err := url.Parse(s.server.URL)
	if err != nil {
		s.t.Fatal(err)
	}
	line := httputil.NewSingleHostReverseProxy(target)
	line.FlushInterval = -1
	type fault struct {
		ending string
		status int
	}
	var now atomic.Pointer[fault]
	now.Store(&fault{ending: "none"})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch f := now.Load(); {
		case !strings.HasSuffix(r.URL.Path, f.ending):
			line.ServeHTTP(w, r)
		case f.status == 0:
			panic(http.ErrAbortHandler)
		default:
			w.Header().Set("Content-Type", "text/html")
			w.WriteHeader(f.status)
			_, _ = io.WriteString(w, "<li>the line's own page</li>")
		}
	}))
	s.t.Cleanup(server.Close)
	return server.URL, func(ending string, status int) {
		now.Store(&fault{ending, status})
		server.CloseClientConnections()
	}
}

func TestRunPageSaysThatItIsNotLive(t *testing.T) {
	s := newSite(t, atWork(t, nil))
	tab := s.openTab(t)
	address, cut := s.cuttable()
	_, caller := s.mustAgent("name: word-count\ncommand: [cat]\n")
	run := s.mustRun(caller, "the run", "x")
	const lost, live = `!document.querySelector("#not-live").hidden`, `document.querySelector("#not-live").hidden`

	// What never was connected is tried again.
	cut("/live", 0)
	tab.Go(address + "/runs/" + run.ID.String())
	tab.Wait(lost)
	cut("none", 0)
	tab.Wait(live)
	cut("/live", http.StatusBadGateway)
	tab.Go(address + "/runs/" + run.ID.String())
	tab.Wait(lost)
	cut("none", 0)
	turn := s.mustClaim()
	tab.Wait(live + ` && document.querySelectorAll("#timeline > li").length === 3`)
	if text := browser.Evaluate[string](tab, `document.body.innerText`); strings.Contains(text, "the line's own page") {
		t.Errorf("the page shows the error of what is in between:\n%s", text)
	}

	// And so is what was.
	cut("", 0)
	tab.Wait(lost)
	for _, barrier := range tab.Axe() {
		t.Error(barrier)
	}
	s.must(s.store.FinishTurn(t.Context(), turn.Claim, "done"))
	cut("none", 0)
	tab.Wait(live + ` && document.querySelector("#run-status").innerText === "finished"`)
}

// Whatever a page asks for besides, none of it is needed to show the page.
func TestPagesArePaintedFromOneAnswer(t *testing.T) {
	s := newSite(t)
	tab := s.openTab(t)
	asked, release := make(chan struct{}), make(chan struct{})
	var first sync.Once
	page := s.server.Config.Handler
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/static/") {
			first.Do(func() { close(asked) })
			<-release
		}
		page.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	t.Cleanup(sync.OnceFunc(func() { close(release) }))
	_, caller := s.mustAgent("name: word-count\ncommand: [cat]\n")
	run := s.mustRun(caller, "the run", "x")
	tab.Begin(server.URL + "/runs/" + run.ID.String())
	painted := browser.Evaluate[bool](tab, `new Promise(done => new PerformanceObserver((list, observer) => {
		if (list.getEntriesByName("first-contentful-paint").length) { observer.disconnect(); done(true) }
	}).observe({type: "paint", buffered: true}))`)
	select {
	case <-asked:
	case <-t.Context().Done():
	}
	if radius := browser.Evaluate[string](tab, `getComputedStyle(document.querySelector(".button")).borderRadius`); !painted || radius == "0px" {
		t.Errorf("painted %v, with buttons whose corners have a radius of %s", painted, radius)
	}
}

func TestRunListInABrowser(t *testing.T) {
	s := newSite(t)
	tab := s.openTab(t)
	agent, caller := s.mustAgent("name: one\ncommand: [cat]\n")
	s.mustRun(caller, "first")
	s.mustRun(caller, "second")
	tab.Go(s.server.URL + "/orgs/" + agent.OrgID.String() + "/runs")
	tab.Type("#filter-text", "sec")
	tab.Wait(`document.querySelectorAll("#results tbody tr").length === 1 && location.search === "?text=sec"`)
	tab.Type("#filter-agent", "one")
	tab.Wait(`document.querySelector("#filter-key") && location.search.includes("agent=" + "` + agent.ID.String() + `")`)
	if text := browser.Evaluate[string](tab, `document.querySelector("#filter-text").value`); text != "sec" {
		t.Errorf("the text to look for became %q", text)
	}
	tab.Quiet("the page", s.server.URL)
}
