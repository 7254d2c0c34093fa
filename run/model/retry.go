package model

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/go-faster/errors"
)

// What zero fields of Retry stand for.
const (
	defaultAttempts = 5
	defaultFirst    = time.Second
	defaultLongest  = 30 * time.Second
	defaultAsked    = 60 * time.Second
)

// Retry says how often a provider is asked, and how long to wait in between.
// Only ErrUnavailable is worth another attempt. Zero fields stand for defaults.
type Retry struct {
	// Attempts is how often the provider is asked at most; 0 means 5.
	Attempts int
	// First is about how long to wait after the first attempt; every further wait
	// is twice as long. 0 means a second.
	First time.Duration
	// Longest bounds these waits; 0 means 30 seconds.
	Longest time.Duration
	// Asked bounds the wait that a provider asks for: for a longer one nobody
	// waits, and the call ends. 0 means a minute.
	Asked time.Duration
}

// Do makes attempts until one succeeds or no other can help. An attempt returns
// *Error; whatever else it returns counts as ErrUnavailable. Do returns what
// Client.Call returns.
func (r Retry) Do(ctx context.Context, attempt func(context.Context) (Answer, error)) (Answer, error) {
	r.setDefaults()
	var lost Usage
	for n := 1; ; n++ {
		if err := ctx.Err(); err != nil {
			return Answer{}, err
		}
		answer, err := attempt(ctx)
		if err == nil {
			answer.Attempts, answer.Lost = n, lost
			return answer, nil
		}
		if err := ctx.Err(); err != nil {
			return Answer{}, err
		}
		failed := failure(err)
		lost = lost.Add(failed.Usage)
		failed.Attempts, failed.Usage = n, lost
		if n >= r.Attempts || !errors.Is(failed.Kind, ErrUnavailable) || failed.After > r.Asked {
			return Answer{}, &failed
		}
		if err := pause(ctx, r.wait(n, failed.After)); err != nil {
			return Answer{}, err
		}
	}
}

func (r *Retry) setDefaults() {
	if r.Attempts == 0 {
		r.Attempts = defaultAttempts
	}
	if r.First == 0 {
		r.First = defaultFirst
	}
	if r.Longest == 0 {
		r.Longest = defaultLongest
	}
	if r.Asked == 0 {
		r.Asked = defaultAsked
	}
}

// wait is how long to wait after attempt n. Chance keeps apart those who were
// turned away together.
func (r *Retry) wait(n int, asked time.Duration) time.Duration {
	if asked > 0 {
		return asked + chance(r.First)
	}
	wait := r.First
	for range n - 1 {
		wait = min(2*wait, r.Longest)
	}
	return wait/2 + chance(wait/2)
}

func chance(most time.Duration) time.Duration {
	return rand.N(most + 1) //nolint:gosec // Nobody gains by guessing it.
}

func failure(err error) Error {
	var failed *Error
	if errors.As(err, &failed) {
		return *failed
	}
	return Error{Kind: ErrUnavailable, Message: err.Error()}
}

func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
