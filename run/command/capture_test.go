package command

import (
	"bytes"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// fill returns a capture that was given these pieces.
func fill(limit int, pieces ...string) *capture {
	c := newCapture(limit)
	for _, p := range pieces {
		n, err := c.Write([]byte(p))
		if n != len(p) || err != nil {
			panic("a capture takes everything")
		}
	}
	return c
}

func TestCapture(t *testing.T) {
	for _, row := range []struct {
		name   string
		pieces []string
		want   Text
	}{ // the limit is 8 bytes
		{name: "nothing", want: Text{}},
		{name: "empty pieces", pieces: []string{"", "a", ""}, want: Text{Text: "a"}},
		{name: "the limit", pieces: []string{"01234567"}, want: Text{Text: "01234567"}},
		{name: "the limit in pieces", pieces: []string{"012", "34567"}, want: Text{Text: "01234567"}},
		{name: "the limit and newlines", pieces: []string{"01234567\n", "\n\n"}, want: Text{Text: "01234567"}},
		{name: "a byte too many", pieces: []string{"012345678"}, want: Text{Text: "0123[1 bytes left out]5678", LeftOut: 1}},
		{name: "many too many", pieces: []string{"0123", "xxxx", "xxxxxxxx", "4", "567"}, want: Text{Text: "0123[12 bytes left out]4567", LeftOut: 12}},
		{name: "newlines become inner ones", pieces: []string{"a\n", "\n", "b"}, want: Text{Text: "a\n\nb"}},
		{name: "newlines fill the head", pieces: []string{"a\n\n\n\n\n\n\n\n\n\nb"}, want: Text{Text: "a\n\n\n[4 bytes left out]\n\n\nb", LeftOut: 4}},
		{name: "the same in pieces", pieces: []string{"a\n\n\n\n\n", "\n\n\n\n\n", "b"}, want: Text{Text: "a\n\n\n[4 bytes left out]\n\n\nb", LeftOut: 4}},
		{name: "a character over the head's end", pieces: []string{"012€45678"}, want: Text{Text: "012[4 bytes left out]5678", LeftOut: 4}},
		{name: "a character over the tail's begin", pieces: []string{"01234€678"}, want: Text{Text: "0123[4 bytes left out]678", LeftOut: 4}},
		{name: "one over the whole cut", pieces: []string{"012\U0001f600678"}, want: Text{Text: "012[4 bytes left out]678", LeftOut: 4}},
		{name: "each bad byte is one", pieces: []string{"\xe2\x82", "\xff!"}, want: Text{Text: "\ufffd\ufffd\ufffd!", Replaced: true}},
		{name: "a character in pieces", pieces: []string{"\xe2", "\x82", "\xac"}, want: Text{Text: "€"}},
		{name: "bad bytes on both sides", pieces: []string{"\xff\xff01xx\x80\x80\x80\x80"}, want: Text{Text: "\ufffd\ufffd01[5 bytes left out]\ufffd", LeftOut: 5, Replaced: true}},
		{name: "bad bytes left out", pieces: []string{"0123\xff\xff4567"}, want: Text{Text: "0123[2 bytes left out]4567", LeftOut: 2}},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := fill(8, row.pieces...).text(); got != row.want {
				t.Errorf("got %#v, want %#v", got, row.want)
			}
		})
	}
}

// capturable are bytes of which every rule of a capture meets some.
var capturable = rapid.SampledFrom([]string{
	"a", "b", "\n", "\n\n\n", "ä", "€", "\U0001f600", "\xe2", "\x82", "\xf0\x9f", "\xff", "\xc0",
})

func TestCaptureAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := 2 * rapid.IntRange(0, 12).Draw(rt, "half")
		all := strings.Join(rapid.SliceOfN(capturable, 0, 60).Draw(rt, "output"), "")
		c := newCapture(limit)
		for rest := all; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "chunk")
			if got, err := c.Write([]byte(rest[:n])); got != n || err != nil {
				rt.Fatalf("Write returned %d, %v of %d", got, err, n)
			}
			rest = rest[n:]
		}
		got := c.text()
		if problem := disagreement(all, limit, got); problem != "" {
			rt.Fatalf("output %+q with limit %d became %#v: %s", all, limit, got, problem)
		}
	})
}

// disagreement says what is wrong with what was made of an output. Of bytes
// that are not UTF-8 the model leaves open whether the first or last three of
// a cut are left out too; everything else it fixes.
func disagreement(all string, limit int, got Text) string {
	content := strings.TrimRight(all, "\n")
	if !utf8.ValidString(got.Text) {
		return "not UTF-8"
	}
	if len(content) <= limit {
		if want := (Text{Text: replaceNaively(content), Replaced: !utf8.ValidString(content)}); got != want {
			return fmt.Sprintf("want %#v", want)
		}
		return ""
	}
	wantHead, wantTail := limit/2, len(content)-limit/2
	for head := wantHead; head >= max(0, wantHead-3); head-- {
		for tail := wantTail; tail <= min(len(content), wantTail+3); tail++ {
			if splitsCharacter(content, head) || splitsCharacter(content, tail) {
				continue
			}
			cut := Text{
				Text:     fmt.Sprintf("%s[%d bytes left out]%s", replaceNaively(content[:head]), tail-head, replaceNaively(content[tail:])),
				LeftOut:  int64(tail - head),
				Replaced: !utf8.ValidString(content[:head]) || !utf8.ValidString(content[tail:]),
			}
			if got == cut {
				return ""
			}
			if utf8.ValidString(content) {
				return fmt.Sprintf("want %#v", cut) // the first cut that splits nothing keeps the most
			}
		}
	}
	return "no cut makes that"
}

// replaceNaively makes U+FFFD of each byte that is not UTF-8.
func replaceNaively(s string) string {
	var b strings.Builder
	for len(s) > 0 {
		r, size := utf8.DecodeRuneInString(s)
		b.WriteRune(r)
		s = s[size:]
	}
	return b.String()
}

// splitsCharacter says whether a cut at i goes through a character of s.
func splitsCharacter(s string, i int) bool {
	for at := 0; at < i; {
		_, size := utf8.DecodeRuneInString(s[at:])
		if at += size; at > i {
			return true
		}
	}
	return false
}

// A row of newlines is a number until something follows them, and then at
// most what is kept.
func TestCaptureOfNewlinesTakesNoMemory(t *testing.T) {
	const size = 24 << 20
	row := bytes.Repeat([]byte{'\n'}, 1<<20)
	c := newCapture(MaxOutput)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	write := func(p []byte) {
		if _, err := c.Write(p); err != nil {
			t.Fatal(err)
		}
	}
	write([]byte("begin"))
	for range size / len(row) {
		write(row)
	}
	held := len(c.head) + len(c.tail)
	write([]byte("end"))
	got := c.text()
	runtime.ReadMemStats(&after)
	if held != len("begin") {
		t.Errorf("%d bytes are kept of a row of newlines that may be the last ones", held)
	}
	half := MaxOutput / 2
	left := int64(size + len("begin") + len("end") - MaxOutput)
	want := "begin" + strings.Repeat("\n", half-5) + fmt.Sprintf("[%d bytes left out]", left) + strings.Repeat("\n", half-3) + "end"
	if got.Text != want || got.LeftOut != left {
		t.Errorf("got %d bytes and %d left out, want %d and %d", len(got.Text), got.LeftOut, len(want), left)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 8<<20 {
		t.Errorf("%d bytes were allocated", allocated)
	}
}

func TestCaptureOfMuchOutputTakesLittleMemory(t *testing.T) {
	chunk := bytes.Repeat([]byte("0123456789abcde\n"), 2<<10)
	c := newCapture(MaxOutput)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 1000 {
		if _, err := c.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	runtime.ReadMemStats(&after)
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > 8<<20 {
		t.Errorf("%d bytes were allocated", allocated)
	}
}
