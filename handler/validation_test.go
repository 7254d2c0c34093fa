package handler

import (
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-faster/errors"
	"github.com/go-faster/jx"

	"agentrun/gen"
)

func TestValidationCases(t *testing.T) {
	cases := loadCases(t, canonicalTemplate)
	if len(cases) < 150 {
		t.Errorf("%d cases, want at least 150", len(cases))
	}
	for _, c := range cases {
		issues := c.answer(t)
		if len(issues) == 0 {
			status := 201
			if c.Method == "GET" {
				status = 404
			}
			checkCase(t, c, status, "application/json", nil)
			continue
		}
		checkCase(t, c, 422, "application/json", encodeIssues(t, issues))
	}
}

// answer returns the issues of a case, found in the way that the server does.
func (c validationCase) answer(t *testing.T) []issue {
	t.Helper()
	if c.Method == "GET" {
		segment, err := url.PathUnescape(strings.TrimPrefix(c.Path, "/v1/agents/"))
		if err != nil {
			t.Fatal(err)
		}
		return pathIssues(segment)
	}
	var contentType string
	if c.ContentType != nil {
		contentType = *c.ContentType
	}
	return requestIssues(contentType, c.Body)
}

func requestIssues(contentType string, body []byte) []issue {
	req, err := decodeRequest(body)
	if err == nil && jsonContentType(contentType) {
		return hiddenIssues(body, req)
	}
	if issues := bodyIssues(contentType, body); len(issues) > 0 {
		return issues
	}
	return unreadableBody
}

// decodeRequest does what the generated server does with a JSON body.
func decodeRequest(body []byte) (*gen.PublicCreateAgentRequest, error) {
	var req gen.PublicCreateAgentRequest
	d := jx.DecodeBytes(body)
	if err := req.Decode(d); err != nil {
		return nil, err
	}
	if err := d.Skip(); err != io.EOF {
		return nil, errors.New("unexpected trailing data")
	}
	return &req, req.Validate()
}

func encodeIssues(t *testing.T, issues []issue) []byte {
	t.Helper()
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(map[string]any{"detail": issues}); err != nil {
		t.Fatal(err)
	}
	if !utf8.ValidString(b.String()) {
		t.Errorf("not UTF-8: %q", b.String())
	}
	return []byte(b.String())
}

// TestCostlyBodies has bodies that cost a careless reader its stack, its
// memory or quadratic time. Each must be answered, and the answer be small.
func TestCostlyBodies(t *testing.T) {
	with := func(value string) string { return strings.TrimSuffix(plainBody, "}") + "," + value + "}" }
	many := strings.Repeat("0,", 1_000_000)
	var keys strings.Builder
	for i := range 1_000_000 {
		fmt.Fprintf(&keys, `"%x":0,`, i)
	}
	for name, c := range map[string]struct {
		body string
		want string // type of the first issue, "" for none
	}{
		"deep lists":        {with(`"e":` + strings.Repeat("[", 100_000)), "json_invalid"},
		"deep objects":      {with(`"e":` + strings.Repeat(`{"a":`, 100_000)), "json_invalid"},
		"deep, closed":      {with(`"e":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000)), "json_invalid"},
		"just too deep":     {with(`"e":` + strings.Repeat("[", 10_000) + strings.Repeat("]", 10_000)), "json_invalid"},
		"just deep enough":  {with(`"e":` + strings.Repeat("[", 9_999) + strings.Repeat("]", 9_999)), ""},
		"deep name":         {`{"name":` + strings.Repeat("[", 9_000) + strings.Repeat("]", 9_000) + "}", "string_type"},
		"many keys":         {with(keys.String() + `"z":0`), ""},
		"many keys, faulty": {"{" + keys.String() + `"name":0}`, "string_type"},
		"many same keys":    {with(strings.Repeat(`"name":"y",`, 1_000_000) + `"name":""`), "string_too_short"},
		"many files":        {with(`"files":[` + many + "0]"), "too_long"},
		"many in name":      {`{"name":[` + many + "0]}", "string_type"},
		"long number":       {with(`"input_text":` + strings.Repeat("9", 1_000_000)), "string_type"},
		"long exponent":     {with(`"name":1e999999999999999999`), "string_type"},
		"hyphens":           {with(`"template_id":"` + strings.Repeat("-", 5_000_000) + `"`), "uuid_parsing"},
		"surrogates":        {with(`"name":"` + strings.Repeat(`\\\ud83d\ude80`, 300_000) + `"`), "string_too_long"},
		"quotes":            {with(`"input_text":"` + strings.Repeat(`\"template_id`, 500_000) + `"`), ""},
		"blanks":            {strings.Repeat(" ", 5_000_000), "json_invalid"},
		"zeros":             {strings.Repeat("\x00", 5_000_000), "json_invalid"},
	} {
		issues := requestIssues("application/json", []byte(c.body))
		var first string
		if len(issues) > 0 {
			first = issues[0].Type
		}
		if first != c.want {
			t.Errorf("%s: %q, want %q", name, first, c.want)
		}
		if size := len(encodeIssues(t, issues)); size > 3*maxEcho {
			t.Errorf("%s: the answer has %d bytes", name, size)
		}
	}
}

func TestLongInputIsLeftOut(t *testing.T) {
	for length, kept := range map[int]bool{maxEcho: true, maxEcho + 1: false} {
		issues := bodyIssues("application/json", []byte(`{"name":"`+strings.Repeat("n", length-2)+`"}`))
		if len(issues) != 2 || (issues[0].Input != nil) != kept || issues[1].Input != nil {
			t.Errorf("%d bytes: %v", length, issues)
		}
	}
	text := string(encodeIssues(t, bodyIssues("text/plain", make([]byte, maxEcho))))
	if strings.Contains(text, "input") {
		t.Errorf("%.200s", text)
	}
}

func TestJSONContentType(t *testing.T) {
	for header, want := range map[string]bool{
		"application/json": true, "APPLICATION/Json": true, " application/json\t": true, "application/json;;=\"": true,
		"application/vnd.api+json ; a": true, "application/+json": true, "application/x+JSON": true,
		"": false, "json": false, "text/json": false, "application/jsonp": false, "application/json+x": false,
		"application/json, text/plain": false, "application/a/b+json": false, "application/ json": false, ";application/json": false,
	} {
		if got := jsonContentType(header); got != want {
			t.Errorf("%q: %t", header, got)
		}
	}
}
