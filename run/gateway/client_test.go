package gateway

import (
	"context"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"
)

// asking is a client of a gateway, with what the gateway observed.
type asking struct {
	*http.Client
	t        *testing.T
	g        *Gateway
	attempts []Attempt // of one request after the other
}

func newAsking(t *testing.T, outside *world, allow ...string) *asking {
	t.Helper()
	a := &asking{t: t}
	g, err := New(Config{Allow: allow, Observe: func(at Attempt) { a.attempts = append(a.attempts, at) }})
	if err != nil {
		t.Fatal(err)
	}
	if outside != nil {
		g.lookup, g.dial = outside.lookup, outside.dial
	}
	a.g, a.Client = g, g.Client()
	t.Cleanup(func() {
		g.Close()
		holdsNothing(t, g)
	})
	return a
}

// ask returns the body of an answer, or the error.
func (a *asking) ask(address string) (string, error) {
	answer, err := a.Get(address)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	return string(body), err
}

// refused asks for what must be refused, with a reason.
func (a *asking) refused(address, why string) {
	a.t.Helper()
	body, err := a.ask(address)
	if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), why) {
		a.t.Errorf("%s: %q, %v, want %s", address, body, err, why)
	}
}

func TestClient(t *testing.T) {
	addr, hits := site(t, "hello")
	secret, _ := site(t, "secret")
	outside := newWorld(addr)
	outside.at[secretAddr] = secret
	private := netip.MustParseAddr("10.0.0.1")
	outside.at[private], outside.at[loopback[0]] = secret, secret
	outside.names["inside.site.test"] = []netip.Addr{private, loopback[0], netip.MustParseAddr("169.254.169.254"), netip.MustParseAddr("::ffff:10.0.0.1")}
	outside.names["elsewhere.test"] = []netip.Addr{secretAddr}
	a := newAsking(t, outside, "site.test", "*.site.test")
	for _, address := range []string{"http://site.test", "http://WWW.site.test:80/x"} {
		if body, err := a.ask(address); err != nil || body != "hello" {
			t.Errorf("%s: %q, %v", address, body, err)
		}
	}
	for address, why := range map[string]string{
		"http://elsewhere.test/":         "does not allow elsewhere.test",
		"https://elsewhere.test/":        "does not allow elsewhere.test",
		"http://site.test.evil.test/":    "does not allow",
		"http://inside.site.test/":       "private or reserved address",
		"http://no.site.test/":           "no such name",
		"http://site.test:8080/":         "ports 80 and 443 only",
		"http://127.0.0.1/":              "does not allow 127.0.0.1",
		"http://localhost/":              "does not allow localhost",
		"http://[::1]/":                  "does not allow ::1",
		"http://93.184.215.14/":          "does not allow 93.184.215.14",
		"http://127.1/":                  "neither a host name",
		"http://2130706433/":             "neither a host name",
		"http://0x7f.1/":                 "neither a host name",
		"ftp://site.test/":               "only http and https",
		"file:///etc/passwd":             "only http and https",
		"https://site.test/":             "no usable answer", // It speaks no TLS.
		"http://user:secret@other.test/": "does not allow other.test",
	} {
		a.refused(address, why)
	}
	if got := hits(); got != 2 {
		t.Errorf("the site was asked %d times", got)
	}
	_, dialled := outside.seen()
	for _, to := range dialled {
		if to.Addr() != siteAddr {
			t.Errorf("dialled %v", to)
		}
	}
}

func TestClientIsObserved(t *testing.T) {
	addr, _ := site(t, "hello")
	a := newAsking(t, newWorld(addr), "site.test")
	if _, err := a.ask("http://site.test/"); err != nil {
		t.Fatal(err)
	}
	a.refused("http://elsewhere.test/", "does not allow")
	want := []Attempt{
		{Host: "site.test", Port: 80, Allowed: true},
		{Host: "elsewhere.test", Port: 80, Why: "the agent file does not allow elsewhere.test (network: allow)"},
	}
	if diff := cmp.Diff(want, a.attempts); diff != "" {
		t.Error(diff)
	}
}

// A redirect leads nowhere else than a first request does.
func TestClientRedirected(t *testing.T) {
	secret, hits := site(t, "secret")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if to := r.URL.Query().Get("to"); to != "" {
			http.Redirect(w, r, to, http.StatusFound)
			return
		}
		_, _ = io.WriteString(w, "hello")
	}))
	t.Cleanup(server.Close)
	outside := newWorld(server.Listener.Addr().String())
	outside.at[secretAddr], outside.at[loopback[0]] = secret, secret
	outside.names["elsewhere.test"] = []netip.Addr{secretAddr}
	outside.names["inside.site.test"] = []netip.Addr{loopback[0]}
	a := newAsking(t, outside, "site.test", "*.site.test")
	redirect := func(to string) string { return "http://site.test/?to=" + url.QueryEscape(to) }
	if body, err := a.ask(redirect("http://www.site.test/")); err != nil || body != "hello" {
		t.Errorf("%q, %v", body, err)
	}
	a.refused(redirect("http://elsewhere.test/"), "does not allow elsewhere.test")
	a.refused(redirect("http://inside.site.test/"), "private or reserved")
	a.refused(redirect("http://127.0.0.1/"), "does not allow 127.0.0.1")
	a.refused(redirect(redirect("http://elsewhere.test/")), "does not allow elsewhere.test")
	a.refused(redirect("gopher://site.test/"), "only http and https")
	if hits() != 0 {
		t.Error("a redirect led out")
	}
}

// A name that leads elsewhere from one moment to the next is judged by the
// address that is dialled.
func TestClientAndAChangingName(t *testing.T) {
	addr, _ := site(t, "hello")
	outside := newWorld(addr)
	a := newAsking(t, outside, "site.test")
	asked := 0
	a.g.lookup = func(context.Context, string) ([]netip.Addr, error) {
		asked++
		if asked%2 == 0 {
			return loopback, nil
		}
		return []netip.Addr{siteAddr}, nil
	}
	for range 3 {
		if body, err := a.ask("http://site.test/"); err != nil || body != "hello" {
			t.Errorf("%q, %v", body, err)
		}
		a.refused("http://site.test/", "private or reserved")
	}
}

func TestClientOfTheRealNetwork(t *testing.T) {
	addr, _ := site(t, "hello")
	a := newAsking(t, nil, "127.0.0.1")
	if body, err := a.ask("http://" + addr + "/"); err != nil || body != "hello" {
		t.Errorf("%q, %v", body, err) // The environment's proxy would say trap.
	}
	server := httptest.NewUnstartedServer(nil)
	server.Config.ErrorLog = log.New(io.Discard, "", 0)
	server.StartTLS()
	t.Cleanup(server.Close)
	a.refused(server.URL, "certificate of 127.0.0.1 is not valid")
}

func TestClientEnds(t *testing.T) {
	addr, accept := listen(t)
	a := newAsking(t, newWorld(addr), "site.test")
	ctx, cancel := context.WithCancel(t.Context())
	for _, row := range []struct {
		name string
		end  func()
		want error
	}{
		{"with the context", cancel, context.Canceled},
		{"with the gateway", a.g.Close, ErrRefused},
		{"on a closed gateway", nil, ErrRefused},
	} {
		t.Run(row.name, func(t *testing.T) {
			if row.want == ErrRefused {
				ctx = t.Context()
			}
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://site.test/", nil)
			if err != nil {
				t.Fatal(err)
			}
			failed := make(chan error, 1)
			go func() {
				answer, err := a.Do(r)
				if err == nil {
					_ = answer.Body.Close()
				}
				failed <- err
			}()
			if row.end != nil {
				server := accept()
				server.expect("GET / HTTP/1.1\r\n")
				row.end()
				_ = server.Close()
			}
			if err := <-failed; !errors.Is(err, row.want) {
				t.Errorf("got %v", err)
			}
		})
	}
	a.g.mu.Lock()
	defer a.g.mu.Unlock()
	if len(a.g.doors)+len(a.g.ways) != 0 {
		t.Errorf("%d doors, %d ways", len(a.g.doors), len(a.g.ways))
	}
}
