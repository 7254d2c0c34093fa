package main

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// token is a text that nobody knows but whoever it was given to.
type token struct {
	name, value string
	// known are the places where it may be.
	known []string
	forms map[string][]byte
}

func newToken(name, value string, known ...string) *token {
	return &token{name: name, value: value, known: known, forms: tokenForms(value)}
}

// randomToken makes up a token. Its letters and digits are the same in JSON, in a
// URL and in a shell.
func randomToken(name string, known ...string) *token {
	return newToken(name, rand.Text(), known...)
}

// tokenForms are what a token looks like as it is, in base64 wherever in a
// longer text it stands, and in hexadecimal digits.
func tokenForms(value string) map[string][]byte {
	digits := hex.EncodeToString([]byte(value))
	forms := map[string][]byte{
		"plain": []byte(value), "hex": []byte(digits), "capital hex": []byte(strings.ToUpper(digits)),
	}
	for name, encoding := range map[string]*base64.Encoding{"base64": base64.RawStdEncoding, "URL base64": base64.RawURLEncoding} {
		for before := range 3 {
			text := encoding.EncodeToString(append(make([]byte, before), value...))
			// At either end a character holds bits of the neighbour as well.
			forms[fmt.Sprintf("%s after %d", name, before)] = []byte(text[(before*8+5)/6 : (before+len(value))*8/6])
		}
	}
	return forms
}

// in returns the name of a form in which the token is in a text, empty when it
// is not there.
func (k *token) in(text []byte) string {
	for name, form := range k.forms {
		if bytes.Contains(text, form) {
			return name
		}
	}
	return ""
}

// search looks for tokens in all that was collected at a place, and says what
// may not be there. It shows no value: what a test prints is kept by many.
func search(place string, texts map[string][]byte, tokens []*token) (hits []string) {
	for _, k := range tokens {
		if slices.Contains(k.known, place) {
			continue
		}
		for where, text := range texts {
			if form := k.in(text); form != "" {
				hits = append(hits, fmt.Sprintf("%s is in %s: %s (%s)", k.name, place, where, form))
			}
		}
	}
	slices.Sort(hits)
	return hits
}

// TestSecretsSearch shows the search what it has to find: that it finds nothing
// proves nothing otherwise.
func TestSecretsSearch(t *testing.T) {
	k := randomToken("the token", "here")
	other := randomToken("another one")
	for _, form := range []struct {
		name   string
		encode func(string) string
	}{
		{"plain", func(s string) string { return s }},
		{"hex", func(s string) string { return hex.EncodeToString([]byte(s)) }},
		{"capital hex", func(s string) string { return fmt.Sprintf("%X", s) }},
		{"base64", func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }},
		{"URL base64", func(s string) string { return base64.URLEncoding.EncodeToString([]byte(s)) }},
	} {
		for before := range 4 {
			for after := range 4 {
				text := form.encode(strings.Repeat("ÿ", before) + strings.Repeat("x", before) + k.value + strings.Repeat("ÿ", after))
				texts := map[string][]byte{"a file": []byte("\x00" + text + "\n"), "an empty one": nil}
				if hits := search("there", texts, []*token{k, other}); len(hits) != 1 || !strings.HasPrefix(hits[0], "the token is in there: a file (") {
					t.Errorf("%s after %d and before %d: %q", form.name, before, after, hits)
				}
				if hits := search("here", texts, []*token{k, other}); len(hits) > 0 {
					t.Errorf("where it may be: %q", hits)
				}
			}
		}
	}
	cut := map[string][]byte{"a part": []byte(k.value[1:]), "another": []byte(k.value[:len(k.value)-1])}
	if hits := search("there", cut, []*token{k}); len(hits) > 0 {
		t.Errorf("found %q", hits)
	}
}
