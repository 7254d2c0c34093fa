package workspace

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
)

// inMemory returns a store on a disk that is none, where many files are made
// and removed fast.
func inMemory(t *testing.T) *Store {
	t.Helper()
	parent, err := os.MkdirTemp("/dev/shm", "workspace") //nolint:usetesting // TempDir lies on the disk.
	if err != nil {
		parent = t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(parent) })
	s, err := Open(filepath.Join(parent, "workspaces"))
	must(t, err)
	t.Cleanup(func() { s.Close() })
	return s
}

func paths(l Listing) []string {
	var paths []string
	for _, f := range l.Files {
		paths = append(paths, f.Path)
	}
	return paths
}

func mustList(t *testing.T, s *Store, run uuid.UUID) (l Listing) {
	t.Helper()
	soon(t, "listing", func() {
		var err error
		if l, err = s.List(run); err != nil {
			t.Error(err)
		}
	})
	return l
}

func TestList(t *testing.T) {
	s := mustOpen(t)
	run, folder := mustRun(t, s)
	at := time.Date(2020, 2, 29, 12, 30, 15, 500, time.UTC)
	want := map[string]int64{}
	for _, path := range odd {
		if strings.Count(path, "/") > maxLevels {
			continue
		}
		mustWrite(t, filepath.Join(folder, path), path)
		must(t, os.Chtimes(filepath.Join(folder, path), time.Time{}, at))
		want[path] = int64(len(path))
	}
	must(t, os.MkdirAll(filepath.Join(folder, "empty/dirs"), 0o700))
	got := mustList(t, s, run)
	if got.More || got.Skipped != 0 || len(got.Files) != len(want) || !slices.IsSorted(paths(got)) {
		t.Errorf("%+v", got)
	}
	for _, f := range got.Files {
		if size, ok := want[f.Path]; !ok || f.Size != size || !f.Modified.Equal(at) || f.Modified.Location() != time.UTC {
			t.Errorf("%+v", f)
		}
		if text, err := read(s, run, f.Path); text != f.Path || err != nil {
			t.Errorf("%q cannot be had: %q, %v", f.Path, text, err)
		}
	}
}

func TestListOfNothing(t *testing.T) {
	s := mustOpen(t)
	empty, _ := mustRun(t, s)
	for _, run := range []uuid.UUID{empty, mustID(t)} {
		if got := mustList(t, s, run); len(got.Files) != 0 || got.More || got.Skipped != 0 {
			t.Errorf("%+v", got)
		}
	}
}

func TestListNamesThatAreNotUTF8(t *testing.T) {
	s := mustOpen(t)
	run, folder := mustRun(t, s)
	for _, name := range []string{"latin\xe9", "caf\xe9s/\xff\xfe.txt"} {
		mustWrite(t, filepath.Join(folder, name), "x")
	}
	want := []string{"caf\ufffds/\ufffd.txt", "latin\ufffd"}
	if diff := cmp.Diff(want, paths(mustList(t, s, run))); diff != "" {
		t.Error(diff)
	}
	wantErr(t, "as listed", second(read(s, run, want[1])), ErrNoFile)
}

// A listing has what can be downloaded, and counts the rest.
func TestListSkips(t *testing.T) {
	s := mustOpen(t)
	run, _ := mustRun(t, s)
	refused := special(t, s, run, makeOutside(t))
	got := mustList(t, s, run)
	if diff := cmp.Diff([]string{"dir/file", "locked/file", "unreadable"}, paths(got)); diff != "" || got.More {
		t.Error(diff)
	}
	want := 0
	for path, why := range refused {
		if leaf := path == "dir/hard-in" || !strings.Contains(path, "/"); leaf && why != "is a directory" {
			want++
		}
	}
	if got.Skipped != want {
		t.Errorf("%d skipped, want %d", got.Skipped, want)
	}
}

func TestListBounds(t *testing.T) {
	for name, c := range map[string]struct {
		plant       func(t *testing.T, dir *os.Root)
		least, most int
		more        bool
	}{
		"as many files as may be": {func(t *testing.T, dir *os.Root) {
			files(t, dir, maxFiles)
		}, maxFiles, maxFiles, false},
		"one more": {func(t *testing.T, dir *os.Root) {
			files(t, dir, maxFiles+1)
		}, maxFiles, maxFiles, true},
		"as deep as may be": {func(t *testing.T, dir *os.Root) {
			nested(t, dir, maxLevels)
		}, 1, 1, false},
		"one level more": {func(t *testing.T, dir *os.Root) {
			nested(t, dir, maxLevels+1)
		}, 0, 0, true},
		// Each path has some 16,000 bytes.
		"long paths": {func(t *testing.T, dir *os.Root) {
			files(t, nested(t, dir, maxLevels-1, strings.Repeat("n", 250)), 1000)
		}, 150, 300, true},
		"more directories than are walked": {func(t *testing.T, dir *os.Root) {
			deep := nested(t, dir, maxLevels-1)
			for i := range 2000 {
				must(t, deep.Mkdir("d"+strconv.Itoa(i), 0o700))
				must(t, deep.WriteFile("d"+strconv.Itoa(i)+"/f", nil, 0o600))
			}
		}, 1200, 1700, true},
		"nothing but links": {func(t *testing.T, dir *os.Root) {
			for i := range 2000 {
				must(t, dir.Symlink("nowhere", "l"+strconv.Itoa(i)))
			}
		}, 0, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := inMemory(t)
			run, _ := mustRun(t, s)
			c.plant(t, mustFolder(t, s, run))
			if got := mustList(t, s, run); len(got.Files) < c.least || len(got.Files) > c.most || got.More != c.more {
				t.Errorf("%d files, more %v, %d skipped", len(got.Files), got.More, got.Skipped)
			}
		})
	}
}

func files(t *testing.T, dir *os.Root, n int) {
	t.Helper()
	for i := range n {
		f, err := dir.Create("f" + strconv.Itoa(i))
		must(t, err)
		must(t, f.Close())
	}
}

// nested makes directories one in the other, puts a file into the last one and
// returns that.
func nested(t *testing.T, dir *os.Root, levels int, name ...string) *os.Root {
	t.Helper()
	name = append(name, "d")
	for range levels {
		must(t, dir.Mkdir(name[0], 0o700))
		next, err := dir.OpenRoot(name[0])
		must(t, err)
		t.Cleanup(func() { next.Close() })
		dir = next
	}
	files(t, dir, 1)
	return dir
}

// What lies near the folder is not crowded out by what lies below.
func TestListBeginsWithTheNearest(t *testing.T) {
	s := inMemory(t)
	run, folder := mustRun(t, s)
	dir := mustFolder(t, s, run)
	must(t, dir.Mkdir("a", 0o700))
	must(t, dir.Mkdir("a/a", 0o700))
	crowd, err := dir.OpenRoot("a/a")
	must(t, err)
	defer crowd.Close()
	files(t, crowd, maxFiles+1)
	mustWrite(t, filepath.Join(folder, "z/result"), "r")
	mustWrite(t, filepath.Join(folder, "result"), "r")
	got := paths(mustList(t, s, run))
	if !slices.Contains(got, "result") || !slices.Contains(got, "z/result") || len(got) != maxFiles {
		t.Errorf("%d files, the last %q", len(got), got[len(got)-2:])
	}
}

func TestListDeep(t *testing.T) {
	s := inMemory(t)
	run, folder := mustRun(t, s)
	dir := mustFolder(t, s, run)
	chain(t, dir, "d", 5000, 0o700)
	mustWrite(t, filepath.Join(folder, "near"), "n")
	got := mustList(t, s, run)
	want := []string{"d/f", strings.Repeat("d/", 51) + "f", "near"}
	slices.Sort(want)
	if diff := cmp.Diff(want, paths(got)); diff != "" || !got.More {
		t.Errorf("more %v: %s", got.More, diff)
	}
	soon(t, "opening the deepest file", func() {
		if text, err := read(s, run, strings.Repeat("d/", 4951)+"f"); text != "" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	})
	must(t, s.Discard(run))
	wantNames(t, s.path)
}

// A file of 10 GB takes no time to list, and no memory to read.
func TestHugeFile(t *testing.T) {
	s := mustOpen(t)
	run, folder := mustRun(t, s)
	const size, part = 10 << 30, 256 << 20
	path := filepath.Join(folder, "huge")
	mustWrite(t, path, "begin")
	must(t, os.Truncate(path, size))
	if got := mustList(t, s, run); len(got.Files) != 1 || got.Files[0].Size != size {
		t.Errorf("%+v", got)
	}
	c, err := s.OpenFile(run, "huge")
	must(t, err)
	defer c.Close()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n, err := io.CopyN(io.Discard, c, part)
	runtime.ReadMemStats(&after)
	if n != part || err != nil || c.Size != size {
		t.Errorf("read %d of %d bytes, %v", n, c.Size, err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("%d bytes of memory for %d of the file", used, n)
	}
}

// withDescriptors runs fn when the process can open only n files more.
func withDescriptors(t *testing.T, n int, fn func()) {
	t.Helper()
	var old syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old))
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 256, Max: old.Max}))
	defer func() { must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old)) }()
	var taken []*os.File
	defer func() {
		for _, f := range taken {
			f.Close()
		}
	}()
	for {
		f, err := os.Open("/dev/null")
		if err != nil {
			wantErr(t, "opening many files", err, syscall.EMFILE)
			break
		}
		taken = append(taken, f)
	}
	for range n {
		must(t, taken[len(taken)-1].Close())
		taken = taken[:len(taken)-1]
	}
	fn()
}

// A listing holds a bounded number of descriptors, however deep it goes.
func TestListDescriptors(t *testing.T) {
	s := mustOpen(t)
	run, folder := mustRun(t, s)
	mustWrite(t, filepath.Join(folder, strings.Repeat("d/", maxLevels)+"f"), "x")
	withDescriptors(t, 6, func() {
		if got, err := s.List(run); len(got.Files) != 1 || err != nil {
			t.Errorf("%+v, %v", got, err)
		}
		if text, err := read(s, run, strings.Repeat("d/", maxLevels)+"f"); text != "x" || err != nil {
			t.Errorf("%q, %v", text, err)
		}
	})
	// What fails for want of descriptors is an error, and no short listing.
	withDescriptors(t, 1, func() {
		if got, err := s.List(run); err == nil {
			t.Errorf("%+v without an error", got)
		}
	})
}
