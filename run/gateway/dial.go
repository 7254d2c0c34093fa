package gateway

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"go.uber.org/zap"
	"golang.org/x/sys/unix"
)

// maxAddresses is how many addresses of a name are tried.
const maxAddresses = 8

// lookup asks the server's resolver.
func lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	resolver := net.Resolver{PreferGo: true}
	return resolver.LookupNetIP(ctx, "ip", rooted(name))
}

// rooted keeps the search list of the host away from a name, which could lead
// it elsewhere. One without a dot means something on this host only, and such
// ones are not found in its file of hosts with the root's dot.
func rooted(name string) string {
	if strings.Contains(name, ".") {
		return name + "."
	}
	return name
}

func dial(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
	var dialer net.Dialer
	return dialer.DialContext(ctx, "tcp", to.String())
}

// reach connects to an authority of a request, and tells of the attempt. The
// connection holds one of the gateway's ways out until it is closed.
func (d *door) reach(ctx context.Context, authority string, defaultPort uint16) (target, *conn, *refusal) {
	g := d.gateway
	t, ok := parseTarget(authority, defaultPort)
	if !ok {
		refused := refuse(http.StatusBadRequest,
			"neither a host name in ASCII nor an IP address in its usual form, or no port from 1 to 65535")
		g.cfg.Observe(Attempt{Host: printable(authority), Why: refused.why})
		return t, nil, refused
	}
	var out *conn
	refused := g.allowed.check(t)
	if refused == nil {
		out, refused = d.connect(ctx, t)
	}
	attempt := Attempt{Host: t.host(), Port: t.port, Allowed: true}
	if refused != nil {
		attempt.Allowed, attempt.Why = refused.allowed(), refused.why
	}
	g.cfg.Observe(attempt)
	return t, out, refused
}

// connect waits for a way out and takes it.
func (d *door) connect(ctx context.Context, t target) (*conn, *refusal) {
	g := d.gateway
	turn := time.NewTimer(DialLimit)
	defer turn.Stop()
	select {
	case g.ways <- struct{}{}:
	case <-turn.C:
		return nil, refuse(http.StatusServiceUnavailable, fmt.Sprintf("%d connections are open already, the most there may be", MaxConnections))
	case <-ctx.Done():
		return nil, unreachable(t, ctx.Err())
	}
	leave := func() { <-g.ways }
	ctx, cancel := context.WithTimeout(ctx, DialLimit)
	defer cancel()
	addrs, refused := g.resolve(ctx, t)
	if refused != nil {
		leave()
		return nil, refused
	}
	nc, err := g.dialOne(ctx, addrs, t.port)
	if err != nil {
		leave()
		return nil, unreachable(t, err)
	}
	out, ok := d.track(nc, leave)
	if !ok {
		return nil, unreachable(t, context.Canceled)
	}
	return out, nil
}

// resolve returns the addresses of a target that may be connected to.
func (g *Gateway) resolve(ctx context.Context, t target) ([]netip.Addr, *refusal) {
	if t.addr.IsValid() {
		return []netip.Addr{t.addr}, nil // in the list, or it would not be here
	}
	if t.name == localhost {
		return loopback, nil
	}
	addrs, err := g.lookup(ctx, t.name)
	if err != nil {
		return nil, unreachable(t, err)
	}
	if len(addrs) == 0 {
		return nil, unreachable(t, &net.DNSError{IsNotFound: true})
	}
	own, err := g.own()
	if err != nil {
		// Without them a name could lead to this machine.
		g.cfg.Log.Error("addresses of this machine", zap.Error(err))
		return nil, unreachable(t, err)
	}
	var may []netip.Addr
	for _, addr := range addrs {
		addr = addr.Unmap()
		if at := carried(addr); g.allowed.addrs[addr] || public(at) && !slices.Contains(own, at) {
			may = append(may, addr)
		}
	}
	if len(may) == 0 {
		return nil, refuse(http.StatusForbidden, fmt.Sprintf(
			"%s leads to a private or reserved address, which the agent file does not list (network: allow)", t.name))
	}
	return may[:min(len(may), maxAddresses)], nil
}

// dialOne connects to the first address that answers. Each has its share of the
// time, so that one that is silent does not use it up.
func (g *Gateway) dialOne(ctx context.Context, addrs []netip.Addr, port uint16) (net.Conn, error) {
	var first error
	for i, addr := range addrs {
		deadline, _ := ctx.Deadline()
		share, cancel := context.WithTimeout(ctx, time.Until(deadline)/time.Duration(len(addrs)-i))
		nc, err := g.dial(share, netip.AddrPortFrom(addr, port))
		cancel()
		if err == nil {
			return nc, nil
		}
		if first == nil {
			first = err
		}
	}
	return nil, first
}

// unreachable names the kind of an error and not the error, which has addresses
// of the server's network in it.
func unreachable(t target, err error) *refusal {
	kind := "no way there"
	var dns *net.DNSError
	var network net.Error
	switch {
	case errors.As(err, &dns) && dns.IsNotFound:
		kind = "no such name"
	case errors.As(err, &network) && network.Timeout():
		kind = "no answer in time"
	case errors.As(err, &dns):
		kind = "the name could not be resolved"
	case errors.Is(err, unix.ECONNREFUSED):
		kind = "connection refused"
	case errors.Is(err, context.Canceled):
		kind = "given up"
	}
	return refuse(http.StatusBadGateway, fmt.Sprintf("%s cannot be reached: %s", t.host(), kind))
}
