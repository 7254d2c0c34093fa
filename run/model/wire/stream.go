package wire

import (
	"bufio"
	"bytes"
	"io"

	"github.com/go-faster/errors"

	"agentrun/run/model"
)

// stream hands an answer's events on, line by line. It bounds them, drops
// comments, and turns an event that is an error into an error: libraries count
// comments as mistakes, and know errors in their own provider's form only.
type stream struct {
	x     *Exchange
	body  io.Closer
	lines *bufio.Reader
	total int
	line  []byte // of the line that is read
	rest  []byte // of the line that is handed on
	err   error
}

func newStream(x *Exchange, body io.ReadCloser) *stream {
	s := &stream{x: x, body: body}
	s.lines = bufio.NewReaderSize(heard{s, body}, 16<<10)
	return s
}

// heard notes every byte that comes.
type heard struct {
	s    *stream
	body io.Reader
}

func (h heard) Read(p []byte) (int, error) {
	n, err := h.body.Read(p)
	if n > 0 {
		h.s.x.beat()
	}
	if h.s.total += n; h.s.total > MaxStream {
		return 0, Broken("the answer's stream is longer than %d bytes", MaxStream)
	}
	return n, err
}

// Read returns the events.
func (s *stream) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		if s.err = s.next(); s.err == nil && !s.drop() {
			s.rest = s.line
			s.err = s.check()
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// Close ends the answer.
func (s *stream) Close() error { return s.body.Close() }

// next reads a line, with its end. A last line without one is given one: an
// event that is cut off shows by its JSON.
func (s *stream) next() error {
	s.line = s.line[:0]
	for {
		part, err := s.lines.ReadSlice('\n')
		if s.line = append(s.line, part...); len(s.line) > MaxLine {
			s.line = nil
			return Broken("the answer has a line longer than %d bytes", MaxLine)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(s.line) > 0:
			s.line = append(s.line, "\n\n"...)
			return nil
		default:
			return err
		}
	}
}

// drop says that the line is a comment.
func (s *stream) drop() bool { return s.line[0] == ':' }

// check looks for an error in the line.
func (s *stream) check() error {
	text, isData := bytes.CutPrefix(bytes.TrimSpace(s.line), []byte("data:"))
	text = bytes.TrimSpace(text)
	if isData && string(text) == "[DONE]" {
		s.x.done = true
		return nil
	}
	if !isData {
		// Libraries keep such lines, for errors that go over several.
		if err := s.x.Take(len(s.line)); err != nil {
			s.rest = nil
			return err
		}
	}
	// llama.cpp had a field of its own; others write JSON where a stream was to
	// begin.
	text, isError := bytes.CutPrefix(text, []byte("error:"))
	p, found := problem{}, false
	switch text = bytes.TrimSpace(text); {
	case isError && !isData:
		p, found = readDetails(text), true
	// In text that the model says, the quotes would be escaped.
	case len(text) > 0 && text[0] == '{' && bytes.Contains(text, []byte(`"error"`)):
		p, found = readProblem(text)
	}
	if !found {
		return nil
	}
	s.rest = nil
	s.x.refused = &model.Error{Kind: p.kind(p.status), Message: p.text}
	return s.x.refused
}
