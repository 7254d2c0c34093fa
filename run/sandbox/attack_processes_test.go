package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The signals of attacks whose success only the victim sees, and the one by
// which it knows that no other will come. Programs ignore them.
const (
	signalToAll  = unix.Signal(40)
	signalByFile = unix.Signal(41)
	signalLast   = unix.Signal(42)
)

// errOwnProcess says that a process is one of the sandbox, which it may reach.
var errOwnProcess = errors.New("it is the sandbox's own first process")

// target is a process outside.
type target struct {
	name string
	pid  func(s *scene) (int, error)
}

// targets are a process of the command's own user, the server, and the first
// process, which is the command's parent.
var targets = []target{
	{"another process", func(s *scene) (int, error) { return s.Victim, nil }},
	{"the server", func(s *scene) (int, error) { return s.Server, nil }},
	{"the first process", func(s *scene) (int, error) {
		if s.Level == Full {
			return 0, errOwnProcess // At this level it is confined, and ends with the command.
		}
		return os.Getppid(), nil
	}},
}

// onTargets makes an attack on each of the processes. None changes anything
// that it could not change back: a control is done to them as well.
func onTargets(name string, do func(s *scene, pid int) error) []attack {
	var all []attack
	for _, target := range targets {
		all = append(all, attack{name: name + " of " + target.name, do: func(s *scene) error {
			pid, err := target.pid(s)
			if err != nil {
				return err
			}
			return do(s, pid)
		}})
	}
	return all
}

// processAttacks look into other processes.
func processAttacks() []attack {
	var all []attack
	for _, name := range []string{"environ", "cmdline", "maps", "mem", "status", "fd/0", "exe", "cwd/.", "root/.", "oom_score_adj", "io", "syscall", "stack", "ns/mnt"} {
		all = append(all, onTargets("/proc/…/"+name, func(_ *scene, pid int) error {
			return open(fmt.Sprintf("/proc/%d/%s", pid, name), unix.O_RDONLY)
		})...)
	}
	all = append(all, onTargets("oom_score_adj", func(_ *scene, pid int) error {
		return open(fmt.Sprintf("/proc/%d/oom_score_adj", pid), unix.O_WRONLY)
	})...)
	all = append(all, onTargets("memory writing", func(_ *scene, pid int) error {
		return open(fmt.Sprintf("/proc/%d/mem", pid), unix.O_RDWR)
	})...)
	all = append(all, onTargets("futex list", func(_ *scene, pid int) error {
		var head, length uintptr
		return errnoError(call(unix.SYS_GET_ROBUST_LIST, uintptr(pid), uintptr(unsafe.Pointer(&head)), uintptr(unsafe.Pointer(&length))))
	})...)
	all = append(all, onTargets("page moving", func(_ *scene, pid int) error {
		return errnoError(call(unix.SYS_MOVE_PAGES, uintptr(pid), 0, 0, 0, 0, 0))
	})...)
	return append(all,
		attack{name: "trace another process", errno: unix.EPERM, do: func(s *scene) error {
			// The tracer's end, that of this thread, ends the tracing.
			return errnoError(call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(s.Victim)))
		}},
		attack{name: "read another process's memory", errno: unix.EPERM, do: func(s *scene) error {
			text := make([]byte, len(s.Token))
			_, err := unix.ProcessVMReadv(s.Victim, []unix.Iovec{iovec(text)}, []unix.RemoteIovec{{Base: s.Address, Len: len(text)}}, 0)
			return s.wantToken(text, err)
		}},
		attack{name: "write another process's memory", errno: unix.EPERM, do: func(s *scene) error {
			_, err := unix.ProcessVMWritev(s.Victim, []unix.Iovec{iovec([]byte(s.Token))}, []unix.RemoteIovec{{Base: s.Address, Len: len(s.Token)}}, 0)
			return err
		}},
		attack{name: "read another process's memory as a file", do: func(s *scene) error {
			f, err := os.Open(fmt.Sprintf("/proc/%d/mem", s.Victim))
			if err != nil {
				return err
			}
			defer f.Close()
			text := make([]byte, len(s.Token))
			_, err = f.ReadAt(text, int64(s.Address))
			return s.wantToken(text, err)
		}},
		attack{name: "take another process's descriptor", do: func(s *scene) error {
			fd, err := unix.PidfdOpen(s.Victim, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			_, err = unix.PidfdGetfd(fd, 3, 0)
			return err
		}},
		attack{name: "read another process's open file", do: func(s *scene) error { return s.read(fmt.Sprintf("/proc/%d/fd/3", s.Victim)) }},
		attack{name: "read in another process's folder", do: func(s *scene) error { return s.read(fmt.Sprintf("/proc/%d/cwd/secret", s.Victim)) }},
		attack{name: "read in any process's folder", do: func(s *scene) error { return s.readAny("/proc/[0-9]*/cwd/secret") }},
		attack{name: "read in any process's root", do: func(s *scene) error { return s.readAny("/proc/[0-9]*/root" + s.Secrets[2]) }},
		attack{name: "read any process's environment", do: func(s *scene) error { return s.readAny("/proc/[0-9]*/environ") }},
		attack{name: "read any process's arguments", do: func(s *scene) error { return s.readAny("/proc/[0-9]*/cmdline") }},
		attack{name: "read any process's open files", do: func(s *scene) error { return s.readAny("/proc/[0-9]*/fd/3") }},
		attack{name: "enter another process's namespace", do: func(s *scene) error {
			fd, err := unix.PidfdOpen(s.Victim, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.Setns(fd, unix.CLONE_NEWUTS)
		}},
		attack{name: "compare with another process", errno: unix.EPERM, do: func(s *scene) error {
			return looked(call(unix.SYS_KCMP, uintptr(os.Getpid()), uintptr(s.Victim), 0, 0, 0))
		}},
	)
}

func iovec(b []byte) unix.Iovec {
	v := unix.Iovec{Base: &b[0]}
	v.SetLen(len(b))
	return v
}

func errnoError(errno unix.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// readAny returns nil if one of the files holds the token; the attacker's own
// environment does, and does not count.
func (s *scene) readAny(pattern string) error {
	if s.Level == Off {
		// The control looks at nobody else's processes.
		pattern = strings.Replace(pattern, "[0-9]*", fmt.Sprint(s.Victim), 1)
	}
	paths, err := filepath.Glob(pattern)
	if err != nil {
		return err
	}
	for _, path := range paths {
		// Anything but a file could wait, or be read away from its owner.
		if info, err := os.Stat(path); err != nil || !info.Mode().IsRegular() {
			continue
		}
		if text, err := os.ReadFile(path); err == nil && strings.Contains(string(text), s.Token) && !strings.Contains(string(text), attackVariable) {
			return nil
		}
	}
	return fmt.Errorf("%d files: %w", len(paths), errNothing)
}

// signalAttacks signal other processes, and change how they run.
func signalAttacks() []attack {
	var all []attack
	for name, do := range map[string]func(s *scene, pid int) error{
		"kill":       func(_ *scene, pid int) error { return unix.Kill(pid, 0) },
		"kill group": func(_ *scene, pid int) error { return unix.Kill(-pid, 0) },
		"tgkill":     func(_ *scene, pid int) error { return unix.Tgkill(pid, pid, 0) },
		"tkill":      func(_ *scene, pid int) error { return errnoError(call(unix.SYS_TKILL, uintptr(pid), 0)) },
		"queue signal": func(_ *scene, pid int) error {
			info := [32]int32{0, 0, -1} // from sigqueue
			return errnoError(call(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), 0, uintptr(unsafe.Pointer(&info))))
		},
		"signal by descriptor": func(_ *scene, pid int) error {
			fd, err := unix.PidfdOpen(pid, 0)
			if err != nil {
				return err
			}
			defer unix.Close(fd)
			return unix.PidfdSendSignal(fd, 0, nil, 0)
		},
		"limit": func(_ *scene, pid int) error {
			var now unix.Rlimit
			if err := unix.Prlimit(pid, unix.RLIMIT_CPU, nil, &now); err != nil {
				return err
			}
			return unix.Prlimit(pid, unix.RLIMIT_CPU, &now, nil)
		},
		"priority": func(_ *scene, pid int) error { return unix.Setpriority(unix.PRIO_PROCESS, pid, 0) },
		"processors": func(_ *scene, pid int) error {
			var set unix.CPUSet
			if err := unix.SchedGetaffinity(pid, &set); err != nil {
				return err
			}
			return unix.SchedSetaffinity(pid, &set)
		},
		"scheduling": func(_ *scene, pid int) error {
			return errnoError(call(unix.SYS_SCHED_SETSCHEDULER, uintptr(pid), 0, uintptr(unsafe.Pointer(new(int32)))))
		},
		"scheduling parameters": func(_ *scene, pid int) error {
			return errnoError(call(unix.SYS_SCHED_SETPARAM, uintptr(pid), uintptr(unsafe.Pointer(new(int32)))))
		},
		"scheduling attributes": func(_ *scene, pid int) error {
			return unix.SchedSetAttr(pid, &unix.SchedAttr{Size: unix.SizeofSchedAttr}, 0)
		},
		"disk priority": func(_ *scene, pid int) error {
			const who, bestEffort = 1, 2<<13 | 4
			return errnoError(call(unix.SYS_IOPRIO_SET, who, uintptr(pid), bestEffort))
		},
	} {
		all = append(all, onTargets(name, do)...)
	}
	return append(all,
		attack{name: "signal everyone", signal: signalToAll, harmful: true, do: func(s *scene) error {
			_ = unix.Kill(-1, signalToAll)
			return errNothing // The victim tells whether it arrived.
		}},
		attack{name: "a signal from a socket to another process", signal: signalByFile, do: func(s *scene) error {
			pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
			if err != nil {
				return err
			}
			defer unix.Close(pair[0])
			defer unix.Close(pair[1])
			for command, arg := range map[int]int{unix.F_SETOWN: s.Victim, unix.F_SETSIG: int(signalByFile), unix.F_SETFL: unix.O_ASYNC} {
				if _, err := unix.FcntlInt(uintptr(pair[0]), command, arg); err != nil {
					return err
				}
			}
			_, err = unix.Write(pair[1], []byte("x"))
			return errors.Join(err, errNothing)
		}},
		// As root these would change what the machine's administrator has set.
		attack{name: "priority of every process of the user", harmful: true, do: func(s *scene) error {
			if s.Level == Full {
				return errOwnProcess // The kernel leaves out those of other PID namespaces.
			}
			return unix.Setpriority(unix.PRIO_USER, 0, 0)
		}},
		attack{name: "disk priority of every process of the user", harmful: true, do: func(s *scene) error {
			if s.Level == Full {
				return errOwnProcess
			}
			const whoUser, bestEffort = 3, 2<<13 | 4
			return errnoError(call(unix.SYS_IOPRIO_SET, whoUser, uintptr(os.Getuid()), bestEffort))
		}},
	)
}

// descriptorAttacks look for what the server left open.
func descriptorAttacks() []attack {
	return []attack{
		{name: "an inherited folder, socket or device", do: func(*scene) error {
			for fd := range 1024 {
				var info unix.Stat_t
				if unix.Fstat(fd, &info) != nil {
					continue
				}
				switch kind := info.Mode & unix.S_IFMT; {
				case kind == unix.S_IFDIR, kind == unix.S_IFSOCK, kind == unix.S_IFBLK, kind == unix.S_IFCHR && fd < 3:
					return nil
				}
			}
			return errNothing
		}},
		{name: "a message on an inherited descriptor", do: func(*scene) error {
			for fd := range 16 {
				_, _, _, _, err := unix.Recvmsg(fd, make([]byte, 16), make([]byte, 1024), unix.MSG_DONTWAIT)
				if err == nil || errors.Is(err, unix.EAGAIN) {
					return nil
				}
			}
			return errNothing
		}},
		{name: "more in standard input than was given", do: func(*scene) error {
			// The other end of the pipe is the server's.
			n, err := unix.Write(0, []byte("x"))
			if err == nil && n == 1 {
				return nil
			}
			return err
		}},
	}
}
