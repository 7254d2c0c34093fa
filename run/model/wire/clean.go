package wire

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// leastKey is how long a key is that can be told from an ordinary word: servers
// of one's own get keys like "ollama" and "EMPTY", which are no secrets.
const leastKey = 8

// clean makes foreign words fit for an error: without the key, in one line, and
// of MaxMessage bytes at most.
func (c *Client) clean(text string) string {
	if len(c.key) >= leastKey {
		text = strings.ReplaceAll(text, c.key, "[key]")
	}
	text = strings.Join(strings.FieldsFunc(strings.ToValidUTF8(text, "\uFFFD"), func(r rune) bool {
		return unicode.IsSpace(r) || unicode.IsControl(r)
	}), " ")
	if len(text) <= MaxMessage {
		return text
	}
	end := MaxMessage - len("…")
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + "…"
}
