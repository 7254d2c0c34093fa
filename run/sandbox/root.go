package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-faster/errors"
	"golang.org/x/sys/unix"
)

// systemDirs hold programs and libraries. On most systems some of them are
// symbolic links into /usr, which stay such.
var systemDirs = []string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}

// configuration is what programs need of /etc: to find libraries, other
// programs of the same name, certificates, services and the time zone. What
// says who uses this machine is made up instead.
var configuration = []string{
	"/etc/alternatives", "/etc/ca-certificates", "/etc/crypto-policies", "/etc/debian_version", "/etc/fonts", "/etc/ld.so.cache",
	"/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime", "/etc/mime.types", "/etc/nsswitch.conf", "/etc/os-release", "/etc/pki",
	"/etc/protocols", "/etc/services", "/etc/ssl",
	// The JDKs of distributions do not start without theirs.
	"/etc/java", "/etc/java-8-openjdk", "/etc/java-11-openjdk", "/etc/java-17-openjdk", "/etc/java-21-openjdk", "/etc/java-25-openjdk",
}

// devices are the files of /dev that give nothing away.
var devices = []string{"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"}

// The bounds of what a command may keep in memory as files.
const (
	tmpOptions = "mode=1777,size=1g,nr_inodes=200k"
	shmOptions = "mode=1777,size=512m,nr_inodes=20k"
	// rootOptions bound the folders and small files of the root itself.
	rootOptions = "mode=755,size=1m,nr_inodes=1k"
)

// tree is a part of the host's file system that is not mounted anywhere yet.
type tree struct {
	fd   int
	path string // where it is to be
	dir  bool
}

// root is the file system of a command in the making. Everything of the host is
// taken first, while this process is still the server's user, who may reach it.
type root struct {
	trees []tree
	links [][2]string // symbolic links: where, to what
	spec  *spec
}

// takeRoot takes what the command is to see of the host.
func takeRoot(s *spec) (*root, error) {
	r := &root{spec: s}
	readOnly := uint64(unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV)
	for _, path := range append(append([]string{}, systemDirs...), configuration...) {
		if err := r.take(path, readOnly, false); err != nil {
			return nil, err
		}
	}
	for _, path := range devices {
		if err := r.take(path, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC, false); err != nil {
			return nil, err
		}
	}
	for _, path := range s.Read {
		if err := r.take(path, readOnly, true); err != nil {
			return nil, err
		}
	}
	return r, r.take(s.Dir, unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NODEV, true)
}

// take takes the tree at path. One that does not exist is an error only when it
// is needed.
func (r *root) take(path string, attributes uint64, needed bool) error {
	info, err := os.Lstat(path)
	if os.IsNotExist(err) && !needed {
		return nil
	}
	if err == nil && info.Mode()&os.ModeSymlink != 0 {
		if needed {
			return errors.Errorf("%s is a symbolic link", path)
		}
		target, err := os.Readlink(path)
		r.links = append(r.links, [2]string{path, target})
		return err
	}
	if err != nil {
		return err
	}
	fd, err := unix.OpenTree(unix.AT_FDCWD, path, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE|unix.AT_SYMLINK_NOFOLLOW)
	if err != nil {
		return errors.Wrapf(err, "take %s", path)
	}
	attr := unix.MountAttr{Attr_set: attributes, Propagation: unix.MS_PRIVATE}
	if err := unix.MountSetattr(fd, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE, &attr); err != nil {
		return errors.Wrapf(err, "restrict %s", path)
	}
	r.trees = append(r.trees, tree{fd, path, info.IsDir()})
	return nil
}

// begin makes an empty root that belongs to the command's user and goes there.
// The way there may be closed to that user.
func (r *root) begin() error {
	// Nothing that is mounted from here on is to be seen outside.
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return errors.Wrap(err, "private mounts")
	}
	// The workspace is a directory that is there for sure; it was taken already.
	base := r.spec.Dir
	options := rootOptions + fmt.Sprintf(",uid=%d,gid=%d", r.spec.UID, r.spec.GID)
	if err := unix.Mount("tmpfs", base, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, options); err != nil {
		return errors.Wrap(err, "new root")
	}
	return unix.Chdir(base)
}

// enter builds the root out of what was taken and makes it this process's, with
// the host's out of reach.
func (r *root) enter() error {
	if err := r.fill("."); err != nil {
		return err
	}
	// Old and new root in one place: the old one then lies on top, and goes.
	if err := unix.PivotRoot(".", "."); err != nil {
		return errors.Wrap(err, "pivot_root")
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return errors.Wrap(err, "leave the host's root")
	}
	attr := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", 0, &attr); err != nil {
		return errors.Wrap(err, "read-only root")
	}
	return unix.Chdir(r.spec.Dir)
}

func (r *root) fill(base string) error {
	for _, dir := range []string{"/proc", "/tmp", "/dev/pts", "/dev/shm", "/var", "/etc"} {
		if err := os.MkdirAll(base+dir, 0o750); err != nil {
			return err
		}
	}
	for _, m := range []struct {
		kind, path, options string
		flags               uintptr
	}{
		{"proc", "/proc", "", unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC},
		{"tmpfs", "/tmp", tmpOptions, unix.MS_NOSUID | unix.MS_NODEV},
		{"tmpfs", "/dev/shm", shmOptions, unix.MS_NOSUID | unix.MS_NODEV},
		{"devpts", "/dev/pts", "newinstance,ptmxmode=0666,mode=620", unix.MS_NOSUID | unix.MS_NOEXEC},
	} {
		if err := unix.Mount(m.kind, base+m.path, m.kind, m.flags, m.options); err != nil {
			return errors.Wrapf(err, "mount %s", m.path)
		}
	}
	r.links = append(r.links, [][2]string{
		{"/dev/ptmx", "pts/ptmx"}, {"/dev/fd", "/proc/self/fd"}, {"/dev/stdin", "/proc/self/fd/0"},
		{"/dev/stdout", "/proc/self/fd/1"}, {"/dev/stderr", "/proc/self/fd/2"}, {"/var/tmp", "/tmp"},
	}...)
	for _, l := range r.links {
		if err := os.MkdirAll(filepath.Dir(base+l[0]), 0o750); err != nil {
			return err
		}
		if err := os.Symlink(l[1], base+l[0]); err != nil {
			return err
		}
	}
	if err := r.identify(base); err != nil {
		return err
	}
	return r.plant(base)
}

// identify writes the files that say who the command is, and where.
func (r *root) identify(base string) error {
	for path, content := range map[string]string{
		"/etc/passwd": "agent:x:1000:1000:agent:" + r.spec.Dir + ":/bin/sh\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
		"/etc/group":  "agent:x:1000:\nnogroup:x:65534:\n",
		"/etc/hosts":  "127.0.0.1 localhost\n::1 localhost\n",
	} {
		if err := os.WriteFile(base+path, []byte(content), 0o600); err != nil {
			return err
		}
	}
	return nil
}

// plant puts the trees of the host in their places, the workspace last: it may
// lie below another one, in which the data directory is then hidden first.
func (r *root) plant(base string) error {
	for i, t := range r.trees {
		if i == len(r.trees)-1 {
			if err := r.hide(base); err != nil {
				return err
			}
		}
		if err := place(base+t.path, t.dir); err != nil {
			return err
		}
		if err := unix.MoveMount(t.fd, "", unix.AT_FDCWD, base+t.path, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return errors.Wrapf(err, "mount %s", t.path)
		}
		_ = unix.Close(t.fd)
	}
	return nil
}

// place makes what a tree is mounted on, unless it is there.
func place(path string, dir bool) error {
	if _, err := os.Lstat(path); err == nil {
		return nil
	}
	if dir {
		return os.MkdirAll(path, 0o750)
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return err
	}
	return os.WriteFile(path, nil, 0o600)
}

// hide covers the data directory where a tree of the host shows it.
func (r *root) hide(base string) error {
	if r.spec.Hide == "" {
		return nil
	}
	for _, t := range r.trees[:len(r.trees)-1] {
		switch {
		case within(t.path, r.spec.Hide):
			return errors.Errorf("%s lies in the data directory", t.path)
		case within(r.spec.Hide, t.path):
			return unix.Mount("tmpfs", base+r.spec.Hide, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, rootOptions)
		}
	}
	return nil
}

// within says whether path is dir or lies below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}
