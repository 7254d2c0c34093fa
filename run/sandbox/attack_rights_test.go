package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attackLimits are the limits that the attacks try to get out of.
var attackLimits = Limits{Processes: 4000, OpenFiles: 500, FileSize: 200 << 20}

// ipcAttacks reach what programs of the host share by a number or a name.
func ipcAttacks() []attack {
	get := func(name string, number uintptr, size uintptr) attack {
		return attack{name: "System V " + name, do: func(s *scene) error { return errnoError(call(number, uintptr(s.Key), size, 0)) }}
	}
	return []attack{
		get("memory", unix.SYS_SHMGET, 0), get("semaphores", unix.SYS_SEMGET, 0), get("messages", unix.SYS_MSGGET, 0),
		{name: "System V memory by its number", do: func(s *scene) error {
			address, _, errno := unix.Syscall(unix.SYS_SHMAT, uintptr(s.Shared), 0, 0)
			if errno == 0 {
				_ = call(unix.SYS_SHMDT, address)
			}
			return errnoError(errno)
		}},
		{name: "System V memory of any number", do: func(s *scene) error {
			const info = 14 // SHM_INFO: returns the highest index in use
			var text [256]byte
			highest, _, errno := unix.Syscall(unix.SYS_SHMCTL, 0, info, uintptr(unsafe.Pointer(&text)))
			if errno != 0 {
				return errno
			}
			const stat = 13 // SHM_STAT: returns the number for an index
			for i := range highest + 1 {
				if errno := call(unix.SYS_SHMCTL, i, stat, uintptr(unsafe.Pointer(&text))); errno == 0 {
					return nil
				}
			}
			return errNothing
		}},
		{name: "System V message", do: func(s *scene) error {
			id, _, errno := unix.Syscall(unix.SYS_MSGGET, uintptr(s.Key), 0, 0)
			if errno != 0 {
				return errno
			}
			message := [4]uintptr{1}
			return errnoError(call(unix.SYS_MSGSND, id, uintptr(unsafe.Pointer(&message)), 8, unix.IPC_NOWAIT))
		}},
		{name: "make System V memory for others", do: func(s *scene) error {
			if s.Level == Full {
				return errOwnProcess // It is in a namespace of its own.
			}
			id, _, errno := unix.Syscall(unix.SYS_SHMGET, unix.IPC_PRIVATE, 4096, 0o666)
			if errno != 0 {
				return errno
			}
			return errnoError(call(unix.SYS_SHMCTL, id, unix.IPC_RMID, 0))
		}},
		{name: "POSIX queue", do: func(s *scene) error {
			name, _ := unix.BytePtrFromString(s.Queue)
			fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(name)), unix.O_RDWR|unix.O_CLOEXEC, 0, 0, 0, 0)
			if errno == 0 {
				_ = unix.Close(int(fd))
			}
			return errnoError(errno)
		}},
		{name: "delete a POSIX queue", do: func(s *scene) error {
			// One that is not there: the queue itself is root's.
			name, _ := unix.BytePtrFromString(s.Queue + "-none")
			if errno := call(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(name))); errno != unix.ENOENT || s.Level == Full {
				return errno
			}
			return nil
		}},
		{name: "key of the session", errno: unix.EPERM, do: func(*scene) error {
			_, err := unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, true)
			return err
		}},
	}
}

// limitAttacks get more of the machine than the limits give.
func limitAttacks() []attack {
	var all []attack
	for name, limit := range map[string]struct {
		resource int
		value    uint64
	}{
		"core dumps": {unix.RLIMIT_CORE, 1 << 20}, "open files": {unix.RLIMIT_NOFILE, 1000},
		"file size": {unix.RLIMIT_FSIZE, 1 << 40}, "processes": {unix.RLIMIT_NPROC, 8000},
		"nice": {unix.RLIMIT_NICE, 40}, "real time": {unix.RLIMIT_RTPRIO, 99},
	} {
		raise := syscall.Rlimit{Cur: limit.value, Max: limit.value}
		all = append(all,
			attack{name: "raise the limit of " + name, errno: unix.EPERM, do: func(*scene) error {
				return errnoError(call(unix.SYS_PRLIMIT64, 0, uintptr(limit.resource), uintptr(unsafe.Pointer(&raise)), 0))
			}},
			attack{name: "raise the limit of " + name + " by the old call", errno: unix.EPERM, do: func(*scene) error {
				return errnoError(call(unix.SYS_SETRLIMIT, uintptr(limit.resource), uintptr(unsafe.Pointer(&raise))))
			}})
	}
	return append(all,
		attack{name: "a longer file than allowed", do: func(*scene) error {
			defer os.Remove("long")
			if err := os.WriteFile("long", nil, 0o600); err != nil {
				return err
			}
			// The program, and so its child, does not end by the signal.
			return os.Truncate("long", 300<<20)
		}},
		attack{name: "a higher priority", do: func(*scene) error { return unix.Setpriority(unix.PRIO_PROCESS, 0, -5) }},
		attack{name: "real-time disk priority", errno: unix.EPERM, do: func(*scene) error {
			const who, realTime = 1, 1 << 13
			return errnoError(call(unix.SYS_IOPRIO_SET, who, 0, realTime))
		}},
		attack{name: "real-time scheduling", do: func(*scene) error {
			priority := int32(1)
			const fifo = 1
			return errnoError(call(unix.SYS_SCHED_SETSCHEDULER, 0, fifo, uintptr(unsafe.Pointer(&priority))))
		}},
		attack{name: "more locked memory than allowed", do: func(*scene) error {
			var limit unix.Rlimit
			if err := unix.Getrlimit(unix.RLIMIT_MEMLOCK, &limit); err != nil || limit.Max > 1<<30 {
				return errors.Join(err, errNothing)
			}
			memory, err := unix.Mmap(-1, 0, int(limit.Max)+1<<20, unix.PROT_READ, unix.MAP_ANON|unix.MAP_PRIVATE)
			if err != nil {
				return err
			}
			return errors.Join(unix.Mlock(memory), unix.Munmap(memory))
		}},
		attack{name: "a core dump", do: func(*scene) error {
			_ = os.Mkdir("dumps", 0o700)
			_ = exec.Command("sh", "-c", "cd dumps && ulimit -c unlimited; kill -ABRT $$").Run()
			return list("dumps")
		}},
		attack{name: "to be the last to end for want of memory", do: func(*scene) error {
			return os.WriteFile("/proc/self/oom_score_adj", []byte("-1"), 0)
		}},
		attack{name: "huge pages", do: func(*scene) error {
			const hugeTLB = 0o4000
			return errnoError(call(unix.SYS_SHMGET, unix.IPC_PRIVATE, 2<<20, hugeTLB|unix.IPC_CREAT|0o600))
		}},
	)
}

// rightAttacks become another user or get rights.
func rightAttacks() []attack {
	var all []attack
	add := func(name string, do func(s *scene) error) { all = append(all, attack{name: "become: " + name, do: do}) }
	add("root", func(*scene) error { return errnoError(call(unix.SYS_SETUID, 0)) })
	add("root for a while", func(*scene) error { return errnoError(call(unix.SYS_SETRESUID, noNumber, 0, noNumber)) })
	add("another user", func(*scene) error { return errnoError(call(unix.SYS_SETRESUID, 12345, 12345, 12345)) })
	add("root's group", func(*scene) error { return errnoError(call(unix.SYS_SETGID, 0)) })
	add("a member of groups", func(*scene) error {
		group := uint32(0)
		return errnoError(call(unix.SYS_SETGROUPS, 1, uintptr(unsafe.Pointer(&group))))
	})
	add("another user for files", func(*scene) error {
		_ = call(unix.SYS_SETFSUID, 0)
		// The call returns what was before, and never an error.
		now, _, _ := unix.Syscall(unix.SYS_SETFSUID, noNumber, 0, 0)
		if now != 0 {
			return unix.EPERM
		}
		return nil
	})
	add("capable", func(*scene) error {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		data := [2]unix.CapUserData{{Effective: 1 << unix.CAP_CHOWN, Permitted: 1 << unix.CAP_CHOWN}}
		return unix.Capset(&header, &data[0])
	})
	add("able to get new rights", func(*scene) error {
		return unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_WAKE_ALARM, 0, 0, 0)
	})
	add("a giver of files", func(s *scene) error {
		return errors.Join(os.WriteFile("given", nil, 0o600), os.Chown("given", 12345, 12345))
	})
	for _, program := range []string{"setuid", "capable"} {
		add("powerful by the program "+program, func(s *scene) error {
			name := "become: powerful by the program " + program
			if !slices.Contains(s.Only, name) {
				return s.again(name, "./"+program)
			}
			if os.Geteuid() == 0 && os.Getuid() != 0 || hasCapabilities() {
				return nil
			}
			return unix.EPERM
		})
	}
	return all
}

// hasCapabilities says whether this thread has any.
func hasCapabilities() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	return unix.Capget(&header, &data[0]) == nil && data[0].Permitted|data[1].Permitted != 0
}

// programAttacks do by another program what the attacker itself must not do.
func programAttacks() []attack {
	inner := []string{"read a file for all to read", "change: write a file", "kill of another process", "call mount", "unshare user"}
	var all []attack
	for how, do := range otherPrograms {
		// The first of them tries all, in one process.
		var errs map[string]error
		for _, name := range inner {
			all = append(all, attack{name: name + ", by " + how, do: func(s *scene) error {
				if errs == nil {
					errs = do(s, inner)
				}
				if err, ok := errs[name]; ok {
					return err
				}
				return errNoAnswer
			}})
		}
	}
	return append(all, attack{name: "read a file for all to read, by a library", do: func(s *scene) error {
		if s.Preload == "" {
			return errNothing
		}
		cmd := exec.Command("true")
		cmd.Env = []string{"LD_PRELOAD=" + s.Preload, "SECRET=" + s.Secrets[2]}
		return s.wantToken(cmd.Output())
	}})
}

// otherPrograms are ways to become a program that nobody has confined as such.
var otherPrograms = map[string]func(s *scene, names []string) map[string]error{
	"a program in memory": func(s *scene, names []string) map[string]error {
		fd, err := unix.MemfdCreate("program", 0)
		if err != nil {
			return map[string]error{names[0]: err}
		}
		defer unix.Close(fd)
		program, err := os.ReadFile("attacker")
		if err == nil {
			_, err = unix.Write(fd, program)
		}
		if err != nil {
			return map[string]error{names[0]: err}
		}
		// By its number, since /proc is not there at every level.
		return s.against(names, "./attacker", "fexecve", fmt.Sprint(fd))
	},
	"a process that daemonises": func(s *scene, names []string) map[string]error {
		return s.against(names, "setsid", "-w", "sh", "-c", "./attacker & wait")
	},
	"another personality": func(s *scene, names []string) map[string]error {
		return s.against(names, "./attacker", "personality")
	},
	"the loader": func(s *scene, names []string) map[string]error {
		return s.against(names, s.Loader, "./attacker")
	},
	"a program with a filter of its own": func(s *scene, names []string) map[string]error {
		return s.against(names, "./attacker", "filter")
	},
}

// changeShape makes the attacker another kind of program first, if its
// arguments say so; it then does not return.
func changeShape() {
	if len(os.Args) < 2 {
		return
	}
	runtime.LockOSThread()
	path, dir, flags := "./attacker", unix.AT_FDCWD, 0
	switch os.Args[1] {
	case "personality":
		const readImpliesExec = 0x0400000
		_ = call(unix.SYS_PERSONALITY, readImpliesExec)
	case "filter":
		_ = unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
		all := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW}
		program := unix.SockFprog{Len: 1, Filter: &all}
		_ = call(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	case "fexecve":
		path, flags = "", unix.AT_EMPTY_PATH
		_, _ = fmt.Sscan(os.Args[2], &dir)
	}
	name, _ := unix.BytePtrFromString(path)
	arguments, _ := syscall.SlicePtrFromStrings([]string{"attacker"})
	environment, _ := syscall.SlicePtrFromStrings(os.Environ())
	panic(call(unix.SYS_EXECVEAT, uintptr(dir), uintptr(unsafe.Pointer(name)), uintptr(unsafe.Pointer(&arguments[0])),
		uintptr(unsafe.Pointer(&environment[0])), uintptr(flags)))
}
