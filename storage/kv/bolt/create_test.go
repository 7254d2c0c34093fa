package bolt

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

func TestFirstStart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	// What an interrupted start leaves behind is not in the way.
	if err := os.WriteFile(path+".new", []byte("left over"), 0o644); err != nil {
		t.Fatal(err)
	}
	db := openPath(t, path, Options{})
	if err := putOne(t, db, "k", 1); err != nil {
		t.Error(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != fileMode {
		t.Errorf("the file's mode is %v, want %v", info.Mode(), fs.FileMode(fileMode))
	}
	if _, err := os.Stat(path + ".new"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the unnamed file is still there: %v", err)
	}
}

// TestStartTogether has several servers make the same store at once. One gets
// it; what it writes must not be in a file that another has replaced.
func TestStartTogether(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "test.db")
	const n = 8
	type opened struct {
		db  *DB
		err error
	}
	results := make(chan opened, n)
	for range n {
		go func() {
			db, err := Open(path, Options{})
			if err == nil {
				err = putOne(t, db, "k", 1)
			}
			results <- opened{db, err}
		}()
	}
	var winner *DB
	for range n {
		r := <-results
		switch {
		case r.err == nil && winner == nil:
			winner = r.db
		case !errors.Is(r.err, kv.ErrInUse):
			t.Errorf("a start returned %v, want one store and %v", r.err, kv.ErrInUse)
		}
	}
	if winner == nil {
		t.Fatal("no start succeeded")
	}
	if err := winner.Close(); err != nil {
		t.Error(err)
	}
	if n := size(t, openPath(t, path, Options{}), "k"); n != 1 {
		t.Errorf("the value has %d bytes, want 1", n)
	}
}

// TestStartLate has another process make the store while this one waits to do
// so. What the other has written by then must not be made anew.
func TestStartLate(t *testing.T) {
	t.Parallel()
	whole := wholeFile(t, os.Getpagesize())
	path := filepath.Join(t.TempDir(), "test.db")
	unnamed := path + ".new"
	other, err := openLocked(unnamed, os.O_RDWR|os.O_CREATE)
	if err != nil {
		t.Fatal(err)
	}
	opened := make(chan *DB)
	go func() {
		db, err := Open(path, Options{})
		if err != nil {
			t.Error(err)
		}
		opened <- db
	}()
	for countOpen(t, unnamed) < 2 {
		runtime.Gosched()
	}
	if _, err := other.Write(whole); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(unnamed, path); err != nil {
		t.Fatal(err)
	}
	release(other)
	db := <-opened
	if db == nil {
		return
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
	if !bytes.Equal(readFile(t, path), whole) {
		t.Error("the store was made anew")
	}
}

// countOpen returns how many times this process has a file open.
func countOpen(t *testing.T, path string) int {
	t.Helper()
	const descriptors = "/proc/self/fd"
	entries, err := os.ReadDir(descriptors)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, entry := range entries {
		target, err := os.Readlink(filepath.Join(descriptors, entry.Name()))
		if err == nil && target == path { // others come and go meanwhile
			n++
		}
	}
	return n
}
