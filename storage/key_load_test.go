package storage_test

import (
	"math/rand/v2"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-faster/errors"

	"agentrun/storage"
	"agentrun/storage/kv/bolt"
	"agentrun/storage/storagetest"
)

// heldKey is a key that one goroutine disables, enables and rotates while
// others use it.
type heldKey struct {
	key    storage.Key
	secret string
	caller storage.Caller
	// life counts the changes: it is odd from the moment at which it is known that
	// the key is refused to that at which it is no longer.
	life atomic.Uint64
	// judged counts the calls that began and ended in the same life.
	judged atomic.Int64
}

// tally counts what came of the calls.
type tally struct{ accepted, refused, judged, wrong atomic.Int64 }

// try makes a call; one that began and ended while the key was refused has to
// have been.
func (k *heldKey) try(t *testing.T, count *tally, call func() error) {
	t.Helper()
	before := k.life.Load()
	err := call()
	within := before%2 == 1 && k.life.Load() == before
	switch {
	case err == nil:
		count.accepted.Add(1)
	case errors.Is(err, storage.ErrInvalidKey):
		count.refused.Add(1)
	default:
		t.Error(err)
	}
	if within {
		count.judged.Add(1)
		k.judged.Add(1)
		if err == nil {
			count.wrong.Add(1)
		}
	}
}

// TestKeysUnderLoad has 1,000 requests made while their keys are disabled,
// enabled and rotated: none is accepted after that returned.
func TestKeysUnderLoad(t *testing.T) {
	const requests, users = 1000, 8
	db, err := bolt.Open(filepath.Join(t.TempDir(), "agentrun.db"), bolt.Options{InitialMmapSize: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	s, err := storage.Open(t.Context(), db, storage.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	agent := storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile)
	var held [3]atomic.Pointer[heldKey]
	for i := range held {
		key, secret := storagetest.MustKey(t, s, agent)
		held[i].Store(hold(key, secret))
	}
	var count tally
	var begun atomic.Int64
	done, finished := make(chan struct{}), make(chan struct{})
	var group sync.WaitGroup
	for range users {
		group.Go(func() {
			for begun.Add(1) <= requests {
				key := held[rand.IntN(len(held))].Load()
				key.try(t, &count, func() error { return errOf(s.Authenticate(t.Context(), key.secret)) })
				// As a request whose key was good when it came: the body took its time.
				key.try(t, &count, func() error { return createRun(t, s, key.caller) })
			}
		})
	}
	go func() {
		defer close(finished)
		changeKeys(t, s, held[:], done)
	}()
	group.Wait()
	close(done)
	<-finished
	t.Logf("%d requests of two calls: %d accepted, %d refused; %d while it was known that the key is refused, of which %d were accepted",
		requests, count.accepted.Load(), count.refused.Load(), count.judged.Load(), count.wrong.Load())
	if count.wrong.Load() != 0 {
		t.Error("a key was accepted after it was disabled or had ended")
	}
	if count.accepted.Load() == 0 || count.judged.Load() == 0 {
		t.Error("the load proves nothing")
	}
}

func hold(key storage.Key, secret string) *heldKey {
	return &heldKey{
		key: key, secret: secret, caller: storage.Caller{KeyID: key.ID, AgentID: key.AgentID, OrgID: key.OrgID},
	}
}

func createRun(t *testing.T, s *storage.Store, caller storage.Caller) error {
	t.Helper()
	id, err := storage.NewRunID()
	if err != nil {
		return err
	}
	return errOf(s.CreateRun(t.Context(), storage.NewRun{ID: id, Caller: caller, Template: caller.AgentID, Name: "run"}))
}

// changeKeys disables and enables keys, and replaces them, until done.
func changeKeys(t *testing.T, s *storage.Store, held []atomic.Pointer[heldKey], done <-chan struct{}) {
	t.Helper()
	for {
		i := rand.IntN(len(held))
		key := held[i].Load()
		rotate := rand.IntN(4) == 0
		var next *heldKey
		if rotate {
			made, secret, err := s.RotateKey(t.Context(), key.key.ID, 0)
			if err != nil {
				t.Error(err)
				return
			}
			next = hold(made, secret)
		} else if err := errOf(s.SetKeyDisabled(t.Context(), key.key.ID, true)); err != nil {
			t.Error(err)
			return
		}
		key.life.Add(1)
		judged := key.judged.Load()
		for key.judged.Load() < judged+4 {
			select {
			case <-done:
				return
			default:
			}
			if err := errOf(s.Keys(t.Context(), "echo")); err != nil { // lets others go on
				t.Error(err)
				return
			}
		}
		if rotate {
			held[i].Store(next)
			continue
		}
		key.life.Add(1)
		if err := errOf(s.SetKeyDisabled(t.Context(), key.key.ID, false)); err != nil {
			t.Error(err)
			return
		}
	}
}

func TestRotateKey(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := storagetest.OpenFile(t, filepath.Join(t.TempDir(), "agentrun.db"), storage.Options{Now: func() time.Time { return now }})
	agent := storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile)
	works := func(secret string) bool {
		t.Helper()
		err := errOf(s.Authenticate(t.Context(), secret))
		if err != nil && !errors.Is(err, storage.ErrInvalidKey) {
			t.Fatal(err)
		}
		return err == nil
	}
	rotate := func(key storage.Key, overlap time.Duration) (storage.Key, string) {
		t.Helper()
		next, secret, err := s.RotateKey(t.Context(), key.ID, overlap)
		if err != nil {
			t.Fatal(err)
		}
		return next, secret
	}
	expiry := func(id storage.KeyID) time.Time {
		t.Helper()
		for _, key := range must(s.Keys(t.Context(), "echo"))(t) {
			if key.ID == id {
				return key.ExpiresAt
			}
		}
		t.Fatalf("no key %s", id)
		return time.Time{}
	}

	old, oldSecret := storagetest.MustKey(t, s, agent)
	next, nextSecret := rotate(old, time.Hour)
	if next.Name != old.Name || next.AgentID != old.AgentID || next.OrgID != old.OrgID || !next.ExpiresAt.IsZero() {
		t.Errorf("the next key: %+v", next)
	}
	now = now.Add(time.Hour - time.Nanosecond)
	if !works(oldSecret) || !works(nextSecret) {
		t.Errorf("in the overlap: old %v, new %v", works(oldSecret), works(nextSecret))
	}
	// Once more, now that the old one has an end: that is not the length of its life.
	if again, _ := rotate(old, time.Hour); !again.ExpiresAt.IsZero() {
		t.Errorf("rotated twice: the key ends at %s", again.ExpiresAt)
	}
	now = now.Add(time.Nanosecond)
	if works(oldSecret) || !works(nextSecret) {
		t.Errorf("after the overlap: old %v, new %v", works(oldSecret), works(nextSecret))
	}

	expiring, secret := storagetest.MustExpiringKey(t, s, agent, 30*time.Minute)
	now = now.Add(20 * time.Minute)
	following, _ := rotate(expiring, time.Hour)
	if want := now.Add(30 * time.Minute); !following.ExpiresAt.Equal(want) {
		t.Errorf("the key after one of 30 minutes ends at %s, want %s", following.ExpiresAt, want)
	}
	if got := expiry(expiring.ID); !got.Equal(expiring.ExpiresAt) {
		t.Errorf("the overlap put the end off from %s to %s", expiring.ExpiresAt, got)
	}
	last, _ := rotate(following, 0)
	if again, _ := rotate(following, 0); !again.ExpiresAt.Equal(last.ExpiresAt) || !last.ExpiresAt.Equal(now.Add(30*time.Minute)) {
		t.Errorf("rotated twice: ends at %s and %s", last.ExpiresAt, again.ExpiresAt)
	}
	now = now.Add(10 * time.Minute)
	if works(secret) {
		t.Error("an expired key is accepted")
	}
	if _, _, err := s.RotateKey(t.Context(), old.ID, -1); !errors.Is(err, storage.ErrInvalidExpiry) {
		t.Errorf("a negative overlap: got %v, want ErrInvalidExpiry", err)
	}
}
