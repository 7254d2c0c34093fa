package workspace

import (
	"io"
	"os"

	"github.com/google/uuid"
)

const (
	// maxDepth is how many levels of directories are held open, at two
	// descriptors each, while a tree is removed. A deeper one is taken apart.
	maxDepth = 32

	// readBatch is how many names of a directory are read at a time.
	readBatch = 1024
)

// Discard removes the run's folder with everything in it; a run without one is
// no error. The folder loses its name at once and for good; its content goes
// after that, and should the server end before all is gone, Recover removes
// the rest. The caller makes sure that no process still writes to the folder.
//
// No content can prevent the removal as long as the server owns it: the
// permissions of directories are changed as needed, trees may be of any depth,
// and symbolic links are removed, not followed.
func (s *Store) Discard(run uuid.UUID) error {
	return wrap(run, s.discard(run.String()))
}

func (s *Store) discard(name string) error {
	gone := name + goneSuffix
	// The rest of a removal that was cut short would be in the way.
	if err := erase(s.root, gone); err != nil {
		return err
	}
	if err := s.root.Rename(name, gone); err != nil {
		// A directory may need one more block for a new name. Discarding must
		// work on a full disk too, so the folder goes under the name it has.
		return erase(s.root, name)
	}
	if err := syncDir(s.root); err != nil {
		return err
	}
	return erase(s.root, gone)
}

// erase removes name from dir with everything below it. That there is nothing
// of that name is no error.
func erase(dir *os.Root, name string) error {
	return new(eraser).remove(dir, name, name, 0)
}

// eraser removes one tree. It goes down maxDepth directories; what is deeper
// it moves up into top, the root of the tree, where a later pass finds it. So
// a tree of any depth needs a bounded number of descriptors, and an ordinary
// one no renames.
type eraser struct{ top *os.Root }

// clear removes what dir holds. It reads dir until a pass finds nothing: names
// may move while others are removed, and top gets new ones. path is that of
// dir below top, depth that of what dir holds.
func (e *eraser) clear(dir *os.Root, path string, depth int) error {
	list, err := dir.Open(".")
	if err != nil {
		return unlessAbsent(err)
	}
	defer list.Close()
	for {
		found, err := e.pass(dir, list, path, depth)
		if err != nil || found == 0 {
			return err
		}
		if _, err := list.Seek(0, io.SeekStart); err != nil {
			return err
		}
	}
}

// pass removes what one reading of dir finds and returns how much that was.
// Every name found is gone afterwards, or an error is returned: that is what
// brings clear to an end.
func (e *eraser) pass(dir *os.Root, list *os.File, path string, depth int) (found int, err error) {
	for {
		names, readErr := list.Readdirnames(readBatch)
		found += len(names)
		for _, name := range names {
			if err := e.remove(dir, path+"/"+name, name, depth); err != nil {
				return found, err
			}
		}
		if readErr == io.EOF {
			return found, nil
		}
		if readErr != nil {
			return found, unlessAbsent(readErr)
		}
	}
}

// remove removes name from dir, or moves it up when it lies too deep. path is
// that of name below top.
func (e *eraser) remove(dir *os.Root, path, name string, depth int) error {
	blocked := unlessAbsent(dir.Remove(name))
	if blocked == nil {
		return nil
	}
	if err := unlock(dir, name, blocked); err != nil {
		return unlessAbsent(err)
	}
	if depth > maxDepth {
		return unlessAbsent(e.top.Rename(path, uuid.NewString()))
	}
	child, err := dir.OpenRoot(name)
	if err != nil {
		return unlessAbsent(err)
	}
	defer child.Close()
	if depth == 0 {
		e.top, path = child, "."
	}
	if err := e.clear(child, path, depth+1); err != nil {
		return err
	}
	return unlessAbsent(dir.Remove(name))
}

// unlock gives the owner of the directory name every right to it: without
// them it cannot be listed, emptied or moved. blocked is why name could not
// simply be removed, and what is returned when name is no directory.
func unlock(dir *os.Root, name string, blocked error) error {
	info, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		return blocked
	}
	if perm := info.Mode().Perm(); perm&dirPerm != dirPerm {
		// Refused to one who is neither the owner nor privileged, and not
		// needed by one who is privileged: the next step tells.
		_ = dir.Chmod(name, perm|dirPerm)
	}
	return nil
}
