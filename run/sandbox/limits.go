package sandbox

import (
	"runtime"
	"sync"
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

// set sets the limits for what this process starts, but for that of memory.
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
		{unix.RLIMIT_NPROC, processes, "processes"},
		{unix.RLIMIT_NOFILE, l.OpenFiles, "open files"},
		{unix.RLIMIT_FSIZE, l.FileSize, "file size"},
	} {
		if err := setLimit(r.resource, r.limit); err != nil {
			return errors.Wrap(err, r.what)
		}
	}
	// A core dump would leave the memory of a program, and its secrets, on the disk.
	// One byte is too little for a file, and the one limit at which the kernel
	// starts no program that takes dumps on a pipe (core(5)).
	if err := syscall.Setrlimit(unix.RLIMIT_CORE, &syscall.Rlimit{Cur: 1, Max: 1}); err != nil {
		return errors.Wrap(err, "core dumps")
	}
	return nil
}

// tightMemory is where a limit begins to matter to the first process itself.
// Where Go threads have stacks of the C library, each takes 8 MiB.
const tightMemory = 1 << 30

// setMemory sets the limit of memory, which this process has then to live
// within itself.
func (l Limits) setMemory() error {
	if l.Memory < tightMemory {
		prepareThreads()
	}
	if err := setLimit(unix.RLIMIT_DATA, l.Memory); err != nil {
		return errors.Wrap(err, "memory")
	}
	return nil
}

// prepareThreads lets the Go runtime make the threads that it will want: when it
// cannot make one later, it ends the process.
func prepareThreads() {
	const threads = 4
	var ready, done sync.WaitGroup
	ready.Add(threads)
	for range threads {
		done.Go(func() {
			runtime.LockOSThread() // and with that this goroutine takes a thread for itself
			defer runtime.UnlockOSThread()
			ready.Done()
			ready.Wait()
		})
	}
	done.Wait()
}

func setLimit(resource int, limit uint64) error {
	if limit == 0 {
		return nil
	}
	var now syscall.Rlimit
	if err := syscall.Getrlimit(resource, &now); err != nil {
		return err
	}
	limit = min(limit, now.Max)
	return syscall.Setrlimit(resource, &syscall.Rlimit{Cur: limit, Max: limit})
}
