package sandbox

import (
	"cmp"
	"context"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-faster/errors"
	"golang.org/x/sys/unix"
)

// drainDelay is how long output is still waited for after the process and its
// group are gone: a process that left the group may hold the pipe for ever.
const drainDelay = 250 * time.Millisecond

// Plain runs each command in a process group of its own and confines nothing.
// What leaves its group (setsid) is not ended with it.
type Plain struct {
	// grace and drain stand for StopGrace and drainDelay; zero means these.
	grace, drain time.Duration
}

var _ Runner = Plain{}

// Level returns "off".
func (Plain) Level() string { return string(Off) }

// Owner returns the server's own user.
func (Plain) Owner() int { return os.Geteuid() }

// Run implements Runner.
func (p Plain) Run(ctx context.Context, cmd Command) (Exit, error) {
	type result struct {
		exit Exit
		err  error
	}
	done := make(chan result, 1)
	go func() {
		// The parent-death signal is tied to the thread that forks, so this
		// thread has to live as long as the process does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		exit, err := p.runGroup(ctx, cmd)
		done <- result{exit, err}
	}()
	r := <-done
	return r.exit, r.err
}

func (p Plain) runGroup(ctx context.Context, cmd Command) (Exit, error) {
	program, err := lookPath(cmd.Args[0], cmd.Dir)
	if err != nil {
		return Exit{}, err
	}
	streams, err := openPipes()
	if err != nil {
		return Exit{}, errors.Wrap(err, cmd.Args[0])
	}
	// What this process inherited, from a shell or a supervisor, is not the
	// command's. Kernels before 5.11 refuse, and leave such files open.
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	c := &exec.Cmd{
		Path: program, Args: cmd.Args, Dir: cmd.Dir,
		// Never nil, which would mean the server's own environment.
		Env:   append([]string{}, cmd.Env...),
		Stdin: streams.theirs[0], Stdout: streams.theirs[1], Stderr: streams.theirs[2],
		SysProcAttr: &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL},
	}
	err = c.Start()
	streams.closeTheirs()
	if err != nil {
		streams.finish(0)
		return Exit{}, notStarted(cmd.Args[0], err)
	}
	streams.copy(cmd)
	g := group(c.Process.Pid)
	stopped, err := g.supervise(ctx, cmp.Or(p.grace, StopGrace))
	if waitErr := c.Wait(); err == nil && c.ProcessState == nil {
		err = waitErr
	}
	g.awaitGone()
	streams.finish(cmp.Or(p.drain, drainDelay))
	if err != nil {
		return Exit{}, errors.Wrapf(err, "%s: wait", cmd.Args[0])
	}
	exit := exitOf(c.ProcessState)
	exit.Stopped = stopped
	return exit, nil
}

// notStarted tells a program that cannot be started from a machine that can
// start none.
func notStarted(program string, err error) error {
	for _, fault := range []error{unix.EAGAIN, unix.ENOMEM, unix.EMFILE, unix.ENFILE} {
		if errors.Is(err, fault) {
			return errors.Wrap(err, program)
		}
	}
	if cause := errors.Unwrap(err); cause != nil {
		err = cause // without the system call's name, which says nothing here
	}
	return errors.Wrapf(ErrNotStarted, "%s: %v", program, err)
}

func exitOf(state *os.ProcessState) Exit {
	status, ok := state.Sys().(syscall.WaitStatus)
	if !ok {
		return Exit{Code: state.ExitCode()}
	}
	return exitOfStatus(status)
}

func exitOfStatus(status syscall.WaitStatus) Exit {
	if !status.Signaled() {
		return Exit{Code: status.ExitStatus()}
	}
	name := unix.SignalName(status.Signal())
	if name == "" { // a real-time signal
		name = strconv.Itoa(int(status.Signal()))
	}
	return Exit{Code: -1, Signal: name}
}

// lookPath finds a program as the command itself would, which is why the
// server's own PATH does not count.
func lookPath(name, dir string) (string, error) {
	if strings.ContainsRune(name, '/') {
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		return name, nil
	}
	for _, folder := range filepath.SplitList(Path) {
		path := filepath.Join(folder, name)
		info, err := os.Stat(path)
		if err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0 {
			return path, nil
		}
	}
	return "", errors.Wrapf(ErrNotStarted, "%s: no such program in %s", name, Path)
}
