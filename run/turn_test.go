package run

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentrun/run/sandbox"
	"agentrun/run/sandbox/sandboxtest"
	"agentrun/storage"
	"agentrun/storage/storagetest"
)

func TestDeletedAgent(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	meet, _, env := pipes(t)
	caller := h.agent("one", "sleep 600 & echo $! > $MEET; wait", env)
	other := h.agent("other", "cat")
	h.start(&Server{workers: 1})
	running := h.run(caller, "first")
	pid := meet.PID()
	waiting, bystander := h.run(caller, "second"), h.run(other, "third")
	if !sandboxtest.Alive(pid) {
		t.Fatal("the program does not live")
	}

	if _, err := h.store.DeleteAgent(t.Context(), caller.AgentID.String()); err != nil {
		t.Fatal(err)
	}
	if run := h.mustRun(waiting); run.State != storage.StateTerminated || run.Reason != "agent deleted" {
		t.Errorf("the run that waits is %s (%s)", run.State, run.Reason)
	}
	run := h.await(running, storage.StateTerminated)
	if sandboxtest.Alive(pid) {
		t.Error("terminated, and the program is alive")
	}
	if run.Reason != "agent deleted" {
		t.Errorf("got the reason %q", run.Reason)
	}
	if diff := cmp.Diff([]string{"in: first"}, h.transcript(running)); diff != "" {
		t.Error(diff)
	}
	want := append(slices.Clone(begun), storage.EventStopRequested, storage.EventCommandExited,
		storage.EventTurnFailed, storage.EventRunTerminated)
	if diff := cmp.Diff(want, h.kinds(running)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{}, h.transcript(waiting)); diff != "" {
		t.Error(diff)
	}
	h.await(bystander, storage.StateFinished)
}

// A stop that was asked for before the turn watches for one is seen all the
// same.
func TestStopBeforeTheTurnWatches(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	caller := h.agent("one", "exec sleep 600")
	id := h.run(caller, "x")
	turn, err := h.store.ClaimNext(t.Context(), storage.AgentID{}, "none")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.store.DeleteAgent(t.Context(), caller.AgentID.String()); err != nil {
		t.Fatal(err)
	}
	s := New(Config{Store: h.store, Workspaces: h.spaces, Sandbox: sandbox.Plain{}, Workers: 1})
	s.look = time.Hour
	s.execute(t.Context(), turn)
	if run := h.mustRun(id); run.State != storage.StateTerminated {
		t.Errorf("got %+v", run)
	}
}

// What came of a turn is recorded as soon as there is space again.
func TestEndOfATurnWaitsForSpace(t *testing.T) {
	for _, row := range []struct {
		name     string
		err      error
		refusals int // as many as there are until space is back, or it gives up
		state    storage.State
	}{
		{name: "no space", err: storage.ErrNoSpace, refusals: 3, state: storage.StateFinished},
		{name: "no answer", err: storage.ErrUnavailable, refusals: 3, state: storage.StateFinished},
		{name: "an outcome that nobody knows", err: storage.ErrCommitUnknown, refusals: 1, state: storage.StateRunning},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, db := newFaultyHouse(t)
				id := h.run(h.apply(storagetest.EchoFile), "x")
				runner := heldRunner{began: make(chan struct{}), end: make(chan struct{})}
				h.start(&Server{workers: 1, sandbox: runner, look: lookInterval})
				<-runner.began
				db.refusing(row.err, 3)
				close(runner.end)
				<-time.After(4 * lookInterval)
				if got := db.refusals(); got != row.refusals {
					t.Errorf("tried %d times, want %d", got, row.refusals)
				}
				if run := h.mustRun(id); run.State != row.state {
					t.Errorf("got %+v", run)
				}
			})
		})
	}
}

// A server that is to end does not wait for space; the next one settles.
func TestEndOfATurnDoesNotHoldTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, db := newFaultyHouse(t)
		id := h.run(h.apply(storagetest.EchoFile), "x")
		runner := heldRunner{began: make(chan struct{}), end: make(chan struct{})}
		server := h.start(&Server{workers: 1, sandbox: runner, look: lookInterval, drain: time.Minute})
		<-runner.began
		db.refusing(storage.ErrNoSpace, 0)
		close(runner.end)
		server.end()
		begun := time.Now()
		<-server.done
		if took := time.Since(begun); took != time.Minute {
			t.Errorf("the server ended after %v", took)
		}
		db.refusing(nil, 0)
		h.reopenFaulty(db)
		h.settle()
		if run := h.mustRun(id); run.State != storage.StateTechnicalError || run.Reason != "server stopped" {
			t.Errorf("got %+v", run)
		}
	})
}

// A stop is seen also when the store did not answer at the wake-up.
func TestStopIsLookedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, db := newFaultyHouse(t)
		caller := h.apply(storagetest.EchoFile)
		id := h.run(caller, "x")
		runner := heldRunner{began: make(chan struct{}), end: make(chan struct{})}
		h.start(&Server{workers: 1, sandbox: runner, look: lookInterval})
		<-runner.began
		synctest.Wait()
		db.blind()
		if _, err := h.store.DeleteAgent(t.Context(), caller.AgentID.String()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if run := h.mustRun(id); run.State != storage.StateRunning {
			t.Errorf("got %+v", run)
		}
		<-time.After(lookInterval)
		synctest.Wait()
		if run := h.mustRun(id); run.State != storage.StateTerminated {
			t.Errorf("got %+v", run)
		}
	})
}
