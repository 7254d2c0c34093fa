package markup

import (
	"strings"
	"unicode/utf8"
)

// Control characters that begin or end a sequence for a terminal (ECMA-48).
const (
	bell   = '\a'
	escape = '\x1b'
	csi    = '\u009b' // Also ESC [: parameters, and one letter that acts.
	st     = '\u009c' // Also ESC \: the end of a text for the terminal.
)

// Terminal makes the output of a command readable in a <pre>. Colours, cursor
// movements and texts for the terminal (titles, links) are removed, and every end
// of a line is \n. Any other control character, bytes that are no UTF-8 and the
// characters that turn the order of a text around become U+FFFD. The result is
// text, not HTML: html/template has to escape it.
func Terminal(text string) string {
	var b strings.Builder
	b.Grow(len(text))
	for len(text) > 0 {
		r, size := utf8.DecodeRuneInString(text)
		switch n := sequence(text); {
		case n > 0:
			size = n
		case r == '\r':
			// A line that ended is not drawn over, so that nothing of it is hidden.
			size = len(text) - len(strings.TrimLeft(text, "\r"))
			if size == len(text) || text[size] != '\n' {
				b.WriteByte('\n')
			}
		default:
			b.WriteRune(visible(r))
		}
		text = text[size:]
	}
	return b.String()
}

// visible replaces a character that would not show, or make others show in
// another order than they are in.
func visible(r rune) rune {
	switch {
	case r == '\n', r == '\t':
		return r
	case r < ' ', r >= 0x7f && r <= 0x9f: // C0, DEL and C1.
		return utf8.RuneError
	case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069': // Unicode's bidi embeddings, overrides, isolates.
		return utf8.RuneError
	default:
		return r
	}
}

// sequence returns the length of the control sequence that text begins with, 0
// when it begins with none or with one that has no end.
func sequence(text string) int {
	r, size := utf8.DecodeRuneInString(text)
	if r == escape {
		if len(text) == size {
			return 0
		}
		next := rune(text[size])
		if next < '@' || next > '_' {
			return plainSequence(text)
		}
		// ESC and one of these is the same as one character of C1.
		r, size = next+0x40, size+1
	}
	switch r {
	case csi:
		return parameterSequence(text, size)
	case '\u0090', '\u0098', '\u009d', '\u009e', '\u009f': // DCS, SOS, OSC, PM, APC.
		return textSequence(text, size)
	}
	if text[0] == escape {
		return size
	}
	return 0
}

// plainSequence measures ESC, bytes such as '(', and a letter.
func plainSequence(text string) int {
	at := 1
	for at < len(text) && text[at] >= 0x20 && text[at] <= 0x2f {
		at++
	}
	if at < len(text) && text[at] >= 0x30 && text[at] <= 0x7e {
		return at + 1
	}
	return 0
}

// parameterSequence measures a sequence such as the 31m of a colour, whose
// parameters begin at an offset.
func parameterSequence(text string, at int) int {
	for at < len(text) && text[at] >= 0x20 && text[at] <= 0x3f {
		at++
	}
	if at < len(text) && text[at] >= 0x40 && text[at] <= 0x7e {
		return at + 1
	}
	return 0
}

// textSequence measures a sequence with a text for the terminal, which begins
// at an offset. No control character is in it, so that a sequence without an end
// hides nothing, and that a text full of beginnings is not searched through for
// each of them.
func textSequence(text string, at int) int {
	for i, r := range text[at:] {
		switch {
		case r == bell, r == st:
			return at + i + utf8.RuneLen(r)
		case r == escape && strings.HasPrefix(text[at+i+1:], `\`):
			return at + i + 2
		case r != visible(r) || r == '\n':
			return 0
		}
	}
	return 0
}
