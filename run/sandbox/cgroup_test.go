package sandbox

import (
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"agentrun/internal/needs"
	"agentrun/run/sandbox/sandboxtest"
)

// newGroups returns what makes control groups here, for a data directory of the
// test's own.
func newGroups(t *testing.T, data string) *groups {
	t.Helper()
	g, err := openGroups(data)
	if err != nil {
		needs.Lacking(t, "a control group (cgroup v2) that can be written to: "+err.Error())
	}
	return g
}

func members(path string) []string {
	text, _ := os.ReadFile(filepath.Join(path, "cgroup.procs"))
	return strings.Fields(string(text))
}

// A command begins in a group of its own, which goes with it.
func TestCommandHasItsGroup(t *testing.T) {
	for _, level := range []Level{Full, Landlock} {
		s := newSetting(t, level, 0)
		c := newConfined(level, s.data)
		c.groups = newGroups(t, s.data)
		read, write := io.Pipe()
		done := make(chan error, 1)
		go func() {
			o := s.script("(setsid sleep 600 &); echo begun; exec sleep 600")
			exit, err := c.Run(context.WithoutCancel(t.Context()), Command{
				Args: o.Args, Dir: o.Dir, Env: o.Env, Stdin: strings.NewReader(""), Stdout: write, Stderr: io.Discard,
			})
			if err == nil && exit.Signal == "" {
				t.Errorf("%s: ended with %+v", level, exit)
			}
			_ = write.Close()
			done <- err
		}()
		if _, err := read.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		group := filepath.Join(c.groups.dir, c.groups.name+"1")
		// The first process, the shell and its child at least.
		if n := len(members(group)); n < 3 {
			t.Errorf("%s: %d processes are in the group", level, n)
		}
		if err := os.WriteFile(filepath.Join(group, "cgroup.kill"), []byte("1"), 0); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(group); !os.IsNotExist(err) {
			t.Errorf("%s: the group is still there: %v", level, err)
		}
	}
}

// What an earlier server left in a group is ended by the next one of the same
// data directory, and by no other.
func TestGroupsOfTheLastLife(t *testing.T) {
	data := t.TempDir()
	group, err := newGroups(t, data).open(Limits{})
	if err != nil {
		t.Fatal(err)
	}
	left := &exec.Cmd{Path: "/bin/sleep", Args: []string{"sleep", "600"}, SysProcAttr: &syscall.SysProcAttr{}}
	group.take(left.SysProcAttr)
	if err := left.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		_ = left.Wait()
		close(ended)
	}()
	newGroups(t, t.TempDir())
	if !slices.Contains(members(group.path), strconv.Itoa(left.Process.Pid)) {
		t.Fatal("another data directory's server ended it, or it never began")
	}
	newGroups(t, data)
	sandboxtest.Wait(t, ended, "the end of what was left")
}

// The limits of a group count for a command as a whole, however many processes
// share it out among them.
func TestGroupLimits(t *testing.T) {
	g := newGroups(t, t.TempDir())
	if len(g.controllers) < 2 {
		t.Skipf("left out: cgroup v2 lacks the controllers memory and pids here; .ci/cgroup runs this on a kernel that has them")
	}
	run := func(l Limits, script string) (Exit, string) {
		group, err := g.open(l)
		if err != nil {
			t.Fatal(err)
		}
		sh := exec.CommandContext(t.Context(), "sh", "-c", script)
		sh.SysProcAttr = &syscall.SysProcAttr{}
		group.take(sh.SysProcAttr)
		out, _ := sh.CombinedOutput() // How it ended is in the state.
		exit := exitOf(sh.ProcessState)
		if err := group.close(&exit); err != nil {
			t.Error(err)
		}
		return exit, string(out)
	}
	const two = `fill() { head -c 60M /dev/zero | tail -c 60M > /dev/null; }; fill & fill & wait; echo all`
	if exit, out := run(Limits{Memory: 80 << 20}, two); exit != (Exit{Code: -1, Signal: "SIGKILL", Reached: MemoryLimit}) || out != "" {
		t.Errorf("memory: %+v, %q", exit, out)
	}
	if exit, out := run(Limits{Memory: 200 << 20}, two); exit != (Exit{}) || out != "all\n" {
		t.Errorf("enough memory: %+v, %q", exit, out)
	}
	const many = `i=0; while [ $i -lt 60 ]; do sleep 600 > /dev/null 2>&1 & i=$((i+1)); done; echo all`
	if exit, out := run(Limits{Processes: 20}, many); exit.Code == 0 || !strings.Contains(out, "fork") {
		t.Errorf("processes: %+v, %q", exit, out)
	}
	if exit, out := run(Limits{Processes: 100}, many); exit != (Exit{}) || out != "all\n" {
		t.Errorf("enough processes: %+v, %q", exit, out)
	}
}
