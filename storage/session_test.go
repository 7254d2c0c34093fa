package storage

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"agentrun/storage/kv"
)

func TestSessions(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s, err := Open(t.Context(), openDB(t, filepath.Join(t.TempDir(), "agentrun.db")), Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	put := func(token, data string, life time.Duration) {
		t.Helper()
		if err := s.PutSession(t.Context(), token, []byte(data), now.Add(life)); err != nil {
			t.Fatal(err)
		}
	}
	want := func(token, data string) {
		t.Helper()
		got, found, err := s.FindSession(t.Context(), token)
		if err != nil || found != (data != "") || string(got) != data {
			t.Errorf("%s: %q, %v, %v, want %q", token, got, found, err, data)
		}
	}
	put("one", "first", time.Hour)
	want("one", "first")
	want("two", "")
	put("one", "second", 2*time.Hour)
	now = now.Add(2*time.Hour - time.Nanosecond)
	want("one", "second")
	now = now.Add(time.Nanosecond)
	want("one", "")
	put("two", "other", time.Hour)
	if n := sessions(t, s); n != 1 {
		t.Errorf("%d sessions are kept, want that which has not expired", n)
	}
	damage(t, s, spaceSessions, sessionID("two"))
	want("two", "") // and not an error for as long as the browser has its cookie
	put("three", "last", time.Hour)
	if n := sessions(t, s); n != 1 {
		t.Errorf("%d sessions are kept, want no damaged one", n)
	}
	for range 2 {
		if err := s.DeleteSession(t.Context(), "three"); err != nil {
			t.Fatal(err)
		}
		want("three", "")
	}
}

func sessions(t *testing.T, s *Store) int {
	t.Helper()
	var n int
	err := s.db.View(t.Context(), func(r kv.Reader) error {
		pairs, err := r.Scan(kv.Range{Space: spaceSessions})
		n = len(pairs)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestExpiredSessionsDoNotPileUp has many good sessions, more than a new one
// looks at, and many more that expire.
func TestExpiredSessionsDoNotPileUp(t *testing.T) {
	const good, bad = 300, 600
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s, err := Open(t.Context(), openDB(t, filepath.Join(t.TempDir(), "agentrun.db")), Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	err = s.update(t.Context(), func(tx *tx) error {
		for i := range good + bad {
			rec := sessionRecord{ExpiresAt: now.Add(time.Minute)}
			if i < good {
				rec.ExpiresAt = now.Add(time.Hour)
			}
			if err := put(tx, spaceSessions, sessionID(fmt.Sprint("session ", i)), rec); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Minute)
	const more = 200
	for i := range more {
		if err := s.PutSession(t.Context(), fmt.Sprint("new ", i), nil, now.Add(time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	left := sessions(t, s) - good - more
	t.Logf("of %d expired sessions %d are left after %d new ones", bad, left, more)
	if left < 0 || left > bad/10 {
		t.Errorf("%d expired sessions are left", left)
	}
	for i := range good {
		if _, found, err := s.FindSession(t.Context(), fmt.Sprint("session ", i)); err != nil || !found {
			t.Fatalf("session %d: %v, %v", i, found, err)
		}
	}
}
