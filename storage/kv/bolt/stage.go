package bolt

import (
	"bytes"
	"slices"

	"github.com/go-faster/errors"
	"go.etcd.io/bbolt"

	"agentrun/storage/kv"
)

// stage holds what the functions that share a commit have written so far. The
// bbolt transaction gets it all at once, just before the commit: until then
// nothing has changed in it, so that a function which fails leaves no trace,
// and bbolt's cursors, which can lose their way among pages that deletions have
// emptied, never meet one.
type stage struct {
	spaces map[string][]write // in key order
	writes int                // in all spaces
	undo   []undo             // of the function that has the turn, oldest first
}

// write is one staged write. A nil value deletes the key.
type write struct {
	key, value []byte
}

// undo says what a key was in the stage before it was written to.
type undo struct {
	space string
	write write
	found bool
}

func (s *stage) get(space string, key []byte) (value []byte, found bool) {
	i, found := find(s.spaces[space], key)
	if !found {
		return nil, false
	}
	return s.spaces[space][i].value, true
}

// within returns the writes in a range, in key order.
func (s *stage) within(rng kv.Range) []write {
	writes := s.spaces[rng.Space]
	if len(writes) == 0 {
		return nil
	}
	from, _ := find(writes, rng.From)
	to := len(writes)
	if rng.To != nil {
		to, _ = find(writes, rng.To)
	}
	return writes[from:max(from, to)]
}

// set stages a write. It keeps the value, and a copy of the key.
func (s *stage) set(space string, key, value []byte) {
	writes := s.spaces[space]
	i, found := find(writes, key)
	if found {
		s.undo = append(s.undo, undo{space, writes[i], true})
		writes[i].value = value
		return
	}
	w := write{bytes.Clone(key), value}
	s.undo = append(s.undo, undo{space, w, false})
	if s.spaces == nil {
		s.spaces = make(map[string][]write)
	}
	s.spaces[space] = slices.Insert(writes, i, w)
	s.writes++
}

// keep ends a function's turn with its writes staged for good.
func (s *stage) keep() {
	clear(s.undo)
	s.undo = s.undo[:0]
}

// discard ends a function's turn as if it had written nothing.
func (s *stage) discard() {
	for _, u := range slices.Backward(s.undo) {
		writes := s.spaces[u.space]
		i, _ := find(writes, u.write.key)
		if u.found {
			writes[i] = u.write
			continue
		}
		s.spaces[u.space] = slices.Delete(writes, i, i+1)
		s.writes--
	}
	s.keep()
}

// apply writes everything to the transaction. What bbolt could refuse in a
// write was refused when it was staged, so that an error means damage.
func (s *stage) apply(tx *bbolt.Tx) error {
	for space, writes := range s.spaces {
		if err := applySpace(tx, space, writes); err != nil {
			return errors.Wrapf(kv.ErrDamaged, "space %s: %v", space, err)
		}
	}
	return nil
}

func applySpace(tx *bbolt.Tx, space string, writes []write) (err error) {
	bucket := tx.Bucket([]byte(space))
	for _, w := range writes {
		switch {
		case w.value == nil && bucket == nil:
			continue
		case w.value == nil:
			err = bucket.Delete(w.key)
		default:
			if bucket == nil {
				if bucket, err = tx.CreateBucket([]byte(space)); err != nil {
					return err
				}
			}
			err = bucket.Put(w.key, w.value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func find(writes []write, key []byte) (int, bool) {
	return slices.BinarySearchFunc(writes, key, func(w write, key []byte) int {
		return bytes.Compare(w.key, key)
	})
}

// transaction is what a function given to Update works on.
type transaction struct {
	reader
	stage *stage
}

var _ kv.Tx = (*transaction)(nil)

// Get implements [kv.Reader].
func (t *transaction) Get(space string, key []byte) ([]byte, error) {
	if t.tx == nil {
		return nil, errEnded
	}
	if value, found := t.stage.get(space, key); found {
		return value, nil
	}
	return t.reader.Get(space, key)
}

// Scan implements [kv.Reader].
func (t *transaction) Scan(rng kv.Range) ([]kv.Pair, error) {
	if t.tx == nil {
		return nil, errEnded
	}
	return t.scan(rng, t.stage.within(rng))
}

// Put implements [kv.Tx].
func (t *transaction) Put(space string, key, value []byte) error {
	switch {
	case t.tx == nil:
		return errEnded
	case space == "":
		return errors.New("the space has no name")
	case len(space) > bbolt.MaxKeySize:
		return errors.Errorf("the name of the space is too long, with %d bytes", len(space))
	case len(key) == 0:
		return errors.Errorf("space %s: the key is empty", space)
	case len(key) > bbolt.MaxKeySize:
		return errors.Errorf("space %s: the key is too long, with %d bytes", space, len(key))
	case len(value) > bbolt.MaxValueSize:
		return errors.Errorf("space %s: the value is too long, with %d bytes", space, len(value))
	}
	t.stage.set(space, key, append([]byte{}, value...)) // never nil, which would delete
	return nil
}

// Delete implements [kv.Tx].
func (t *transaction) Delete(space string, key []byte) error {
	if t.tx == nil {
		return errEnded
	}
	t.stage.set(space, key, nil)
	return nil
}
