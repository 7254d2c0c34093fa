package tool

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-faster/errors"

	"agentrun/run/gateway"
	"agentrun/run/model"
	"agentrun/run/sandbox"
)

// replying is a Place.Command that always returns the same.
func replying(cmd sandbox.Command) func([]string) sandbox.Command {
	return func([]string) sandbox.Command { return cmd }
}

// allow lets a bench fetch from the loopback, as an agent file does.
func (b *bench) allow(hosts ...string) {
	b.t.Helper()
	g, err := gateway.New(gateway.Config{Allow: hosts})
	b.must(err)
	b.t.Cleanup(g.Close)
	b.Fetch = g.Client()
}

func site(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/hello", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if len(r.Cookies())+len(r.Header["Authorization"]) > 0 {
			t.Errorf("got %v", r.Header)
		}
		http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
		_, _ = io.WriteString(w, "<p>"+r.Method+" hello</p>")
	})
	mux.HandleFunc("/binary", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "PNG\x00\x01") })
	mux.HandleFunc("/long", func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "begin"+strings.Repeat("x", maxBody-9)+"last"+strings.Repeat("y", maxBody))
	})
	mux.HandleFunc("/broken", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, "half")
	})
	mux.HandleFunc("/error", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "oops", http.StatusTeapot) })
	mux.HandleFunc("/to", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("url"), http.StatusFound)
	})
	mux.Handle("/around", http.RedirectHandler("/around", http.StatusFound))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server.URL
}

func TestFetch(t *testing.T) {
	b := newBench(t)
	url := site(t)
	b.allow("127.0.0.1")
	for _, row := range []struct {
		name   string
		args   args
		want   string
		failed bool
	}{
		{name: "GET", args: args{"url": url + "/hello"}, want: "HTTP status: 200 OK\nURL: " + url + "/hello\nContent type: text/html; charset=utf-8\n\n<p>GET hello</p>"},
		{name: "HEAD", args: args{"url": url + "/hello", "method": "HEAD"}, want: "HTTP status: 200 OK\nURL: " + url + "/hello\nContent type: text/html; charset=utf-8\nContent length: 17\n"},
		{name: "redirect", args: args{"url": url + "/to?url=/hello"}, want: "HTTP status: 200 OK\nURL: " + url + "/hello\nContent type: text/html; charset=utf-8\n\n<p>GET hello</p>"},
		{name: "not found", args: args{"url": url + "/no"}, want: "HTTP status: 404 Not Found\nURL: " + url + "/no\nContent type: text/plain; charset=utf-8\n\n404 page not found\n", failed: true},
		{name: "error", args: args{"url": url + "/error"}, want: "HTTP status: 418 I'm a teapot\nURL: " + url + "/error\nContent type: text/plain; charset=utf-8\n\noops\n", failed: true},
		{name: "binary", args: args{"url": url + "/binary"}, want: "HTTP status: 200 OK\nURL: " + url + "/binary\nContent type: application/octet-stream\nThe body is binary and not shown.\n"},
		{name: "broken", args: args{"url": url + "/broken"}, want: "HTTP status: 200 OK\nURL: " + url + "/broken\nContent type: text/plain; charset=utf-8\nThe body broke off after 4 bytes.\n\nhalf", failed: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := b.call("fetch", row.args.String()); got.Text != row.want || got.Failed != row.failed {
				t.Errorf("got %+v, want %q", got, row.want)
			}
		})
	}
	b.done("fetch", args{"url": url + "/long"}, "The body is longer than 2097152 bytes; these are the first ones.\n\nbegin", "xlast", "the first and the last 524288 bytes are in .agentrun/")
}

func TestFetchRefused(t *testing.T) {
	b := newBench(t)
	url := site(t)
	b.failed("fetch", args{"url": url + "/hello"}, "the agent file allows no host")
	b.allow("127.0.0.1")
	for address, why := range map[string]string{
		"":                                  "url has to be an address",
		"hello":                             "url has to be an address",
		"//127.0.0.1/":                      "url has to be an address",
		"http://":                           "url has to be an address",
		"http:///x":                         "url has to be an address",
		"http://a b/":                       "url has to be an address",
		"file:///etc/passwd":                "url has to be an address",
		"ftp://127.0.0.1/":                  "url has to be an address",
		"unix:///run/x":                     "url has to be an address",
		"http://x:y@127.0.0.1/":             "url may not hold a user name",
		"http://localhost/":                 "does not allow localhost",
		"http://example.org/":               "does not allow example.org",
		"http://169.254.169.254/":           "does not allow 169.254.169.254",
		"http://[::1]/":                     "does not allow ::1",
		"http://127.1/":                     "neither a host name",
		"http://127.0.0.1:1/":               "127.0.0.1 cannot be reached: connection refused",
		"https" + url[4:] + "/hello":        "no usable answer",
		url + "/to?url=http://example.org/": "does not allow example.org",
		url + "/to?url=http://[::1]/":       "does not allow ::1",
		url + "/to?url=file:///etc/passwd":  "only http and https",
		url + "/to?url=" + url + "/to?url=gopher://x/y": "only http and https",
	} {
		text := b.failed("fetch", args{"url": address}, why)
		if strings.Contains(text, "root:") {
			t.Errorf("%s: %q", address, text)
		}
	}
	b.failed("fetch", args{"url": url + "/around"}, "There was no answer: stopped after 10 redirects")
	for _, method := range []string{"POST", "get", "CONNECT", "GET /"} {
		b.failed("fetch", args{"url": url, "method": method}, "method has to be GET or HEAD")
	}
}

func TestFetchEndsWithTheTurn(t *testing.T) {
	b := newBench(t)
	asked := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		close(asked)
		<-r.Context().Done()
	}))
	t.Cleanup(server.Close)
	b.allow("127.0.0.1")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-asked
		cancel()
	}()
	_, err := b.open().Call(ctx, model.ToolCall{ID: "x", Name: "fetch", Arguments: fmt.Sprintf(`{"url":%q}`, server.URL)})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestFetchTakesTooLong(t *testing.T) {
	b := newBench(t)
	b.Fetch = &http.Client{Transport: silent{}}
	b.failed("fetch", args{"url": "http://a.test/"}, "There was no answer within 1m0s.")
}

// silent is a network in which no answer comes in time.
type silent struct{}

func (silent) RoundTrip(*http.Request) (*http.Response, error) { return nil, context.DeadlineExceeded }
