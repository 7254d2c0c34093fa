package sandbox

import (
	"syscall"

	"github.com/go-faster/errors"
	"golang.org/x/sys/unix"
)

// Limits bound what a command may take. Zero means no limit of ours.
type Limits struct {
	// Memory is the data memory of one process, in bytes.
	Memory uint64 `json:"memory,omitempty"`
	// Processes is how many processes and threads there may be at once.
	Processes uint64 `json:"processes,omitempty"`
	// OpenFiles is how many files one process may have open.
	OpenFiles uint64 `json:"open_files,omitempty"`
	// FileSize is how long a file may become, in bytes.
	FileSize uint64 `json:"file_size,omitempty"`
}

// ownThreads are the threads of the first process, which are counted with those
// of the command.
const ownThreads = 16

// set sets the limits for what this process starts.
func (l Limits) set() error {
	processes := l.Processes
	if processes > 0 {
		processes += ownThreads
	}
	for _, r := range []struct {
		resource int
		limit    uint64
		what     string
	}{
		{unix.RLIMIT_DATA, l.Memory, "memory"},
		{unix.RLIMIT_NPROC, processes, "processes"},
		{unix.RLIMIT_NOFILE, l.OpenFiles, "open files"},
		{unix.RLIMIT_FSIZE, l.FileSize, "file size"},
	} {
		if r.limit == 0 {
			continue
		}
		var now syscall.Rlimit
		if err := syscall.Getrlimit(r.resource, &now); err != nil {
			return errors.Wrap(err, r.what)
		}
		limit := min(r.limit, now.Max)
		if err := syscall.Setrlimit(r.resource, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
			return errors.Wrap(err, r.what)
		}
	}
	// A core dump would leave the memory of a program in the workspace.
	if err := syscall.Setrlimit(unix.RLIMIT_CORE, &syscall.Rlimit{}); err != nil {
		return errors.Wrap(err, "core dumps")
	}
	return nil
}
