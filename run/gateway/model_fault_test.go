package gateway

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentrun/run/model"
)

// A limit is told once and for all: clients do not come again with the same.
func TestLimitOfModels(t *testing.T) {
	p := startProvider(t, says(`{}`), func(c *Config) {
		c.Models.Reserve = func(_ context.Context, name string, most model.Usage) (func(Call) error, error) {
			if name != "openai/m" && name != "anthropic/m" || most.Input < 4 || most.Output != 2*70 {
				t.Errorf("%s with %+v", name, most)
			}
			return nil, &Denied{Code: "limit_reached", Why: "the limit of 3 was reached (limits.steps)"}
		}
	})
	for _, path := range []string{"/openai/v1/embeddings", "/anthropic/v1/messages"} {
		status, header, got := p.post(path, `{"model":"m","max_tokens":50,"max_completion_tokens":70,"n":2,"max_output_tokens":"x"}`)
		why, ok := shaped(path, got)
		if status != http.StatusForbidden || !ok || !strings.Contains(why, "(limits.steps)") || header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: %d: %s", path, status, got)
		}
	}
	if _, asked, _ := p.seen(); len(asked) != 0 || len(p.g.ways) != 0 {
		t.Errorf("asked %d times, %d ways are left", len(asked), len(p.g.ways))
	}
}

func TestBodiesOfModels(t *testing.T) {
	p := startProvider(t, says(`{}`))
	long := func(size int) string {
		const frame = `{"model":"m","x":""}`
		return `{"model":"m","x":"` + strings.Repeat("y", size-len(frame)) + `"}`
	}
	if status, _, got := p.post("/openai/responses", long(MaxBody)); status != http.StatusOK {
		t.Errorf("%d: %s", status, got)
	}
	if status, _, got := p.post("/openai/responses", long(MaxBody+1)); status != http.StatusRequestEntityTooLarge {
		t.Errorf("%d: %s", status, got)
	}
	p.g.bodyLimit = time.Millisecond
	c := connect(t, p.addr)
	c.send("POST /openai/responses HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
	if got := c.rest(); !strings.HasPrefix(got, "HTTP/1.1 408 ") || !strings.Contains(got, "not in time") {
		t.Errorf("got %q", got)
	}
	if len(p.g.large) != 0 {
		t.Errorf("%d large requests are left", len(p.g.large))
	}
}

func TestProviderThatIsDown(t *testing.T) {
	addr, accept := listen(t)
	p := startProvider(t, says(`{}`), func(c *Config) {
		c.Models.Providers = []Provider{
			{Name: "openai", Dialect: OpenAI, BaseURL: "http://127.0.0.1:1", Key: realKey},
			{Name: "anthropic", Dialect: Anthropic, BaseURL: "http://" + addr, Key: realKey},
		}
	})
	go func() {
		c := accept()
		_, _ = c.lines.ReadString('\n') // It was asked.
		_ = c.Close()
	}()
	for _, path := range []string{"/openai/responses", "/anthropic/v1/messages"} {
		status, _, got := p.post(path, `{"model":"m"}`)
		if why, ok := shaped(path, got); status != http.StatusBadGateway || !ok || strings.Contains(why, "127.0.0.1") {
			t.Errorf("%s: %d: %s", path, status, got)
		}
	}
	calls, _, _ := p.seen()
	// Nothing is spent on one that cannot be reached; the other one may have worked.
	if len(calls) != 2 || calls[0] != (Call{Model: "openai/m"}) || !calls[1].Estimated || calls[1].Usage.Input == 0 {
		t.Errorf("got %+v", calls)
	}
}

func TestRedirectOfAProvider(t *testing.T) {
	_, hits := site(t, "elsewhere")
	p := startProvider(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://"+r.Host+"/else", http.StatusTemporaryRedirect)
	})
	status, _, got := p.post("/openai/responses", `{"model":"m"}`)
	if _, asked, _ := p.seen(); status != http.StatusBadGateway || len(asked) != 1 || hits() != 0 {
		t.Errorf("%d: %s after %d requests", status, got, len(asked))
	}
}

func TestErrorsOfAProviderPass(t *testing.T) {
	p := startProvider(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Retry-After", "3")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = io.WriteString(w, `{"error":{"message":"slow"}}`)
	})
	status, header, got := p.post("/openai/responses", `{"model":"m"}`)
	if status != http.StatusTooManyRequests || header.Get("Retry-After") != "3" || got != `{"error":{"message":"slow"}}` {
		t.Errorf("%d: %s", status, got)
	}
	if calls, _, _ := p.seen(); len(calls) != 1 || calls[0] != (Call{Model: "openai/m", Status: 429}) {
		t.Errorf("got %+v", calls)
	}
}
