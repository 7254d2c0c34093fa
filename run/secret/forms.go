package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// minLine is the length from which on a line of a value counts as a secret of
// its own; shorter ones, such as a brace, would shred the output.
const minLine = 8

// wrapWidths are the lengths of the lines in which base64(1) and openssl(1)
// write.
var wrapWidths = []int{76, 64}

// forms returns the texts by which a value is recognised, itself the first.
// None of them is shorter than the value, apart from its lines.
func forms(value string) []string {
	all := []string{value}
	all = append(all, base64Forms(value)...)
	digits := hex.EncodeToString([]byte(value))
	all = append(all, digits, strings.ToUpper(digits), url.QueryEscape(value), url.PathEscape(value))
	all = append(all, jsonForms(value)...)
	return append(all, lines(value)...)
}

func base64Forms(value string) []string {
	var all []string
	for _, enc := range []*base64.Encoding{base64.StdEncoding, base64.URLEncoding} {
		for offset := range 3 {
			all = append(all, base64Inner(enc, value, offset))
		}
		all = append(all, base64Whole(enc, value)...)
	}
	whole := append(base64Whole(base64.StdEncoding, value), base64Inner(base64.StdEncoding, value, 0))
	for _, width := range wrapWidths {
		for _, text := range whole {
			all = append(all, wrap(text, width))
		}
	}
	return all
}

// base64Whole returns the encodings of the value alone. Most who encode a
// value on a command line encode the newline of echo(1) with it.
func base64Whole(enc *base64.Encoding, value string) []string {
	var all []string
	for _, text := range []string{value, value + "\n"} {
		padded := enc.EncodeToString([]byte(text))
		all = append(all, padded, strings.TrimRight(padded, "="))
	}
	return all
}

// base64Inner returns the characters that are the same in the encoding of every
// text in which the value begins at this offset from a group of three bytes.
func base64Inner(enc *base64.Encoding, value string, offset int) string {
	text := append(make([]byte, offset), value...)
	encoded := enc.EncodeToString(text)
	return encoded[(offset*8+5)/6 : len(text)*8/6]
}

// wrap breaks the text into lines.
func wrap(text string, width int) string {
	var b strings.Builder
	for len(text) > width {
		b.WriteString(text[:width])
		b.WriteByte('\n')
		text = text[width:]
	}
	b.WriteString(text)
	return b.String()
}

// jsonForms returns what stands between the quotes of a JSON string. Of bytes
// that are not UTF-8 JSON has only replacement characters, and a row of these
// is nobody's secret.
func jsonForms(value string) []string {
	if !utf8.ValidString(value) {
		return nil
	}
	plain := jsonInner(value, false)
	return []string{plain, jsonInner(value, true), ascii(plain)}
}

func jsonInner(value string, escapeHTML bool) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(escapeHTML)
	// A string can be encoded, and a Buffer takes everything.
	_ = enc.Encode(value)
	return strings.TrimSuffix(strings.TrimPrefix(b.String(), `"`), "\"\n")
}

// ascii escapes what is not ASCII in the inside of a JSON string, as Python's
// json.dumps does unless told otherwise.
func ascii(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r < utf8.RuneSelf {
			b.WriteRune(r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			fmt.Fprintf(&b, `\u%04x`, unit)
		}
	}
	return b.String()
}

// lines returns the lines of a value of several lines that are long enough to
// be secrets.
func lines(value string) []string {
	if !strings.Contains(value, "\n") {
		return nil
	}
	var all []string
	for line := range strings.Lines(value) {
		line = strings.TrimSpace(line)
		frame := strings.HasPrefix(line, "-----") && strings.HasSuffix(line, "-----")
		if len(line) >= minLine && !frame {
			all = append(all, line)
		}
	}
	return all
}
