package gateway

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"
)

// patience is how long a test waits for what has to happen.
const patience = 20 * time.Second

// siteAddr is the public address of the hosts that tests allow, secretAddr that
// of a server that nobody may reach.
var (
	siteAddr   = netip.MustParseAddr("93.184.215.14")
	secretAddr = netip.MustParseAddr("93.184.215.99")
)

// trap is where this process's environment says that the proxy is.
var trap *httptest.Server

func TestMain(m *testing.M) {
	trap = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "trap")
	}))
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy"} {
		if err := os.Setenv(name, trap.URL); err != nil {
			panic(err)
		}
	}
	code := m.Run()
	trap.Close()
	if err := goleak.Find(); err != nil && code == 0 {
		_, _ = os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

// world is what is outside of the sandbox: names, and servers at addresses.
type world struct {
	mu      sync.Mutex
	names   map[string][]netip.Addr
	at      map[netip.Addr]string // the real server behind an address
	looked  []string
	dialled []netip.AddrPort
}

func (w *world) lookup(_ context.Context, name string) ([]netip.Addr, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looked = append(w.looked, name)
	addrs := w.names[name]
	if len(addrs) == 0 {
		return nil, &net.DNSError{Err: "no such host", Name: name, IsNotFound: true}
	}
	return addrs, nil
}

func (w *world) dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	w.mu.Lock()
	w.dialled = append(w.dialled, to)
	behind, ok := w.at[to.Addr()]
	w.mu.Unlock()
	if !ok {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: unix.ECONNREFUSED}
	}
	return new(net.Dialer).DialContext(ctx, "tcp", behind)
}

// seen returns what was looked up and dialled so far.
func (w *world) seen() (looked []string, dialled []netip.AddrPort) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append(looked, w.looked...), append(dialled, w.dialled...)
}

// newWorld has site.test and all of its subdomains' addresses that tests need at
// the real address site.
func newWorld(site string) *world {
	return &world{
		names: map[string][]netip.Addr{"site.test": {siteAddr}, "www.site.test": {siteAddr}},
		at:    map[netip.Addr]string{siteAddr: site},
	}
}

// proxy is a gateway that serves.
type proxy struct {
	t    *testing.T
	g    *Gateway
	addr string

	mu       sync.Mutex
	attempts []Attempt
}

// start starts a gateway in front of a world; nil is the real one.
func start(t *testing.T, outside *world, allow ...string) *proxy {
	t.Helper()
	p := &proxy{t: t}
	g, err := New(Config{Allow: allow, Observe: func(a Attempt) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.attempts = append(p.attempts, a)
	}})
	if err != nil {
		t.Fatal(err)
	}
	if outside != nil {
		g.lookup, g.dial = outside.lookup, outside.dial
	}
	p.g, p.addr = g, serve(t, g)
	return p
}

// serve lets a gateway serve a new listener until the test ends.
func serve(t *testing.T, g *Gateway) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()
	t.Cleanup(func() {
		g.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		holdsNothing(t, g)
	})
	return l.Addr().String()
}

// holdsNothing checks that everything a gateway took was given back.
func holdsNothing(t *testing.T, g *Gateway) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.sockets)+len(g.ways)+len(g.doors) != 0 {
		t.Errorf("a closed gateway holds %d sockets, %d ways out and %d doors", len(g.sockets), len(g.ways), len(g.doors))
	}
}

// observed returns the attempts so far.
func (p *proxy) observed() []Attempt {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]Attempt(nil), p.attempts...)
}

// client is an HTTP client inside of the sandbox.
func (p *proxy) client() *http.Client {
	transport := &http.Transport{Proxy: http.ProxyURL(&url.URL{Scheme: "http", Host: p.addr})}
	p.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: patience}
}

// get asks for a URL and returns the status and the body.
func (p *proxy) get(address string) (int, string) {
	p.t.Helper()
	answer, err := p.client().Get(address)
	if err != nil {
		p.t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return answer.StatusCode, string(body)
}

// peer is a bare TCP connection of a test, with a deadline.
type peer struct {
	*net.TCPConn
	t     *testing.T
	lines *bufio.Reader
}

func connect(t *testing.T, addr string) *peer {
	t.Helper()
	nc, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = nc.Close() })
	return newPeer(t, nc)
}

func newPeer(t *testing.T, nc net.Conn) *peer {
	t.Helper()
	if err := nc.SetDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	return &peer{TCPConn: nc.(*net.TCPConn), t: t, lines: bufio.NewReader(nc)}
}

func (p *peer) send(text string) {
	p.t.Helper()
	if _, err := io.WriteString(p, text); err != nil {
		p.t.Fatal(err)
	}
}

// expect reads exactly text.
func (p *peer) expect(text string) {
	p.t.Helper()
	got := make([]byte, len(text))
	if n, err := io.ReadFull(p.lines, got); err != nil || string(got) != text {
		p.t.Fatalf("got %q, want %q: %v", got[:n], text, err)
	}
}

// rest reads up to the end, be it an orderly one or not.
func (p *peer) rest() string {
	p.t.Helper()
	var all strings.Builder
	_, err := io.Copy(&all, p.lines)
	if network, ok := err.(net.Error); ok && network.Timeout() {
		p.t.Fatalf("no end after %q", all.String())
	}
	return all.String()
}

// exchange sends text on a connection of its own and reads up to the end.
func exchange(t *testing.T, addr, text string) string {
	t.Helper()
	p := connect(t, addr)
	defer p.Close()
	p.send(text)
	return p.rest()
}

// listen accepts connections for a test.
func listen(t *testing.T) (addr string, accept func() *peer) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String(), func() *peer {
		t.Helper()
		nc, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = nc.Close() })
		return newPeer(t, nc)
	}
}

// site is a server that answers with its name, and counts.
func site(t *testing.T, name string) (addr string, hits func() int) {
	t.Helper()
	var mu sync.Mutex
	count := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		count++
		_, _ = io.WriteString(w, name)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String(), func() int {
		mu.Lock()
		defer mu.Unlock()
		return count
	}
}
