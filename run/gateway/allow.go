package gateway

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"

	"github.com/go-faster/errors"
)

// Ports that a name is allowed at.
const (
	portHTTP  = 80
	portHTTPS = 443
)

// localhost is the one name that is never looked up.
const localhost = "localhost"

var loopback = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}

// allowed is the list of an agent file.
type allowed struct {
	names    map[string]bool
	suffixes []string // with their leading dot
	addrs    map[netip.Addr]bool
}

func parseAllow(list []string) (*allowed, error) {
	a := &allowed{names: map[string]bool{}, addrs: map[netip.Addr]bool{}}
	for _, entry := range list {
		if why := a.add(entry); why != "" {
			return nil, errors.Wrapf(ErrAllow, "%q: %s", entry, why)
		}
	}
	return a, nil
}

// add takes an entry, or says why it cannot be one.
func (a *allowed) add(entry string) (why string) {
	host, wildcard := strings.CutPrefix(entry, "*.")
	t, ok := parseHost(host)
	switch {
	case !ok || wildcard && t.addr.IsValid():
		return "not a host name, *. before one, or an IP address"
	case wildcard:
		a.suffixes = append(a.suffixes, "."+t.name)
	case !t.addr.IsValid():
		a.names[t.name] = true
		if t.name == localhost {
			for _, addr := range loopback {
				a.addrs[addr] = true
			}
		}
	case t.addr.IsUnspecified() || t.addr.IsMulticast() || t.addr == broadcast:
		// Connecting to 0.0.0.0 connects to the server itself.
		return "no address of a machine"
	default:
		a.addrs[t.addr] = true
	}
	return ""
}

// check says why the list does not allow a target, nil when it does.
func (a *allowed) check(t target) *refusal {
	if !a.lists(t) {
		return refuse(http.StatusForbidden, fmt.Sprintf("the agent file does not allow %s (network: allow)", t.host()))
	}
	// A listed address is a machine of its own, with services anywhere; a name
	// is a site.
	if t.port == portHTTP || t.port == portHTTPS || t.addr.IsValid() || t.name == localhost {
		return nil
	}
	return refuse(http.StatusForbidden,
		fmt.Sprintf("the agent file allows %s at ports %d and %d only, not %d", t.host(), portHTTP, portHTTPS, t.port))
}

func (a *allowed) lists(t target) bool {
	if t.addr.IsValid() {
		return a.addrs[t.addr]
	}
	if a.names[t.name] {
		return true
	}
	for _, suffix := range a.suffixes {
		if strings.HasSuffix(t.name, suffix) {
			return true
		}
	}
	return false
}
