package wire

import (
	"fmt"
	"io"
	"mime"
	"net/http"
	"strings"
	"time"

	"agentrun/run/model"
)

// maxRefusal is how much is read of an answer that is no stream. Its message may
// be in the middle.
const maxRefusal = 64 << 10

// Exchange is the request and the answer of one attempt. It is the HTTP client
// that a provider's library is given.
type Exchange struct {
	client  *Client
	silence *time.Timer

	sent     bool // the request was handed to the network
	answered bool // a byte of a body came
	done     bool // the stream said [DONE]
	taken    int
	// refused is what the provider said instead of an answer. Libraries do not
	// always hand it on.
	refused error
}

// sentHeaders are what providers need. Libraries add more, which tells of the
// machine.
var sentHeaders = map[string]bool{
	"Accept": true, "Content-Type": true, "Authorization": true, "X-Api-Key": true, "Anthropic-Version": true,
}

// Do sends the request. It returns an answer only when that is a stream.
func (x *Exchange) Do(req *http.Request) (*http.Response, error) {
	for name := range req.Header {
		if !sentHeaders[name] {
			req.Header.Del(name)
		}
	}
	req.Header.Set("User-Agent", "agentrun")
	x.sent = true
	res, err := x.client.http.Do(req) //nolint:gosec // The operator says where the provider is.
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode != http.StatusOK || kind == "application/json" || kind == "text/html" {
		defer res.Body.Close()
		x.refused = x.refusal(res, kind)
		return nil, x.refused
	}
	res.Body = newStream(x, res.Body)
	return res, nil
}

// Done says whether the stream said [DONE].
func (x *Exchange) Done() bool { return x.done }

// Take counts bytes of the answer that are kept.
func (x *Exchange) Take(n int) error {
	if x.taken += n; x.taken > MaxAnswer {
		return Broken("the answer is longer than %d bytes", MaxAnswer)
	}
	return nil
}

// beat notes that the answer goes on.
func (x *Exchange) beat() {
	x.answered = true
	x.silence.Reset(x.client.betweenBytes)
}

// refusal reads an answer that is no stream. Whoever sends it has as long as for
// the first byte of a stream: the silence begins anew only in streams.
func (x *Exchange) refusal(res *http.Response, kind string) error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxRefusal))
	p, found := readProblem(body)
	if res.StatusCode == http.StatusOK {
		if !found {
			return Broken("an answer of type %s where a stream of events was expected: is the base URL right?", kind)
		}
		return &model.Error{Kind: p.kind(p.status), Message: p.text}
	}
	if !found {
		p.text = http.StatusText(res.StatusCode)
		if words := strings.TrimSpace(string(body)); kind != "text/html" && words != "" {
			p.text = words
		}
	}
	failed := &model.Error{Kind: p.kind(res.StatusCode), Status: res.StatusCode, Message: p.text}
	failed.After = askedFor(res.Header, time.Now())
	if location, err := res.Location(); err == nil && res.StatusCode < http.StatusBadRequest {
		failed.Message = fmt.Sprintf("the provider is at %s://%s%s: change the base URL", location.Scheme, location.Host, location.Path)
	}
	if !found && res.StatusCode == http.StatusNotFound {
		failed.Message += ": is the base URL right?"
	}
	return failed
}
