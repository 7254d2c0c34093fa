package bolt

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// hold makes the writer wait in an update of its own, and returns the function
// that lets it go on and returns the update's error.
func hold(t testing.TB, db *DB) (release func() error) {
	t.Helper()
	holding, let, held := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	hold := sync.OnceFunc(func() { close(holding) }) // a function may run twice
	go func() {
		held <- db.Update(t.Context(), func(tx kv.Tx) error {
			hold()
			<-let
			return tx.Put("s", []byte("held"), []byte("v"))
		})
	}()
	<-holding
	return func() error {
		close(let)
		return <-held
	}
}

func TestCommitIsShared(t *testing.T) {
	const n = 64
	db := openTest(t, Options{})
	release := hold(t, db)
	before := db.Commits()
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- putOne(t, db, fmt.Sprint(i), i) }()
	}
	awaitQueue(db, n)
	if err := release(); err != nil {
		t.Error(err)
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if commits := db.Commits() - before; commits != 1 {
		t.Errorf("%d updates that waited together took %d commits, want 1", n+1, commits)
	}
	for i := range n {
		if got := size(t, db, fmt.Sprint(i)); got != i {
			t.Errorf("value %d has %d bytes", i, got)
		}
	}
}

// TestCommitIsBounded has more updates wait than one commit may take.
func TestCommitIsBounded(t *testing.T) {
	const n = maxMembers + 50
	db := openTest(t, Options{})
	release := hold(t, db)
	before := db.Commits()
	errs := make(chan error, n)
	for i := range n {
		go func() { errs <- putOne(t, db, fmt.Sprint(i), 1) }()
	}
	awaitQueue(db, maxMembers)
	if err := release(); err != nil {
		t.Error(err)
	}
	for range n {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if commits := db.Commits() - before; commits < 2 {
		t.Errorf("%d updates took %d commits, of at most %d each", n+1, commits, maxMembers)
	}
}

// TestLeavesQueue has an update's context end while it waits for its turn.
func TestLeavesQueue(t *testing.T) {
	db := openTest(t, Options{})
	release := hold(t, db)
	ctx, cancel := context.WithCancel(t.Context())
	left := make(chan error, 1)
	go func() {
		left <- db.Update(ctx, func(tx kv.Tx) error { return tx.Put("s", []byte("left"), nil) })
	}()
	awaitQueue(db, 1)
	cancel()
	if err := <-left; !errors.Is(err, context.Canceled) {
		t.Errorf("the update returned %v, want %v", err, context.Canceled)
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	if n := size(t, db, "left"); n != -1 {
		t.Errorf("the update that left wrote %d bytes", n)
	}
}

// TestMembersApart has members of one commit that fail, panic or end their
// goroutine; every other member's writes have to land.
func TestMembersApart(t *testing.T) {
	db := openTest(t, Options{})
	release := hold(t, db)
	before := db.Commits()
	write := func(end func() error) error {
		return db.Update(t.Context(), func(tx kv.Tx) error {
			if err := tx.Put("s", []byte("shared"), []byte("not to be seen")); err != nil {
				return err
			}
			if err := tx.Delete("s", []byte("held")); err != nil {
				return err
			}
			return end()
		})
	}
	refused, cause := errors.New("refused"), errors.New("the panic's own value")
	failed, panicked, exited := make(chan error, 1), make(chan any, 1), make(chan struct{})
	go func() { failed <- write(func() error { return refused }) }()
	go func() {
		defer func() { panicked <- recover() }()
		t.Error("an update that panicked returned", write(func() error { panic(cause) }))
	}()
	go func() {
		defer close(exited)
		t.Error("an update that ended its goroutine returned", write(func() error { runtime.Goexit(); return nil }))
	}()
	landed := make(chan error, 1)
	go func() { landed <- putOne(t, db, "landed", 1) }()
	awaitQueue(db, 4)

	if err := errors.Join(release(), <-landed); err != nil {
		t.Error(err)
	}
	if err := <-failed; err != refused {
		t.Errorf("a failed update returned %v, want its own error", err)
	}
	if got := <-panicked; got != cause {
		t.Errorf("the caller panicked with %v, want %v", got, cause)
	}
	<-exited
	if commits := db.Commits() - before; commits != 1 {
		t.Errorf("the members took %d commits, want 1", commits)
	}
	for key, want := range map[string]int{"held": 1, "landed": 1, "shared": -1} {
		if got := size(t, db, key); got != want {
			t.Errorf("value of %s has %d bytes, want %d", key, got, want)
		}
	}
}

func TestNothingWritten(t *testing.T) {
	db := openTest(t, Options{})
	if err := putOne(t, db, "k", 3); err != nil {
		t.Fatal(err)
	}
	before := db.Commits()
	err := db.Update(t.Context(), func(tx kv.Tx) error {
		_, err := tx.Get("s", []byte("k"))
		return err
	})
	if err != nil {
		t.Error(err)
	}
	refused := errors.New("refused")
	err = db.Update(t.Context(), func(tx kv.Tx) error {
		return errors.Join(tx.Put("s", []byte("k"), nil), refused)
	})
	if !errors.Is(err, refused) {
		t.Error(err)
	}
	if commits := db.Commits() - before; commits != 0 {
		t.Errorf("updates that wrote nothing took %d commits", commits)
	}
}

func TestTooLarge(t *testing.T) {
	db := openTest(t, Options{})
	long := make([]byte, 32769)
	err := db.Update(t.Context(), func(tx kv.Tx) error {
		for _, err := range []error{
			tx.Put("", []byte("k"), nil),
			tx.Put(string(long), []byte("k"), nil),
			tx.Put("s", long, nil),
		} {
			if err == nil {
				t.Error("put of what the file cannot hold succeeded")
			}
		}
		return tx.Put("s", long[:32768], nil)
	})
	if err != nil {
		t.Error(err)
	}
}

// endedUnseen is a context that has ended when its error is asked for, and was
// not seen to end.
type endedUnseen struct {
	context.Context
	ended *atomic.Bool
}

func (endedUnseen) Done() <-chan struct{} { return nil }

func (c endedUnseen) Err() error {
	if c.ended.Load() {
		return context.Canceled
	}
	return nil
}

// TestContextEndsAtTurn has the context end just when the update's turn comes.
func TestContextEndsAtTurn(t *testing.T) {
	db := openTest(t, Options{})
	release := hold(t, db)
	ctx := endedUnseen{t.Context(), new(atomic.Bool)}
	answer := make(chan error, 1)
	go func() {
		answer <- db.Update(ctx, func(tx kv.Tx) error {
			t.Error("the function was called")
			return nil
		})
	}()
	awaitQueue(db, 1)
	ctx.ended.Store(true)
	if err := release(); err != nil {
		t.Error(err)
	}
	if err := <-answer; !errors.Is(err, context.Canceled) {
		t.Errorf("update returned %v, want %v", err, context.Canceled)
	}
}
