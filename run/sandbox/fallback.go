package sandbox

import (
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"github.com/go-faster/errors"
	"golang.org/x/sys/unix"
)

// The level landlock does without namespaces. Its first process watches the
// command and all that comes of it, and ends them. It is confined itself in one
// thing only: it can signal nobody else. A second process confines itself once
// more, so that it cannot signal the first one, and becomes the command.

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
	if os.Geteuid() != c.spec.UID {
		if err := become(&c.spec); err != nil {
			return err
		}
	}
	return confineSignals()
}

// confineSignals leaves this thread nobody to signal but what is started from
// it. All of that can then be signalled at once, however it hides and however
// fast it forks, and nobody else can be met by mistake.
func confineSignals() error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return errors.Wrap(err, "no_new_privs")
	}
	// To move files between folders is refused by every ruleset that does not grant
	// it, also by one that is not about files.
	const refer = unix.LANDLOCK_ACCESS_FS_REFER
	attr := unix.LandlockRulesetAttr{Handled_access_fs: refer, Scoped: unix.LANDLOCK_SCOPE_SIGNAL}
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0) //nolint:gosec // The call has no other form.
	if errno != 0 {
		return errors.Wrap(errno, "landlock")
	}
	defer unix.Close(int(fd))
	if err := permit(int(fd), "/", refer); err != nil {
		return errors.Wrap(err, "landlock")
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return errors.Wrap(errno, "landlock")
	}
	return nil
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
		Env: frugal, Files: []uintptr{0, 1, 2, uintptr(pair[1])}, Sys: &syscall.SysProcAttr{Setsid: true},
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
		if err := s.Limits.setMemory(); err != nil {
			return err
		}
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
	// This process is in its workspace; the way there may be closed to it.
	const here, tmp = ".", ".tmp"
	if err := os.Mkdir(tmp, 0o700); err != nil && !os.IsExist(err) {
		return nil, errors.Wrap(err, "workspace")
	}
	for i, v := range s.Env {
		if strings.HasPrefix(v, "TMPDIR=") {
			s.Env[i] = "TMPDIR=" + filepath.Join(s.Dir, tmp)
		}
	}
	return []grant{
		{readTree, systemDirs}, {readTree, configuration}, {readTree, s.Read}, {readTree, processInformation},
		{readFile | writeFile | device, devices},
		{readTree | writeTree, []string{here}},
	}, nil
}
