package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"golang.org/x/sys/unix"
)

// owner is whom the files of a test are given to: for root somebody else.
func owner() int {
	if uid := os.Geteuid(); uid != 0 {
		return uid
	}
	return 65534
}

func TestWriteFile(t *testing.T) {
	s := mustOpen(t)
	run, folder := mustRun(t, s)
	for _, path := range odd {
		if strings.Count(path, "/") > maxLevels {
			continue
		}
		for _, content := range []string{"first", "", path} {
			must(t, s.WriteFile(run, path, []byte(content), owner()))
			if text, err := read(s, run, path); err != nil || text != content {
				t.Errorf("%q: %q, %v", path, text, err)
			}
		}
		for at := path; at != "."; at = filepath.Dir(at) {
			info, err := os.Lstat(filepath.Join(folder, at))
			must(t, err)
			want := fs.FileMode(0o600)
			if at != path {
				want = 0o700 | fs.ModeDir
			}
			if info.Mode() != want || int(stat(info).Uid) != owner() {
				t.Errorf("%q: mode %v of user %d", at, info.Mode(), stat(info).Uid)
			}
		}
	}
	wantNoRest(t, folder)
}

// wantNoRest checks that nothing is left of files that were being written.
func wantNoRest(t *testing.T, folder string) {
	t.Helper()
	rest, err := filepath.Glob(filepath.Join(folder, "*", tempPrefix+"*"))
	top, _ := filepath.Glob(filepath.Join(folder, tempPrefix+"*"))
	if err != nil || len(rest)+len(top) > 0 {
		t.Errorf("left behind: %q, %q, %v", top, rest, err)
	}
}

func TestWriteKeepsPermissions(t *testing.T) {
	s := mustOpen(t)
	run, folder := mustRun(t, s)
	full := filepath.Join(folder, "script")
	mustWrite(t, full, "old and longer")
	must(t, os.Chmod(full, 0o755|fs.ModeSetuid))
	must(t, s.WriteFile(run, "script", []byte("new"), owner()))
	wantContent(t, full, "new")
	wantMode(t, full, 0o755) // without the setuid bit
}

// Whoever has the old file open keeps it as it was.
func TestWriteReplacesAsAWhole(t *testing.T) {
	s := mustOpen(t)
	run, folder := mustRun(t, s)
	mustWrite(t, filepath.Join(folder, "f"), "old")
	c, err := s.OpenFile(run, "f")
	must(t, err)
	defer c.Close()
	must(t, s.WriteFile(run, "f", []byte("new"), owner()))
	buf := make([]byte, 3)
	if _, err := c.Read(buf); err != nil || string(buf) != "old" {
		t.Errorf("%q, %v", buf, err)
	}
}

func TestWriteRefused(t *testing.T) {
	s := mustOpen(t)
	out := makeOutside(t)
	run, folder := mustRun(t, s)
	paths := special(t, s, run, out)
	for path, why := range paths {
		soon(t, path, func() {
			err := s.WriteFile(run, path, []byte("attack"), owner())
			if !errors.Is(err, ErrFileRefused) || !strings.Contains(err.Error(), why) {
				t.Errorf("%s: %v, want %s", path, err, why)
			}
		})
	}
	wantErr(t, "below a file", s.WriteFile(run, "dir/file/x", nil, owner()), ErrFileRefused)
	wantContent(t, filepath.Join(folder, "dir/file"), "inside")
	wantContent(t, filepath.Join(folder, "twice"), "inside")
	out.wantUntouched(t)
	wantNoRest(t, folder)
	t.Logf("%d refused, 0 written", len(paths))
}

func TestWriteInvalidPaths(t *testing.T) {
	s := mustOpen(t)
	out := makeOutside(t)
	run, folder := mustRun(t, s)
	other, otherFolder := mustRun(t, s)
	for _, path := range []string{
		"", ".", "..", "/", "./a", "a/..", "a/", "a//b", "/a", "a/../../x", "../x", "../" + other.String() + "/x",
		out.file, filepath.Join(otherFolder, "x"), "/etc/passwd", "\x00", "a\x00b", "latin\xe9",
		strings.Repeat("n", 256), strings.Repeat("n", 256) + "/f", strings.Repeat("d/", maxLevels+1) + "f",
	} {
		wantErr(t, path, s.WriteFile(run, path, []byte("attack"), owner()), ErrInvalidPath)
	}
	wantErr(t, "no folder", s.WriteFile(mustID(t), "f", nil, owner()), ErrNoFile)
	wantNames(t, folder)
	wantNames(t, otherFolder)
	out.wantUntouched(t)
}

func TestWriteWithoutPermission(t *testing.T) {
	s := mustOpen(t)
	run, _ := mustRun(t, s)
	asOwner(t, s, run, func() {
		dir := mustFolder(t, s, run)
		must(t, dir.Mkdir("closed", 0o500))
		for _, path := range []string{"closed/f", "closed/d/f"} {
			wantErr(t, path, s.WriteFile(run, path, nil, owner()), ErrFileRefused)
		}
	})
}

// assault changes what a path in a run's folder is, again and again. The path is
// never absent for long enough that it could be made anew.
type assault struct {
	write string // what the server is asked for meanwhile
	turn  func() error
}

// planted makes something at spare and moves it to path.
func planted(spare, path string, make func(string) error) error {
	_ = os.Remove(spare)
	if err := make(spare); err != nil {
		return err
	}
	return os.Rename(spare, path)
}

// assaults returns the attacks on a folder, and what must stay a secret's.
func assaults(t *testing.T, s *Store, folder string) (all map[string]assault, secrets []string) {
	t.Helper()
	out := filepath.Join(filepath.Dir(s.path), "outside")
	_, other := mustRun(t, s)
	secrets = []string{out + "/file", other + "/file", folder + "/linked/file"}
	for _, path := range secrets {
		mustWrite(t, path, secret)
	}
	all = map[string]assault{}
	regular := func(path string) error { return os.WriteFile(path, []byte(good), 0o600) }
	link := func(target string) func(string) error {
		return func(path string) error { return os.Symlink(target, path) }
	}
	for name, rival := range map[string]func(string) error{
		"file-out": link(out + "/file"), "file-in": link("linked/file"), "file-other": link(other + "/file"),
		"file-hard": func(path string) error { return os.Link(out+"/file", path) },
		"file-fifo": func(path string) error { return syscall.Mkfifo(path, 0o600) },
	} {
		path, spare := filepath.Join(folder, name), filepath.Join(folder, name+"-spare")
		must(t, regular(path))
		all[name] = assault{write: name, turn: func() error {
			if err := planted(spare, path, rival); err != nil {
				return err
			}
			return planted(spare, path, regular)
		}}
	}
	for name, target := range map[string]string{"dir-out": out, "dir-in": "linked", "dir-up": "../" + filepath.Base(other)} {
		path, rival := filepath.Join(folder, name), filepath.Join(folder, name+"-rival")
		mustWrite(t, path+"/file", good)
		must(t, os.Symlink(target, rival))
		all[name] = assault{write: name + "/file", turn: func() error {
			return unix.Renameat2(unix.AT_FDCWD, path, unix.AT_FDCWD, rival, unix.RENAME_EXCHANGE)
		}}
	}
	return all, secrets
}

// run calls during while the attack goes on, until that returns.
func (a assault) run(t *testing.T, during func()) {
	t.Helper()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if err := a.turn(); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	defer func() {
		close(stop)
		<-stopped
	}()
	during()
}

func overwritten(t *testing.T, secrets []string) (lost int) {
	t.Helper()
	for _, path := range secrets {
		text, err := os.ReadFile(path)
		must(t, err)
		if string(text) != secret {
			lost++
			must(t, os.WriteFile(path, []byte(secret), 0o600))
		}
	}
	return lost
}

// A file is written again and again while a program puts other things in its
// place. What these lead to is never written to.
func TestWriteRaces(t *testing.T) {
	const wanted = 1500
	s := inMemory(t)
	run, folder := mustRun(t, s)
	all, secrets := assaults(t, s, folder)
	for name, a := range all {
		t.Run(name, func(t *testing.T) {
			tries, written, refused := 0, 0, 0
			a.run(t, func() {
				for begun := time.Now(); goOn(tries, wanted, begun, written > 0 && refused > 0); tries++ {
					switch err := s.WriteFile(run, a.write, []byte("attack"), os.Geteuid()); {
					case err == nil:
						written++
					case errors.Is(err, ErrFileRefused):
						refused++
					default:
						t.Errorf("try %d: %v", tries, err)
						return
					}
				}
			})
			if lost := overwritten(t, secrets); lost > 0 {
				t.Errorf("%d files were overwritten", lost)
			}
			if t.Logf("%d tries: %d written, %d refused, 0 outside", tries, written, refused); written == 0 || refused == 0 {
				t.Error("it was no race")
			}
		})
	}
	for _, path := range secrets {
		wantNames(t, filepath.Dir(path), "file") // nothing was added either
	}
	wantNoRest(t, folder)
}

// The same race is lost by who looks first and writes then.
func TestWriteRacesAreLostByTheNaive(t *testing.T) {
	s := inMemory(t)
	_, folder := mustRun(t, s)
	all, secrets := assaults(t, s, folder)
	for _, name := range []string{"file-out", "dir-out"} {
		t.Run(name, func(t *testing.T) {
			tries, lost := 0, 0
			all[name].run(t, func() {
				for deadline := time.Now().Add(time.Minute); lost == 0 && time.Now().Before(deadline); tries++ {
					naiveWrite(folder, all[name].write)
					lost += overwritten(t, secrets)
				}
			})
			if t.Logf("%d tries: %d outside", tries, lost); lost == 0 {
				t.Error("the race is none: nothing is overwritten")
			}
		})
	}
}

func naiveWrite(folder, path string) {
	full := filepath.Join(folder, path)
	resolved, err := filepath.EvalSymlinks(full)
	if err != nil || resolved != full {
		return
	}
	f, err := os.OpenFile(full, os.O_WRONLY|os.O_TRUNC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	_, _ = f.WriteString("attack")
	_ = f.Close()
}
