package wire

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/go-faster/errors"

	"agentrun/run/model"
)

func TestNewRefuses(t *testing.T) {
	for _, cfg := range []Config{
		{BaseURL: "api.test/v1"}, {BaseURL: "ftp://api.test"}, {BaseURL: "https://"}, {BaseURL: "https://:443"}, {BaseURL: "://"},
		{BaseURL: "https://me:secret@api.test"}, {BaseURL: "https://api.test?key=secret"}, {BaseURL: "https://api.test#secret"}, {BaseURL: "http://secret\x00"},
		{Key: "secret\n"}, {Key: "se cret"}, {Key: "sécret"}, {Key: "secret\x7f"},
	} {
		_, err := New(cfg, "https://api.test")
		if !errors.Is(err, ErrConfig) || strings.Contains(err.Error(), "cret") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
	c, err := New(Config{BaseURL: "http://api.test:8080/v1//"}, "")
	if err != nil || c.BaseURL != "http://api.test:8080/v1" {
		t.Errorf("got %+v, %v", c, err)
	}
	if c, err = New(Config{}, "https://api.test"); err != nil || c.BaseURL != "https://api.test" {
		t.Errorf("got %+v, %v", c, err)
	}
}

func TestAskedFor(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, row := range []struct {
		ms, after string
		want      time.Duration
	}{
		{"", "", 0}, {"", "7", 7 * time.Second}, {"", "0.5", time.Second / 2}, {"1500", "7", 1500 * time.Millisecond},
		{"", "Fri, 02 Jan 2026 03:05:05 GMT", time.Minute}, {"", "Fri, 02 Jan 2026 03:04:00 GMT", 0}, {"", "Sat, 02 Jan 9999 03:04:00 GMT", longestAfter},
		{"", "-1", 0}, {"x", "3", 3 * time.Second}, {"", "soon", 0}, {"", "NaN", 0}, {"", "+Inf", longestAfter}, {"", "1e300", longestAfter}, {"1e300", "", longestAfter},
	} {
		h := http.Header{}
		h.Set("Retry-After-Ms", row.ms)
		h.Set("Retry-After", row.after)
		if got := askedFor(h, now); got != row.want {
			t.Errorf("%q and %q: %s, want %s", row.ms, row.after, got, row.want)
		}
	}
}

func TestClean(t *testing.T) {
	const key = "sk-0123456789"
	c := &Client{key: key}
	for text, want := range map[string]string{
		"":                            "",
		" a\r\n\tb\x00c\u2028d ":      "a b c d",
		"your key " + key + key + ".": "your key [key][key].",
		"caf\xe9":                     "caf\uFFFD",
	} {
		if got := c.clean(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	// A key across the bound is found, and no rune is cut.
	for n := range 3 * len(key) {
		got := c.clean(strings.Repeat("x", MaxMessage-len(key)-n) + key + strings.Repeat("ü", 2*len(key)))
		if strings.Contains(got, "sk-") || len(got) > MaxMessage || !utf8.ValidString(got) {
			t.Errorf("%d: %q", n, got[MaxMessage-64:])
		}
	}
	// A word that servers of one's own take for a key is not one.
	if got := (&Client{key: "ollama"}).clean("ollama is busy"); got != "ollama is busy" {
		t.Errorf("got %q", got)
	}
}

func TestProblems(t *testing.T) {
	for _, row := range []struct {
		name, body string
		status     int
		kind       error
		text       string
	}{
		{"OpenAI, too long", `{"error":{"message":"This model's maximum context length is 8192 tokens.","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`, 400, model.ErrTooLong, "8192"},
		{"OpenAI, no money", `{"error":{"message":"You exceeded your current quota.","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`, 429, model.ErrRefused, "quota"},
		{"OpenAI, too fast", `{"error":{"message":"Rate limit reached.","type":"tokens","param":null,"code":"rate_limit_exceeded"}}`, 429, model.ErrUnavailable, "Rate limit"},
		{"Anthropic, too long", `{"type":"error","error":{"type":"invalid_request_error","message":"input length and ` + "`max_tokens`" + ` exceed context limit: 198000 + 8192 > 200000"}}`, 400, model.ErrTooLong, "198000"},
		{"Anthropic, overloaded", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, 529, model.ErrUnavailable, "Overloaded"},
		{"llama.cpp, too long", `{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it","type":"exceed_context_size_error","n_prompt_tokens":1407,"n_ctx":256}}`, 400, model.ErrTooLong, "available context size"},
		{"llama.cpp, loading", `{"error":{"code":503,"message":"Loading model","type":"unavailable_error"}}`, 503, model.ErrUnavailable, "Loading model"},
		{"vLLM, too long", `{"object":"error","message":"This model's maximum context length is 4096 tokens.","type":"BadRequestError","param":null,"code":400}`, 400, model.ErrTooLong, "4096"},
		{"vLLM, no model", `{"object":"error","message":"The model ` + "`x`" + ` does not exist.","type":"NotFoundError","param":null,"code":404}`, 404, model.ErrRefused, "does not exist"},
		{"Ollama", `{"error":"model 'x' not found"}`, 404, model.ErrRefused, "model 'x' not found"},
		{"Gemini, too long", `[{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).","status":"INVALID_ARGUMENT"}}]`, 400, model.ErrTooLong, "1048576"},
		{"Gemini, too fast", `[{"error":{"code":429,"message":"You exceeded your current quota, please check your plan.","status":"RESOURCE_EXHAUSTED"}}]`, 429, model.ErrUnavailable, "quota"},
		{"OpenRouter", `{"error":{"message":"Provider returned error","code":400,"metadata":{"raw":"maximum context length is 32768","provider_name":"X"}}}`, 400, model.ErrTooLong, "Provider returned error: maximum"},
		{"FastAPI", `{"detail":[{"loc":["body","messages"],"msg":"field required"}]}`, 422, model.ErrRefused, "field required"},
		{"in a stream, refused", `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`, 0, model.ErrRefused, "no"},
		{"in a stream, by its number", `{"error":{"code":"429","message":"slow down"}}`, 0, model.ErrUnavailable, "slow down"},
		{"in a stream, unknown", `{"error":{"code":{"a":1},"message":["a","b"]}}`, 0, model.ErrUnavailable, `["a","b"]`},
		{"without words", `{"error":{"reason":17}}`, 500, model.ErrUnavailable, `{"reason":17}`},
	} {
		p, found := readProblem([]byte(row.body))
		if row.status == 0 {
			row.status = p.status
		}
		if kind := p.kind(row.status); !found || kind != row.kind || !strings.Contains(p.text, row.text) {
			t.Errorf("%s: %v, %v, %q", row.name, found, kind, p.text)
		}
	}
	for _, body := range []string{"", "{}", "[]", "[1]", "null", "1", "<html>", `{"error":null}`, `{"error":""}`, `{"error":{},"choices":[]}`, `{"choices":[{"delta":{"content":"error"}}]}`, `{"error":`} {
		if p, found := readProblem([]byte(body)); found {
			t.Errorf("%s: %+v", body, p)
		}
	}
}

// The operator's proxy is the way out where there is one.
func TestProxyOfTheServer(t *testing.T) {
	if NewTransport().Proxy == nil {
		t.Error("HTTPS_PROXY would not count")
	}
}

// quiet is a body that only notes that it was closed.
type quiet struct{ io.Reader }

func (quiet) Close() error { return nil }

func TestStream(t *testing.T) {
	for _, row := range []struct{ in, want, says string }{
		{in: ": comment\n\ndata: 1\r\n\r\n:\nevent: x\ndata: 2\n\n", want: "\ndata: 1\r\n\r\nevent: x\ndata: 2\n\n"},
		{in: "data: 1", want: "data: 1\n\n"},
		{in: "data: {\"delta\":{\"content\":\"\\\"error\\\": \"}}\n", want: "data: {\"delta\":{\"content\":\"\\\"error\\\": \"}}\n"},
		{in: "data: 1\n\ndata: {\"a\":1, \"error\":\"why\"}\n\ndata: 2\n", want: "data: 1\n\n", says: "why"},
		{in: "{\"error\":{\"message\":\"why\"}}", says: "why"},
		{in: "error: {\"message\":\"why\"}\n", says: "why"},
		{in: strings.Repeat("event: "+strings.Repeat("x", 1<<20)+"\n", 17), says: "longer than"},
		{in: "data: " + strings.Repeat("x", MaxLine), says: "a line longer than"},
	} {
		x := &Exchange{client: &Client{betweenBytes: time.Hour}, silence: time.NewTimer(time.Hour)}
		got, err := io.ReadAll(newStream(x, quiet{strings.NewReader(row.in)}))
		if row.says == "" && err != nil || row.says != "" && (err == nil || !strings.Contains(err.Error(), row.says)) {
			t.Errorf("%.60q: %v", row.in, err)
		}
		if len(row.in) < 1<<10 && string(got) != row.want {
			t.Errorf("%q: got %q, want %q", row.in, got, row.want)
		}
	}
}
