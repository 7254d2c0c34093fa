package page

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestStreamKeepsAllLines(t *testing.T) {
	for text, want := range map[string]string{
		"a":            "data: a\n\n",
		"a\nb":         "data: a\ndata: b\n\n",
		"a\r\nb\rc":    "data: a\ndata: b\ndata: c\n\n",
		"a\n\n\nid: 9": "data: a\ndata: \ndata: \ndata: id: 9\n\n",
		"a\n":          "data: a\n\n",
		"\r":           "data: \n\n",
	} {
		stream := newEventStream(httptest.NewRecorder())
		stream.html(0, []byte(text))
		if got := stream.buffer.String(); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// timed is an answer that knows how long a write to it may take.
type timed struct {
	*httptest.ResponseRecorder
	deadline time.Time
}

func (w *timed) SetWriteDeadline(deadline time.Time) error {
	w.deadline = deadline
	return nil
}

func TestStreamLeavesNoDeadlineToWhatComesNext(t *testing.T) {
	w := &timed{ResponseRecorder: httptest.NewRecorder()}
	stream := newEventStream(w)
	stream.beat()
	if !stream.flush() || !w.deadline.IsZero() || w.Body.Len() == 0 {
		t.Errorf("after %q the deadline is %v", w.Body, w.deadline)
	}
}

func TestSlowReaderIsCutOff(t *testing.T) {
	failed := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		stream := newEventStream(w)
		stream.patience = 20 * time.Millisecond
		for {
			stream.html(1, []byte(strings.Repeat("x", 1<<20)))
			if !stream.flush() {
				close(failed)
				return
			}
		}
	}))
	defer server.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	select {
	case <-failed:
	case <-time.After(20 * time.Second):
		t.Fatal("a reader who does not read is waited for")
	}
	if _, err := io.Copy(io.Discard, res.Body); err == nil {
		t.Error("the stream looks complete")
	}
}
