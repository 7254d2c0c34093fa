package gateway

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// bubble is a gateway in the time of synctest, with pipes for connections.
type bubble struct {
	t       *testing.T
	g       *Gateway
	l       *pipeListener
	servers chan net.Conn // the other ends of what was dialled
}

// inBubble runs a test whose time passes only while everything waits.
func inBubble(t *testing.T, test func(*bubble)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g, err := New(Config{Allow: []string{"site.test"}})
		if err != nil {
			t.Fatal(err)
		}
		b := &bubble{t: t, g: g, l: newPipeListener(), servers: make(chan net.Conn, 2*MaxConnections)}
		g.lookup = func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{siteAddr}, nil }
		g.dial = func(context.Context, netip.AddrPort) (net.Conn, error) {
			ours, theirs := net.Pipe()
			b.servers <- theirs
			return ours, nil
		}
		served := make(chan error, 1)
		go func() { served <- g.Serve(b.l) }()
		test(b)
		g.Close()
		if err := <-served; err != nil {
			t.Errorf("Serve: %v", err)
		}
		holdsNothing(t, g)
	})
}

// client connects and sends, without waiting for what it sends to arrive.
func (b *bubble) client(text string) *pipe {
	b.t.Helper()
	ours, theirs := net.Pipe()
	b.l.conns <- theirs
	go func() { _, _ = io.WriteString(ours, text) }()
	return &pipe{Conn: ours, lines: bufio.NewReader(ours)}
}

// tunnel opens a tunnel.
func (b *bubble) tunnel() (client *pipe, server net.Conn) {
	b.t.Helper()
	client = b.client(connectSite)
	if got := client.take(len(established)); got != established {
		b.t.Fatalf("got %q", got)
	}
	return client, <-b.servers
}

// pipe is a client in a bubble.
type pipe struct {
	net.Conn
	lines *bufio.Reader
}

func (p *pipe) take(n int) string {
	got := make([]byte, n)
	n, _ = io.ReadFull(p.lines, got)
	return string(got[:n])
}

// rest reads up to the end, and says how long that took.
func (p *pipe) rest() (string, time.Duration) {
	began := time.Now()
	all, _ := io.ReadAll(p.lines)
	return string(all), time.Since(began)
}

type pipeListener struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipeListener() *pipeListener {
	return &pipeListener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{Name: "pipe"} }

func TestHeaderLimit(t *testing.T) {
	for _, text := range []string{"", "G", "GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\n"} {
		inBubble(t, func(b *bubble) {
			if got, took := b.client(text).rest(); !givenUp(got) || took != HeaderLimit {
				t.Errorf("%q: got %q after %v", text, got, took)
			}
		})
	}
	inBubble(t, func(b *bubble) {
		client := b.client("")
		dripped := make(chan struct{})
		go func() {
			defer close(dripped)
			for _, c := range []byte("GET http://site.test/ HTTP/1.1\r\n") {
				if _, err := client.Write([]byte{c}); err != nil {
					return
				}
				<-time.After(time.Second)
			}
		}()
		if got, took := client.rest(); !givenUp(got) || took != HeaderLimit {
			t.Errorf("drop by drop: got %q after %v", got, took)
		}
		<-dripped
	})
}

// givenUp says whether an answer is what net/http has for half a header.
func givenUp(answer string) bool { return answer == "" || strings.HasPrefix(answer, "HTTP/1.1 400 ") }

func TestHeaderLength(t *testing.T) {
	addr, _ := site(t, "site")
	p := start(t, newWorld(addr), "site.test")
	const head, end = "GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\nX: ", "\r\n\r\n"
	for length, want := range map[int]string{
		MaxHeaderBytes:     "HTTP/1.1 200 OK\r\n",
		MaxHeaderBytes + 1: "HTTP/1.1 431 Request Header Fields Too Large\r\n",
		4 * MaxHeaderBytes: "HTTP/1.1 431 Request Header Fields Too Large\r\n",
	} {
		if got := exchange(t, p.addr, head+strings.Repeat("x", length-len(head+end))+end); !strings.HasPrefix(got, want) {
			t.Errorf("%d bytes: got %q", length, got)
		}
	}
}

func TestDialLimit(t *testing.T) {
	const late = "agentrun: site.test cannot be reached: no answer in time\n"
	inBubble(t, func(b *bubble) {
		b.g.lookup = func(ctx context.Context, _ string) ([]netip.Addr, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if got, took := b.client(connectSite).rest(); !strings.HasSuffix(got, late) || took != DialLimit {
			t.Errorf("a silent resolver: %q after %v", got, took)
		}
	})
	silent := func(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	inBubble(t, func(b *bubble) {
		b.g.dial = silent
		if got, took := b.client(connectSite).rest(); !strings.HasSuffix(got, late) || took != DialLimit {
			t.Errorf("a silent server: %q after %v", got, took)
		}
	})
	inBubble(t, func(b *bubble) {
		b.g.lookup = func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{secretAddr, siteAddr}, nil }
		b.g.dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
			if to.Addr() == secretAddr {
				return silent(ctx, to)
			}
			ours, theirs := net.Pipe()
			b.servers <- theirs
			return ours, nil
		}
		began := time.Now()
		b.tunnel()
		if took := time.Since(began); took != DialLimit/2 {
			t.Errorf("the second address was reached after %v", took)
		}
	})
}

// A client is told that there is a tunnel when there is one, and not before.
func TestEstablishedAfterTheDial(t *testing.T) {
	inBubble(t, func(b *bubble) {
		dialled, connected := make(chan struct{}), make(chan struct{})
		b.g.dial = func(context.Context, netip.AddrPort) (net.Conn, error) {
			close(dialled)
			<-connected
			ours, theirs := net.Pipe()
			b.servers <- theirs
			return ours, nil
		}
		client := b.client(connectSite)
		answered := make(chan string, 1)
		go func() { answered <- client.take(len(established)) }()
		<-dialled
		synctest.Wait()
		select {
		case got := <-answered:
			t.Errorf("before the connection: %q", got)
		default:
		}
		close(connected)
		if got := <-answered; got != established {
			t.Errorf("after the connection: %q", got)
		}
	})
}

func TestIdleTunnelEnds(t *testing.T) {
	inBubble(t, func(b *bubble) {
		client, _ := b.tunnel()
		if got, took := client.rest(); got != "" || took != IdleLimit {
			t.Errorf("got %q after %v", got, took)
		}
	})
	inBubble(t, func(b *bubble) {
		began := time.Now()
		client, server := b.tunnel()
		go func() { _, _ = io.Copy(io.Discard, server) }()
		for range 3 { // bytes in, bytes out: each begins the time anew
			<-time.After(IdleLimit - time.Second)
			_, _ = client.Write([]byte("x"))
			<-time.After(IdleLimit - time.Second)
			_, _ = server.Write([]byte("y"))
			client.take(1)
		}
		client.rest()
		if took := time.Since(began); took != 6*(IdleLimit-time.Second)+IdleLimit {
			t.Errorf("ended after %v", took)
		}
	})
	inBubble(t, func(b *bubble) { // neither side reads what the other sends
		client, server := b.tunnel()
		ended := make(chan error, 2)
		for _, side := range []net.Conn{client, server} {
			go func() {
				_, err := side.Write(make([]byte, 1<<20))
				ended <- err
			}()
		}
		began := time.Now()
		for range 2 {
			if err := <-ended; err == nil {
				t.Error("a mebibyte was taken by nobody")
			}
		}
		if took := time.Since(began); took != IdleLimit {
			t.Errorf("ended after %v", took)
		}
	})
}

func TestIdlePlainRequestEnds(t *testing.T) {
	const get = "GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n"
	inBubble(t, func(b *bubble) { // no answer
		client := b.client(get)
		server := <-b.servers
		go func() { _, _ = io.Copy(io.Discard, server) }()
		if got, took := client.rest(); !strings.HasPrefix(got, "HTTP/1.1 502 Bad Gateway\r\n") || took != IdleLimit {
			t.Errorf("got %q after %v", got, took)
		}
	})
	inBubble(t, func(b *bubble) { // no body
		client := b.client("POST http://site.test/ HTTP/1.1\r\nHost: site.test\r\nContent-Length: 10\r\n\r\nabc")
		server := <-b.servers
		go func() { _, _ = io.Copy(io.Discard, server) }()
		if got, took := client.rest(); !strings.HasPrefix(got, "HTTP/1.1 502 Bad Gateway\r\n") || took < IdleLimit || took > IdleLimit+HeaderLimit {
			t.Errorf("got %q after %v", got, took)
		}
	})
	inBubble(t, func(b *bubble) { // nobody reads the answer
		client := b.client(get)
		server := <-b.servers
		go func() { _, _ = io.Copy(io.Discard, server) }()
		_, _ = io.WriteString(server, "HTTP/1.1 200 OK\r\n\r\n")
		const head = "HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
		if got := client.take(len(head)); got != head {
			t.Errorf("got %q", got)
		}
		// The timer with which httputil flushes a header holds a mutex, and a
		// goroutine that waits for a mutex stops the time of synctest.
		synctest.Wait()
		if _, err := server.Write(make([]byte, 1<<20)); err == nil {
			t.Error("a mebibyte was taken by nobody")
		}
		<-time.After(stuckLimit + HeaderLimit)
		synctest.Wait()
		if n := len(b.g.sockets) + len(b.g.ways); n != 0 {
			t.Errorf("%d connections are left", n)
		}
		_ = client.Close()
	})
}

// An answered request whose body never comes does not keep its connection.
func TestBodyIsNotWaitedForAfterTheAnswer(t *testing.T) {
	inBubble(t, func(b *bubble) {
		client := b.client("POST http://site.test/ HTTP/1.1\r\nHost: site.test\r\nContent-Length: 10\r\n\r\nabc")
		server := <-b.servers
		go func() { _, _ = io.Copy(io.Discard, server) }()
		go func() { _, _ = io.WriteString(server, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n") }()
		if got, took := client.rest(); !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || took > HeaderLimit {
			t.Errorf("got %q after %v", got, took)
		}
	})
	inBubble(t, func(b *bubble) {
		client := b.client("POST http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\nContent-Length: 10\r\n\r\nabc")
		if got, took := client.rest(); !strings.HasPrefix(got, "HTTP/1.1 403 Forbidden\r\n") || took > HeaderLimit {
			t.Errorf("got %q after %v", got, took)
		}
	})
}

func TestConnectionsAreBounded(t *testing.T) {
	inBubble(t, func(b *bubble) {
		var open []*pipe
		for range MaxConnections {
			client, _ := b.tunnel()
			open = append(open, client)
		}
		got, took := b.client(connectSite).rest()
		if !strings.HasPrefix(got, "HTTP/1.1 503 Service Unavailable\r\n") || !strings.HasSuffix(got, "agentrun: 64 connections are open already, the most there may be\n") || took != DialLimit {
			t.Errorf("one more got %q after %v", got, took)
		}
		// One that ends makes room for one that waits.
		began := time.Now()
		time.AfterFunc(time.Second, func() { _ = open[0].Close() })
		b.tunnel()
		if took := time.Since(began); took != time.Second {
			t.Errorf("there was room after %v", took)
		}
	})
}

// Clients that never finish their requests block nobody, up to the bound of
// sockets, and no longer than the time for a header beyond it.
func TestSlowClientsBlockNobody(t *testing.T) {
	inBubble(t, func(b *bubble) {
		for range MaxSockets - 1 {
			b.client("GET http://site.test/ HTTP/1.1\r\n")
		}
		began := time.Now()
		client, _ := b.tunnel()
		if took := time.Since(began); took != 0 {
			t.Errorf("beside slow clients a tunnel took %v", took)
		}
		if got, took := b.client(connectSite).rest(); got != "" || took != 0 {
			t.Errorf("beyond the bound: %q after %v", got, took)
		}
		<-time.After(HeaderLimit)
		synctest.Wait()
		b.tunnel()
		_ = client.Close()
	})
}
