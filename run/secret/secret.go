// Package secret gives the programs of agents their secrets, and keeps these
// out of what the programs write. A Source reads them, from a directory or
// from the server's environment, anew for each turn; a Set is what it read; a
// Masker replaces them in a stream.
//
// The package may not store a value, log one, put one into an error or keep one
// in a global; what it hands out prints names only, and Environ is the one way
// to a value. It knows nothing of runs, turns or storage, and imports nothing
// of agentrun.
//
// # What is masked
//
// Masked are a value and its usual encodings:
//
//   - base64, standard and URL alphabet, with and without padding, of the
//     value and of what it is a part of, as in the header of HTTP's basic
//     authentication; of the value alone also broken into lines of 64 or 76
//     characters, and with a newline at its end;
//   - hexadecimal digits, all lower or all upper case;
//   - percent-encoding, as a query or as a part of a path;
//   - the inside of a JSON string, with <, > and & escaped or not, and with
//     everything escaped that is not ASCII; not of a value that is not UTF-8;
//   - of a value of several lines, each line of at least 8 bytes, without the
//     blanks around it; but not the frame of a PEM block (-----BEGIN …-----),
//     which is no secret and stands in public files too.
//
// Of a value in the midst of base64, the characters that it shares with its
// neighbours stay, which hold at most four of its bits at either end.
//
// # What is not masked
//
// Any other form: a part of a value (what is left of one that was cut off
// included), a value with something in between (colours, blanks, line breaks
// or the columns of a hex dump), in another case, reversed, compressed, hashed,
// encrypted, spelled out, encoded twice, quoted for a shell or for HTML; or
// what a value stands for where the value is an encoding itself. A program that
// wants to reveal its secrets always finds a way. Masking protects from
// accidents; what protects from theft is the list of the network addresses that
// the program may reach.
package secret

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Set are the secrets of an agent's program for one turn. The zero Set holds
// none. A Set does not change and may be used by many at once.
type Set struct {
	// Where a Set is an unexported field, the fmt package prints what is in it
	// by reflection. That looks behind pointers, but not into functions.
	held func() contents
}

// contents is what a Set holds.
type contents struct {
	names  []string // in the order asked for, each once
	values []string
	search *automaton // nil when there is nothing to look for
}

// newSet takes values of at least minForm bytes.
func newSet(names, values []string) Set {
	if len(names) == 0 {
		return Set{}
	}
	search := newAutomaton(names, values)
	return Set{held: func() contents { return contents{names, values, search} }}
}

func (s Set) contents() contents {
	if s.held == nil {
		return contents{}
	}
	return s.held()
}

// Environ returns the variables for the program's environment, as NAME=value.
func (s Set) Environ() []string {
	c := s.contents()
	env := make([]string, len(c.names))
	for i, name := range c.names {
		env[i] = name + "=" + c.values[i]
	}
	return env
}

// Masker returns a writer that passes on to w what it is given, with [secret
// NAME] in place of each secret.
func (s Set) Masker(w io.Writer) *Masker {
	return &Masker{w: w, search: s.contents().search}
}

// Mask returns the text with [secret NAME] in place of each secret.
func (s Set) Mask(text string) string {
	if s.held == nil {
		return text
	}
	var masked strings.Builder
	m := s.Masker(&masked)
	// A Builder takes everything.
	_, _ = io.WriteString(m, text)
	_ = m.Close()
	return masked.String()
}

// String names the secrets.
func (s Set) String() string {
	if s.held == nil {
		return "no secrets"
	}
	return "secrets " + strings.Join(s.contents().names, ", ")
}

// GoString is String.
func (s Set) GoString() string { return s.String() }

// Format writes String, whatever the verb.
func (s Set) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// MarshalJSON writes the list of the names.
func (s Set) MarshalJSON() ([]byte, error) {
	return json.Marshal(append([]string{}, s.contents().names...))
}
