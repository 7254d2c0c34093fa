package workspace

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
)

const (
	good   = "good" // what the program's own file holds
	secret = "secret"
)

// race is a name in a run's folder that a program keeps changing: what lies at
// path and what lies at rival take each other's place without a pause.
type race struct {
	path, rival string // below the run's folder
	read        string // what the server is asked for meanwhile
}

// races returns the races in the folder, prepared. What the secret is lies
// outside, in another run's folder, or in the same folder behind a link.
func races(t *testing.T, s *Store, folder string) map[string]race {
	t.Helper()
	out := filepath.Dir(s.path) + "/outside" // on the same disk, for the hard link
	mustWrite(t, filepath.Join(out, "file"), secret)
	_, other := mustRun(t, s)
	mustWrite(t, filepath.Join(other, "file"), secret)
	mustWrite(t, filepath.Join(folder, "linked/file"), secret)
	for name, target := range map[string]string{
		"file-out": out + "/file", "file-in": "linked/file", "file-other": other + "/file", "file-proc": "/proc/self/environ",
		"dir-out": out, "dir-in": "linked", "dir-up": "../" + filepath.Base(other),
	} {
		must(t, os.Symlink(target, filepath.Join(folder, name)))
	}
	must(t, os.Link(out+"/file", filepath.Join(folder, "file-hard")))
	must(t, syscall.Mkfifo(filepath.Join(folder, "file-fifo"), 0o600))
	must(t, syscall.Mkfifo(filepath.Join(folder, "dir-fifo"), 0o600))
	must(t, syscall.Mknod(filepath.Join(folder, "file-socket"), syscall.S_IFSOCK|0o600, 0))
	mustWrite(t, filepath.Join(folder, "file-dir/file"), secret)
	found := map[string]race{}
	for _, rival := range []string{"file-out", "file-in", "file-other", "file-proc", "file-hard", "file-fifo", "file-socket", "file-dir"} {
		path := "good-" + rival
		mustWrite(t, filepath.Join(folder, path), good)
		found[rival] = race{path, rival, path}
	}
	for _, rival := range []string{"dir-out", "dir-in", "dir-up", "dir-fifo"} {
		path := "good-" + rival
		mustWrite(t, filepath.Join(folder, path, "file"), good)
		found[rival] = race{path, rival, path + "/file"}
	}
	return found
}

// run calls during while the two change places, until that returns.
func (r race) run(t *testing.T, folder string, during func()) {
	t.Helper()
	path, rival, spare := filepath.Join(folder, r.path), filepath.Join(folder, r.rival), filepath.Join(folder, r.path+"-spare")
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			for _, step := range [][2]string{{path, spare}, {rival, path}, {spare, rival}} {
				if err := syscall.Rename(step[0], step[1]); err != nil {
					t.Error(err)
					return
				}
			}
		}
	}()
	defer func() {
		close(stop)
		<-stopped
	}()
	during()
}

// goOn says whether a race has another try: as many as wanted, and more while it
// went one way only, as it does where the machine does not let the other side
// run. After a minute it was no race.
func goOn(tries, wanted int, begun time.Time, bothWays bool) bool {
	return tries < wanted || !bothWays && time.Since(begun) < time.Minute
}

// A file is read again and again while a program puts other things in its
// place. Either its own content comes back or none.
func TestReadRaces(t *testing.T) {
	s := inMemory(t)
	run, folder := mustRun(t, s)
	for name, r := range races(t, s, folder) {
		t.Run(name, func(t *testing.T) {
			wanted := 4000
			if slices.Contains(naiveLoses, name) {
				wanted = 20_000
			}
			tries, reads, refused, absent := 0, 0, 0, 0
			r.run(t, folder, func() {
				for begun := time.Now(); goOn(tries, wanted, begun, reads > 0 && refused > 0); tries++ {
					switch text, err := read(s, run, r.read); {
					case err == nil && text == good:
						reads++
					case err == nil:
						t.Errorf("try %d: %q was read", tries, text)
						return
					case errors.Is(err, ErrFileRefused):
						refused++
					case errors.Is(err, ErrNoFile):
						absent++
					default:
						t.Errorf("try %d: %v", tries, err)
						return
					}
				}
			})
			t.Logf("%d tries: %d read, %d refused, %d absent, 0 leaks", tries, reads, refused, absent)
			if reads == 0 || refused == 0 {
				t.Error("it was no race")
			}
		})
	}
}

// naiveLoses are the races that need no more than a careless server.
var naiveLoses = []string{"file-out", "dir-out"}

// The same race is lost by who resolves the path first and opens it then.
func TestReadRacesAreLostByTheNaive(t *testing.T) {
	s := inMemory(t)
	_, folder := mustRun(t, s)
	all := races(t, s, folder)
	for _, name := range naiveLoses {
		t.Run(name, func(t *testing.T) {
			tries, leaks := 0, 0
			all[name].run(t, folder, func() {
				for deadline := time.Now().Add(time.Minute); tries < 4000 || leaks == 0 && time.Now().Before(deadline); tries++ {
					if text, err := naiveRead(folder, all[name].read); err == nil && text == secret {
						leaks++
					}
				}
			})
			if t.Logf("%d tries: %d leaks", tries, leaks); leaks == 0 {
				t.Error("the race is none: it leaks to nobody")
			}
		})
	}
}

func naiveRead(folder, path string) (string, error) {
	full := filepath.Join(folder, path)
	resolved, err := filepath.EvalSymlinks(full)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(resolved, folder+"/") {
		return "", os.ErrPermission
	}
	f, err := os.OpenFile(full, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	return string(text), err
}

// A listing never leaves the folder, and does not wait, whatever a directory
// is exchanged with while it is walked.
func TestListRaces(t *testing.T) {
	const tries = 500
	s := inMemory(t)
	run, folder := mustRun(t, s)
	all := races(t, s, folder)
	for _, name := range []string{"dir-out", "dir-in", "dir-up", "dir-fifo", "file-out", "file-dir", "file-hard"} {
		t.Run(name, func(t *testing.T) {
			// Everything of these names is the program's own.
			own := map[string]bool{}
			for _, f := range mustList(t, s, run).Files {
				own[f.Path] = true
			}
			r := all[name]
			for _, path := range []string{r.read, r.path + "-spare", r.rival, r.path + "-spare/file", r.rival + "/file", r.path + "/file"} {
				own[path] = true
			}
			r.run(t, folder, func() {
				for range tries {
					got, err := s.List(run)
					if err != nil || got.More {
						t.Errorf("more %v, %v", got.More, err)
						return
					}
					for _, f := range got.Files {
						behind := f.Size == int64(len(secret)) && strings.HasPrefix(f.Path, r.path+"/") && name != "file-dir"
						if !own[f.Path] || behind {
							t.Errorf("%q of %d bytes is listed", f.Path, f.Size)
							return
						}
					}
				}
			})
		})
	}
}

// The folder itself may be exchanged, where programs run unconfined.
func TestFolderRace(t *testing.T) {
	const wanted = 4000
	s := inMemory(t)
	other, otherFolder := mustRun(t, s)
	mustWrite(t, filepath.Join(otherFolder, "file"), secret)
	run, folder := mustRun(t, s)
	mustWrite(t, filepath.Join(folder, "file"), good)
	must(t, os.Symlink(other.String(), filepath.Join(s.path, "link")))
	tries, reads, refused := 0, 0, 0
	race{path: run.String(), rival: "link"}.run(t, s.path, func() {
		for begun := time.Now(); goOn(tries, wanted, begun, reads > 0 && refused > 0); tries++ {
			text, err := read(s, run, "file")
			list, listErr := s.List(run)
			if text == secret || listErr == nil && len(list.Files) > 0 && list.Files[0].Size != int64(len(good)) {
				t.Errorf("%q was read, %+v listed", text, list)
				return
			}
			if err == nil {
				reads++
			} else {
				refused++
			}
		}
	})
	if reads == 0 || refused == 0 {
		t.Errorf("%d reads, %d refused: it was no race", reads, refused)
	}
	t.Logf("%d tries: %d read, %d refused, 0 leaks", tries, reads, refused)
}

// Readers and listers at once, in a folder that goes away under them.
func TestReadWhileDiscarded(t *testing.T) {
	s := inMemory(t)
	for range 50 {
		run, folder := mustRun(t, s)
		for _, name := range []string{"a", "b/c", "b/d/e"} {
			mustWrite(t, filepath.Join(folder, name), good)
		}
		done := make(chan struct{})
		go func() {
			defer close(done)
			readUntilGone(t, s, run)
		}()
		must(t, s.Discard(run))
		<-done
	}
}

func readUntilGone(t *testing.T, s *Store, run uuid.UUID) {
	for {
		text, err := read(s, run, "b/d/e")
		if err == nil && text != good || err != nil && !errors.Is(err, ErrNoFile) && !errors.Is(err, ErrFileRefused) {
			t.Errorf("%q, %v", text, err)
		}
		got, err := s.List(run)
		if err != nil {
			t.Errorf("%v", err)
		}
		if len(got.Files) == 0 {
			return
		}
	}
}
