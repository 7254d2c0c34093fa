package bolt

import (
	"context"
	"testing"
	"time"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// TestBeginBlocked keeps a view open while a commit needs more of the file
// mapped: the commit waits for the view, and bbolt's Begin for the commit.
func TestBeginBlocked(t *testing.T) {
	const wait = 100 * time.Millisecond
	db := openTest(t, Options{InitialMmapSize: 1, ReadWait: wait})
	nothing := func(kv.Reader) error { return nil }

	endFirst, endLast := holdView(t, db), holdView(t, db)
	updated := make(chan error, 1)
	go func() { updated <- putOne(t, db, "large", 4<<20) }()

	var err error
	for err == nil { // until the commit is that far
		start := time.Now()
		err = db.View(t.Context(), nothing)
		if took := time.Since(start); err != nil && took < wait {
			t.Errorf("view gave up after %v, want %v", took, wait)
		}
	}
	if !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("view returned %v, want %v", err, kv.ErrUnavailable)
	}
	if err := db.View(t.Context(), nothing); !errors.Is(err, kv.ErrUnavailable) {
		t.Errorf("the next view returned %v, want %v", err, kv.ErrUnavailable)
	}
	ctx, cancel := context.WithTimeout(t.Context(), wait/10)
	defer cancel()
	if err := db.View(ctx, nothing); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("view returned %v, want its context's error", err)
	}
	// A view that ends while Begin is blocked does not have to wait for it.
	if err := endFirst(); err != nil {
		t.Error(err)
	}
	select {
	case err := <-updated:
		t.Fatalf("the update returned %v, and was to be blocked", err)
	default:
	}

	if err := endLast(); err != nil {
		t.Error(err)
	}
	if err := <-updated; err != nil {
		t.Error(err)
	}
	if n := size(t, db, "large"); n != 4<<20 {
		t.Errorf("the value has %d bytes", n)
	}
	if err := db.Close(); err != nil { // and finds no transaction left over
		t.Error(err)
	}
}
