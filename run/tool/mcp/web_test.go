package mcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-faster/errors"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"agentrun/run/sandbox/sandboxtest"
)

// mcpHandler serves tools as the SDK does.
func mcpHandler(t *testing.T, mode string) http.Handler {
	t.Helper()
	return mcpHandlerFor(t.Context(), t, mode)
}

// mcpHandlerFor is mcpHandler with tools that go on for life at most.
func mcpHandlerFor(life context.Context, t *testing.T, mode string) http.Handler {
	t.Helper()
	s := newTestServer(life, mode)
	t.Cleanup(func() {
		for session := range s.Sessions() { // of clients that took no leave
			_ = session.Close()
		}
	})
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: mode == "modern"})
}

// webConfig is for a server elsewhere, which goes with the test.
func webConfig(t *testing.T, h http.Handler) (Config, *httptest.Server) {
	t.Helper()
	web := httptest.NewServer(h)
	t.Cleanup(web.Close)
	return Config{
		Servers: []Server{{Name: "web", URL: web.URL + "/mcp?key=hidden"}}, HTTP: web.Client(),
		Patience: 10 * time.Second, CallLimit: 10 * time.Second,
	}, web
}

func TestWebServer(t *testing.T) {
	for _, mode := range []string{"good", "modern"} {
		t.Run(mode, func(t *testing.T) {
			cfg, _ := webConfig(t, mcpHandler(t, mode))
			s := mustOpen(t, cfg)
			works(t, s, "web__echo", `{"text":"hello"}`, "hello")
			works(t, s, "web__structured", "", `{"degrees":21}`)
			fails(t, s, "web__fail", "{}", "no such city")
			fails(t, s, "web__refuse", "{}", "these arguments never")
			works(t, s, "web__ask", "", "sampling refused: true; elicitation refused: true; roots: false")
			var calls []*pending
			for range together {
				calls = append(calls, start(t.Context(), s, "web__meet", "{}"))
			}
			for _, c := range calls {
				if <-c.done; c.err != nil || c.result.Text != "met" {
					t.Errorf("%+v, %v", c.result, c.err)
				}
			}
		})
	}
}

func TestNoHostIsAllowed(t *testing.T) {
	cfg, _ := webConfig(t, mcpHandler(t, "good"))
	cfg.HTTP = nil
	onlyProblem(t, open(t, cfg), "web", errNoHosts.Error())
}

type refusing struct{}

func (refusing) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("host not allowed")
}

func TestHostIsNotAllowed(t *testing.T) {
	cfg, _ := webConfig(t, mcpHandler(t, "good"))
	cfg.HTTP = &http.Client{Transport: refusing{}}
	s := open(t, cfg)
	onlyProblem(t, s, "web", "host not allowed")
	if strings.Contains(s.Problems()[0].Reason, "hidden") {
		t.Errorf("the URL's key is told: %q", s.Problems()[0].Reason)
	}
}

func TestWebServersThatFailAtTheirStart(t *testing.T) {
	for _, row := range []struct {
		name, says string
		handler    http.HandlerFunc
	}{
		{"an error", "Forbidden", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }},
		{"a page", `unsupported content type "text/html"`, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "<h1>Welcome</h1>")
		}},
		{"garbage", "failed to decode", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "hello")
		}},
		{"a giant answer", errTooLong.Error(), func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(make([]byte, maxMessage+1))
		}},
		{"a cut", "EOF", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }},
	} {
		t.Run(row.name, func(t *testing.T) {
			cfg, _ := webConfig(t, row.handler)
			onlyProblem(t, open(t, cfg), "web", row.says)
		})
	}
}

func TestWebServerThatHangsAtItsStart(t *testing.T) {
	for _, row := range []struct{ name, answers string }{
		{name: "from the first question on", answers: "nothing"},
		{name: "with a session, and at the farewell too", answers: `"method":"initialize"`}, //nolint:misspell // the protocol's word
	} {
		t.Run(row.name, func(t *testing.T) {
			tools := mcpHandler(t, "good")
			asked := make(chan struct{}, 8)
			cfg, web := webConfig(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				question, _ := io.ReadAll(r.Body)
				if strings.Contains(string(question), row.answers) {
					r.Body = io.NopCloser(bytes.NewReader(question))
					tools.ServeHTTP(w, r)
					return
				}
				asked <- struct{}{}
				<-r.Context().Done()
			}))
			cfg.Patience = 300 * time.Millisecond
			begun := time.Now()
			s := Open(t.Context(), cfg)
			onlyProblem(t, s, "web", "no answer within 300ms")
			s.Close()
			if took := time.Since(begun); took < cfg.Patience || took > cfg.Patience+time.Second {
				t.Errorf("it took %v", took)
			}
			if len(asked) == 0 {
				t.Error("it was not asked")
			}
			web.Close() // waits for the questions' end
		})
	}
}

// A server of which nothing is there any more fails its calls, and is used again
// once it is back, whether it knows the session or not.
func TestWebServerThatGoesAway(t *testing.T) {
	var serving atomic.Pointer[http.Handler]
	set := func(h http.Handler) { serving.Store(&h) }
	set(mcpHandler(t, "good"))
	cfg, web := webConfig(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*serving.Load()).ServeHTTP(w, r) }))
	s := mustOpen(t, cfg)
	works(t, s, "web__echo", `{"text":"here"}`, "here")

	set(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))
	for range maxRestarts + 2 {
		fails(t, s, "web__echo", `{"text":"away"}`, "Service Unavailable")
	}
	set(mcpHandler(t, "good")) // It has forgotten the session.
	fails(t, s, "web__echo", `{"text":"who are you?"}`, "session not found")
	works(t, s, "web__echo", `{"text":"back"}`, "back")
	if n := s.servers[0].restarts; n != 1 {
		t.Errorf("%d new connections, want 1", n)
	}

	meet := sandboxtest.NewPipe(t)
	c := start(t.Context(), s, "web__hang", pipeArgument(meet.Path))
	if meet.Line() != "begun" {
		t.Fatal("the tool was not called")
	}
	web.CloseClientConnections()
	if <-c.done; !c.result.Failed || c.err != nil {
		t.Errorf("a call that was cut: %+v, %v", c.result, c.err)
	}
	works(t, s, "web__echo", `{"text":"still here"}`, "still here")
}

func TestWebCallIsStopped(t *testing.T) {
	life, end := context.WithCancel(t.Context())
	defer end()
	cfg, web := webConfig(t, mcpHandlerFor(life, t, "good"))
	before := goleak.IgnoreCurrent()
	s := mustOpen(t, cfg)
	ctx, cancel := context.WithCancel(t.Context())
	meet := sandboxtest.NewPipe(t)
	c := start(ctx, s, "web__hang", pipeArgument(meet.Path))
	if meet.Line() != "begun" {
		t.Fatal("the tool was not called")
	}
	stopped := time.Now()
	cancel()
	if <-c.done; !errors.Is(c.err, context.Canceled) || time.Since(stopped) > time.Second {
		t.Errorf("after %v: %+v, %v", time.Since(stopped), c.result, c.err)
	}
	if meet.Line() != "cancelled" {
		t.Error("the tool was not told")
	}
	closedDuring(t, s, meet)
	end() // The SDK's server would wait for the tool for ever.
	web.Close()
	cfg.HTTP.CloseIdleConnections()
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

// closedDuring closes the servers during a call.
func closedDuring(t *testing.T, s *Servers, meet *sandboxtest.Pipe) {
	t.Helper()
	c := start(t.Context(), s, "web__hang", pipeArgument(meet.Path))
	if meet.Line() != "begun" {
		t.Fatal("the tool was not called")
	}
	begun := time.Now()
	s.Close()
	if <-c.done; c.err != nil || !c.result.Failed || !strings.Contains(c.result.Text, fmt.Sprint(errClosed)) {
		t.Errorf("%+v, %v", c.result, c.err)
	}
	if took := time.Since(begun); took > 2*time.Second {
		t.Errorf("Close took %v", took)
	}
}
