package storage_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"

	"agentrun/storage"
	"agentrun/storage/storagetest"
)

// TestSpentByDay spends around midnight, by UTC and not by the clock's own zone.
func TestSpentByDay(t *testing.T) {
	zone := time.FixedZone("there", 5*60*60)
	day := time.Date(2026, 2, 28, 0, 0, 0, 0, time.UTC)
	now := day.Add(12 * time.Hour).In(zone)
	s := storagetest.OpenFile(t, filepath.Join(t.TempDir(), "agentrun.db"), storage.Options{Now: func() time.Time { return now }})
	org := must(s.CreateOrg(t.Context(), "other"))(t)
	agent := storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile)
	storagetest.MustRun(t, s, storagetest.MustCaller(t, s, agent), "hello")
	turn, err := s.ClaimNext(t.Context(), storage.AgentID{}, "none")
	if err != nil {
		t.Fatal(err)
	}
	spend := func(at time.Time, input int64) {
		t.Helper()
		now = at.In(zone)
		if err := s.RecordStep(t.Context(), turn.Claim, storage.Spent{Calls: 1, Input: input, Cost: 10 * input}); err != nil {
			t.Fatal(err)
		}
	}
	midnight := day.AddDate(0, 0, 1)
	spend(day, 1)
	spend(midnight.Add(-time.Nanosecond), 2)
	spend(midnight, 4)
	spend(midnight.AddDate(0, 0, 1), 8)
	want := []storage.DailySpent{
		{Day: day.AddDate(0, 0, -1)},
		{Day: day, Spent: storage.Spent{Calls: 2, Input: 3, Cost: 30}},
		{Day: midnight, Spent: storage.Spent{Calls: 1, Input: 4, Cost: 40}},
		{Day: midnight.AddDate(0, 0, 1), Spent: storage.Spent{Calls: 1, Input: 8, Cost: 80}},
	}
	for days := range len(want) + 1 {
		got := must(s.SpentByDay(t.Context(), storage.DefaultOrg, days))(t)
		if diff := cmp.Diff(append([]storage.DailySpent{}, want[len(want)-days:]...), got); diff != "" {
			t.Errorf("%d days:\n%s", days, diff)
		}
	}
	for _, day := range must(s.SpentByDay(t.Context(), org.ID.String(), 3))(t) {
		if day.Spent != (storage.Spent{}) {
			t.Errorf("the other organisation: %+v", day)
		}
	}
	if got, err := s.SpentByDay(t.Context(), storage.DefaultOrg, -1); err != nil || len(got) != 0 {
		t.Errorf("days below zero: %+v, %v", got, err)
	}
	if _, err := s.SpentByDay(t.Context(), "none", 1); !errors.Is(err, storage.ErrOrgNotFound) {
		t.Errorf("got %v, want ErrOrgNotFound", err)
	}
}
