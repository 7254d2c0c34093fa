package command

import (
	"bytes"
	"fmt"
	"unicode/utf8"
)

// Text is captured output.
type Text struct {
	// Text is valid UTF-8: other bytes have become U+FFFD.
	Text string
	// LeftOut counts the bytes missing in the middle, where Text says so.
	LeftOut int64
	// Replaced is true when bytes that are not UTF-8 were replaced.
	Replaced bool
}

// capture is an io.Writer that keeps the first and the last half of what it is
// given, within a limit, and never fails. Trailing newlines do not count: they
// are held back until something follows them, as a shell's $(…) drops them.
type capture struct {
	half     int
	head     []byte
	tail     []byte // a ring once it is full
	next     int    // where in the ring the next byte goes
	total    int64
	newlines int64 // held back
}

func newCapture(limit int) *capture { return &capture{half: limit / 2} }

// Write implements io.Writer.
func (c *capture) Write(p []byte) (int, error) {
	content := bytes.TrimRight(p, "\n")
	if len(content) > 0 {
		c.releaseNewlines()
		c.keep(content)
	}
	c.newlines += int64(len(p) - len(content))
	return len(p), nil
}

// releaseNewlines keeps the newlines that turned out not to be trailing. Of a
// very long row of them only as many are written as can be kept.
func (c *capture) releaseNewlines() {
	row := min(c.newlines, int64(2*c.half))
	c.keep(bytes.Repeat([]byte{'\n'}, int(row)))
	c.total += c.newlines - row
	c.newlines = 0
}

func (c *capture) keep(p []byte) {
	c.total += int64(len(p))
	if room := c.half - len(c.head); room > 0 {
		n := min(room, len(p))
		c.head = append(c.head, p[:n]...)
		p = p[n:]
	}
	if len(p) > c.half {
		p = p[len(p)-c.half:]
	}
	if room := c.half - len(c.tail); room > 0 {
		n := min(room, len(p))
		c.tail = append(c.tail, p[:n]...)
		p = p[n:]
	}
	for len(p) > 0 {
		n := copy(c.tail[c.next:], p)
		c.next = (c.next + n) % len(c.tail)
		p = p[n:]
	}
}

// text returns what was captured. A cut never splits a character.
func (c *capture) text() Text {
	tail := append(append([]byte{}, c.tail[c.next:]...), c.tail[:c.next]...)
	leftOut := c.total - int64(len(c.head)) - int64(len(tail))
	var t Text
	if leftOut == 0 {
		t.Text, t.Replaced = validUTF8(append(c.head, tail...))
		return t
	}
	head, cutHead := trimPartialRune(c.head)
	tail, cutTail := trimContinuation(tail)
	t.LeftOut = leftOut + int64(cutHead+cutTail)
	headText, headReplaced := validUTF8(head)
	tailText, tailReplaced := validUTF8(tail)
	t.Text = fmt.Sprintf("%s[%d bytes left out]%s", headText, t.LeftOut, tailText)
	t.Replaced = headReplaced || tailReplaced
	return t
}

func validUTF8(p []byte) (text string, replaced bool) {
	if utf8.Valid(p) {
		return string(p), false
	}
	// The conversion makes one U+FFFD of each byte that is not UTF-8.
	return string([]rune(string(p))), true
}

// trimPartialRune takes the beginning of a rune off the end of p.
func trimPartialRune(p []byte) (rest []byte, cut int) {
	for i := 1; i < utf8.UTFMax && i <= len(p); i++ {
		if b := p[len(p)-i]; utf8.RuneStart(b) {
			if !utf8.FullRune(p[len(p)-i:]) {
				return p[:len(p)-i], i
			}
			break
		}
	}
	return p, 0
}

// trimContinuation takes the end of a rune off the beginning of p.
func trimContinuation(p []byte) (rest []byte, cut int) {
	for cut < utf8.UTFMax-1 && cut < len(p) && !utf8.RuneStart(p[cut]) {
		cut++
	}
	return p[cut:], cut
}
