package sandbox

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// changeAttacks change the host's files, other than those with the token, and
// run programs there.
func changeAttacks() []attack {
	all := []attack{}
	add := func(name string, do func(s *scene) error) { all = append(all, attack{name: "change: " + name, do: do}) }
	add("write a file", func(s *scene) error { return open(s.in("writable"), unix.O_WRONLY) })
	add("append to a file", func(s *scene) error { return open(s.in("writable"), unix.O_WRONLY|unix.O_APPEND) })
	add("write an own file", func(s *scene) error { return open(s.Owned, unix.O_RDWR) })
	add("truncate a file by its name", func(s *scene) error { return os.Truncate(s.in("writable"), 1) })
	add("truncate a file as it is opened", func(s *scene) error { return open(s.in("writable"), unix.O_RDONLY|unix.O_TRUNC) })
	add("make a file", func(s *scene) error { return open(s.in("made"), unix.O_WRONLY|unix.O_CREAT) })
	add("make a file without a name", func(s *scene) error { return open(s.Public, unix.O_WRONLY|unix.O_TMPFILE) })
	add("make a file in another workspace", func(s *scene) error { return open(filepath.Join(s.Other, "made"), unix.O_WRONLY|unix.O_CREAT) })
	add("make a folder", func(s *scene) error { return os.Mkdir(s.in("made-folder"), 0o700) })
	add("make a workspace", func(s *scene) error {
		if err := os.Mkdir(filepath.Join(filepath.Dir(s.Dir), "made"), 0o700); err != nil {
			return err
		}
		// At the level full the folder above is the command's own, and not the host's.
		return listed(s.Other)
	})
	add("make a pipe", func(s *scene) error { return unix.Mkfifo(s.in("made-pipe"), 0o600) })
	add("make a socket", func(s *scene) error { return unix.Mknod(s.in("made-socket"), unix.S_IFSOCK|0o600, 0) })
	add("make a symbolic link", func(s *scene) error { return os.Symlink("secret", s.in("made-link")) })
	add("link a file of the host into the workspace", func(s *scene) error {
		return errors.Join(os.Link(s.Owned, "linked-in"), open("linked-in", unix.O_RDONLY))
	})
	add("link a file of the workspace out of it", func(s *scene) error { return os.Link("attacker", s.in("linked-out")) })
	add("move a file out of the workspace", func(s *scene) error {
		return errors.Join(os.WriteFile("moved", nil, 0o600), os.Rename("moved", s.in("moved")))
	})
	add("move a file into the workspace", func(s *scene) error { return os.Rename(s.in("fifo"), "moved-in") })
	add("exchange a file with the host's", func(s *scene) error {
		if err := os.WriteFile("exchanged", nil, 0o600); err != nil {
			return err
		}
		return unix.Renameat2(unix.AT_FDCWD, "exchanged", unix.AT_FDCWD, s.Owned, unix.RENAME_EXCHANGE)
	})
	add("move the workspace", func(s *scene) error {
		away := s.Dir + "-away"
		if err := os.Rename(s.Dir, away); err != nil {
			return err
		}
		return os.Rename(away, s.Dir)
	})
	add("delete a file", func(s *scene) error { return os.Remove(s.in("doomed")) })
	add("delete a folder", func(s *scene) error { return unix.Rmdir(s.in("doomed-folder")) })
	add("run a program", func(s *scene) error { return s.again("change: write a file", s.in("program")) })
	return all
}

func second[T any](_ T, err error) error { return err }

// in is the path of a file in the folder that is everybody's.
func (s *scene) in(name string) string { return filepath.Join(s.Public, name) }

// Landlock, without namespaces, decides about opening, making, moving and
// deleting files. What it does not decide about, the level landlock lets
// through: names, sizes, times and permissions of files, as far as the host's
// own permissions give them. At the level full these files do not exist.
const (
	whyStat   = "stat: Landlock does not decide about a file's size, times and owner"
	whyChange = "chmod and utimes: Landlock does not decide about the permissions and times of the user's own files"
	whyAccess = "access: Landlock does not decide about whether a file or a process is there"
	whyList   = "listing: Landlock does not hide a name or a link's target from who asks for it by another way than opening the folder"
)

// metadataAttacks learn of files, or change what is not their content.
func metadataAttacks() []attack {
	all := []attack{}
	add := func(name, why string, do func(s *scene) error) {
		all = append(all, attack{name: "metadata: " + name, metadata: why, do: do})
	}
	add("stat", whyStat, func(s *scene) error { return unix.Stat(s.Secrets[2], &unix.Stat_t{}) })
	add("stat in another workspace", whyStat, func(s *scene) error { return unix.Stat(s.Secrets[0], &unix.Stat_t{}) })
	add("statx", whyStat, func(s *scene) error {
		return unix.Statx(unix.AT_FDCWD, s.Secrets[2], 0, unix.STATX_ALL, &unix.Statx_t{})
	})
	add("statfs", whyStat, func(s *scene) error { return unix.Statfs(s.Public, &unix.Statfs_t{}) })
	add("open a path", whyStat, func(s *scene) error { return open(s.Secrets[2], unix.O_PATH) })
	add("chmod", whyChange, func(s *scene) error { return os.Chmod(s.Owned, 0o600) })
	add("chmod of a folder", whyChange, func(s *scene) error { return os.Chmod(s.in("empty"), 0o777) })
	add("chown", whyChange, func(s *scene) error { return os.Chown(s.Owned, -1, os.Getegid()) })
	add("utimes", whyChange, func(s *scene) error { return os.Chtimes(s.Owned, time.Unix(1, 0), time.Unix(1, 0)) })
	add("access", whyAccess, func(s *scene) error { return unix.Access(s.Secrets[2], unix.R_OK) })
	add("access to what is not open to all", whyAccess, func(*scene) error { return unix.Access("/etc/shadow", unix.F_OK) })
	add("enter a folder", whyAccess, func(s *scene) error {
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return err
		}
		return unix.Chdir(s.Public)
	})
	for name, do := range map[string]func(pid int) error{
		"pidfd_open": func(pid int) error {
			fd, err := unix.PidfdOpen(pid, 0)
			if err == nil {
				_ = unix.Close(fd)
			}
			return err
		},
		"getsid":            func(pid int) error { return second(unix.Getsid(pid)) },
		"getpriority":       func(pid int) error { return second(unix.Getpriority(unix.PRIO_PROCESS, pid)) },
		"sched_getaffinity": func(pid int) error { return unix.SchedGetaffinity(pid, &unix.CPUSet{}) },
	} {
		add("a process is there, by "+name, whyAccess, func(s *scene) error { return do(s.Victim) })
	}
	add("read a link", whyList, func(s *scene) error {
		_, err := os.Readlink(s.in("link"))
		return err
	})
	add("watch a folder", whyList, func(s *scene) error {
		fd, err := unix.InotifyInit1(unix.IN_CLOEXEC)
		if err != nil {
			return err
		}
		defer unix.Close(fd)
		_, err = unix.InotifyAddWatch(fd, s.Public, unix.IN_CREATE)
		return err
	})
	// These hold content of the attacker's choice, and are refused.
	add("set an attribute", "", func(s *scene) error { return unix.Setxattr(s.Owned, "user.attack", []byte("x"), 0) })
	add("set an attribute of a link", "", func(s *scene) error { return unix.Lsetxattr(s.Owned, "user.attack2", []byte("x"), 0) })
	add("list attributes", "", func(s *scene) error {
		_, err := unix.Listxattr(s.Owned, make([]byte, 1024))
		return err
	})
	add("change an access list", "", func(s *scene) error {
		// Version 2: owner, group, others, all read only.
		list := []byte{2, 0, 0, 0}
		for _, tag := range []byte{1, 4, 32} {
			list = append(list, tag, 0, 4, 0, 0xff, 0xff, 0xff, 0xff)
		}
		return unix.Setxattr(s.Owned, "system.posix_acl_access", list, 0)
	})
	return all
}
