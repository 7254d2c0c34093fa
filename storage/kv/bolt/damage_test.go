package bolt

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// breakPage overwrites the header of a page that holds text.
func breakPage(t *testing.T, content []byte, text string) []byte {
	t.Helper()
	content = bytes.Clone(content)
	pageSize := os.Getpagesize()
	broken := 0
	for at := 2 * pageSize; at < len(content); at += pageSize {
		// An overflow page has no header; the keys are too many for one page.
		if bytes.Contains(content[at:at+pageSize], []byte(text)) {
			copy(content[at:], "broken")
			broken++
		}
	}
	if broken == 0 {
		t.Fatalf("no page holds %q", text)
	}
	return content
}

// TestDamagedPage reads and writes a page that is broken, alone and in one
// commit with updates that have nothing to do with it.
func TestDamagedPage(t *testing.T) {
	content := breakPage(t, wholeFile(t, os.Getpagesize()), "bad-1-0500")
	db := openPath(t, writeFile(t, content), Options{})
	bad := []byte("bad-1-0500")
	err := db.View(t.Context(), func(r kv.Reader) error {
		if _, err := r.Get("good", []byte("good-1-0500")); err != nil {
			t.Errorf("get of a whole page: %v", err)
		}
		if _, err := r.Get("bad", bad); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("get of a broken page returned %v", err)
		}
		pairs, err := r.Scan(kv.Range{Space: "bad"})
		if pairs != nil {
			t.Errorf("scan of a broken page returned %d pairs", len(pairs))
		}
		return err
	})
	if !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("scan of a broken page returned %v", err)
	}

	release := hold(t, db)
	put := func(key string) chan error {
		answer := make(chan error, 1)
		go func() {
			answer <- db.Update(t.Context(), func(tx kv.Tx) error {
				return tx.Put(key[:len(key)-len("-1-0500")], []byte(key), []byte("new"))
			})
		}()
		return answer
	}
	read := make(chan error, 1)
	go func() {
		read <- db.Update(t.Context(), func(tx kv.Tx) error {
			_, err := tx.Get("bad", bad)
			return err
		})
	}()
	good, damaged := put("good-1-0500"), put("bad-1-0500")
	awaitQueue(db, 3)
	if err := release(); err != nil {
		t.Errorf("the member before: %v", err)
	}
	if err := <-good; err != nil {
		t.Errorf("the member that has nothing to do with it: %v", err)
	}
	for _, answer := range []chan error{read, damaged} {
		if err := <-answer; !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("a member that touches the broken page returned %v", err)
		}
	}
	if err := putOne(t, db, "after", 1); err != nil {
		t.Error(err)
	}
	if err := db.Close(); err != nil {
		t.Error(err)
	}
}

// TestKeysOutOfOrder scans a space of which one key is not what it was: a scan
// in the wrong order is a wrong result, and may be one that never ends.
func TestKeysOutOfOrder(t *testing.T) {
	content := bytes.ReplaceAll(wholeFile(t, os.Getpagesize()), []byte("bad-1-0500"), []byte("bad-1-0000"))
	db := openPath(t, writeFile(t, content), Options{})
	for _, reverse := range []bool{false, true} {
		err := db.View(t.Context(), func(r kv.Reader) error {
			_, err := r.Scan(kv.Range{Space: "bad", Reverse: reverse})
			return err
		})
		if !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("scan, reverse %v, returned %v, want %v", reverse, err, kv.ErrDamaged)
		}
	}
}

// TestFaultInFunction cuts the file off below a value that a view holds: the
// function then reads memory that has no file behind it.
func TestFaultInFunction(t *testing.T) {
	db := openTest(t, Options{})
	if err := putOne(t, db, "large", 4<<20); err != nil {
		t.Fatal(err)
	}
	sum := 0
	touch := func(r kv.Reader) error {
		value, err := r.Get("s", []byte("large"))
		if err != nil {
			return err
		}
		if err := os.Truncate(db.path, 1<<20); err != nil {
			return err
		}
		for _, b := range value {
			sum += int(b)
		}
		return nil
	}
	if err := db.View(t.Context(), touch); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("view returned %v, want %v", err, kv.ErrDamaged)
	}
	err := db.Update(t.Context(), func(tx kv.Tx) error { return touch(tx) })
	if !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("update returned %v, want %v", err, kv.ErrDamaged)
	}
}

// TestPanicInView has a function panic on its own account.
func TestPanicInView(t *testing.T) {
	db := openTest(t, Options{})
	for name, fn := range map[string]func(kv.Reader) error{
		"value":       func(kv.Reader) error { panic("the function's own") },
		"nil pointer": func(kv.Reader) error { var p *int; *p = 1; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("the panic did not come through")
				}
			}()
			err := db.View(t.Context(), fn)
			t.Errorf("view returned %v", err)
		})
	}
	if err := db.Close(); err != nil { // the transactions have ended all the same
		t.Error(err)
	}
}

// TestFileEmptied cuts the whole file off from under an open store. bbolt then
// faults with locks held, so that only giving up at once is left to do.
func TestFileEmptied(t *testing.T) {
	db := openTest(t, Options{})
	if err := putOne(t, db, "k", 1); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(db.path, 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		err := db.View(t.Context(), func(kv.Reader) error { return nil })
		if !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("view returned %v, want %v", err, kv.ErrDamaged)
		}
		if err := putOne(t, db, "k", 2); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("update returned %v, want %v", err, kv.ErrDamaged)
		}
	}
	if err := db.Close(); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("close returned %v, want %v", err, kv.ErrDamaged)
	}
	if _, err := Open(db.path, Options{}); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("open returned %v, want %v", err, kv.ErrDamaged)
	}
}

// TestBeginFaults is TestFileEmptied with the update first.
func TestBeginFaults(t *testing.T) {
	db := openTest(t, Options{})
	if err := os.Truncate(db.path, 0); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := putOne(t, db, "k", 2); !errors.Is(err, kv.ErrDamaged) {
			t.Errorf("update returned %v, want %v", err, kv.ErrDamaged)
		}
	}
	if err := db.Close(); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("close returned %v, want %v", err, kv.ErrDamaged)
	}
}

// TestRollbackFaults breaks the list of free pages, which bbolt reads anew when
// it rolls a failed commit back, and then has a commit fail.
func TestRollbackFaults(t *testing.T) {
	content := breakPage(t, wholeFile(t, os.Getpagesize()), "bad-1-0500")
	db := openPath(t, writeFile(t, content), Options{})
	newest, err := newestMeta(db.file, int64(len(content)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.file.WriteAt([]byte("broken broken"), int64(newest.freelist)*newest.pageSize); err != nil {
		t.Fatal(err)
	}
	put := func() error {
		return db.Update(t.Context(), func(tx kv.Tx) error {
			return tx.Put("bad", []byte("bad-1-0500"), []byte("new"))
		})
	}
	if err := put(); !errors.Is(err, kv.ErrUnknown) {
		t.Errorf("update returned %v, want %v", err, kv.ErrUnknown)
	}
	if err := put(); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("the next update returned %v, want %v", err, kv.ErrDamaged)
	}
	if err := db.Close(); !errors.Is(err, kv.ErrDamaged) {
		t.Errorf("close returned %v, want %v", err, kv.ErrDamaged)
	}
}

// TestFlippedBits opens, reads and writes copies of a file with one bit
// flipped. Whatever comes of it, it is a result or an error.
func TestFlippedBits(t *testing.T) {
	t.Parallel()
	whole := wholeFile(t, os.Getpagesize())
	inUse := bytesInUse(whole)
	random := rand.New(rand.NewPCG(1, 2))
	damaged := 0
	for range 30 {
		// Half of the bits are in the headers of pages, where most can go wrong.
		at := random.IntN(inUse)
		if random.IntN(2) == 0 {
			at -= at % os.Getpagesize()
			at += random.IntN(128)
		}
		if at%os.Getpagesize() >= 12 && at%os.Getpagesize() < 16 {
			continue // bbolt frees as many pages as a header says, memory or not
		}
		content := bytes.Clone(whole[:inUse])
		content[at] ^= 1 << random.IntN(8)
		path := writeFile(t, content)
		db, err := Open(path, Options{InitialMmapSize: inUse})
		if err != nil {
			damaged++
			if !errors.Is(err, kv.ErrDamaged) {
				t.Errorf("flip at %d: %v", at, err)
			}
			if !bytes.Equal(readFile(t, path), content) {
				t.Errorf("flip at %d: the file was refused and changed", at)
			}
			continue
		}
		if err := errors.Join(readAll(t, db), writeSome(t, db)); err != nil {
			damaged++
			if !errors.Is(err, kv.ErrDamaged) {
				t.Errorf("flip at %d: %v", at, err)
			}
		}
		_ = db.Close() // an error here is one more that is not a crash
	}
	if damaged == 0 {
		t.Error("no flip did any damage: the test tests nothing")
	}
}

func readAll(t *testing.T, db *DB) error {
	return db.View(t.Context(), func(r kv.Reader) error {
		var errs []error
		for _, space := range []string{"good", "bad"} {
			for _, reverse := range []bool{false, true} {
				_, err := r.Scan(kv.Range{Space: space, Reverse: reverse})
				errs = append(errs, err)
			}
		}
		return errors.Join(errs...)
	})
}

func writeSome(t *testing.T, db *DB) error {
	var errs []error
	for i := range 3 {
		errs = append(errs, db.Update(t.Context(), func(tx kv.Tx) error {
			for j := range 100 {
				key := fmt.Appendf(nil, "bad-%d-%04d", i, j*10)
				if err := errors.Join(tx.Put("bad", key, []byte("new")), tx.Delete("good", key)); err != nil {
					return err
				}
			}
			return nil
		}))
	}
	return errors.Join(errs...)
}
