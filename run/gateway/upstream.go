package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-faster/errors"
	"go.uber.org/zap"

	"agentrun/run/model"
)

// upstreamTransport makes requests to providers. It goes by the server's own
// proxy settings, as the clients of model agents do: the operator configured
// both. It keeps no connection of a request that ended.
func upstreamTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: DialLimit}).DialContext,
		TLSHandshakeTimeout:    DialLimit,
		ForceAttemptHTTP2:      true,
		MaxResponseHeaderBytes: MaxAnswerHeaderBytes,
		IdleConnTimeout:        IdleLimit,
		DisableCompression:     true, // or nothing could be counted
	}
}

// serveModel answers a request to a model.
func (d *door) serveModel(w http.ResponseWriter, r *http.Request, client *conn) {
	g := d.gateway
	a, refused := g.asked(r)
	if refused != nil {
		refused.write(w, a.provider.Dialect)
		return
	}
	done, refused := a.read(w, r, g)
	defer done()
	if refused == nil && a.model != "" && g.cfg.Models.Permit != nil {
		refused = g.denial(g.cfg.Models.Permit(r.Context(), a.model))
	}
	if refused != nil {
		refused.write(w, a.provider.Dialect)
		return
	}
	turn := time.NewTimer(DialLimit)
	defer turn.Stop()
	select {
	case g.ways <- struct{}{}:
		defer func() { <-g.ways }()
	case <-r.Context().Done():
		return
	case <-turn.C:
		deny(http.StatusServiceUnavailable, "busy", fmt.Sprintf("%d connections are open already, the most there may be", MaxConnections)).
			write(w, a.provider.Dialect)
		return
	}
	settle := func(Call) error { return nil }
	if !a.endpoint.free && g.cfg.Models.Reserve != nil {
		var err error
		if settle, err = g.cfg.Models.Reserve(r.Context(), a.model, a.most()); err != nil {
			g.denial(err).write(w, a.provider.Dialect)
			return
		}
	}
	x := &relay{gateway: g, question: a, client: client, counter: counter{}, scrubber: newScrubber(a.provider.Key), settle: settle}
	x.serve(w, r)
}

// denial is what a program is told of an error of Permit or Reserve; nil of none.
func (g *Gateway) denial(err error) *denial {
	if err == nil {
		return nil
	}
	refused, ours := denialOf(err)
	if ours {
		g.cfg.Log.Error("gateway: models", zap.Error(err))
	}
	return refused
}

// relay is one request to a provider and its answer.
type relay struct {
	gateway  *Gateway
	question *question
	client   *conn
	counter  counter
	scrubber *scrubber
	settle   func(Call) error
	settled  bool
	status   int
	// sent is true once the provider can have begun to work, and lost when it did
	// so and was not heard.
	sent atomic.Bool
	lost bool
}

func (x *relay) serve(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	// Whatever happens, what was reserved is settled.
	defer func() { _ = x.end(false) }()
	idle := time.AfterFunc(IdleLimit, cancel)
	defer idle.Stop()
	request, err := x.request(ctx, r)
	if err != nil {
		deny(http.StatusBadRequest, "invalid_request", "the request cannot be passed on").write(w, x.question.provider.Dialect)
		return
	}
	// No client of net/http, which would follow redirects.
	answer, err := x.gateway.upstream.RoundTrip(request)
	if err == nil {
		defer answer.Body.Close()
		x.status = answer.StatusCode
		err = x.check(answer)
	}
	if err != nil {
		x.lost = answer == nil && x.sent.Load()
		if x.end(false) == nil {
			deny(http.StatusBadGateway, "provider_unreachable", x.why(err)).write(w, x.question.provider.Dialect)
		}
		return
	}
	x.pass(w, answer, idle)
}

// check refuses answers that no program can use. What a provider says of a key
// that it does not know can be parts of the key.
func (x *relay) check(answer *http.Response) error {
	switch {
	case answer.StatusCode == http.StatusUnauthorized:
		return errKey
	case answer.StatusCode/100 == 3:
		return errRedirect
	case answer.StatusCode < http.StatusOK:
		return errNoAnswer // It changed the protocol.
	}
	return nil
}

// why says why there is no answer, without an address of the server's network.
func (x *relay) why(err error) string {
	if !errors.Is(err, errRedirect) && !errors.Is(err, errKey) {
		err = errNoAnswer
	}
	return fmt.Sprintf("the provider %s cannot be used: %v", x.question.provider.Name, err)
}

// request is what goes to the provider.
func (x *relay) request(ctx context.Context, r *http.Request) (*http.Request, error) {
	p := x.question.provider
	address := p.BaseURL + x.question.endpoint.path
	if x.question.query != "" {
		address += "?" + x.question.query
	}
	var body io.Reader
	if x.question.body != nil {
		body = bytes.NewReader(x.question.body)
	}
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { x.sent.Store(true) }})
	request, err := http.NewRequestWithContext(ctx, x.question.endpoint.method, address, body)
	if err != nil {
		return nil, err
	}
	request.Header = passedOn(r.Header, "Authorization", "X-Api-Key", "Api-Key", "Cookie", "Expect", "Content-Encoding", "Content-Type")
	for name := range request.Header {
		if strings.HasPrefix(name, "X-Forwarded-") || name == "Forwarded" || name == "Via" {
			request.Header.Del(name)
		}
	}
	if request.Header.Get("User-Agent") == "" {
		request.Header.Set("User-Agent", "") // or net/http adds its own
	}
	request.Header.Set("Accept-Encoding", "identity")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	switch {
	case p.Key == "":
	case p.Dialect == Anthropic:
		request.Header.Set("X-Api-Key", p.Key)
	default:
		request.Header.Set("Authorization", "Bearer "+p.Key)
	}
	return request, nil
}

// passedOn copies headers, but for those of one connection and some more.
func passedOn(from http.Header, but ...string) http.Header {
	to := from.Clone()
	for _, value := range from["Connection"] {
		for name := range strings.SplitSeq(value, ",") {
			but = append(but, textproto.TrimString(name))
		}
	}
	but = append(but, "Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Proxy-Connection",
		"Te", "Trailer", "Transfer-Encoding", "Upgrade", "Content-Length")
	for _, name := range but {
		to.Del(name)
	}
	return to
}

// pass passes an answer on and counts it.
func (x *relay) pass(w http.ResponseWriter, answer *http.Response, idle *time.Timer) {
	for name, values := range passedOn(answer.Header, "Set-Cookie") {
		clean := make([]string, len(values))
		for i, v := range values {
			clean[i] = string(x.scrubber.clean([]byte(v)))
		}
		w.Header()[name] = clean
	}
	w.WriteHeader(answer.StatusCode)
	x.counter.stream = strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream")
	control := http.NewResponseController(w)
	buffer := make([]byte, 32<<10)
	for {
		n, err := answer.Body.Read(buffer)
		if n > 0 {
			idle.Reset(IdleLimit)
			x.counter.take(buffer[:n])
			// A client may leave when it has read that this was all.
			if x.counter.over && x.end(true) != nil {
				panic(http.ErrAbortHandler)
			}
			_ = x.client.SetWriteDeadline(time.Now().Add(IdleLimit))
			if _, err := w.Write(x.scrubber.take(buffer[:n])); err != nil {
				return // The client left.
			}
			_ = control.Flush()
		}
		switch {
		case errors.Is(err, io.EOF):
			if x.end(true) != nil {
				panic(http.ErrAbortHandler)
			}
			_, _ = w.Write(x.scrubber.rest()) // The client may have left.
			return
		case err != nil:
			_ = x.end(false)
			panic(http.ErrAbortHandler) // or half an answer would look whole
		}
	}
}

// end settles the request, once.
func (x *relay) end(whole bool) error {
	if x.settled {
		return nil
	}
	x.settled = true
	call := Call{Model: x.question.model, Status: x.status}
	switch {
	case call.Answered():
		call.Usage, call.Estimated = x.counter.result(x.question.most().Input, whole)
	case x.lost:
		call.Usage, call.Estimated = model.Usage{Input: x.question.most().Input}, true
	}
	err := x.settle(call)
	if err != nil {
		x.gateway.cfg.Log.Error("gateway: models", zap.Error(err))
	}
	return err
}
