package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// errNothing says that what was reached is not what was looked for.
var errNothing = errors.New("there is nothing of it")

// wantToken returns nil if a text that was read holds the token.
func (s *scene) wantToken(text []byte, err error) error {
	if err == nil && !strings.Contains(string(text), s.Token) {
		err = errNothing
	}
	return err
}

func (s *scene) read(path string) error {
	return s.wantToken(os.ReadFile(path))
}

// list returns nil if a folder could be listed and is not empty.
func list(path string) error {
	entries, err := os.ReadDir(path)
	if err == nil && len(entries) == 0 {
		err = errNothing
	}
	return err
}

// listed returns nil if a folder could be listed and names the path.
func listed(path string) error {
	entries, err := os.ReadDir(filepath.Dir(path))
	for _, e := range entries {
		if e.Name() == filepath.Base(path) {
			return nil
		}
	}
	return errors.Join(err, errNothing)
}

// open returns nil if a file could be opened.
func open(path string, flags int) error {
	fd, err := unix.Open(path, flags|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0o600)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// hiddenFileAttacks read files that hold the token.
func hiddenFileAttacks() []attack {
	var all []attack
	for i, name := range []string{"another run's file", "the data file", "a file for all to read", "a file in /dev/shm", "a file in /var/tmp", "a file in /run"} {
		all = append(all, attack{name: "read " + name, do: func(s *scene) error { return s.read(s.Secrets[i]) }})
	}
	return append(all,
		attack{name: "list another run's workspace", do: func(s *scene) error { return list(s.Other) }},
		attack{name: "list all workspaces", do: func(s *scene) error { return listed(s.Other) }},
		attack{name: "list the data directory", do: func(s *scene) error { return listed(filepath.Join(s.Data, "agentrun.db")) }},
		attack{name: "list the host's /tmp", do: func(s *scene) error { return listed(s.Public) }},
		attack{name: "list the host's /var/tmp", do: func(s *scene) error { return listed(s.Secrets[4]) }},
		attack{name: "list the host's /dev/shm", do: func(s *scene) error { return listed(s.Secrets[3]) }},
		attack{name: "map a file of the host", do: func(s *scene) error {
			fd, err := unix.Open(s.Secrets[2], unix.O_RDONLY, 0)
			if err != nil {
				return err
			}
			memory, err := unix.Mmap(fd, 0, 4096, unix.PROT_READ, unix.MAP_SHARED)
			return s.wantToken(memory, err)
		}},
		attack{name: "cat a file of the host", do: func(s *scene) error {
			return s.wantToken(exec.Command("cat", s.Secrets[2]).Output())
		}},
		attack{name: "open a pipe of the host", do: func(s *scene) error { return open(filepath.Join(s.Public, "fifo"), unix.O_RDWR) }},
		attack{name: "read the server's program through its process", do: func(s *scene) error {
			return open(fmt.Sprintf("/proc/%d/exe", s.Server), unix.O_RDONLY)
		}},
	)
}

// hostFileAttacks reach for what every machine has.
func hostFileAttacks() []attack {
	var all []attack
	for _, path := range []string{"/etc/shadow", "/etc/gshadow", "/etc/hostname", "/etc/fstab", "/etc/machine-id", "/proc/1/environ", "/proc/kmsg",
		"/proc/kcore", "/proc/1/mem", "/proc/sysrq-trigger", "/sys/kernel/uevent_seqnum", "/var/lib/dpkg/status", "/root/.bashrc"} {
		all = append(all, attack{name: "open " + path, do: func(*scene) error { return open(path, unix.O_RDONLY) }})
	}
	for _, path := range []string{"/root", "/home", "/sys", "/sys/fs/cgroup", "/boot", "/run", "/srv", "/opt", "/mnt", "/var/log", "/var/lib", "/etc/ssh", "/proc/1/fd", "/proc/1/root", "/proc/1/cwd"} {
		all = append(all, attack{name: "list " + path, do: func(*scene) error { return list(path) }})
	}
	for _, dir := range []string{"/", "/usr", "/usr/local/bin", "/etc", "/var", "/home", "/root", "/proc", "/dev/pts"} {
		// A file without a name, which leaves nothing behind.
		all = append(all, attack{name: "make a file in " + dir, do: func(*scene) error {
			return open(dir, unix.O_TMPFILE|unix.O_WRONLY)
		}})
	}
	for _, path := range []string{"/usr/bin/env", "/etc/ld.so.cache", "/etc/passwd", "/lib/ld-linux.so.2", "/proc/sys/kernel/core_pattern",
		"/proc/sys/kernel/modprobe", "/proc/sys/kernel/hostname", "/proc/sys/vm/overcommit_memory", "/proc/sys/net/ipv4/ip_forward",
		"/proc/sys/user/max_user_namespaces", "/proc/1/oom_score_adj"} {
		all = append(all, attack{name: "open for writing " + path, do: func(*scene) error { return open(path, unix.O_WRONLY) }})
	}
	return append(all, attack{name: "read the host's /etc/passwd", do: func(*scene) error {
		text, err := os.ReadFile("/etc/passwd")
		if err == nil && !strings.Contains(string(text), "daemon:") {
			err = errNothing
		}
		return err
	}})
}

// deviceAttacks reach for hardware and for the kernel's own devices.
func deviceAttacks() []attack {
	var all []attack
	for _, path := range []string{"/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/net/tun", "/dev/loop-control",
		"/dev/console", "/dev/tty0", "/dev/vcs", "/dev/hwrng", "/dev/userfaultfd", "/dev/vsock", "/dev/cpu/0/msr", "/dev/snapshot", "/dev/btrfs-control"} {
		all = append(all, attack{name: "open " + path, do: func(*scene) error { return open(path, unix.O_RDONLY) }})
	}
	for name, kind := range map[string]uint32{"block": unix.S_IFBLK, "character": unix.S_IFCHR} {
		all = append(all, attack{name: "make a " + name + " device", do: func(s *scene) error {
			device := unix.Mkdev(1, 11) // the kernel's log
			if kind == unix.S_IFBLK {
				var info unix.Stat_t
				if err := unix.Stat(s.Disk, &info); err == nil {
					device = info.Rdev
				}
			}
			node := "device-" + name
			if err := unix.Mknod(node, kind|0o666, int(device)); err != nil {
				return err
			}
			defer os.Remove(node)
			return open(node, unix.O_RDONLY)
		}})
	}
	return append(all, attack{name: "open a disk", do: func(s *scene) error {
		if s.Disk == "" {
			return errNothing
		}
		return open(s.Disk, unix.O_RDONLY)
	}})
}

// pathAttacks reach the host's files by another way than their names.
func pathAttacks() []attack {
	all := []attack{}
	add := func(name string, do func(s *scene) error) { all = append(all, attack{name: "path: " + name, do: do}) }
	add("beyond the workspace", func(s *scene) error { return s.read("../other/secret") })
	add("beyond the root", func(s *scene) error { return s.read(strings.Repeat("../", 64) + s.Secrets[2]) })
	add("the process's own root", func(s *scene) error { return s.read("/proc/self/root" + s.Secrets[2]) })
	add("the process's own folder", func(s *scene) error { return s.read("/proc/self/cwd/../../agentrun.db") })
	add("the thread's own root", func(s *scene) error { return s.read("/proc/thread-self/root" + s.Secrets[2]) })
	add("a symbolic link to a file", func(s *scene) error {
		_ = os.Remove("to-file")
		return errors.Join(os.Symlink(s.Secrets[0], "to-file"), s.read("to-file"))
	})
	add("a symbolic link to a folder", func(s *scene) error {
		_ = os.Remove("to-folder")
		return errors.Join(os.Symlink(s.Other, "to-folder"), s.read("to-folder/secret"))
	})
	add("a folder's descriptor", func(s *scene) error { return s.readAt(s.Public, "secret") })
	add("a descriptor of the root", func(s *scene) error { return s.readAt("/", strings.TrimPrefix(s.Secrets[2], "/")) })
	add("up from the workspace's descriptor", func(s *scene) error { return s.readAt(".", "../../agentrun.db") })
	add("a descriptor opened again", func(s *scene) error {
		fd, err := unix.Open(s.Secrets[2], unix.O_PATH, 0)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		return s.read(fmt.Sprintf("/proc/self/fd/%d", fd))
	})
	add("openat2", func(s *scene) error {
		fd, err := unix.Openat2(unix.AT_FDCWD, s.Secrets[2], &unix.OpenHow{Flags: unix.O_RDONLY})
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	})
	add("another working directory", func(s *scene) error {
		// Only this thread's: the others share theirs.
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return err
		}
		if err := unix.Chdir(s.Public); err != nil {
			return err
		}
		return s.read("secret")
	})
	add("out of another root", func(s *scene) error {
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return err
		}
		_ = os.Mkdir("jail", 0o700)
		if err := unix.Chroot("jail"); err != nil {
			return err
		}
		return s.read(strings.Repeat("../", 64) + s.Secrets[2])
	})
	add("a file handle", func(s *scene) error {
		handle, _, err := unix.NameToHandleAt(unix.AT_FDCWD, s.Secrets[2], 0)
		if err != nil {
			return err
		}
		dir, err := unix.Open(s.Public, unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		defer unix.Close(dir)
		fd, err := unix.OpenByHandleAt(dir, handle, unix.O_RDONLY)
		if err == nil {
			_ = unix.Close(fd)
		}
		return err
	})
	add("a bind mount", func(s *scene) error {
		_ = os.Mkdir("bound", 0o700)
		if err := unix.Mount(s.Public, filepath.Join(s.Dir, "bound"), "", unix.MS_BIND, ""); err != nil {
			return err
		}
		err := s.read("bound/secret")
		return errors.Join(err, unix.Unmount(filepath.Join(s.Dir, "bound"), unix.MNT_DETACH))
	})
	add("a detached mount", func(s *scene) error {
		path, _ := unix.BytePtrFromString(s.Public)
		fd, _, errno := unix.Syscall(unix.SYS_OPEN_TREE, unix.AT_FDCWD&(1<<64-1), uintptr(unsafe.Pointer(path)), unix.OPEN_TREE_CLONE)
		if errno != 0 {
			return errno
		}
		defer unix.Close(int(fd))
		return s.readFrom(int(fd), "secret")
	})
	return all
}

// readAt reads a file relative to a folder.
func (s *scene) readAt(dir, name string) error {
	fd, err := unix.Open(dir, unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	return s.readFrom(fd, name)
}

func (s *scene) readFrom(dir int, name string) error {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	text := make([]byte, 256)
	n, err := unix.Read(fd, text)
	return s.wantToken(text[:max(n, 0)], err)
}
