package bolt

import (
	"bytes"

	"go.etcd.io/bbolt"

	"agentrun/storage/kv"
)

// scan returns the pairs of a range: those of the transaction with the staged
// writes, which are of the same range and in key order, laid over them.
func (r *reader) scan(rng kv.Range, staged []write) (_ []kv.Pair, err error) {
	defer r.recoverDamage(rng.Space, &err)
	bucket, err := r.bucket(rng.Space)
	if err != nil {
		return nil, err
	}
	var stored walk
	if bucket != nil {
		stored = startWalk(bucket.Cursor(), rng)
	}
	var pairs []kv.Pair
	for rng.Limit <= 0 || len(pairs) < rng.Limit {
		if len(staged) == 0 {
			if stored.key == nil {
				break
			}
			pairs = append(pairs, kv.Pair{Key: stored.key, Value: stored.value})
			stored.next()
			continue
		}
		first, rest := staged[0], staged[1:]
		if rng.Reverse {
			first, rest = staged[len(staged)-1], staged[:len(staged)-1]
		}
		order := -1 // of the staged write to the stored pair
		if stored.key != nil {
			order = bytes.Compare(first.key, stored.key)
			if rng.Reverse {
				order = -order
			}
		}
		if order > 0 {
			pairs = append(pairs, kv.Pair{Key: stored.key, Value: stored.value})
			stored.next()
			continue
		}
		if order == 0 {
			stored.next()
		}
		if first.value != nil {
			pairs = append(pairs, kv.Pair{Key: first.key, Value: first.value})
		}
		staged = rest
	}
	return pairs, nil
}

// walk is a bbolt cursor on its way through a range. Its key is nil when it is
// through.
type walk struct {
	cursor     *bbolt.Cursor
	rng        kv.Range
	key, value []byte
}

func startWalk(cursor *bbolt.Cursor, rng kv.Range) walk {
	w := walk{cursor: cursor, rng: rng}
	switch {
	case !rng.Reverse:
		w.stopAt(cursor.Seek(rng.From))
	case rng.To == nil:
		w.stopAt(cursor.Last())
	default:
		if key, _ := cursor.Seek(rng.To); key == nil {
			w.stopAt(cursor.Last())
		} else {
			w.stopAt(cursor.Prev())
		}
	}
	return w
}

// next goes on to the next pair. It panics, as bbolt does when it finds damage,
// unless that is further in the order of the range: the cursor would go round
// in circles if a page pointed back.
func (w *walk) next() {
	last, order := w.key, 1
	if w.rng.Reverse {
		order = -1
		w.stopAt(w.cursor.Prev())
	} else {
		w.stopAt(w.cursor.Next())
	}
	if w.key != nil && bytes.Compare(w.key, last) != order {
		panic("the keys are out of order")
	}
}

// stopAt takes the cursor's pair, unless that is beyond the end of the range.
func (w *walk) stopAt(key, value []byte) {
	if key != nil && w.rng.Reverse && bytes.Compare(key, w.rng.From) < 0 {
		key, value = nil, nil
	}
	if key != nil && !w.rng.Reverse && w.rng.To != nil && bytes.Compare(key, w.rng.To) >= 0 {
		key, value = nil, nil
	}
	w.key, w.value = key, value
}
