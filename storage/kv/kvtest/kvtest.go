// Package kvtest is the suite that holds the implementations of kv.DB equal.
// It is for their tests, and for the tests of what is built on them; it may
// know nothing of one implementation that another would not do too.
package kvtest

import (
	"context"
	"testing"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// Run checks that the stores that open returns do what kv.DB promises. Each
// call of open has to return a store of its own, empty, in which an update can
// be committed while a view is under way. Run closes it.
//
// Every case runs twice: on the store, and on the store behind [Rerun].
func Run(t *testing.T, open func(t *testing.T) kv.DB) {
	t.Helper()
	modes := []struct {
		name string
		wrap func(kv.DB) kv.DB
	}{
		{"once", func(db kv.DB) kv.DB { return db }},
		{"rerun", Rerun},
	}
	for _, mode := range modes {
		t.Run(mode.name, func(t *testing.T) {
			for _, c := range cases() {
				t.Run(c.name, func(t *testing.T) {
					db := open(t)
					t.Cleanup(func() {
						if err := db.Close(); err != nil {
							t.Errorf("close: %v", err)
						}
					})
					c.check(t, mode.wrap(db))
				})
			}
		})
	}
}

type testCase struct {
	name  string
	check func(*testing.T, kv.DB)
}

func cases() []testCase {
	return []testCase{
		{"absent", testAbsent},
		{"empty value", testEmptyValue},
		{"byte order", testByteOrder},
		{"spaces apart", testSpacesApart},
		{"ranges", testRanges},
		{"many pages", testManyPages},
		{"prefetch", testPrefetch},
		{"own writes", testOwnWrites},
		{"slices last", testSlicesLast},
		{"arguments copied", testArgumentsCopied},
		{"buffers reused", testBuffersReused},
		{"read values put", testReadValuesPut},
		{"bounds reused", testBoundsReused},
		{"empty key", testEmptyKey},
		{"delete what is not there", testDeleteAbsent},
		{"failed function", testFailedFunction},
		{"failures among others", testFailuresAmongOthers},
		{"increments", testIncrements},
		{"functions run afresh", testFunctionsRunAfresh},
		{"snapshot", testSnapshot},
		{"views among updates", testViewsAmongUpdates},
		{"view's error", testViewError},
		{"context ended", testContextEnded},
		{"context ends in wait", testContextEndsInWait},
		{"close waits", testCloseWaits},
		{"closed", testClosed},
		{"model", testModel},
	}
}

var errRerun = errors.New("run it again")

// Rerun returns db as a store that runs every function given to Update twice,
// the first time with its writes undone. A function that has an effect outside
// its transaction, or adds to its results instead of assigning them, goes wrong
// on it every time, and not once in a thousand times.
func Rerun(db kv.DB) kv.DB {
	return rerunning{db}
}

type rerunning struct {
	kv.DB
}

func (r rerunning) Update(ctx context.Context, fn func(kv.Tx) error) error {
	err := r.DB.Update(ctx, func(tx kv.Tx) error {
		_ = fn(tx) // the run that counts is the second
		return errRerun
	})
	if !errors.Is(err, errRerun) {
		return err
	}
	return r.DB.Update(ctx, fn)
}

// update fails the test unless the update succeeds.
func update(t *testing.T, db kv.DB, fn func(kv.Tx) error) {
	t.Helper()
	if err := db.Update(t.Context(), fn); err != nil {
		t.Fatalf("update: %v", err)
	}
}

// view fails the test unless the view succeeds.
func view(t *testing.T, db kv.DB, fn func(kv.Reader) error) {
	t.Helper()
	if err := db.View(t.Context(), fn); err != nil {
		t.Fatalf("view: %v", err)
	}
}

// put writes keys with values, given by turns.
func put(tx kv.Tx, space string, keysAndValues ...string) error {
	for i := 0; i < len(keysAndValues); i += 2 {
		if err := tx.Put(space, []byte(keysAndValues[i]), []byte(keysAndValues[i+1])); err != nil {
			return err
		}
	}
	return nil
}

// scan returns the pairs of a range as "key=value".
func scan(r kv.Reader, rng kv.Range) ([]string, error) {
	pairs, err := r.Scan(rng)
	if err != nil {
		return nil, errors.Wrapf(err, "scan %s", rng.Space)
	}
	found := make([]string, 0, len(pairs))
	for _, p := range pairs {
		found = append(found, string(p.Key)+"="+string(p.Value))
	}
	return found, nil
}

// get returns the value at key, and "(absent)" when there is none.
func get(r kv.Reader, space, key string) (string, error) {
	value, err := r.Get(space, []byte(key))
	if err != nil {
		return "", errors.Wrapf(err, "get %s", space)
	}
	if value == nil {
		return "(absent)", nil
	}
	return string(value), nil
}
