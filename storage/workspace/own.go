package workspace

import (
	"io"
	"os"
	"syscall"

	"github.com/google/uuid"
)

// Own gives the run's folder, with what the server put there, to a user and to
// the group of the same number. A folder that is the user's already is left as
// it is: it is given last, so that what an interrupted Own began is done again.
// The caller makes sure that no process writes to the folder.
func (s *Store) Own(run uuid.UUID, user int) error {
	name := run.String()
	info, err := s.root.Lstat(name)
	if err != nil {
		return wrap(run, err)
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && int(stat.Uid) == user {
		return nil
	}
	folder, err := s.root.OpenRoot(name)
	if err != nil {
		return wrap(run, err)
	}
	defer folder.Close()
	if err := give(folder, user); err != nil {
		return wrap(run, err)
	}
	return wrap(run, s.root.Lchown(name, user, user))
}

// give gives what a delivery made, files without folders, to a user.
func give(folder *os.Root, user int) error {
	list, err := folder.Open(".")
	if err != nil {
		return err
	}
	defer list.Close()
	for {
		names, err := list.Readdirnames(readBatch)
		for _, name := range names {
			if err := folder.Lchown(name, user, user); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}
