package gateway

import (
	"strings"
	"testing"

	"github.com/go-faster/errors"
)

func TestAllowed(t *testing.T) {
	for _, row := range []struct {
		allow     string // separated by spaces
		authority string
		want      bool
	}{
		{allow: "example.com", authority: "example.com", want: true},
		{allow: "example.com", authority: "example.com:443", want: true},
		{allow: "example.com", authority: "EXAMPLE.com.", want: true},
		{allow: "Example.COM.", authority: "example.com", want: true},
		{allow: "example.com", authority: "www.example.com"},
		{allow: "example.com", authority: "notexample.com"},
		{allow: "example.com", authority: "example.com.evil.test"},
		{allow: "example.com", authority: "example.co"},
		{allow: "example.com", authority: "com"},
		{allow: "", authority: "example.com"},

		{allow: "*.example.com", authority: "www.example.com", want: true},
		{allow: "*.example.com", authority: "a.b.c.example.com", want: true},
		{allow: "*.example.com", authority: "WWW.Example.Com.", want: true},
		{allow: "*.example.com", authority: "example.com"},
		{allow: "*.example.com", authority: "notexample.com"},
		{allow: "*.example.com", authority: "www.example.com.evil.test"},
		{allow: "*.example.com example.com", authority: "example.com", want: true},
		{allow: "a.test *.b.test c.test", authority: "c.test", want: true},
		{allow: "a.test *.b.test c.test", authority: "x.b.test", want: true},

		// A name at its two ports.
		{allow: "example.com", authority: "example.com:22"},
		{allow: "example.com", authority: "example.com:8443"},
		{allow: "*.example.com", authority: "www.example.com:8080"},
		{allow: "*.localhost", authority: "a.localhost:8080"},

		// An address as such, at any port.
		{allow: "192.0.2.7", authority: "192.0.2.7", want: true},
		{allow: "192.0.2.7", authority: "192.0.2.7:22", want: true},
		{allow: "192.0.2.7", authority: "[::ffff:192.0.2.7]:22", want: true},
		{allow: "::ffff:192.0.2.7", authority: "192.0.2.7", want: true},
		{allow: "192.0.2.7", authority: "192.0.2.8"},
		{allow: "2001:DB8::0:1", authority: "[2001:db8::1]:9", want: true},
		{allow: "2001:db8::1", authority: "[2001:db8::2]"},
		{allow: "192.0.2.7", authority: "[64:ff9b::c000:207]"},
		{allow: "192.0.2.7", authority: "[2002:c000:207::]"},
		{allow: "example.com", authority: "93.184.215.14"},

		// The loopback.
		{allow: "localhost", authority: "localhost:8080", want: true},
		{allow: "localhost", authority: "127.0.0.1:8080", want: true},
		{allow: "localhost", authority: "[::1]:8080", want: true},
		{allow: "localhost", authority: "127.0.0.2"},
		{allow: "localhost", authority: "a.localhost"},
		{allow: "127.0.0.1", authority: "localhost"},
		{allow: "127.0.0.1", authority: "[::1]"},
		{allow: "*.localhost", authority: "localhost"},
		{allow: "*.localhost", authority: "127.0.0.1"},
	} {
		list, err := parseAllow(strings.Fields(row.allow))
		if err != nil {
			t.Fatal(err)
		}
		target, ok := parseTarget(row.authority, portHTTP)
		if !ok {
			t.Fatalf("%s is no target", row.authority)
		}
		if refused := list.check(target); (refused == nil) != row.want {
			t.Errorf("[%s] and %s: %+v", row.allow, row.authority, refused)
		}
	}
}

func TestNewRefusesEntries(t *testing.T) {
	for _, entry := range []string{
		"", "*", "*.", "**.a.test", "*.*.a.test", "a.*.test", "*a.test", "*.1.2.3.4", "*.127.0.0.1", "*.::1", ".a.test", "a..test",
		"a.test:443", "http://a.test", "a.test/", "user@a.test", "bücher.test", "a b", " a.test", "[::1]", "fe80::1%eth0",
		"10.0.0.0/8", "127.1", "0x7f.1", "2130706433", "0.0.0.0", "::", "224.0.0.1", "ff02::1", "255.255.255.255", "::ffff:0.0.0.0",
	} {
		if _, err := New(Config{Allow: []string{"a.test", entry}}); !errors.Is(err, ErrAllow) {
			t.Errorf("%q: %v", entry, err)
		}
	}
	_, err := New(Config{Allow: []string{"a.test", "a.test:443"}})
	if want := `"a.test:443": not a host name, *. before one, or an IP address: no host that can be allowed`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}
