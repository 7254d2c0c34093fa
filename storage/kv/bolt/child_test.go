package bolt

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"

	"github.com/go-faster/errors"
	"golang.org/x/sys/unix"

	"agentrun/storage/kv"
)

// children are the parts of tests that need a process of their own, because
// they limit, mount or break what belongs to the whole process.
func children() map[string]func(args []string) error {
	return map[string]func([]string) error{
		"file limit": childFileLimit,
		"full disk":  childFullDisk,
		"sync fails": childSyncFails,
	}
}

// child returns the command that runs a child, after the words of launcher.
func child(name string, args []string, launcher ...string) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	words := append(append(launcher, self), args...)
	cmd := exec.Command(words[0], words[1:]...)
	// A child of a race-tested binary would sleep for a second before it exits.
	cmd.Env = append(os.Environ(), childVar+"="+name, "GORACE=atexit_sleep_ms=0")
	return cmd, nil
}

// childPut writes a value in one update.
func childPut(db *DB, key string, size int) error {
	return db.Update(context.Background(), func(tx kv.Tx) error {
		return tx.Put("s", []byte(key), bytes.Repeat([]byte{'v'}, size))
	})
}

// childWant returns an error unless the store holds values of these sizes.
func childWant(db *DB, want map[string]int) error {
	return db.View(context.Background(), func(r kv.Reader) error {
		pairs, err := r.Scan(kv.Range{Space: "s"})
		if err != nil {
			return err
		}
		got := make(map[string]int)
		for _, p := range pairs {
			got[string(p.Key)] = len(p.Value)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return errors.Errorf("the store holds %v, want %v", got, want)
		}
		return nil
	})
}

// childCheck has bbolt compare all its pages with its list of free ones.
func childCheck(db *DB) error {
	tx, err := db.bolt.Begin(false)
	if err != nil {
		return err
	}
	var errs []error
	for err := range tx.Check() {
		errs = append(errs, err)
	}
	return errors.Join(append(errs, tx.Rollback())...)
}

// childFileLimit lets no file grow, sees updates refused, lifts the limit and
// goes on.
func childFileLimit(args []string) error {
	signal.Ignore(unix.SIGXFSZ)
	db, err := Open(args[0], Options{})
	if err != nil {
		return err
	}
	if err := childPut(db, "before", 100); err != nil {
		return err
	}
	info, err := os.Stat(args[0])
	if err != nil {
		return err
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	free := limit.Cur
	limit.Cur = uint64(info.Size())
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	const large = 20 << 20
	if err := childRefused(db, large); err != nil {
		return err
	}
	if err := childPut(db, "small", 200); err != nil {
		return errors.Wrap(err, "an update that fits, after one that did not")
	}
	limit.Cur = free
	if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &limit); err != nil {
		return err
	}
	if err := childPut(db, "large", large); err != nil {
		return errors.Wrap(err, "the update after the limit was lifted")
	}
	return childReopen(db, map[string]int{"before": 100, "small": 200, "large": large})
}

// childRefused has a commit refused for its size. Its members are one that
// read the store before the large write, one that is too large, and one that
// fails for what it saw of that write.
func childRefused(db *DB, large int) error {
	holding, let := make(chan struct{}), make(chan struct{})
	first, second, third := make(chan error, 1), make(chan error, 1), make(chan error, 1)
	go func() {
		first <- db.Update(context.Background(), func(tx kv.Tx) error {
			close(holding)
			<-let
			_, err := tx.Get("s", []byte("large"))
			return err
		})
	}()
	<-holding
	go func() { second <- childPut(db, "large", large) }()
	awaitQueue(db, 1)
	saw := errors.New("saw what never was")
	go func() {
		third <- db.Update(context.Background(), func(tx kv.Tx) error {
			if value, err := tx.Get("s", []byte("large")); err != nil || value == nil {
				return errors.Errorf("did not see the write before it: %v", err)
			}
			return saw
		})
	}()
	awaitQueue(db, 2)
	close(let)
	if err := <-first; err != nil {
		return errors.Wrap(err, "the member that only read")
	}
	if err := <-second; !errors.Is(err, kv.ErrNoSpace) {
		return errors.Errorf("the member that is too large got %v, want %v", err, kv.ErrNoSpace)
	}
	if err := <-third; !errors.Is(err, kv.ErrNoSpace) {
		return errors.Errorf("the member that saw the refused write got %v, want %v", err, kv.ErrNoSpace)
	}
	return childWant(db, map[string]int{"before": 100})
}

// childReopen checks a store, and what a reopened one finds.
func childReopen(db *DB, want map[string]int) error {
	if err := errors.Join(childWant(db, want), childCheck(db), db.Close()); err != nil {
		return err
	}
	db, err := Open(db.path, Options{})
	if err != nil {
		return err
	}
	return errors.Join(childWant(db, want), childCheck(db), db.Close())
}

const noMount = "mount a small disk"

// childFullDisk fills a small disk, sees updates refused, makes room and goes
// on. It runs in a mount namespace of its own.
func childFullDisk(args []string) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return errors.Wrap(err, noMount)
	}
	if err := unix.Mount("tmpfs", args[0], "tmpfs", 0, "size=6m"); err != nil {
		return errors.Wrap(err, noMount)
	}
	ballast := filepath.Join(args[0], "ballast")
	if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); err != nil {
		return err
	}
	db, err := Open(filepath.Join(args[0], "test.db"), Options{})
	if err != nil {
		return err
	}
	want := make(map[string]int)
	for i := 0; ; i++ {
		err := childPut(db, fmt.Sprint(i), 100_000)
		if errors.Is(err, kv.ErrNoSpace) {
			break
		}
		if err != nil {
			return err
		}
		want[fmt.Sprint(i)] = 100_000
	}
	if len(want) == 0 {
		return errors.New("nothing was stored before the disk was full")
	}
	// A small one may still fit, into pages that were freed before.
	if err := childPut(db, "again", 3<<20); !errors.Is(err, kv.ErrNoSpace) {
		return errors.Errorf("update on the full disk returned %v, want %v", err, kv.ErrNoSpace)
	}
	if err := childWant(db, want); err != nil {
		return err
	}
	if err := os.Remove(ballast); err != nil {
		return err
	}
	if err := childPut(db, "after", 100_000); err != nil {
		return errors.Wrap(err, "the update after there was space")
	}
	want["after"] = 100_000
	return childReopen(db, want)
}

// childSyncFails makes a second commit, of which one of the two syncs fails,
// and sees whether the outcome, and that of later updates, is as args say.
func childSyncFails(args []string) error {
	path, wanted := args[0], args[1]
	db, err := open(path, Options{})
	if err != nil {
		return err
	}
	go func() {
		runtime.LockOSThread() // the faults are counted for each thread
		db.write()
	}()
	if err := childPut(db, "first", 1); err != nil {
		return err
	}
	wantErr := map[string]error{"unknown": kv.ErrUnknown, "no space": kv.ErrNoSpace}[wanted]
	if err := childPut(db, "second", 2); !errors.Is(err, wantErr) {
		return errors.Errorf("the update returned %v, want %v", err, wantErr)
	}
	if wantErr == kv.ErrNoSpace {
		if err := childWant(db, map[string]int{"first": 1}); err != nil {
			return err
		}
		if err := childPut(db, "third", 3); err != nil {
			return err
		}
		return childReopen(db, map[string]int{"first": 1, "third": 3})
	}
	if err := childPut(db, "third", 3); !errors.Is(err, wantErr) {
		return errors.Errorf("the next update returned %v, want %v", err, wantErr)
	}
	err = db.View(context.Background(), func(r kv.Reader) error {
		first, err := r.Get("s", []byte("first"))
		third, err3 := r.Get("s", []byte("third"))
		if len(first) != 1 || third != nil {
			return errors.Errorf("the store holds %q and %q", first, third)
		}
		return errors.Join(err, err3)
	})
	return errors.Join(err, db.Close())
}
