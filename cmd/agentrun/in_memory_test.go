package main

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"testing"

	"github.com/go-faster/errors"
)

// ask sends a request to a handler in memory. The test closes the body.
func ask(ctx context.Context, t *testing.T, handler http.HandlerFunc) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agentrun/", nil)
	if err != nil {
		t.Fatal(err)
	}
	client := http.Client{Transport: inMemory{handler}}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	return answer
}

func TestInMemory(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		status  int
		length  int64
		text    string
		err     error
	}{
		"nothing": {func(http.ResponseWriter, *http.Request) {}, 200, -1, "", nil},
		"a status": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(404)
			w.WriteHeader(200)
			w.Header().Set("Content-Length", "7")
		}, 404, -1, "", nil},
		"a text": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5")
			_, _ = io.WriteString(w, "he")
			_, _ = io.WriteString(w, "llo")
		}, 200, 5, "hello", nil},
		"broken off": {func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "hell")
			panic(http.ErrAbortHandler)
		}, 200, -1, "hell", io.ErrUnexpectedEOF},
		"broken off at once": {func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}, 200, -1, "", io.ErrUnexpectedEOF},
	} {
		t.Run(name, func(t *testing.T) {
			answer := ask(t.Context(), t, c.handler)
			defer answer.Body.Close()
			text, err := io.ReadAll(answer.Body)
			if answer.StatusCode != c.status || answer.ContentLength != c.length || string(text) != c.text || !errors.Is(err, c.err) {
				t.Errorf("%d, %d, %q, %v", answer.StatusCode, answer.ContentLength, text, err)
			}
		})
	}
}

// An answer of any length passes through, and a handler whose reader has gone
// ends before Close returns.
func TestInMemoryStreams(t *testing.T) {
	ended := false
	answer := ask(t.Context(), t, func(w http.ResponseWriter, _ *http.Request) {
		chunk := make([]byte, 1<<16)
		for {
			if _, err := w.Write(chunk); err != nil {
				ended = true
				return
			}
		}
	})
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	const part = 256 << 20
	if n, err := io.CopyN(io.Discard, answer.Body, part); n != part || err != nil {
		t.Errorf("%d bytes, %v", n, err)
	}
	if err := answer.Body.Close(); err != nil || !ended {
		t.Errorf("%v, the handler has ended: %v", err, ended)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("%d bytes of memory for %d of the answer", used, part)
	}
}

func TestInMemoryIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	over := make(chan struct{})
	answer := ask(ctx, t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "begun")
		<-over // The reader does not wait for a handler that is slow to notice.
	})
	defer answer.Body.Close()
	defer close(over)
	if _, err := io.ReadFull(answer.Body, make([]byte, 5)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := answer.Body.Read(make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
