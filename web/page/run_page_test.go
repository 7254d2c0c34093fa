package page

import (
	"net/http"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"agentrun/storage"
	"agentrun/web/gen"
	"agentrun/web/markup/markuptest"
)

func TestEveryKindOfEventIsTold(t *testing.T) {
	text, err := os.ReadFile("../../docs/events.md")
	if err != nil {
		t.Fatal(err)
	}
	kinds := regexp.MustCompile("(?m)^\\| `([a-z0-9_]+)` \\|").FindAllStringSubmatch(string(text), -1)
	if len(kinds) != len(eventKinds) {
		t.Errorf("%d kinds are documented, %d are told", len(kinds), len(eventKinds))
	}
	for _, kind := range kinds {
		if eventKinds[storage.EventKind(kind[1])] == nil {
			t.Errorf("%s is documented and not told", kind[1])
		}
	}
}

func TestAnEventWithOtherDataIsShownAsItIs(t *testing.T) {
	for _, data := range []string{"", "{", "7", `{"text":7}`} {
		view := newEventReader(uuid.UUID{}).read(gen.Event{Seq: 1, Kind: "command_stderr", Data: []byte(data)})
		if view.Title != "command_stderr" || data != "" && (len(view.Texts) != 1 || view.Texts[0].Text != data) {
			t.Errorf("%q: %+v", data, view)
		}
	}
}

func TestRunPage(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	agent, caller := s.mustAgent("name: word-count\ncommand: [cat]\n")
	run, words := s.mustLive(caller, "the run", "")
	got := b.get("/runs/" + run.ID.String())
	got.want(t, http.StatusOK, append(words, "<h1>the run</h1>", "technical error", "The last turn failed.", `<a href="/agents/`+agent.ID.String()+`">word-count</a>`,
		"/revisions/1", "/keys/"+run.KeyID.String(), `<h3>Done</h3>`, `id="input-1"`, `id="output-1"`, `id="input-2"`, "Give more input",
		"The run begins to work on it at once.", `action="/runs/`+run.ID.String()+`/stop"`, `/live?after=28"`)...)
	if strings.Contains(got.body, "hidden&#34;") {
		t.Error("what is for the provider alone is shown")
	}
	for i, kind := range []string{"run_created", "input_given", "turn_started"} {
		if !strings.Contains(got.body, `id="event-`+strconv.Itoa(i+1)+`" data-kind="`+kind+`"`) {
			t.Errorf("event %d is not %s", i+1, kind)
		}
	}
	b.get("/runs/"+run.ID.String()+"?plain=1").want(t, http.StatusOK, "<pre class=\"plain\">\n# Done</pre>", "&amp;plain=1")
	b.get("/runs/"+run.ID.String()+"/events/5").want(t, http.StatusOK, "model_answered", "I will look", "&#34;hidden&#34;")
	for _, path := range []string{"/events/29", "/events/0", "/events/x", "/events/-1"} {
		b.get("/runs/"+run.ID.String()+path).want(t, http.StatusNotFound, "The run has no such event.")
	}
	b.get("/runs/nothing").want(t, http.StatusNotFound)
	b.get("/runs/"+uuid.NewString()).want(t, http.StatusNotFound)
}

func TestRunOfAnotherOrganisationDoesNotExist(t *testing.T) {
	s := newSite(t)
	if _, err := s.store.CreateOrg(t.Context(), "other"); err != nil {
		t.Fatal(err)
	}
	s.mustUser("member@example.org", "other")
	s.mustUser("own@example.org", storage.DefaultOrg)
	b, own := s.signedIn("member@example.org"), s.signedIn("own@example.org")
	_, caller := s.mustAgent("name: echo\ncommand: [cat]\n")
	run := s.mustRun(caller, "the run", "x")
	for _, path := range []string{"", "/live", "/events/1", "/files", "/preview?path=a", "/download?path=a", "/archive"} {
		b.get("/runs/"+run.ID.String()+path).want(t, http.StatusNotFound)
	}
	for _, action := range []string{"input", "stop", "delete"} {
		b.post("/runs/"+run.ID.String()+"/"+action, "text", "x").want(t, http.StatusNotFound)
	}
	own.get("/runs/"+run.ID.String()).want(t, http.StatusOK)
	b.get("/orgs/"+run.OrgID.String()+"/runs").want(t, http.StatusNotFound)
	b.get("/audit").want(t, http.StatusForbidden)
}

func TestRunIsHostile(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	_, caller := s.mustAgent("name: echo\ncommand: [cat]\n")
	for i, payload := range markuptest.Payloads {
		// Long ones are for the parser of Markdown; a part of the others is of every kind.
		if len(payload.Text) > 1000 || i%7 != 0 && os.Getenv("AGENTRUN_TEST") != "full" {
			continue
		}
		run, _ := s.mustLive(caller, "the run "+strings.Map(printable, payload.Text), payload.Text)
		for _, path := range []string{"", "?plain=1", "/events/5"} {
			got := b.get("/runs/" + run.ID.String() + path)
			if at := danger(got.body); at != "" || got.StatusCode != http.StatusOK {
				t.Errorf("%s, %s: status %d, %s", payload.Name, path, got.StatusCode, at)
			}
		}
		if at := danger(b.get("/orgs/" + run.OrgID.String() + "/runs").body); at != "" {
			t.Errorf("%s, in the list: %s", payload.Name, at)
		}
	}
}

func TestOpenRunSoon(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	_, caller := s.mustAgent("name: echo\ncommand: [cat]\n")
	run := s.mustRun(caller, "the run", "x")
	turn := s.mustClaim()
	for range 10 {
		var events []storage.Event
		for range 200 {
			events = append(events, mustEvent(t, storage.EventToolReturned, storage.ToolReturned{Call: "c", Tool: "shell", Text: strings.Repeat("x", 500), Seconds: 1}))
		}
		s.must(s.store.RecordStep(t.Context(), turn.Claim, storage.Spent{}, events...))
	}
	began := time.Now()
	got := b.get("/runs/" + run.ID.String())
	t.Logf("opened in %v, %d bytes", time.Since(began), len(got.body))
	got.want(t, http.StatusOK, `id="event-2003"`, `id="event-1504"`, "1,503 earlier events are not shown", `/live?after=2003"`)
	if strings.Contains(got.body, `id="event-1503"`) {
		t.Error("more events than the newest are shown")
	}
	b.get("/runs/"+run.ID.String()+"?events=all").want(t, http.StatusOK, `id="event-1"`, `id="event-2003"`)
	if size := len(got.body); size > 2<<20 {
		t.Errorf("the page has %d bytes", size)
	}
}

// TestLastEvent is about histories of every length around the bounds of the
// search for their ends.
func TestLastEvent(t *testing.T) {
	s := newSite(t)
	_, caller := s.mustAgent("name: echo\ncommand: [cat]\n")
	run := s.mustRun(caller, "the run")
	for want := int64(1); want < 3; want++ {
		last, err := s.app.lastEvent(t.Context(), run.ID.UUID)
		if err != nil || last != want {
			t.Errorf("last event %d, %v; want %d", last, err, want)
		}
		s.mustInput(run, "x")
	}
	turn := s.mustClaim() // Event 4.
	for n := int64(4); n <= 1003; n++ {
		if n < 10 || n%500 < 3 || n%500 > 497 || n%100 == 0 {
			if last, err := s.app.lastEvent(t.Context(), run.ID.UUID); err != nil || last != n {
				t.Fatalf("last event %d, %v; want %d", last, err, n)
			}
		}
		s.mustRecord(turn.Claim, storage.EventOutputNotUTF8, nil)
	}
	if _, err := s.app.lastEvent(t.Context(), uuid.New()); err == nil {
		t.Error("a run that is not there has a history")
	}
}

func TestTranscriptBeginsWithTheNewest(t *testing.T) {
	long := strings.Repeat("x", maxTranscript/2)
	messages := []gen.Message{
		{Turn: 1, Role: gen.MessageRoleInputToAgent, Text: "first"}, {Turn: 1, Role: gen.MessageRoleOutputFromAgent, Text: long},
		{Turn: 2, Role: gen.MessageRoleInputToAgent, Text: "second"}, {Turn: 2, Role: gen.MessageRoleOutputFromAgent, Text: long},
	}
	views, older := messageViews(messages, false, false)
	if len(views) != 2 || older != 2 || views[0].Text != "second" || views[1].Formatted {
		t.Errorf("%d messages, %d older", len(views), older)
	}
	if views, older = messageViews(messages, false, true); len(views) != 4 || older != 0 {
		t.Errorf("all: %d messages, %d older", len(views), older)
	}
	messages[3].Text = strings.Repeat("x", 2*maxTranscript)
	if views, older = messageViews(messages, false, false); len(views) != 1 || older != 3 {
		t.Errorf("one that is too long: %d messages, %d older", len(views), older)
	}
	if views, _ = messageViews(messages[:2], false, false); len(views) != 2 {
		t.Errorf("%d messages", len(views))
	}
}

func TestGiveInput(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	agent, caller := s.mustAgent("name: echo\ncommand: [cat]\n")
	run := s.mustRun(caller, "the run")
	path := "/runs/" + run.ID.String()
	b.get(path).want(t, http.StatusOK, "The run was created without an input.")
	b.post(path+"/input", "text", " \r\n").want(t, http.StatusUnprocessableEntity, "The input is empty.")
	b.post(path+"/input", "text", "one\r\ntwo").wantRedirect(t, path)
	b.get(path).want(t, http.StatusOK, "The run has your input.", "1 input waits", "the input waits for its own")
	if turn := s.mustClaim(); turn.Input != "one\ntwo" {
		t.Errorf("the turn works on %q", turn.Input)
	}
	if _, err := s.store.SetArchived(t.Context(), agent.ID.String(), true); err != nil {
		t.Fatal(err)
	}
	got := b.get(path)
	got.want(t, http.StatusOK, "The agent is archived: the run takes no input until it is unarchived.")
	if strings.Contains(got.body, "<textarea") {
		t.Error("a run that takes no input has a place for it")
	}
	b.post(path+"/input", "text", "x").want(t, http.StatusConflict)
}

func TestStopAndDelete(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	_, caller := s.mustAgent("name: echo\ncommand: [cat]\n")
	run := s.mustRun(caller, "the run", "x")
	path, list := "/runs/"+run.ID.String(), "/orgs/"+run.OrgID.String()+"/runs"
	b.post(path+"/stop").wantRedirect(t, path)
	got := b.get(path)
	got.want(t, http.StatusOK, "The run is stopped", "terminated", "The run was ended.", "Run terminated", "Input 1 was dropped", "The run is terminated and takes no input.")
	if strings.Contains(got.body, path+"/stop") || strings.Contains(got.body, "/live") {
		t.Error("a run that is over can be stopped, or goes on")
	}
	b.post(path+"/delete").wantRedirect(t, list)
	b.get(list).want(t, http.StatusOK, "No runs yet")
	b.get(path).want(t, http.StatusOK, "The run was deleted.")
}
