package workspace

import (
	"io/fs"
	"syscall"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
)

var (
	// ErrExist says that the name of a run is taken: Deliver and Commit return
	// it when the run has a folder already or a delivery under way, Ensure
	// when what bears the run's name is no folder. Nothing was replaced.
	ErrExist = errors.New("workspace exists")

	// ErrNoSpace says that the disk, or the quota on it, is full. Any method
	// that writes may return it. It works again once there is space.
	ErrNoSpace = errors.New("no space left for workspaces")

	// ErrInvalidPath says that OpenFile or WriteFile was given what can be no
	// file's path below a run's folder. Nothing was opened or changed.
	ErrInvalidPath = errors.New("invalid path")

	// ErrNoFile says that there is nothing of that name in the run's folder,
	// or that the run has no folder.
	ErrNoFile = errors.New("no such file")

	// ErrFileRefused says that what has the name is neither handed out nor
	// replaced: it is no regular file, has other names as well, lies behind a
	// symbolic link, may not be read or written, or was replaced at that moment.
	// The text says which.
	ErrFileRefused = errors.New("file refused")

	// ErrCutShort is what reading a file ends with that cannot be read to the
	// size that it had when it was opened: a program made it shorter since, or
	// the disk failed.
	ErrCutShort = errors.New("file cut short")
)

// wrap names the run that err is about and makes a full disk recognisable. The
// operating system's own error stays in the chain.
func wrap(run uuid.UUID, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) {
		err = errors.Errorf("%w: %w", ErrNoSpace, err)
	}
	return errors.Wrapf(err, "workspace %s", run)
}

// exists turns the operating system's "file exists" into ErrExist.
func exists(err error) error {
	if errors.Is(err, fs.ErrExist) {
		return errors.Errorf("%w: %w", ErrExist, err)
	}
	return err
}

// unlessAbsent forgets an error that says that there is nothing of that name.
func unlessAbsent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
