package sandbox

import (
	"bytes"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"

	"github.com/go-faster/errors"
	"golang.org/x/sys/unix"
)

// The level landlock does without namespaces. Its first process is not confined
// itself: it watches the command and all that comes of it, which cannot signal
// it, and ends them. A second process confines itself and becomes the command.

// adopt makes this process the one that inherits whatever of the command loses
// its parent, and the user that the command runs as.
func (c *child) adopt() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return errors.Wrap(err, "subreaper")
	}
	// A link would make another directory the one that may be written.
	if info, err := os.Lstat(c.spec.Dir); err != nil {
		return errors.Wrap(err, "workspace")
	} else if !info.IsDir() {
		return errors.Errorf("workspace: %s is no directory", c.spec.Dir)
	}
	// While it still may: the way there can be closed to the command's user.
	if err := unix.Chdir(c.spec.Dir); err != nil {
		return errors.Wrap(err, "workspace")
	}
	if os.Geteuid() == c.spec.UID {
		return nil
	}
	return become(&c.spec)
}

// forkConfined starts the process that becomes the command, and returns once it
// has.
func (c *child) forkConfined() (int, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, errors.Wrap(err, "control")
	}
	ours := os.NewFile(uintptr(pair[0]), "control")
	defer ours.Close()
	pid, err := syscall.ForkExec("/proc/self/exe", []string{becomeName}, &syscall.ProcAttr{
		Env: []string{}, Files: []uintptr{0, 1, 2, uintptr(pair[1])}, Sys: &syscall.SysProcAttr{Setsid: true},
	})
	_ = unix.Close(pair[1])
	if err != nil {
		return 0, errors.Wrap(err, "second process")
	}
	if err := send(ours, c.spec); err != nil {
		return 0, errors.Wrap(err, "second process")
	}
	var failed report
	switch err := receiveMessage(ours, &failed); {
	case errors.Is(err, io.EOF):
		return pid, nil // Its end of the socket closed as it became the command.
	case err != nil:
		return 0, errors.Wrap(err, "second process")
	case failed.NotStarted != "":
		return 0, errNotStarted{errors.New(failed.NotStarted)}
	default:
		return 0, errors.New(failed.Broken)
	}
}

// becomeCommand confines this process and makes it the command.
func becomeCommand(control *os.File) int {
	// Some of what is taken is taken from a thread, which then becomes the command.
	runtime.LockOSThread()
	unix.CloseOnExec(controlFD)
	var s spec
	if err := receiveMessage(control, &s); err != nil {
		return exitOrphaned
	}
	files, err := s.fallbackFiles()
	if err == nil {
		err = s.restrict(false, files...)
	}
	if err == nil {
		err = s.exec()
	}
	_ = send(control, reportOf(err))
	return exitBroken
}

func (s *spec) exec() error {
	program, err := lookPath(s.Args[0], s.Dir)
	if err == nil {
		err = syscall.Exec(program, s.Args, s.Env)
		err = errors.Wrap(err, s.Args[0])
	}
	return errNotStarted{err}
}

// processInformation are files of /proc that tell of no process.
var processInformation = []string{
	"/proc/cpuinfo", "/proc/filesystems", "/proc/loadavg", "/proc/meminfo", "/proc/stat", "/proc/uptime", "/proc/version",
}

// fallbackFiles are the files that the command may reach, and make where it has
// to: files for a while go into its workspace, since /tmp is everybody's.
func (s *spec) fallbackFiles() ([]grant, error) {
	tmp := s.Dir + "/.tmp"
	if err := os.Mkdir(tmp, 0o700); err != nil && !os.IsExist(err) {
		return nil, errors.Wrap(err, "workspace")
	}
	for i, v := range s.Env {
		if strings.HasPrefix(v, "TMPDIR=") {
			s.Env[i] = "TMPDIR=" + tmp
		}
	}
	return []grant{
		{readTree, systemDirs}, {readTree, configuration}, {readTree, s.Read}, {readTree, processInformation},
		{readFile | writeFile | device, devices},
		{readTree | writeTree, []string{s.Dir}},
	}, nil
}

// endDescendants ends all that came of this process, and returns when nothing
// is left.
func endDescendants() {
	for {
		left := descendants()
		for _, pid := range left {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		for {
			pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
			if pid <= 0 || err != nil {
				break
			}
		}
		if len(left) == 0 {
			return
		}
	}
}

// descendants are the processes that come from this one, zombies left out. What
// lost its parent is a child of this one.
func descendants() []int {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	parents := map[int]int{}
	alive := map[int]bool{}
	for _, n := range names {
		if pid, parent, state := processState(n.Name()); pid != 0 {
			parents[pid], alive[pid] = parent, state != 'Z' && state != 'X'
		}
	}
	self := os.Getpid()
	var found []int
	for pid := range parents {
		for p := parents[pid]; p != 0 && alive[pid]; p = parents[p] {
			if p == self {
				found = append(found, pid)
				break
			}
		}
	}
	return found
}

// processState reads a process's number, its parent's and its state; zero when
// there is no such process any more.
func processState(name string) (pid, parent int, state byte) {
	pid = decimal([]byte(name))
	if pid == 0 {
		return 0, 0, 0
	}
	stat, err := os.ReadFile("/proc/" + name + "/stat")
	if err != nil {
		return 0, 0, 0
	}
	// "PID (NAME) STATE PARENT …", where NAME may hold anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 2 {
		return 0, 0, 0
	}
	return pid, decimal(fields[1]), fields[0][0]
}

func decimal(text []byte) int {
	n := 0
	for _, b := range text {
		if b < '0' || b > '9' {
			return 0
		}
		n = n*10 + int(b-'0')
	}
	return n
}
