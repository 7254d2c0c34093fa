package gateway

import (
	"net/netip"
	"strconv"
	"strings"
)

// Bounds of a host name, as DNS has them.
const (
	maxName  = 253
	maxLabel = 63
)

// target is where a request wants to go: a name or an address, and a port.
type target struct {
	name string // in lower case, without the root's dot; empty for an address
	addr netip.Addr
	port uint16
}

// host is the name or the address without brackets.
func (t target) host() string {
	if t.addr.IsValid() {
		return t.addr.String()
	}
	return t.name
}

// authority is the one spelling of the target that leaves this package.
func (t target) authority() string {
	host := t.host()
	if t.addr.Is6() {
		host = "[" + host + "]"
	}
	if t.port == portHTTP {
		return host
	}
	return host + ":" + strconv.Itoa(int(t.port))
}

// parseTarget reads host or host:port; without a port it is defaultPort, and
// with defaultPort 0 there must be one. Whatever is no plain name and no
// address in its usual form is refused here, so that nothing later can read it
// another way.
func parseTarget(authority string, defaultPort uint16) (target, bool) {
	host, port, found := strings.Cut(authority, ":")
	bracketed := strings.HasPrefix(authority, "[")
	if bracketed {
		var rest string
		if host, rest, found = strings.Cut(authority[1:], "]"); !found {
			return target{}, false
		}
		if port, found = strings.CutPrefix(rest, ":"); !found && rest != "" {
			return target{}, false
		}
	}
	t, ok := parseHost(host)
	if !ok || bracketed != strings.Contains(host, ":") {
		return target{}, false
	}
	t.port = defaultPort
	if found {
		number, err := strconv.ParseUint(port, 10, 16)
		if err != nil {
			return target{}, false
		}
		t.port = uint16(number)
	}
	return t, t.port != 0
}

// parseHost reads a host without a port and without brackets.
func parseHost(host string) (target, bool) {
	if addr, err := netip.ParseAddr(host); err == nil {
		// A zone names an interface of the server, which is nobody's business.
		return target{addr: addr.Unmap()}, addr.Zone() == ""
	}
	name, ok := parseName(host)
	return target{name: name}, ok
}

// parseName brings a host name to its one form. Its last label is no number:
// 127.1, 0x7f.1 and 2130706433 are addresses to some resolvers.
func parseName(host string) (string, bool) {
	name := strings.TrimSuffix(host, ".")
	if name == "" || len(name) > maxName {
		return "", false
	}
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if !plainLabel(label) {
			return "", false
		}
		last = label
	}
	if numeric(last) {
		return "", false
	}
	return strings.ToLower(name), true
}

// plainLabel says whether a label has only letters, digits, inner hyphens and
// underscores, all ASCII. Underscores are no host name's, but some have them.
func plainLabel(label string) bool {
	if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	for _, c := range []byte(label) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return true
}

// numeric says whether a label is a number to inet_aton.
func numeric(label string) bool {
	digits, hexadecimal := strings.CutPrefix(strings.ToLower(label), "0x")
	return strings.Trim(digits, "0123456789") == "" || hexadecimal && strings.Trim(digits, "0123456789abcdef") == ""
}

// printable makes what a client called a host fit for a log line.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r > '~' {
			return '?'
		}
		return r
	}, s[:min(len(s), maxName)])
}
