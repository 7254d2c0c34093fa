package bolt

import (
	"os"
	"time"

	"github.com/go-faster/errors"
	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"agentrun/storage/kv"
)

const (
	fileMode = 0o600

	// lockWait bounds the wait for another process to let go of the file: long
	// enough for one that is ending, short enough to be told at once.
	lockWait  = time.Second
	lockRetry = 20 * time.Millisecond
)

// openLocked opens a file of ours and takes its lock, the one that bbolt takes
// too. Only the holder may judge the contents: a live server changes them.
func openLocked(path string, flag int) (*os.File, error) {
	// Opening a pipe, a terminal or a disk would wait for it or disturb it.
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, errors.Wrapf(kv.ErrDamaged, "%s: not a regular file", path)
	}
	file, err := os.OpenFile(path, flag, fileMode)
	if err != nil {
		return nil, err
	}
	start, retry := time.Now(), time.NewTicker(lockRetry)
	defer retry.Stop()
	for {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			_ = file.Close() // nothing was written
			return nil, errors.Wrapf(err, "lock %s", path)
		}
		if time.Since(start) > lockWait {
			_ = file.Close() // nothing was written
			return nil, errors.Wrapf(kv.ErrInUse, "another agentrun is using %s", path)
		}
		<-retry.C
	}
}

// release gives up a file that bbolt may have left open and mapped when it
// panicked. A mapping would keep the lock beyond the closing of the file. That
// bbolt has closed it already is the other case, and no error.
func release(file *os.File) {
	if control, err := file.SyscallConn(); err == nil {
		_ = control.Control(func(fd uintptr) { _ = unix.Flock(int(fd), unix.LOCK_UN) })
	}
	_ = file.Close()
}

// openBolt opens a locked file as a store, once it is known to be one.
func openBolt(file *os.File, mmapSize int) (*bbolt.DB, error) {
	if err := checkFile(file); err != nil {
		return nil, errors.Wrap(err, file.Name())
	}
	return handOver(file, mmapSize)
}

// handOver gives a locked file to bbolt, which finds the lock already its own.
func handOver(file *os.File, mmapSize int) (*bbolt.DB, error) {
	var bolt *bbolt.DB
	err := protect(file.Name(), func() (err error) {
		bolt, err = bbolt.Open(file.Name(), fileMode, &bbolt.Options{
			Timeout:         lockWait,
			FreelistType:    bbolt.FreelistMapType,
			InitialMmapSize: mmapSize,
			NoStatistics:    true,
			OpenFile: func(string, int, os.FileMode) (*os.File, error) {
				return file, nil
			},
		})
		if err != nil {
			return errors.Wrap(err, file.Name())
		}
		return nil
	})
	return bolt, err
}
