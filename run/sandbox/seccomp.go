package sandbox

import (
	"runtime"
	"unsafe"

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
// kernel, for other processes or for the file systems' layout, as far as every
// architecture has them; ownCalls are those of this one.
var deniedCalls = map[string]uint32{
	// other processes
	"ptrace": unix.SYS_PTRACE, "process_vm_readv": unix.SYS_PROCESS_VM_READV, "process_vm_writev": unix.SYS_PROCESS_VM_WRITEV,
	"kcmp": unix.SYS_KCMP, "pidfd_getfd": unix.SYS_PIDFD_GETFD, "process_madvise": unix.SYS_PROCESS_MADVISE,
	// the kernel's own machinery
	"bpf": unix.SYS_BPF, "perf_event_open": unix.SYS_PERF_EVENT_OPEN, "userfaultfd": unix.SYS_USERFAULTFD,
	"io_uring_setup": unix.SYS_IO_URING_SETUP, "io_uring_enter": unix.SYS_IO_URING_ENTER, "io_uring_register": unix.SYS_IO_URING_REGISTER,
	"keyctl": unix.SYS_KEYCTL, "add_key": unix.SYS_ADD_KEY, "request_key": unix.SYS_REQUEST_KEY,
	"lsm_set_self_attr": unix.SYS_LSM_SET_SELF_ATTR,
	"init_module":       unix.SYS_INIT_MODULE, "finit_module": unix.SYS_FINIT_MODULE, "delete_module": unix.SYS_DELETE_MODULE,
	"kexec_load": unix.SYS_KEXEC_LOAD, "kexec_file_load": unix.SYS_KEXEC_FILE_LOAD, "reboot": unix.SYS_REBOOT,
	"syslog": unix.SYS_SYSLOG, "acct": unix.SYS_ACCT, "swapon": unix.SYS_SWAPON, "swapoff": unix.SYS_SWAPOFF,
	"vhangup": unix.SYS_VHANGUP, "quotactl": unix.SYS_QUOTACTL, "quotactl_fd": unix.SYS_QUOTACTL_FD,
	"nfsservctl": unix.SYS_NFSSERVCTL, "fanotify_init": unix.SYS_FANOTIFY_INIT, "fanotify_mark": unix.SYS_FANOTIFY_MARK,
	// the clock
	"settimeofday": unix.SYS_SETTIMEOFDAY, "clock_settime": unix.SYS_CLOCK_SETTIME,
	"clock_adjtime": unix.SYS_CLOCK_ADJTIME, "adjtimex": unix.SYS_ADJTIMEX,
	// the layout of the file systems
	"mount": unix.SYS_MOUNT, "umount2": unix.SYS_UMOUNT2, "pivot_root": unix.SYS_PIVOT_ROOT, "chroot": unix.SYS_CHROOT,
	"open_tree": unix.SYS_OPEN_TREE, "move_mount": unix.SYS_MOVE_MOUNT, "fsopen": unix.SYS_FSOPEN, "fsconfig": unix.SYS_FSCONFIG,
	"fsmount": unix.SYS_FSMOUNT, "fspick": unix.SYS_FSPICK, "mount_setattr": unix.SYS_MOUNT_SETATTR,
	"statmount": unix.SYS_STATMOUNT, "listmount": unix.SYS_LISTMOUNT, "setns": unix.SYS_SETNS,
	"name_to_handle_at": unix.SYS_NAME_TO_HANDLE_AT, "open_by_handle_at": unix.SYS_OPEN_BY_HANDLE_AT,
}

// sharedCalls reach what a command without namespaces shares with all of the
// host and no rule about files covers: the memory, the semaphores and the queues
// of System V and POSIX.
var sharedCalls = []uint32{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL,
	unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// attributeCalls read and write attributes of files by their names. They hold
// content, and Landlock does not decide about them.
var attributeCalls = []uint32{
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_GETXATTR, unix.SYS_LGETXATTR,
	unix.SYS_LISTXATTR, unix.SYS_LLISTXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR,
}

// processCalls change how the process runs that their first argument names; 0
// is the caller itself. Another one of the same user can be the server, or what
// watches the command.
var processCalls = []uint32{
	unix.SYS_PRLIMIT64, unix.SYS_SCHED_SETAFFINITY, unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR,
}

// The requests to a socket of any kind that tell of the network's interfaces
// and change them, those of wireless ones included.
const (
	firstInterfaceRequest = unix.SIOCGIFNAME
	lastInterfaceRequest  = 0x8bff
)

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
	return bpf.RetConstant{Val: unix.SECCOMP_RET_ERRNO | uint32(errno)}
}

var (
	kill  = bpf.RetConstant{Val: unix.SECCOMP_RET_KILL_PROCESS}
	allow = bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
)

// filter returns the program that decides about every system call of a command.
// With sockets false it has no namespaces of its own: it may have no sockets but
// pairs of them, and reach nothing that it shares with the host.
func filter(sockets bool) ([]bpf.RawInstruction, error) {
	program := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: 4},
		// Another architecture's numbers mean other calls.
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: auditArch, SkipTrue: 1},
		kill,
		bpf.LoadAbsolute{Off: offNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: x32Bit, SkipTrue: 1},
		kill,
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: lastSyscall, SkipTrue: 1},
		refuse(unix.ENOSYS),
	}
	// on adds what is decided about one call; the accumulator holds the number
	// again when nothing was.
	on := func(number uint32, decide ...bpf.Instruction) {
		decide = append(decide, bpf.LoadAbsolute{Off: offNumber, Size: 4})
		program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: uint8(len(decide))})
		program = append(program, decide...)
	}
	// The flags of clone3 lie in memory, where a filter cannot look.
	on(unix.SYS_CLONE3, refuse(unix.ENOSYS))
	for _, number := range []uint32{unix.SYS_CLONE, unix.SYS_UNSHARE} {
		on(number, lowHalf(0), bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: newNamespace, SkipTrue: 1}, refuse(unix.EPERM))
	}
	// Both write into a terminal as if somebody typed there.
	on(unix.SYS_IOCTL, lowHalf(1),
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.TIOCSTI, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.TIOCLINUX, SkipTrue: 1},
		refuse(unix.EPERM))
	if sockets {
		on(unix.SYS_SOCKET, append([]bpf.Instruction{lowHalf(0)}, unlessFamily(socketFamilies...)...)...)
	} else {
		on(unix.SYS_SOCKET, refuse(unix.EACCES))
		refuseShared(on)
	}
	on(unix.SYS_SOCKETPAIR, append([]bpf.Instruction{lowHalf(0)}, unlessFamily(unix.AF_UNIX)...)...)
	for _, numbers := range []map[string]uint32{deniedCalls, ownCalls} {
		for _, number := range numbers {
			program = append(program, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: number, SkipTrue: 1}, refuse(unix.EPERM))
		}
	}
	return bpf.Assemble(append(program, allow))
}

// refuseShared refuses what reaches beyond a command without namespaces.
func refuseShared(on func(number uint32, decide ...bpf.Instruction)) {
	// A datagram socket of a pair can be turned to any other one of the host.
	const kinds = 0xf // the other bits are flags
	on(unix.SYS_SOCKETPAIR, lowHalf(1), bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: kinds},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_STREAM, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SOCK_SEQPACKET, SkipTrue: 1},
		refuse(unix.EACCES))
	on(unix.SYS_IOCTL, lowHalf(1),
		bpf.JumpIf{Cond: bpf.JumpLessThan, Val: firstInterfaceRequest, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpGreaterThan, Val: lastInterfaceRequest, SkipTrue: 1},
		refuse(unix.EPERM))
	for _, number := range sharedCalls {
		on(number, refuse(unix.EPERM))
	}
	for _, number := range attributeCalls {
		// As a file system answers that has none.
		on(number, refuse(unix.EOPNOTSUPP))
	}
	for _, number := range processCalls {
		on(number, lowHalf(0), bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1}, refuse(unix.EPERM))
	}
	// Of these the first argument says what the second one names: a process, a
	// group or a user.
	const ioprioProcess = 1
	for _, c := range []struct{ number, process uint32 }{{unix.SYS_SETPRIORITY, unix.PRIO_PROCESS}, {unix.SYS_IOPRIO_SET, ioprioProcess}} {
		on(c.number, lowHalf(0), bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: c.process, SkipTrue: 2},
			lowHalf(1), bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1},
			refuse(unix.EPERM))
	}
}

// unlessFamily refuses a socket whose family is none of these.
func unlessFamily(families ...uint32) []bpf.Instruction {
	var program []bpf.Instruction
	for i, f := range families {
		program = append(program, bpf.JumpIf{Cond: bpf.JumpEqual, Val: f, SkipTrue: uint8(len(families) - i)})
	}
	return append(program, refuse(unix.EAFNOSUPPORT))
}

// confineCalls installs the filter for this thread, and so for what is started
// from it. No new privileges have to be possible any more.
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
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))) //nolint:gosec // The call has no other form.
	runtime.KeepAlive(program)
	if errno != 0 {
		return errors.Wrap(errno, "seccomp")
	}
	return nil
}
