package sandboxtest

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// HostVariable in the environment of a test binary that calls OnHost makes it
// run as on a host that lacks something: one of Hosts. Empty means nothing.
const HostVariable = "SANDBOX_TEST_HOST"

// NoUserns and the others are hosts that lack something, by what they lack.
const (
	NoUserns       = "user namespaces"             // The system's policy refuses them.
	NoUsernsLeft   = "user namespaces by a limit"  // The kernel's limit is 0.
	NoMounts       = "mounts"                      // A policy gives namespaces, but no rights in them.
	NoLandlock     = "Landlock"                    // The kernel has none.
	NoneOfBoth     = "user namespaces or Landlock" // Neither of the two.
	NoSeccomp      = "seccomp"                     // The kernel has none.
	RefusedSeccomp = "seccomp filters"             // The kernel has it and takes no filter.
)

// Hosts are all of them.
var Hosts = []string{NoUserns, NoUsernsLeft, NoMounts, NoLandlock, NoneOfBoth, NoSeccomp, RefusedSeccomp}

// limited is the second step towards NoUsernsLeft, in the namespace whose limit
// is set.
const limited = "limited"

// OnHost starts this program again on the host that HostVariable names, and
// does not return then.
func OnHost() {
	host := os.Getenv(HostVariable)
	if host == "" {
		return
	}
	// What is set here is set for a thread, which then becomes the program.
	runtime.LockOSThread()
	_ = os.Unsetenv(HostVariable)
	var err error
	switch host {
	case NoUsernsLeft:
		os.Exit(runLimited())
	case limited:
		err = limitNamespaces()
	default:
		err = refuseCalls(host)
	}
	if err == nil {
		err = syscall.Exec("/proc/self/exe", os.Args, os.Environ()) //nolint:gosec // The test binary itself, once more.
	}
	fmt.Fprintf(os.Stderr, "a host without %s: %v\n", host, err)
	os.Exit(99)
}

// runLimited runs this program in a user namespace with the same users, below
// which there is to be no other, and returns its exit code. Such a limit can
// only be set for a namespace, or for everybody.
func runLimited() int {
	users := []syscall.SysProcIDMap{{Size: 1<<32 - 1}}
	groups := users
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		users = []syscall.SysProcIDMap{{ContainerID: uid, HostID: uid, Size: 1}}
		groups = []syscall.SysProcIDMap{{ContainerID: gid, HostID: gid, Size: 1}}
	}
	cmd := &exec.Cmd{
		Path: "/proc/self/exe", Args: os.Args, Env: append(os.Environ(), HostVariable+"="+limited),
		Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr,
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags: unix.CLONE_NEWUSER, UidMappings: users, GidMappings: groups,
			GidMappingsEnableSetgroups: os.Getuid() == 0, AmbientCaps: []uintptr{unix.CAP_SYS_RESOURCE},
			Pdeathsig: syscall.SIGKILL,
		},
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, unix.SIGTERM, unix.SIGINT)
	if err := cmd.Start(); err != nil {
		fmt.Fprintf(os.Stderr, "a user namespace of its own: %v\n", err)
		return 99
	}
	go func() {
		for s := range signals {
			_ = cmd.Process.Signal(s)
		}
	}()
	_ = cmd.Wait() // How it ended says the exit code.
	return cmd.ProcessState.ExitCode()
}

func limitNamespaces() error {
	if err := os.WriteFile("/proc/sys/user/max_user_namespaces", []byte("0"), 0); err != nil {
		return err
	}
	return unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
}

// Where struct seccomp_data has what a filter looks at.
const (
	offNumber   = 0
	offArgument = 16
)

// refuseCalls makes the kernel answer this thread as one that lacks something
// does.
func refuseCalls(host string) error {
	var program []bpf.Instruction
	refuse := func(number uint32, errno unix.Errno) {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1},
			bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)})
	}
	// refuseIf looks at the low half of the call's first argument as well.
	refuseIf := func(number uint32, cond bpf.JumpTest, value uint32, errno unix.Errno) {
		program = append(program,
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 4},
			bpf.LoadAbsolute{Off: offArgument, Size: 4},
			bpf.JumpIf{Cond: cond, Val: value, SkipFalse: 1},
			bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)},
			bpf.LoadAbsolute{Off: offNumber, Size: 4})
	}
	program = append(program, bpf.LoadAbsolute{Off: offNumber, Size: 4})
	if host == NoUserns || host == NoneOfBoth {
		refuse(unix.SYS_CLONE3, unix.ENOSYS) // Its flags are out of a filter's sight.
		refuseIf(unix.SYS_CLONE, bpf.JumpBitsSet, unix.CLONE_NEWUSER, unix.EPERM)
		refuseIf(unix.SYS_UNSHARE, bpf.JumpBitsSet, unix.CLONE_NEWUSER, unix.EPERM)
	}
	if host == NoLandlock || host == NoneOfBoth {
		refuse(unix.SYS_LANDLOCK_CREATE_RULESET, unix.ENOSYS)
		refuse(unix.SYS_LANDLOCK_ADD_RULE, unix.ENOSYS)
		refuse(unix.SYS_LANDLOCK_RESTRICT_SELF, unix.ENOSYS)
	}
	switch host {
	case NoMounts:
		for _, call := range []uint32{unix.SYS_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_FSOPEN, unix.SYS_PIVOT_ROOT} {
			refuse(call, unix.EPERM)
		}
	case NoSeccomp:
		refuse(unix.SYS_SECCOMP, unix.ENOSYS)
		refuseIf(unix.SYS_PRCTL, bpf.JumpEqual, unix.PR_SET_SECCOMP, unix.EINVAL)
	case RefusedSeccomp:
		refuseIf(unix.SYS_SECCOMP, bpf.JumpEqual, unix.SECCOMP_SET_MODE_FILTER, unix.EINVAL)
		refuseIf(unix.SYS_PRCTL, bpf.JumpEqual, unix.PR_SET_SECCOMP, unix.EINVAL)
	}
	if len(program) == 1 {
		return fmt.Errorf("no such host; there are %s", strings.Join(Hosts, ", "))
	}
	return install(append(program, bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}))
}

func install(program []bpf.Instruction) error {
	raw, err := bpf.Assemble(program)
	if err != nil {
		return err
	}
	filter := make([]unix.SockFilter, len(raw))
	for i, in := range raw {
		filter[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	// Whoever may do without this does, so that as little as possible is
	// different from a host that is really so.
	if os.Getuid() != 0 {
		if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
			return err
		}
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))) //nolint:gosec // The call has no other form.
	runtime.KeepAlive(filter)
	if errno != 0 {
		return errno
	}
	return nil
}
