package bolt

import (
	"context"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"go.etcd.io/bbolt"
	"golang.org/x/sys/unix"

	"agentrun/storage/kv"
)

// maxMembers is the most updates that share a commit. Beyond some hundreds a
// larger commit saves nothing more per update and makes the first ones wait.
const maxMembers = 256

// errNothing ends a bbolt transaction that need not be committed.
var errNothing = errors.New("nothing was written")

// update is one call of Update. Its function runs in its caller's goroutine,
// when the writer gives it the turn: a panic, or the end of a test, then takes
// the goroutine that it belongs to, and never the writer.
type update struct {
	ctx  context.Context
	fn   func(kv.Tx) error
	turn chan *transaction
	done chan error // what Update returns; holds one, so that telling never waits

	// Written by the caller while it has the turn, read by the writer after.
	started bool
	left    bool // the caller waits for nothing any more
	err     error
}

// Update implements [kv.DB].
func (db *DB) Update(ctx context.Context, fn func(kv.Tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := db.enter(); err != nil {
		return err
	}
	defer db.running.Done()
	u := &update{ctx: ctx, fn: fn, turn: make(chan *transaction), done: make(chan error, 1)}
	select {
	case db.updates <- u:
	case <-ctx.Done():
		return ctx.Err()
	case <-db.broken:
		return db.brokenErr
	}
	ended := ctx.Done()
	for {
		select {
		case tx := <-u.turn:
			if err := ctx.Err(); err != nil && !u.started {
				u.left = true
				db.ran <- struct{}{}
				return err
			}
			ended = nil // from here on the commit's outcome counts
			db.run(u, tx)
		case err := <-u.done:
			return err
		case <-ended:
			return ctx.Err()
		case <-db.broken:
			if u.started {
				return errors.Wrap(kv.ErrUnknown, db.brokenErr.Error())
			}
			return db.brokenErr
		}
	}
}

// run runs the function of an update that has the turn, and gives the turn
// back however the function ends.
func (db *DB) run(u *update, tx *transaction) {
	u.started, u.left = true, true
	defer func() {
		tx.end()
		db.ran <- struct{}{}
	}()
	u.err = protectCaller(db.path, func() error { return u.fn(tx) })
	u.left = false
}

// write is the writer: it makes one commit after the other, of whatever waits,
// until the store is closed.
func (db *DB) write() {
	defer close(db.written)
	for {
		select {
		case first, open := <-db.updates:
			if !open {
				return
			}
			db.commit(first, db.next)
		case <-db.broken:
			return
		}
	}
}

// shared is one commit in the making.
type shared struct {
	tx      *bbolt.Tx
	id      int // of tx
	stage   stage
	members []*update // those whose answer depends on the outcome
	began   time.Time // when their functions had all run
}

// commit runs an update, and those that more returns, in one bbolt transaction
// and answers them all.
func (db *DB) commit(first *update, more func(have int) *update) {
	if db.refusal != nil {
		first.done <- db.refusal
		return
	}
	c := &shared{}
	err := protect(db.path, func() error {
		return db.bolt.Update(func(tx *bbolt.Tx) error {
			c.tx, c.id = tx, tx.ID()
			db.gather(c, first, more)
			if c.stage.writes == 0 {
				return errNothing
			}
			c.began = time.Now()
			db.setCommitting(true)
			return c.stage.apply(tx)
		})
	})
	db.setCommitting(false)
	db.expected = expected{} // waited for until now
	switch {
	case c.tx == nil:
		first.done <- db.noTransaction(err)
	case err == nil:
		db.commits.Add(1)
		db.expected = expect(len(c.members), len(db.updates), time.Since(c.began))
		for _, u := range c.members {
			u.done <- u.err
		}
	case !errors.Is(err, errNothing):
		db.settle(c, err)
	}
}

// setCommitting tells the views whether a commit is on, once no view is in the
// middle of its Begin.
func (db *DB) setCommitting(on bool) {
	db.gate.Lock()
	defer db.gate.Unlock()
	db.committing = on
}

// gather runs the updates of a commit one after the other.
func (db *DB) gather(c *shared, first *update, more func(have int) *update) {
	for u, n := first, 1; u != nil; n++ {
		db.give(c, u)
		if n == maxMembers {
			return
		}
		u = more(n)
	}
}

// give gives one update the turn. When nothing is staged after it, it has
// neither written nor seen anything that the commit could still lose, and is
// answered at once.
func (db *DB) give(c *shared, u *update) {
	var ended <-chan struct{}
	if !u.started {
		ended = u.ctx.Done() // the caller leaves by this door too
	}
	tx := &transaction{reader: reader{path: db.path, tx: c.tx}, stage: &c.stage}
	select {
	case u.turn <- tx:
	case <-ended:
		return
	case <-db.broken:
		return
	}
	<-db.ran
	if u.left || u.err != nil {
		c.stage.discard()
	} else {
		c.stage.keep()
	}
	switch {
	case u.left:
	case c.stage.writes == 0:
		u.done <- u.err
	default:
		c.members = append(c.members, u)
	}
}

// noTransaction says why bbolt gave no transaction to write in.
func (db *DB) noTransaction(err error) error {
	if errors.Is(err, kv.ErrDamaged) {
		db.refusal = err
		db.breakDown(err) // bbolt panicked with its writer's lock held
		return err
	}
	return errors.Wrapf(kv.ErrUnavailable, "%s: %v", db.path, err)
}

// settle answers the members of a commit that did not succeed.
func (db *DB) settle(c *shared, err error) {
	outcome := db.outcome(c, err)
	if errors.Is(outcome, kv.ErrDamaged) && len(c.members) > 1 {
		// Only some of them touched what is damaged. Each for itself, then.
		for _, u := range c.members {
			db.commit(u, func(int) *update { return nil })
		}
		return
	}
	for _, u := range c.members {
		u.done <- outcome
	}
}

// outcome says what became of a commit that returned an error. bbolt has then
// rolled its transaction back and read its list of free pages anew, and can go
// on; but a failed disk sync can leave anything behind, the commit included.
func (db *DB) outcome(c *shared, err error) error {
	if !db.landed(c) {
		if noSpace(err) {
			return errors.Wrapf(kv.ErrNoSpace, "%s: commit: %v", db.path, err)
		}
		if errors.Is(err, kv.ErrDamaged) {
			return err
		}
	}
	db.refusal = errors.Wrapf(kv.ErrUnknown, "%s: commit: %v", db.path, err)
	return db.refusal
}

// landed reports whether the new meta page of a failed commit may be in the
// file: then a reader sees the commit's own transaction ID.
func (db *DB) landed(c *shared) bool {
	if c.tx.DB() != nil {
		// The rollback panicked, with the writer's lock held.
		db.breakDown(errors.Wrapf(kv.ErrDamaged, "%s: the roll-back of a commit", db.path))
		return true
	}
	b := db.beginNow()
	if b.err != nil {
		return true
	}
	seen := b.tx.ID()
	db.end(b.tx)
	return seen >= c.id
}

// noSpace reports whether an error says that the file may not grow. bbolt
// passes some of them on as text only.
func noSpace(err error) bool {
	for _, errno := range []unix.Errno{unix.ENOSPC, unix.EDQUOT, unix.EFBIG} {
		if errors.Is(err, errno) || strings.HasSuffix(err.Error(), errno.Error()) {
			return true
		}
	}
	return false
}
