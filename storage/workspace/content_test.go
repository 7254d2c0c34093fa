package workspace

import (
	"io"
	"io/fs"
	"math"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"
)

// mustRun makes the folder of a new run.
func mustRun(t *testing.T, s *Store) (run uuid.UUID, folder string) {
	t.Helper()
	run = mustID(t)
	must(t, s.Ensure(run))
	return run, s.Path(run)
}

func mustWrite(t *testing.T, path, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(content), 0o600))
}

// read is everything in a file of the run.
func read(s *Store, run uuid.UUID, path string) (string, error) {
	c, err := s.OpenFile(run, path)
	if err != nil {
		return "", err
	}
	defer c.Close()
	text, err := io.ReadAll(c)
	return string(text), err
}

// soon fails the test when fn waits for somebody, which would be for ever, and
// logs when it takes long, which a busy machine explains.
func soon(t *testing.T, what string, fn func()) {
	t.Helper()
	done := make(chan struct{})
	start := time.Now()
	go func() {
		defer close(done)
		fn()
	}()
	select {
	case <-done:
		if took := time.Since(start); took > time.Second {
			t.Logf("%s took %v", what, took)
		}
	case <-time.After(20 * time.Second):
		t.Fatalf("%s hangs", what)
	}
}

// odd are names that a program may well give a file.
var odd = []string{
	"notes.txt", "a b", ".hidden", "...", "-rf", "*", `a\b`, "a:b", "two\nlines", "\x1b[31mred", "\u202etxt.exe", "\ufffd",
	"CON", "%2e%2e", "ä", strings.Repeat("n", 255), "deep/er/notes.txt", strings.Repeat("d/", 200) + "f",
}

func TestOpenFile(t *testing.T) {
	s := mustOpen(t)
	run, folder := mustRun(t, s)
	at := time.Date(2020, 2, 29, 12, 30, 15, 500, time.UTC)
	for _, path := range odd {
		full := filepath.Join(folder, path)
		mustWrite(t, full, path)
		must(t, os.Chtimes(full, time.Time{}, at))
		c, err := s.OpenFile(run, path)
		must(t, err)
		text, err := io.ReadAll(c)
		if err != nil || string(text) != path || c.Size != int64(len(path)) || !c.Modified.Equal(at) || c.Modified.Location() != time.UTC {
			t.Errorf("%q: %q, %d bytes of %v, %v", path, text, c.Size, c.Modified, err)
		}
		must(t, c.Close())
	}
	mustWrite(t, filepath.Join(folder, "empty"), "")
	if text, err := read(s, run, "empty"); text != "" || err != nil {
		t.Errorf("empty: %q, %v", text, err)
	}
}

func TestInvalidPaths(t *testing.T) {
	s := mustOpen(t)
	out := makeOutside(t)
	run, folder := mustRun(t, s)
	other, otherFolder := mustRun(t, s)
	mustWrite(t, filepath.Join(folder, "dir/a"), "a")
	mustWrite(t, filepath.Join(otherFolder, "secret"), "s")
	mustWrite(t, filepath.Join(folder, "latin\xe9"), "l")
	for _, path := range []string{
		"", ".", "..", "/", "./a", "dir/.", "dir/..", "dir/", "dir//a", "/dir/a", "//dir/a", "dir/../dir/a", "dir/./a",
		"../" + other.String() + "/secret", "dir/../../" + other.String() + "/secret", "../.orphans", out.file,
		filepath.Join(otherFolder, "secret"), "/proc/self/environ", "/etc/passwd",
		"\x00", "dir/a\x00", "dir\x00/a", "dir/a\x00.txt", "latin\xe9", "dir/\xff",
	} {
		if _, err := read(s, run, path); !errors.Is(err, ErrInvalidPath) {
			t.Errorf("%q: %v", path, err)
		}
	}
	// Not even a run's folder is looked at.
	wantErr(t, "no folder", second(s.OpenFile(mustID(t), "..")), ErrInvalidPath)
}

func second[T any](_ T, err error) error { return err }

func TestNoFile(t *testing.T) {
	s := mustOpen(t)
	run, folder := mustRun(t, s)
	mustWrite(t, filepath.Join(folder, "dir/a"), "a")
	for _, path := range []string{
		"b", "dir/b", "no/a", "dir/a/b", "dir/a/b/c", `..\a`, "~", "$HOME", "%2e%2e", strings.Repeat("n", 256), strings.Repeat("x/", 5000) + "f",
	} {
		if _, err := read(s, run, path); !errors.Is(err, ErrNoFile) {
			t.Errorf("%.20q: %v", path, err)
		}
	}
	wantErr(t, "no folder", second(s.OpenFile(mustID(t), "a")), ErrNoFile)
	err := second(s.OpenFile(run, "no\x1bthing"))
	if want := "workspace " + run.String() + `: file "no\x1bthing": no such file`; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

// special are things that are no file to hand out, with what the error has to
// say about them. Some have to be opened to be seen; none may be waited for.
func special(t *testing.T, s *Store, run uuid.UUID, out outside) map[string]string {
	t.Helper()
	folder := s.Path(run)
	mustWrite(t, filepath.Join(folder, "dir/file"), "inside")
	mustWrite(t, filepath.Join(folder, "twice"), "inside")
	mustWrite(t, filepath.Join(folder, "locked/file"), "inside")
	mustWrite(t, filepath.Join(folder, "unreadable"), "inside")
	other, otherFolder := mustRun(t, s)
	mustWrite(t, filepath.Join(otherFolder, "secret"), "secret")

	for name, target := range map[string]string{
		"link-out": out.file, "link-in": "dir/file", "link-dir-in": "dir", "link-dir-out": out.dir, "link-root": "/",
		"link-self": "link-self", "link-dangling": "absent", "link-up": "..", "link-here": ".", "link-other": "../" + other.String(),
		"link-exe": "/proc/self/exe", "link-environ": "/proc/self/environ", "link-cwd": "/proc/self/cwd", "link-fd": "/proc/self/fd/0",
		"link-procroot": "/proc/self/root", "link-null": "/dev/null", "link-fifo": "fifo",
	} {
		must(t, os.Symlink(target, filepath.Join(folder, name)))
	}
	must(t, os.Link(out.file, filepath.Join(folder, "hard-out")))
	must(t, os.Link(filepath.Join(otherFolder, "secret"), filepath.Join(folder, "hard-other")))
	must(t, os.Link(filepath.Join(folder, "twice"), filepath.Join(folder, "dir/hard-in")))
	must(t, syscall.Mkfifo(filepath.Join(folder, "fifo"), 0o600))
	must(t, syscall.Mknod(filepath.Join(folder, "dead-socket"), syscall.S_IFSOCK|0o600, 0))
	socket := mustListen(t, folder, "socket")
	t.Cleanup(func() { _ = socket.Close() })

	const link, hard, dir = "symbolic link", "hard links", "is a directory"
	paths := map[string]string{
		"link-out": link, "link-in": link, "link-dir-in": link, "link-dir-out": link, "link-root": link, "link-self": link,
		"link-dangling": link, "link-up": link, "link-here": link, "link-other": link, "link-exe": link, "link-environ": link,
		"link-cwd": link, "link-fd": link, "link-procroot": link, "link-null": link, "link-fifo": link,
		"link-dir-in/file": link, "link-dir-out/keep.txt": link, "link-root/etc/passwd": link, "link-up/" + other.String() + "/secret": link,
		"link-other/secret": link, "link-here/dir/file": link, "link-procroot/etc/passwd": link, "link-self/file": link,
		"hard-out": hard, "hard-other": hard, "dir/hard-in": hard, "twice": hard,
		"fifo": "named pipe", "fifo/x": "named pipe", "socket": "is a socket", "socket/x": "is a socket", "dead-socket": "is a socket",
		"dir": dir, "locked": dir,
	}
	if err := syscall.Mknod(filepath.Join(folder, "null"), syscall.S_IFCHR|0o600, 1<<8|3); err == nil {
		paths["null"] = "is a device"
	} else {
		t.Logf("no device: %v", err)
	}
	return paths
}

// mustListen listens on a unix socket, whose path has to be short.
func mustListen(t *testing.T, folder, name string) net.Listener {
	t.Helper()
	t.Chdir(folder)
	l, err := net.Listen("unix", name)
	must(t, err)
	return l
}

func TestRefusedFiles(t *testing.T) {
	s := mustOpen(t)
	out := makeOutside(t)
	run, _ := mustRun(t, s)
	paths := special(t, s, run, out)
	for path, why := range paths {
		soon(t, path, func() {
			text, err := read(s, run, path)
			if !errors.Is(err, ErrFileRefused) || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %q, %v, want %s", path, text, err, why)
			}
		})
	}
	t.Logf("%d refused, 0 read", len(paths))
	out.wantUntouched(t)
	must(t, s.Discard(run))
}

// Lstat is asked first and saves most openings. What comes behind it has to
// hold when everything changes in between, so it is tried alone.
func TestOpeningRefusesByItself(t *testing.T) {
	s := mustOpen(t)
	out := makeOutside(t)
	run, folder := mustRun(t, s)
	dir := mustFolder(t, s, run)
	special(t, s, run, out)
	seen, err := dir.Lstat("dir")
	must(t, err)
	for _, name := range []string{"fifo", "socket", "unreadable", "link-fifo", "link-dir-out", "link-root", "link-self", "link-dangling"} {
		soon(t, name, func() {
			if _, err := reach(dir, name, seen); !errors.Is(err, ErrFileRefused) && !errors.Is(err, ErrNoFile) {
				t.Errorf("%s as a directory: %v", name, err)
			}
		})
	}
	mustWrite(t, filepath.Join(folder, "dir2/file"), "x")
	for _, name := range []string{"dir2", "link-here"} {
		wantErr(t, name, second(reach(dir, name, seen)), ErrFileRefused)
	}
	wantErr(t, "a link to the right one", second(reach(dir, "link-dir-in", seen)), nil)
}

func TestUnreadable(t *testing.T) {
	s := mustOpen(t)
	run, folder := mustRun(t, s)
	mustWrite(t, filepath.Join(folder, "open"), "o")
	asOwner(t, s, run, func() {
		dir := mustFolder(t, s, run)
		must(t, dir.WriteFile("closed", []byte("c"), 0))
		chain(t, dir, "locked", 2, 0)
		chain(t, dir, "blind", 2, 0o400)
		wantErr(t, "file", second(read(s, run, "closed")), ErrFileRefused)
		wantErr(t, "directory", second(read(s, run, "locked/f")), ErrFileRefused)
		wantErr(t, "directory without search", second(read(s, run, "blind/f")), ErrFileRefused)
		got, err := s.List(run)
		must(t, err)
		// A file is listed by what can be known of it from outside.
		if len(got.Files) != 2 || got.More || got.Skipped != 2 {
			t.Errorf("%+v", got)
		}
	})
}

// The name of a run may lead to anything, where programs run unconfined.
func TestNoFolderToRead(t *testing.T) {
	s := mustOpen(t)
	out := makeOutside(t)
	other, folder := mustRun(t, s)
	mustWrite(t, filepath.Join(folder, "keep.txt"), "other")
	for what, make := range map[string]func(path string) error{
		"link out":  func(path string) error { return os.Symlink(out.dir, path) },
		"link":      func(path string) error { return os.Symlink(other.String(), path) },
		"fifo":      func(path string) error { return syscall.Mkfifo(path, 0o600) },
		"hard link": func(path string) error { return os.Link(out.file, path) },
	} {
		run := mustID(t)
		must(t, make(s.Path(run)))
		soon(t, what, func() {
			if text, err := read(s, run, "keep.txt"); !errors.Is(err, ErrFileRefused) && !errors.Is(err, ErrNoFile) {
				t.Errorf("%s: %q, %v", what, text, err)
			}
			if got, err := s.List(run); len(got.Files) != 0 || err != nil && !errors.Is(err, ErrFileRefused) {
				t.Errorf("%s: %+v, %v", what, got, err)
			}
		})
	}
}

// A lease would make whoever opens the file wait for its holder.
func TestLease(t *testing.T) {
	s := mustOpen(t)
	run, folder := mustRun(t, s)
	path := filepath.Join(folder, "leased")
	mustWrite(t, path, "x")
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	defer f.Close()
	if _, err := unix.FcntlInt(f.Fd(), unix.F_SETLEASE, unix.F_WRLCK); err != nil {
		t.Skipf("no leases here: %v", err)
	}
	soon(t, "opening", func() { _, err = read(s, run, "leased") })
	wantErr(t, "leased", err, ErrFileRefused)
}

func TestContentKeepsItsSize(t *testing.T) {
	s := mustOpen(t)
	run, folder := mustRun(t, s)
	path := filepath.Join(folder, "log")
	open := func() *Content {
		t.Helper()
		mustWrite(t, path, strings.Repeat("x", 1000))
		c, err := s.OpenFile(run, "log")
		must(t, err)
		t.Cleanup(func() { c.Close() })
		_, err = io.ReadFull(c, make([]byte, 600))
		must(t, err)
		return c
	}
	t.Run("growing", func(t *testing.T) {
		c := open()
		must(t, os.Truncate(path, 5000))
		rest, err := io.ReadAll(c)
		if len(rest) != 400 || err != nil {
			t.Errorf("%d bytes, %v", len(rest), err)
		}
	})
	t.Run("shrinking", func(t *testing.T) {
		c := open()
		must(t, os.Truncate(path, 700))
		rest, err := io.ReadAll(c)
		if len(rest) != 100 || !errors.Is(err, ErrCutShort) || !strings.Contains(err.Error(), "300 of 1000 bytes") {
			t.Errorf("%d bytes, %v", len(rest), err)
		}
	})
	t.Run("deleted", func(t *testing.T) {
		c := open()
		must(t, s.Discard(run))
		rest, err := io.ReadAll(c)
		if len(rest) != 400 || err != nil {
			t.Errorf("%d bytes, %v", len(rest), err)
		}
	})
	t.Run("closed", func(t *testing.T) {
		must(t, s.Ensure(run))
		c := open()
		must(t, c.Close())
		err := second(c.Read(make([]byte, 1)))
		wantErr(t, "reading", err, ErrCutShort)
		wantErr(t, "reading", err, fs.ErrClosed)
	})
}

// Programs set the time of a file as they like, and an API cannot write every
// year.
func TestModified(t *testing.T) {
	for given, want := range map[int64]int{0: 1970, math.MaxInt32: 2038, 1 << 40: 9999, 1 << 60: 9999, -1 << 40: 1, -1 << 60: 1} {
		got := modified(fakeTime{time.Unix(given, 999_999_999)})
		if got.Year() != want {
			t.Errorf("%d became %v", given, got)
		}
		if _, err := got.MarshalJSON(); err != nil {
			t.Error(err)
		}
	}
}

type fakeTime struct{ time.Time }

func (f fakeTime) ModTime() time.Time { return f.Time }
func (fakeTime) Name() string         { return "" }
func (fakeTime) Size() int64          { return 0 }
func (fakeTime) Mode() fs.FileMode    { return 0 }
func (fakeTime) IsDir() bool          { return false }
func (fakeTime) Sys() any             { return nil }
