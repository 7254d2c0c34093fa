package kvtest

import (
	"context"
	"fmt"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// testViewsAmongUpdates has views read for as long as updates move amounts
// between keys, and change the number of keys: a view that saw parts of two
// commits would find another sum, or another sum when it looks again.
func testViewsAmongUpdates(t *testing.T, db kv.DB) {
	const movers, viewers, rounds, sum = 4, 4, 25, 1000
	update(t, db, func(tx kv.Tx) error { return put(tx, "s", "0", strconv.Itoa(sum)) })
	var moving atomic.Int32
	moving.Store(movers)
	err := together(db, movers+viewers, func(i int) error {
		if i >= movers {
			for moving.Load() > 0 {
				if err := db.View(t.Context(), func(r kv.Reader) error { return wantSum(r, sum) }); err != nil {
					return err
				}
			}
			return nil
		}
		defer moving.Add(-1)
		for round := range rounds {
			key := strconv.Itoa(1 + (i+round)%movers)
			if err := db.Update(t.Context(), func(tx kv.Tx) error { return move(tx, key, 1+round) }); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	view(t, db, func(r kv.Reader) error { return wantSum(r, sum) })
}

// move gives an amount of what key 0 has to a key that is not there, and gives
// back all that the key has otherwise.
func move(tx kv.Tx, key string, amount int) error {
	from, err := number(tx, "0")
	if err != nil {
		return err
	}
	has, err := number(tx, key)
	if err != nil {
		return err
	}
	if has != 0 {
		return errors.Join(put(tx, "s", "0", strconv.Itoa(from+has)), tx.Delete("s", []byte(key)))
	}
	return put(tx, "s", "0", strconv.Itoa(from-amount), key, strconv.Itoa(amount))
}

// number returns the number at key, and 0 when there is none.
func number(r kv.Reader, key string) (int, error) {
	value, err := r.Get("s", []byte(key))
	if value == nil || err != nil {
		return 0, err
	}
	return strconv.Atoi(string(value))
}

// wantSum adds the numbers up, twice by a scan and once key by key.
func wantSum(r kv.Reader, want int) error {
	for range 2 {
		pairs, err := r.Scan(kv.Range{Space: "s"})
		if err != nil {
			return err
		}
		scanned, got := 0, 0
		for _, p := range pairs {
			n, err := strconv.Atoi(string(p.Value))
			if err != nil {
				return err
			}
			scanned += n
			if n, err = number(r, string(p.Key)); err != nil {
				return err
			}
			got += n
		}
		if scanned != want || got != want {
			return errors.Errorf("the numbers in a snapshot are %d by scan and %d by get, want %d", scanned, got, want)
		}
	}
	return nil
}

// testFunctionsRunAfresh has a function look for what it wrote itself in an
// earlier run, while others commit too; with [Rerun] there always is one.
func testFunctionsRunAfresh(t *testing.T, db kv.DB) {
	const n = 16
	update(t, db, func(tx kv.Tx) error { return put(tx, "s", "kept", "v") })
	err := together(db, n, func(i int) error {
		own, result := fmt.Sprintf("own%02d", i), ""
		err := db.Update(t.Context(), func(tx kv.Tx) error {
			err := errors.Join(
				wantGet(tx, "s", own, "(absent)"),
				wantGet(tx, "s", "kept", "v"),
				wantScan(tx, kv.Range{Space: own}),
			)
			if err != nil {
				return err
			}
			err = errors.Join(put(tx, "s", own, "v", "kept", "w"), put(tx, own, "k", "v"), tx.Delete("s", []byte("kept")))
			if err != nil {
				return err
			}
			if err := wantGet(tx, "s", "kept", "(absent)"); err != nil {
				return err
			}
			result = own
			return put(tx, "s", "kept", "v")
		})
		if err == nil && result != own {
			return errors.Errorf("a function that ran came to %q, want %q", result, own)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	view(t, db, func(r kv.Reader) error {
		pairs, err := r.Scan(kv.Prefix("s", []byte("own")))
		if err == nil && len(pairs) != n {
			err = errors.Errorf("%d functions wrote, want %d", len(pairs), n)
		}
		return err
	})
}

// endsWhenAwaited is a context that ends as soon as somebody waits for its end.
type endsWhenAwaited struct {
	context.Context
	end context.CancelFunc
}

func (c endsWhenAwaited) Done() <-chan struct{} {
	c.end()
	return c.Context.Done()
}

// testContextEndsInWait has contexts end while an update that is under way
// makes others wait, in a store where it does. They return before it ends, and
// none leaves a trace that returned its context's error.
func testContextEndsInWait(t *testing.T, db kv.DB) {
	const n = 16
	holding, let, held := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	hold := sync.OnceFunc(func() { close(holding) })
	go func() {
		held <- db.Update(t.Context(), func(tx kv.Tx) error {
			hold()
			<-let
			return put(tx, "s", "held", "v")
		})
	}()
	<-holding
	want := map[string]string{"held": "v"}
	for i := range n {
		key := fmt.Sprintf("left%02d", i)
		ended, end := context.WithCancel(t.Context())
		err := db.Update(endsWhenAwaited{ended, end}, func(tx kv.Tx) error { return put(tx, "t", key, "v") })
		end()
		want[key] = "(absent)"
		if err == nil {
			want[key] = "v"
		} else if !errors.Is(err, context.Canceled) {
			t.Errorf("update returned %v, want %v", err, context.Canceled)
		}
	}
	close(let)
	if err := <-held; err != nil {
		t.Errorf("the update that the others waited for: %v", err)
	}
	update(t, db, func(tx kv.Tx) error { return put(tx, "s", "after", "v") }) // gives late writes time to land
	view(t, db, func(r kv.Reader) error {
		var errs []error
		for key, value := range want {
			space := "t"
			if key == "held" {
				space = "s"
			}
			errs = append(errs, wantGet(r, space, key, value))
		}
		return errors.Join(errs...)
	})
}

// testCloseWaits closes the store while a view is under way, which has to be
// able to read until its end.
func testCloseWaits(t *testing.T, db kv.DB) {
	const tries = 1000 // in which a Close that does not wait may return
	update(t, db, func(tx kv.Tx) error { return put(tx, "s", "k", "v") })
	let, begun := make(chan struct{}), make(chan struct{})
	var ended atomic.Bool
	viewed, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		viewed <- db.View(t.Context(), func(r kv.Reader) error {
			close(begun)
			<-let
			err := wantGet(r, "s", "k", "v")
			ended.Store(true)
			return err
		})
	}()
	<-begun
	go func() {
		err := db.Close()
		if !ended.Load() {
			err = errors.Join(err, errors.New("returned during a view"))
		}
		closed <- err
	}()
	for range tries {
		err := db.View(t.Context(), func(kv.Reader) error { return nil })
		if err != nil && !errors.Is(err, kv.ErrUnavailable) {
			t.Errorf("view returned %v, want %v or nothing", err, kv.ErrUnavailable)
		}
		runtime.Gosched()
	}
	close(let)
	if err := <-viewed; err != nil {
		t.Errorf("the view that was under way: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
}
