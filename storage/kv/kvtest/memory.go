package kvtest

import (
	"fmt"
	"slices"
	"testing"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// testBuffersReused has callers use one key and one value for all their
// writes, in one function and from one update to the next, and spoil them as
// soon as an update has returned.
func testBuffersReused(t *testing.T, db kv.DB) {
	const callers, updates, writes = 4, 8, 3
	spoil := func(b []byte) {
		for i := range b {
			b[i] = 'X'
		}
	}
	want := make([][]string, callers)
	err := together(db, callers, func(c int) error {
		key, value := make([]byte, 0, 16), make([]byte, 0, 16)
		for u := range updates {
			err := db.Update(t.Context(), func(tx kv.Tx) error {
				for w := range writes {
					key = fmt.Appendf(key[:0], "%d-%d-%d", c, u, w)
					value = fmt.Appendf(value[:0], "value%d", w)
					if err := tx.Put("s", key, value); err != nil {
						return err
					}
				}
				key = fmt.Appendf(key[:0], "%d-%d-0", c, u)
				return tx.Delete("s", key)
			})
			if err != nil {
				return err
			}
			spoil(key)
			spoil(value)
			for w := 1; w < writes; w++ {
				want[c] = append(want[c], fmt.Sprintf("%d-%d-%d=value%d", c, u, w, w))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	view(t, db, func(r kv.Reader) error {
		return wantScan(r, kv.Range{Space: "s"}, slices.Concat(want...)...)
	})
}

// testReadValuesPut writes what was read, the store's own memory, elsewhere,
// and then changes it where it was.
func testReadValuesPut(t *testing.T, db kv.DB) {
	update(t, db, func(tx kv.Tx) error { return put(tx, "s", "a", "1", "b", "2") })
	rename := func(tx kv.Tx, from, to string) error {
		value, err := tx.Get(from, []byte("a"))
		if err != nil {
			return err
		}
		pairs, err := tx.Scan(kv.Range{Space: from})
		if err != nil {
			return err
		}
		if err := tx.Put(to, []byte("got"), value); err != nil {
			return err
		}
		for _, p := range pairs {
			if err := errors.Join(tx.Put(to, p.Key, p.Value), tx.Delete(from, p.Key)); err != nil {
				return err
			}
		}
		return put(tx, from, "a", "other")
	}
	update(t, db, func(tx kv.Tx) error {
		if err := rename(tx, "s", "t"); err != nil { // reads what is stored
			return err
		}
		return rename(tx, "t", "u") // reads what this function wrote
	})
	view(t, db, func(r kv.Reader) error {
		return errors.Join(
			wantScan(r, kv.Range{Space: "s"}, "a=other"),
			wantScan(r, kv.Range{Space: "t"}, "a=other"),
			wantScan(r, kv.Range{Space: "u"}, "a=1", "b=2", "got=1"),
		)
	})
}

// testBoundsReused spoils the bounds of a range and the key of a Get once they
// have returned: what they returned must not hang on them.
func testBoundsReused(t *testing.T, db kv.DB) {
	reuse := func(r kv.Reader) error {
		from, to, key := []byte("b"), []byte("d"), []byte("b")
		pairs, err := r.Scan(kv.Range{Space: "s", From: from, To: to})
		if err != nil {
			return err
		}
		value, err := r.Get("s", key)
		if err != nil {
			return err
		}
		copy(from, "X")
		copy(to, "X")
		copy(key, "X")
		if got, want := fmt.Sprintf("%s %s", pairs, value), "[{b 2} {c 3}] 2"; got != want {
			return errors.Errorf("slices hold %s, want %s", got, want)
		}
		return wantScan(r, kv.Range{Space: "s"}, "a=1", "b=2", "c=3", "d=4")
	}
	update(t, db, func(tx kv.Tx) error {
		if err := put(tx, "s", "a", "1", "b", "2", "c", "3", "d", "4"); err != nil {
			return err
		}
		return reuse(tx)
	})
	view(t, db, reuse)
}
