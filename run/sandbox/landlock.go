package sandbox

import (
	"os"
	"unsafe"

	"github.com/go-faster/errors"
	"golang.org/x/sys/unix"
)

// Landlock is used by its system calls: what there is for Go confines all
// threads of a process, at the price of stopping each of them, and costs every
// process that links it its initialisation. Here one thread is enough, that
// from which the command comes.

// The least versions of Landlock that the levels need. Version 3 knows every
// way to change a file; with 6 a command cannot signal what is outside, such as
// the process that watches it where there is no PID namespace.
const (
	minFullABI     = 3
	minFallbackABI = 6
)

// Sets of Landlock's rights.
const (
	readFile = unix.LANDLOCK_ACCESS_FS_EXECUTE | unix.LANDLOCK_ACCESS_FS_READ_FILE
	readTree = readFile | unix.LANDLOCK_ACCESS_FS_READ_DIR

	writeFile = unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE
	writeTree = writeFile | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG |
		unix.LANDLOCK_ACCESS_FS_MAKE_SOCK | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER

	device   = unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	fileOnly = readFile | writeFile | device
)

// grant gives rights at paths and below them.
type grant struct {
	rights uint64
	paths  []string
}

// landlockABI returns the version of Landlock that the kernel has, 0 for none.
func landlockABI() int {
	abi, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if errno != 0 {
		return 0
	}
	return int(abi)
}

// ruleset returns what Landlock of this version can take away: files altogether,
// and signals and abstract sockets to what is outside.
func ruleset(abi int) unix.LandlockRulesetAttr {
	attr := unix.LandlockRulesetAttr{Handled_access_fs: readTree | writeTree}
	if abi >= 5 {
		attr.Handled_access_fs |= device
	}
	if abi >= 6 {
		attr.Scoped = unix.LANDLOCK_SCOPE_SIGNAL | unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET
	}
	return attr
}

// confineFiles leaves this thread, and what is started from it, what is granted
// and nothing else. Paths that do not exist are passed over. No new privileges
// have to be possible any more.
func confineFiles(grants ...grant) error {
	abi := landlockABI()
	if abi < minFullABI {
		return errors.Errorf("landlock: the kernel has version %d, %d is needed", abi, minFullABI)
	}
	attr := ruleset(abi)
	fd, _, errno := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0) //nolint:gosec // The call has no other form.
	if errno != 0 {
		return errors.Wrap(errno, "landlock")
	}
	defer unix.Close(int(fd))
	for _, g := range grants {
		for _, path := range g.paths {
			if err := permit(int(fd), path, g.rights&attr.Handled_access_fs); err != nil {
				return errors.Wrapf(err, "landlock: %s", path)
			}
		}
	}
	if _, _, errno := unix.Syscall(unix.SYS_LANDLOCK_RESTRICT_SELF, fd, 0, 0); errno != 0 {
		return errors.Wrap(errno, "landlock")
	}
	return nil
}

// permit adds the rights at a path to a ruleset.
func permit(ruleset int, path string, rights uint64) error {
	fd, err := unix.Open(path, unix.O_PATH|unix.O_CLOEXEC, 0)
	if os.IsNotExist(err) {
		return nil
	}
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR {
		rights &= fileOnly
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: rights, Parent_fd: int32(fd)}
	_, _, errno := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(ruleset), unix.LANDLOCK_RULE_PATH_BENEATH,
		uintptr(unsafe.Pointer(&attr)), 0, 0, 0) //nolint:gosec // The call has no other form.
	if errno != 0 {
		return errno
	}
	return nil
}
