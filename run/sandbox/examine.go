package sandbox

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Check is what was found out about one thing that this machine enforces.
type Check struct {
	Name string
	OK   bool
	// Detail says what works, or what is missing and how to get it.
	Detail string
}

// probeName is what the binary is called when it only has to come to life.
const probeName = "agentrun-probe"

// Examine tries each layer of the sandbox on this machine, and the levels as
// wholes.
func Examine(ctx context.Context) []Check {
	checks := []Check{
		examineNamespaces("user namespaces", unix.CLONE_NEWUSER,
			"set user.max_user_namespaces above 0, and let the system's security policy (AppArmor, SELinux, the container's seccomp profile) permit them"),
		examineNamespaces("mount, PID, network, IPC and UTS namespaces",
			unix.CLONE_NEWUSER|unix.CLONE_NEWNS|unix.CLONE_NEWPID|unix.CLONE_NEWNET|unix.CLONE_NEWIPC|unix.CLONE_NEWUTS,
			"see user namespaces; a container has to permit unshare"),
		examineLandlock(), examineSeccomp(), examineGroups(),
	}
	for _, level := range []Level{Full, Landlock} {
		c := Check{Name: "level " + string(level), OK: true, Detail: "a command was tried in it, and could not read what it must not"}
		if err := newConfined(level, "").try(ctx); err != nil {
			c.OK, c.Detail = false, err.Error()
		}
		checks = append(checks, c)
	}
	return checks
}

func examineNamespaces(name string, flags uintptr, remedy string) Check {
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{probeName}, Env: []string{},
		SysProcAttr: &syscall.SysProcAttr{Cloneflags: flags},
	}
	if err := cmd.Run(); err != nil {
		return Check{name, false, fmt.Sprintf("%v: %s", err, remedy)}
	}
	return Check{name, true, "made"}
}

func examineLandlock() Check {
	const name = "Landlock"
	switch abi := landlockABI(); {
	case abi == 0:
		return Check{name, false, "the kernel has none: Linux 5.13 or later, with landlock among the LSMs (lsm= of the kernel's command line)"}
	case abi < minFullABI:
		return Check{name, false, fmt.Sprintf("version %d, and %d (Linux 6.2) is needed", abi, minFullABI)}
	case abi < minFallbackABI:
		return Check{name, true, fmt.Sprintf("version %d; the level landlock alone needs %d (Linux 6.12)", abi, minFallbackABI)}
	default:
		return Check{name, true, fmt.Sprintf("version %d", abi)}
	}
}

func examineSeccomp() Check {
	action := uint32(unix.SECCOMP_RET_KILL_PROCESS)
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action))) //nolint:gosec // The call has no other form.
	if errno != 0 {
		return Check{"seccomp", false, fmt.Sprintf("%v: the kernel needs CONFIG_SECCOMP_FILTER", errno)}
	}
	return Check{"seccomp", true, "filters can end a process"}
}

// examineGroups says whether limits count for a command as a whole. The server
// of this process's group is not moved for that, as it would be by openGroups.
func examineGroups() Check {
	const name, otherwise = "cgroup v2", ": limits of memory and processes count for each process or user, not for a command as a whole"
	dir, err := ownGroup()
	if err != nil {
		return Check{name, false, err.Error() + otherwise}
	}
	g := &groups{dir: dir, name: "agentrun-doctor-"}
	if err := g.try(); err != nil {
		return Check{name, false, err.Error() + otherwise}
	}
	offered, err := g.list("cgroup.controllers")
	if err != nil {
		return Check{name, false, err.Error()}
	}
	use := ofUse(offered)
	if len(use) < 2 {
		return Check{name, false, dir + " is writable, but lacks the controllers memory and pids" + otherwise}
	}
	enabled, err := g.list("cgroup.subtree_control")
	if err != nil {
		return Check{name, false, err.Error()}
	}
	members, _ := g.list("cgroup.procs")
	if len(ofUse(enabled)) < 2 && slices.ContainsFunc(members, func(pid string) bool { return pid != strconv.Itoa(os.Getpid()) }) {
		return Check{name, false, dir + " is writable, but others are in it; a server that has it to itself (systemd: Delegate=yes) limits memory and processes for a command as a whole"}
	}
	return Check{name, true, dir + " is writable, with memory and pids"}
}

// ExamineDisk says how much room there is for the data directory.
func ExamineDisk(dir string) Check {
	const name, enough = "disk", 1 << 30
	for path := filepath.Clean(dir); ; path = filepath.Dir(path) {
		var st unix.Statfs_t
		err := unix.Statfs(path, &st)
		if err != nil && path != filepath.Dir(path) {
			continue // It is made when it is needed.
		}
		if err != nil {
			return Check{name, false, err.Error()}
		}
		free := st.Bavail * uint64(st.Bsize)
		return Check{name, free >= enough, fmt.Sprintf("%.1f GiB free at %s", float64(free)/(1<<30), path)}
	}
}
