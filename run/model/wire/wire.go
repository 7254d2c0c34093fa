// Package wire is the HTTP below the clients of model providers: attempts and
// their pace, silence, bounds on what is read, and what an error of a provider
// means. It knows no dialect, keeps nothing, logs nothing, and lets no key into
// an error. Of agentrun it imports the seam to models only.
//
// An attempt is one POST whose answer is a stream of server-sent events. It
// counts only when the answer is complete: one that broke in the middle is made
// again as a whole, because the caller saw nothing of it.
package wire

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"agentrun/run/model"
)

// Bounds of an attempt.
const (
	// MaxLine is how long a line of an answer's stream may be.
	MaxLine = 4 << 20
	// MaxAnswer is how long what a model says may be in all.
	MaxAnswer = 16 << 20
	// MaxStream is how long the stream may be that carries it. Some providers
	// wrap every word into some hundred bytes.
	MaxStream = 256 << 20
	// MaxMessage is how much of a provider's own words an error has.
	MaxMessage = 4 << 10
)

// What zero fields of Config stand for.
const (
	defaultFirstByte    = 120 * time.Second
	defaultBetweenBytes = 60 * time.Second
)

// Config is how to reach a provider.
type Config struct {
	// BaseURL is where the API begins; empty means the provider's own address.
	BaseURL string
	// Key is the API key; empty sends none.
	Key string
	// Transport makes the requests; nil means one of NewTransport.
	Transport http.RoundTripper
	// FirstByte is how long an attempt may take until the first byte of its
	// answer's body; 0 means two minutes. Models on slow machines may need more.
	FirstByte time.Duration
	// BetweenBytes is how long the body may be silent; 0 means a minute.
	BetweenBytes time.Duration
	// Retry paces the attempts.
	Retry model.Retry
}

// Client makes the requests of one provider's client.
type Client struct {
	// BaseURL has no slash at its end.
	BaseURL string

	http         http.Client
	key          string
	firstByte    time.Duration
	betweenBytes time.Duration
	retry        model.Retry
}

// New returns a client; base is the address for an empty Config.BaseURL. Errors:
// ErrConfig.
func New(cfg Config, base string) (*Client, error) {
	c := &Client{
		BaseURL: strings.TrimRight(cfg.BaseURL, "/"), key: cfg.Key,
		firstByte: cfg.FirstByte, betweenBytes: cfg.BetweenBytes, retry: cfg.Retry,
	}
	if c.BaseURL == "" {
		c.BaseURL = base
	}
	if why := badURL(c.BaseURL); why != "" {
		// The URL itself may hold a secret in a wrong place.
		return nil, errors.Wrap(ErrConfig, "base URL: "+why)
	}
	if strings.ContainsFunc(c.key, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, errors.Wrap(ErrConfig, "the key has blanks, line ends or characters that no key has")
	}
	if c.firstByte == 0 {
		c.firstByte = defaultFirstByte
	}
	if c.betweenBytes == 0 {
		c.betweenBytes = defaultBetweenBytes
	}
	c.http.Transport = cfg.Transport
	if cfg.Transport == nil {
		c.http.Transport = NewTransport()
	}
	// A redirect would carry the conversation, and on the same host the key, to
	// where nobody configured it to go.
	c.http.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return c, nil
}

// NewTransport returns the transport of a client that is given none. It goes by
// HTTPS_PROXY, HTTP_PROXY and NO_PROXY: it works for the server, whose operator
// sets them where there is no other way out, and not for the programs of agents.
func NewTransport() *http.Transport {
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    30 * time.Second,
		MaxIdleConnsPerHost:    16,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		// What is compressed may wait in a buffer on the way.
		DisableCompression: true,
		// A connection that died in silence must not take the next attempt too.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
}

// badURL says what is wrong with a base URL.
func badURL(base string) (why string) {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return "it cannot be understood"
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return "it should begin with https:// or http:// and a host"
	case u.User != nil:
		return "it has credentials inside: the key belongs elsewhere"
	case u.RawQuery != "" || u.Fragment != "":
		return "it has a query or a fragment"
	}
	return ""
}

// Call makes attempts until one gives an answer, and returns what
// model.Client.Call returns. An attempt sends its request through the exchange;
// when it returns an error, its answer says by its usage what was counted.
func (c *Client) Call(ctx context.Context, attempt func(context.Context, *Exchange) (model.Answer, error)) (model.Answer, error) {
	return c.retry.Do(ctx, func(ctx context.Context) (model.Answer, error) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		x := &Exchange{client: c}
		x.silence = time.AfterFunc(c.firstByte, func() { cancel(errSilence) })
		defer x.silence.Stop()
		answer, err := attempt(ctx, x)
		if err == nil {
			return answer, nil
		}
		failed := x.failure(ctx, err)
		failed.Usage = answer.Usage
		return model.Answer{}, &failed
	})
}
