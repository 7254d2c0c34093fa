package run

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"agentrun/run/model"
	"agentrun/run/sandbox"
	"agentrun/storage"
)

// gatewayKey is what no program may see.
const gatewayKey = "sk-real-0123456789abcdef"

// upstream is a provider's server in both dialects.
type upstream struct {
	*httptest.Server
	mu   sync.Mutex
	keys []string
	sent []string
}

func newUpstream(t *testing.T) *upstream {
	t.Helper()
	u := &upstream{}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		u.mu.Lock()
		u.keys = append(u.keys, r.Header.Get("Authorization")+r.Header.Get("X-Api-Key"))
		u.sent = append(u.sent, r.URL.Path+" "+string(body))
		u.mu.Unlock()
		if strings.HasPrefix(r.URL.Path, "/v1/messages") {
			_, _ = io.WriteString(w, `{"content":[{"type":"text","text":"from claude"}],"usage":{"input_tokens":10,"output_tokens":5}}`)
			return
		}
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"from gpt"}}],"usage":{"prompt_tokens":100,"completion_tokens":20}}`)
	}))
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) seen() (keys, sent []string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return append(keys, u.keys...), append(sent, u.sent...)
}

func (u *upstream) providers() map[string]Provider {
	return map[string]Provider{
		"openai": {
			Upstream: &Upstream{Dialect: "openai", BaseURL: u.URL + "/api", Key: gatewayKey},
			Prices:   []ModelPrice{{Models: "*", Price: model.Price{Input: 1, Output: 10}}},
		},
		"anthropic": {Upstream: &Upstream{Dialect: "anthropic", BaseURL: u.URL, Key: gatewayKey}},
		"script":    {},
	}
}

const (
	askOpenAI = `/usr/bin/curl -s -w '\n' "$OPENAI_BASE_URL/chat/completions" -H "Authorization: Bearer $OPENAI_API_KEY" -H 'Content-Type: application/json' -d '{"model":"gpt"}'`
	askClaude = `/usr/bin/curl -s -w '\n' "$ANTHROPIC_BASE_URL/v1/messages" -H "x-api-key: $ANTHROPIC_API_KEY" -d '{"model":"claude","max_tokens":9}'`
)

func (h *house) called(id storage.RunID) []storage.ModelCalled {
	h.t.Helper()
	var all []storage.ModelCalled
	for _, data := range h.data(id, storage.EventModelCalled) {
		var c storage.ModelCalled
		if err := json.Unmarshal([]byte(data), &c); err != nil {
			h.t.Fatal(err)
		}
		c.Seconds = 0
		all = append(all, c)
	}
	return all
}

func TestProgramThatUsesModels(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	h := newHouse(t)
	id := h.run(h.agent("one", askOpenAI+"\n"+askClaude+"\nenv\ncat /proc/*/environ /proc/*/cmdline | tr '\\0' '\\n'\n"+
		`echo "$OPENAI_API_BASE $AGENTRUN_GATEWAY [$HTTP_PROXY]"`, "gateway: [openai, anthropic]"), "x")
	h.start(&Server{workers: 1, sandbox: full(t), providers: u.providers()})
	h.await(id, storage.StateFinished)
	got := strings.Join(h.transcript(id), "\n")
	for _, want := range []string{
		"from gpt", "from claude", "OPENAI_API_KEY=" + placeholder, "ANTHROPIC_API_KEY=" + placeholder,
		"http://127.0.0.1:3128/openai/v1 http://127.0.0.1:3128 []",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in %q", want, got)
		}
	}
	if strings.Contains(got, gatewayKey) {
		t.Errorf("the key is in %q", got)
	}
	keys, sent := u.seen()
	if fmt.Sprint(keys) != "[Bearer "+gatewayKey+" "+gatewayKey+"]" || !strings.HasPrefix(sent[0], "/api/chat/completions ") {
		t.Errorf("got %q, %q", keys, sent)
	}
	want := []storage.ModelCalled{
		{Model: "openai/gpt", Spent: storage.Spent{Calls: 1, Input: 100, Output: 20, Cost: 300}, Status: 200},
		{Model: "anthropic/claude", Spent: storage.Spent{Calls: 1, Input: 10, Output: 5}, Status: 200},
	}
	if got := h.called(id); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v", got)
	}
	if got := h.mustRun(id).Spent; got != (storage.Spent{Calls: 2, Input: 110, Output: 25, Cost: 300}) {
		t.Errorf("got %+v", got)
	}
	for _, e := range h.events(id) {
		if strings.Contains(string(e.Data), gatewayKey) {
			t.Errorf("the key is in %s", e.Data)
		}
	}
}

func TestModelsThatAreNotAllowed(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	h := newHouse(t)
	if _, err := h.store.SetModels(t.Context(), storage.DefaultOrg, []string{"anthropic/*"}); err != nil {
		t.Fatal(err)
	}
	id := h.run(h.agent("one", askOpenAI+"\n"+askClaude, "gateway: [openai, anthropic]"), "x")
	h.start(&Server{workers: 1, sandbox: full(t), providers: u.providers()})
	h.await(id, storage.StateFinished)
	got := strings.Join(h.transcript(id), "\n")
	if !strings.Contains(got, "model 'openai/gpt' is not on the organization's model allowlist, which allows: anthropic/*") ||
		!strings.Contains(got, "from claude") {
		t.Errorf("got %q", got)
	}
	if _, sent := u.seen(); len(sent) != 1 {
		t.Errorf("sent: %q", sent)
	}
}

func TestLimitsOfPrograms(t *testing.T) {
	t.Parallel()
	// All at once, so that only what is reserved can keep them apart.
	tenTimes := "for i in 1 2 3 4 5 6 7 8 9 10; do " + askOpenAI + " & done; wait"
	for _, row := range []struct {
		name, limits, says string
		most               int
	}{
		{"steps", "{steps: 3}", "the limit of 3 answers of models in a turn was reached (limits.steps)", 3},
		// 120 tokens and 300 millionths of a dollar a call.
		{"tokens", "{tokens: 300}", "(limits.tokens)", 10},
		{"cost", "{cost: 0.0007}", "the limit of $0.0007 was reached", 10},
		// All at once again, each with what its answer can have.
		{"tokens of answers under way", "{tokens: 350}", "the request and its answer can have", 2},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			u := newUpstream(t)
			h := newHouse(t)
			script := tenTimes
			switch row.name {
			case "tokens of answers under way":
				script = strings.ReplaceAll(script, `"model":"gpt"`, `"model":"gpt","max_tokens":110`)
			case "steps":
			default:
				script = "for i in 1 2 3 4 5 6; do " + askOpenAI + "; done"
				row.most = 3
			}
			id := h.run(h.agent("one", script, "gateway: [openai]\nlimits: "+row.limits), "x")
			h.start(&Server{workers: 1, sandbox: full(t), providers: u.providers()})
			h.await(id, storage.StateFinished)
			if _, sent := u.seen(); len(sent) != row.most || len(h.called(id)) != row.most {
				t.Errorf("%d requests, %d are told of", len(sent), len(h.called(id)))
			}
			if got := strings.Join(h.transcript(id), "\n"); !strings.Contains(got, row.says) {
				t.Errorf("got %q", got)
			}
		})
	}
}

// A turn that is run again goes on with what it has spent.
func TestLimitsOfATurnThatIsRunAgain(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	h := newHouse(t)
	id := h.run(h.agent("one", "if ! [ -e again ]; then : > again; "+askOpenAI+"; "+askOpenAI+"; : > sent; exec sleep 600; fi; "+askOpenAI+"; "+askOpenAI,
		"gateway: [openai]\nrestart: true\nlimits: {steps: 3}"), "x")
	first := h.start(&Server{workers: 1, sandbox: full(t), providers: u.providers()})
	watch := h.store.Watch(id)
	defer watch.Close()
	for len(h.called(id)) < 2 {
		<-watch.C
	}
	first.stop()
	h.start(&Server{workers: 1, sandbox: full(t), providers: u.providers()})
	h.await(id, storage.StateFinished)
	if _, sent := u.seen(); len(sent) != 3 {
		t.Errorf("sent: %q", sent)
	}
}

func TestGatewaysThatCannotBe(t *testing.T) {
	t.Parallel()
	u := newUpstream(t)
	for _, row := range []struct {
		provider, says string
		sandbox        sandbox.Runner
	}{
		{"other", "'other' (gateway), and no such provider is configured", full(t)},
		{"script", "'script' (gateway), which is a script", full(t)},
		{"openai", "only the sandbox level full", sandbox.Plain{}},
	} {
		h := newHouse(t)
		id := h.run(h.agent("one", "echo ran", "gateway: ["+row.provider+"]"), "x")
		h.start(&Server{workers: 1, sandbox: row.sandbox, providers: u.providers()})
		if run := h.await(id, storage.StateTechnicalError); !strings.Contains(run.Reason, row.says) {
			t.Errorf("got %+v", run)
		}
	}
}
