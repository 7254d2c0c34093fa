package bolt

import (
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"go.etcd.io/bbolt"

	"agentrun/storage/kv"
)

// slowSync makes commits last longer, as a slow disk does. bbolt calls what it
// was given to call after a commit when it has synced the file itself, and
// before it returns to the writer, which only then answers the members.
type slowSync struct {
	takes time.Duration
	tx    *bbolt.Tx // the last one that was slowed down
}

// join has to be called by every function that may be the first of a commit.
func (s *slowSync) join(tx kv.Tx) {
	if commit := tx.(*transaction).tx; commit != s.tx {
		s.tx = commit
		commit.OnCommit(func() { <-time.After(s.takes) })
	}
}

// putSlowly is putOne with a slow sync.
func putSlowly(t testing.TB, db *DB, sync *slowSync, key string) error {
	return db.Update(t.Context(), func(tx kv.Tx) error {
		sync.join(tx)
		return tx.Put("s", []byte(key), make([]byte, 1000))
	})
}

// openYielding opens a store whose writer calls yield when it waits.
func openYielding(t *testing.T, yield func(db *DB)) *DB {
	t.Helper()
	db, err := open(filepath.Join(t.TempDir(), "test.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	db.yield = func() { yield(db) }
	go db.write()
	t.Cleanup(func() {
		_ = db.Close() // a test that breaks the store looks at the error itself
	})
	return db
}

// shareCommit has n updates share a commit.
func shareCommit(t *testing.T, db *DB, n int) {
	t.Helper()
	before := db.Commits()
	errs := make(chan error, n)
	release := hold(t, db)
	for i := range n - 1 {
		go func() { errs <- putOne(t, db, fmt.Sprint("shared", i), 1) }()
	}
	awaitQueue(db, n-1)
	errs <- release()
	for range n {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	if commits := db.Commits() - before; commits != 1 {
		t.Fatalf("%d updates took %d commits, want 1", n, commits)
	}
}

func TestExpect(t *testing.T) {
	for _, test := range []struct {
		answered, waiting int
		took              time.Duration
		want              expected
	}{
		{1, 0, time.Millisecond, expected{}},
		{1, 63, time.Millisecond, expected{}},
		{2, 0, time.Millisecond, expected{2, 125 * time.Microsecond}},
		{32, 32, 8 * time.Millisecond, expected{64, time.Millisecond}},
		{64, 0, time.Hour, expected{64, maxPatience}},
	} {
		if got := expect(test.answered, test.waiting, test.took); got != test.want {
			t.Errorf("expect(%d, %d, %v) = %v, want %v", test.answered, test.waiting, test.took, got, test.want)
		}
	}
}

// TestLoneWriterNeverWaits has one caller make its updates, at first and after
// a commit that was shared.
func TestLoneWriterNeverWaits(t *testing.T) {
	var yields atomic.Int64
	db := openYielding(t, func(*DB) { yields.Add(1) })
	alone := func(name string) {
		t.Helper()
		before := db.Commits()
		for i := range 20 {
			if err := putOne(t, db, fmt.Sprint(name, i), 100); err != nil {
				t.Fatal(err)
			}
		}
		if commits := db.Commits() - before; commits != 20 {
			t.Errorf("20 updates %s took %d commits", name, commits)
		}
	}
	alone("at first")
	if n := yields.Load(); n != 0 {
		t.Errorf("the writer waited %d times for others than a lone caller", n)
	}
	shareCommit(t, db, 2)
	if err := putOne(t, db, "one of two", 100); err != nil {
		t.Fatal(err)
	}
	waited := yields.Load()
	if waited == 0 {
		t.Error("the writer did not wait for the other of two callers")
	}
	alone("after two")
	if n := yields.Load() - waited; n != 0 {
		t.Errorf("the writer waited %d times for others than the caller that is left", n)
	}
}

// TestCommitWaits has the callers of a commit come back one by one: the second
// and the third only once the writer waits for them.
func TestCommitWaits(t *testing.T) {
	yields := 0
	var rest func()
	db := openYielding(t, func(db *DB) {
		yields++
		rest()
		awaitQueue(db, 2)
	})
	errs := make(chan error, 2)
	rest = sync.OnceFunc(func() {
		for i := range 2 {
			go func() { errs <- putOne(t, db, fmt.Sprint("late", i), 1) }()
		}
	})
	shareCommit(t, db, 3)
	before := db.Commits()
	if err := putOne(t, db, "early", 1); err != nil {
		t.Error(err)
	}
	rest() // if the writer has not waited
	if err := errors.Join(<-errs, <-errs); err != nil {
		t.Error(err)
	}
	if commits := db.Commits() - before; commits != 1 {
		t.Errorf("three callers that came back took %d commits, want 1", commits)
	}
	if err := db.Close(); err != nil { // the writer has ended, and its count is ours
		t.Error(err)
	}
	if yields != 1 {
		t.Errorf("the writer yielded %d times, want 1", yields)
	}
}

// TestWaitEnds has the writer wait, with all the patience in the world, in a
// store that is closed or breaks meanwhile.
func TestWaitEnds(t *testing.T) {
	broke := errors.Wrap(kv.ErrDamaged, "broken by the test")
	tests := []struct {
		name string
		end  func(t *testing.T, db *DB)
		want error // of Close
	}{
		{"closed", func(t *testing.T, db *DB) {
			go db.Close()
			if _, open := <-db.updates; open {
				t.Error("an update came from nowhere")
			}
		}, nil},
		{"broken", func(_ *testing.T, db *DB) { db.breakDown(broke) }, broke},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			yields := 0
			db := openYielding(t, func(db *DB) {
				yields++
				db.expected.patience = time.Hour
				test.end(t, db)
			})
			shareCommit(t, db, 2)
			// Close would wait for a caller whose answer depends on the commit.
			err := db.Update(t.Context(), func(tx kv.Tx) error {
				_, err := tx.Get("s", []byte("held"))
				return err
			})
			// The caller of a store that breaks may hear of that before its answer.
			if err != nil && test.want == nil {
				t.Error(err)
			}
			<-db.written
			if yields != 1 {
				t.Errorf("the writer yielded %d times, want 1", yields)
			}
			if err := db.Close(); !errors.Is(err, test.want) {
				t.Errorf("close returned %v, want %v", err, test.want)
			}
		})
	}
}

// TestCommitsPerUpdate is the price of an update where a sync is slow and many
// callers make one update after the other.
func TestCommitsPerUpdate(t *testing.T) {
	const callers, each, share = 64, 16, 16
	db := openTest(t, Options{})
	sync := &slowSync{takes: 2 * time.Millisecond}
	before := db.Commits()
	errs := make(chan error, callers)
	for c := range callers {
		go func() {
			var err error
			for i := range each {
				err = errors.Join(err, putSlowly(t, db, sync, fmt.Sprintf("%02d-%02d", i, c)))
			}
			errs <- err
		}()
	}
	for range callers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	commits := db.Commits() - before
	t.Logf("%d updates by %d callers took %d commits", callers*each, callers, commits)
	if commits > callers*each/share {
		t.Errorf("%d updates took %d commits, want at most one for %d", callers*each, commits, share)
	}
}
