package bolt

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-faster/errors"
)

// create makes an empty store at path when there is none. The file gets its
// name only when it is whole on disk, so a file that is there and empty, or
// cut short, is never a first start that a power cut interrupted: it is a
// damaged store, and must not be made anew over somebody's data.
func create(path string) error {
	if found, err := exists(path); found || err != nil {
		return err
	}
	unnamed := path + ".new"
	file, err := openLocked(unnamed, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	defer release(file)
	// Whoever held the lock until now may have made the same store.
	if found, err := exists(path); found || err != nil {
		return err
	}
	// A file left over by an interrupted start is emptied, not removed:
	// removing it could take it away from a process that has just locked it.
	if err := file.Truncate(0); err != nil {
		return err
	}
	if err := file.Chmod(fileMode); err != nil {
		return err
	}
	empty, err := handOver(file, 0)
	if err != nil {
		return errors.Wrapf(err, "create %s", path)
	}
	if err := empty.Sync(); err != nil {
		_ = empty.Close() // the sync's error is the one that matters
		return errors.Wrapf(err, "create %s: sync", path)
	}
	// Closing gives up the lock, so the file has to have its name by then.
	if err := os.Rename(unnamed, path); err != nil {
		_ = empty.Close()
		return err
	}
	if err := empty.Close(); err != nil {
		return errors.Wrapf(err, "create %s", path)
	}
	return syncFolder(filepath.Dir(path))
}

func exists(path string) (bool, error) {
	_, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer folder.Close()
	return folder.Sync()
}
