package workspace

import (
	"context"
	"os"
	"syscall"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
)

// maxMeasuredDepth is how many levels of directories are measured. A workspace
// that is nested deeper counts as too large: it would take ever longer.
const maxMeasuredDepth = 128

// blockSize is the unit of a file's blocks, whatever the file system's own is
// (stat(2)).
const blockSize = 512

// Within says whether what the run's folder takes on the disk is at most so
// many bytes. A run without a folder takes nothing. Files may come and go
// meanwhile. It stops counting as soon as it knows, or ctx ends.
func (s *Store) Within(ctx context.Context, run uuid.UUID, bytes int64) (bool, error) {
	folder, err := enter(s.root, run.String())
	if errors.Is(err, ErrNoFile) {
		return true, nil
	}
	if err != nil {
		return true, wrap(run, err)
	}
	defer folder.Close()
	m := &meter{ctx: ctx, left: bytes}
	err = m.measure(folder, 0)
	if errors.Is(err, errTooLarge) {
		return false, nil
	}
	return true, wrap(run, err)
}

var errTooLarge = errors.New("too large")

// meter adds up what directories hold.
type meter struct {
	ctx  context.Context
	left int64
}

func (m *meter) measure(dir *os.Root, depth int) error {
	list, err := dir.Open(".")
	if err != nil {
		return unlessAbsent(err)
	}
	defer list.Close()
	for {
		if err := m.ctx.Err(); err != nil {
			return err
		}
		names, readErr := list.Readdirnames(readBatch)
		for _, name := range names {
			if err := m.add(dir, name, depth); err != nil {
				return err
			}
		}
		if readErr != nil {
			return nil // The end, or a directory that went meanwhile.
		}
	}
}

// add counts one entry of a directory. What the server may not look into, a
// program has closed, and may open again: it counts once it is open.
func (m *meter) add(dir *os.Root, name string, depth int) error {
	info, err := dir.Lstat(name)
	if err != nil {
		return nil // It is gone.
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		m.left -= stat.Blocks * blockSize
	}
	if m.left < 0 || depth > maxMeasuredDepth {
		return errTooLarge
	}
	if !info.IsDir() {
		return nil
	}
	child, err := reach(dir, name, info)
	if err != nil {
		return nil // It is gone, closed, or something else by now.
	}
	defer child.Close()
	return m.measure(child, depth+1)
}
