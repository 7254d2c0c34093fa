package storage_test

import (
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-faster/errors"

	"agentrun/storage"
	"agentrun/storage/storagetest"
)

func TestLastUseIsRememberedWithoutAWrite(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s, db := openCounted(t, storage.Options{Now: func() time.Time { return now }})
	agent := storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile)
	key, secret := storagetest.MustKey(t, s, agent)
	user := must(s.SetUp(t.Context(), "one@example.org", goodPassword))(t)
	ctx := storage.WithActor(t.Context(), must(s.UserActor(t.Context(), user.ID, user.Generation, ""))(t))
	_, tokenSecret, err := s.CreateToken(ctx, "token", []storage.Scope{storage.ScopeRead}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	lastUses := func() (ofKey, ofToken time.Time) {
		t.Helper()
		keys, tokens := must(s.Keys(t.Context(), "echo"))(t), must(s.Tokens(ctx))(t)
		if len(keys) != 1 || len(tokens) != 1 {
			t.Fatalf("%d keys, %d tokens", len(keys), len(tokens))
		}
		return keys[0].LastUsedAt, tokens[0].LastUsedAt
	}
	want := func(when string, at time.Time) {
		t.Helper()
		if ofKey, ofToken := lastUses(); !ofKey.Equal(at) || !ofToken.Equal(at) {
			t.Errorf("%s: key %s, token %s, want %s", when, ofKey, ofToken, at)
		}
	}
	use := func() {
		t.Helper()
		now = now.Add(time.Minute)
		if err := errors.Join(errOf(s.Authenticate(t.Context(), secret)), errOf(s.TokenActor(t.Context(), tokenSecret, ""))); err != nil {
			t.Fatal(err)
		}
	}
	want("never used", time.Time{})
	before := db.writes.Load()
	for range 10 {
		use()
		s.NoteRefused(key.ID, 409)
	}
	if n := db.writes.Load() - before; n != 0 {
		t.Errorf("%d writes", n)
	}
	want("remembered", now)
	flushed := now
	for range 2 { // the second has nothing to write
		if err := s.FlushUses(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if n := db.writes.Load() - before; n != 1 {
		t.Errorf("%d writes for a flush", n)
	}
	want("flushed", flushed)
	use()
	s.NoteRefused(key.ID, 422)
	db.refuse.Store(true)
	if err := s.FlushUses(t.Context()); !errors.Is(err, storage.ErrNoSpace) {
		t.Fatalf("got %v, want ErrNoSpace", err)
	}
	want("given back", now)
	db.refuse.Store(false)
	if err := s.FlushUses(t.Context()); err != nil {
		t.Fatal(err)
	}
	want("flushed at last", now)
	if requests := must(s.KeyRequests(t.Context(), key.ID, time.Time{}, 50))(t); len(requests) != 11 || requests[0].Status != 422 {
		t.Errorf("%d refused requests: %+v", len(requests), requests)
	}
}

func TestRefusalsAreBounded(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s, _ := openCounted(t, storage.Options{Now: func() time.Time { return now }})
	agent := storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile)
	key, _ := storagetest.MustKey(t, s, agent)
	var last []time.Time
	for i := range 330 {
		now = now.Add(time.Second)
		s.NoteRefused(key.ID, 409)
		last = append(last, now)
		if i%110 == 60 {
			if err := s.FlushUses(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		requests := must(s.KeyRequests(t.Context(), key.ID, time.Time{}, 1000))(t)
		if len(requests) != min(len(last), 100) || !requests[0].At.Equal(now) || !requests[len(requests)-1].At.Equal(last[max(0, len(last)-100)]) {
			t.Fatalf("after %d refusals: %d are kept, %+v", len(last), len(requests), requests[0])
		}
	}
	if _, err := s.DeleteKey(t.Context(), key.ID); err != nil {
		t.Fatal(err)
	}
	if err := s.FlushUses(t.Context()); err != nil {
		t.Errorf("a flush for a key that is deleted: %v", err)
	}
}

// TestKeyRequestsPages creates runs from many goroutines, so that their IDs and
// their rows are not in the same order, with refusals in between.
func TestKeyRequestsPages(t *testing.T) {
	const makers, each = 8, 30
	s := storagetest.Open(t)
	agent := storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile)
	caller, other := storagetest.MustCaller(t, s, agent), storagetest.MustCaller(t, s, agent)
	var mu sync.Mutex
	made := map[storage.RunID]int{}
	var group sync.WaitGroup
	for range makers {
		group.Go(func() {
			for i := range each {
				id, err := storage.NewRunID()
				if err == nil {
					_, err = s.CreateRun(t.Context(), storage.NewRun{ID: id, Caller: caller, Template: agent.ID, Name: "run"})
				}
				if err := errors.Join(err, createRun(t, s, other)); err != nil {
					t.Error(err)
				}
				mu.Lock()
				made[id]++
				mu.Unlock()
				if i%10 == 0 {
					s.NoteRefused(caller.KeyID, 409)
				}
			}
		})
	}
	group.Wait()
	if inversions(t, s, caller.KeyID) == 0 {
		t.Log("all rows are in the order of their IDs: the order is not put to the test")
	}
	for _, limit := range []int{1, 7, 50, 1000} {
		left, refused := len(made), 0
		seen := map[storage.RunID]bool{}
		var before time.Time
		for {
			page := must(s.KeyRequests(t.Context(), caller.KeyID, before, limit))(t)
			if len(page) > limit {
				t.Fatalf("a page of %d, want %d at most", len(page), limit)
			}
			for _, r := range page {
				if !before.IsZero() && !r.At.Before(before) {
					t.Fatalf("limit %d: out of order: %s behind %s", limit, r.At, before)
				}
				switch before = r.At; {
				case r.Run == (storage.RunID{}):
					refused++
				case seen[r.Run], made[r.Run] == 0, r.Status != 201, r.Name != "run":
					t.Fatalf("limit %d: %+v, seen before: %v", limit, r, seen[r.Run])
				default:
					seen[r.Run] = true
					left--
				}
			}
			if len(page) < limit {
				break
			}
		}
		if left != 0 || refused != makers*each/10 {
			t.Errorf("limit %d: %d runs are missing, and %d refused requests found", limit, left, refused)
		}
	}
	if _, err := s.KeyRequests(t.Context(), storage.KeyID{}, time.Time{}, 5); !errors.Is(err, storage.ErrKeyNotFound) {
		t.Errorf("an unknown key: got %v, want ErrKeyNotFound", err)
	}
}

// inversions counts the runs of a key whose row is older than that of the run
// with the ID before.
func inversions(t *testing.T, s *storage.Store, key storage.KeyID) int {
	t.Helper()
	runs, _, err := s.Runs(t.Context(), storage.RunFilter{Key: &key})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(runs)
	n := 0
	for i, run := range runs[1:] {
		if run.CreatedAt.Before(runs[i].CreatedAt) {
			n++
		}
	}
	t.Logf("%d of %d rows are out of the order of their IDs", n, len(runs))
	return n
}

// TestSlowRequestIsOnItsPage has a run whose row is much younger than its ID.
func TestSlowRequestIsOnItsPage(t *testing.T) {
	base := time.Now()
	now := base
	s := storagetest.OpenFile(t, filepath.Join(t.TempDir(), "agentrun.db"), storage.Options{Now: func() time.Time { return now }})
	agent := storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile)
	caller := storagetest.MustCaller(t, s, agent)
	slow, err := storage.NewRunID()
	if err != nil {
		t.Fatal(err)
	}
	now = base.Add(time.Second)
	quick := storagetest.MustRun(t, s, caller)
	now = base.Add(30 * time.Second)
	if _, err := s.CreateRun(t.Context(), storage.NewRun{ID: slow, Caller: caller, Template: agent.ID, Name: "slow"}); err != nil {
		t.Fatal(err)
	}
	var got []storage.RunID
	var before time.Time
	for range 2 {
		page := must(s.KeyRequests(t.Context(), caller.KeyID, before, 1))(t)
		if len(page) != 1 {
			t.Fatalf("%+v after %v", page, got)
		}
		got, before = append(got, page[0].Run), page[0].At
	}
	if want := []storage.RunID{slow, quick.ID}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
