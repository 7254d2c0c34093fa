package sandbox

import (
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Arguments that are safe to hand to any system call: where the kernel looks at
// one of them it says that it is wrong, which it cannot when the filter
// refused the call before.
const (
	noPointer = ^uintptr(0) - 4095
	noNumber  = ^uintptr(0)
	noFlags   = uintptr(0x7fffffff)
)

// deniedArguments are what the calls that the filter denies are called with.
var deniedArguments = map[string][6]uintptr{
	"ptrace": {unix.PTRACE_PEEKDATA, 0}, "process_vm_readv": {0, noPointer, 1}, "process_vm_writev": {0, noPointer, 1},
	"kcmp": {noNumber, noNumber}, "pidfd_getfd": {noNumber}, "process_madvise": {noNumber, noPointer, 0, 0, noFlags},

	"bpf": {noFlags, noPointer, 0}, "perf_event_open": {noPointer}, "userfaultfd": {noFlags},
	"io_uring_setup": {0, noPointer}, "io_uring_enter": {noNumber}, "io_uring_register": {noNumber},
	"keyctl": {noFlags}, "add_key": {noPointer, noPointer}, "request_key": {noPointer, noPointer}, "lookup_dcookie": {},
	"modify_ldt": {0}, "lsm_set_self_attr": {0, noPointer, 0, noFlags},
	"init_module": {noPointer, 0, noPointer}, "finit_module": {noNumber, noPointer, noFlags}, "delete_module": {noPointer},
	"create_module": {}, "get_kernel_syms": {}, "query_module": {},
	"kexec_load": {0, noFlags, noPointer, noFlags}, "kexec_file_load": {noNumber, noNumber, 0, noPointer, noFlags},
	"reboot": {0, 0, 0}, "syslog": {noFlags}, "_sysctl": {noPointer}, "nfsservctl": {}, "acct": {noPointer},
	"swapon": {noPointer}, "swapoff": {noPointer}, "iopl": {99}, "ioperm": {0x10000, 1, 1}, "vhangup": {}, "uselib": {noPointer},
	"quotactl": {noNumber, noPointer}, "quotactl_fd": {noNumber}, "fanotify_init": {noFlags}, "fanotify_mark": {noNumber, 0, 0, noNumber, noPointer},

	"settimeofday": {noPointer, noPointer}, "clock_settime": {9999, noPointer}, "clock_adjtime": {9999, noPointer}, "adjtimex": {noPointer},

	"mount": {noPointer, noPointer, noPointer}, "umount2": {noPointer, noFlags}, "umount": {noPointer}, "pivot_root": {noPointer, noPointer},
	"chroot": {noPointer}, "open_tree": {noNumber, noPointer, noFlags}, "move_mount": {noNumber, noPointer, noNumber, noPointer, noFlags},
	"fsopen": {noPointer, noFlags}, "fsconfig": {noNumber, noFlags}, "fsmount": {noNumber, noFlags}, "fspick": {noNumber, noPointer, noFlags},
	"mount_setattr": {noNumber, noPointer, noFlags}, "statmount": {noPointer, noPointer, 0, noFlags}, "listmount": {noPointer, noPointer, 0, noFlags},
	"setns": {noNumber}, "name_to_handle_at": {noNumber, noPointer, noPointer, noPointer, noFlags}, "open_by_handle_at": {noNumber, noPointer},
}

// looked says whether the kernel itself had a look at a call: it does not have
// the call, or the filter refused it, otherwise. A call that is made for the
// kernel to find fault with works if it gets so far.
func looked(errno unix.Errno) error {
	switch errno {
	case unix.EPERM, unix.ENOSYS, unix.EACCES, unix.EAFNOSUPPORT:
		return errno
	}
	return nil
}

func call(number uintptr, a ...uintptr) unix.Errno {
	var args [6]uintptr
	copy(args[:], a)
	_, _, errno := unix.Syscall6(number, args[0], args[1], args[2], args[3], args[4], args[5])
	return errno
}

// deniedCallAttacks are the calls that the filter denies, all of them.
func deniedCallAttacks() []attack {
	numbers := maps.Clone(deniedCalls)
	maps.Copy(numbers, ownCalls)
	var list []attack
	for _, name := range slices.Sorted(maps.Keys(numbers)) {
		number := numbers[name]
		args, ok := deniedArguments[name]
		if !ok {
			panic("deniedArguments does not have " + name)
		}
		list = append(list, attack{
			name: "call " + name, errno: unix.EPERM,
			// vhangup takes no arguments that could be wrong.
			harmful: name == "vhangup",
			do:      func(*scene) error { return looked(call(uintptr(number), args[:]...)) },
		})
	}
	return list
}

// callAttacks are calls of which some uses are refused, and those that the
// filter knows nothing of.
func callAttacks() []attack {
	const above = 1 << 32 // what the kernel does not look at
	typed := byte('x')
	var list []attack
	for name, request := range map[string]uintptr{
		"TIOCSTI": unix.TIOCSTI, "TIOCSTI with garbage above": unix.TIOCSTI | above,
		"TIOCLINUX": unix.TIOCLINUX, "TIOCLINUX with garbage above": unix.TIOCLINUX | 0xabcd<<32,
	} {
		list = append(list, attack{name: "ioctl " + name, errno: unix.EPERM, do: func(*scene) error {
			// Standard input is no terminal, which the kernel says.
			return looked(call(unix.SYS_IOCTL, 0, request, uintptr(unsafe.Pointer(&typed))))
		}})
	}
	list = append(list,
		attack{name: "clone3", errno: unix.ENOSYS, do: func(*scene) error { return looked(call(unix.SYS_CLONE3, noPointer, 0)) }},
		attack{name: "ptrace with garbage above its number", errno: unix.EPERM, do: func(*scene) error {
			return looked(call(unix.SYS_PTRACE|above, unix.PTRACE_PEEKDATA, 0))
		}},
		attack{name: "read the kernel's log", errno: unix.EPERM, do: func(*scene) error {
			_, err := unix.Klogctl(unix.SYSLOG_ACTION_READ_ALL, make([]byte, 1024))
			return err
		}},
	)
	for number := uintptr(lastSyscall + 1); number <= 480; number++ {
		list = append(list, attack{name: fmt.Sprintf("call number %d", number), errno: unix.ENOSYS, do: func(*scene) error {
			return looked(call(number, noNumber, noPointer, noFlags, noPointer, noNumber, noNumber))
		}})
	}
	return append(list, attack{name: "a call number from 481 to 1023", errno: unix.ENOSYS, do: func(*scene) error {
		for number := uintptr(481); number < 1024; number++ {
			if errno := call(number, noNumber, noPointer, noFlags, noPointer, noNumber, noNumber); errno != unix.ENOSYS {
				return looked(errno)
			}
		}
		return unix.ENOSYS
	}})
}

// namespaceAttacks make namespaces: in its own a process has every right.
func namespaceAttacks() []attack {
	var list []attack
	for name, flag := range map[string]uintptr{
		"mount": unix.CLONE_NEWNS, "cgroup": unix.CLONE_NEWCGROUP, "UTS": unix.CLONE_NEWUTS, "IPC": unix.CLONE_NEWIPC,
		"user": unix.CLONE_NEWUSER, "PID": unix.CLONE_NEWPID, "network": unix.CLONE_NEWNET, "time": unix.CLONE_NEWTIME,
		"user and mount": unix.CLONE_NEWUSER | unix.CLONE_NEWNS,
	} {
		list = append(list, attack{name: "unshare " + name, errno: unix.EPERM, do: func(*scene) error {
			return looked(call(unix.SYS_UNSHARE, flag))
		}})
		if flag == unix.CLONE_NEWTIME {
			continue // clone takes its bit for a part of the exit signal.
		}
		list = append(list, attack{name: "clone " + name, errno: unix.EPERM, do: func(*scene) error {
			cmd := exec.Command("/bin/true")
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: flag}
			return cmd.Run()
		}})
	}
	return append(list, attack{name: "unshare with garbage above the flags", errno: unix.EPERM, do: func(*scene) error {
		return looked(call(unix.SYS_UNSHARE, unix.CLONE_NEWNET|0x1234<<32))
	}})
}

// familyAttacks make sockets that reach more than a network of one's own.
func familyAttacks() []attack {
	var list []attack
	add := func(name string, number, family, kind, protocol uintptr) {
		a := attack{name: name, errno: unix.EAFNOSUPPORT, do: func(*scene) error {
			var pair [2]int32
			fd, _, errno := unix.Syscall6(number, family, kind, protocol, uintptr(unsafe.Pointer(&pair)), 0, 0)
			if errno == 0 {
				_ = unix.Close(int(fd))
				return nil
			}
			return errno
		}}
		if number == unix.SYS_SOCKET {
			a.fallbackErrno = unix.EACCES
		}
		list = append(list, a)
	}
	for name, family := range map[string]uintptr{
		"netlink": unix.AF_NETLINK, "packet": unix.AF_PACKET, "vsock": unix.AF_VSOCK, "alg": unix.AF_ALG, "bluetooth": unix.AF_BLUETOOTH,
		"can": unix.AF_CAN, "xdp": unix.AF_XDP, "key": unix.AF_KEY, "tipc": unix.AF_TIPC, "nfc": unix.AF_NFC, "kcm": unix.AF_KCM,
		"rds": unix.AF_RDS, "smc": unix.AF_SMC, "qipcrtr": unix.AF_QIPCRTR, "x25": unix.AF_X25, "appletalk": unix.AF_APPLETALK,
		"pppox": unix.AF_PPPOX, "llc": unix.AF_LLC, "netlink with garbage above": unix.AF_NETLINK | 1<<32,
	} {
		kinds := map[string]uintptr{"alg": unix.SOCK_SEQPACKET, "vsock": unix.SOCK_STREAM, "xdp": unix.SOCK_RAW, "smc": unix.SOCK_STREAM}
		kind, ok := kinds[name]
		if !ok {
			kind = unix.SOCK_RAW
		}
		add("socket "+name, unix.SYS_SOCKET, family, kind, 0)
	}
	add("socketpair tipc", unix.SYS_SOCKETPAIR, unix.AF_TIPC, unix.SOCK_STREAM, 0)
	add("socketpair inet", unix.SYS_SOCKETPAIR, unix.AF_INET, unix.SOCK_STREAM, 0)
	add("socketpair vsock", unix.SYS_SOCKETPAIR, unix.AF_VSOCK, unix.SOCK_STREAM, 0)
	return list
}
