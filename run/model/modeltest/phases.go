package modeltest

import (
	"context"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"agentrun/run/model/wire"
)

// connecting is a call to an address that does not answer at all.
func connecting(t *testing.T, p Provider) time.Duration {
	reached := make(chan struct{})
	return p.cancel(t, "http://192.0.2.1", Request(), reached, func(cfg *wire.Config) {
		transport, ok := cfg.Transport.(*http.Transport)
		if !ok {
			t.Fatal("another transport")
		}
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			close(reached)
			<-ctx.Done()
			return nil, ctx.Err()
		}
	})
}

// shakingHands is a call to a server that accepts a connection and says nothing.
func shakingHands(t *testing.T, p Provider) time.Duration {
	addr, reached := mute(t)
	return p.cancel(t, "https://"+addr, Request(), reached, nil)
}

// uploading is a call to a server that does not read.
func uploading(t *testing.T, p Provider) time.Duration {
	addr, reached := mute(t)
	req := Request()
	req.Messages[0].Text = strings.Repeat("more than fits into buffers. ", 1<<20)
	return p.cancel(t, "http://"+addr, req, reached, nil)
}

// mute is a server that accepts a connection and leaves it alone.
func mute(t *testing.T) (addr string, reached <-chan struct{}) {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	accepted := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		close(accepted)
		<-t.Context().Done()
		_ = conn.Close()
	}()
	t.Cleanup(func() {
		_ = l.Close()
		<-done
	})
	return l.Addr().String(), accepted
}
