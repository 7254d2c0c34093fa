package gateway

import (
	"net/netip"
	"strings"
	"testing"
)

func TestParseTarget(t *testing.T) {
	long := strings.Repeat(strings.Repeat("a", 61)+".", 4) // 248 bytes
	for _, row := range []struct {
		authority string
		want      string // host port, empty when refused
	}{
		{authority: "example.com", want: "example.com 80"},
		{authority: "example.com:443", want: "example.com 443"},
		{authority: "EXAMPLE.Com:80", want: "example.com 80"},
		{authority: "example.com.", want: "example.com 80"},
		{authority: "example.com.:443", want: "example.com 443"},
		{authority: "localhost:8080", want: "localhost 8080"},
		{authority: "xn--bcher-kva.example", want: "xn--bcher-kva.example 80"},
		{authority: "a_b.example", want: "a_b.example 80"},
		{authority: "1a.2b3", want: "1a.2b3 80"},
		{authority: "127.example", want: "127.example 80"},
		{authority: "0x.example", want: "0x.example 80"},
		{authority: long + "abcde", want: long + "abcde 80"},
		{authority: "127.0.0.1", want: "127.0.0.1 80"},
		{authority: "127.0.0.1:1", want: "127.0.0.1 1"},
		{authority: "[::1]", want: "::1 80"},
		{authority: "[::1]:65535", want: "::1 65535"},
		{authority: "[2001:DB8:0:0::1]", want: "2001:db8::1 80"},
		{authority: "[::ffff:127.0.0.1]:81", want: "127.0.0.1 81"},
		{authority: "[::ffff:7f00:1]", want: "127.0.0.1 80"},

		// No host.
		{authority: ""}, {authority: "."}, {authority: ".."}, {authority: ":80"}, {authority: "[]"}, {authority: "[]:80"},
		// Empty labels.
		{authority: ".example.com"}, {authority: "example..com"}, {authority: "example.com.."},
		// Too long.
		{authority: long + "abcdef"}, {authority: strings.Repeat("a", 64) + ".com"},
		// Not plain.
		{authority: "-a.com"}, {authority: "a-.com"}, {authority: "*.com"}, {authority: "*"}, {authority: "a b"}, {authority: "a,b"},
		{authority: "a\tb"}, {authority: "a\x00b"}, {authority: "a.com\x00.b.com"}, {authority: "a\r\nb"}, {authority: "a\x7f"},
		{authority: "user@a.com"}, {authority: "a.com@b.com"}, {authority: "a.com:443@b.com:443"}, {authority: "a.com/"}, {authority: "a.com?b"},
		{authority: "a.com#b"}, {authority: `a.com\b`}, {authority: "http://a.com"}, {authority: "http:a.com"}, {authority: "//a.com"},
		{authority: "a%2ecom"}, {authority: "a%00.com"}, {authority: "%61.com"}, {authority: "a.com%20"},
		{authority: "bücher.example"}, {authority: "ⓔxample.com"}, {authority: "example。com"}, {authority: "a\u00adb.com"}, {authority: "\xff.com"},
		// IPv4 in spellings that only some understand.
		{authority: "0x7f.1"}, {authority: "0x7f000001"}, {authority: "2130706433"}, {authority: "127.1"}, {authority: "127.0.1"}, {authority: "0177.0.0.1"},
		{authority: "127.0.0.01"}, {authority: "127.0.0.0x1"}, {authority: "127.0.0.1."}, {authority: "1.2.3.4.5"}, {authority: "256.1.1.1"}, {authority: "a.0x"},
		{authority: "0X7F.0.0.1"}, {authority: "a.1"}, {authority: "0"},
		// IPv6 with and without what belongs to it.
		{authority: "::1"}, {authority: "::1:80"}, {authority: "[::1"}, {authority: "::1]"}, {authority: "[::1]80"}, {authority: "[::1]]"}, {authority: "[[::1]]"},
		{authority: "[fe80::1%eth0]"}, {authority: "[fe80::1%25eth0]"}, {authority: "[127.0.0.1]"}, {authority: "[example.com]"}, {authority: "[::1]@a.com"},
		{authority: "[::1].a.com"}, {authority: "[v1.x]"}, {authority: "[::ffff:127.1]"},
		// Ports.
		{authority: "a.com:"}, {authority: "a.com:0"}, {authority: "a.com:65536"}, {authority: "a.com:-1"}, {authority: "a.com:+80"}, {authority: "a.com: 80"},
		{authority: "a.com:80:80"}, {authority: "a.com:http"}, {authority: "a.com:0x50"}, {authority: "a.com:8_0"}, {authority: "[::1]:"}, {authority: "a.com:٨٠"},
	} {
		got, ok := parseTarget(row.authority, portHTTP)
		switch want, port, _ := strings.Cut(row.want, " "); {
		case ok != (row.want != ""):
			t.Errorf("%q: accepted is %v: %+v", row.authority, ok, got)
		case ok && (got.host() != want || netip.AddrPortFrom(loopback[0], got.port).String() != "127.0.0.1:"+port):
			t.Errorf("%q: got %+v, want %s", row.authority, got, row.want)
		}
	}
	if got, ok := parseTarget("example.com", 0); ok {
		t.Errorf("without a port where one must be: %+v", got)
	}
}

// What was accepted has one spelling, which nobody can read another way.
func FuzzParseTarget(f *testing.F) {
	for _, seed := range []string{"Example.com.:443", "[::FFFF:1.2.3.4]:1", "127.0.0.1", "a@b", "0x7f.1", "[::1%25lo]"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, authority string) {
		got, ok := parseTarget(authority, portHTTP)
		if !ok {
			return
		}
		again, ok := parseTarget(got.authority(), portHTTP)
		if !ok || again != got {
			t.Errorf("%q is %+v, and its spelling %q is %+v, %v", authority, got, got.authority(), again, ok)
		}
		if strings.Trim(got.authority(), "abcdefghijklmnopqrstuvwxyz0123456789-_.:[]") != "" || len(got.authority()) > maxName+6 {
			t.Errorf("%q has the spelling %q", authority, got.authority())
		}
		if (got.name == "") == (!got.addr.IsValid()) || got.addr.Zone() != "" || got.addr.Is4In6() || got.port == 0 {
			t.Errorf("%q is %+v", authority, got)
		}
	})
}

func TestPrintable(t *testing.T) {
	for in, want := range map[string]string{
		"a b\tc\x00d\x1b[0me\nf": "a?b?c?d?[0me?f",
		"bücher\xff":             "b?cher?",
		"user@host%2e":           "user@host%2e",
		strings.Repeat("a", 400): strings.Repeat("a", maxName),
	} {
		if got := printable(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}
