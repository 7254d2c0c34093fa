package gateway

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

func TestPlainRequest(t *testing.T) {
	addr, _ := site(t, "hello")
	p := start(t, nil, "127.0.0.1")
	if status, body := p.get("http://" + addr + "/a?b=c"); status != http.StatusOK || body != "hello" {
		t.Errorf("%d %q", status, body)
	}
	_, port, _ := net.SplitHostPort(addr)
	want := []Attempt{{Host: "127.0.0.1", Port: netip.MustParseAddrPort("127.0.0.1:" + port).Port(), Allowed: true}}
	if diff := cmp.Diff(want, p.observed()); diff != "" {
		t.Error(diff)
	}
}

func TestPlainRequestToLocalhost(t *testing.T) {
	addr, _ := site(t, "hello")
	_, port, _ := net.SplitHostPort(addr)
	p := start(t, nil, "localhost")
	// A client sends localhost to no proxy by itself, so this one is told to.
	for _, host := range []string{"localhost", "LOCALHOST.", "127.0.0.1"} {
		got := exchange(t, p.addr, "GET http://"+host+":"+port+"/ HTTP/1.1\r\nHost: x\r\n\r\n")
		if !strings.HasPrefix(got, "HTTP/1.1 200 OK\r\n") || !strings.HasSuffix(got, "hello") {
			t.Errorf("%s: %q", host, got)
		}
	}
}

func TestPlainRequestToAName(t *testing.T) {
	addr, _ := site(t, "hello")
	outside := newWorld(addr)
	p := start(t, outside, "site.test", "*.site.test")
	for _, address := range []string{"http://site.test", "http://WWW.site.test.:80/x", "http://www.site.test/"} {
		if status, body := p.get(address); status != http.StatusOK || body != "hello" {
			t.Errorf("%s: %d %q", address, status, body)
		}
	}
	looked, dialled := outside.seen()
	if diff := cmp.Diff([]string{"site.test", "www.site.test", "www.site.test"}, looked); diff != "" {
		t.Error(diff)
	}
	to := netip.AddrPortFrom(siteAddr, 80)
	if !slices.Equal(dialled, []netip.AddrPort{to, to, to}) {
		t.Errorf("dialled %v", dialled)
	}
}

// What a server gets is what the client sent: nothing tells of this server.
func TestPlainRequestAsItArrives(t *testing.T) {
	addr, accept := listen(t)
	p := start(t, newWorld(addr), "site.test")
	for _, row := range []struct{ name, sent, want string }{
		{
			name: "bare",
			sent: "GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n",
			want: "GET / HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n",
		},
		{
			name: "the Host is the URL's",
			sent: "GET http://SITE.test.:80 HTTP/1.1\r\nHost: elsewhere.test\r\n\r\n",
			want: "GET / HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n",
		},
		{
			name: "another port",
			sent: "GET http://site.test:443/ HTTP/1.1\r\nHost: site.test\r\n\r\n",
			want: "GET / HTTP/1.1\r\nHost: site.test:443\r\nConnection: close\r\n\r\n",
		},
		{
			name: "the path and the query untouched",
			sent: "GET http://site.test//a/../%2e%2F?a;b&%zz=1&c HTTP/1.1\r\nHost: site.test\r\n\r\n",
			want: "GET //a/../%2e%2F?a;b&%zz=1&c HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n",
		},
		{
			name: "the client's own headers",
			sent: "GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\nAuthorization: Bearer mine\r\nCookie: a=b\r\nUser-Agent: it\r\nVia: its\r\n\r\n",
			want: "GET / HTTP/1.1\r\nHost: site.test\r\nUser-Agent: it\r\nConnection: close\r\nAuthorization: Bearer mine\r\nCookie: a=b\r\nVia: its\r\n\r\n",
		},
		{
			name: "hop by hop and forwarding headers",
			sent: "GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\nProxy-Authorization: Basic x\r\nProxy-Connection: keep-alive\r\n" +
				"Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nKeep-Alive: 5\r\nTe: gzip\r\nUpgrade: websocket\r\nForwarded: for=1\r\nX-Forwarded-For: 1\r\n" +
				"X-Forwarded-Host: a\r\nX-Forwarded-Proto: b\r\nX-End: 2\r\n\r\n",
			want: "GET / HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\nX-End: 2\r\n\r\n",
		},
		{
			name: "an upgrade",
			sent: "GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
			want: "GET / HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\n\r\n",
		},
		{
			name: "a body",
			sent: "POST http://site.test/ HTTP/1.1\r\nHost: site.test\r\nContent-Length: 3\r\n\r\nabc",
			want: "POST / HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc",
		},
		{
			name: "a body in pieces",
			sent: "PUT http://site.test/ HTTP/1.1\r\nHost: site.test\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\n\r\n",
			want: "PUT / HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			client := connect(t, p.addr)
			client.send(row.sent)
			server := accept()
			server.expect(row.want)
			server.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			if got := client.rest(); got != "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok" {
				t.Errorf("the client got %q", got)
			}
			_ = server.Close()
		})
	}
}

// What a client gets is what the server sent, but for hop-by-hop headers.
func TestPlainAnswerAsItArrives(t *testing.T) {
	addr, accept := listen(t)
	p := start(t, newWorld(addr), "site.test")
	const failed = "HTTP/1.1 502 Bad Gateway\r\nContent-Length: 42\r\nContent-Type: text/plain; charset=utf-8\r\nConnection: close\r\n\r\n" +
		"agentrun: site.test gave no usable answer\n"
	for _, row := range []struct{ name, sent, want string }{
		{
			name: "headers",
			sent: "HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\nSet-Cookie: a=b\r\nKeep-Alive: 5\r\nConnection: X-Hop\r\nX-Hop: 1\r\nServer: it\r\n\r\nx",
			want: "HTTP/1.1 404 Not Found\r\nContent-Length: 1\r\nServer: it\r\nSet-Cookie: a=b\r\nConnection: close\r\n\r\nx",
		},
		{
			name: "trailers",
			sent: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n\r\n1\r\nx\r\n0\r\nX-Sum: 1\r\n\r\n",
			want: "HTTP/1.1 200 OK\r\nTrailer: X-Sum\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\nX-Sum: 1\r\n\r\n",
		},
		{name: "a hint before", sent: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n",
			want: "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"},
		{name: "no HTTP", sent: "220 mail.internal.test ESMTP\r\n", want: failed},
		{name: "nothing", sent: "", want: failed},
		{name: "two lengths", sent: "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx", want: failed},
		{name: "an upgrade unasked", sent: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n", want: failed},
		{name: "an upgrade to nothing", sent: "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\r\n", want: failed},
		{name: "a bare 101", sent: "HTTP/1.1 101 Switching Protocols\r\n\r\n", want: failed},
		{name: "a long header", sent: "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", MaxAnswerHeaderBytes) + "\r\n\r\n", want: failed},
	} {
		t.Run(row.name, func(t *testing.T) {
			client := connect(t, p.addr)
			client.send("GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n")
			server := accept()
			server.expect("GET / HTTP/1.1\r\n")
			_, _ = io.WriteString(server, row.sent)
			_ = server.CloseWrite()
			if got := undated(client.rest()); got != row.want {
				t.Errorf("got  %q\nwant %q", got, row.want)
			}
			_ = server.Close()
		})
	}
}

// undated is an answer without the header that net/http adds to our own.
func undated(answer string) string {
	return regexp.MustCompile("Date: [^\r]*GMT\r\n").ReplaceAllString(answer, "")
}

// A stream arrives as it is sent, and a cut answer is no whole one.
func TestPlainAnswerStreams(t *testing.T) {
	addr, accept := listen(t)
	p := start(t, newWorld(addr), "site.test")
	client := connect(t, p.addr)
	client.send("GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n")
	server := accept()
	server.expect("GET / HTTP/1.1\r\n")
	server.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
	client.expect("HTTP/1.1 200 OK\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
	server.send("3\r\ntwo\r\n")
	client.expect("3\r\ntwo\r\n")
	_ = server.Close()
	if got := client.rest(); got != "" {
		t.Errorf("after the cut: %q", got)
	}

	client = connect(t, p.addr)
	client.send("GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n")
	server = accept()
	server.expect("GET / HTTP/1.1\r\n")
	server.send("HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\none")
	client.expect("HTTP/1.1 200 OK\r\nContent-Length: 6\r\nConnection: close\r\n\r\none")
	server.send("two")
	client.expect("two")
}

// A client that holds its body back sends it when the server asks for it.
func TestHeldBackBody(t *testing.T) {
	addr, accept := listen(t)
	p := start(t, newWorld(addr), "site.test")
	const head = "POST / HTTP/1.1\r\nHost: site.test\r\nConnection: close\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n"
	const answered = "HTTP/1.1 413 Request Entity Too Large\r\nContent-Length: 0\r\n"
	const more = "HTTP/1.1 100 Continue\r\n\r\n"
	for _, wanted := range []bool{true, false} {
		client := connect(t, p.addr)
		client.send("POST http://site.test/ HTTP/1.1\r\nHost: site.test\r\nContent-Length: 4\r\nExpect: 100-continue\r\n\r\n")
		server := accept()
		server.expect(head)
		if !wanted {
			server.send(answered + "\r\n")
			client.expect(answered + "Connection: close\r\n\r\n")
			continue
		}
		server.send(more)
		client.expect(more)
		client.send("body")
		server.expect("body")
		server.send(answered + "\r\n")
		// net/http and httputil both pass the server's wish on, if they do so at once.
		if got := strings.TrimPrefix(client.rest(), more); got != answered+"Connection: close\r\n\r\n" {
			t.Errorf("got %q", got)
		}
	}
}

// A server is not heard before it is asked: net/http would log what it says.
func TestServerIsHeardWhenAsked(t *testing.T) {
	for name, speak := range map[string]func(*asked){
		"asked":  func(a *asked) { _, _ = a.Write([]byte("?")) },
		"closed": func(a *asked) { _ = a.Close() },
	} {
		inBubble(t, func(b *bubble) {
			ours, theirs := net.Pipe()
			go func() { _, _ = io.Copy(theirs, theirs) }()
			out, _ := newDoor(b.g, b.l).track(ours, func() {})
			f := newFlow(out, nil)
			a := newAsked(f)
			heard := make(chan int, 1)
			go func() {
				n, _ := a.Read(make([]byte, 1))
				heard <- n
			}()
			synctest.Wait()
			select {
			case <-heard:
				t.Errorf("%s: heard too early", name)
			default:
			}
			speak(a)
			if n := <-heard; n != strings.Count(name, "asked") {
				t.Errorf("%s: heard %d bytes", name, n)
			}
			f.end()
		})
	}
	// An answer that comes early is one all the same.
	addr, accept := listen(t)
	p := start(t, newWorld(addr), "site.test")
	client := connect(t, p.addr)
	client.send("GET http://site.test/ HTTP/1.1\r\nHost: site.test\r\n\r\n")
	server := accept()
	server.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nearly and more")
	if got := client.rest(); !strings.HasSuffix(got, "\r\n\r\nearly") {
		t.Errorf("got %q", got)
	}
}

func TestTunnelOfTLS(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, r.Proto+" "+r.Host)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	p := start(t, newWorld(server.Listener.Addr().String()), "example.com", "127.0.0.1")
	p.g.lookup = func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{siteAddr}, nil }
	for _, row := range []struct {
		http2 bool
		want  string
	}{{http2: false, want: "HTTP/1.1 example.com"}, {http2: true, want: "HTTP/2.0 example.com"}} {
		// The certificate of httptest is for example.com, and is checked.
		transport := server.Client().Transport.(*http.Transport).Clone()
		transport.Proxy = http.ProxyURL(&url.URL{Scheme: "http", Host: p.addr})
		transport.DialContext = nil // httptest's leads example.com to its server
		transport.ForceAttemptHTTP2 = row.http2
		if !row.http2 {
			transport.TLSClientConfig.NextProtos = nil
		}
		answer, err := (&http.Client{Transport: transport, Timeout: patience}).Get("https://example.com/")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		if _ = answer.Body.Close(); err != nil || string(body) != row.want {
			t.Errorf("%q, %v, want %q", body, err, row.want)
		}
		transport.CloseIdleConnections()
	}
	want := Attempt{Host: "example.com", Port: 443, Allowed: true}
	if diff := cmp.Diff([]Attempt{want, want}, p.observed()); diff != "" {
		t.Error(diff)
	}
}

func TestRefusalsSayWhatIsAllowed(t *testing.T) {
	addr, hits := site(t, "hello")
	outside := newWorld(addr)
	outside.names["inner.site.test"] = []netip.Addr{netip.MustParseAddr("10.0.0.7")}
	outside.names["gone.site.test"] = []netip.Addr{netip.MustParseAddr("93.184.215.50")}
	p := start(t, outside, "site.test", "*.site.test", "192.0.2.1")
	const (
		notProxied = "this is a proxy: it takes CONNECT host:443 and requests for http://host/, without a user name"
		notPlain   = "neither a host name in ASCII nor an IP address in its usual form, or no port from 1 to 65535"
	)
	for _, row := range []struct {
		line   string
		status string
		why    string
		seen   *Attempt // its Why is the row's
	}{
		{line: "GET http://evil.test/", status: "403 Forbidden", why: "the agent file does not allow evil.test (network: allow)", seen: &Attempt{Host: "evil.test", Port: 80}},
		{line: "CONNECT EVIL.test.:443", status: "403 Forbidden", why: "the agent file does not allow evil.test (network: allow)", seen: &Attempt{Host: "evil.test", Port: 443}},
		{line: "CONNECT [2001:db8::1]:443", status: "403 Forbidden", why: "the agent file does not allow 2001:db8::1 (network: allow)", seen: &Attempt{Host: "2001:db8::1", Port: 443}},
		{line: "CONNECT site.test:22", status: "403 Forbidden", why: "the agent file allows site.test at ports 80 and 443 only, not 22", seen: &Attempt{Host: "site.test", Port: 22}},
		{line: "GET http://site.test:8080/", status: "403 Forbidden", why: "the agent file allows site.test at ports 80 and 443 only, not 8080", seen: &Attempt{Host: "site.test", Port: 8080}},
		{line: "CONNECT inner.site.test:443", status: "403 Forbidden", seen: &Attempt{Host: "inner.site.test", Port: 443},
			why: "inner.site.test leads to a private or reserved address, which the agent file does not list (network: allow)"},
		{line: "CONNECT none.site.test:443", status: "502 Bad Gateway", why: "none.site.test cannot be reached: no such name", seen: &Attempt{Host: "none.site.test", Port: 443, Allowed: true}},
		{line: "GET http://none.site.test/", status: "502 Bad Gateway", why: "none.site.test cannot be reached: no such name", seen: &Attempt{Host: "none.site.test", Port: 80, Allowed: true}},
		{line: "CONNECT gone.site.test:443", status: "502 Bad Gateway", why: "gone.site.test cannot be reached: connection refused", seen: &Attempt{Host: "gone.site.test", Port: 443, Allowed: true}},
		{line: "CONNECT 192.0.2.1:22", status: "502 Bad Gateway", why: "192.0.2.1 cannot be reached: connection refused", seen: &Attempt{Host: "192.0.2.1", Port: 22, Allowed: true}},
		{line: "CONNECT 127.1:443", status: "400 Bad Request", why: notPlain, seen: &Attempt{Host: "127.1:443"}},
		{line: "CONNECT site.test", status: "400 Bad Request", why: notPlain, seen: &Attempt{Host: "site.test"}},
		{line: "CONNECT a@site.test:443", status: "400 Bad Request", why: notPlain, seen: &Attempt{Host: "a@site.test:443"}},
		{line: "CONNECT http://site.test/", status: "400 Bad Request", why: notPlain, seen: &Attempt{Host: "http://site.test/"}},
		{line: "CONNECT /site.test:443", status: "400 Bad Request", why: notPlain, seen: &Attempt{Host: "/site.test:443"}},
		{line: "GET http://site%C3%A4.test/", status: "400 Bad Request", why: notPlain, seen: &Attempt{Host: "site?.test"}},
		{line: "GET /", status: "400 Bad Request", why: notProxied},
		{line: "GET https://site.test/", status: "400 Bad Request", why: notProxied},
		{line: "GET ftp://site.test/", status: "400 Bad Request", why: notProxied},
		{line: "GET file:///etc/passwd", status: "400 Bad Request", why: notProxied},
		{line: "GET http://user:word@site.test/", status: "400 Bad Request", why: notProxied},
		{line: "GET http://@site.test/", status: "400 Bad Request", why: notProxied},
		{line: "GET http:///path", status: "400 Bad Request", why: notProxied},
		{line: "GET http:site.test", status: "400 Bad Request", why: notProxied},
		{line: "GET //site.test/", status: "400 Bad Request", why: notProxied},
		{line: "OPTIONS *", status: "400 Bad Request", why: notProxied},
		{line: "connect site.test:443", status: "400 Bad Request", why: notProxied},
	} {
		before := len(p.observed())
		got := exchange(t, p.addr, row.line+" HTTP/1.1\r\nHost: site.test\r\n\r\n")
		head, body, _ := strings.Cut(got, "\r\n\r\n")
		if !strings.HasPrefix(head, "HTTP/1.1 "+row.status+"\r\n") || body != "agentrun: "+row.why+"\n" {
			t.Errorf("%s: got %q, want %s with %q", row.line, got, row.status, row.why)
		}
		var want []Attempt
		if row.seen != nil {
			row.seen.Why = row.why
			want = []Attempt{*row.seen}
		}
		if seen := p.observed()[before:]; !slices.Equal(seen, want) {
			t.Errorf("%s: observed %+v, want %+v", row.line, seen, want)
		}
	}
	if hits() != 0 {
		t.Errorf("%d requests arrived", hits())
	}
	if got := exchange(t, p.addr, "CONNECT site.test:443 HTTP/1.1\r\nContent-Length: 1\r\n\r\nx"); !strings.Contains(got, "agentrun: CONNECT has no body\n") {
		t.Errorf("got %q", got)
	}
}

// A failure names its kind, and nothing of the network that it happened in.
func TestFailuresNameNoAddress(t *testing.T) {
	hidden := &net.TCPAddr{IP: net.IPv4(10, 9, 8, 7), Port: 6543}
	for _, row := range []struct {
		err  error
		want string
	}{
		{err: &net.DNSError{Err: "no such host", Name: "site.test", Server: "10.9.8.7:53", IsNotFound: true}, want: "no such name"},
		{err: &net.DNSError{Err: "i/o timeout", Server: "10.9.8.7:53", IsTimeout: true}, want: "no answer in time"},
		{err: &net.DNSError{Err: "server misbehaving", Server: "10.9.8.7:53"}, want: "the name could not be resolved"},
		{err: &net.OpError{Op: "dial", Addr: hidden, Err: unix.ECONNREFUSED}, want: "connection refused"},
		{err: &net.OpError{Op: "dial", Addr: hidden, Err: unix.ENETUNREACH}, want: "no way there"},
		{err: &net.OpError{Op: "dial", Addr: hidden, Err: context.DeadlineExceeded}, want: "no answer in time"},
		{err: errors.Wrap(context.DeadlineExceeded, "10.9.8.7"), want: "no answer in time"},
		{err: context.Canceled, want: "given up"},
		{err: errors.New("10.9.8.7"), want: "no way there"},
	} {
		got := unreachable(target{name: "site.test"}, row.err)
		if want := "site.test cannot be reached: " + row.want; got.why != want || got.status != http.StatusBadGateway {
			t.Errorf("%v: %+v, want %q", row.err, got, want)
		}
	}
}

// The environment of the server names a proxy, which is not the agent's.
func TestServersOwnProxyIsNotUsed(t *testing.T) {
	addr, _ := site(t, "hello")
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://site.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	control := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true}
	answer, err := control.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	body, _ := io.ReadAll(answer.Body)
	if _ = answer.Body.Close(); string(body) != "trap" {
		t.Fatalf("the control got %q: the environment names no proxy", body)
	}
	if _, got := start(t, newWorld(addr), "site.test").get("http://site.test/"); got != "hello" {
		t.Errorf("got %q", got)
	}
}
