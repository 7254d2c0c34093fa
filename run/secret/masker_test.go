package secret

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/go-faster/errors"
)

func TestMask(t *testing.T) {
	for _, row := range []struct {
		name       string
		values     []string // of the secrets A, B, …
		text, want string
	}{
		{"no secrets", nil, "any text", "any text"},
		{"no text", []string{"abcd"}, "", ""},
		{"no hit", []string{"abcd"}, "abc abdc bcd", "abc abdc bcd"},
		{"the whole text", []string{"abcd"}, "abcd", "[secret A]"},
		{"between others", []string{"abcd"}, "xabcdx", "x[secret A]x"},
		{"one after another", []string{"abcd"}, "abcdabcd", "[secret A][secret A]"},
		{"a false start", []string{"aabaac"}, "aabaabaac", "aab[secret A]"},
		{"a beginning at the end", []string{"abcd"}, "xxabc", "xxabc"},
		{"two", []string{"abcd", "efgh"}, "efgh abcd", "[secret B] [secret A]"},
		{"side by side", []string{"abcd", "efgh"}, "efghabcd", "[secret B][secret A]"},
		{"equal", []string{"abcd", "abcd"}, "abcd", "[secret A]"},
		{"the longest", []string{"abcd", "abcdef"}, "abcdef", "[secret B]"},
		{"not quite the longest", []string{"abcd", "abcdefgh"}, "abcdefg", "[secret A]efg"},
		{"the earliest", []string{"cdef", "abcd"}, "abcdef", "[secret B]"},
		{"inside", []string{"cdef", "abcdefgh"}, "abcdefgh", "[secret B]"},
		{"inside of what is none", []string{"cdef", "abcdefgh"}, "abcdefgx", "ab[secret A]gx"},
		{"a chain", []string{"abcd", "cdef", "efgh"}, "xabcdefghx", "x[secret A]x"},
		{"overlapping itself", []string{"abab"}, "abababab", "[secret A]"},
		{"overlapping itself for long", []string{"aaaa"}, "b" + strings.Repeat("a", 3*chunk) + "b", "b[secret A]b"},
		{"two under a late one", []string{"abcd", "efgh", "cd__efgh_"}, "abcd__efgh_", "[secret A]"},
		{"two under a late one that does not come", []string{"abcd", "efgh", "cd__efgh_"}, "abcd__efghx", "[secret A]__[secret B]x"},
		{"in the marker of another", []string{"abcd", "secret"}, "abcd", "[secret A]"},
	} {
		t.Run(row.name, func(t *testing.T) {
			set := newSet(named(row.values))
			if got := set.Mask(row.text); got != row.want {
				t.Errorf("got %q, want %q", got, row.want)
			}
			var slow bytes.Buffer
			m := set.Masker(&slow)
			for i := range len(row.text) {
				write(t, m, row.text[i:i+1])
			}
			if err := m.Close(); err != nil || slow.String() != row.want {
				t.Errorf("byte by byte got %q, %v, want %q", slow.String(), err, row.want)
			}
		})
	}
}

// named names secrets A, B, …
func named(values []string) (names, same []string) {
	for i := range values {
		names = append(names, string(rune('A'+i)))
	}
	return names, values
}

func write(t testing.TB, m *Masker, text string) {
	t.Helper()
	if n, err := m.Write([]byte(text)); n != len(text) || err != nil {
		t.Fatalf("Write returned %d, %v of %d", n, err, len(text))
	}
}

func TestMaskerHoldsBackWhatMayBeASecret(t *testing.T) {
	var out bytes.Buffer
	m := newSet(named([]string{"abcdefgh", "abcd"})).Masker(&out)
	for _, row := range []struct{ write, want string }{
		{"12", "12"},
		{"ab", "12"},
		{"c", "12"},
		{"x", "12abcx"},
		{"abcd", "12abcx"},
		{"ef", "12abcx"},
		{"12", "12abcx[secret B]ef12"},
		{"", "12abcx[secret B]ef12"},
		{"abcdefg", "12abcx[secret B]ef12"},
		{"h", "12abcx[secret B]ef12[secret A]"},
		{"abcde", "12abcx[secret B]ef12[secret A]"},
	} {
		write(t, m, row.write)
		if out.String() != row.want {
			t.Fatalf("after %q got %q, want %q", row.write, out.String(), row.want)
		}
	}
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if want := "12abcx[secret B]ef12[secret A][secret B]e"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// A secret that is over is not held back, though it is the end of another one.
func TestMaskerHoldsNoWholeSecret(t *testing.T) {
	var out bytes.Buffer
	m := newSet(named([]string{"abcd", "xabcd", "yxabcd"})).Masker(&out)
	write(t, m, "yxabcd")
	if held := len(m.held) - m.start; held != 0 || out.String() != "[secret C]" {
		t.Errorf("got %q, and %d bytes are held", out.String(), held)
	}
}

func TestMaskerAfterClose(t *testing.T) {
	for _, values := range [][]string{nil, {"abcd"}} {
		var out bytes.Buffer
		m := newSet(named(values)).Masker(&out)
		write(t, m, "xab")
		for range 2 {
			if err := m.Close(); err != nil {
				t.Errorf("Close returned %v", err)
			}
		}
		if n, err := m.Write([]byte("cd")); n != 0 || !errors.Is(err, errClosed) {
			t.Errorf("Write returned %d, %v", n, err)
		}
		if out.String() != "xab" {
			t.Errorf("got %q", out.String())
		}
	}
}

// full takes so many bytes.
type full struct {
	room int
	err  error
}

func (f *full) Write(p []byte) (int, error) {
	n := min(f.room, len(p))
	f.room -= n
	if n < len(p) {
		return n, f.err
	}
	return n, nil
}

func TestMaskerPassesErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	for _, row := range []struct {
		err  error
		want string
	}{{broken, "broken"}, {nil, "short write"}} {
		m := newSet(named([]string{"abcd"})).Masker(&full{room: chunk + 10, err: row.err})
		n, err := m.Write(bytes.Repeat([]byte("x"), 3*chunk))
		if n != chunk || err == nil || err.Error() != row.want {
			t.Errorf("Write returned %d, %v", n, err)
		}
		if n, again := m.Write([]byte("x")); n != 0 || again != err {
			t.Errorf("the next Write returned %d, %v", n, again)
		}
		if again := m.Close(); again != err {
			t.Errorf("Close returned %v", again)
		}
		if again := m.Close(); again != nil {
			t.Errorf("the second Close returned %v", again)
		}
	}
	m := newSet(named([]string{"abcd"})).Masker(&full{room: 1, err: broken})
	write(t, m, "xabc")
	if err := m.Close(); err != broken {
		t.Errorf("Close returned %v of what was held back", err)
	}
}

// once fails once.
type once struct {
	failed bool
	after  string
}

func (o *once) Write(p []byte) (int, error) {
	if !o.failed {
		o.failed = true
		return 0, errors.New("broken")
	}
	o.after += string(p)
	return len(p), nil
}

func TestMaskerWritesNothingAfterAnError(t *testing.T) {
	var below once
	m := newSet(named([]string{"abcd"})).Masker(&below)
	_, err := m.Write([]byte("xabcdx"))
	if again := m.Close(); err == nil || again != err || below.after != "" {
		t.Errorf("Write returned %v, Close %v, written is %q", err, again, below.after)
	}
}

// A writer below may not see what the caller does with the bytes afterwards,
// and the caller gets them back as they were.
func TestMaskerLeavesItsInputAlone(t *testing.T) {
	var out bytes.Buffer
	m := newSet(named([]string{"abcd"})).Masker(&out)
	p := []byte("xxab")
	write(t, m, string(p))
	if _, err := m.Write(p); err != nil {
		t.Fatal(err)
	}
	if string(p) != "xxab" {
		t.Errorf("the input became %q", p)
	}
	copy(p, "yyyy")
	write(t, m, "cd")
	if want := "xxabxx[secret A]"; out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestMaskerPrintsNothingHeld(t *testing.T) {
	m := newSet(named([]string{"abcdefgh"})).Masker(&bytes.Buffer{})
	write(t, m, "abcdefg")
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%d"} {
		if got := fmt.Sprintf(verb, m); got != "masker" {
			t.Errorf("%s printed %q", verb, got)
		}
	}
}

// What is held is bounded by the longest form, whatever comes.
func TestMaskerHoldsLittle(t *testing.T) {
	long := strings.Repeat("a", 1000) + "b"
	m := newSet(named([]string{long, "aaaa"})).Masker(&bytes.Buffer{})
	for range 100 {
		write(t, m, strings.Repeat("a", 5000))
		if held := len(m.held) - m.start; held != 1000 || len(m.spans) != 1 {
			t.Fatalf("%d bytes and %d spans are held", held, len(m.spans))
		}
	}
	if cap(m.held) > 4*chunk {
		t.Errorf("the buffer has grown to %d bytes", cap(m.held))
	}
}
