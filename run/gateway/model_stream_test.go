package gateway

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/go-faster/errors"

	"agentrun/run/model"
)

const streamed = "POST /openai/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 27\r\n\r\n{\"model\":\"m\",\"stream\":true}"

// A piece of an answer arrives while the next one is not there yet, and what
// was used is settled before the client can know that it has all.
func TestStreamIsPassedAtOnce(t *testing.T) {
	more, settled := make(chan struct{}), make(chan struct{})
	p := startProvider(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[]}\n\n")
		_ = http.NewResponseController(w).Flush()
		select {
		case <-more:
		case <-r.Context().Done():
		}
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	}, func(c *Config) {
		c.Models.Reserve = func(context.Context, string, model.Usage) (func(Call) error, error) {
			return func(Call) error { close(settled); return nil }, nil
		}
	})
	c := connect(t, p.addr)
	c.send(streamed)
	for line := ""; line != "data: {\"choices\":[]}\n"; {
		var err error
		if line, err = c.lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	close(more)
	for line := ""; line != "data: [DONE]\n"; {
		var err error
		if line, err = c.lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case <-settled:
	default:
		t.Error("the client has the end, and it is not settled")
	}
}

// hanging is a provider that never ends its answer, and tells when its client
// has left.
func hanging(left chan<- struct{}) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, "data: {\"choices\":[{\"delta\":{\"content\":\"123456789\"}}]}\n\n")
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		left <- struct{}{}
	}
}

func TestClientThatLeavesEndsTheRequest(t *testing.T) {
	left, settled := make(chan struct{}, 1), make(chan Call, 1)
	p := startProvider(t, hanging(left), func(c *Config) {
		c.Models.Reserve = func(context.Context, string, model.Usage) (func(Call) error, error) {
			return func(c Call) error { settled <- c; return nil }, nil
		}
	})
	c := connect(t, p.addr)
	c.send(streamed)
	c.expect("HTTP/1.1 200 OK\r\n")
	_ = c.Close()
	await(t, left, "the end of the request")
	if call := await(t, settled, "the count"); !call.Estimated || call.Usage.Input == 0 || call.Usage.Output != 3 {
		t.Errorf("got %+v", call)
	}
}

func TestCloseEndsRequestsToModels(t *testing.T) {
	left := make(chan struct{}, 1)
	p := startProvider(t, hanging(left))
	c := connect(t, p.addr)
	c.send(streamed)
	c.expect("HTTP/1.1 200 OK\r\n")
	p.g.Close()
	if calls, _, _ := p.seen(); len(calls) != 1 {
		t.Errorf("the gateway is closed, and settled is %+v", calls)
	}
	await(t, left, "the end of the request")
	if got := c.rest(); strings.HasSuffix(got, "0\r\n\r\n") {
		t.Errorf("half an answer looks whole: %q", got)
	}
}

// An answer that broke is not made to look whole, and neither is one that could
// not be recorded.
func TestBrokenAnswers(t *testing.T) {
	broken := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "some")
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	}
	p := startProvider(t, broken)
	if got := exchange(t, p.addr, streamed); !strings.Contains(got, "some") || strings.HasSuffix(got, "0\r\n\r\n") {
		t.Errorf("got %q", got)
	}
	handler, _ := recorded(t, "openai/testdata/openai_text.sse")
	p = startProvider(t, handler, func(c *Config) {
		c.Models.Reserve = func(context.Context, string, model.Usage) (func(Call) error, error) {
			return func(Call) error { return errors.New("no space") }, nil
		}
	})
	if got := exchange(t, p.addr, streamed); strings.Contains(got, "[DONE]") || strings.HasSuffix(got, "0\r\n\r\n") {
		t.Errorf("got %q", got)
	}
}

func TestProvidersThatCannotBe(t *testing.T) {
	for _, list := range [][]Provider{
		{{Name: "a", Dialect: "script", BaseURL: "http://x"}},
		{{Name: "a", Dialect: OpenAI, BaseURL: "x"}},
		{{Name: "a", Dialect: OpenAI, BaseURL: "http://me:" + realKey + "@x"}},
		{{Name: "a", Dialect: OpenAI, BaseURL: "http://x?k=" + realKey}},
		{{Name: "a", Dialect: OpenAI, BaseURL: "http://\x00" + realKey}},
		{{Name: "", Dialect: OpenAI, BaseURL: "http://x"}},
		{{Name: "a/b", Dialect: OpenAI, BaseURL: "http://x"}},
		{{Name: "a", Dialect: OpenAI, BaseURL: "http://x"}, {Name: "a", Dialect: Anthropic, BaseURL: "http://x"}},
	} {
		_, err := New(Config{Models: Models{Providers: list}})
		if !errors.Is(err, ErrProvider) || strings.Contains(err.Error(), realKey) {
			t.Errorf("%+v: %v", list, err)
		}
	}
}

func await[T any](t *testing.T, c <-chan T, what string) T {
	t.Helper()
	select {
	case v := <-c:
		return v
	case <-time.After(patience):
		t.Fatalf("waited for %s in vain", what)
		panic("unreachable")
	}
}
