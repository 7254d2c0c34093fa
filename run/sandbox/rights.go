package sandbox

import (
	"syscall"

	"github.com/go-faster/errors"
	"golang.org/x/sys/unix"
)

// setupRights are the capabilities, within its own namespaces, that the first
// process has until everything is set up.
var setupRights = []uintptr{
	unix.CAP_SYS_ADMIN, unix.CAP_SETUID, unix.CAP_SETGID, unix.CAP_SETPCAP, unix.CAP_NET_ADMIN,
}

// become makes this process the user that the command runs as.
func become(s *spec) error {
	if s.DropGroups {
		if err := syscall.Setgroups([]int{}); err != nil {
			return errors.Wrap(err, "setgroups")
		}
	}
	if err := syscall.Setresgid(s.GID, s.GID, s.GID); err != nil {
		return errors.Wrap(err, "setgid")
	}
	if err := syscall.Setresuid(s.UID, s.UID, s.UID); err != nil {
		return errors.Wrap(err, "setuid")
	}
	return nil
}

// giveUpRights takes every capability, and the way to any new one, from this
// thread and what is started from it.
func giveUpRights() error {
	const lastCap = 63
	for c := range uintptr(lastCap + 1) {
		err := unix.Prctl(unix.PR_CAPBSET_DROP, c, 0, 0, 0)
		if errors.Is(err, unix.EINVAL) {
			break // The kernel has no more of them.
		}
		// Without the right to drop them there is none to lose either.
		if err != nil && !errors.Is(err, unix.EPERM) {
			return errors.Wrap(err, "bounding set")
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return errors.Wrap(err, "ambient set")
	}
	if err := dropCapabilities(); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return errors.Wrap(err, "no_new_privs")
	}
	return nil
}

func dropCapabilities() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return errors.Wrap(err, "capabilities")
	}
	return nil
}
