package run

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"agentrun/run/sandbox"
	"agentrun/run/sandbox/sandboxtest"
	"agentrun/storage"
	"agentrun/storage/storagetest"
	"agentrun/storage/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// house is the data of a server, and with serve a server in it.
type house struct {
	t      *testing.T
	path   string
	store  *storage.Store
	spaces *workspace.Store
}

func newHouse(t *testing.T) *house {
	t.Helper()
	h := &house{t: t, path: filepath.Join(t.TempDir(), "agentrun.db"), spaces: storagetest.Workspaces(t)}
	h.store = storagetest.OpenFile(t, h.path, storage.Options{})
	return h
}

// reopen begins the next life of the store.
func (h *house) reopen() {
	h.t.Helper()
	if err := h.store.Close(); err != nil {
		h.t.Fatal(err)
	}
	h.store = storagetest.OpenFile(h.t, h.path, storage.Options{})
}

// agent applies the agent file of a shell script, to which fields may be added,
// and returns whom a key of it speaks for.
func (h *house) agent(name, script string, fields ...string) storage.Caller {
	h.t.Helper()
	file := "name: " + name + "\ncommand:\n- sh\n- -c\n- |\n  " + strings.ReplaceAll(script, "\n", "\n  ") + "\n"
	return h.apply(file + strings.Join(fields, "\n"))
}

func (h *house) apply(file string) storage.Caller {
	h.t.Helper()
	return storagetest.MustCaller(h.t, h.store, storagetest.MustApply(h.t, h.store, storage.DefaultOrg, file))
}

// run creates a run with an input.
func (h *house) run(caller storage.Caller, input string) storage.RunID {
	h.t.Helper()
	return storagetest.MustRun(h.t, h.store, caller, input).ID
}

// serving is a server that executes runs.
type serving struct {
	t    *testing.T
	end  context.CancelFunc
	done chan struct{}
}

// serve starts a server that is cut off at once when the test ends.
func (h *house) serve(workers int) *serving {
	return h.start(&Server{workers: workers})
}

// start starts a server of which some fields are set. Nothing but wake-ups
// brings it to look at the store, unless the test says otherwise.
func (h *house) start(s *Server) *serving {
	cfg := Config{
		Store: h.store, Workspaces: h.spaces, Sandbox: s.sandbox, Workers: s.workers, Drain: s.drain, IdleStop: s.idleStop,
		AllowRead: s.allowRead, Secrets: s.secrets, Providers: s.providers, Log: s.log,
	}
	if cfg.Sandbox == nil {
		cfg.Sandbox = sandbox.Plain{}
	}
	server := New(cfg)
	server.look = time.Hour
	if s.look != 0 {
		server.look = s.look
	}
	ctx, cancel := context.WithCancel(h.t.Context())
	running := &serving{t: h.t, end: cancel, done: make(chan struct{})}
	go func() {
		defer close(running.done)
		server.Run(ctx)
	}()
	h.t.Cleanup(func() {
		cancel()
		<-running.done
	})
	return running
}

// stop ends the server and waits until it has ended.
func (s *serving) stop() {
	s.t.Helper()
	s.end()
	sandboxtest.Wait(s.t, s.done, "the server's end")
}

// await waits for a state of a run.
func (h *house) await(id storage.RunID, state storage.State) storage.Run {
	h.t.Helper()
	watch := h.store.Watch(id)
	defer watch.Close()
	late := time.NewTimer(sandboxtest.Patience)
	defer late.Stop()
	for {
		run := h.mustRun(id)
		if run.State == state {
			return run
		}
		select {
		case <-watch.C:
		case <-late.C:
			h.t.Fatalf("run %s is %s (%s) with the events %v, not %s", id, run.State, run.Reason, h.kinds(id), state)
		}
	}
}

func (h *house) mustRun(id storage.RunID) storage.Run {
	h.t.Helper()
	run, err := h.store.Run(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	return run
}

// transcript returns a run's messages as "in: TEXT" and "out: TEXT".
func (h *house) transcript(id storage.RunID) []string {
	h.t.Helper()
	_, messages, err := h.store.RunWithTranscript(h.t.Context(), id)
	if err != nil {
		h.t.Fatal(err)
	}
	texts := []string{}
	for _, m := range messages {
		prefix := map[storage.Role]string{storage.RoleInput: "in: ", storage.RoleOutput: "out: "}[m.Role]
		texts = append(texts, prefix+m.Text)
	}
	return texts
}

func (h *house) events(id storage.RunID) []storage.Event {
	h.t.Helper()
	_, events, err := h.store.StateAndEvents(h.t.Context(), id, 0, 0)
	if err != nil {
		h.t.Fatal(err)
	}
	return events
}

func (h *house) kinds(id storage.RunID) []storage.EventKind {
	h.t.Helper()
	var kinds []storage.EventKind
	for _, e := range h.events(id) {
		kinds = append(kinds, e.Kind)
	}
	return kinds
}

// data returns the data of the events of one kind, as the JSON that they are.
func (h *house) data(id storage.RunID, kind storage.EventKind) []string {
	h.t.Helper()
	var data []string
	for _, e := range h.events(id) {
		if e.Kind == kind {
			data = append(data, string(e.Data))
		}
	}
	return data
}

// pipes returns a pair of pipes for scripts, which find them as $MEET and $GO,
// and the field of an agent file that tells them.
func pipes(t *testing.T) (meet, goOn *sandboxtest.Pipe, env string) {
	t.Helper()
	meet, goOn = sandboxtest.NewPipe(t), sandboxtest.NewPipe(t)
	return meet, goOn, "env: {MEET: '" + meet.Path + "', GO: '" + goOn.Path + "'}"
}
