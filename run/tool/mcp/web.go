package mcp

import (
	"cmp"
	"context"
	"io"
	"net/http"
)

// tie returns a client whose requests end with life, and whose answers are
// bounded: the SDK reads them to their end.
func tie(client *http.Client, life context.Context) *http.Client { //nolint:revive // The context is what it is tied to, not the caller's.
	tied := *client
	tied.Transport = &tiedTransport{life: life, next: cmp.Or(client.Transport, http.DefaultTransport)}
	return &tied
}

type tiedTransport struct {
	life context.Context
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *tiedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(t.life, cancel)
	end := func() {
		stop()
		cancel()
	}
	resp, err := t.next.RoundTrip(req.WithContext(ctx))
	if err != nil {
		end()
		return nil, err
	}
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxMessage, end: end}
	return resp, nil
}

// boundedBody is the body of an answer, which must not be longer than left.
type boundedBody struct {
	io.ReadCloser
	left int
	end  func()
}

// Read implements io.Reader.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.left -= n; b.left < 0 {
		return n, errTooLong
	}
	return n, err
}

// Close implements io.Closer.
func (b *boundedBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
