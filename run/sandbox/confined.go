package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"math"
	"net"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"github.com/go-faster/errors"
	"golang.org/x/sys/unix"
)

// insideID is the user and the group of a command within its own namespaces.
const insideID = 1000

// endPatience bounds the wait for a first process that was asked to end all.
const endPatience = 2 * time.Second

// Confined runs each command in a sandbox of its own, at one level.
type Confined struct {
	level Level
	// owner is the user of the host that commands run as.
	owner int
	// hide is the data directory.
	hide  string
	grace time.Duration
	// groups makes control groups; nil where there can be none.
	groups *groups
}

var _ Runner = (*Confined)(nil)

// Level returns the level.
func (c *Confined) Level() string { return string(c.level) }

// Owner returns the user of the host that commands run as; the group has the
// same number when the server is privileged.
func (c *Confined) Owner() int { return c.owner }

// Run implements Runner.
func (c *Confined) Run(ctx context.Context, cmd Command) (Exit, error) {
	type result struct {
		exit Exit
		err  error
	}
	done := make(chan result, 1)
	go func() {
		// The parent-death signal is tied to the thread that forks, so this
		// thread has to live as long as the sandbox does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		exit, err := c.run(ctx, cmd)
		done <- result{exit, err}
	}()
	r := <-done
	return r.exit, r.err
}

func (c *Confined) run(ctx context.Context, cmd Command) (Exit, error) {
	if cmd.Proxy != nil && c.level != Full {
		return Exit{}, errors.Wrapf(ErrNotStarted, "%s: the agent file allows network hosts, and only the sandbox level full has a network for them", cmd.Args[0])
	}
	streams, err := openPipes()
	if err != nil {
		return Exit{}, errors.Wrapf(err, "sandbox (%s)", c.level)
	}
	group, err := c.groups.open(cmd.Limits)
	var exit Exit
	if err == nil {
		exit, err = c.runIn(ctx, cmd, group, streams)
		if closeErr := group.close(&exit); err == nil {
			err = closeErr
		}
	}
	streams.closeTheirs()
	streams.finish(drainDelay)
	if err != nil {
		return Exit{}, errors.Wrapf(err, "sandbox (%s)", c.level)
	}
	return exit, nil
}

func (c *Confined) runIn(ctx context.Context, cmd Command, group *commandGroup, streams *pipes) (Exit, error) {
	first, control, err := c.begin(group, streams)
	streams.closeTheirs()
	if err != nil {
		return Exit{}, err
	}
	defer control.Close()
	streams.copy(cmd)
	return c.supervise(ctx, cmd, first, control)
}

// begin starts the first process and returns the server's end of the socket
// between the two.
func (c *Confined) begin(group *commandGroup, streams *pipes) (*exec.Cmd, *net.UnixConn, error) {
	// Whoever opens /dev/stdout opens the pipe anew, by its owner's rights.
	for _, f := range streams.theirs {
		if os.Geteuid() != 0 {
			break
		}
		if err := f.Chown(c.owner, c.owner); err != nil {
			return nil, nil, err
		}
	}
	control, theirs, err := controlPair()
	if err != nil {
		return nil, nil, err
	}
	defer theirs.Close()
	// What this process inherited, from a shell or a supervisor, is not the
	// command's. Kernels before 5.11 refuse, and leave such files open.
	_ = unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC)
	first := c.firstProcess(streams, theirs)
	group.take(first.SysProcAttr)
	if err := first.Start(); err != nil {
		_ = control.Close()
		return nil, nil, c.whyNoProcess(err)
	}
	return first, control, nil
}

// controlPair returns the two ends of the socket between the server and the
// first process. It is the first process's life line: when the server goes, it
// closes.
func controlPair() (ours *net.UnixConn, theirs *os.File, err error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, err
	}
	f := os.NewFile(uintptr(pair[0]), "control")
	defer f.Close()
	theirs = os.NewFile(uintptr(pair[1]), "control")
	conn, err := net.FileConn(f)
	if err != nil {
		_ = theirs.Close()
		return nil, nil, err
	}
	return conn.(*net.UnixConn), theirs, nil
}

// frugal is the environment of our own processes in a sandbox. One that waits
// for most of its life needs no second processor and no garbage collection.
var frugal = []string{"GOMAXPROCS=1", "GOGC=off"}

func (c *Confined) firstProcess(streams *pipes, control *os.File) *exec.Cmd {
	first := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{childName}, Dir: "/",
		Env:   frugal,
		Stdin: streams.theirs[0], Stdout: streams.theirs[1], Stderr: streams.theirs[2],
		ExtraFiles:  []*os.File{control},
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if c.level == Full {
		attr := first.SysProcAttr
		attr.Pdeathsig = syscall.SIGKILL
		attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: insideID, HostID: c.owner, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: insideID, HostID: c.ownerGroup(), Size: 1}}
		attr.GidMappingsEnableSetgroups = os.Geteuid() == 0
		attr.AmbientCaps = setupRights
	}
	return first
}

// whyNoProcess says what the host lacks when the first process could not be
// started: the error of the kernel alone names nothing.
func (c *Confined) whyNoProcess(err error) error {
	switch {
	case c.level != Full:
		return err
	case errors.Is(err, unix.ENOSPC):
		return errors.Wrap(err, "user namespaces: a limit is reached, see sysctl user")
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS):
		return errors.Wrap(err, "user namespaces")
	default:
		return err
	}
}

func (c *Confined) ownerGroup() int {
	if os.Geteuid() == 0 {
		return c.owner
	}
	return os.Getegid()
}

func (c *Confined) spec(cmd Command) spec {
	s := spec{
		Level: c.level, UID: insideID, GID: insideID, DropGroups: os.Geteuid() == 0, Args: cmd.Args, Env: cmd.Env, Dir: cmd.Dir,
		Limits: cmd.Limits, Read: cmd.Read, Hide: c.hide, Proxy: cmd.Proxy != nil,
	}
	if c.level != Full {
		s.UID, s.GID = c.owner, c.ownerGroup()
	}
	return s
}

// supervise sees the sandbox to its end. Everything in it is gone when the
// first process was waited for.
func (c *Confined) supervise(ctx context.Context, cmd Command, first *exec.Cmd, control *net.UnixConn) (Exit, error) {
	reported := make(chan *report, 1)
	go func() { reported <- c.converse(cmd, control) }()
	ended := make(chan struct{})
	stopped := make(chan bool, 1)
	go func() { stopped <- c.stopWith(ctx, ended, first.Process, control) }()
	_ = first.Wait() // How it ended says the report.
	close(ended)
	wasStopped := <-stopped
	_ = control.SetReadDeadline(time.Now().Add(time.Second))
	r := <-reported
	if r == nil {
		r = reportFor(first.ProcessState, wasStopped)
	}
	switch {
	case r.NotStarted != "":
		return Exit{}, errors.Wrap(ErrNotStarted, r.NotStarted)
	case r.Broken != "":
		return Exit{}, errors.New(r.Broken)
	}
	exit := exitOfStatus(syscall.WaitStatus(r.Status))
	exit.Stopped = wasStopped
	return exit, nil
}

// reportFor stands for the report of a first process that ended without one.
// It was killed, and everything with it; anything else it has done wrong.
func reportFor(first *os.ProcessState, stopped bool) *report {
	status := first.Sys().(syscall.WaitStatus)
	if status.Signal() == unix.SIGKILL || stopped && status.ExitStatus() == exitOrphaned {
		return &report{Status: uint32(unix.SIGKILL)}
	}
	return &report{Broken: "the first process ended with " + first.String()}
}

// converse tells the first process what to do and returns what it reports, nil
// when it ended without a word.
func (c *Confined) converse(cmd Command, control *net.UnixConn) *report {
	if err := send(control, c.spec(cmd)); err != nil {
		return nil
	}
	rest := io.Reader(control)
	if cmd.Proxy != nil {
		l, head, err := receiveListener(control)
		if err != nil {
			return nil
		}
		if l != nil {
			cmd.Proxy(l)
		} else {
			rest = io.MultiReader(bytes.NewReader(head), control)
		}
	}
	var r report
	if err := receiveMessage(rest, &r); err != nil {
		return nil
	}
	return &r
}

// receiveListener receives the socket that listens in the sandbox; instead of
// one it can be the head of a report of why there is none.
func receiveListener(control *net.UnixConn) (l net.Listener, head []byte, err error) {
	head, rights := make([]byte, 1), make([]byte, unix.CmsgSpace(4))
	length, n, _, _, err := control.ReadMsgUnix(head, rights)
	if err != nil || n == 0 {
		return nil, head[:max(length, 0)], err
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil {
		return nil, nil, err
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, nil, err
	}
	f := os.NewFile(uintptr(fds[0]), "proxy")
	defer f.Close()
	l, err = net.FileListener(f)
	return l, nil, err
}

// stopWith stops the sandbox when ctx ends before its command does, and says
// whether it did.
func (c *Confined) stopWith(ctx context.Context, ended <-chan struct{}, first *os.Process, control *net.UnixConn) bool {
	select {
	case <-ended:
		return false
	case <-ctx.Done():
	}
	select {
	case <-ended:
		return false
	default:
	}
	_ = first.Signal(unix.SIGTERM)
	if wait(ended, cmp.Or(c.grace, StopGrace)) {
		return true
	}
	// Its end of the life line: at the level landlock it has to end the others
	// before itself, and then can.
	_ = control.CloseWrite()
	if c.level != Full && wait(ended, endPatience) {
		return true
	}
	_ = first.Kill()
	return true
}

func wait(ended <-chan struct{}, most time.Duration) bool {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ended:
		return true
	case <-timer.C:
		return false
	}
}
