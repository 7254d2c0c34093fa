package web_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"agentrun/storage"
	"agentrun/storage/storagetest"
	"agentrun/storage/workspace"
	"agentrun/web"
	"agentrun/web/gen"
)

// at is a management API with a run of an agent.
type at struct {
	t      *testing.T
	c      *gen.Client
	url    string
	store  *storage.Store
	spaces *workspace.Store
	caller storage.Caller
	run    storage.RunID
	// arrived is told of each request that waits, as it arrives.
	arrived chan struct{}
}

// withRun returns a management API whose run was created with these inputs.
func withRun(t *testing.T, cfg web.Config, input ...string) *at {
	t.Helper()
	cfg.Store, cfg.Workspaces = storagetest.Open(t), storagetest.Workspaces(t)
	h, err := web.NewManagement(cfg).Local()
	if err != nil {
		t.Fatal(err)
	}
	arrived := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("wait") == "60" {
			arrived <- struct{}{}
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	client, err := gen.NewClient(server.URL, local{})
	if err != nil {
		t.Fatal(err)
	}
	caller := storagetest.MustCaller(t, cfg.Store, storagetest.MustApply(t, cfg.Store, storage.DefaultOrg, storagetest.EchoFile))
	run := storagetest.MustRun(t, cfg.Store, caller, input...)
	return &at{
		t: t, c: client, url: server.URL, store: cfg.Store, spaces: cfg.Workspaces, caller: caller, run: run.ID, arrived: arrived,
	}
}

func (a *at) claim() storage.Claim {
	a.t.Helper()
	turn, err := a.store.ClaimNext(a.t.Context(), storage.AgentID{}, "none")
	if err != nil || turn == nil {
		a.t.Fatalf("claim: %v, %v", turn, err)
	}
	return turn.Claim
}

func (a *at) input(text string) (*gen.Run, error) {
	return a.c.GiveInput(a.t.Context(), &gen.GiveInputReq{Text: text}, gen.GiveInputParams{Run: a.run.UUID})
}

func (a *at) stop(wait int) (*gen.Run, error) {
	return a.c.StopRun(a.t.Context(), gen.StopRunParams{Run: a.run.UUID, Wait: gen.NewOptInt(wait)})
}

func (a *at) delete(wait int) (*gen.Run, error) {
	return a.c.DeleteRun(a.t.Context(), gen.DeleteRunParams{Run: a.run.UUID, Wait: gen.NewOptInt(wait)})
}

func (a *at) events(after int64, limit, wait int) (*gen.EventPage, error) {
	return a.c.ListEvents(a.t.Context(), gen.ListEventsParams{
		Run: a.run.UUID, After: gen.NewOptInt64(after), Limit: gen.NewOptInt(limit), Wait: gen.NewOptInt(wait),
	})
}

// meanwhile calls fn when a request with a wait of 60 has arrived, and returns
// its answer, which is to come long before the wait is over.
func meanwhile[T any](a *at, call func() (T, error), fn func()) T {
	t := a.t
	t.Helper()
	type answer struct {
		value T
		err   error
	}
	answered := make(chan answer, 1)
	go func() {
		value, err := call()
		answered <- answer{value, err}
	}()
	<-a.arrived
	fn()
	select {
	case a := <-answered:
		if a.err != nil {
			t.Fatal(a.err)
		}
		return a.value
	case <-time.After(20 * time.Second):
		t.Fatal("the request is not answered")
		panic("unreachable")
	}
}

func TestInput(t *testing.T) {
	a := withRun(t, web.Config{})
	run := must[*gen.Run](t)(a.input("hello"))
	if run.Status != gen.StatusRunning || run.WaitingInputs != 1 || run.ID != a.run.UUID {
		t.Errorf("idle: %+v", run)
	}
	a.claim()
	if run := must[*gen.Run](t)(a.input("")); run.Status != gen.StatusRunning || run.WaitingInputs != 1 || run.Turns != 1 {
		t.Errorf("during a turn: %+v", run)
	}
}

func TestInputIsRefused(t *testing.T) {
	for name, prepare := range map[string]func(a *at) error{
		"terminated": func(a *at) error { return second(a.stop(0)) },
		"deleted":    func(a *at) error { return second(a.delete(0)) },
		"archived agent": func(a *at) error {
			return second(a.store.SetArchived(t.Context(), a.caller.AgentID.String(), true))
		},
		"deleted agent": func(a *at) error {
			return second(a.store.DeleteAgent(t.Context(), a.caller.AgentID.String()))
		},
	} {
		t.Run(name, func(t *testing.T) {
			a := withRun(t, web.Config{})
			if err := prepare(a); err != nil {
				t.Fatal(err)
			}
			if p := problem(t, second(a.input("x"))); p.StatusCode != http.StatusConflict || p.Response.Detail == "" {
				t.Errorf("%+v", p)
			}
		})
	}
}

func TestStopWaitsForTheEnd(t *testing.T) {
	a := withRun(t, web.Config{}, "hello")
	claim := a.claim()
	if run := must[*gen.Run](t)(a.stop(0)); run.Status != gen.StatusRunning || !run.Stopping {
		t.Errorf("without a wait: %+v", run)
	}
	if run := must[*gen.Run](t)(a.stop(1)); run.Status != gen.StatusRunning || !run.Stopping {
		t.Errorf("after the wait: %+v", run)
	}
	run := meanwhile(a, func() (*gen.Run, error) { return a.stop(60) }, func() {
		if err := a.store.FailTurn(t.Context(), claim, "stop requested"); err != nil {
			t.Error(err)
		}
	})
	if run.Status != gen.StatusTerminated || run.Stopping || run.Reason.Value != "stopped by the operator" {
		t.Errorf("with the end: %+v", run)
	}
}

func TestDeleteWaitsForTheWorkspace(t *testing.T) {
	a := withRun(t, web.Config{}, "hello")
	if run := must[*gen.Run](t)(a.delete(0)); run.Status != gen.StatusTerminated || !run.Deleted || !run.Erasing {
		t.Errorf("without a wait: %+v", run)
	}
	run := meanwhile(a, func() (*gen.Run, error) { return a.delete(60) }, func() {
		if err := a.store.WorkspaceErased(t.Context(), a.run); err != nil {
			t.Error(err)
		}
	})
	if !run.Deleted || run.Erasing || run.Reason.Value != "deleted by the operator" {
		t.Errorf("with the workspace gone: %+v", run)
	}
	detail := must[*gen.RunDetail](t)(a.c.GetRun(t.Context(), gen.GetRunParams{Run: a.run.UUID}))
	if !detail.Deleted || detail.Status != gen.StatusTerminated || len(detail.Transcript) != 0 {
		t.Errorf("the tombstone: %+v", detail)
	}
}

// The end of the server answers those who wait with the run as it is.
func TestQuitEndsTheWait(t *testing.T) {
	quit := make(chan struct{})
	a := withRun(t, web.Config{Quit: quit}, "hello")
	a.claim()
	known := int64(len(must[*gen.EventPage](t)(a.events(0, 100, 0)).Events))
	page := meanwhile(a, func() (*gen.EventPage, error) { return a.events(known, 100, 60) }, func() {
		run := meanwhile(a, func() (*gen.Run, error) { return a.stop(60) }, func() { close(quit) })
		if run.Status != gen.StatusRunning {
			t.Errorf("stop: %+v", run)
		}
	})
	if page.Status != gen.StatusRunning {
		t.Errorf("events: %+v", page)
	}
	if page := must[*gen.EventPage](t)(a.events(known, 100, 59)); !page.End {
		t.Errorf("events after it: %+v", page)
	}
}

func TestEventPages(t *testing.T) {
	a := withRun(t, web.Config{}, "hello")
	claim := a.claim()
	var kinds []string
	for after := int64(0); ; {
		page := must[*gen.EventPage](t)(a.events(after, 2, 0))
		if page.End || page.Status != gen.StatusRunning {
			t.Fatalf("%+v", page)
		}
		for _, e := range page.Events {
			after++
			if e.Seq != after || e.At.IsZero() {
				t.Errorf("event %d is %+v", after, e)
			}
			kinds = append(kinds, e.Kind)
		}
		if len(page.Events) < 2 {
			break
		}
	}
	if diff := cmp.Diff([]string{"run_created", "input_given", "turn_started"}, kinds); diff != "" {
		t.Error(diff)
	}

	// The long poll is answered by the next event,
	page := meanwhile(a, func() (*gen.EventPage, error) { return a.events(3, 100, 60) }, func() {
		if err := a.store.FinishTurn(t.Context(), claim, "bye"); err != nil {
			t.Error(err)
		}
	})
	if page.End || len(page.Events) != 1 || page.Events[0].Kind != "turn_finished" || page.Status != gen.StatusFinished {
		t.Errorf("a new event: %+v", page)
	}
	// or by the run's end, and then waits no more.
	page = meanwhile(a, func() (*gen.EventPage, error) { return a.events(4, 100, 60) }, func() {
		must[*gen.Run](t)(a.stop(0))
	})
	if !page.End || len(page.Events) != 2 || page.Status != gen.StatusTerminated {
		t.Errorf("the end: %+v", page)
	}
	if page := must[*gen.EventPage](t)(a.events(4, 2, 59)); page.End || len(page.Events) != 2 {
		t.Errorf("a full page may not be the last one: %+v", page)
	}
	if page := must[*gen.EventPage](t)(a.events(6, 2, 59)); !page.End || len(page.Events) != 0 {
		t.Errorf("after the end: %+v", page)
	}
}

func TestEventsOffline(t *testing.T) {
	a := withRun(t, web.Config{Offline: true}, "hello")
	if page := must[*gen.EventPage](t)(a.events(0, 100, 60)); !page.End || len(page.Events) != 2 {
		t.Errorf("%+v", page)
	}
}

func TestHoldRefuses(t *testing.T) {
	a := withRun(t, web.Config{})
	for what, c := range map[string]struct {
		err  error
		want int
	}{
		"wait too long":  {second(a.stop(61)), http.StatusUnprocessableEntity},
		"limit too high": {second(a.events(0, 1001, 0)), http.StatusUnprocessableEntity},
		"before all":     {second(a.events(-1, 1, 0)), http.StatusUnprocessableEntity},
	} {
		if p := problem(t, c.err); p.StatusCode != c.want {
			t.Errorf("%s: %+v", what, p)
		}
	}
	a.run = storage.RunID{UUID: uuid.New()}
	for what, err := range map[string]error{
		"input": second(a.input("x")), "stop": second(a.stop(60)), "delete": second(a.delete(60)), "events": second(a.events(0, 1, 60)),
	} {
		if p := problem(t, err); p.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %+v", what, p)
		}
	}
}
