package gateway

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-faster/errors"
)

// continueLimit is how long a server may take to ask for a body that a client
// holds back (Expect: 100-continue).
const continueLimit = time.Second

// errSecondDial cannot happen: one request, one connection.
var errSecondDial = errors.New("a second connection for one request")

// forward sends one plain request over a connection of its own, and its answer
// back.
func forward(w http.ResponseWriter, r *http.Request, t target, out *flow) {
	server := newAsked(out)
	defer server.Close()
	proxy := httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			// The query as it came: ReverseProxy has cleaned that of Out.
			u := *p.In.URL
			u.Host = t.authority()
			p.Out.URL, p.Out.Host = &u, u.Host
			p.Out.Close = true                                       // or a body is sent that the server has not asked for
			for _, name := range []string{"Connection", "Upgrade"} { // put back by ReverseProxy
				p.Out.Header.Del(name)
			}
		},
		Transport:     transport(server),
		FlushInterval: -1, // at once: the answer may be a stream of events
		ModifyResponse: func(*http.Response) error {
			// net/http would add these to an answer that has none.
			w.Header()["Date"], w.Header()["Content-Type"] = nil, nil
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) {
			answer(w, refuse(http.StatusBadGateway, fmt.Sprintf("%s gave no usable answer", t.host())))
		},
		ErrorLog: log.New(io.Discard, "", 0), // broken connections, which are not ours
	}
	proxy.ServeHTTP(w, r)
}

// transport is HTTP over one connection that is there already. It takes no
// proxy from the environment, and adds no header of its own.
func transport(server net.Conn) *http.Transport {
	var used atomic.Bool
	return &http.Transport{
		DialContext: func(context.Context, string, string) (net.Conn, error) {
			if used.Swap(true) {
				return nil, errSecondDial
			}
			return server, nil
		},
		DisableKeepAlives:      true,
		DisableCompression:     true,
		MaxResponseHeaderBytes: MaxAnswerHeaderBytes,
		ExpectContinueTimeout:  continueLimit,
	}
}

// asked is a connection to a server that is not heard before it is spoken to.
// net/http writes what one says unasked into the log of the process.
type asked struct {
	net.Conn
	once   sync.Once
	spoken chan struct{}
}

func newAsked(c net.Conn) *asked { return &asked{Conn: c, spoken: make(chan struct{})} }

// Read implements net.Conn.
func (a *asked) Read(p []byte) (int, error) {
	<-a.spoken
	return a.Conn.Read(p)
}

// Write implements net.Conn.
func (a *asked) Write(p []byte) (int, error) {
	a.once.Do(func() { close(a.spoken) })
	return a.Conn.Write(p)
}

// Close implements net.Conn, and lets a Read return.
func (a *asked) Close() error {
	err := a.Conn.Close()
	a.once.Do(func() { close(a.spoken) })
	return err
}
