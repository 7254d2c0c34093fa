package secret

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// model does what a Masker does, on a whole text and naively.
type model struct {
	forms   []string
	markers []string
}

func newModel(names, values []string) model {
	var m model
	for i, name := range names {
		for _, form := range forms(values[i]) {
			m.forms = append(m.forms, form)
			m.markers = append(m.markers, "[secret "+name+"]")
		}
	}
	return m
}

// mask returns the masked text, and what of it is not markers.
func (m model) mask(text string) (masked string, rests []string) {
	end := 0 // of what is replaced
	for at := range len(text) {
		longest := -1
		for i, form := range m.forms {
			if strings.HasPrefix(text[at:], form) && (longest < 0 || len(form) > len(m.forms[longest])) {
				longest = i
			}
		}
		if longest < 0 {
			continue
		}
		if at >= end {
			masked += text[end:at] + m.markers[longest]
			rests = append(rests, text[end:at])
		}
		end = max(end, at+len(m.forms[longest]))
	}
	return masked + text[end:], append(rests, text[end:])
}

// beginning is the length of the longest beginning of a form at the text's end.
func (m model) beginning(text string) int {
	for at := range len(text) {
		if slices.ContainsFunc(m.forms, func(form string) bool {
			return len(form) > len(text)-at && strings.HasPrefix(form, text[at:])
		}) {
			return len(text) - at
		}
	}
	return 0
}

// problem says what is wrong with how the text is masked in these pieces.
func problem(names, values, pieces []string) string {
	set, naive := newSet(names, values), newModel(names, values)
	text := strings.Join(pieces, "")
	want, rests := naive.mask(text)
	if got := set.Mask(text); got != want {
		return "masked as a whole: got " + got + ", want " + want
	}
	for _, form := range naive.forms {
		if slices.ContainsFunc(rests, func(rest string) bool { return strings.Contains(rest, form) }) {
			return "the output holds the form " + form
		}
		if strings.Contains(text, form) && want == text {
			return "nothing is masked"
		}
	}
	var out bytes.Buffer
	m := set.Masker(&out)
	taken := ""
	for _, p := range pieces {
		if n, err := m.Write([]byte(p)); n != len(p) || err != nil {
			return "a Write failed"
		}
		taken += p
		held := len(m.held) - m.start
		if held != naive.beginning(taken) {
			return "held back " + taken[len(taken)-held:] + " of " + taken
		}
		if !strings.HasPrefix(want, out.String()) {
			return "got " + out.String() + " at first, want " + want
		}
	}
	if err := m.Close(); err != nil {
		return err.Error()
	}
	if out.String() != want {
		return "masked in pieces: got " + out.String() + ", want " + want
	}
	return ""
}

// letters meet each other often, and some of them are written differently in
// different encodings.
var letters = rapid.SampledFrom([]string{"a", "a", "b", "b", "[", "s", "\n", "\"", "<", "+", "ä", "\xff", "\x01"})

func word(least, most int) *rapid.Generator[string] {
	return rapid.Custom(func(t *rapid.T) string {
		for {
			s := strings.Join(rapid.SliceOfN(letters, least, most).Draw(t, "word"), "")
			if len(s) >= least {
				return s
			}
		}
	})
}

func TestMaskerAgainstModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		names, values := named(drawValues(rt))
		naive := newModel(names, values)
		piece := rapid.Custom(func(rt *rapid.T) string {
			if len(values) == 0 || rapid.Bool().Draw(rt, "noise") {
				return word(0, 6).Draw(rt, "text")
			}
			form := rapid.SampledFrom(naive.forms).Draw(rt, "form")
			from := rapid.IntRange(0, 2).Draw(rt, "from")
			return form[from : len(form)-rapid.IntRange(0, 1).Draw(rt, "cut")]
		})
		text := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(rt, "pieces"), "")
		if p := problem(names, values, split(rt, text)); p != "" {
			rt.Fatalf("values %q, text %q: %q", values, text, p)
		}
	})
}

// drawValues returns values of which some are parts of others.
func drawValues(rt *rapid.T) []string {
	values := rapid.SliceOfN(word(minForm, 24), 0, 3).Draw(rt, "values")
	for i := range values {
		n := len(values[i])
		from := rapid.IntRange(0, n-minForm).Draw(rt, "from")
		to := rapid.IntRange(from+minForm, n).Draw(rt, "to")
		if rapid.Bool().Draw(rt, "part") {
			values = append(values, values[i][from:to])
		}
	}
	return values
}

// split cuts a text anywhere.
func split(rt *rapid.T, text string) []string {
	var pieces []string
	for text != "" {
		n := rapid.IntRange(1, len(text)).Draw(rt, "chunk")
		pieces, text = append(pieces, text[:n]), text[n:]
	}
	return pieces
}

func TestTextWithoutSecretsStaysAsItIs(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		// Of the forms of this value none is without a letter of it, and a
		// text of bytes below 0x20 has none at all.
		set := newSet(named([]string{"hunter2", "another value"}))
		raw := rapid.SliceOfN(rapid.ByteRange(0, 0x1f), 0, 100).Draw(rt, "text")
		raw = append(raw, rapid.SliceOf(rapid.ByteRange(0x80, 0xff)).Draw(rt, "more")...)
		var out bytes.Buffer
		m := set.Masker(&out)
		for _, p := range split(rt, string(raw)) {
			write(t, m, p)
			if held := len(m.held) - m.start; held > 0 {
				rt.Fatalf("%d bytes are held back", held)
			}
		}
		if !bytes.Equal(out.Bytes(), raw) {
			rt.Fatalf("got %q of %q", out.Bytes(), raw)
		}
	})
}

func FuzzMasker(f *testing.F) {
	f.Add("hunter2", "hunter3", "a hunter2 and hunterhunter3", 3)
	f.Add("aaaa", "aaab", "aaaaaaaaaaabaaa", 1)
	f.Add("abcd", "cdef", "abcdefYWJjZA==61626364", 5)
	f.Add("line one\nline two\n", "\xff\xfe\xfd\xfc", "line one\\nline two\xff\xfe\xfd\xfc", 2)
	f.Add("a b&c<d>", "[secret A]", "a+b%26c%3Cd%3E[secret A]", 4)
	f.Fuzz(func(t *testing.T, a, b, text string, size int) {
		if len(a) < minForm || len(b) < minForm || len(a)+len(b)+len(text) > 300 {
			t.Skip()
		}
		size = 1 + (size&0xff)%40
		// Most texts of a fuzzer hold no secret.
		text += a + text + b
		var pieces []string
		for rest := text; rest != ""; {
			n := min(size, len(rest))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if p := problem([]string{"A", "B"}, []string{a, b}, pieces); p != "" {
			t.Errorf("values %q and %q, text %q by %d: %q", a, b, text, size, p)
		}
	})
}
