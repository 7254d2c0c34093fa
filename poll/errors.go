package poll

import (
	"net/http"
	"strconv"

	"github.com/go-faster/errors"
)

// ErrNoAnswer says that for Options.GiveUp nothing came back that could be
// understood, not even an error. Wait returns it, with the last cause. The run
// may go on all the same.
var ErrNoAnswer = errors.New("no answer")

// StatusError is an answer whose status is not the one of success. Wait returns it when asking again would not help; a client
// made by KeepStatus returns it from every operation.
type StatusError struct {
	// Status is the HTTP status of the answer.
	Status int
	// Detail is the server's reason, in one line and bounded in length; the
	// issues of a validation list are joined. It is empty when the answer is
	// none of this API, such as a proxy's. Whoever prints it to a terminal has
	// to mind control characters.
	Detail string
}

func (e *StatusError) Error() string {
	text := strconv.Itoa(e.Status)
	if name := http.StatusText(e.Status); name != "" {
		text += " " + name
	}
	if e.Detail != "" {
		text += ": " + e.Detail
	}
	return text
}

// Temporary says whether the same GET may be answered later: after a 429 and
// every 5xx. A POST is not to be repeated after any of them.
func (e *StatusError) Temporary() bool {
	return e.Status == http.StatusTooManyRequests || e.Status >= http.StatusInternalServerError
}
