package page

import (
	"bufio"
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"agentrun/storage"
	"agentrun/storage/storagetest"
	"agentrun/web"
	"agentrun/web/markup/markuptest"
)

// atWork makes the site one of a server that executes turns, whose live pages
// wait for what happens. It ends when quit is closed.
func atWork(t *testing.T, quit <-chan struct{}) func(*Config) {
	return func(cfg *Config) {
		cfg.API = web.NewManagement(web.Config{Store: cfg.Store, Workspaces: storagetest.Workspaces(t), Quit: quit})
		cfg.Quit = quit
	}
}

// message is a server-sent event.
type message struct {
	ID    int64
	Event string
	Data  string
}

// watching is somebody who reads a stream.
type watching struct {
	t     *testing.T
	lines *bufio.Scanner
	close func()
}

// watch opens the live stream of a run, with what a browser says that it has.
func (b *visitor) watch(path, lastID string) *watching {
	b.site.t.Helper()
	ctx, cancel := context.WithCancel(b.site.t.Context())
	req := b.request(http.MethodGet, path).WithContext(ctx)
	req.Header.Set("Accept", "text/html, text/event-stream")
	req.Header.Set("HX-Request", "true")
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	res, err := b.client.Do(req) //nolint:bodyclose // The test's end closes it, or the reader.
	if err != nil {
		b.site.t.Fatal(err)
	}
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Type") != "text/event-stream" || res.Header.Get("X-Accel-Buffering") != "no" {
		b.site.t.Fatalf("%s: status %d, %v", path, res.StatusCode, res.Header)
	}
	w := &watching{t: b.site.t, lines: bufio.NewScanner(res.Body), close: func() { cancel(); _ = res.Body.Close() }}
	w.lines.Buffer(nil, 64<<20)
	w.lines.Split(anyLine)
	b.site.t.Cleanup(w.close)
	return w
}

// anyLine splits at all that ends a line in a stream of events.
func anyLine(data []byte, atEOF bool) (int, []byte, error) {
	for i, c := range data {
		switch {
		case c == '\n':
			return i + 1, data[:i], nil
		case c == '\r' && i+1 < len(data) && data[i+1] == '\n':
			return i + 2, data[:i], nil
		case c == '\r' && (i+1 < len(data) || atEOF):
			return i + 1, data[:i], nil
		}
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}

// next is the next message; ok is false at the stream's end.
func (w *watching) next() (m message, ok bool) {
	w.t.Helper()
	var data []string
	for w.lines.Scan() {
		field, value, _ := strings.Cut(w.lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			id, err := strconv.ParseInt(value, 10, 64)
			if err != nil {
				w.t.Errorf("id %q", value)
			}
			m.ID = id
		case "event":
			m.Event = value
		case "data":
			data = append(data, value)
		case "":
			if len(data) > 0 {
				m.Data = strings.Join(data, "\n")
				return m, true
			}
		default:
			w.t.Errorf("line %q", w.lines.Text())
		}
	}
	return m, false
}

// events are the next messages that have a number, up to the one with this.
func (w *watching) events(last int64) []message {
	w.t.Helper()
	var got []message
	for {
		m, ok := w.next()
		if !ok {
			w.t.Fatalf("the stream ended after %d messages", len(got))
		}
		if m.ID == 0 {
			continue
		}
		if got = append(got, m); m.ID >= last {
			return got
		}
	}
}

func TestReplayIsWhatWasLive(t *testing.T) {
	s := newSite(t, atWork(t, nil))
	b := s.operator()
	_, caller := s.mustAgent("name: echo\ncommand: [cat]\n")
	run := s.mustRun(caller, "the run")
	path := "/runs/" + run.ID.String()
	stream := b.watch(path+"/live?after=0", "")
	live := stream.events(1)
	// One event after the other, each seen before the next one happens.
	step := func(n int64) { live = append(live, stream.events(n)...) }
	s.mustInput(run, "do it")
	step(2)
	turn := s.mustClaim()
	step(3)
	for i, h := range happenings("") {
		s.mustRecord(turn.Claim, h.kind, h.data)
		step(int64(4 + i))
	}
	n := live[len(live)-1].ID
	s.must(s.store.FinishTurn(t.Context(), turn.Claim, "**done**"))
	step(n + 1)
	replayed := b.watch(path+"/live", "").events(n + 1)
	if diff := cmp.Diff(live, replayed); diff != "" {
		t.Errorf("live, and then replayed (-live +replayed):\n%s", diff)
	}
	later := b.watch(path+"/live?after=7", "").events(n + 1)
	if diff := cmp.Diff(live[7:], later); diff != "" {
		t.Errorf("live, and then from the middle (-live +replayed):\n%s", diff)
	}
	page := b.get(path)
	entry := regexp.MustCompile(`(?s)<li class="event.*?</li>`)
	for _, m := range live {
		if li := entry.FindString(m.Data); li == "" || !strings.Contains(page.body, li) {
			t.Errorf("the page does not have the entry of event %d as it was live:\n%s", m.ID, m.Data)
		}
	}
	for id, want := range map[int64]string{3: "do it", n + 1: "<strong>done</strong>"} {
		if data := live[id-1].Data; !strings.Contains(data, `<hx-partial hx-target="#transcript"`) || !strings.Contains(data, want) {
			t.Errorf("event %d does not bring its message:\n%s", id, data)
		}
	}
}

func TestComeBack(t *testing.T) {
	s := newSite(t, atWork(t, nil))
	b := s.operator()
	_, caller := s.mustAgent("name: echo\ncommand: [cat]\n")
	run, _ := s.mustLive(caller, "the run", "")
	for _, tc := range []struct {
		after, lastID string
		first         int64
	}{
		{"", "", 1}, {"?after=5", "", 6}, {"?after=5", "9", 10}, {"?after=9", "5", 10}, {"", "12", 13}, {"?after=x", "y", 1}, {"?after=-3", "-1", 1},
	} {
		got, _ := b.watch("/runs/"+run.ID.String()+"/live"+tc.after, tc.lastID).next()
		if got.ID != tc.first {
			t.Errorf("%q after %q: begins with %d, want %d", tc.after, tc.lastID, got.ID, tc.first)
		}
	}
}

func TestLivePageEndsWithTheRun(t *testing.T) {
	s := newSite(t, atWork(t, nil))
	b := s.operator()
	_, caller := s.mustAgent("name: echo\ncommand: [cat]\n")
	run := s.mustRun(caller, "the run", "x")
	stream := b.watch("/runs/"+run.ID.String()+"/live?after=2", "")
	if _, err := s.store.StopRun(t.Context(), run.ID, "enough"); err != nil {
		t.Fatal(err)
	}
	var last, head message
	for m, ok := stream.next(); ok; m, ok = stream.next() {
		if m.ID == 0 && m.Event == "" {
			head = m
		}
		last = m
	}
	if last.Event != "end" {
		t.Errorf("the stream ends with %+v", last)
	}
	for _, want := range []string{"terminated", "enough", "takes no input", `<hx-partial hx-target="#run-stop" hx-swap="delete">`} {
		if !strings.Contains(head.Data, want) {
			t.Errorf("the head has no %q:\n%s", want, head.Data)
		}
	}
	// Whoever comes after the end gets what is missing, and the end.
	again := b.watch("/runs/"+run.ID.String()+"/live?after=3", "")
	if m, _ := again.next(); m.ID != 4 {
		t.Errorf("begins with %+v", m)
	}
	if _, err := s.store.DeleteRun(t.Context(), run.ID, "gone"); err != nil {
		t.Fatal(err)
	}
	deleted := b.get("/runs/" + run.ID.String() + "/live")
	if !strings.Contains(deleted.body, "event: end") || strings.Contains(deleted.body, "\nid:") {
		t.Errorf("of a deleted run: %s", deleted.body)
	}
}

func TestLivePageEndsWithTheServer(t *testing.T) {
	quit := make(chan struct{})
	s := newSite(t, atWork(t, quit))
	b := s.operator()
	_, caller := s.mustAgent("name: echo\ncommand: [cat]\n")
	run := s.mustRun(caller, "the run")
	stream := b.watch("/runs/"+run.ID.String()+"/live", "")
	stream.events(1)
	close(quit)
	for m, ok := stream.next(); ok; m, ok = stream.next() {
		if m.Event == "end" {
			t.Error("the page is told not to come back")
		}
	}
}

// TestLivePageLooksWhoReads begins where a stream has had nothing to tell.
func TestLivePageLooksWhoReads(t *testing.T) {
	s := newSite(t, atWork(t, nil))
	b := s.operator()
	_, caller := s.mustAgent("name: echo\ncommand: [cat]\n")
	run := s.mustRun(caller, "the run")
	req := b.request(http.MethodGet, "/")
	req.AddCookie(&http.Cookie{Name: "agentrun", Value: b.cookie("agentrun")})
	actor, err := s.app.actor(req)
	s.must(err)
	req = req.WithContext(storage.WithActor(req.Context(), actor))
	tell := func() (string, error) {
		ctx, cancel := context.WithCancel(req.Context())
		defer cancel()
		answer := httptest.NewRecorder()
		l := &live{app: s.app, run: run.ID.UUID, reader: newEventReader(run.ID.UUID), stream: newEventStream(answer)}
		// The first event ends this stream, or the test would wait for the second.
		l.stream.w = cancelAfter{answer, "id: 1\n", cancel}
		err := l.tell(ctx, req)
		return answer.Body.String(), err
	}
	if body, err := tell(); err == nil || strings.Contains(body, "event: end") {
		t.Errorf("who is signed in is sent away: %s", body)
	}
	b.post("/sign-out")
	if body, err := tell(); err != nil || !strings.Contains(body, "event: end") || strings.Contains(body, "id: 1\n") {
		t.Errorf("who signed out goes on: %v, %s", err, body)
	}
}

// cancelAfter cancels once a text was written.
type cancelAfter struct {
	*httptest.ResponseRecorder
	text   string
	cancel func()
}

func (c cancelAfter) Write(p []byte) (int, error) {
	n, err := c.ResponseRecorder.Write(p)
	if strings.Contains(string(p), c.text) {
		c.cancel()
	}
	return n, err
}

func TestNoTextBreaksOutOfTheStream(t *testing.T) {
	s := newSite(t, atWork(t, nil))
	b := s.operator()
	_, caller := s.mustAgent("name: echo\ncommand: [cat]\n")
	run := s.mustRun(caller, "the run", "x")
	turn := s.mustClaim()
	last := int64(3)
	for _, payload := range markuptest.Payloads {
		s.mustRecord(turn.Claim, storage.EventCommandStderr, storage.CommandText{Text: payload.Text})
		s.mustRecord(turn.Claim, storage.EventNetworkRefused, storage.NetworkRefused{Host: payload.Text})
		last += 2
	}
	for i, m := range b.watch("/runs/"+run.ID.String()+"/live", "").events(last) {
		if m.ID != int64(i+1) || m.Event != "" {
			t.Fatalf("message %d is %+v", i+1, m)
		}
		harmless(t, m.Data)
	}
}

// TestLivePageLeavesNothing compares what runs before streams and after them.
func TestLivePageLeavesNothing(t *testing.T) {
	s := newSite(t, atWork(t, nil))
	b := s.operator()
	_, caller := s.mustAgent("name: echo\ncommand: [cat]\n")
	run := s.mustRun(caller, "the run")
	b.client.CloseIdleConnections()
	before := goleak.IgnoreCurrent()
	for range 5 {
		stream := b.watch("/runs/"+run.ID.String()+"/live", "")
		stream.events(1)
		stream.close()
	}
	b.client.CloseIdleConnections()
	s.server.CloseClientConnections()
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}
