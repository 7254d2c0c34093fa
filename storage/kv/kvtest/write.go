package kvtest

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

var errRefused = errors.New("refused by the function")

func testOwnWrites(t *testing.T, db kv.DB) {
	update(t, db, func(tx kv.Tx) error { return put(tx, "s", "a", "1", "b", "1", "c", "1", "e", "1") })
	update(t, db, func(tx kv.Tx) error {
		if err := put(tx, "s", "b", "2", "d", "2", "f", "2", "f", "3"); err != nil {
			return err
		}
		for _, key := range []string{"a", "d", "e"} {
			if err := tx.Delete("s", []byte(key)); err != nil {
				return err
			}
		}
		if err := put(tx, "s", "e", "4"); err != nil {
			return err
		}
		return errors.Join(
			wantGet(tx, "s", "a", "(absent)"),
			wantGet(tx, "s", "b", "2"),
			wantGet(tx, "s", "c", "1"),
			wantGet(tx, "s", "d", "(absent)"),
			wantGet(tx, "s", "e", "4"),
			wantGet(tx, "s", "f", "3"),
			wantScan(tx, kv.Range{Space: "s"}, "b=2", "c=1", "e=4", "f=3"),
			wantScan(tx, kv.Range{Space: "s", Reverse: true}, "f=3", "e=4", "c=1", "b=2"),
			wantScan(tx, kv.Range{Space: "s", Limit: 2}, "b=2", "c=1"),
			wantScan(tx, kv.Range{Space: "s", Reverse: true, Limit: 3}, "f=3", "e=4", "c=1"),
		)
	})
	view(t, db, func(r kv.Reader) error {
		return wantScan(r, kv.Range{Space: "s"}, "b=2", "c=1", "e=4", "f=3")
	})
}

// testSlicesLast holds on to what was read while the same keys are written.
func testSlicesLast(t *testing.T, db kv.DB) {
	update(t, db, func(tx kv.Tx) error { return put(tx, "s", "a", "old", "b", "old") })
	update(t, db, func(tx kv.Tx) error {
		stored, err := tx.Get("s", []byte("a"))
		if err != nil {
			return err
		}
		if err := put(tx, "s", "a", "new"); err != nil {
			return err
		}
		staged, err := tx.Get("s", []byte("a"))
		if err != nil {
			return err
		}
		pairs, err := tx.Scan(kv.Range{Space: "s"})
		if err != nil {
			return err
		}
		if err := put(tx, "s", "a", "end", "b", "end", "0", "end"); err != nil {
			return err
		}
		got := fmt.Sprintf("%s %s %s", stored, staged, pairs)
		if want := "old new [{a new} {b old}]"; got != want {
			return errors.Errorf("slices hold %s, want %s", got, want)
		}
		return nil
	})
}

func testArgumentsCopied(t *testing.T, db kv.DB) {
	update(t, db, func(tx kv.Tx) error {
		key, value := []byte("key"), []byte("value")
		if err := tx.Put("s", key, value); err != nil {
			return err
		}
		copy(key, "XXX")
		copy(value, "XXXXX")
		gone := []byte("gone")
		if err := tx.Delete("s", gone); err != nil {
			return err
		}
		copy(gone, "key ")
		return wantScan(tx, kv.Range{Space: "s"}, "key=value")
	})
	view(t, db, func(r kv.Reader) error {
		return wantScan(r, kv.Range{Space: "s"}, "key=value")
	})
}

func testEmptyKey(t *testing.T, db kv.DB) {
	for _, key := range [][]byte{nil, {}} {
		err := db.Update(t.Context(), func(tx kv.Tx) error {
			if err := put(tx, "s", "k", "v"); err != nil {
				t.Errorf("put: %v", err)
			}
			return tx.Put("s", key, []byte("v"))
		})
		if err == nil {
			t.Errorf("put with the key %#v succeeded", key)
		}
	}
	view(t, db, func(r kv.Reader) error { return wantScan(r, kv.Range{Space: "s"}) })
}

func testDeleteAbsent(t *testing.T, db kv.DB) {
	update(t, db, func(tx kv.Tx) error { return tx.Delete("nowhere", []byte("k")) })
	update(t, db, func(tx kv.Tx) error { return put(tx, "s", "k", "v") })
	update(t, db, func(tx kv.Tx) error {
		if err := tx.Delete("s", []byte("other")); err != nil {
			return err
		}
		return put(tx, "t", "k", "v")
	})
	view(t, db, func(r kv.Reader) error {
		return errors.Join(wantGet(r, "s", "k", "v"), wantGet(r, "t", "k", "v"))
	})
}

func testFailedFunction(t *testing.T, db kv.DB) {
	update(t, db, func(tx kv.Tx) error { return put(tx, "s", "a", "1", "b", "1") })
	err := db.Update(t.Context(), func(tx kv.Tx) error {
		if err := put(tx, "s", "a", "2", "c", "2"); err != nil {
			return err
		}
		if err := put(tx, "new", "k", "v"); err != nil {
			return err
		}
		if err := tx.Delete("s", []byte("b")); err != nil {
			return err
		}
		return errRefused
	})
	if err != errRefused {
		t.Errorf("update returned %v, want the function's own error as it is", err)
	}
	view(t, db, func(r kv.Reader) error {
		return errors.Join(
			wantScan(r, kv.Range{Space: "s"}, "a=1", "b=1"),
			wantScan(r, kv.Range{Space: "new"}),
		)
	})
}

// together runs updates at the same time, so that they may share commits.
func together(db kv.DB, n int, call func(i int) error) error {
	errs := make([]error, n)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			<-start
			errs[i] = call(i)
		})
	}
	close(start)
	wg.Wait()
	return errors.Join(errs...)
}

func testFailuresAmongOthers(t *testing.T, db kv.DB) {
	const n = 48
	err := together(db, n, func(i int) error {
		own := fmt.Sprintf("own%02d", i)
		err := db.Update(t.Context(), func(tx kv.Tx) error {
			if err := put(tx, "s", own, "v", "last", own); err != nil {
				return err
			}
			if i%3 != 0 {
				return nil
			}
			if err := tx.Delete("s", fmt.Appendf(nil, "own%02d", i+1)); err != nil {
				return err
			}
			return errRefused
		})
		if i%3 == 0 && err == errRefused {
			return nil
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	view(t, db, func(r kv.Reader) error {
		for i := range n {
			want := "v"
			if i%3 == 0 {
				want = "(absent)"
			}
			if err := wantGet(r, "s", fmt.Sprintf("own%02d", i), want); err != nil {
				return err
			}
		}
		last, err := get(r, "s", "last")
		if err != nil {
			return err
		}
		return wantGet(r, "s", last, "v")
	})
}

func testIncrements(t *testing.T, db kv.DB) {
	const n, each = 32, 8
	err := together(db, n, func(int) error {
		for range each {
			var after int
			err := db.Update(t.Context(), func(tx kv.Tx) error {
				value, err := tx.Get("s", []byte("sum"))
				if err != nil {
					return err
				}
				before := 0
				if value != nil {
					if before, err = strconv.Atoi(string(value)); err != nil {
						return err
					}
				}
				after = before + 1
				return put(tx, "s", "sum", strconv.Itoa(after), fmt.Sprintf("seen%03d", after), "")
			})
			if err != nil {
				return err
			}
			if after < 1 || after > n*each {
				return errors.Errorf("an increment came to %d", after)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	view(t, db, func(r kv.Reader) error {
		seen, err := r.Scan(kv.Prefix("s", []byte("seen")))
		if err != nil {
			return err
		}
		if len(seen) != n*each {
			return errors.Errorf("%d sums were seen, want %d", len(seen), n*each)
		}
		return wantGet(r, "s", "sum", strconv.Itoa(n*each))
	})
}

func testSnapshot(t *testing.T, db kv.DB) {
	update(t, db, func(tx kv.Tx) error { return put(tx, "s", "a", "1", "b", "1") })
	before := func(r kv.Reader) error {
		return errors.Join(
			wantGet(r, "s", "a", "1"),
			wantGet(r, "s", "c", "(absent)"),
			wantScan(r, kv.Range{Space: "s"}, "a=1", "b=1"),
			wantScan(r, kv.Range{Space: "new"}),
		)
	}
	view(t, db, func(r kv.Reader) error {
		if err := wantGet(r, "s", "a", "1"); err != nil {
			return err
		}
		updated := make(chan error)
		go func() {
			updated <- db.Update(t.Context(), func(tx kv.Tx) error {
				if err := put(tx, "s", "a", "2", "c", "2"); err != nil {
					return err
				}
				return errors.Join(put(tx, "new", "k", "v"), tx.Delete("s", []byte("b")))
			})
		}()
		if err := <-updated; err != nil {
			return err
		}
		return before(r)
	})
	view(t, db, func(r kv.Reader) error {
		return wantScan(r, kv.Range{Space: "s"}, "a=2", "c=2")
	})
}

func testViewError(t *testing.T, db kv.DB) {
	if err := db.View(t.Context(), func(kv.Reader) error { return errRefused }); err != errRefused {
		t.Errorf("view returned %v, want the function's own error as it is", err)
	}
}

func testContextEnded(t *testing.T, db kv.DB) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	err := db.Update(ctx, func(tx kv.Tx) error {
		t.Error("update called the function")
		return put(tx, "s", "k", "v")
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("update returned %v, want %v", err, context.Canceled)
	}
	err = db.View(ctx, func(kv.Reader) error {
		t.Error("view called the function")
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("view returned %v, want %v", err, context.Canceled)
	}
	view(t, db, func(r kv.Reader) error { return wantScan(r, kv.Range{Space: "s"}) })

	// A context may also end when the function has been called: all or nothing.
	ctx, cancel = context.WithCancel(t.Context())
	defer cancel()
	err = db.Update(ctx, func(tx kv.Tx) error {
		cancel()
		return put(tx, "s", "k", "v")
	})
	stored := "(absent)"
	if err == nil {
		stored = "v"
	}
	view(t, db, func(r kv.Reader) error { return wantGet(r, "s", "k", stored) })
}

func testClosed(t *testing.T, db kv.DB) {
	update(t, db, func(tx kv.Tx) error { return put(tx, "s", "k", "v") })
	for range 2 {
		if err := db.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
	err := db.Update(t.Context(), func(kv.Tx) error {
		t.Error("update called the function")
		return nil
	})
	if !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("update returned %v, want %v", err, kv.ErrUnavailable)
	}
	err = db.View(t.Context(), func(kv.Reader) error {
		t.Error("view called the function")
		return nil
	})
	if !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("view returned %v, want %v", err, kv.ErrUnavailable)
	}
}
