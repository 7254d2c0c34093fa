package model

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"
)

func TestRetry(t *testing.T) {
	used := Usage{Input: 10, Cached: 2, Output: 1}
	busy := &Error{Kind: ErrUnavailable, Usage: used}
	for _, row := range []struct {
		name     string
		errs     []error // of the attempts, of which the last one repeats
		retry    Retry
		attempts int
		kind     error
		least    time.Duration
		most     time.Duration
	}{
		{name: "an answer", errs: []error{nil}, attempts: 1},
		{name: "an answer later", errs: []error{busy, busy, nil}, attempts: 3, least: 1500 * time.Millisecond, most: 3 * time.Second},
		{name: "no answer", errs: []error{busy}, attempts: 5, kind: ErrUnavailable, least: 7500 * time.Millisecond, most: 15 * time.Second},
		{name: "long waits", errs: []error{busy}, retry: Retry{Attempts: 9, First: 10 * time.Second}, attempts: 9, kind: ErrUnavailable, least: 105 * time.Second, most: 210 * time.Second},
		{name: "refused", errs: []error{&Error{Kind: ErrRefused}}, attempts: 1, kind: ErrRefused},
		{name: "too long", errs: []error{busy, &Error{Kind: ErrTooLong}}, attempts: 2, kind: ErrTooLong, least: time.Second / 2, most: time.Second},
		{name: "another error", errs: []error{errors.New("x")}, retry: Retry{Attempts: 2}, attempts: 2, kind: ErrUnavailable, least: time.Second / 2, most: time.Second},
		{name: "a wait", errs: []error{&Error{Kind: ErrUnavailable, After: time.Minute}, nil}, attempts: 2, least: time.Minute, most: 61 * time.Second},
		{name: "a wait too long", errs: []error{&Error{Kind: ErrUnavailable, After: time.Minute + 1}}, attempts: 1, kind: ErrUnavailable},
	} {
		t.Run(row.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, made := time.Now(), 0
				answer, err := row.retry.Do(t.Context(), func(context.Context) (Answer, error) {
					made++
					return Answer{}, row.errs[min(made, len(row.errs))-1]
				})
				if took := time.Since(start); took < row.least || took > row.most {
					t.Errorf("it took %s", took)
				}
				counted := answer.Attempts
				var failed *Error
				if errors.As(err, &failed) {
					counted = failed.Attempts
				}
				if made != row.attempts || counted != row.attempts || !errors.Is(err, row.kind) {
					t.Errorf("%d attempts, %d counted, %v", made, counted, err)
				}
			})
		})
	}
	if busy.Attempts != 0 || busy.Usage != used {
		t.Errorf("an attempt's own error was changed: %+v", busy)
	}
}

func TestRetryCountsWhatIsLost(t *testing.T) {
	n := 0
	attempt := func(context.Context) (Answer, error) {
		if n++; n%3 != 0 {
			return Answer{}, &Error{Kind: ErrUnavailable, Usage: Usage{Input: 10}}
		}
		return Answer{Usage: Usage{Input: 10, Output: 3}}, nil
	}
	answer, err := Retry{First: 1}.Do(t.Context(), attempt)
	if want := (Answer{Usage: Usage{Input: 10, Output: 3}, Attempts: 3, Lost: Usage{Input: 20}}); err != nil || !cmp.Equal(want, answer) {
		t.Errorf("got %+v, %v", answer, err)
	}
	_, err = Retry{First: 1, Attempts: 2}.Do(t.Context(), attempt)
	var failed *Error
	if !errors.As(err, &failed) || failed.Usage != (Usage{Input: 20}) {
		t.Errorf("got %+v", err)
	}
}

func TestRetryStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		start := time.Now()
		_, err := Retry{First: time.Hour}.Do(ctx, func(context.Context) (Answer, error) { return Answer{}, &Error{Kind: ErrUnavailable} })
		if took := time.Since(start); !errors.Is(err, context.DeadlineExceeded) || took != 10*time.Second {
			t.Errorf("%v after %s", err, took)
		}
		_, err = Retry{}.Do(ctx, func(context.Context) (Answer, error) {
			t.Error("an attempt after the end")
			return Answer{}, nil
		})
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
	})
}

func TestInput(t *testing.T) {
	for text, want := range map[string]string{
		"": "{}", " \n": "{}", "{}": "{}", " {\"a\": 1.0 }\n": `{"a": 1.0 }`,
		"[1]": `{"INVALID_JSON":"[1]"}`, "null": `{"INVALID_JSON":"null"}`, `{"a`: `{"INVALID_JSON":"{\"a"}`, "{} {}": `{"INVALID_JSON":"{} {}"}`,
	} {
		if got := string(ToolCall{Arguments: text}.Input()); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

func TestFillIDs(t *testing.T) {
	past := []Message{{Role: RoleModel, Calls: []ToolCall{{ID: "old"}}}}
	calls := []ToolCall{{ID: "a"}, {}, {ID: "old"}, {ID: "a"}, {ID: "b"}, {}}
	FillIDs(past, calls)
	seen := map[string]bool{"": true, "old": true}
	for i, call := range calls {
		if seen[call.ID] {
			t.Errorf("call %d has the ID %q", i, call.ID)
		}
		seen[call.ID] = true
	}
	if calls[0].ID != "a" || calls[4].ID != "b" || !strings.HasPrefix(calls[1].ID, "call_") {
		t.Errorf("got %+v", calls)
	}
}

func TestErrorSaysWhy(t *testing.T) {
	err := error(&Error{Kind: ErrRefused, Status: 404, Message: "no such model"})
	if got, want := fmt.Sprint(err), "the provider refused the request (HTTP 404): no such model"; got != want || !errors.Is(err, ErrRefused) {
		t.Errorf("got %q", got)
	}
}
