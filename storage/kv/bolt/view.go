package bolt

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"go.etcd.io/bbolt"

	"agentrun/storage/kv"
)

// errEnded is returned to a function that uses its transaction after it has
// returned; bbolt would read pages that may be somebody else's by then.
var errEnded = errors.New("the transaction has ended")

// View implements [kv.DB].
func (db *DB) View(ctx context.Context, fn func(kv.Reader) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := db.enter(); err != nil {
		return err
	}
	defer db.running.Done()
	tx, err := db.begin(ctx)
	if err != nil {
		return err
	}
	defer db.end(tx)
	r := &reader{path: db.path, tx: tx}
	defer r.end()
	return protectCaller(db.path, func() error { return fn(r) })
}

// begun is what bbolt's Begin came to.
type begun struct {
	tx  *bbolt.Tx
	err error
}

// begin begins a read transaction. A commit that has to map more of the file
// waits for every view under way, and meanwhile bbolt's Begin waits for it: too
// long for a caller. So Begin is called here only while no commit is on.
func (db *DB) begin(ctx context.Context) (*bbolt.Tx, error) {
	db.gate.RLock()
	if !db.committing {
		defer db.gate.RUnlock()
		b := db.beginNow()
		return b.tx, b.err
	}
	db.gate.RUnlock()
	return db.beginPatiently(ctx)
}

// beginPatiently begins a read transaction in a goroutine that the caller can
// leave behind. There is at most one: a second could only wait for the first.
func (db *DB) beginPatiently(ctx context.Context) (*bbolt.Tx, error) {
	timer := time.NewTimer(db.readWait)
	defer timer.Stop()
	late := func() error {
		return errors.Wrapf(kv.ErrUnavailable, "%s: no read transaction within %v", db.path, db.readWait)
	}
	select {
	case db.begins <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timer.C:
		return nil, late()
	case <-db.broken:
		return nil, db.brokenErr
	}
	result := make(chan begun)
	left := make(chan struct{})
	db.running.Add(1) // Close must wait for a Begin that nobody waits for
	go db.beginFor(result, left)
	select {
	case b := <-result:
		return b.tx, b.err
	case <-ctx.Done():
		close(left)
		return nil, ctx.Err()
	case <-timer.C:
		close(left)
		return nil, late()
	}
}

// beginFor hands a read transaction to a caller, or gives it back to bbolt when
// the caller has left.
func (db *DB) beginFor(result chan<- begun, left <-chan struct{}) {
	defer db.running.Done()
	b := db.beginNow()
	<-db.begins
	select {
	case result <- b:
	case <-left:
		if b.err == nil {
			db.end(b.tx)
		}
	}
}

func (db *DB) beginNow() begun {
	var tx *bbolt.Tx
	err := protect(db.path, func() (err error) {
		tx, err = db.bolt.Begin(false)
		return err
	})
	if errors.Is(err, kv.ErrDamaged) {
		db.breakDown(err) // bbolt panicked with its meta pages locked
	} else if err != nil {
		err = errors.Wrapf(kv.ErrUnavailable, "%s: %v", db.path, err)
	}
	return begun{tx, err}
}

// end gives a read transaction back. bbolt takes a lock for it that a waiting
// Begin holds, so that it is left to a goroutine while a commit is on.
func (db *DB) end(tx *bbolt.Tx) {
	select {
	case <-db.broken:
		return
	default:
	}
	db.gate.RLock()
	defer db.gate.RUnlock()
	if !db.committing {
		_ = tx.Rollback() // fails only on a transaction that has ended
		return
	}
	db.running.Go(func() { _ = tx.Rollback() })
}

// reader reads one bbolt transaction, to which nothing has been written.
type reader struct {
	path   string
	tx     *bbolt.Tx // nil when the reader has ended
	spaces []openSpace
}

// openSpace is a space that was looked up before; its bucket is nil when there
// was none.
type openSpace struct {
	name   string
	bucket *bbolt.Bucket
}

func (r *reader) end() {
	r.tx = nil
}

// Get implements [kv.Reader].
func (r *reader) Get(space string, key []byte) (_ []byte, err error) {
	defer r.recoverDamage(space, &err)
	bucket, err := r.bucket(space)
	if bucket == nil || err != nil {
		return nil, err
	}
	return bucket.Get(key), nil
}

// Scan implements [kv.Reader].
func (r *reader) Scan(rng kv.Range) ([]kv.Pair, error) {
	return r.scan(rng, nil)
}

// Prefetch implements [kv.Reader]. The file is mapped: there is no trip to
// save.
func (r *reader) Prefetch(...kv.Range) error {
	return nil
}

// bucket returns the bucket of a space, or nil when there is none. Looking it
// up in the transaction costs about as much as a Get.
func (r *reader) bucket(space string) (*bbolt.Bucket, error) {
	if r.tx == nil {
		return nil, errEnded
	}
	for _, s := range r.spaces {
		if s.name == space {
			return s.bucket, nil
		}
	}
	bucket := r.tx.Bucket([]byte(space))
	r.spaces = append(r.spaces, openSpace{space, bucket})
	return bucket, nil
}

// recoverDamage turns a panic inside bbolt into an error; no caller's code runs
// where it is deferred.
func (r *reader) recoverDamage(space string, err *error) {
	if cause := recover(); cause != nil {
		*err = damaged(r.path+": space "+space, cause)
	}
}
