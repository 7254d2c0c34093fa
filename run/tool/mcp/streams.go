package mcp

import (
	"io"
	"strings"
	"sync"
)

// maxPending is how much a program may leave unread.
const maxPending = 16 << 20

// keptStderr is how much of a program's standard error is kept.
const keptStderr = 4 << 10

// feed is a program's standard input. Write does not wait; Read waits for what
// is written, or for Close.
type feed struct {
	mu      sync.Mutex
	changed sync.Cond
	pending []byte
	closed  bool
}

var _ io.ReadWriteCloser = (*feed)(nil)

func newFeed() *feed {
	f := &feed{}
	f.changed.L = &f.mu
	return f
}

// Write implements io.Writer.
func (f *feed) Write(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	switch {
	case f.closed:
		return 0, io.ErrClosedPipe
	case len(f.pending)+len(p) > maxPending:
		return 0, errNotRead
	}
	f.pending = append(f.pending, p...)
	f.changed.Signal()
	return len(p), nil
}

// Read implements io.Reader.
func (f *feed) Read(p []byte) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for len(f.pending) == 0 && !f.closed {
		f.changed.Wait()
	}
	if len(f.pending) == 0 {
		return 0, io.EOF
	}
	n := copy(p, f.pending)
	f.pending = f.pending[n:]
	return n, nil
}

// Close implements io.Closer. What was written before can still be read.
func (f *feed) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed = true
	f.changed.Broadcast()
	return nil
}

// tail keeps the end of what is written to it.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[max(0, len(p)-keptStderr):]...)
	if over := len(t.kept) - keptStderr; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// text is what is kept, as text.
func (t *tail) text() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(strings.ToValidUTF8(string(t.kept), "\ufffd"))
}
