package run

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"agentrun/run/sandbox/sandboxtest"
	"agentrun/storage"
	"agentrun/storage/storagetest"
)

// deleted returns a run that was deleted and has a workspace.
func (h *house) deleted(caller storage.Caller) storage.RunID {
	h.t.Helper()
	id := storagetest.MustRun(h.t, h.store, caller).ID
	if err := h.spaces.Ensure(id.UUID); err != nil {
		h.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(h.spaces.Path(id.UUID), "file"), []byte("content"), 0o600); err != nil {
		h.t.Fatal(err)
	}
	if _, err := h.store.DeleteRun(h.t.Context(), id, "test"); err != nil {
		h.t.Fatal(err)
	}
	return id
}

// erasing starts what removes workspaces; it ends with the test.
func (h *house) erasing(look time.Duration, log *zap.Logger) {
	ctx, cancel := context.WithCancel(h.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		erase(ctx, h.store, h.spaces, log, look)
	}()
	h.t.Cleanup(func() {
		cancel()
		<-done
	})
}

// awaitErased waits until the workspace of a run is gone.
func (h *house) awaitErased(id storage.RunID) {
	h.t.Helper()
	watch := h.store.Watch(id)
	defer watch.Close()
	late := time.NewTimer(sandboxtest.Patience)
	defer late.Stop()
	for h.mustRun(id).Erasing {
		select {
		case <-watch.C:
		case <-late.C:
			h.t.Fatalf("run %s still has its workspace", id)
		}
	}
	if _, err := os.Stat(h.spaces.Path(id.UUID)); !os.IsNotExist(err) {
		h.t.Errorf("the workspace: %v", err)
	}
}

// What an earlier life left goes first, then what is deleted while it looks;
// the workspaces of other runs stay.
func TestErase(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	caller := h.apply(storagetest.EchoFile)
	kept := storagetest.MustRun(t, h.store, caller).ID
	if err := h.spaces.Ensure(kept.UUID); err != nil {
		t.Fatal(err)
	}
	before := h.deleted(caller)
	h.reopen()
	h.settle()
	h.erasing(time.Hour, zap.NewNop())
	h.awaitErased(before)
	h.awaitErased(h.deleted(caller))
	if _, err := os.Stat(h.spaces.Path(kept.UUID)); err != nil {
		t.Error(err)
	}
}

// A run is deleted in the middle of its turn: the program ends first.
func TestEraseAfterTheTurn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	meet, _, env := pipes(t)
	id := h.run(h.agent("one", ": > file; echo $$ > $MEET; exec sleep 600", env), "x")
	h.erasing(time.Hour, zap.NewNop())
	h.serve(1)
	pid := meet.PID()
	if _, err := h.store.DeleteRun(t.Context(), id, "test"); err != nil {
		t.Fatal(err)
	}
	h.await(id, storage.StateTerminated)
	if sandboxtest.Alive(pid) {
		t.Error("the run is terminated, and its program is alive")
	}
	h.awaitErased(id)
	if got := h.transcript(id); len(got) != 0 {
		t.Errorf("transcript: %q", got)
	}
}

// What cannot be removed, or not be recorded, is tried again.
func TestEraseTriesAgain(t *testing.T) {
	t.Parallel()
	h, db := newFaultyHouse(t)
	id := h.deleted(h.apply(storagetest.EchoFile))
	core, logs := observer.New(zap.ErrorLevel)
	db.refusing(storage.ErrNoSpace, 2)
	h.erasing(time.Millisecond, zap.New(core))
	h.awaitErased(id)
	if db.refusals() != 2 || logs.Len() != 2 {
		t.Errorf("%d refusals, logged %v", db.refusals(), logs.All())
	}
}

// A workspace that cannot be removed keeps nobody from removing the others.
func TestEraseOfAWorkspaceThatResists(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.deleted(h.apply(storagetest.EchoFile))
	closed := storagetest.Workspaces(t)
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.ErrorLevel)
	if err := eraseAll(t.Context(), h.store, closed, zap.New(core)); err != nil || logs.Len() != 1 {
		t.Errorf("%v, logged %v", err, logs.All())
	}
	if run := h.mustRun(id); !run.Erasing {
		t.Errorf("got %+v", run)
	}
	h.erasing(time.Hour, zap.NewNop())
	h.awaitErased(id)
}
