package gateway

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
)

// naive is the positive control of these tests: a proxy that lets a request
// through when its header has the allowed name in it, and sends it to secret,
// which is where the attack leads.
func naive(t *testing.T, secret string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { pass(client, secret) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

func pass(client net.Conn, secret string) {
	defer client.Close()
	in := bufio.NewReader(client)
	var head strings.Builder
	for !strings.HasSuffix(head.String(), "\r\n\r\n") {
		b, err := in.ReadByte()
		if err != nil {
			return
		}
		head.WriteByte(b)
	}
	if !strings.Contains(head.String(), "site.test") {
		return
	}
	out, err := net.Dial("tcp", secret)
	if err != nil {
		return
	}
	defer out.Close()
	if strings.HasPrefix(head.String(), "CONNECT ") {
		_, _ = io.WriteString(client, established)
	} else {
		_, _ = io.WriteString(out, "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
	}
	go func() { _, _ = io.Copy(out, in) }()
	_, _ = io.Copy(client, out)
}

// attacked is a gateway that allows site.test, in a world where every other
// name and address leads to the secret.
type attacked struct {
	*proxy
	control string // the naive proxy
	hits    func() int
}

func newAttacked(t *testing.T) *attacked {
	t.Helper()
	addr, _ := site(t, "site")
	secret, hits := site(t, "secret")
	a := &attacked{proxy: start(t, nil, "site.test", "*.site.test"), control: naive(t, secret), hits: hits}
	a.g.lookup = func(_ context.Context, name string) ([]netip.Addr, error) {
		if name == "site.test" || strings.HasSuffix(name, ".site.test") {
			return []netip.Addr{siteAddr}, nil
		}
		return []netip.Addr{secretAddr}, nil
	}
	a.g.dial = func(ctx context.Context, to netip.AddrPort) (net.Conn, error) {
		real := secret
		if to.Addr() == siteAddr && (to.Port() == 80 || to.Port() == 443) {
			real = addr
		}
		return new(net.Dialer).DialContext(ctx, "tcp", real)
	}
	return a
}

const inside = "GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"

func TestOtherHostsAreOutOfReach(t *testing.T) {
	a := newAttacked(t)
	const header = " HTTP/1.1\r\nHost: site.test\r\n\r\n"
	for _, honest := range []string{"CONNECT site.test:443" + header + inside, "CONNECT a.b.Site.Test.:80" + header + inside, "GET http://site.test/" + header} {
		if got := exchange(t, a.addr, honest); !strings.HasSuffix(got, "site") {
			t.Fatalf("%q got %q: nothing gets through", honest, got)
		}
	}
	hosts := []string{
		// another host, with the allowed one in the Host header
		"evil.test", "93.184.215.99", "[2606:4700::99]", "localhost",
		// names that look like the allowed one
		"site.test.evil.test", "evilsite.test", "xsite.test", "site.tes", "site.test-evil.test", "site-test", "test",
		// credentials, paths and fragments in the place of a host
		"site.test@evil.test", "site.test:80@evil.test", "user:site.test@evil.test", "evil.test@site.test", "@evil.test", "evil.test#@site.test",
		"evil.test#.site.test", "evil.test?.site.test", `evil.test\.site.test`, "evil.test;site.test", "evil.test,site.test", "evil.test&site.test",
		// what some parsers drop, cut off or decode
		"evil.test%00.site.test", "evil.test%2f.site.test", "evil.test%23.site.test", "evil.test%40site.test", "site%2etest.evil.test", "%65vil.test",
		"evil.test%20.site.test", "evil.test\t.site.test", "evil.test\x00.site.test", "evil.test\x0b.site.test", "evil.test\u00a0.site.test",
		"evil\u3002test", "\uff45vil.test", "evil.test\u2044.site.test", "s\u0456te.test", "site.test\u00ad.evil.test", "evil.test\xff.site.test",
		// empty labels and brackets
		"site..test", ".site.test.evil.test", "evil.test..", "site.test...", "[site.test]", "[evil.test]", "[::1%25.site.test]", "[::1].site.test",
		// addresses that only some resolvers know as such
		"2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "127.1", "127.0.0.1.", "1572395363", "0x5db8d763", "93.184.55139", "0135.0270.0327.0143",
		"[::ffff:93.184.215.99]", "[::ffff:5db8:d763]", "[64:ff9b::5db8:d763]", "[2002:5db8:d763::]", "[::93.184.215.99]", "[0:0:0:0:0:ffff:5db8:d763]",
	}
	var attacks []string
	for _, host := range hosts {
		attacks = append(attacks, "CONNECT "+host+":443"+header+inside, "GET http://"+host+"/"+header, "GET http://"+host+":80/"+header)
	}
	attacks = append(attacks,
		// ports where an allowed name is not a site
		"CONNECT site.test:22"+header+inside, "CONNECT site.test:25"+header+inside, "GET http://site.test:6379/"+header, "CONNECT www.site.test:8080"+header+inside,
		"CONNECT site.test:65979"+header+inside, // 443 in sixteen bits
		// other kinds of request
		"CONNECT evil.test:443/site.test"+header+inside, "CONNECT //evil.test:443"+header+inside, "CONNECT http://evil.test:443/"+header+inside, "CONNECT evil.test:443:443"+header+inside,
		"GET https://evil.test/"+header, "GET //evil.test/"+header, "GET http:///evil.test/"+header, "GET http:evil.test"+header, "GET /http://evil.test/"+header,
		"GET http://evil.test/ HTTP/1.0\r\nHost: site.test\r\n\r\n", "GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\nX-Forwarded-Host: site.test\r\n\r\n",
		"GET http://evil.test/ HTTP/1.1\r\nHost: evil.test\r\nHost: site.test\r\n\r\n", "GET http://evil.test/ HTTP/1.1\r\nHost : site.test\r\n\r\n",
		"GET http://evil.test/ HTTP/1.1\r\n Host: site.test\r\n\r\n", "GET http://evil.test/\tHTTP/1.1\r\nHost: site.test\r\n\r\n",
		"GET http://evil.test/ http://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n", "GET http://evil.test/\nHost: site.test\r\n\r\n",
	)
	worked := 0
	for _, attack := range attacks {
		before := a.hits()
		if got := exchange(t, a.addr, attack); strings.Contains(got, "secret") || a.hits() != before {
			t.Errorf("%q got %q", attack, got)
		}
		if got := exchange(t, a.control, attack); strings.Contains(got, "secret") && a.hits() == before+1 {
			worked++
		} else {
			t.Errorf("control: %q got %q", attack, got)
		}
	}
	if got := exchange(t, a.addr, "GET http://site.test/"+header); !strings.HasSuffix(got, "site") {
		t.Errorf("after the attacks the site answers %q", got)
	}
	t.Logf("%d injected, %d survived; %d of them work without the protection", len(attacks), len(attacks), worked)
}

// Whatever one makes of the length of a request, what follows it is no other
// request: neither to the gateway nor to the server.
func TestNoRequestInsideAnother(t *testing.T) {
	a := newAttacked(t)
	const evil = "GET http://evil.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n"
	const site = " http://site.test/ HTTP/1.1\r\nHost: site.test\r\n"
	for _, attack := range []string{
		"GET" + site + "\r\n" + evil,
		"GET" + site + "Connection: keep-alive\r\n\r\n" + evil,
		"POST" + site + "Content-Length: 0\r\n\r\n" + evil,
		"POST" + site + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + evil,
		"POST" + site + "Transfer-Encoding: chunked\r\nContent-Length: 200\r\n\r\n0\r\n\r\n" + evil,
		"POST" + site + "Content-Length: 0\r\nContent-Length: 53\r\n\r\n" + evil,
		"POST" + site + "Content-Length: 0, 53\r\n\r\n" + evil,
		"POST" + site + "Content-Length: +0\r\n\r\n" + evil,
		"POST" + site + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n" + evil,
		"POST" + site + "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n" + evil,
		"POST" + site + "Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n" + evil,
		"POST" + site + "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + evil,
		"POST" + site + "X: y\r\n Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + evil,
		"POST" + site + "Connection: Content-Length\r\nContent-Length: 0\r\n\r\n" + evil,
		"POST" + site + "Connection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + evil,
		"GET" + site + "Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABk\r\n\r\n" + evil,
		"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + evil,
	} {
		got := exchange(t, a.addr, attack)
		if n := strings.Count(got, "HTTP/1."); n != 1 || strings.Contains(got, "secret") {
			t.Errorf("%q got %d answers: %q", attack, n, got)
		}
	}
	if a.hits() != 0 {
		t.Errorf("%d requests arrived", a.hits())
	}
	// Control: alone, and through a proxy that looks at nothing, it does arrive.
	if got := exchange(t, a.control, evil); !strings.HasSuffix(got, "secret") || a.hits() != 1 {
		t.Errorf("the control got %q", got)
	}
}

// A name leads to public addresses only, whatever its owner says.
func TestNamesDoNotLeadInside(t *testing.T) {
	addr, _ := site(t, "site")
	secret, hits := site(t, "secret")
	const request = "GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n"
	refused := 0
	for _, inner := range []string{
		"127.0.0.1", "127.8.8.8", "::1", "0.0.0.0", "::", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1", "169.254.169.254", "fe80::1", "fd00:ec2::254",
		"::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::1", "2001:0:5db8:d70e:8000:63bf:80ff:fffe",
		"::127.0.0.1", "224.0.0.1", "255.255.255.255", "198.18.0.1", "192.0.2.1", "ff02::1", "198.51.100.7", "93.184.215.77", "64:ff9b::5db8:d74d",
	} {
		at := netip.MustParseAddr(inner)
		outside := newWorld(addr)
		outside.names["site.test"] = []netip.Addr{at}
		outside.at[at.Unmap()] = secret
		reach := func(allow ...string) (string, []netip.AddrPort) {
			p := start(t, outside, allow...)
			// The last two are not private: they are this machine's own.
			p.g.own = func() ([]netip.Addr, error) { return []netip.Addr{netip.MustParseAddr("93.184.215.77")}, nil }
			got := exchange(t, p.addr, request)
			p.g.Close()
			_, dialled := outside.seen()
			return got, dialled
		}
		if got, dialled := reach("site.test", "*.test", "10.1.2.4", "localhost.site.test"); !strings.Contains(got, "leads to a private or reserved address") || len(dialled) != 0 {
			t.Errorf("%s: got %q, dialled %v", inner, got, dialled)
			continue
		}
		refused++
		if !connectable(at) {
			continue
		}
		// Control: with the address in the list, it is one that can be reached.
		if got, dialled := reach("site.test", inner); !strings.HasSuffix(got, "secret") || len(dialled) != 1 || dialled[0].Addr() != at.Unmap() {
			t.Errorf("%s in the list: got %q, dialled %v", inner, got, dialled)
		}
	}
	if hits() == 0 {
		t.Error("the control reached nothing")
	}
	t.Logf("%d injected, %d survived; the control reached %d", refused, refused, hits())
}

// connectable says whether an address can be in a list at all.
func connectable(addr netip.Addr) bool {
	_, err := parseAllow([]string{addr.String()})
	return err == nil
}

func TestOneGoodAddressIsEnough(t *testing.T) {
	addr, _ := site(t, "site")
	outside := newWorld(addr)
	outside.names["site.test"] = []netip.Addr{
		netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("::1"), secretAddr, siteAddr, netip.MustParseAddr("93.184.215.15"),
	}
	if _, body := start(t, outside, "site.test").get("http://site.test/"); body != "site" {
		t.Errorf("got %q", body)
	}
	if _, dialled := outside.seen(); len(dialled) != 2 || dialled[0].Addr() != secretAddr || dialled[1].Addr() != siteAddr {
		t.Errorf("dialled %v", dialled)
	}
}

func TestAddressesTriedAreBounded(t *testing.T) {
	outside := newWorld("")
	outside.names["site.test"] = nil
	for i := range 100 {
		outside.names["site.test"] = append(outside.names["site.test"], netip.AddrFrom4([4]byte{93, 184, 216, byte(i)}))
	}
	if status, body := start(t, outside, "site.test").get("http://site.test/"); status != http.StatusBadGateway {
		t.Errorf("%d %q", status, body)
	}
	if _, dialled := outside.seen(); len(dialled) != maxAddresses {
		t.Errorf("%d addresses were tried", len(dialled))
	}
}

// Without this machine's own addresses nothing can be told apart from them.
func TestUnknownOwnAddressesFailClosed(t *testing.T) {
	addr, hits := site(t, "site")
	p := start(t, newWorld(addr), "site.test")
	p.g.own = func() ([]netip.Addr, error) { return nil, io.ErrUnexpectedEOF }
	if status, body := p.get("http://site.test/"); status != http.StatusBadGateway || hits() != 0 {
		t.Errorf("%d %q", status, body)
	}
}

// A resolver that answers differently the second time (DNS rebinding) is asked
// only once: the connection goes to the address that was judged.
func TestNoSecondLookup(t *testing.T) {
	addr, _ := site(t, "site")
	secret, hits := site(t, "secret")
	rebinding := func() func(context.Context, string) ([]netip.Addr, error) {
		var mu sync.Mutex
		asked := 0
		return func(context.Context, string) ([]netip.Addr, error) {
			mu.Lock()
			defer mu.Unlock()
			if asked++; asked%2 == 1 {
				return []netip.Addr{siteAddr}, nil
			}
			return loopback[:1], nil
		}
	}
	outside := newWorld(addr)
	outside.at[loopback[0]] = secret

	// Control: whoever judges one answer and dials by another one is led inside.
	lookup := rebinding()
	judged, _ := lookup(t.Context(), "site.test")
	dialled, _ := lookup(t.Context(), "site.test")
	if !public(judged[0]) {
		t.Fatalf("the control refused %v", judged)
	}
	nc, err := outside.dial(t.Context(), netip.AddrPortFrom(dialled[0], 80))
	if err != nil {
		t.Fatal(err)
	}
	control := newPeer(t, nc)
	control.send(inside)
	if got := control.rest(); !strings.HasSuffix(got, "secret") {
		t.Fatalf("the control got %q", got)
	}
	_ = nc.Close()

	for _, request := range []string{"GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n", "CONNECT site.test:443 HTTP/1.1\r\n\r\n" + inside} {
		p := start(t, outside, "site.test")
		p.g.lookup = rebinding()
		if got := exchange(t, p.addr, request); !strings.HasSuffix(got, "site") {
			t.Errorf("first: got %q", got)
		}
		// The second connection gets the second answer, which is judged anew.
		if got := exchange(t, p.addr, request); !strings.Contains(got, "403 Forbidden") {
			t.Errorf("second: got %q", got)
		}
	}
	if hits() != 1 {
		t.Errorf("the secret was reached %d times, once by the control", hits())
	}
}

// A name that is not allowed is not looked up: a lookup is a message, too.
func TestRefusedNamesAreNotLookedUp(t *testing.T) {
	outside := newWorld("")
	p := start(t, outside, "site.test", "localhost")
	for _, line := range []string{
		"GET http://data.evil.test/", "CONNECT data.evil.test:443", "CONNECT data.site.test:443", "CONNECT site.test:22", "CONNECT 127.0.0.1:80", "CONNECT localhost:80", "CONNECT [::1]:80",
	} {
		exchange(t, p.addr, line+" HTTP/1.1\r\nHost: site.test\r\n\r\n")
	}
	if looked, _ := outside.seen(); len(looked) != 0 {
		t.Errorf("looked up %q", looked)
	}
	exchange(t, p.addr, "CONNECT site.test:443 HTTP/1.1\r\n\r\n")
	if looked, _ := outside.seen(); len(looked) != 1 {
		t.Errorf("the control looked up %q", looked)
	}
}
