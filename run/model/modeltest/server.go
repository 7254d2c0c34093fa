package modeltest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
)

// Server counts and keeps what it is asked.
type Server struct {
	URL string
	// Reached is closed when a handler has done its part of the first request.
	Reached chan struct{}

	mu      sync.Mutex
	once    sync.Once
	bodies  []string
	headers []http.Header
	paths   []string
}

// Serve answers by a handler until the test ends.
func Serve(t *testing.T, handler http.HandlerFunc) *Server {
	t.Helper()
	s := &Server{Reached: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// A server notices that a client left only when it has the whole request.
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Errorf("a request broke off: %v", err)
		}
		s.mu.Lock()
		s.bodies = append(s.bodies, string(body))
		s.headers = append(s.headers, r.Header.Clone())
		s.paths = append(s.paths, r.URL.Path)
		s.mu.Unlock()
		defer s.reach()
		handler(w, r)
	}))
	s.URL = server.URL
	t.Cleanup(server.Close)
	return s
}

func (s *Server) reach() { s.once.Do(func() { close(s.Reached) }) }

// hang waits until the client leaves.
func (s *Server) hang(r *http.Request) {
	s.reach()
	<-r.Context().Done()
}

// Hits counts the requests.
func (s *Server) Hits() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.bodies)
}

// Last returns the last request.
func (s *Server) Last() (path string, header http.Header, body string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(s.bodies) - 1
	return s.paths[n], s.headers[n], s.bodies[n]
}

// send writes text as a stream that is there at once.
func send(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
	write(w, text)
}

// write writes and flushes; false means that the client left.
func write(w http.ResponseWriter, text string) bool {
	if _, err := io.WriteString(w, text); err != nil {
		return false
	}
	return http.NewResponseController(w).Flush() == nil
}

// fail writes an error.
func fail(w http.ResponseWriter, status int, kind, body string) {
	w.Header().Set("Content-Type", kind)
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}
