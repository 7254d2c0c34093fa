package model

import (
	"fmt"
	"time"

	"github.com/go-faster/errors"
)

// What can be wrong with a call. They come inside *Error.
var (
	// ErrTooLong says that the request is longer than the model can read.
	ErrTooLong = errors.New("the conversation is longer than the model can read")
	// ErrRefused says that the provider does not take the request, and will not
	// take it again: a wrong key, no such model, a malformed request.
	ErrRefused = errors.New("the provider refused the request")
	// ErrUnavailable says that the provider did not answer, in time or at all,
	// or answered with something else than an answer.
	ErrUnavailable = errors.New("the provider is not available")
)

// Error is a call that came to nothing.
type Error struct {
	// Kind is one of the errors above.
	Kind error
	// Status is the HTTP status of an answer that was an error from the start; 0
	// means that there was no answer, or that it became an error later on.
	Status int
	// Message says for people what happened, in one line. There is no key in it.
	Message string
	// After is how long the provider asks to wait before the next attempt.
	After time.Duration
	// Usage is what was counted although there is no answer, in all attempts.
	Usage Usage
	// Attempts counts how often the provider was asked.
	Attempts int
}

// Error says what happened.
func (e *Error) Error() string {
	text := e.Kind.Error()
	if e.Status != 0 {
		text += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Unwrap returns the kind.
func (e *Error) Unwrap() error { return e.Kind }
