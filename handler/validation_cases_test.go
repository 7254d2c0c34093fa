package handler

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/big"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// canonicalTemplate is the template_id that the cases are written with.
const canonicalTemplate = "5eed0000-7e3a-4c1d-9b2f-0123456789ab"

// validationCase is a request with the answer that it must get; see
// testdata/validation.jsonl.
type validationCase struct {
	Name        string        `json:"name"`
	Method      string        `json:"method"` // "" is POST
	Path        string        `json:"path"`
	ContentType *string       `json:"content_type"` // null sends none
	Body        []byte        `json:"body_b64"`
	Expect      expectation   `json:"expect"`
	Strictness  string        `json:"strictness"`
	Also        []string      `json:"also"` // further fields to compare
	Wild        []string      `json:"wild"`
	Alt         []expectation `json:"alt"` // further acceptable answers
}

type expectation struct {
	Status     int              `json:"status"` // when given, nothing else counts
	Valid      bool             `json:"valid"`
	Issues     []map[string]any `json:"issues"`
	Strictness string           `json:"strictness"`
}

// loadCases reads the cases, with templateID in place of the canonical one in
// each spelling of it.
func loadCases(t *testing.T, templateID string) []validationCase {
	t.Helper()
	text, err := os.ReadFile("testdata/validation.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	replace := templateReplacer(templateID)
	var cases []validationCase
	for line := range strings.Lines(string(text)) {
		var c validationCase
		if err := decodeNumbers([]byte(replace.Replace(line)), &c); err != nil {
			t.Fatalf("%.80s: %v", line, err)
		}
		c.Body = []byte(replace.Replace(string(c.Body)))
		cases = append(cases, c)
	}
	return cases
}

// templateReplacer puts id in place of the canonical template_id: hyphenated and
// not, in small letters and in capitals.
func templateReplacer(id string) *strings.Replacer {
	forms := func(id string) []string {
		id = strings.ToLower(id)
		bare := strings.ReplaceAll(id, "-", "")
		return []string{id, strings.ToUpper(id), bare, strings.ToUpper(bare)}
	}
	var pairs []string
	for i, form := range forms(canonicalTemplate) {
		pairs = append(pairs, form, forms(id)[i])
	}
	return strings.NewReplacer(pairs...)
}

// checkCase compares the answer to a case with the expected one, as closely as
// the case asks. The order of the issues counts.
func checkCase(t *testing.T, c validationCase, status int, contentType string, body []byte) {
	t.Helper()
	wrong := c.compare(c.Expect, status, contentType, body)
	for _, alt := range c.Alt {
		if wrong == "" {
			break
		}
		if c.compare(alt, status, contentType, body) == "" {
			wrong = ""
		}
	}
	if wrong != "" {
		t.Errorf("%s: %s", c.Name, wrong)
	}
}

// compare returns what is wrong with an answer, or "".
func (c validationCase) compare(want expectation, status int, contentType string, body []byte) string {
	if want.Status != 0 {
		if status != want.Status {
			return fmt.Sprintf("status %d, want %d", status, want.Status)
		}
		return ""
	}
	got, isList := issueList(body)
	if want.Valid {
		return c.compareValid(status, isList, body)
	}
	mediaType, _, _ := strings.Cut(contentType, ";")
	switch {
	case status != 422:
		return fmt.Sprintf("status %d, want 422: %.200s", status, body)
	case mediaType != "application/json":
		return fmt.Sprintf("content type %q", contentType)
	case len(got) == 0:
		return fmt.Sprintf("detail is no list of issues: %.200s", body)
	}
	for _, issue := range got {
		if fault := malformed(issue); fault != "" {
			return fmt.Sprintf("%s: %v", fault, issue)
		}
	}
	fields := c.compared(want)
	if len(fields) == 0 {
		return ""
	}
	wanted, found := c.view(want.Issues, fields), c.view(got, fields)
	if wanted != found {
		return fmt.Sprintf("issues differ\n got %.1000s\nwant %.1000s", found, wanted)
	}
	return ""
}

func (c validationCase) compareValid(status int, isList bool, body []byte) string {
	accepted := []int{201, 403, 404, 409, 413}
	if c.Method == "GET" {
		accepted = []int{200, 404, 502, 503}
	}
	if slices.Contains(accepted, status) || status == 422 && !isList {
		return ""
	}
	return fmt.Sprintf("valid, but status %d: %.200s", status, body)
}

// compared returns the fields of an issue that count.
func (c validationCase) compared(want expectation) []string {
	strictness := c.Strictness
	if want.Strictness != "" {
		strictness = want.Strictness
	}
	fields := map[string][]string{
		"exact": {"type", "loc", "msg", "ctx", "input"}, "loc_type": {"type", "loc"}, "loc": {"loc"}, "any": nil,
	}[strictness]
	if len(fields) == 0 {
		return nil
	}
	return append(fields, c.Also...)
}

// view returns the compared parts of issues as a text that is the same just
// when they mean the same.
func (c validationCase) view(issues []map[string]any, fields []string) string {
	var views []map[string]any
	for _, issue := range issues {
		v := map[string]any{}
		for _, f := range fields {
			if value, ok := issue[f]; ok {
				v[f] = meaning(value)
			}
		}
		loc, _ := v["loc"].([]any)
		if slices.Contains(c.Wild, "json_pos") && issue["type"] == "json_invalid" && len(loc) == 2 {
			v["loc"] = []any{loc[0], "*"}
		}
		views = append(views, v)
	}
	text, err := json.Marshal(views)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// meaning returns a value in which every number is spelled one way.
func meaning(value any) any {
	switch v := value.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = meaning(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = meaning(v[k])
		}
		return out
	case json.Number:
		if i, ok := new(big.Int).SetString(string(v), 10); ok {
			return "number " + i.String()
		}
		f, _ := strconv.ParseFloat(string(v), 64)
		return "number " + strconv.FormatFloat(f+0, 'f', -1, 64)
	}
	return value
}

func issueList(body []byte) (issues []map[string]any, isList bool) {
	var answer struct {
		Detail json.RawMessage `json:"detail"`
	}
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Detail) == 0 || answer.Detail[0] != '[' {
		return nil, false
	}
	if err := decodeNumbers(answer.Detail, &issues); err != nil {
		return nil, true
	}
	return issues, true
}

// malformed returns how an issue differs from section 2.7 of the specification,
// or "".
func malformed(issue map[string]any) string {
	loc, ok := issue["loc"].([]any)
	if !ok {
		return "loc is no array"
	}
	for _, step := range loc {
		number, isNumber := step.(json.Number)
		if _, isText := step.(string); !isText && (!isNumber || strings.ContainsAny(string(number), ".eE")) {
			return "loc is not made of strings and integers"
		}
	}
	for _, key := range []string{"msg", "type"} {
		if text, _ := issue[key].(string); text == "" {
			return key + " is no text"
		}
	}
	if ctx, ok := issue["ctx"]; ok {
		if _, ok := ctx.(map[string]any); !ok {
			return "ctx is no object"
		}
	}
	for key := range issue {
		if !slices.Contains([]string{"type", "loc", "msg", "input", "ctx"}, key) {
			return "unexpected key " + key
		}
	}
	return ""
}

func decodeNumbers(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	return d.Decode(into)
}
