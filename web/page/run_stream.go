package page

import (
	"bytes"
	"net/http"
	"strconv"
	"time"
)

// maxWrite is how long a write to a reader may take. One that is slower is cut
// off, and gets what it missed when it comes back.
const maxWrite = 30 * time.Second

// eventStream writes server-sent events.
//
// https://html.spec.whatwg.org/multipage/server-sent-events.html
type eventStream struct {
	w       http.ResponseWriter
	control *http.ResponseController
	buffer  bytes.Buffer
	// patience is how long a write may take.
	patience time.Duration
}

// newEventStream answers with a stream of events.
func newEventStream(w http.ResponseWriter) *eventStream {
	header := w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no") // A proxy in between is not to hold it back.
	w.WriteHeader(http.StatusOK)
	return &eventStream{w: w, control: http.NewResponseController(w), patience: maxWrite}
}

// html adds a message that holds HTML. With an ID above 0 a reader that comes
// back says that it has it.
func (s *eventStream) html(id int64, html []byte) {
	if id > 0 {
		s.buffer.WriteString("id: " + strconv.FormatInt(id, 10) + "\n")
	}
	// Whatever ends a line would end the field, and so would let a text in it
	// write messages of its own.
	for len(html) > 0 {
		line, next := html, len(html)
		if i := bytes.IndexAny(html, "\r\n"); i >= 0 {
			line, next = html[:i], i+1
			if bytes.HasPrefix(html[i:], []byte("\r\n")) {
				next++
			}
		}
		s.buffer.WriteString("data: ")
		s.buffer.Write(line)
		s.buffer.WriteByte('\n')
		html = html[next:]
	}
	s.buffer.WriteByte('\n')
}

// end adds the message that makes the reader go away and not come back.
func (s *eventStream) end() { s.buffer.WriteString("event: end\ndata: end\n\n") }

// beat adds what keeps the connection alive, and finds out when it is not.
func (s *eventStream) beat() { s.buffer.WriteString(": \n\n") }

// flush sends what was added. It returns false when the reader has gone, or took
// too long.
func (s *eventStream) flush() bool {
	// Without deadlines, as in tests, writing takes as long as it takes.
	_ = s.control.SetWriteDeadline(time.Now().Add(s.patience))
	_, err := s.buffer.WriteTo(s.w)
	if err != nil || s.control.Flush() != nil {
		return false
	}
	// The next answer on this connection is not to be late for this one.
	_ = s.control.SetWriteDeadline(time.Time{})
	return true
}
