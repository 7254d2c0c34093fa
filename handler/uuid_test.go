package handler

import (
	"strings"
	"testing"

	"github.com/google/uuid"
	"pgregory.net/rapid"
)

func TestAcceptedUUIDForms(t *testing.T) {
	const id = canonicalTemplate
	bare := strings.ReplaceAll(id, "-", "")
	for _, s := range []string{
		id, strings.ToUpper(id), bare, strings.ToUpper(bare), "{" + id + "}", "urn:uuid:" + id, "urn:uuid:" + strings.ToUpper(id),
	} {
		if !acceptedUUID(s) || !acceptedUUID([]byte(s)) || uuidFault(s) != "" {
			t.Errorf("%q is refused: %q", s, uuidFault(s))
		}
	}
	for _, s := range []string{
		"", "(" + id + ")", "x" + id + "x", "{" + id + ")", "URN:UUID:" + id, "urn:uuid:" + bare, "{" + bare + "}",
		" " + id, id + " ", id + "\n", bare + "0", strings.ReplaceAll(id, "-", "_"), "g" + id[1:], "urn-uuid-" + id,
	} {
		if acceptedUUID(s) || acceptedUUID([]byte(s)) || uuidFault(s) == "" {
			t.Errorf("%q is accepted", s)
		}
	}
}

// TestUUIDFaultNamesTheRule has one text for each rule of the error texts, and
// the wrapped ones, where places are counted in a way of their own.
func TestUUIDFaultNamesTheRule(t *testing.T) {
	for s, want := range map[string]string{
		"":                                       "invalid length: expected length 32 for simple format, found 0",
		"z":                                      "invalid character: found `z` at 1",
		"ab🚀":                                    "invalid character: found `🚀` at 3",
		"{z}":                                    "invalid character: found `z` at 2",
		"urn:uuid:z":                             "invalid character: found `z` at 10",
		"URN:UUID:z":                             "invalid character: found `U` at 1",
		"{}":                                     "invalid group count: expected 5, found 1",
		"urn:uuid:" + strings.Repeat("a", 36):    "invalid length: expected length 32 for simple format, found 36",
		"{" + strings.Repeat("a", 36) + "}":      "invalid length: expected length 32 for simple format, found 36",
		strings.Repeat("-", 36):                  "invalid group count: expected 5, found 37",
		"c0ffee11-2233-4455-8677-8899aabbccd":    "invalid group length in group 4: expected 12, found 11",
		"{c0ffee11-2233-4455-8677-8899aabbccd}":  "invalid group length in group 4: expected 12, found 13",
		"c0ffee11-223-34455-8677-8899aabbccdd":   "invalid group length in group 1: expected 4, found 3",
		"{c0ffee11-2233-445-58677-8899aabbccdd}": "invalid group length in group 2: expected 4, found 3",
		"urn:uuid:----":                          "invalid group length in group 0: expected 8, found 0",
		"\ufffd0ffee11-2233-4455-8677-8899aabbcc": "invalid character: found `\ufffd` at 1",
	} {
		if got := uuidFault(s); got != want {
			t.Errorf("%q:\n got %s\nwant %s", s, got, want)
		}
	}
}

// TestUUIDFaultAgrees holds the two views of a UUID together: every text that
// is not accepted has a fault, and what is accepted can be read.
func TestUUIDFaultAgrees(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.SampledFrom([]string{"", "{", "urn:uuid:", "("}).Draw(t, "before") +
			rapid.StringMatching(`[0-9a-fA-F]{7,8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-fG]{12}`).Draw(t, "middle") +
			rapid.SampledFrom([]string{"", "}", ")", "0"}).Draw(t, "after")
		accepted := acceptedUUID(s)
		if accepted != acceptedUUID([]byte(s)) || accepted != (uuidFault(s) == "") {
			t.Fatalf("%q: accepted is %t, the fault %q", s, accepted, uuidFault(s))
		}
		if _, err := uuid.Parse(s); accepted && err != nil {
			t.Fatalf("%q is accepted but %v", s, err)
		}
	})
}
