package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
)

func mustOpen(t *testing.T) *Store {
	t.Helper()
	s, err := Open(filepath.Join(t.TempDir(), "workspaces"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func mustID(t *testing.T) uuid.UUID {
	t.Helper()
	id, err := uuid.NewV7()
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// must is for the steps that prepare a test.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// wantErr checks that err is target, and nil only when target is.
func wantErr(t *testing.T, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("%s: %v, want %v", what, err, target)
	}
}

// wantNames checks what lies in a directory.
func wantNames(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if len(got) != len(want) {
		t.Fatalf("%s holds %q, want %q", dir, got, want)
	}
	for i := range got {
		if got[i] != want[i] {
			t.Fatalf("%s holds %q, want %q", dir, got, want)
		}
	}
}

func wantContent(t *testing.T, path, want string) {
	t.Helper()
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Fatalf("%s holds %d bytes, want %d bytes, or they differ", path, len(got), len(want))
	}
}

func wantMode(t *testing.T, path string, want fs.FileMode) {
	t.Helper()
	info, err := os.Lstat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode() != want {
		t.Fatalf("%s has mode %v, want %v", path, info.Mode(), want)
	}
}

// outside is a directory that no workspace may touch, with one file in it.
type outside struct{ dir, file string }

func makeOutside(t *testing.T) outside {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "keep.txt")
	must(t, os.WriteFile(file, []byte("keep"), 0o600))
	return outside{dir, file}
}

func (o outside) wantUntouched(t *testing.T) {
	t.Helper()
	wantNames(t, o.dir, "keep.txt")
	wantContent(t, o.file, "keep")
}

func TestOpen(t *testing.T) {
	t.Run("makes the directory", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "workspaces")
		s, err := Open(dir)
		must(t, err)
		must(t, s.Close())
		wantMode(t, dir, fs.ModeDir|0o700)
	})
	t.Run("takes the one there is, as it is", func(t *testing.T) {
		s := mustOpen(t)
		run := mustID(t)
		must(t, s.Ensure(run))
		must(t, os.Chmod(s.path, 0o750))
		again, err := Open(s.path)
		must(t, err)
		defer again.Close()
		wantMode(t, s.path, fs.ModeDir|0o750)
		wantMode(t, again.Path(run), fs.ModeDir|0o700)
	})
	t.Run("a relative one gets absolute paths", func(t *testing.T) {
		t.Chdir(t.TempDir())
		s, err := Open("workspaces")
		must(t, err)
		defer s.Close()
		run := mustID(t)
		must(t, s.Ensure(run))
		t.Chdir("/")
		if path := s.Path(run); !filepath.IsAbs(path) {
			t.Fatalf("path %s is not absolute", path)
		}
		wantMode(t, s.Path(run), fs.ModeDir|0o700)
	})
	t.Run("needs the directory above", func(t *testing.T) {
		_, err := Open(filepath.Join(t.TempDir(), "absent", "workspaces"))
		wantErr(t, "open", err, fs.ErrNotExist)
	})
	t.Run("refuses a file", func(t *testing.T) {
		if s, err := Open(makeOutside(t).file); err == nil {
			s.Close()
			t.Fatal("a file was opened as a directory")
		}
	})
}

func TestClosedStore(t *testing.T) {
	s := mustOpen(t)
	run := mustID(t)
	d, err := s.Deliver(run)
	must(t, err)
	must(t, s.Close())

	_, err = s.Deliver(mustID(t))
	wantErr(t, "deliver", err, fs.ErrClosed)
	wantErr(t, "commit", d.Commit(), fs.ErrClosed)
	wantErr(t, "ensure", s.Ensure(run), fs.ErrClosed)
	wantErr(t, "discard", s.Discard(run), fs.ErrClosed)
	wantErr(t, "list", second(s.List(run)), fs.ErrClosed)
	wantErr(t, "open a file", second(s.OpenFile(run, "a")), fs.ErrClosed)
	_, err = s.Recover(func(uuid.UUID) (bool, error) { return true, nil })
	wantErr(t, "recover", err, fs.ErrClosed)
}

func TestEnsure(t *testing.T) {
	t.Run("makes a folder once", func(t *testing.T) {
		s := mustOpen(t)
		run := mustID(t)
		must(t, s.Ensure(run))
		wantMode(t, s.Path(run), fs.ModeDir|0o700)
		must(t, os.WriteFile(filepath.Join(s.Path(run), "a"), []byte("a"), 0o600))
		must(t, s.Ensure(run))
		wantContent(t, filepath.Join(s.Path(run), "a"), "a")
	})
	t.Run("refuses a symbolic link", func(t *testing.T) {
		s := mustOpen(t)
		out := makeOutside(t)
		inside := mustID(t)
		must(t, s.Ensure(inside))
		for _, target := range []string{out.dir, out.file, "/nowhere", inside.String()} {
			run := mustID(t)
			must(t, os.Symlink(target, s.Path(run)))
			wantErr(t, "ensure on a link to "+target, s.Ensure(run), ErrExist)
		}
		out.wantUntouched(t)
	})
	t.Run("refuses a file", func(t *testing.T) {
		s := mustOpen(t)
		run := mustID(t)
		must(t, os.WriteFile(s.Path(run), []byte("a"), 0o600))
		wantErr(t, "ensure", s.Ensure(run), ErrExist)
		wantContent(t, s.Path(run), "a")
	})
}
