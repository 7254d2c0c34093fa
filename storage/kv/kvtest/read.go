package kvtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"

	"agentrun/storage/kv"
)

// wantGet returns an error unless the value at key is as wanted.
func wantGet(r kv.Reader, space, key, want string) error {
	got, err := get(r, space, key)
	if err == nil && got != want {
		return errors.Errorf("value at %s/%q is %q, want %q", space, key, got, want)
	}
	return err
}

// wantScan returns an error unless a range holds the pairs that are wanted.
func wantScan(r kv.Reader, rng kv.Range, want ...string) error {
	got, err := scan(r, rng)
	if err != nil {
		return err
	}
	if !slices.Equal(got, want) {
		return errors.Errorf("scan of %+v (-want +got):\n%s", rng, cmp.Diff(want, got))
	}
	return nil
}

func testAbsent(t *testing.T, db kv.DB) {
	absent := func(r kv.Reader) error {
		value, err := r.Get("nowhere", []byte("k"))
		if value != nil || err != nil {
			return errors.Errorf("get returned %q, %v, want nil, nil", value, err)
		}
		if err := wantScan(r, kv.Range{Space: "nowhere"}); err != nil {
			return err
		}
		return wantScan(r, kv.Range{Space: "nowhere", Reverse: true})
	}
	view(t, db, absent)
	update(t, db, func(tx kv.Tx) error { return absent(tx) })
	view(t, db, absent)
	update(t, db, func(tx kv.Tx) error { return put(tx, "nowhere", "other", "v") })
	view(t, db, func(r kv.Reader) error { return wantGet(r, "nowhere", "k", "(absent)") })
}

func testEmptyValue(t *testing.T, db kv.DB) {
	present := func(r kv.Reader) error {
		for _, key := range []string{"empty", "nil"} {
			value, err := r.Get("s", []byte(key))
			if err != nil {
				return err
			}
			if value == nil || len(value) != 0 {
				return errors.Errorf("value at %s is %#v, want an empty slice", key, value)
			}
		}
		return wantScan(r, kv.Range{Space: "s"}, "empty=", "nil=")
	}
	update(t, db, func(tx kv.Tx) error {
		if err := tx.Put("s", []byte("empty"), []byte{}); err != nil {
			return err
		}
		if err := tx.Put("s", []byte("nil"), nil); err != nil {
			return err
		}
		return present(tx)
	})
	view(t, db, present)
	update(t, db, func(tx kv.Tx) error { return present(tx) })
}

func testByteOrder(t *testing.T, db kv.DB) {
	keys := []string{
		"\x00", "\x00\x00", "\x00\xff", "\x01", "A", "a", "a\x00", "aa", "ab", "b",
		"\x7f", "\x80", "é", "\xff", "\xff\x00", "\xff\xff",
	}
	update(t, db, func(tx kv.Tx) error {
		for i := range keys {
			if err := put(tx, "s", keys[(i*7)%len(keys)], ""); err != nil {
				return err
			}
		}
		return nil
	})
	want := make([]string, 0, len(keys))
	for _, key := range slices.Sorted(slices.Values(keys)) {
		want = append(want, key+"=")
	}
	view(t, db, func(r kv.Reader) error {
		return wantScan(r, kv.Range{Space: "s"}, want...)
	})
	slices.Reverse(want)
	view(t, db, func(r kv.Reader) error {
		return wantScan(r, kv.Range{Space: "s", Reverse: true}, want...)
	})
}

func testSpacesApart(t *testing.T, db kv.DB) {
	update(t, db, func(tx kv.Tx) error {
		return errors.Join(put(tx, "one", "k", "1"), put(tx, "two", "k", "2"))
	})
	update(t, db, func(tx kv.Tx) error { return tx.Delete("one", []byte("k")) })
	view(t, db, func(r kv.Reader) error {
		return errors.Join(
			wantGet(r, "one", "k", "(absent)"),
			wantGet(r, "two", "k", "2"),
			wantScan(r, kv.Range{Space: "one"}),
			wantScan(r, kv.Range{Space: "two"}, "k=2"),
		)
	})
}

// rangeCases are ranges over a space that holds b=1, d=2, dd=3 and f=4.
func rangeCases() map[string]kv.Range {
	b := func(s string) []byte { return []byte(s) }
	return map[string]kv.Range{
		"b=1 d=2 dd=3 f=4": {},
		"d=2 dd=3 f=4":     {From: b("d")},
		"d=2 dd=3":         {From: b("c"), To: b("f")},
		"b=1 d=2":          {To: b("dd")},
		"b=1":              {To: b("d"), Limit: 5},
		"b=1 d=2 dd=3":     {Limit: 3},
		"dd=3":             {From: b("d\x00"), To: b("e"), Limit: 1},
		"f=4 dd=3 d=2 b=1": {Reverse: true},
		"f=4 dd=3":         {Reverse: true, Limit: 2},
		"dd=3 d=2":         {Reverse: true, From: b("d"), To: b("f")},
		"d=2 b=1":          {Reverse: true, To: b("dd")},
		"f=4":              {Reverse: true, From: b("e")},
		"f=4 dd=3 d=2":     {Reverse: true, From: b("c"), To: b("z")},
		"d=2":              {Reverse: true, To: b("d\x00"), Limit: 1},
	}
}

// emptyRanges hold nothing of the same space.
func emptyRanges() []kv.Range {
	b := func(s string) []byte { return []byte(s) }
	return []kv.Range{
		{From: b("d"), To: b("d")},
		{From: b("f"), To: b("b")},
		{From: b("g")},
		{To: b("b")},
		{To: b("")},
		{From: b("de"), To: b("f")},
	}
}

func wantRanges(r kv.Reader) error {
	for want, rng := range rangeCases() {
		rng.Space = "s"
		if err := wantScan(r, rng, strings.Fields(want)...); err != nil {
			return err
		}
	}
	for _, rng := range emptyRanges() {
		rng.Space = "s"
		if err := wantScan(r, rng); err != nil {
			return err
		}
		rng.Reverse = true
		if err := wantScan(r, rng); err != nil {
			return err
		}
	}
	return nil
}

// testRanges reads the same ranges with none, some and all of the pairs staged
// in the transaction that reads.
func testRanges(t *testing.T, db kv.DB) {
	update(t, db, func(tx kv.Tx) error {
		if err := put(tx, "s", "f", "4", "b", "1", "dd", "3", "d", "2"); err != nil {
			return err
		}
		return wantRanges(tx)
	})
	view(t, db, wantRanges)
	update(t, db, func(tx kv.Tx) error { return wantRanges(tx) })
	update(t, db, func(tx kv.Tx) error {
		for _, key := range []string{"d", "f"} {
			if err := tx.Delete("s", []byte(key)); err != nil {
				return err
			}
		}
		return put(tx, "s", "a", "stored", "b", "stored", "c", "stored", "z", "stored")
	})
	update(t, db, func(tx kv.Tx) error {
		for _, key := range []string{"a", "c", "z"} {
			if err := tx.Delete("s", []byte(key)); err != nil {
				return err
			}
		}
		if err := put(tx, "s", "d", "2", "b", "1", "f", "4"); err != nil {
			return err
		}
		return wantRanges(tx)
	})
	view(t, db, wantRanges)
}

// testManyPages deletes long runs of keys, which empties whole pages of a tree,
// and reads over them in both directions before and after the commit.
func testManyPages(t *testing.T, db kv.DB) {
	const total = 3000
	key := func(i int) string { return fmt.Sprintf("%04d", i) }
	update(t, db, func(tx kv.Tx) error {
		for i := range total {
			if err := put(tx, "s", key(i), strings.Repeat("v", 50)); err != nil {
				return err
			}
		}
		return nil
	})
	want := func(r kv.Reader, kept ...int) error {
		for _, reverse := range []bool{false, true} {
			pairs, err := r.Scan(kv.Range{Space: "s", Reverse: reverse})
			if err != nil {
				return err
			}
			if len(pairs) != len(kept) {
				return errors.Errorf("scan, reverse %v, found %d pairs, want %d", reverse, len(pairs), len(kept))
			}
			for i, p := range pairs {
				if string(p.Key) != key(kept[i]) {
					return errors.Errorf("scan, reverse %v, found %s at %d, want %s", reverse, p.Key, i, key(kept[i]))
				}
			}
			slices.Reverse(kept)
		}
		return nil
	}
	update(t, db, func(tx kv.Tx) error {
		for i := range total {
			if i == 700 || i == 701 || i == 2000 {
				continue
			}
			if err := tx.Delete("s", []byte(key(i))); err != nil {
				return err
			}
		}
		return want(tx, 700, 701, 2000)
	})
	view(t, db, func(r kv.Reader) error { return want(r, 700, 701, 2000) })
	update(t, db, func(tx kv.Tx) error {
		for _, i := range []int{700, 701, 2000} {
			if err := tx.Delete("s", []byte(key(i))); err != nil {
				return err
			}
		}
		return want(tx)
	})
	view(t, db, func(r kv.Reader) error { return want(r) })
}

func testPrefetch(t *testing.T, db kv.DB) {
	update(t, db, func(tx kv.Tx) error { return put(tx, "s", "k", "v") })
	ranges := []kv.Range{{Space: "s"}, {Space: "nowhere", Limit: 1}, kv.Prefix("s", []byte("k"))}
	prefetch := func(r kv.Reader) error {
		if err := r.Prefetch(ranges...); err != nil {
			return err
		}
		return errors.Join(
			wantGet(r, "s", "k", "v"),
			wantScan(r, kv.Range{Space: "s"}, "k=v"),
			wantGet(r, "s", "other", "(absent)"),
		)
	}
	view(t, db, prefetch)
	update(t, db, func(tx kv.Tx) error {
		if err := prefetch(tx); err != nil {
			return err
		}
		if err := put(tx, "s", "k", "new"); err != nil {
			return err
		}
		return wantScan(tx, ranges[0], "k=new")
	})
}
