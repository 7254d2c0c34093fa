package run

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/go-faster/errors"

	"agentrun/run/sandbox"
	"agentrun/storage"
	"agentrun/storage/kv"
	"agentrun/storage/kv/bolt"
	"agentrun/storage/storagetest"
)

// faultyDB is a real store underneath that does what a test wants of it.
type faultyDB struct {
	kv.DB

	mu      sync.Mutex
	answer  func() // called before an answer, once
	before  int    // how many answers come first
	refuse  error  // what every update returns
	refused int    // how many did
	heal    int    // after how many it refuses no more; 0 means never
	unseen  int    // how many views get no answer
}

// newFaultyHouse returns a house over a store that can be made to fail.
func newFaultyHouse(t *testing.T) (*house, *faultyDB) {
	t.Helper()
	file, err := bolt.Open(filepath.Join(t.TempDir(), "agentrun.db"), bolt.Options{InitialMmapSize: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	db := &faultyDB{DB: file}
	store, err := storage.Open(t.Context(), db, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return &house{t: t, store: store, spaces: storagetest.Workspaces(t)}, db
}

// reopenFaulty begins the next life of the store, as reopen does.
func (h *house) reopenFaulty(db *faultyDB) {
	h.t.Helper()
	// The file may stay open: it is the epoch that makes another life.
	store, err := storage.Open(h.t.Context(), db, storage.Options{})
	if err != nil {
		h.t.Fatal(err)
	}
	h.store = store
}

// answering calls fn once, between a transaction and its answer, after n
// transactions that are answered as ever.
func (db *faultyDB) answering(n int, fn func()) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.answer, db.before = fn, n
}

// refusing lets updates fail with err, until n of them did; 0 means for ever.
func (db *faultyDB) refusing(err error, n int) {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.refuse, db.refused, db.heal = err, 0, n
}

// refusals says how many updates failed since refusing.
func (db *faultyDB) refusals() int {
	db.mu.Lock()
	defer db.mu.Unlock()
	return db.refused
}

// blind lets the next view fail.
func (db *faultyDB) blind() {
	db.mu.Lock()
	defer db.mu.Unlock()
	db.unseen++
}

// View implements [kv.DB].
func (db *faultyDB) View(ctx context.Context, fn func(kv.Reader) error) error {
	defer db.beforeAnswer()
	db.mu.Lock()
	unseen := db.unseen > 0
	if unseen {
		db.unseen--
	}
	db.mu.Unlock()
	if unseen {
		return kv.ErrUnavailable
	}
	return db.DB.View(ctx, fn)
}

// Update implements [kv.DB].
func (db *faultyDB) Update(ctx context.Context, fn func(kv.Tx) error) error {
	defer db.beforeAnswer()
	db.mu.Lock()
	err := db.refuse
	if err != nil {
		db.refused++
		if db.refused == db.heal {
			db.refuse = nil
		}
	}
	db.mu.Unlock()
	if err != nil {
		return err
	}
	return db.DB.Update(ctx, fn)
}

func (db *faultyDB) beforeAnswer() {
	db.mu.Lock()
	var fn func()
	if db.before == 0 {
		fn, db.answer = db.answer, nil
	}
	db.before = max(0, db.before-1)
	db.mu.Unlock()
	if fn != nil {
		fn()
	}
}

// instantRunner is a sandbox in which every program succeeds at once.
type instantRunner struct{}

func (instantRunner) Level() string { return "none" }

func (instantRunner) Owner() int { return os.Geteuid() }

func (instantRunner) Run(context.Context, sandbox.Command) (sandbox.Exit, error) {
	return sandbox.Exit{}, nil
}

// heldRunner is a sandbox in which a program succeeds when end is closed, or is
// stopped. began is told of each program.
type heldRunner struct{ began, end chan struct{} }

func (heldRunner) Level() string { return "none" }

func (heldRunner) Owner() int { return os.Geteuid() }

func (r heldRunner) Run(ctx context.Context, _ sandbox.Command) (sandbox.Exit, error) {
	r.began <- struct{}{}
	select {
	case <-r.end:
		return sandbox.Exit{}, nil
	case <-ctx.Done():
		return sandbox.Exit{Code: -1, Signal: "SIGTERM", Stopped: true}, nil
	}
}

// noSandbox is what a host has that can confine nothing.
type noSandbox struct{}

func (noSandbox) Level() string { return "none" }

func (noSandbox) Owner() int { return os.Geteuid() }

func (noSandbox) Run(context.Context, sandbox.Command) (sandbox.Exit, error) {
	return sandbox.Exit{}, errors.Wrap(sandbox.ErrNotStarted, sandbox.ErrNoSandbox.Error())
}
