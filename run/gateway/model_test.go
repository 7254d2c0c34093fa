package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-faster/errors"

	"agentrun/run/model"
)

// realKey is what no program may see, placeholder what programs have.
const realKey, placeholder = "sk-real-0123456789abcdef", "sk-placeholder"

// provider is a provider's server, and a gateway in front of it.
type provider struct {
	t    *testing.T
	g    *Gateway
	addr string

	mu    sync.Mutex
	calls []Call
	asked []*http.Request
	sent  []string
}

// startProvider starts a provider in both dialects, openai and anthropic, that
// answers with a handler.
func startProvider(t *testing.T, answer http.HandlerFunc, change ...func(*Config)) *provider {
	t.Helper()
	p := &provider{t: t}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		p.mu.Lock()
		p.asked, p.sent = append(p.asked, r), append(p.sent, string(body))
		p.mu.Unlock()
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	cfg := Config{Models: Models{
		Providers: []Provider{
			{Name: "openai", Dialect: OpenAI, BaseURL: server.URL + "/base/v1", Key: realKey},
			{Name: "anthropic", Dialect: Anthropic, BaseURL: server.URL + "/base/", Key: realKey},
		},
		Reserve: func(context.Context, string, model.Usage) (func(Call) error, error) { return p.settle, nil },
	}}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	if p.g, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	p.addr = serve(t, p.g)
	return p
}

func (p *provider) settle(c Call) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls = append(p.calls, c)
	return nil
}

// seen returns what was settled, and what came to the provider with its bodies.
func (p *provider) seen() ([]Call, []*http.Request, []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Call(nil), p.calls...), append([]*http.Request(nil), p.asked...), append([]string(nil), p.sent...)
}

// post sends a body as a program does.
func (p *provider) post(path, body string) (status int, header http.Header, text string) {
	p.t.Helper()
	r, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, "http://"+p.addr+path, strings.NewReader(body))
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+placeholder)
	r.Header.Set("X-Api-Key", placeholder)
	r.Header.Set("Cookie", "a=b")
	r.Header.Set("X-Forwarded-For", "10.0.0.1")
	r.Header.Set("Anthropic-Version", "2023-06-01")
	answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}).Do(r)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	all, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer.StatusCode, answer.Header, string(all)
}

// recorded plays what a provider once answered.
func recorded(t *testing.T, file string) (http.HandlerFunc, string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "model", file))
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(text)
	}, string(text)
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, text)
	}
}

func TestRecordedStreams(t *testing.T) {
	for _, row := range []struct {
		file, path, body string
		upstream         string
		want             Call
	}{
		{
			"openai/testdata/openai_text.sse", "/openai/v1/chat/completions", `{"model":"gpt","stream":true,"messages":[]}`, "/base/v1/chat/completions",
			Call{Model: "openai/gpt", Usage: model.Usage{Input: 1187, Cached: 1024, Output: 9}},
		},
		{
			"openai/testdata/ollama_text.sse", "/openai/chat/completions", `{"model":"a/b:c","stream":true,"stream_options":null}`, "/base/v1/chat/completions",
			Call{Model: "openai/a/b:c", Usage: model.Usage{Input: 31, Output: 8}},
		},
		{
			"anthropic/testdata/text.sse", "/anthropic/v1/messages?beta=true", `{"model":"claude","stream":true}`, "/base/v1/messages?beta=true",
			Call{Model: "anthropic/claude", Usage: model.Usage{Input: 25 + 300 + 1800, Cached: 1800, Output: 15}},
		},
	} {
		handler, text := recorded(t, row.file)
		p := startProvider(t, handler)
		status, header, got := p.post(row.path, row.body)
		if status != http.StatusOK || got != text || header.Get("Content-Type") != "text/event-stream" {
			t.Errorf("%s: status %d, the same: %v", row.file, status, got == text)
		}
		calls, asked, sent := p.seen()
		row.want.Status = http.StatusOK
		if len(calls) != 1 || calls[0] != row.want {
			t.Errorf("%s: got %+v, want %+v", row.file, calls, row.want)
		}
		if len(asked) != 1 || asked[0].RequestURI != row.upstream {
			t.Fatalf("%s: asked was %+v", row.file, asked)
		}
		if wants := strings.Contains(sent[0], `"stream_options":{"include_usage":true}`); wants != strings.HasPrefix(row.path, "/openai") {
			t.Errorf("%s: sent was %s", row.file, sent[0])
		}
	}
}

func TestCountedAnswers(t *testing.T) {
	long := strings.Repeat("x", 300)
	for _, row := range []struct {
		name, path, answer string
		stream             bool
		want               model.Usage
		estimated          bool
	}{
		{"chat", "/openai/chat/completions", `{"usage":{"prompt_tokens":5,"completion_tokens":7,"prompt_tokens_details":{"cached_tokens":2}}}`, false, model.Usage{Input: 5, Cached: 2, Output: 7}, false},
		{"a total with thoughts", "/openai/chat/completions", `{"usage":{"prompt_tokens":5,"completion_tokens":7,"total_tokens":20}}`, false, model.Usage{Input: 5, Output: 15}, false},
		{"embeddings", "/openai/embeddings", `{"data":[{"embedding":[0.1]}],"usage":{"prompt_tokens":5,"total_tokens":5}}`, false, model.Usage{Input: 5}, false},
		{"responses", "/openai/responses", `{"object":"response","usage":{"input_tokens":9,"input_tokens_details":{"cached_tokens":4},"output_tokens":3}}`, false, model.Usage{Input: 9, Cached: 4, Output: 3}, false},
		{"a stream of responses", "/openai/responses", "event: response.created\r\ndata: {\"type\":\"response.created\",\"response\":{\"usage\":null}}\r\n\r\n" +
			"data: {\"type\":\"response.completed\",\"response\":{\"usage\":{\"input_tokens\":9,\"output_tokens\":3}}}\r\n\r\n", true, model.Usage{Input: 9, Output: 3}, false},
		{"messages", "/anthropic/v1/messages", `{"usage":{"input_tokens":1,"cache_read_input_tokens":2,"cache_creation_input_tokens":4,"output_tokens":8}}`, false, model.Usage{Input: 7, Cached: 2, Output: 8}, false},
		{"nothing counted", "/openai/chat/completions", `{"x":"` + long + `"}`, false, model.Usage{Input: 6, Output: 103}, true},
		{"a stream without counts", "/openai/chat/completions", "data: {\"choices\":[{\"delta\":{\"content\":\"" + long + "\"}}]}\n\ndata: [DONE]\n\n", true, model.Usage{Input: 6, Output: 100}, true},
		{"no JSON", "/openai/responses", "hello", false, model.Usage{Input: 6, Output: 2}, true},
		{"lies", "/openai/responses", `{"usage":{"input_tokens":-5,"output_tokens":-1}}`, false, model.Usage{}, false},
	} {
		t.Run(row.name, func(t *testing.T) {
			p := startProvider(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", map[bool]string{true: "text/event-stream; charset=utf-8", false: "application/json"}[row.stream])
				_, _ = io.WriteString(w, row.answer)
			})
			if status, _, got := p.post(row.path, `{"model":"gpt-long"}`); status != http.StatusOK || got != row.answer {
				t.Errorf("%d: %s", status, got)
			}
			calls, _, _ := p.seen()
			if len(calls) != 1 || calls[0].Usage != row.want && !row.estimated || calls[0].Estimated != row.estimated {
				t.Fatalf("got %+v, want %+v", calls, row.want)
			}
			if got := calls[0].Usage; row.estimated && (got.Input < row.want.Input || got.Output != row.want.Output) {
				t.Errorf("got %+v, want about %+v", got, row.want)
			}
		})
	}
}

func TestKeysOfRequests(t *testing.T) {
	p := startProvider(t, says(`{"usage":{"input_tokens":1,"output_tokens":1}}`))
	p.post("/openai/responses", `{"model":"a"}`)
	p.post("/anthropic/v1/messages", `{"model":"a"}`)
	_, asked, _ := p.seen()
	for i, want := range []struct{ bearer, key string }{{"Bearer " + realKey, ""}, {"", realKey}} {
		h := asked[i].Header
		if h.Get("Authorization") != want.bearer || h.Get("X-Api-Key") != want.key {
			t.Errorf("%d: %q, %q", i, h.Get("Authorization"), h.Get("X-Api-Key"))
		}
		if h.Get("Cookie")+h.Get("X-Forwarded-For") != "" || h.Get("Anthropic-Version") == "" || h.Get("Accept-Encoding") != "identity" {
			t.Errorf("%d: %v", i, h)
		}
		if all := fmt.Sprint(h); strings.Contains(all, placeholder) {
			t.Errorf("%d: %s", i, all)
		}
	}
}

// A provider that tells its client's key gives it to nobody, in whatever pieces
// it comes.
func TestEchoedKey(t *testing.T) {
	for cut := range len(realKey) {
		p := startProvider(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			w.Header().Set("X-Echo", "key "+realKey)
			w.Header().Set("Set-Cookie", "a="+realKey)
			for _, piece := range []string{"data: sk-" + realKey[:cut], realKey[cut:] + "\n\n"} {
				_, _ = io.WriteString(w, piece)
				_ = http.NewResponseController(w).Flush()
			}
		})
		_, header, got := p.post("/openai/responses", `{"model":"a"}`)
		if want := "data: sk-" + strings.Repeat("*", len(realKey)) + "\n\n"; got != want {
			t.Errorf("cut at %d: %q", cut, got)
		}
		if all := fmt.Sprint(header); strings.Contains(all, realKey) || header.Get("Set-Cookie") != "" || header.Get("X-Echo") == "" {
			t.Errorf("cut at %d: %s", cut, all)
		}
	}
	p := startProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "Incorrect API key provided: sk-re***cdef")
	})
	status, _, got := p.post("/openai/responses", `{"model":"a"}`)
	if status != http.StatusBadGateway || strings.Contains(got, "cdef") || !strings.Contains(got, "does not accept the key") {
		t.Errorf("%d: %s", status, got)
	}
	if calls, _, _ := p.seen(); len(calls) != 1 || calls[0] != (Call{Model: "openai/a", Status: http.StatusUnauthorized}) {
		t.Errorf("got %+v", calls)
	}
}

// shaped says whether a text is an error as clients of the dialect know it.
func shaped(path, text string) (why string, ok bool) {
	var e struct {
		Type  string `json:"type"`
		Error struct{ Message, Type string }
	}
	ok = json.Unmarshal([]byte(text), &e) == nil && e.Error.Message != "" && e.Error.Type != ""
	return e.Error.Message, ok && (e.Type == "error") == strings.HasPrefix(path, "/anthropic")
}

func TestRefusedRequests(t *testing.T) {
	p := startProvider(t, says(`{}`), func(c *Config) {
		c.Models.Permit = func(_ context.Context, name string) error {
			switch {
			case strings.Contains(name, "broken"):
				return errors.New("secret words of ours")
			case !strings.HasSuffix(name, "/ok"):
				return &Denied{Code: "model_not_allowed", Why: "model " + name + " is not allowed; allowed is ok"}
			}
			return nil
		}
	})
	const ok = `{"model":"ok"}`
	for _, row := range []struct {
		path, body string
		status     int
		says       string
	}{
		{"/openai/v1/chat/completions", `{"model":"other"}`, 403, "openai/other is not allowed; allowed is ok"},
		{"/anthropic/v1/messages", `{"model":"other"}`, 403, "anthropic/other is not allowed"},
		{"/anthropic/v1/messages/count_tokens", `{"model":"other"}`, 403, "not allowed"},
		{"/openai/v1/responses", `{"model":"broken"}`, 500, "internal error"},
		{"/openai/v1/responses", `{"model":"ok","model":"other"}`, 403, "openai/other"},
		{"/openai/v1/responses", `{"model":"ok","Model":"other"}`, 400, "only the field model"},
		{"/openai/v1/responses", `{"model":"ok","MODEL":"other"}`, 400, "only the field model"},
		{"/openai/v1/responses", `{"model":"ok","models":["other"]}`, 400, "only the field model"},
		{"/openai/v1/responses", `{"model":"ok","background":true}`, 400, "later"},
		{"/openai/v1/chat/completions", `{"model":"ok","stream":true,"stream_options":5}`, 400, "stream_options"},
		{"/openai/v1/responses", `{"model":5}`, 400, "names no model"},
		{"/openai/v1/responses", `{}`, 400, "names no model"},
		{"/openai/v1/responses", `{"model":""}`, 400, "names no model"},
		{"/openai/v1/responses", `{"model":"a\nb"}`, 400, "names no model"},
		{"/openai/v1/responses", `{"model":"` + strings.Repeat("a", 257) + `"}`, 400, "names no model"},
		{"/openai/v1/responses", `[]`, 400, "no JSON object"},
		{"/openai/v1/responses", `null`, 400, "no JSON object"},
		{"/openai/v1/responses", ok + ok, 400, "no JSON object"},
		{"/openai/v1/responses", "", 400, "no JSON object"},
		{"/openai/v1/files", ok, 404, "no endpoint"},
		{"/openai/../../x", ok, 404, "gateway"},
		{"/openai/v1/../../x", ok, 404, "gateway"},
		{"/openai/%2e%2e/responses", ok, 404, "gateway"},
		{"/openai/..%2fresponses", ok, 404, "gateway"},
		{"/openai/v1%2fresponses", ok, 404, "gateway"},
		{"/openai//responses", ok, 404, "gateway"},
		{"/openai/v1/v1/responses", ok, 404, "gateway"},
		{"/openai/responses/", ok, 404, "gateway"},
		{"/openai/models", ok, 404, "gateway"},
		{"/anthropic/messages", ok, 404, "gateway"},
		{"/%6fpenai/responses", ok, 404, "gateway"},
		{"/other/responses", ok, 404, "no provider"},
		{"/", ok, 404, "no provider"},
	} {
		status, header, got := p.post(row.path, row.body)
		why, ok := shaped(row.path, got)
		if status != row.status || !ok || !strings.Contains(why, row.says) {
			t.Errorf("%s %s: %d: %s", row.path, row.body, status, got)
		}
		if (header.Get("X-Should-Retry") == "false") != (status < 500) {
			t.Errorf("%s: %v", row.path, header)
		}
	}
	if calls, asked, _ := p.seen(); len(calls)+len(asked) != 0 {
		t.Errorf("upstream was asked: %+v, %+v", calls, asked)
	}
	// The control: what is allowed gets there.
	if status, _, got := p.post("/openai/v1/responses", ok); status != http.StatusOK {
		t.Errorf("%d: %s", status, got)
	}
}

// What is asked is the same but for what is added.
func TestBodyKeepsItsFields(t *testing.T) {
	p := startProvider(t, says(`{}`))
	p.post("/openai/chat/completions", "{\"messages\":[{\"content\":\"<é\\ud83d\\ude00 & \u2028>\"}],\"model\":\"m\",\"n\":12345678901234567890.10,\"stream\":true,\"stream_options\":{\"x\":1}}\n")
	_, _, sent := p.seen()
	const want = "{\"messages\":[{\"content\":\"<é\\ud83d\\ude00 & \u2028>\"}],\"model\":\"m\",\"n\":12345678901234567890.10,\"stream\":true,\"stream_options\":{\"include_usage\":true,\"x\":1}}"
	if sent[0] != want {
		t.Errorf("got  %s\nwant %s", sent[0], want)
	}
}

func TestListOfModels(t *testing.T) {
	p := startProvider(t, says(`{"data":[]}`), func(c *Config) {
		c.Models.Reserve = func(context.Context, string, model.Usage) (func(Call) error, error) {
			return nil, errors.New("a list costs nothing")
		}
	})
	for _, path := range []string{"/openai/v1/models", "/anthropic/v1/models?limit=5"} {
		got := exchange(t, p.addr, "GET "+path+" HTTP/1.1\r\nHost: x\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 200 ") || !strings.Contains(got, `{"data":[]}`) {
			t.Errorf("%s: %q", path, got)
		}
	}
}
