package workspace

import (
	"io/fs"
	"os"
	"syscall"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
)

// tempPrefix begins the name of a file that is being written. One stays behind
// when the server ends in the middle.
const tempPrefix = ".agentrun-"

// WriteFile makes path, slash-separated and relative to the run's folder, a file
// with this content, and gives it, with the directories that it makes on the
// way, to a user and to the group of the same number. A file that is there is
// replaced as a whole, whatever reads it meanwhile, and keeps its permissions;
// after a power cut it is either the old one or the new one.
//
// The path is one that OpenFile takes, below at most 64 directories. No symbolic
// link is followed, and nothing is opened but directories and the new file.
// Replaced is only what OpenFile would hand out; what a program puts in its
// place at the last moment loses its name, and is not written to. The caller
// bounds the content.
//
// Errors: ErrInvalidPath; ErrFileRefused; ErrNoFile when the run has no folder;
// ErrNoSpace.
func (s *Store) WriteFile(run uuid.UUID, path string, content []byte, user int) error {
	return wrap(run, wrapFile(path, s.writeFile(run, path, content, user)))
}

func (s *Store) writeFile(run uuid.UUID, path string, content []byte, user int) error {
	names, err := split(path)
	if err != nil {
		return err
	}
	last := len(names) - 1
	if last > maxLevels {
		return errors.Wrapf(ErrInvalidPath, "it lies below more than %d directories", maxLevels)
	}
	dir, err := enter(s.root, run.String())
	if err != nil {
		return err
	}
	defer func() { _ = dir.Close() }() // The names in it are not synced anyway.
	for _, name := range names[:last] {
		next, err := enterOrMake(dir, name, user)
		if err != nil {
			return err
		}
		_ = dir.Close()
		dir = next
	}
	return put(dir, names[last], content, user)
}

// enterOrMake opens the directory name in dir, which it makes when there is none.
func enterOrMake(dir *os.Root, name string, user int) (*os.Root, error) {
	next, err := enter(dir, name)
	if !errors.Is(err, ErrNoFile) {
		return next, err
	}
	switch err := dir.Mkdir(name, dirPerm); {
	case errors.Is(err, fs.ErrExist):
		return nil, refuse(name, "is no directory")
	case err != nil:
		return nil, unwritable(name, err)
	}
	next, err = enter(dir, name)
	if errors.Is(err, ErrNoFile) {
		return nil, refuse(name, replaced)
	}
	if err != nil {
		return nil, err
	}
	info, err := next.Stat(".")
	// A program may have put a directory of its own there, which is the user's.
	if err == nil && int(stat(info).Uid) != user {
		err = next.Chown(".", user, user)
	}
	if err != nil {
		_ = next.Close()
		return nil, unwritable(name, err)
	}
	return next, nil
}

// put writes the content to a new file, which then takes the name. A rename
// replaces whatever has the name by then, and follows nothing.
func put(dir *os.Root, name string, content []byte, user int) error {
	perm, err := replaceable(dir, name)
	if err != nil {
		return err
	}
	temp := tempPrefix + uuid.NewString()
	file, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|syscall.O_NOFOLLOW, filePerm)
	if err != nil {
		return unwritable(name, err)
	}
	written, err := finish(file, content, perm, user)
	if err == nil {
		err = unwritable(name, dir.Rename(temp, name))
	}
	if err != nil {
		_ = dir.Remove(temp) // A program may have been faster.
		return err
	}
	// A program may have put something else in the new file's place.
	if now, err := dir.Lstat(name); err != nil || !os.SameFile(now, written) {
		return refuse(name, replaced)
	}
	return nil
}

// replaceable returns the permissions that a new file of the name gets, when it
// may take it.
func replaceable(dir *os.Root, name string) (fs.FileMode, error) {
	info, err := dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return filePerm, nil
	case err != nil:
		return 0, unwritable(name, err)
	case !plain(info):
		return 0, refuse(name, kindOf(info))
	}
	return info.Mode().Perm(), nil
}

// finish gives a new file its content, its owner and its permissions, and closes
// it. It works on the open file only: its name may lead elsewhere by now.
func finish(file *os.File, content []byte, perm fs.FileMode, user int) (fs.FileInfo, error) {
	_, err := file.Write(content)
	var info fs.FileInfo
	if err == nil {
		info, err = file.Stat()
	}
	if err == nil && int(stat(info).Uid) != user {
		err = file.Chown(user, user)
	}
	if err == nil {
		err = file.Chmod(perm)
	}
	if err == nil {
		err = file.Sync()
	}
	if closing := file.Close(); err == nil {
		err = closing
	}
	return info, err
}

// unwritable turns an error of making name into one of this package's when what
// lies there is the cause, rather than the server or the disk.
func unwritable(name string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, syscall.ENAMETOOLONG):
		return errors.Wrapf(ErrInvalidPath, "%q is too long", name)
	case errors.Is(err, fs.ErrPermission):
		return refuse(name, "may not be written by the server")
	}
	for _, errno := range []syscall.Errno{
		syscall.ENOENT, syscall.EEXIST, syscall.EISDIR, syscall.ENOTDIR, syscall.ENOTEMPTY, syscall.ELOOP,
	} {
		if errors.Is(err, errno) {
			return refuse(name, replaced)
		}
	}
	return err
}
