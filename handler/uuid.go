package handler

import (
	"fmt"
	"strings"
)

// groupEnds are the places of the hyphens in 8-4-4-4-12.
var groupEnds = [4]int{8, 13, 18, 23}

const (
	uuidLength = 36 // of 8-4-4-4-12
	urnPrefix  = "urn:uuid:"
)

// acceptedUUID reports whether s is a UUID in one of the four forms of the API:
// 32 hex digits; 8-4-4-4-12; the latter in braces; the latter after urn:uuid:.
// Digits may have either case; version and variant do not matter.
func acceptedUUID[T string | []byte](s T) bool {
	start := 0
	switch len(s) {
	case 32:
		return allHex(s, 0, 32)
	case uuidLength:
	case uuidLength + 2:
		if s[0] != '{' || s[len(s)-1] != '}' {
			return false
		}
		start = 1
	case uuidLength + len(urnPrefix):
		if string(s[:len(urnPrefix)]) != urnPrefix {
			return false
		}
		start = len(urnPrefix)
	default:
		return false
	}
	group := start
	for _, end := range groupEnds {
		if s[start+end] != '-' || !allHex(s, group, start+end) {
			return false
		}
		group = start + end + 1
	}
	return allHex(s, group, start+uuidLength)
}

func allHex[T string | []byte](s T, from, to int) bool {
	for i := from; i < to; i++ {
		if !isHex(s[i]) {
			return false
		}
	}
	return true
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F'
}

// uuidFault returns why s is no UUID, in the words that pydantic has from its
// UUID parser, or "" when acceptedUUID is true. Places and lengths are in bytes.
func uuidFault(s string) string {
	if acceptedUUID(s) {
		return ""
	}
	s = unwrapped(s)
	inside, offset := s, 0
	switch {
	case strings.HasPrefix(s, "{") && strings.HasSuffix(s, "}"):
		inside, offset = s[1:len(s)-1], 1
	case strings.HasPrefix(s, urnPrefix):
		inside, offset = s[len(urnPrefix):], len(urnPrefix)
	}
	var (
		hyphens [len(groupEnds)]int // the first of them
		count   int
	)
	for i, c := range inside {
		switch {
		case c == '-':
			if count < len(hyphens) {
				hyphens[count] = i
			}
			count++
		case c > 'f' || !isHex(byte(c)):
			return fmt.Sprintf("invalid character: found `%c` at %d", c, i+offset+1)
		}
	}
	if count == 0 && offset == 0 {
		return fmt.Sprintf("invalid length: expected length 32 for simple format, found %d", len(s))
	}
	if count != len(hyphens) {
		return fmt.Sprintf("invalid group count: expected 5, found %d", count+1)
	}
	return groupFault(hyphens, len(s))
}

// unwrapped takes the wrapper off a text that is as long as a wrapped UUID.
func unwrapped(s string) string {
	if len(s) == uuidLength+2 && s[0] == '{' && s[len(s)-1] == '}' {
		return s[1 : len(s)-1]
	}
	if rest, ok := strings.CutPrefix(s, urnPrefix); ok && len(rest) == uuidLength {
		return rest
	}
	return s
}

// groupFault names the first of the five groups that has a wrong length, in a
// text of the given length with hyphens at four places.
func groupFault(hyphens [len(groupEnds)]int, length int) string {
	const message = "invalid group length in group %d: expected %d, found %d"
	start := 0
	for group, end := range groupEnds {
		if hyphens[group] != end {
			return fmt.Sprintf(message, group, end-start, hyphens[group]-start)
		}
		start = end + 1
	}
	return fmt.Sprintf(message, len(groupEnds), uuidLength-start, length-start)
}
