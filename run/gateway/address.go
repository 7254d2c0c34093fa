package gateway

import (
	"net"
	"net/netip"
	"slices"
)

var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

// Addresses that are no public machine's, after the IANA registries of special
// purpose addresses.
var (
	reserved4 = prefixes(
		"0.0.0.0/8",       // this network; connecting there reaches the server itself
		"10.0.0.0/8",      // private
		"100.64.0.0/10",   // shared by the customers of a carrier
		"127.0.0.0/8",     // loopback
		"169.254.0.0/16",  // link-local, with the metadata service of clouds
		"172.16.0.0/12",   // private
		"192.0.0.0/24",    // protocol assignments
		"192.0.2.0/24",    // documentation
		"192.88.99.0/24",  // relays of 6to4
		"192.168.0.0/16",  // private
		"198.18.0.0/15",   // benchmarks
		"198.51.100.0/24", // documentation
		"203.0.113.0/24",  // documentation
		"224.0.0.0/4",     // multicast
		"240.0.0.0/4",     // reserved, with broadcast
	)
	// public6 is all that is assigned as public. Outside of it are loopback,
	// unspecified, IPv4-compatible, link-local, site-local, unique local,
	// multicast, discard and local NAT64 addresses.
	public6   = netip.MustParsePrefix("2000::/3")
	reserved6 = prefixes(
		"2001::/23",     // protocol assignments: Teredo, benchmarks, ORCHID
		"2001:db8::/32", // documentation
		"2002::/16",     // 6to4, which has any IPv4 address inside
		"3fff::/20",     // documentation
	)
	// nat64 has an IPv4 address in its last four bytes.
	nat64 = netip.MustParsePrefix("64:ff9b::/96")
)

func prefixes(list ...string) []netip.Prefix {
	all := make([]netip.Prefix, len(list))
	for i, s := range list {
		all[i] = netip.MustParsePrefix(s)
	}
	return all
}

// carried is the address that a connection to addr ends at: the IPv4 address
// inside a mapped or a NAT64 one. The addresses of other ways to carry IPv4 in
// IPv6 are reserved6.
func carried(addr netip.Addr) netip.Addr {
	addr = addr.Unmap()
	if nat64.Contains(addr) {
		b := addr.As16()
		return netip.AddrFrom4([4]byte(b[12:]))
	}
	return addr
}

// public says whether a carried address may be any public machine's.
func public(addr netip.Addr) bool {
	reserved := reserved4
	if !addr.Is4() {
		if !public6.Contains(addr) || addr.Zone() != "" {
			return false
		}
		reserved = reserved6
	}
	return !slices.ContainsFunc(reserved, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// ownAddresses are the addresses of this machine.
func ownAddresses() ([]netip.Addr, error) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		return nil, err
	}
	var own []netip.Addr
	for _, a := range list {
		if network, ok := a.(*net.IPNet); ok {
			if addr, ok := netip.AddrFromSlice(network.IP); ok {
				own = append(own, addr.Unmap())
			}
		}
	}
	return own, nil
}
