package gateway

import (
	"bytes"
	"crypto/sha256"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

const connectSite = "CONNECT site.test:443 HTTP/1.1\r\nHost: site.test:443\r\n\r\n"

// tunnelled is a tunnel between a client and a server.
func tunnelled(t *testing.T) (client, server *peer) {
	t.Helper()
	addr, accept := listen(t)
	p := start(t, newWorld(addr), "site.test")
	client = connect(t, p.addr)
	client.send(connectSite)
	server = accept()
	client.expect(established)
	return client, server
}

func TestTunnelCarriesBytesBothWays(t *testing.T) {
	client, server := tunnelled(t)
	var all sync.WaitGroup
	for i, ends := range [][2]*peer{{client, server}, {server, client}} {
		content := make([]byte, 4<<20+i)
		source := rand.NewChaCha8([32]byte{byte(i)})
		_, _ = source.Read(content)
		all.Go(func() {
			if _, err := io.Copy(ends[0], bytes.NewReader(content)); err != nil {
				t.Error(err)
			}
			_ = ends[0].CloseWrite()
		})
		all.Go(func() {
			got, err := io.ReadAll(ends[1].lines)
			if err != nil || sha256.Sum256(got) != sha256.Sum256(content) {
				t.Errorf("%d bytes of %d arrived: %v", len(got), len(content), err)
			}
		})
	}
	all.Wait()
}

func TestTunnelOfAClientThatHasSaidAll(t *testing.T) {
	client, server := tunnelled(t)
	client.send("ping")
	_ = client.CloseWrite()
	if got := server.rest(); got != "ping" {
		t.Errorf("the server got %q", got)
	}
	server.send("pong")
	_ = server.CloseWrite()
	if got := client.rest(); got != "pong" {
		t.Errorf("the client got %q", got)
	}
}

func TestTunnelOfAServerThatHasSaidAll(t *testing.T) {
	client, server := tunnelled(t)
	server.send("banner")
	_ = server.CloseWrite()
	if got := client.rest(); got != "banner" {
		t.Errorf("the client got %q", got)
	}
	client.send("more")
	_ = client.CloseWrite()
	if got := server.rest(); got != "more" {
		t.Errorf("the server got %q", got)
	}
}

// A tunnel that both sides have ended keeps neither a socket nor a way out.
func TestTunnelsLeaveNothingBehind(t *testing.T) {
	addr, accept := listen(t)
	p := start(t, newWorld(addr), "site.test")
	for range MaxSockets + 2 {
		client := connect(t, p.addr)
		client.send(connectSite)
		server := accept()
		client.expect(established)
		_ = client.CloseWrite()
		if got := server.rest(); got != "" {
			t.Fatalf("the server got %q", got)
		}
		_ = server.CloseWrite()
		if got := client.rest(); got != "" {
			t.Fatalf("the client got %q", got)
		}
	}
}

// A client that does not wait for the answer loses nothing of what it sent.
func TestTunnelWithEarlyBytes(t *testing.T) {
	for _, early := range []string{"a", "hello", string(bytes.Repeat([]byte("x"), 100<<10))} {
		addr, accept := listen(t)
		p := start(t, newWorld(addr), "site.test")
		client := connect(t, p.addr)
		client.send(connectSite + early)
		server := accept()
		server.expect(early)
		client.expect(established)
		client.send("later")
		server.expect("later")
	}
}

// Either side's breaking off ends the other one.
func TestTunnelEndsWithEitherSide(t *testing.T) {
	client, server := tunnelled(t)
	reset(t, client.TCPConn)
	if got := server.rest(); got != "" {
		t.Errorf("the server got %q", got)
	}
	client, server = tunnelled(t)
	reset(t, server.TCPConn)
	if got := client.rest(); got != "" {
		t.Errorf("the client got %q", got)
	}
}

func reset(t *testing.T, c *net.TCPConn) {
	t.Helper()
	if err := c.SetLinger(0); err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
}
