package workspace

import (
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
)

// Content is a file of a workspace, open for reading. The caller closes it.
//
// It has Size bytes, those that the file had when it was opened: what a
// program appends later is not read, and a file that became shorter ends with
// ErrCutShort instead of io.EOF. Nothing else holds the file still. What a
// program overwrites while it is read may come out half old and half new.
type Content struct {
	// Size is how many bytes Read returns.
	Size int64
	// Modified is when the file was last written.
	Modified time.Time

	run  uuid.UUID
	path string
	file *os.File
	left int64
}

// OpenFile opens a file in the run's folder. The path is slash-separated and
// relative to the folder, without "." and "..", and UTF-8: a file whose name is
// not cannot be had.
//
// Only a regular file is opened that has one name, on a path without symbolic
// links: not even one that leads to another place in the folder is followed,
// and a file with a second name may be the host's or another run's. Programs
// may rename and replace whatever lies on the path meanwhile. Nothing in a
// workspace makes the call wait.
//
// Errors: ErrInvalidPath; ErrNoFile; ErrFileRefused.
func (s *Store) OpenFile(run uuid.UUID, path string) (*Content, error) {
	content, err := s.openFile(run, path)
	return content, wrap(run, wrapFile(path, err))
}

func wrapFile(path string, err error) error {
	if err == nil {
		return nil
	}
	return errors.Wrapf(err, "file %q", path)
}

func (s *Store) openFile(run uuid.UUID, path string) (*Content, error) {
	names, err := split(path)
	if err != nil {
		return nil, err
	}
	dir, err := enter(s.root, run.String())
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }() // was only read
	for _, name := range names[:len(names)-1] {
		next, err := enter(dir, name)
		if err != nil {
			return nil, err
		}
		_ = dir.Close()
		dir = next
	}
	file, info, err := openPlain(dir, names[len(names)-1])
	if err != nil {
		return nil, err
	}
	return &Content{
		Size: info.Size(), Modified: modified(info), run: run, path: path, file: file, left: info.Size(),
	}, nil
}

// split returns the names of a path below a run's folder. Errors:
// ErrInvalidPath.
func split(path string) ([]string, error) {
	if path == "." || !fs.ValidPath(path) || strings.ContainsRune(path, 0) {
		return nil, errors.Wrap(ErrInvalidPath, "want names in UTF-8 with single slashes between them, relative to the workspace and without . and ..")
	}
	return strings.Split(path, "/"), nil
}

// Read implements io.Reader. Errors other than io.EOF: ErrCutShort.
func (c *Content) Read(p []byte) (int, error) {
	if c.left == 0 {
		return 0, io.EOF
	}
	n, err := c.file.Read(p[:min(int64(len(p)), c.left)])
	c.left -= int64(n)
	switch {
	case errors.Is(err, io.EOF):
		err = errors.Wrapf(ErrCutShort, "%d of %d bytes are not there any more", c.left, c.Size)
	case err != nil:
		err = errors.Errorf("%w: %w", ErrCutShort, err)
	}
	return n, wrap(c.run, wrapFile(c.path, err))
}

// Close implements io.Closer.
func (c *Content) Close() error { return c.file.Close() }

// enter opens the directory name in dir. That os.Root keeps to dir is not
// enough: it follows symbolic links that stay inside, and waits for the other
// end of a FIFO. So what was opened is compared with what has the name, and
// the slash makes the system call refuse everything but a directory.
func enter(dir *os.Root, name string) (*os.Root, error) {
	seen, err := dir.Lstat(name)
	if err != nil {
		return nil, refusal(name, err)
	}
	if !seen.IsDir() {
		if seen.Mode().IsRegular() {
			return nil, ErrNoFile // There is nothing below a file.
		}
		return nil, refuse(name, kindOf(seen))
	}
	return reach(dir, name, seen)
}

// reach opens the directory at path below dir, which has to be the one that
// was seen there.
func reach(dir *os.Root, path string, seen fs.FileInfo) (*os.Root, error) {
	child, err := dir.OpenRoot(path + "/.")
	if err != nil {
		return nil, refusal(path, err)
	}
	opened, err := child.Stat(".")
	if err == nil && !os.SameFile(seen, opened) {
		err = refuse(path, replaced)
	}
	if err != nil {
		_ = child.Close()
		return nil, err
	}
	return child, nil
}

// openPlain opens the file name in dir and returns what it is, as of after the
// opening. Lstat spares everything that is no file an opening, which a FIFO's
// other end would notice; it decides nothing. O_NONBLOCK is for what takes the
// file's place after it: a FIFO, or a lease that a program holds.
func openPlain(dir *os.Root, name string) (*os.File, fs.FileInfo, error) {
	seen, err := dir.Lstat(name)
	if err != nil {
		return nil, nil, refusal(name, err)
	}
	if !plain(seen) {
		return nil, nil, refuse(name, kindOf(seen))
	}
	file, err := dir.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, nil, refusal(name, err)
	}
	opened, err := file.Stat()
	switch {
	case err != nil:
	case !plain(opened):
		err = refuse(name, kindOf(opened))
	case !os.SameFile(seen, opened):
		err = refuse(name, replaced) // os.Root followed a link within the folder.
	}
	if err != nil {
		_ = file.Close()
		return nil, nil, err
	}
	return file, opened, nil
}

// plain says whether it is a regular file with one name.
func plain(info fs.FileInfo) bool { return info.Mode().IsRegular() && stat(info).Nlink == 1 }

func stat(info fs.FileInfo) *syscall.Stat_t { return info.Sys().(*syscall.Stat_t) }

// replaced is what is wrong with a name that means something else each time.
const replaced = "was replaced at that moment"

// kindOf says why something that is not plain is refused.
func kindOf(info fs.FileInfo) string {
	switch info.Mode().Type() {
	case 0:
		if stat(info).Nlink == 0 {
			return "was deleted at that moment"
		}
		return "has other names as well (hard links)"
	case fs.ModeDir:
		return "is a directory"
	case fs.ModeSymlink:
		return "is a symbolic link"
	case fs.ModeNamedPipe:
		return "is a named pipe"
	case fs.ModeSocket:
		return "is a socket"
	default:
		return "is a device"
	}
}

func refuse(name, why string) error { return errors.Wrapf(ErrFileRefused, "%q %s", name, why) }

// refusal turns an error of opening name into one of this package's when what
// lies there is the cause, rather than the server or the disk.
func refusal(name string, err error) error {
	var errno syscall.Errno
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENAMETOOLONG):
		return ErrNoFile
	case errors.Is(err, fs.ErrPermission):
		return refuse(name, "may not be read by the server")
	case errors.Is(err, syscall.EAGAIN):
		return refuse(name, "is held by a program's lease")
	case errors.Is(err, fs.ErrClosed):
		return err
	case errors.As(err, &errno) && !slices.Contains([]syscall.Errno{syscall.ENOTDIR, syscall.ELOOP, syscall.ENXIO}, errno):
		return err
	}
	// What has no number is os.Root's "path escapes": a link took the name.
	return refuse(name, replaced)
}

// modified is when the file was last written, within the years that a date in
// an API can have. Programs set any time.
func modified(info fs.FileInfo) time.Time {
	const first, last = -62135596800, 253402300799 // 0001-01-01 and 9999-12-31, both in UTC
	t := info.ModTime()
	return time.Unix(min(max(t.Unix(), first), last), int64(t.Nanosecond())).UTC()
}
