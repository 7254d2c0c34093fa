package bolt

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentrun/storage/kv"
)

// Check finds nothing in a store that was written to, and finds a page that
// claims a neighbour of its own.
func TestCheck(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	check := func() []string {
		t.Helper()
		db, err := Open(path, Options{InitialMmapSize: 16 << 20})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		faults, err := db.Check(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return faults
	}
	db, err := Open(path, Options{InitialMmapSize: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		err := db.Update(context.Background(), func(tx kv.Tx) error {
			return tx.Put(fmt.Sprint("space", i%3), fmt.Append(nil, "key", i), []byte(strings.Repeat("x", 1000)))
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if faults := check(); len(faults) != 0 {
		t.Fatalf("sound: %q", faults)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const flagLeaf, overflow = 2, 12
	found := 0
	for at := 0; at < len(raw); at += os.Getpagesize() {
		page := raw[at:]
		if id, flags := binary.LittleEndian.Uint64(page), binary.LittleEndian.Uint16(page[8:]); id != uint64(at/os.Getpagesize()) || flags != flagLeaf {
			continue
		}
		page[overflow] |= 4
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		found += len(check())
		page[overflow] &^= 4
	}
	if found == 0 {
		t.Error("no fault was found in any of the damaged files")
	}
}
