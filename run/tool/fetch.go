package tool

import (
	"bytes"
	"context"
	_ "embed"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/go-faster/errors"
)

//go:embed fetch.md
var fetchWords string

const (
	// maxBody is how much of an answer's body is read.
	maxBody = 2 << 20
	// fetchTime is how long a request may take, with its redirects and its body.
	fetchTime = time.Minute
)

type fetchArgs struct {
	URL    string `json:"url" jsonschema:"the address, beginning with https:// or http://"`
	Method string `json:"method,omitempty" jsonschema:"GET or HEAD; GET when left out"`
}

func fetch(ctx context.Context, p *Place, args fetchArgs, r *report) error {
	if args.Method == "" {
		args.Method = http.MethodGet
	}
	address, err := url.Parse(args.URL)
	switch {
	case p.Fetch == nil:
		r.fail("Nothing was fetched: the agent file allows no host (network: allow).")
		return nil
	case args.Method != http.MethodGet && args.Method != http.MethodHead:
		r.fail("Nothing was fetched: method has to be GET or HEAD.")
		return nil
	case err != nil, address.Scheme != "http" && address.Scheme != "https", address.Host == "":
		r.fail("Nothing was fetched: url has to be an address that begins with https:// or http:// and a host.")
		return nil
	case address.User != nil:
		r.fail("Nothing was fetched: url may not hold a user name or a password.")
		return nil
	}
	limited, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	request, err := http.NewRequestWithContext(limited, args.Method, address.String(), nil)
	if err != nil {
		r.fail("Nothing was fetched: %v.", err)
		return nil
	}
	request.Header.Set("User-Agent", "agentrun")
	answer, err := p.Fetch.Do(request)
	if ctx.Err() != nil {
		if err == nil {
			_ = answer.Body.Close()
		}
		return ctx.Err()
	}
	if err != nil {
		r.failFetch(err)
		return nil
	}
	defer answer.Body.Close()
	r.answer(answer)
	return ctx.Err()
}

// failFetch says why there is no answer.
func (r *report) failFetch(err error) {
	var where *url.Error
	if errors.As(err, &where) {
		err = where.Err // Without the method and the address, which are known.
	}
	if errors.Is(err, context.DeadlineExceeded) {
		r.fail("There was no answer within %v.", fetchTime)
		return
	}
	r.fail("There was no answer: %v.", err)
}

// answer says what a server answered.
func (r *report) answer(answer *http.Response) {
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxBody+1))
	r.failed = err != nil || answer.StatusCode >= http.StatusBadRequest
	r.say("HTTP status: %s\nURL: %s\nContent type: %s\n", answer.Status, answer.Request.URL, answer.Header.Get("Content-Type"))
	more := len(body) > maxBody
	body = body[:min(len(body), maxBody)]
	switch {
	case answer.Request.Method == http.MethodHead:
		r.say("Content length: %s\n", answer.Header.Get("Content-Length"))
		return
	case bytes.IndexByte(body[:min(len(body), 8<<10)], 0) >= 0:
		r.say("The body is binary and not shown.\n")
		return
	case err != nil:
		r.say("The body broke off after %d bytes.\n", len(body))
	case more:
		r.say("The body is longer than %d bytes; these are the first ones.\n", maxBody)
	}
	r.say("\n%s", body)
}
