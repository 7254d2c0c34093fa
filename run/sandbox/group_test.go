package sandbox

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentrun/run/sandbox/sandboxtest"
)

// shortGrace is for programs that do not react to SIGTERM.
const shortGrace = 50 * time.Millisecond

// A shell that catches SIGTERM lets its child tell that both are ready: a child
// that is not a program yet could take the signal for the shell's.
func TestStop(t *testing.T) {
	for _, row := range []struct {
		name    string
		script  string // tells its process ID first
		grace   time.Duration
		suspend bool // it stops itself then
		want    Exit
		stdout  string
	}{
		{
			name: "ends by SIGTERM", script: "echo out; echo $$ > $MEET; exec sleep 600",
			want: Exit{Code: -1, Signal: "SIGTERM", Stopped: true}, stdout: "out\n",
		},
		{
			name: "cleans up and exits 0", script: "trap 'echo bye; exit 0' TERM; sh -c 'echo $PPID > $MEET; exec sleep 600' & wait",
			want: Exit{Stopped: true}, stdout: "bye\n",
		},
		{
			name: "cleans up and exits 7", script: "trap 'exit 7' TERM; sh -c 'echo $PPID > $MEET; exec sleep 600' & wait",
			want: Exit{Code: 7, Stopped: true},
		},
		{
			name: "ignores SIGTERM", script: "trap '' TERM; echo $$ > $MEET; sleep 600", grace: shortGrace,
			want: Exit{Code: -1, Signal: "SIGKILL", Stopped: true},
		},
		{
			name: "stopped itself", script: "echo $$ > $MEET; kill -STOP $$; echo on", suspend: true,
			want: Exit{Code: -1, Signal: "SIGTERM", Stopped: true},
		},
		{
			name:   "stops itself again and again",
			script: "trap '' TERM; echo $$ > $MEET; while :; do kill -STOP $$; done", suspend: true, grace: shortGrace,
			want: Exit{Code: -1, Signal: "SIGKILL", Stopped: true},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, meet, _ := start(t, Plain{grace: row.grace}, row.script)
			pid := meet.PID()
			if row.suspend {
				awaitState(t, pid, unix.WSTOPPED)
			}
			r.cancel()
			got := r.wait()
			if got.exit != row.want || got.stdout != row.stdout {
				t.Errorf("got %+v, want %+v and %q", got, row.want, row.stdout)
			}
			if sandboxtest.Alive(pid) {
				t.Error("it is still alive")
			}
		})
	}
}

// awaitState waits until a child of this process has ended (WEXITED) or has
// stopped itself (WSTOPPED), and leaves it as it is.
func awaitState(t *testing.T, pid, state int) {
	t.Helper()
	reached := make(chan struct{})
	go func() {
		defer close(reached)
		for unix.Waitid(unix.P_PID, pid, nil, state|unix.WNOWAIT, nil) == unix.EINTR {
		}
	}()
	sandboxtest.Wait(t, reached, "the program's change of state")
}

func TestStopBeforeTheStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := runIn(ctx, Plain{}, t.TempDir(), Command{Args: []string{"sleep", "600"}})
	if want := (Exit{Code: -1, Signal: "SIGTERM", Stopped: true}); r.err != nil || r.exit != want {
		t.Errorf("got %+v, want %+v", r, want)
	}
}

func TestEndIsNoStop(t *testing.T) {
	r, meet, goOn := start(t, Plain{}, "echo $$ > $MEET; read x < $GO; echo out")
	meet.PID()
	goOn.Release()
	got := r.wait()
	r.cancel()
	if got.exit != (Exit{}) || got.stdout != "out\n" {
		t.Errorf("got %+v", got)
	}
}

// A program's own children are ended with it, so that one that holds standard
// output holds nothing.
func TestChildEndsWithTheProgram(t *testing.T) {
	r, meet, goOn := start(t, Plain{}, `sh -c 'trap "" TERM HUP; echo $$ > $MEET; while :; do sleep 600; done' & read x < $GO; echo out`)
	child := meet.PID()
	if !sandboxtest.Alive(child) {
		t.Fatal("the child does not live")
	}
	goOn.Release()
	if got := r.wait(); got.stdout != "out\n" || got.exit != (Exit{}) {
		t.Errorf("got %+v", got)
	}
	if sandboxtest.Alive(child) {
		t.Error("the child is still alive")
	}
}

// A shell ends by SIGTERM at once; what it started has its time all the same.
func TestChildHasItsGrace(t *testing.T) {
	const steps = 100
	r, meet, goOn := start(t, Plain{}, `echo $$ > $MEET
		sh -c 'cleanup() {
				while read step < $GO && [ $step != enough ]; do echo $step > $MEET; done
				: > cleaned
				exit
			}
			trap cleanup TERM
			sh -c "echo \$PPID > \$MEET; exec sleep 600" &
			wait'
		echo not reached`)
	leader, child := meet.PID(), meet.PID()
	r.cancel()
	awaitState(t, leader, unix.WEXITED)
	for i := range steps {
		goOn.Tell(strconv.Itoa(i))
		if got := meet.Line(); got != strconv.Itoa(i) {
			t.Fatalf("step %d: %s", i, got)
		}
	}
	goOn.Tell("enough")
	got := r.wait()
	if want := (Exit{Code: -1, Signal: "SIGTERM", Stopped: true}); got.exit != want || got.stdout != "" {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, err := os.Stat(filepath.Join(r.dir, "cleaned")); err != nil {
		t.Error("the child was killed before it was ready:", err)
	}
	if sandboxtest.Alive(child) {
		t.Error("the child is still alive")
	}
}

func TestChildThatIgnoresTheStopIsKilled(t *testing.T) {
	r, meet, _ := start(t, Plain{grace: shortGrace}, `sh -c 'trap "" TERM; echo $$ > $MEET; while :; do sleep 600; done'; echo not reached`)
	child := meet.PID()
	r.cancel()
	if got, want := r.wait().exit, (Exit{Code: -1, Signal: "SIGTERM", Stopped: true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if sandboxtest.Alive(child) {
		t.Error("the child is still alive")
	}
}

func TestGroupAlive(t *testing.T) {
	c := exec.Command("sh", "-c", "read x")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	g := group(c.Process.Pid)
	if !g.alive() {
		t.Error("a process that waits is not alive")
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := g.awaitLeader(); err != nil {
		t.Fatal(err)
	}
	if g.alive() {
		t.Error("a zombie is alive")
	}
	_ = c.Wait()
	if g.alive() {
		t.Error("what was waited for is alive")
	}
}
