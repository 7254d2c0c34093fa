// Package gateway is the one way out of a sandbox: an HTTP forward proxy that
// reaches the hosts of the agent file's `network: allow` and nothing else. It
// serves a listener that is inside a sandbox without any network, resolves
// names and dials outside of it.
//
// # What it serves
//
// CONNECT host:port, and plain requests with an absolute URL (GET http://host/),
// one request a connection. Names are allowed at the ports 80 and 443, by either
// way; localhost and IP addresses, where the list has them, at any port.
//
// An entry of the list is a name, `*.name` for every name below it but not name
// itself, or an IP address. What a name resolves to must be a public address
// that is not this machine's own, or be in the list itself; `localhost` in the
// list stands for the address 127.0.0.1 and ::1 too, and is the loopback of the
// server, where other services of the machine may listen. The connection goes to
// the very address that was judged. Names are looked up only after the list
// allowed them, and those with a dot in full, without the host's search list.
//
// Host names are ASCII (IDN as punycode), addresses in their usual form.
// Anything else is refused, not interpreted.
//
// What goes out has what the client sent, without hop-by-hop and forwarding
// headers, and with the Host of the URL. Nothing is added that tells of the
// server: no Via, no X-Forwarded-For, no credentials. The server's own proxy
// settings do not count. A plain request cannot change its protocol: websockets
// go through CONNECT, as their clients do anyway. A client that ends only its
// own direction still gets the answer through a tunnel; a plain request is given
// up then, because net/http cannot tell it from a client that left.
//
// # What it does not do
//
// A tunnel is not looked into. A program can speak any protocol to port 443 or
// 80 of an allowed host, and when the host is served by a network that serves
// others too, it can name one of these in TLS or in its requests (domain
// fronting). To allow a host is to trust whoever answers at its addresses, and
// everyone who can put or read data there. `*.name` also lets data out as names
// that are looked up below name. A NAT64 with a prefix of the network's own is
// not known, and its addresses count as public.
//
// # The server's own requests
//
// Client is for requests that the server makes on behalf of an agent, for the
// same hosts under the same rules. There the scheme has to be one of the web,
// and a redirect is judged as if it were the first request.
//
// # Models
//
// Beside the proxy, the listener takes requests for its own /PROVIDER/… and
// passes those to the endpoints of a model provider's API on, with the
// provider's key instead of the client's (Models). Programs that speak to models
// so need neither a key nor a network. The model of a request is looked at, what
// is about to be spent is reserved, and what was used is counted from the answer
// as it passes. A client that ends its own direction ends the request too.
//
// A request is written anew from what was understood of it, so that upstream
// cannot understand another model. What a field other than `model` makes a
// provider's own tools use is not looked at.
//
// The package knows nothing of runs or sandboxes, and imports nothing of
// agentrun but the seam to models, for what is counted.
package gateway

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/go-faster/errors"
	"go.uber.org/zap"
)

// Bounds of a gateway.
const (
	// MaxConnections is how many connections lead out of a gateway at once. A
	// request beyond waits for DialLimit, and gets 503 then.
	MaxConnections = 64
	// MaxSockets is how many connections a gateway accepts at once, with those
	// that have not sent a request yet. One beyond is closed without an answer.
	MaxSockets = 4 * MaxConnections
	// HeaderLimit is how long a client may take for the header of its request.
	HeaderLimit = 10 * time.Second
	// MaxHeaderBytes is how long the header of a request may be.
	MaxHeaderBytes = 16 << 10
	// MaxAnswerHeaderBytes is how long the header of an answer to a plain
	// request may be.
	MaxAnswerHeaderBytes = 64 << 10
	// DialLimit is how long resolving a name and connecting may take together.
	DialLimit = 10 * time.Second
	// IdleLimit is how long a connection lives on which no byte moves.
	IdleLimit = 5 * time.Minute
)

// Attempt is a request to go somewhere, and what came of it.
type Attempt struct {
	// Host is a name in lower case or an IP address; where a client sent
	// something else it is that, printable and at most 253 bytes.
	Host string
	// Port is 0 when the client sent none that is a port.
	Port uint16
	// Allowed says whether the agent file allows it.
	Allowed bool
	// Why says in a line why there was no connection, empty when there was.
	Why string
}

// Config is what a gateway is made of.
type Config struct {
	// Allow are the hosts of the agent file; none means that all is refused.
	Allow []string
	// Observe is told of every attempt, before the client gets its answer; nil
	// means that nobody is. It is called by several goroutines at once, must
	// not wait long, and may not close the gateway.
	Observe func(Attempt)
	// Models are what can be asked without a network; the zero value is none.
	Models Models
	// Log gets the faults of our own; nil means that nobody does.
	Log *zap.Logger
}

// Gateway leads out of sandboxes. Its bounds hold for all listeners together,
// so runs that should not be in each other's way have a gateway each.
type Gateway struct {
	cfg     Config
	allowed *allowed
	models  map[string]*Provider
	// upstream makes the requests to providers, whatever Allow has.
	upstream *http.Transport

	// Where tests stand in for the network.
	lookup func(ctx context.Context, name string) ([]netip.Addr, error)
	own    func() ([]netip.Addr, error)
	dial   func(ctx context.Context, to netip.AddrPort) (net.Conn, error)
	// bodyLimit stands for BodyLimit.
	bodyLimit time.Duration

	sockets chan struct{} // holds one for each accepted connection
	ways    chan struct{} // holds one for each connection out
	large   chan struct{} // holds one for each large request to a model

	mu     sync.Mutex
	closed bool
	doors  map[*door]struct{}
}

// New returns a gateway that serves nothing yet. Errors: ErrAllow, ErrProvider.
func New(cfg Config) (*Gateway, error) {
	list, err := parseAllow(cfg.Allow)
	if err != nil {
		return nil, err
	}
	models, err := checkModels(cfg.Models.Providers)
	if err != nil {
		return nil, err
	}
	if cfg.Observe == nil {
		cfg.Observe = func(Attempt) {}
	}
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	return &Gateway{
		cfg: cfg, allowed: list, lookup: lookup, own: ownAddresses, dial: dial,
		models: models, upstream: upstreamTransport(), bodyLimit: BodyLimit,
		sockets: make(chan struct{}, MaxSockets), ways: make(chan struct{}, MaxConnections), large: make(chan struct{}, maxLarge),
		doors: map[*door]struct{}{},
	}, nil
}

// Serve serves the connections of l, which it closes, until l is closed or the
// gateway is. What was accepted from l is ended then, and Serve returns nil once
// nothing of it is left; on a closed gateway it does so at once. Any error is
// one of l. Serve may be called for several listeners.
func (g *Gateway) Serve(l net.Listener) error {
	d := newDoor(g, l)
	if !g.add(d) {
		_ = l.Close()
		return nil
	}
	err := d.http.Serve(d)
	d.end()
	d.working.Wait()
	g.remove(d)
	if errors.Is(err, http.ErrServerClosed) || errors.Is(err, net.ErrClosed) {
		return nil
	}
	return errors.Wrapf(err, "gateway: listener %s", l.Addr())
}

// Close ends everything at once, and returns when nothing of it is left. Closing
// twice is allowed.
func (g *Gateway) Close() {
	g.mu.Lock()
	g.closed = true
	doors := make([]*door, 0, len(g.doors))
	for d := range g.doors {
		doors = append(doors, d)
	}
	g.mu.Unlock()
	for _, d := range doors {
		d.end()
	}
	for _, d := range doors {
		<-d.ended
	}
	g.upstream.CloseIdleConnections()
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, d := range doors {
		delete(g.doors, d) // those of clients, which nobody serves
	}
}

func (g *Gateway) add(d *door) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.closed {
		g.doors[d] = struct{}{}
	}
	return !g.closed
}

func (g *Gateway) remove(d *door) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.doors, d)
	close(d.ended)
}
