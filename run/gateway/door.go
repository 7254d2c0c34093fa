package gateway

import (
	"context"
	"net"
	"net/http"
	"sync"

	"go.uber.org/zap"
)

// headerSlop is what net/http reads beyond the limit that it is given.
const headerSlop = 4 << 10

// door is one listener of a gateway with everything that came in by it.
type door struct {
	net.Listener
	gateway *Gateway
	http    *http.Server
	cancel  context.CancelFunc
	// working counts the goroutines of net/http, which it does not wait for.
	working sync.WaitGroup
	ended   chan struct{}

	mu    sync.Mutex
	over  bool
	conns map[*conn]struct{} // inward and outward
}

// clientKey finds the client's *conn in the context of a request.
type clientKey struct{}

func newDoor(g *Gateway, l net.Listener) *door {
	ctx, cancel := context.WithCancel(context.Background())
	d := &door{
		Listener: l, gateway: g, cancel: cancel,
		ended: make(chan struct{}), conns: map[*conn]struct{}{},
	}
	var http1 http.Protocols
	http1.SetHTTP1(true)
	d.http = &http.Server{
		Handler:                      http.HandlerFunc(d.serve),
		ReadHeaderTimeout:            HeaderLimit,
		MaxHeaderBytes:               MaxHeaderBytes - headerSlop,
		DisableGeneralOptionsHandler: true,
		Protocols:                    &http1,
		BaseContext:                  func(net.Listener) context.Context { return ctx },
		ConnContext: func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, clientKey{}, c)
		},
		ConnState: d.count,
		ErrorLog:  zap.NewStdLog(g.cfg.Log),
	}
	// With one request a connection, nothing that follows a request, however
	// its length is to be read, is ever taken for another one.
	d.http.SetKeepAlivesEnabled(false)
	return d
}

// Accept implements net.Listener for net/http.
func (d *door) Accept() (net.Conn, error) {
	for {
		nc, err := d.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case d.gateway.sockets <- struct{}{}:
		default:
			_ = nc.Close()
			continue
		}
		if c, ok := d.track(nc, func() { <-d.gateway.sockets }); ok {
			return c, nil
		}
	}
}

// count follows net/http's goroutines: one for each connection, up to its
// closing or to its handing over to the handler, which counts itself.
func (d *door) count(_ net.Conn, state http.ConnState) {
	switch state {
	case http.StateNew:
		d.working.Add(1)
	case http.StateClosed, http.StateHijacked:
		d.working.Done()
	case http.StateActive, http.StateIdle:
	}
}

// end ends everything that came in by the door, and waits for nothing.
func (d *door) end() {
	d.cancel()
	_ = d.http.Close()
	d.mu.Lock()
	d.over = true
	conns := make([]*conn, 0, len(d.conns))
	for c := range d.conns {
		conns = append(conns, c)
	}
	d.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

// track makes nc end with the door. The release is called once it is closed,
// which it is at once when the door has ended.
func (d *door) track(nc net.Conn, release func()) (*conn, bool) {
	c := &conn{Conn: nc, door: d, release: release}
	d.mu.Lock()
	over := d.over
	if !over {
		d.conns[c] = struct{}{}
	}
	d.mu.Unlock()
	if over {
		_ = c.Close()
	}
	return c, !over
}

// conn is a connection of a door, inward or outward.
type conn struct {
	net.Conn
	door    *door
	once    sync.Once
	release func()
}

// Close implements net.Conn.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.door.mu.Lock()
		delete(c.door.conns, c)
		c.door.mu.Unlock()
		c.release()
	})
	return err
}

// CloseWrite tells the peer that nothing more comes. A connection that cannot
// be half closed is closed.
func (c *conn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return c.Close()
}
