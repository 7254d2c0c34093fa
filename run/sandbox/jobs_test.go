package sandbox

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"agentrun/internal/needs"
)

// job is everyday work of a command, and what it says when all is well.
type job struct {
	name string
	// programs are needed beyond a shell and its usual tools.
	programs []string
	// spare jobs are done where their programs are; the others have to be done
	// everywhere.
	spare bool
	// long jobs take more seconds than a test of every day may.
	long   bool
	script string
	stdout string
	// full says why the job may need the level full. Those with no such reason
	// have to work at the level landlock too.
	full string
}

// jobPatience bounds a job, on a machine with much else to do.
const jobPatience = 2 * time.Minute

// mostShown is how much of a failed job's output is shown, in bytes.
const mostShown = 1000

// leastJobs is how many jobs have to be done everywhere.
const leastJobs = 40

// longTests is true when everything is tested that there is, as before a release.
func longTests() bool { return os.Getenv("AGENTRUN_TEST") == "full" }

// Whatever an agent may be asked to do on a workstation has to work in the
// sandbox as well: one that is too tight is one that gets switched off.
func TestJobs(t *testing.T) {
	everywhere := 0
	for _, j := range jobs() {
		if !j.spare && !j.long {
			everywhere++
		}
	}
	if everywhere < leastJobs {
		t.Errorf("only %d jobs are done everywhere, not %d", everywhere, leastJobs)
	}
	eitherSetting(t, func(t *testing.T, s *setting) {
		var l jobList
		t.Run("all", func(t *testing.T) {
			for _, j := range jobs() {
				t.Run(j.name, func(t *testing.T) {
					t.Parallel()
					l.do(t, s, j)
				})
			}
		})
		for _, line := range l.lacking {
			t.Log("does not work: " + line)
		}
		t.Logf("%d of %d", l.done, l.tried)
	})
}

// jobList is what became of jobs.
type jobList struct {
	mu          sync.Mutex
	tried, done int
	lacking     []string
}

// do does a job in a workspace of its own.
func (l *jobList) do(t *testing.T, s *setting, j job) {
	if j.long && !longTests() {
		t.Skip("with AGENTRUN_TEST=full only")
	}
	own := newSetting(t, s.level, s.uid)
	o, ok := own.job(j)
	if !ok {
		t.Skip("a spare job without its programs")
	}
	r := own.run(o)
	works := r.Err == "" && r.Exit == Exit{} && r.Stdout == j.stdout
	l.mu.Lock()
	defer l.mu.Unlock()
	l.tried++
	switch {
	case works:
		l.done++
	case s.level == Landlock && j.full != "":
		l.lacking = append(l.lacking, j.name+": "+j.full)
	default:
		r.Stdout, r.Stderr = r.Stdout[:min(len(r.Stdout), mostShown)], r.Stderr[:min(len(r.Stderr), mostShown)]
		t.Errorf("got %+v, want %q; outside the sandbox it %s", r, j.stdout, j.outside(t, s.uid))
	}
}

// outside says what becomes of the job without a sandbox, which tells a broken
// job from one that is forbidden.
func (j job) outside(t *testing.T, uid int) string {
	own := newSetting(t, Off, uid)
	o, _ := own.job(j)
	if r := own.run(o); (r.Exit != Exit{} || r.Stdout != j.stdout) {
		return "fails too"
	}
	return "works"
}

// job orders a job. Its programs have to be there, unless it is a spare one.
func (s *setting) job(j job) (o order, ok bool) {
	s.t.Helper()
	o = s.script("set -e\n" + j.script)
	o.Stop = jobPatience
	path := []string{Path}
	for _, program := range j.programs {
		folder, read := programFolder(program)
		switch {
		case folder == "" && j.spare:
			return o, false
		case folder == "":
			needs.Lacking(s.t, program+" is missing where every user can reach it: install it")
		}
		if !slices.Contains(filepath.SplitList(Path), folder) {
			path = append(path, folder)
		}
		if read != "" && !slices.Contains(o.Read, read) {
			o.Read = append(o.Read, read)
		}
	}
	o.Env[0] = "PATH=" + strings.Join(path, ":")
	return o, true
}

// programFolder is where commands find a program, and what they have to be
// allowed to read for it. Programs that are some user's own are none.
func programFolder(name string) (folder, read string) {
	for _, folder := range append(filepath.SplitList(Path), "/usr/local/go/bin") {
		if info, err := os.Stat(filepath.Join(folder, name)); err == nil && info.Mode()&0o111 != 0 {
			return folder, ""
		}
	}
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.EvalSymlinks(path)
	}
	if err != nil || filepath.Base(path) != name {
		return "", "" // Many names of one program are a starter of tools elsewhere.
	}
	for dir := filepath.Dir(path); dir != "/"; dir = filepath.Dir(dir) {
		if info, err := os.Stat(dir); err != nil || info.Mode().Perm()&0o005 != 0o005 {
			return "", ""
		}
	}
	return filepath.Dir(path), filepath.Dir(filepath.Dir(path))
}
