package bolt

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/go-faster/errors"
	"go.uber.org/goleak"

	"agentrun/storage/kv"
	"agentrun/storage/kv/kvtest"
)

// childVar names the function that a test wants run in a process of its own.
const childVar = "AGENTRUN_BOLT_TEST_CHILD"

func TestMain(m *testing.M) {
	if name := os.Getenv(childVar); name != "" {
		if err := children()[name](os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func openTest(t testing.TB, opts Options) *DB {
	t.Helper()
	return openPath(t, filepath.Join(t.TempDir(), "test.db"), opts)
}

func openPath(t testing.TB, path string, opts Options) *DB {
	t.Helper()
	db, err := Open(path, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		// A test that breaks the store closes it itself, and looks at the error.
		_ = db.Close()
	})
	return db
}

// putOne writes a value of the given size to the space s, in one update.
func putOne(t testing.TB, db *DB, key string, size int) error {
	return db.Update(t.Context(), func(tx kv.Tx) error {
		return tx.Put("s", []byte(key), bytes.Repeat([]byte{'v'}, size))
	})
}

// size returns the size of the value that putOne wrote, and -1 for none.
func size(t testing.TB, db *DB, key string) int {
	t.Helper()
	n := -1
	err := db.View(t.Context(), func(r kv.Reader) error {
		n = -1
		value, err := r.Get("s", []byte(key))
		if value != nil {
			n = len(value)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// holdView begins a view, and returns the function that lets it end and returns
// its error.
func holdView(t testing.TB, db *DB) (release func() error) {
	t.Helper()
	reading, let, held := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		held <- db.View(t.Context(), func(kv.Reader) error {
			close(reading)
			<-let
			return nil
		})
	}()
	<-reading
	return func() error {
		close(let)
		return <-held
	}
}

// awaitQueue returns when n updates wait for the writer.
func awaitQueue(db *DB, n int) {
	for len(db.updates) < n {
		runtime.Gosched()
	}
}

func TestConformance(t *testing.T) {
	kvtest.Run(t, func(t *testing.T) kv.DB { return openTest(t, Options{}) })
}

func TestReopen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	db := openPath(t, path, Options{})
	if err := putOne(t, db, "k", 10_000); err != nil {
		t.Fatal(err)
	}
	// What is in the file now is what a killed process would leave behind.
	left, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	killed := path + ".killed"
	if err := os.WriteFile(killed, left, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{path, killed} {
		if n := size(t, openPath(t, path, Options{}), "k"); n != 10_000 {
			t.Errorf("%s holds a value of %d bytes, want 10000", path, n)
		}
	}
}

// TestCloseWaits closes the store while a view and an update are under way, and
// so many other updates that some wait for a place in the queue.
func TestCloseWaits(t *testing.T) {
	db := openTest(t, Options{})
	const waiting = maxMembers + 20
	waited, closed := make(chan error, waiting), make(chan error, 1)
	endView, release := holdView(t, db), hold(t, db)
	for range waiting {
		go func() { waited <- putOne(t, db, "waited", 1) }()
	}
	awaitQueue(db, maxMembers)
	go func() { closed <- db.Close() }()
	for {
		err := db.View(t.Context(), func(kv.Reader) error { return nil })
		if errors.Is(err, kv.ErrUnavailable) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := release(); err != nil {
		t.Error(err)
	}
	refused := 0
	for range waiting {
		err := <-waited
		if errors.Is(err, kv.ErrUnavailable) {
			refused++ // it came after the closing had begun
		} else if err != nil {
			t.Errorf("an update that waited: %v", err)
		}
	}
	if refused > waiting-maxMembers {
		t.Errorf("%d of %d updates were refused", refused, waiting)
	}
	select {
	case err := <-closed:
		t.Errorf("close returned %v during a view", err)
	default:
	}
	if err := endView(); err != nil {
		t.Error(err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
}

func TestUseAfterEnd(t *testing.T) {
	db := openTest(t, Options{})
	var kept kv.Tx
	err := db.Update(t.Context(), func(tx kv.Tx) error {
		kept = tx
		return tx.Put("s", []byte("k"), nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	_, getErr := kept.Get("s", []byte("k"))
	_, scanErr := kept.Scan(kv.Range{Space: "s"})
	putErr := kept.Put("s", []byte("k"), nil)
	deleteErr := kept.Delete("s", []byte("k"))
	for _, err := range []error{getErr, scanErr, putErr, deleteErr} {
		if !errors.Is(err, errEnded) {
			t.Errorf("a transaction that has ended returned %v", err)
		}
	}
}
