package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/google/uuid"
)

// asOwner runs f as one whom permissions stop. For root that is another user,
// to whom the store and the run's folder are given: filesystem IDs belong to a
// thread on Linux, and with them go root's powers over files.
func asOwner(t *testing.T, s *Store, run uuid.UUID, f func()) {
	t.Helper()
	if os.Geteuid() != 0 {
		f()
		return
	}
	const nobody = 65534
	must(t, s.root.Chown(".", nobody, -1))
	must(t, s.root.Chown(run.String(), nobody, -1))
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	must(t, syscall.Setfsuid(nobody))
	defer syscall.Setfsuid(0)
	f()
}

func mustFolder(t *testing.T, s *Store, run uuid.UUID) *os.Root {
	t.Helper()
	root, err := s.root.OpenRoot(run.String())
	must(t, err)
	t.Cleanup(func() { root.Close() })
	return root
}

// chain makes one directory in the other, with the given mode, and closes all
// of them. The first has a file, and so has each 50th after it: an inode more
// in every one would double the time of a test for nothing.
func chain(t *testing.T, dir *os.Root, name string, depth int, mode fs.FileMode) {
	t.Helper()
	cur := dir
	for i := range depth {
		must(t, cur.Mkdir(name, 0o700))
		next, err := cur.OpenRoot(name)
		must(t, err)
		if i%50 == 0 {
			must(t, next.WriteFile("f", nil, 0o400))
		}
		if cur != dir {
			must(t, cur.Chmod(".", mode))
			must(t, cur.Close())
		}
		cur = next
	}
	must(t, cur.Chmod(".", mode))
	must(t, cur.Close())
	must(t, dir.Chmod(name, mode))
}

func TestDiscard(t *testing.T) {
	s := mustOpen(t)
	run, other := mustID(t), mustID(t)
	must(t, s.Ensure(other))
	d := mustDeliver(t, s, run)
	mustAdd(t, d, "a", "a")
	must(t, d.Commit())
	must(t, s.Discard(run))
	wantNames(t, s.path, other.String())
	must(t, s.Discard(run))
	must(t, s.Discard(mustID(t)))
	must(t, mustDeliver(t, s, run).Commit())
}

// hostile are trees that a program could leave behind.
var hostile = map[string]func(t *testing.T, dir *os.Root){
	"deep and locked": func(t *testing.T, dir *os.Root) {
		chain(t, dir, "read-only", 70, 0o500)
		chain(t, dir, "closed", 70, 0)
	},
	"deep with long names": func(t *testing.T, dir *os.Root) {
		chain(t, dir, strings.Repeat("n", 255), 80, 0o700)
	},
	"branching below the depth": func(t *testing.T, dir *os.Root) {
		chain(t, dir, "d", maxDepth, 0o700)
		deep, err := dir.OpenRoot(strings.TrimSuffix(strings.Repeat("d/", maxDepth), "/"))
		must(t, err)
		defer deep.Close()
		for i := range 10 {
			chain(t, deep, strconv.Itoa(i), 3, 0o500)
		}
	},
	"wide": func(t *testing.T, dir *os.Root) {
		for i := range readBatch + 1 {
			must(t, dir.WriteFile("f"+strconv.Itoa(i), nil, 0o600))
		}
		for i := range 20 {
			chain(t, dir, "d"+strconv.Itoa(i), 1, 0o700)
		}
	},
	"modes": func(t *testing.T, dir *os.Root) {
		for _, mode := range []fs.FileMode{0, 0o100, 0o200, 0o300, 0o400, 0o500, 0o600, 0o700, 0o777 | fs.ModeSticky | fs.ModeSetgid} {
			name := "m" + mode.String()
			chain(t, dir, name, 3, mode)
			must(t, dir.Mkdir("empty"+name, 0o700))
			must(t, dir.Chmod("empty"+name, mode))
		}
	},
	"the folder itself read-only": func(t *testing.T, dir *os.Root) {
		chain(t, dir, "d", 2, 0o500)
		must(t, dir.Chmod(".", 0o500))
	},
	"the folder itself closed": func(t *testing.T, dir *os.Root) {
		chain(t, dir, "d", 2, 0)
		must(t, dir.Chmod(".", 0))
	},
	"names": func(t *testing.T, dir *os.Root) {
		for _, name := range []string{
			strings.Repeat("n", 255), "...", "-rf", " ", "*", "a\nb", `a\b`, "\xff\xfe", "\u202e", ".new", ".orphans", ".hidden",
		} {
			must(t, dir.WriteFile(name, nil, 0))
			chain(t, dir, "d"+name[:min(len(name), 254)], 1, 0o700)
		}
	},
}

func TestDiscardHostile(t *testing.T) {
	for name, plant := range hostile {
		t.Run(name, func(t *testing.T) {
			s := mustOpen(t)
			run := mustID(t)
			must(t, s.Ensure(run))
			asOwner(t, s, run, func() {
				plant(t, mustFolder(t, s, run))
				must(t, s.Discard(run))
			})
			wantNames(t, s.path)
		})
	}
}

// The permissions of the trees above do stop their owner, root included.
func TestPermissionsStopAnOwner(t *testing.T) {
	s := mustOpen(t)
	run := mustID(t)
	must(t, s.Ensure(run))
	asOwner(t, s, run, func() {
		chain(t, mustFolder(t, s, run), "d", 3, 0o500)
		wantErr(t, "plain removal", s.root.RemoveAll(run.String()), fs.ErrPermission)
		must(t, s.Discard(run))
	})
	wantNames(t, s.path)
}

// A tree of 5,000 levels lies in memory where that is to be had: ext4 passes
// over each inode that was deleted in the last seconds, one by one, and would
// make every run of the test after the first many times slower.
func TestDiscardDeep(t *testing.T) {
	parent, err := os.MkdirTemp("/dev/shm", "workspace") //nolint:usetesting // TempDir lies on the disk.
	if err != nil {
		parent = t.TempDir()
	}
	defer os.RemoveAll(parent)
	s, err := Open(filepath.Join(parent, "workspaces"))
	must(t, err)
	defer s.Close()
	run := mustID(t)
	must(t, s.Ensure(run))
	asOwner(t, s, run, func() {
		chain(t, mustFolder(t, s, run), "d", 5000, 0o500)
		must(t, s.Discard(run))
	})
	wantNames(t, s.path)
}

// Nothing outside is touched, and nothing that a program left is opened: a
// FIFO would never let go.
func TestDiscardFollowsNothing(t *testing.T) {
	s := mustOpen(t)
	out := makeOutside(t)
	run, other := mustID(t), mustID(t)
	plant(t, s, other.String())
	plant(t, s, run.String()+"/dir/dir")
	dir := filepath.Join(s.Path(run), "dir")
	for name, target := range map[string]string{
		"file": out.file, "folder": out.dir, "up": "..", "self": ".", "loop": "loop", "nowhere": "absent",
		"root": "/", "neighbour": "../../" + other.String(), "proc": "/proc/self/root",
	} {
		must(t, os.Symlink(target, filepath.Join(dir, name)))
	}
	must(t, os.Link(out.file, filepath.Join(dir, "hard")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	must(t, syscall.Mknod(filepath.Join(dir, "socket"), syscall.S_IFSOCK|0o600, 0))

	must(t, s.Discard(run))
	wantNames(t, s.path, other.String())
	wantContent(t, filepath.Join(s.Path(other), "a"), other.String())
	out.wantUntouched(t)
}

func TestDiscardOfNoFolder(t *testing.T) {
	s := mustOpen(t)
	out := makeOutside(t)
	for _, target := range []string{out.dir, out.file, "absent"} {
		run := mustID(t)
		must(t, os.Symlink(target, s.Path(run)))
		must(t, s.Discard(run))
		must(t, os.Symlink(target, s.Path(run)+".gone"))
		must(t, s.Ensure(run))
		must(t, s.Discard(run))
	}
	wantNames(t, s.path)
	out.wantUntouched(t)
}

func TestDiscardFinishesAnEarlierOne(t *testing.T) {
	s := mustOpen(t)
	run := mustID(t)
	plant(t, s, run.String()+".gone/d")
	plant(t, s, run.String()+"/d")
	must(t, s.Discard(run))
	wantNames(t, s.path)
	plant(t, s, run.String()+".gone/d")
	must(t, s.Discard(run))
	wantNames(t, s.path)
}

// A process has a limited number of descriptors, which a deep tree must not
// use up. The limit is shown to be one that bites.
func TestDiscardDescriptors(t *testing.T) {
	s := mustOpen(t)
	run := mustID(t)
	must(t, s.Ensure(run))
	chain(t, mustFolder(t, s, run), "d", 120, 0o700)

	var old syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old))
	must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 128, Max: old.Max}))
	defer func() { must(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old)) }()
	wantErr(t, "recursion", os.RemoveAll(s.Path(run)), syscall.EMFILE)
	must(t, s.Discard(run))
	wantNames(t, s.path)
}

func TestDiscardAtOnce(t *testing.T) {
	s := mustOpen(t)
	run := mustID(t)
	must(t, s.Ensure(run))
	dir := mustFolder(t, s, run)
	chain(t, dir, "deep", 100, 0o700)
	for i := range 20 {
		chain(t, dir, "d"+strconv.Itoa(i), 3, 0o700)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := s.Discard(run); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	wantNames(t, s.path)
}

// A delivery or an orphan may be as hostile as any folder.
func TestHostileFolderElsewhere(t *testing.T) {
	s := mustOpen(t)
	run := mustID(t)
	must(t, s.Ensure(run))
	asOwner(t, s, run, func() {
		dir := mustFolder(t, s, run)
		chain(t, dir, "d", 50, 0o500)
		must(t, dir.Chmod(".", 0o500))
		got, err := s.Recover(knows())
		must(t, err)
		if len(got.Orphaned) != 1 || got.Orphaned[0].Run != run {
			t.Fatalf("%+v", got)
		}
		must(t, s.root.Rename(".orphans/"+run.String(), run.String()+".new"))
		_, err = s.Recover(knows())
		must(t, err)
	})
	wantNames(t, s.path, ".orphans")
	wantNames(t, filepath.Join(s.path, ".orphans"))
}
