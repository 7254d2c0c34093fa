package gateway

import (
	"net/netip"
	"slices"
	"testing"
)

func TestPublic(t *testing.T) {
	for _, row := range []struct {
		name  string
		addrs []string
		want  bool
	}{
		{name: "IPv4", want: true, addrs: []string{
			"1.1.1.1", "93.184.215.14", "8.8.8.8", "223.255.255.255",
			// beside each reserved range
			"1.0.0.0", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0",
			"172.15.255.255", "172.32.0.0", "191.255.255.255", "192.0.1.0", "192.0.3.0", "192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0",
			"198.17.255.255", "198.20.0.0", "198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0",
		}},
		{name: "this network", addrs: []string{"0.0.0.0", "0.0.0.1", "0.255.255.255"}},
		{name: "private", addrs: []string{"10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0", "192.168.255.255"}},
		{name: "carrier", addrs: []string{"100.64.0.0", "100.127.255.255"}},
		{name: "loopback", addrs: []string{"127.0.0.0", "127.0.0.1", "127.255.255.255", "::1"}},
		{name: "link-local", addrs: []string{"169.254.0.0", "169.254.169.254", "169.254.255.255", "fe80::1", "fe80::1%eth0", "febf:ffff::"}},
		{name: "protocols", addrs: []string{"192.0.0.1", "192.0.0.170", "192.88.99.1", "2001:1::1", "2001:20::1", "2001:1ff:ffff::"}},
		{name: "documentation", addrs: []string{"192.0.2.0", "192.0.2.255", "198.51.100.0", "203.0.113.255", "2001:db8::1", "2001:db8:ffff::", "3fff::1", "3fff:fff::1"}},
		{name: "benchmarks", addrs: []string{"198.18.0.0", "198.19.255.255", "2001:2::1"}},
		{name: "multicast", addrs: []string{"224.0.0.0", "239.255.255.255", "ff02::1", "ff0e::1"}},
		{name: "reserved", addrs: []string{"240.0.0.0", "255.255.255.254", "255.255.255.255"}},
		{name: "IPv6", want: true, addrs: []string{"2000::1", "2606:4700::1111", "2a00:1450::1", "2001:200::1", "2001:4860::8888", "2003::1", "2001:db7::1", "2001:db9::1", "3ffe:ffff::1"}},
		{name: "unspecified", addrs: []string{"::"}},
		{name: "unique local", addrs: []string{"fc00::1", "fd00:ec2::254", "fdff:ffff::1"}},
		{name: "site-local", addrs: []string{"fec0::1"}},
		{name: "never assigned", addrs: []string{"4000::1", "5f00::1", "1fff:ffff::1", "100::1", "e000::1"}},
		{name: "IPv4-mapped", addrs: []string{"::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254", "::ffff:0.0.0.0"}},
		{name: "IPv4-mapped public", want: true, addrs: []string{"::ffff:93.184.215.14"}},
		{name: "IPv4-compatible", addrs: []string{"::127.0.0.1", "::93.184.215.14"}},
		{name: "IPv4-translated", addrs: []string{"::ffff:0:127.0.0.1", "::ffff:0:5db8:d70e"}},
		{name: "NAT64", addrs: []string{"64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::10.1.2.3", "64:ff9b::", "64:ff9b:1::127.0.0.1", "64:ff9b:1::5db8:d70e"}},
		{name: "NAT64 public", want: true, addrs: []string{"64:ff9b::93.184.215.14"}},
		{name: "6to4", addrs: []string{"2002:7f00:1::1", "2002:a00:1::", "2002:5db8:d70e::1"}},
		{name: "Teredo", addrs: []string{"2001::1", "2001:0:5db8:d70e:8000:63bf:80ff:fffe"}},
	} {
		for _, s := range row.addrs {
			if got := public(carried(netip.MustParseAddr(s))); got != row.want {
				t.Errorf("%s: %s is public: %v", row.name, s, got)
			}
		}
	}
}

func TestOwnAddresses(t *testing.T) {
	own, err := ownAddresses()
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(own, loopback[0]) {
		t.Errorf("%v is without the loopback", own)
	}
	for _, addr := range own {
		if addr.Is4In6() || !addr.IsValid() {
			t.Errorf("%v cannot be compared", addr)
		}
	}
}
