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
