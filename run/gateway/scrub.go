package gateway

import (
	"bytes"
	"slices"
)

// leastKey is how long a key is that can be told from an ordinary word: servers
// of one's own get keys like "ollama" and "EMPTY", which are no secrets.
const leastKey = 8

// scrubber replaces a key in what passes, by as many other bytes, in whatever
// pieces it comes.
type scrubber struct {
	key  []byte
	held []byte // may be the beginning of a key
}

func newScrubber(key string) *scrubber {
	if len(key) < leastKey {
		key = ""
	}
	return &scrubber{key: []byte(key)}
}

// take returns what can be passed on of all that was taken.
func (s *scrubber) take(piece []byte) []byte {
	if len(s.key) == 0 {
		return piece
	}
	all := s.clean(slices.Concat(s.held, piece))
	keep := 0
	for n := min(len(s.key)-1, len(all)); n > 0; n-- {
		if bytes.HasSuffix(all, s.key[:n]) {
			keep = n
			break
		}
	}
	s.held = all[len(all)-keep:]
	return all[:len(all)-keep]
}

// rest returns what was held back.
func (s *scrubber) rest() []byte {
	rest := s.held
	s.held = nil
	return rest
}

func (s *scrubber) clean(text []byte) []byte {
	if len(s.key) == 0 {
		return text
	}
	return bytes.ReplaceAll(text, s.key, bytes.Repeat([]byte("*"), len(s.key)))
}
