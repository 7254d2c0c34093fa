package tool

import (
	"fmt"
	"unicode/utf8"
)

// kept is an io.Writer that holds the first and the last half of a text in
// UTF-8, within a limit, and never fails.
type kept struct {
	half  int
	head  []byte
	tail  []byte // up to twice the half, of which the end counts
	total int64
}

func newKept(limit int) *kept { return &kept{half: limit / 2} }

// Write implements io.Writer.
func (k *kept) Write(p []byte) (int, error) {
	n := len(p)
	k.total += int64(n)
	room := min(k.half-len(k.head), n)
	k.head = append(k.head, p[:room]...)
	p = p[room:]
	if len(p) > k.half {
		p = p[len(p)-k.half:]
	}
	if len(k.tail)+len(p) > 2*k.half {
		k.tail = append(k.tail[:0], k.tail[len(k.tail)-(k.half-len(p)):]...)
	}
	k.tail = append(k.tail, p...)
	return n, nil
}

// parts returns what is kept, without characters that were cut.
func (k *kept) parts() (head, tail string) {
	end := k.tail[max(0, len(k.tail)-k.half):]
	if k.total == int64(len(k.head)+len(end)) {
		return string(k.head), string(end)
	}
	return cutEnd(string(k.head), k.half), cutStart(string(end), k.half)
}

func (k *kept) leftOut() int64 {
	head, tail := k.parts()
	return k.total - int64(len(head)+len(tail))
}

// text is what is kept, and says what is not.
func (k *kept) text() string {
	head, tail := k.parts()
	if left := k.leftOut(); left > 0 {
		return fmt.Sprintf("%s\n[%d bytes left out]\n%s", head, left, tail)
	}
	return head + tail
}

// noteRoom is more than a note of what is left out takes.
const noteRoom = 256

// shorten returns the text's beginning and its end, and between them how much
// is missing and where that is.
func (k *kept) shorten(limit int, where string) string {
	head, tail := k.parts()
	if k.leftOut() == 0 {
		head += tail // One may be shorter than its half of the limit.
		tail = head
	}
	half := (limit - noteRoom) / 2
	head, tail = cutEnd(head, half), cutStart(tail, half)
	return fmt.Sprintf("%s\n[%d bytes left out; %s]\n%s", head, k.total-int64(len(head)+len(tail)), where, tail)
}

// cutEnd returns at most n bytes from the beginning of a text, without a part of
// a character at the end.
func cutEnd(text string, n int) string {
	text = text[:min(n, len(text))]
	for i := 1; i < utf8.UTFMax && i <= len(text); i++ {
		if rest := text[len(text)-i:]; utf8.RuneStart(rest[0]) {
			if !utf8.FullRuneInString(rest) {
				return text[:len(text)-i]
			}
			break
		}
	}
	return text
}

// cutStart returns at most n bytes from the end of a text, without a part of a
// character at the beginning.
func cutStart(text string, n int) string {
	text = text[max(0, len(text)-n):]
	for range utf8.UTFMax - 1 {
		if text == "" || utf8.RuneStart(text[0]) {
			break
		}
		text = text[1:]
	}
	return text
}
