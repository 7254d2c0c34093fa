package secret

import (
	"fmt"
	"io"

	"github.com/go-faster/errors"
)

// chunk bounds how much of what is written is looked at, and copied, at once.
const chunk = 32 << 10

// Masker is a writer that replaces secrets with [secret NAME] and passes on
// everything else as it is. A secret is found in whatever pieces it is written.
//
// Each byte of each occurrence is replaced. Occurrences that overlap become one
// marker together, so that no rest of a secret is left behind another one. It
// names the one that begins first; of those that begin at the same place the
// longest; of equal ones the one that was asked for first.
//
// What may be the beginning of a secret is held back until more is written, or
// Close is called. A Masker is for one goroutine at a time.
type Masker struct {
	w      io.Writer
	search *automaton // nil when there is nothing to look for
	state  int32
	// held is what was taken in and not yet passed on, from start on: after
	// each Write exactly the beginning of a form that state stands for.
	held  []byte
	start int
	// spans are what has to be replaced, in order and apart from each other.
	spans []span
	err   error // ends everything
}

// span is a part of what is held that has to be replaced.
type span struct {
	start, end int
	marker     string
	// told is true once the marker is passed on: no more is then held of the
	// span's start, but it may still grow.
	told bool
}

// Write implements io.Writer. After an error of the writer below every Write
// fails: of a stream with a gap nobody could tell what is missing.
func (m *Masker) Write(p []byte) (int, error) {
	if m.search == nil && m.err == nil {
		return m.w.Write(p)
	}
	var n int
	for n < len(p) && m.err == nil {
		part := p[n:min(n+chunk, len(p))]
		m.held = append(m.held, part...)
		m.find(len(part))
		m.release(len(m.held) - m.start - m.depth())
		if m.err == nil {
			n += len(part)
		}
	}
	return n, m.err
}

// Close passes on what is held back. It does not close the writer below. A
// Write after it fails, and a second Close does nothing.
func (m *Masker) Close() error {
	if m.err == nil {
		m.release(len(m.held) - m.start)
	}
	err := m.err
	if errors.Is(err, errClosed) {
		return nil
	}
	*m = Masker{w: m.w, err: errClosed}
	return err
}

// Format keeps the beginning of a secret from being printed.
func (*Masker) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, "masker") }

// depth is how long a beginning of a form the text so far ends with.
func (m *Masker) depth() int { return int(m.search.nodes[m.state].depth) }

// find looks for forms in what is held, of which the last bytes are fresh.
func (m *Masker) find(fresh int) {
	text, a := m.held[m.start:], m.search
	for at := len(text) - fresh; at < len(text); {
		until := at + 1
		if depth := m.depth(); depth < minForm {
			// So short a beginning was not judged by the filter yet.
			head := a.filter.next(text, at-depth)
			if head > at {
				at, m.state = head, 0
			}
			until = min(head+minForm, len(text))
		}
		for ; at < until; at++ {
			m.state = a.step(m.state, text[at])
			if found := a.nodes[m.state].match; found != 0 {
				m.cover(at+1, a.matches[found])
				m.state = a.open(m.state)
			}
		}
	}
}

// cover notes an occurrence by its end. It is the longest that ends there, and
// ends behind all earlier ones.
func (m *Masker) cover(end int, found match) {
	s := span{start: end - found.length, end: end, marker: found.marker}
	for last := len(m.spans) - 1; last >= 0 && m.spans[last].end > s.start; last-- {
		if before := m.spans[last]; before.start < s.start {
			s.start, s.marker, s.told = before.start, before.marker, before.told
		}
		m.spans = m.spans[:last]
	}
	m.spans = append(m.spans, s)
}

// release passes on the first n bytes of what is held. No occurrence can be
// found any more that begins in them.
func (m *Masker) release(n int) {
	text := m.held[m.start:]
	done, over := 0, 0
	for i := range m.spans {
		s := &m.spans[i]
		if s.start >= n {
			break // An occurrence that begins there or before it may still come.
		}
		if !s.told {
			m.pass(text[done:s.start])
			m.pass([]byte(s.marker))
			s.told = true
		}
		if done = min(s.end, n); s.end > n {
			break
		}
		over++
	}
	m.pass(text[done:n])
	m.spans = append(m.spans[:0], m.spans[over:]...)
	for i := range m.spans {
		m.spans[i].start -= n
		m.spans[i].end -= n
	}
	m.start += n
	// No more is moved than was released since the last time.
	if m.start >= len(m.held)-m.start {
		m.held, m.start = m.held[:copy(m.held, m.held[m.start:])], 0
	}
}

func (m *Masker) pass(p []byte) {
	if len(p) == 0 || m.err != nil {
		return
	}
	n, err := m.w.Write(p)
	if err == nil && n < len(p) {
		err = io.ErrShortWrite
	}
	m.err = err
}
