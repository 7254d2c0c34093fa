package sandbox

import (
	"runtime"
	"unsafe"

	"github.com/elastic/go-seccomp-bpf"
	"github.com/elastic/go-seccomp-bpf/arch"
	"github.com/go-faster/errors"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// lastSyscall is the newest system call that the filter knows of (mseal, Linux
// 6.10). What came after it answers as on a kernel that does not have it, which
// every program has to be prepared for.
const lastSyscall = 462

// x32Bit marks a call of the x32 ABI, another way into the same kernel.
const x32Bit = 0x40000000

// newNamespace are the flags of clone and unshare that make namespaces. In one
// of its own a process would have every right that was taken from it.
const newNamespace = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC |
	unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWTIME

// deniedCalls are the system calls that no command needs and that reach for the
// kernel, for other processes or for the file systems' layout. Those that an
// architecture does not have are left out.
var deniedCalls = []string{
	// other processes
	"ptrace", "process_vm_readv", "process_vm_writev", "kcmp", "pidfd_getfd", "process_madvise",
	// the kernel's own machinery
	"bpf", "perf_event_open", "userfaultfd", "io_uring_setup", "io_uring_enter", "io_uring_register",
	"keyctl", "add_key", "request_key", "lookup_dcookie", "modify_ldt", "lsm_set_self_attr",
	"init_module", "finit_module", "delete_module", "create_module", "get_kernel_syms", "query_module",
	"kexec_load", "kexec_file_load", "reboot", "syslog", "_sysctl", "nfsservctl", "acct", "swapon", "swapoff",
	"iopl", "ioperm", "vhangup", "uselib", "quotactl", "quotactl_fd", "fanotify_init", "fanotify_mark",
	// the clock
	"settimeofday", "clock_settime", "clock_adjtime", "adjtimex",
	// the layout of the file systems
	"mount", "umount2", "umount", "pivot_root", "chroot", "open_tree", "move_mount", "fsopen", "fsconfig", "fsmount",
	"fspick", "mount_setattr", "statmount", "listmount", "setns", "name_to_handle_at", "open_by_handle_at",
}

// socketFamilies are those that the filter lets through: names and addresses
// mean nothing beyond the command's own network.
var socketFamilies = []uint32{unix.AF_UNIX, unix.AF_INET, unix.AF_INET6}

// Where struct seccomp_data has what a filter looks at. Of an argument only the
// low half is looked at when the kernel looks at no more than that; the half
// beyond it could be anything.
const (
	offNumber = 0
	offArch   = 4
	offArgs   = 16
)

func lowHalf(arg uint32) bpf.LoadAbsolute { return bpf.LoadAbsolute{Off: offArgs + 8*arg, Size: 4} }

func refuse(errno unix.Errno) bpf.RetConstant {
	return bpf.RetConstant{Val: uint32(seccomp.ActionErrno) | uint32(errno)}
}

var (
	kill  = bpf.RetConstant{Val: uint32(seccomp.ActionKillProcess)}
	allow = bpf.RetConstant{Val: uint32(seccomp.ActionAllow)}
)

// filter returns the program that decides about every system call of a command.
// With sockets false it may have none but pairs of them.
func filter(sockets bool) ([]bpf.RawInstruction, error) {
	info, err := arch.GetInfo("")
	if err != nil {
		return nil, err
	}
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		// Another architecture's numbers mean other calls.
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: uint32(info.ID), SkipTrue: 1},
		kill,
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: x32Bit, SkipTrue: 1},
		kill,
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: lastSyscall, SkipTrue: 1},
		refuse(unix.ENOSYS),
	}
	var unknown error
	number := func(name string) uint32 {
		n, ok := info.SyscallNames[name]
		if !ok {
			unknown = errors.Errorf("no system call %s on %s", name, info.Name)
		}
		return uint32(n)
	}
	// on adds what is decided about one call; the accumulator holds the number
	// again when nothing was.
	on := func(name string, decide ...bpf.Instruction) {
		decide = append(decide, bpf.LoadAbsolute{Off: offNumber, Size: 4})
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number(name), SkipTrue: uint8(len(decide))})
		program = append(program, decide...)
	}
	// The flags of clone3 lie in memory, where a filter cannot look.
	on("clone3", refuse(unix.ENOSYS))
	for _, name := range []string{"clone", "unshare"} {
		on(name, lowHalf(0), bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: newNamespace, SkipTrue: 1}, refuse(unix.EPERM))
	}
	// Both write into a terminal as if somebody typed there.
	on("ioctl", lowHalf(1),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCSTI, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.TIOCLINUX, SkipTrue: 1},
		refuse(unix.EPERM))
	if sockets {
		on("socket", append([]bpf.Instruction{lowHalf(0)}, unlessFamily(socketFamilies...)...)...)
	} else {
		on("socket", refuse(unix.EACCES))
	}
	on("socketpair", append([]bpf.Instruction{lowHalf(0)}, unlessFamily(unix.AF_UNIX)...)...)
	for _, name := range deniedCalls {
		if _, ok := info.SyscallNames[name]; ok {
			program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number(name), SkipTrue: 1}, refuse(unix.EPERM))
		}
	}
	if unknown != nil {
		return nil, unknown
	}
	return bpf.Assemble(append(program, allow))
}

// unlessFamily refuses a socket whose family is none of these.
func unlessFamily(families ...uint32) []bpf.Instruction {
	var program []bpf.Instruction
	for i, f := range families {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpEqual, Val: f, SkipTrue: uint8(len(families) - i)})
	}
	return append(program, refuse(unix.EAFNOSUPPORT))
}

// confineCalls installs the filter for every thread of this process, and so for
// what it starts. No new privileges have to be possible any more.
func confineCalls(sockets bool) error {
	raw, err := filter(sockets)
	if err != nil {
		return errors.Wrap(err, "seccomp")
	}
	program := make([]unix.SockFilter, len(raw))
	for i, in := range raw {
		program[i] = unix.SockFilter{Code: in.Op, Jt: in.Jt, Jf: in.Jf, K: in.K}
	}
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC,
		uintptr(unsafe.Pointer(&prog))) //nolint:gosec // The call has no other form.
	runtime.KeepAlive(program)
	if errno != 0 {
		return errors.Wrap(errno, "seccomp")
	}
	return nil
}
