package sandbox

import (
	"context"
	"net"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/go-faster/errors"
	"golang.org/x/sys/unix"
)

// What the binary is called when it is the first process of a sandbox, and when
// it is the one that becomes the command where there are no namespaces.
const (
	childName  = "agentrun-sandbox"
	becomeName = "agentrun-command"
)

// controlFD is the socket to the server in the first process.
const controlFD = 3

// ProxyAddress is where a command finds the way out that its Command allows.
const ProxyAddress = "127.0.0.1:3128"

// A program that links this package is the first process of a sandbox when it is
// started as one. It becomes that as soon as it can: what else is linked takes
// longer to get ready than the sandbox.
func init() {
	if len(os.Args) != 1 {
		return
	}
	switch os.Args[0] {
	case childName:
		// The parent-death signal and the user are those of a thread.
		runtime.LockOSThread()
		c := &child{control: os.NewFile(controlFD, "control")}
		exitNow(c.run())
	case probeName:
		exitNow(exitReported)
	case becomeName:
		exitNow(becomeCommand(os.NewFile(controlFD, "control")))
	}
}

// exitNow ends the process without what a Go program does at its end.
func exitNow(code int) { syscall.Exit(code) }

// child is the first process of a sandbox: it builds the sandbox around itself,
// starts the command in it, and sees to its end and to that of all it started.
type child struct {
	control *os.File
	spec    spec
	command int // process ID

	terminate, ended chan os.Signal
	orphaned         chan struct{}
}

// reportOf tells what the agent's owner did wrong from what we did.
func reportOf(err error) report {
	var theirs errNotStarted
	if errors.As(err, &theirs) {
		return report{NotStarted: err.Error()}
	}
	return report{Broken: err.Error()}
}

// The exit codes of the first process; those of the command go in a report.
const (
	exitReported = 0
	exitOrphaned = 125 // The server has gone.
	exitBroken   = 126 // Nothing ran.
)

func (c *child) run() int {
	unix.CloseOnExec(controlFD)
	if err := receiveMessage(c.control, &c.spec); err != nil {
		return exitOrphaned
	}
	// Asked to end before there is a command, it ends.
	c.terminate, c.ended, c.orphaned = make(chan os.Signal, 1), make(chan os.Signal, 1), make(chan struct{})
	signal.Notify(c.terminate, unix.SIGTERM)
	signal.Notify(c.ended, unix.SIGCHLD)
	go c.watch()
	if err := c.confine(); err != nil {
		_ = send(c.control, report{Broken: err.Error()})
		return exitBroken
	}
	if err := c.start(); err != nil {
		_ = send(c.control, reportOf(err))
		return exitBroken
	}
	status, err := c.attend()
	if err != nil {
		_ = send(c.control, report{Broken: "wait: " + err.Error()})
		return exitBroken
	}
	c.endAll()
	_ = send(c.control, report{Status: uint32(status)})
	return exitReported
}

// watch sees to the end of everything when the server has gone, or wants it.
func (c *child) watch() {
	buf := make([]byte, 1)
	for {
		if _, err := c.control.Read(buf); err == nil {
			continue
		}
		if c.spec.Level == Full {
			exitNow(exitOrphaned) // A PID namespace ends with its first process.
		}
		close(c.orphaned)
		return
	}
}

// confine builds the sandbox around this process.
func (c *child) confine() error {
	s := &c.spec
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	if s.Level != Full {
		return c.adopt()
	}
	files, err := c.namespaces()
	if err != nil {
		return err
	}
	return s.restrict(true, files...)
}

// restrict takes from this process, and what it starts, whatever the command
// is not to have.
func (s *spec) restrict(sockets bool, files ...grant) error {
	if err := s.Limits.set(); err != nil {
		return err
	}
	if err := giveUpRights(); err != nil {
		return err
	}
	if err := confineFiles(files...); err != nil {
		return err
	}
	return confineCalls(sockets)
}

// namespaces makes the root, the network and the name of the sandbox.
func (c *child) namespaces() ([]grant, error) {
	s := &c.spec
	r, err := takeRoot(s)
	if errors.Is(err, unix.EPERM) {
		err = errors.Wrap(err, "no right to mount in a new user namespace")
	}
	if err != nil {
		return nil, err
	}
	if err := r.begin(); err != nil {
		return nil, err
	}
	if err := become(s); err != nil {
		return nil, err
	}
	// The change of the user took it away: die with the server's thread.
	if err := unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0); err != nil {
		return nil, errors.Wrap(err, "parent-death signal")
	}
	if err := r.enter(); err != nil {
		return nil, err
	}
	if err := unix.Sethostname([]byte("agentrun")); err != nil {
		return nil, errors.Wrap(err, "hostname")
	}
	if err := loopbackUp(); err != nil {
		return nil, err
	}
	if s.Proxy {
		if err := c.handOverListener(); err != nil {
			return nil, errors.Wrap(err, "proxy")
		}
	}
	return []grant{
		{readTree, []string{"/"}},
		{readTree | writeTree, []string{s.Dir, "/tmp", "/dev/shm", "/proc"}},
		{readTree | writeTree | device, []string{"/dev"}},
	}, nil
}

// loopbackUp brings the network's only interface up.
func loopbackUp() error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return errors.Wrap(err, "loopback")
	}
	defer unix.Close(fd)
	ifr, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	ifr.SetUint16(unix.IFF_UP)
	if err := unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, ifr); err != nil {
		return errors.Wrap(err, "loopback")
	}
	return nil
}

// handOverListener gives the server a socket that listens on the command's own
// loopback. A socket belongs to the network in which it was made, whoever
// accepts its connections.
func (c *child) handOverListener() error {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp4", ProxyAddress)
	if err != nil {
		return err
	}
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		return err
	}
	err = unix.Sendmsg(controlFD, []byte{0}, unix.UnixRights(int(f.Fd())), nil, 0)
	_ = f.Close()
	_ = l.Close()
	return err
}

// errNotStarted is what the owner of the agent did wrong.
type errNotStarted struct{ error }

// start starts the command, in a session of its own.
func (c *child) start() (err error) {
	if c.spec.Level == Full {
		c.command, err = c.fork()
	} else {
		c.command, err = c.forkConfined()
	}
	// The pipes are the command's alone: their other ends see it end.
	for fd := range 3 {
		_ = unix.Close(fd)
	}
	return err
}

func (c *child) fork() (int, error) {
	program, err := lookPath(c.spec.Args[0], c.spec.Dir)
	if err != nil {
		return 0, errNotStarted{err}
	}
	// The last thing of all, since what is left for this process to do has to do
	// with it too: threads that begin take memory.
	if err := c.spec.Limits.setMemory(); err != nil {
		return 0, err
	}
	pid, err := syscall.ForkExec(program, c.spec.Args, &syscall.ProcAttr{
		Dir: c.spec.Dir, Env: c.spec.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	if err != nil {
		return 0, errNotStarted{errors.Wrap(err, c.spec.Args[0])}
	}
	return pid, nil
}

// attend waits until the command has ended, and does meanwhile what it is told.
// It signals from this thread only: at the level landlock it is this one that
// can signal nobody else.
func (c *child) attend() (syscall.WaitStatus, error) {
	orphaned := c.orphaned
	for {
		if status, ended, err := c.reap(); ended || err != nil {
			return status, err
		}
		select {
		case <-c.ended:
		case <-c.terminate:
			c.signalAll(unix.SIGTERM)
			// A stopped process acts on a signal only once it goes on.
			c.signalAll(unix.SIGCONT)
		case <-orphaned:
			c.signalAll(unix.SIGKILL)
			orphaned = nil
		}
	}
}

// reap takes leave of what has ended, and says whether the command has.
func (c *child) reap() (status syscall.WaitStatus, ended bool, err error) {
	for {
		pid, err := syscall.Wait4(-1, &status, unix.WNOHANG, nil)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil || pid == 0:
			return 0, false, err
		case pid == c.command:
			return status, true, nil
		}
	}
}

// signalAll signals the command and all that came of it: whatever this process
// may signal but itself. That is everything in its PID namespace, or in its
// Landlock domain. The kernel lets no process fork meanwhile that gets the
// signal, so that none is missed.
func (c *child) signalAll(sig unix.Signal) { _ = unix.Kill(-1, sig) }

// endAll ends the command and all that came of it, and returns when nothing is
// left. A PID namespace ends with its first process, by itself.
func (c *child) endAll() {
	for c.spec.Level != Full {
		c.signalAll(unix.SIGKILL)
		// Whatever comes of this process has an ancestor that is its child.
		if _, err := syscall.Wait4(-1, nil, 0, nil); errors.Is(err, unix.ECHILD) {
			return
		}
	}
}
