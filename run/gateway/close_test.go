package gateway

import (
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"go.uber.org/goleak"
)

// wedge writes until the other side takes no more, and tells of that.
func wedge(c net.Conn, stuck chan<- struct{}) {
	buf := make([]byte, 1<<20)
	for {
		_ = c.SetWriteDeadline(time.Now().Add(250 * time.Millisecond))
		if _, err := c.Write(buf); err != nil {
			stuck <- struct{}{}
			return
		}
	}
}

// Close ends what waits for anything at all.
func TestCloseEndsWhatIsStuck(t *testing.T) {
	before := goleak.IgnoreCurrent()
	addr, accept := listen(t)
	outside := newWorld(addr)
	p := start(t, outside, "site.test", "*.site.test")
	entered := make(chan struct{}, 3)
	hang := func(ctx context.Context) error {
		entered <- struct{}{}
		<-ctx.Done()
		return ctx.Err()
	}
	p.g.lookup = func(ctx context.Context, name string) ([]netip.Addr, error) {
		if name == "lookup.site.test" {
			return nil, hang(ctx)
		}
		if name == "dial.site.test" {
			return []netip.Addr{secretAddr}, nil
		}
		return []netip.Addr{siteAddr}, nil
	}
	p.g.dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		if to.Addr() == secretAddr {
			return nil, hang(ctx)
		}
		return outside.dial(ctx, to)
	}

	var peers []*peer
	open := func(text string) *peer {
		client := connect(t, p.addr)
		client.send(text)
		peers = append(peers, client)
		return client
	}
	open("GET http://site.test/ HTT")
	open(strings.ReplaceAll(connectSite, "site.test", "lookup.site.test"))
	open(strings.ReplaceAll(connectSite, "site.test", "dial.site.test"))
	// As long as there is a body, net/http does not see its client's end.
	open("POST http://dial.site.test/ HTTP/1.1\r\nHost: site.test\r\nContent-Length: 10\r\n\r\n")
	for range cap(entered) {
		<-entered
	}
	const request = " http://site.test/ HTTP/1.1\r\nHost: site.test\r\n"
	open("GET" + request + "\r\n")                              // never answered
	peers = append(peers, accept())                             //
	open("POST" + request + "Content-Length: 1000000\r\n\r\nx") // its body never comes
	peers = append(peers, accept())                             //
	stuck := make(chan struct{}, 4)
	writers := 0
	for range 2 { // tunnels whose ends only write
		client := open(connectSite)
		server := accept()
		client.expect(established)
		peers = append(peers, server)
		go wedge(client, stuck)
		go wedge(server, stuck)
		writers += 2
	}
	for range writers {
		<-stuck
	}
	for len(p.g.ways) < MaxConnections { // the rest of the ways out
		open(connectSite).expect(established)
		peers = append(peers, accept())
	}
	open(connectSite) // waits for its turn

	began := time.Now()
	p.g.Close()
	if took := time.Since(began); took > time.Second {
		t.Errorf("Close took %v", took)
	}
	for _, peer := range peers {
		peer.rest() // fails when it does not end
		_ = peer.Close()
	}
	p.g.Close() // again
	goleak.VerifyNone(t, before)
}

// What is dialled while all ends is closed at once.
func TestNothingIsTrackedAfterTheEnd(t *testing.T) {
	g, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	d := newDoor(g, newPipeListener())
	d.end()
	ours, theirs := net.Pipe()
	released := false
	if _, ok := d.track(ours, func() { released = true }); ok || !released {
		t.Errorf("tracked: %v, released: %v", ok, released)
	}
	if _, err := theirs.Read(make([]byte, 1)); !errors.Is(err, io.EOF) {
		t.Errorf("the connection is not closed: %v", err)
	}
}

// A listener's end is the end of what came in by it, and of nothing else.
func TestServeEndsWithItsListener(t *testing.T) {
	addr, accept := listen(t)
	g, err := New(Config{Allow: []string{"site.test"}})
	if err != nil {
		t.Fatal(err)
	}
	outside := newWorld(addr)
	g.lookup, g.dial = outside.lookup, outside.dial
	other := serve(t, g)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- g.Serve(l) }()

	var tunnels [2][2]*peer
	for i, addr := range []string{l.Addr().String(), other} {
		client := connect(t, addr)
		client.send(connectSite)
		tunnels[i] = [2]*peer{client, accept()}
		client.expect(established)
	}
	_ = l.Close()
	if err := <-served; err != nil {
		t.Errorf("Serve: %v", err)
	}
	for _, side := range tunnels[0] {
		if got := side.rest(); got != "" {
			t.Errorf("got %q", got)
		}
	}
	tunnels[1][0].send("ping")
	tunnels[1][1].expect("ping")
}

func TestServeOnAClosedGateway(t *testing.T) {
	g, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	g.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Serve(l); err != nil {
		t.Errorf("Serve: %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("the listener is not closed: %v", err)
	}
	g.Close()
}

// brokenListener has an end of its own.
type brokenListener struct{ net.Listener }

var errBroken = errors.New("broken")

func (brokenListener) Accept() (net.Conn, error) { return nil, errBroken }

func TestServeReportsABrokenListener(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g, err := New(Config{})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Serve(brokenListener{l}); !errors.Is(err, errBroken) || !strings.HasPrefix(err.Error(), "gateway: listener 127.0.0.1:") {
		t.Errorf("Serve: %v", err)
	}
	g.Close()
	holdsNothing(t, g)
}

// Close may come at any moment of any number of connections.
func TestCloseAmidTraffic(t *testing.T) {
	addr, _ := site(t, "site")
	before := goleak.IgnoreCurrent()
	for round := range 20 {
		g, err := New(Config{Allow: []string{"site.test"}})
		if err != nil {
			t.Fatal(err)
		}
		outside := newWorld(addr)
		g.lookup, g.dial = outside.lookup, outside.dial
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		served := make(chan error, 1)
		go func() { served <- g.Serve(l) }()
		var clients sync.WaitGroup
		answered := make(chan struct{}, 1)
		for i := range 16 {
			request := "GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n"
			if i%2 == 0 {
				request = connectSite + inside
			}
			clients.Go(func() {
				for ask(l.Addr().String(), request) {
					select {
					case answered <- struct{}{}:
					default:
					}
				}
			})
		}
		for range round + 1 {
			<-answered
		}
		g.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		holdsNothing(t, g)
		clients.Wait()
	}
	goleak.VerifyNone(t, before)
}

// ask says whether a request had a whole answer.
func ask(addr, request string) bool {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(patience))
	if _, err := io.WriteString(c, request); err != nil {
		return false
	}
	all, err := io.ReadAll(c)
	return err == nil && strings.HasSuffix(string(all), "site")
}
