package handler

import (
	"strings"
	"testing"

	"github.com/go-faster/jx"
)

func TestJSONFaultNamesThePlace(t *testing.T) {
	for body, want := range map[string]int{
		`{"a":1} x`:              8,
		`{"a":01}`:               6,
		`{"a":NaN}`:              5,
		"{\"a\":\"caf\xe9\"}":    9,
		"{\"a\":\"\xe2\x82":      6,
		"\xef\xbb\xbf{}":         0,
		"{\"a\":\"x\ny\"}":       7,
		`{"a":"\ud80"}`:          11,
		`{"a":[1,2`:              8,
		"  ":                     1,
		"{\x00\"\x00a\x00\"\x00": 1,
	} {
		at, fault := jsonFault([]byte(body))
		if at != want || fault == "" {
			t.Errorf("%q: %q at %d, want %d", body, fault, at, want)
		}
	}
	for _, body := range []string{plainBody, `"\ud800"`, "\"\x7f\u2028\ufffd\"", " \t\r\n[1e999999999]\n", "-0.0e-0"} {
		if at, fault := jsonFault([]byte(body)); fault != "" {
			t.Errorf("%q: %q at %d", body, fault, at)
		}
	}
}

func TestLoneSurrogate(t *testing.T) {
	for text, want := range map[string]bool{
		`""`:                         false,
		`"\ud83d\ude80"`:             false,
		`"\uD83D\uDE80\n"`:           false,
		`"\\ud800"`:                  false,
		`"\\\\ud800\\"`:              false,
		`"\uFFFD\ufffd"`:             false,
		`"\ud800"`:                   true,
		`"\\\ud800"`:                 true,
		`"\udc00"`:                   true,
		`"\ude80\ud83d"`:             true,
		`"\ud83dx\ude80"`:            true,
		`"\ud83d\n"`:                 true,
		`"\ud83d\\ude80"`:            true,
		`"\ud83d\ud83d\ude80"`:       true,
		`"\ud83d\ude80\ud83d\u0061"`: true,
		`"\udbff`:                    true,
	} {
		if got := loneSurrogate([]byte(text)); got != want {
			t.Errorf("%s: %t", text, got)
		}
	}
}

func TestEchoIsReadable(t *testing.T) {
	for value, want := range map[string]string{
		" { \"b\" : [ 1.50 , -0 , null ] , \"a\" : true }\n": `{"b":[1.50,-0,null],"a":true}`,
		`"\u00e9\u0000\/<&>"`:                                `"é\u0000/<&>"`,
		`{"\ud800":"a\ud800b\udc00"}`:                        "{\"\ufffd\":\"a\ufffdb\ufffd\"}",
		`[[],{},"",1e400]`:                                   `[[],{},"",1e400]`,
		"\"\u2028\x7f\"":                                     "\"\u2028\x7f\"",
		strings.Repeat("9", 5000) + " ":                      strings.Repeat("9", 5000),
	} {
		if got := string(echo(jx.Raw(value))); got != want {
			t.Errorf("%s:\n got %s\nwant %s", value, got, want)
		}
	}
}

func TestEchoHasLimits(t *testing.T) {
	text := func(length int) string { return `"` + strings.Repeat("x", length-2) + `"` }
	nested := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	for name, c := range map[string]struct {
		value string
		kept  bool
	}{
		"text":        {text(maxEcho), true},
		"long text":   {text(maxEcho + 1), false},
		"blanks":      {"[" + strings.Repeat(" ", maxEcho) + "]", true},
		"escapes":     {`"` + strings.Repeat(`\u0061`, maxEcho-2) + `"`, true},
		"long list":   {"[" + strings.Repeat("1,", maxEcho/2) + "1]", false},
		"long object": {`{"a":` + text(maxEcho) + "}", false},
		"deep":        {nested(maxEchoDepth), true},
		"too deep":    {nested(maxEchoDepth + 2), false},
	} {
		if got := echo(jx.Raw(c.value)) != nil; got != c.kept {
			t.Errorf("%s: sent back is %t", name, got)
		}
	}
	if echoText([]byte(strings.Repeat("x", maxEcho-2))) == nil || echoText([]byte(strings.Repeat("x", maxEcho-1))) != nil {
		t.Error("the limit of a text differs from the limit of a value")
	}
}
