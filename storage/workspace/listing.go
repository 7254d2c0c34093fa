package workspace

import (
	"cmp"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
)

// The bounds of a listing. They keep its answer small and short, whatever a
// program made of its folder.
const (
	// maxFiles is how many files are listed.
	maxFiles = 10_000

	// maxLevels is how many directories may lie above a listed file.
	maxLevels = 64

	// maxPathBytes is how many bytes the paths have together that are listed
	// or still have to be walked.
	maxPathBytes = 4 << 20

	// maxSteps is how much is looked at: a name is one step, and opening a
	// directory is one for each level that it lies below the folder.
	maxSteps = 100_000
)

// Entry is one file of a listing.
type Entry struct {
	// Path is relative to the run's folder and slash-separated. It takes
	// OpenFile, unless it holds U+FFFD: that stands for bytes that are not
	// UTF-8.
	Path     string
	Size     int64
	Modified time.Time
}

// Listing is what List found.
type Listing struct {
	// Files are sorted by their paths.
	Files []Entry
	// More says that there are more files than were listed, or may be: they are
	// too many, or lie too deep. Those nearer to the folder are listed first.
	More bool
	// Skipped counts the names that OpenFile would refuse as well: symbolic
	// links, files with other names, named pipes, sockets and devices, and the
	// directories and what is in them that the server may not read.
	Skipped int
}

// List lists the regular files with one name in the run's folder, at most
// 10,000 and below at most 64 directories. It follows no symbolic links and
// opens nothing but directories. A run without a folder has no files. What
// programs change meanwhile may be listed or not. Errors: ErrFileRefused when
// what has the run's name is no folder.
func (s *Store) List(run uuid.UUID) (Listing, error) {
	top, err := enter(s.root, run.String())
	if errors.Is(err, ErrNoFile) {
		return Listing{}, nil
	}
	if err != nil {
		return Listing{}, wrap(run, err)
	}
	defer top.Close()
	l := &lister{top: top, steps: maxSteps, pathBytes: maxPathBytes}
	if err := l.list(); err != nil {
		return Listing{}, wrap(run, err)
	}
	slices.SortFunc(l.found.Files, func(a, b Entry) int { return cmp.Compare(a.Path, b.Path) })
	return l.found, nil
}

// lister walks one folder, level by level. It holds one directory open at a
// time and comes to each by its path from top.
type lister struct {
	top       *os.Root
	found     Listing
	waiting   []branch
	steps     int // how many are left
	pathBytes int // how many are left
}

// branch is a directory that was seen and is to be listed.
type branch struct {
	path  string // ends with a slash, or is empty for the folder itself
	level int    // how many directories lie above what it holds, without the folder
	seen  fs.FileInfo
}

// errFull ends a walk that came to a bound.
var errFull = errors.New("bound of the listing")

func (l *lister) list() error {
	seen, err := l.top.Stat(".")
	if err != nil {
		return err
	}
	l.waiting = append(l.waiting, branch{seen: seen})
	for len(l.waiting) > 0 {
		next := l.waiting[0]
		l.waiting = l.waiting[1:]
		switch err := l.enter(next); {
		case errors.Is(err, errFull):
			l.found.More = true
			return nil
		case err != nil:
			return err
		}
	}
	return nil
}

// enter lists what one directory holds.
func (l *lister) enter(b branch) error {
	if err := l.take(b.level, 0); err != nil {
		return err
	}
	dir, err := reach(l.top, "./"+b.path, b.seen)
	if err != nil {
		return l.skip(err)
	}
	defer dir.Close()
	names, err := dir.Open(".")
	if err != nil {
		return l.skip(refusal(b.path, err))
	}
	defer names.Close()
	for {
		batch, readErr := names.Readdirnames(readBatch)
		for _, name := range batch {
			if err := l.look(dir, b, name); err != nil {
				return err
			}
		}
		if readErr == io.EOF {
			return nil
		}
		if readErr != nil {
			return l.skip(refusal(b.path, readErr))
		}
	}
}

// look sorts out one name in a directory.
func (l *lister) look(dir *os.Root, b branch, name string) error {
	if err := l.take(1, 0); err != nil {
		return err
	}
	info, err := dir.Lstat(name)
	if err != nil {
		return l.skip(refusal(name, err))
	}
	path := b.path + name
	switch {
	case info.IsDir() && b.level == maxLevels:
		l.found.More = true
	case info.IsDir():
		l.waiting = append(l.waiting, branch{path: path + "/", level: b.level + 1, seen: info})
		return l.take(0, len(path))
	case !plain(info):
		l.found.Skipped++
	case len(l.found.Files) == maxFiles:
		return errFull
	default:
		l.found.Files = append(l.found.Files, Entry{
			Path: strings.ToValidUTF8(path, "\ufffd"), Size: info.Size(), Modified: modified(info),
		})
		return l.take(0, len(path))
	}
	return nil
}

// take uses up some of what the walk may cost, or returns errFull.
func (l *lister) take(steps, pathBytes int) error {
	if l.steps -= steps; l.steps < 0 {
		return errFull
	}
	if l.pathBytes -= pathBytes; l.pathBytes < 0 {
		return errFull
	}
	return nil
}

// skip goes on after an error about what lies there: what is gone is nothing
// to tell of, and what cannot be listed is counted.
func (l *lister) skip(err error) error {
	switch {
	case errors.Is(err, ErrNoFile):
	case errors.Is(err, ErrFileRefused):
		l.found.Skipped++
	default:
		return err
	}
	return nil
}
