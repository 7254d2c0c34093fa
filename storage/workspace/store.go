// Package workspace is the half of the data directory that is not the
// database: each run's folder, the safe names of the files in it, the
// crash-safe way in for files that come with a run, the safe way out for what
// its programs left, and the safe way to write a file between them.
//
//	workspaces/
//	  ID          a run's folder, complete and durable
//	  ID.new      a delivery under way; removed at start
//	  ID.gone     a removal under way; finished at start
//	  .orphans/   folders that were found without a run; never removed here
//
// What lies in a folder was written by programs that nobody vouches for. So
// every access goes through os.Root, no symbolic link of a workspace is ever
// followed, and nothing in one is opened but directories, the files that this
// package makes itself, and, to read them, regular files with no other name.
//
// The package imports nothing of agentrun. It does not know which runs there
// are, who may see them or what runs in them: callers bring IDs, and the rows
// in the database decide. It does not bound what is delivered.
package workspace

import (
	"io/fs"
	"os"
	"path/filepath"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
)

const (
	newSuffix  = ".new"
	goneSuffix = ".gone"
	orphans    = ".orphans"

	dirPerm  = 0o700
	filePerm = 0o600
)

// Store holds the folders of all runs. Its methods may be called from any
// number of goroutines, Recover excepted; calls for one and the same run are
// the caller's to order, though in any order none of them replaces or loses a
// folder that another one reported as done.
type Store struct {
	root *os.Root
	path string
}

// Open opens the directory dir, which is made with mode 0700 when it is
// absent; the directory that holds it must exist. dir itself may be a symbolic
// link that the operator made. The caller closes the Store.
func Open(dir string) (*Store, error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, errors.Wrap(err, "workspaces")
	}
	if err := makeDir(path); err != nil {
		return nil, errors.Wrap(err, "workspaces")
	}
	root, err := os.OpenRoot(path)
	if err != nil {
		return nil, errors.Wrap(err, "workspaces")
	}
	return &Store{root: root, path: path}, nil
}

// makeDir makes the directory and syncs the one that holds it: without that, a
// power cut could take the new directory away with every delivery in it.
func makeDir(path string) error {
	err := os.Mkdir(path, dirPerm)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	parent, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer parent.Close()
	return syncDir(parent)
}

// Close releases the directory. Later calls on the Store, and the Commit of a
// delivery, return an error that is fs.ErrClosed.
func (s *Store) Close() error { return s.root.Close() }

// Path returns the absolute path of the run's folder, which need not exist. It
// is what a process gets as its working directory; the server's own access
// goes through the Store.
func (s *Store) Path(run uuid.UUID) string {
	return filepath.Join(s.path, run.String())
}

// Ensure makes the folder of a run to which no file was delivered, with mode
// 0700. A folder that exists is left as it is. Errors: ErrExist when the name
// belongs to something else, such as a symbolic link, which is not followed;
// ErrNoSpace.
//
// The new folder is not synced. It is empty, and the next Ensure makes it
// again after a power cut.
func (s *Store) Ensure(run uuid.UUID) error {
	err := s.root.Mkdir(run.String(), dirPerm)
	if !errors.Is(err, fs.ErrExist) {
		return wrap(run, err)
	}
	info, err := s.root.Lstat(run.String())
	if err != nil {
		return wrap(run, err)
	}
	if !info.IsDir() {
		return wrap(run, errors.Wrap(ErrExist, "not a folder"))
	}
	return nil
}

// syncDir makes the entries of dir durable. A new descriptor is opened each
// time because an error of writing back is reported once per descriptor:
// callers that shared one could take each other's error.
func syncDir(dir *os.Root) error {
	f, err := dir.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
