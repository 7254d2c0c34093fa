package gateway

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"

	"github.com/go-faster/errors"
)

// Client returns a client for requests that the server itself makes where the
// agent file allows it: each connection, that of a redirect too, is judged,
// observed and bounded as one of Serve is, and ends with the gateway. A request
// has a connection of its own. The client has no time limit but that of
// connecting: the context of a request sets it. One client of a gateway is
// enough; on a closed gateway every request fails.
//
// Errors of a request: ErrRefused; the context's.
func (g *Gateway) Client() *http.Client {
	d := newDoor(g, nil)
	close(d.ended) // Nobody serves it.
	if !g.add(d) {
		d.end()
	}
	return &http.Client{Transport: outward{&http.Transport{
		DialContext:            d.dial,
		DisableKeepAlives:      true,
		TLSHandshakeTimeout:    DialLimit,
		MaxResponseHeaderBytes: MaxAnswerHeaderBytes,
	}}}
}

// dial connects to where a request of a client leads.
func (d *door) dial(ctx context.Context, _, authority string) (net.Conn, error) {
	_, out, refused := d.reach(ctx, authority, 0)
	if refused != nil {
		return nil, errors.Wrap(ErrRefused, refused.why)
	}
	return newAsked(out), nil
}

// outward keeps what an error of net/http tells of the server's network from
// whoever asked.
type outward struct{ *http.Transport }

// RoundTrip implements http.RoundTripper.
func (o outward) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := o.Transport.RoundTrip(r)
	var certificate *tls.CertificateVerificationError
	switch {
	case err == nil:
		return answer, nil
	case r.Context().Err() != nil:
		return nil, r.Context().Err()
	case errors.Is(err, ErrRefused):
		return nil, err
	case errors.As(err, &certificate):
		return nil, errors.Wrapf(ErrRefused, "the certificate of %s is not valid: %v", r.URL.Hostname(), certificate.Err)
	case r.URL.Scheme != "http" && r.URL.Scheme != "https":
		return nil, errors.Wrap(ErrRefused, "only http and https addresses can be asked for")
	}
	return nil, errors.Wrapf(ErrRefused, "%s gave no usable answer", r.URL.Hostname())
}
