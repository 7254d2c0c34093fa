package workspace

import (
	"io/fs"
	"slices"
	"strconv"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
)

// Recovered says what Recover did and saw, in the order of the names.
type Recovered struct {
	// Removed are the runs with a delivery or a removal that was under way
	// when the server ended, and of which the rest was removed.
	Removed []uuid.UUID

	// Orphaned are the folders that had no run and were moved.
	Orphaned []Orphan

	// Foreign are names in the directory that are not this package's: no ID of
	// a run, or something else than a folder. They were left alone.
	Foreign []string
}

// Orphan is a folder without a run.
type Orphan struct {
	Run  uuid.UUID // the run that it was named after
	Name string    // its name in .orphans: the ID, or the ID with -2, -3 …
}

// Recover brings the directory in order at start, before anything else is done
// with the Store. It removes deliveries and removals that were under way, and
// moves folders of which known says false to .orphans, where they stay until
// the operator looks after them.
//
// An error of known ends it, and is returned wrapped. An entry that cannot be
// removed or moved stays, and the rest is done all the same; the errors are
// returned together. What was done is returned in any case. Nothing is synced:
// what a power cut undoes, the next Recover does again.
func (s *Store) Recover(known func(run uuid.UUID) (bool, error)) (Recovered, error) {
	var done Recovered
	names, err := s.names()
	if err != nil {
		return done, errors.Wrap(err, "workspaces")
	}
	var faults []error
	for _, name := range names {
		run, kind := parse(name)
		switch kind {
		case unfinished:
			err := erase(s.root, name)
			if err == nil {
				done.Removed = append(done.Removed, run)
			}
			faults = append(faults, wrap(run, err))
		case folder:
			ok, err := known(run)
			if err != nil {
				return done, errors.Join(append(faults, wrap(run, err))...)
			}
			if !ok {
				faults = append(faults, s.orphan(run, &done))
			}
		case foreign:
			done.Foreign = append(done.Foreign, name)
		}
	}
	return done, errors.Join(faults...)
}

// names returns the sorted names in the directory.
func (s *Store) names() ([]string, error) {
	dir, err := s.root.Open(".")
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(-1)
	slices.Sort(names)
	return names, err
}

// kind is what a name in the directory stands for.
type kind int

const (
	foreign kind = iota
	folder
	unfinished
	shelf // .orphans
)

// parse takes only names that this package makes: an ID in its one canonical
// form, so that no operator's "backup.new" is mistaken for a delivery.
func parse(name string) (uuid.UUID, kind) {
	if name == orphans {
		return uuid.Nil, shelf
	}
	run, err := uuid.Parse(name[:min(len(name), len(uuid.Nil.String()))])
	if err != nil {
		return uuid.Nil, foreign
	}
	switch name {
	case run.String():
		return run, folder
	case run.String() + newSuffix, run.String() + goneSuffix:
		return run, unfinished
	}
	return uuid.Nil, foreign
}

// orphan moves the folder of the run to .orphans and records it in done. What
// bears the run's name without being a folder is recorded as foreign.
func (s *Store) orphan(run uuid.UUID, done *Recovered) error {
	name := run.String()
	info, err := s.root.Lstat(name)
	if err != nil {
		return wrap(run, err)
	}
	if !info.IsDir() {
		done.Foreign = append(done.Foreign, name)
		return nil
	}
	// Moving a directory to another one takes the right to write to it.
	if err := unlock(s.root, name, nil); err != nil {
		return wrap(run, err)
	}
	moved, err := s.shelve(name)
	if err != nil {
		return wrap(run, err)
	}
	done.Orphaned = append(done.Orphaned, Orphan{Run: run, Name: moved})
	return nil
}

// shelve moves name into .orphans, which it makes when absent, and returns the
// name that it has there.
func (s *Store) shelve(name string) (string, error) {
	if err := s.root.Mkdir(orphans, dirPerm); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	shelf, err := s.root.Lstat(orphans)
	if err != nil {
		return "", err
	}
	if !shelf.IsDir() {
		return "", errors.Wrap(ErrExist, orphans+" is not a folder")
	}
	free := name
	for n := 2; ; n++ {
		_, err := s.root.Lstat(orphans + "/" + free)
		if errors.Is(err, fs.ErrNotExist) {
			return free, s.root.Rename(name, orphans+"/"+free)
		}
		if err != nil {
			return "", err
		}
		free = name + "-" + strconv.Itoa(n)
	}
}
