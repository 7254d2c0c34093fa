package workspace

import (
	"io"
	"io/fs"
	"os"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
)

// Delivery is the set of files that a run starts with, on its way in. The
// files appear in the run's folder all together, at Commit, or not at all. A
// Delivery belongs to one goroutine, which calls Abort at the end in any case:
//
//	d, err := store.Deliver(run)
//	…
//	defer d.Abort()
//	… d.Add(name, content) …
//	err = d.Commit()
type Delivery struct {
	store *Store
	run   uuid.UUID
	dir   *os.Root
	taken map[string]bool // folded names of the files so far
	place string          // the folder's name while Abort has to remove it, then ""
	fault error           // what Add or Commit failed with; nothing is committed after it
}

// File is one delivered file. Name differs from Given when Given was unsafe,
// too long or taken.
type File struct {
	Given string // the name that the caller gave
	Name  string // the name in the run's folder
	Size  int64  // bytes written
}

// Deliver begins a delivery to a run that has no folder yet. Errors: ErrExist
// when it has one, or a delivery under way; ErrNoSpace.
func (s *Store) Deliver(run uuid.UUID) (*Delivery, error) {
	place := run.String() + newSuffix
	if err := s.root.Mkdir(place, dirPerm); err != nil {
		return nil, wrap(run, exists(err))
	}
	dir, err := s.openNew(run, place)
	if err != nil {
		// The folder is empty. Should it stay, Recover removes it.
		_ = s.root.Remove(place)
		return nil, wrap(run, err)
	}
	return &Delivery{store: s, run: run, dir: dir, taken: map[string]bool{}, place: place}, nil
}

// openNew opens the folder of a delivery unless the run has its folder. It is
// called with the .new folder made, so that of two deliveries to one run the
// later one sees either the other's .new folder or what it committed.
func (s *Store) openNew(run uuid.UUID, place string) (*os.Root, error) {
	_, err := s.root.Lstat(run.String())
	if err == nil {
		return nil, ErrExist
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	return s.root.OpenRoot(place)
}

// Add writes content to a new file, with mode 0600, under a name made from
// given by the rules of SafeName, and syncs it. It reads content to its end,
// however long that is. A name is never used twice, and no file replaces
// another. Errors: whatever content returned, wrapped, and never made into one
// of this package's; ErrNoSpace. After an error the delivery can only be
// aborted: Add and Commit return the same error again.
func (d *Delivery) Add(given string, content io.Reader) (File, error) {
	if d.fault != nil {
		return File{}, d.fault
	}
	f, name, err := d.create(given)
	if err != nil {
		d.fault = wrap(d.run, err)
		return File{}, d.fault
	}
	src := &source{content: content}
	size, err := fill(f, src)
	switch {
	case src.err != nil:
		d.fault = errors.Wrapf(src.err, "workspace %s: content of %q", d.run, given)
	case err != nil:
		d.fault = wrap(d.run, err)
	}
	if d.fault != nil {
		return File{}, d.fault
	}
	return File{Given: given, Name: name, Size: size}, nil
}

// create makes the file under the first safe name that is free. That the name
// is not among those taken does not settle it: a filesystem may fold more
// names together than Fold does. Then the next one is tried.
func (d *Delivery) create(given string) (*os.File, string, error) {
	for {
		name := SafeName(given, func(folded string) bool { return d.taken[folded] })
		d.taken[Fold(name)] = true
		f, err := d.dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, filePerm)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		return f, name, err
	}
}

// fill copies content to f, makes it durable and closes f in any case.
func fill(f *os.File, content io.Reader) (int64, error) {
	size, err := io.Copy(f, content)
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	return size, err
}

// source remembers the error of the content, to tell it from one of the disk.
type source struct {
	content io.Reader
	err     error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.content.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}

// Commit gives the run its folder. When it returned nil, the folder and all
// files of the delivery survive a power cut, and the delivery is over. Errors:
// ErrExist when the run got a folder in the meantime, which is left as it is;
// ErrNoSpace; what an earlier Add failed with. After an error the delivery can
// only be aborted.
func (d *Delivery) Commit() error {
	if d.fault != nil {
		return d.fault
	}
	if err := d.commit(); err != nil {
		d.fault = wrap(d.run, err)
		return d.fault
	}
	d.place = ""
	_ = d.dir.Close() // was only read; the folder is durable
	return nil
}

// commit takes the steps in the only order that is safe: the files were synced
// one by one, then their names, then the rename, then the rename is synced.
func (d *Delivery) commit() error {
	if err := syncDir(d.dir); err != nil {
		return err
	}
	if err := d.store.root.Rename(d.place, d.run.String()); err != nil {
		return exists(err)
	}
	d.place = d.run.String()
	return syncDir(d.store.root)
}

// Abort ends the delivery and removes what it wrote. After a Commit that
// returned nil, or an Abort that did, it does nothing. After an error the rest
// is removed by the next Abort, Discard or Recover.
func (d *Delivery) Abort() error {
	if d.place == "" {
		return nil
	}
	if err := d.dir.Close(); err != nil {
		return wrap(d.run, err)
	}
	if err := d.remove(); err != nil {
		return err
	}
	d.place = ""
	return nil
}

// remove removes the folder where it is: under its own name already when
// Commit could not sync the rename.
func (d *Delivery) remove() error {
	if d.place == d.run.String() {
		return d.store.Discard(d.run)
	}
	return wrap(d.run, erase(d.store.root, d.place))
}
