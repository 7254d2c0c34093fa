package storage

import (
	"context"
	"testing"

	"github.com/go-faster/errors"
)

// TestWaitingForAHashEndsWithItsRequest: however many want their password
// looked at, those who are gone do not stay in the line.
func TestWaitingForAHashEndsWithItsRequest(t *testing.T) {
	for range cap(hashing) {
		hashing <- struct{}{}
	}
	defer func() {
		for range cap(hashing) {
			<-hashing
		}
	}()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := usualCost.nobody().matches(ctx, "a long password"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestPasswordHash(t *testing.T) {
	const password = "a long password"
	one, err := usualCost.newPassword(t.Context(), password)
	if err != nil {
		t.Fatal(err)
	}
	two, err := usualCost.newPassword(t.Context(), password)
	if err != nil {
		t.Fatal(err)
	}
	if one.Hash == two.Hash || one.Salt == two.Salt {
		t.Error("two hashes of a password are the same")
	}
	if nobody := usualCost.nobody(); one.Time != nobody.Time || one.Memory != nobody.Memory || one.Threads != nobody.Threads {
		t.Error("an unknown user costs another time")
	}
	for given, want := range map[string]bool{password: true, password + " ": false} {
		if got, err := one.matches(t.Context(), given); err != nil || got != want {
			t.Errorf("%q: %v, %v", given, got, err)
		}
	}
	one.Salt = "?"
	if _, err := one.matches(t.Context(), password); !errors.Is(err, ErrDamagedRecord) {
		t.Errorf("a damaged hash: got %v, want ErrDamagedRecord", err)
	}
}
