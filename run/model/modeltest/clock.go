package modeltest

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"agentrun/run/model"
	"agentrun/run/model/wire"
)

// trip is a provider without a network, whose time is that of a bubble.
type trip func(n int, r *http.Request) (*http.Response, error)

type trips struct {
	n    int
	each trip
}

// RoundTrip implements http.RoundTripper.
func (s *trips) RoundTrip(r *http.Request) (*http.Response, error) {
	s.n++
	return s.each(s.n, r)
}

// slow is a body of which a byte comes each second, up to a place where it
// hangs.
type slow struct {
	ctx  context.Context
	text string
	hang bool
}

// Read implements io.Reader.
func (s *slow) Read(b []byte) (int, error) {
	if s.text == "" && !s.hang {
		return 0, io.EOF
	}
	var next <-chan time.Time
	if s.text != "" {
		next = time.After(time.Second)
	}
	select {
	case <-next:
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	}
	b[0], s.text = s.text[0], s.text[1:]
	return 1, nil
}

// Close implements io.Closer.
func (s *slow) Close() error { return nil }

func streamOf(body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: body}
}

func busyFor(header ...string) *http.Response {
	h := http.Header{"Content-Type": {jsonKind}}
	for i := 0; i+1 < len(header); i += 2 {
		h.Set(header[i], header[i+1])
	}
	return &http.Response{StatusCode: http.StatusTooManyRequests, Header: h, Body: io.NopCloser(strings.NewReader(busy))}
}

// spell is a call with the default times, and how long it should take.
type spell struct {
	name         string
	each         trip
	least, most  time.Duration
	kind         error
	says         string
	wantAttempts int
}

// Clock checks the default times: what a silence, a wait and a trickle cost.
func Clock(t *testing.T, p Provider) {
	trickle := time.Duration(len(p.Good)) * time.Second
	// The waits of five attempts: 1, 2, 4 and 8 seconds, of which half is chance.
	const least, most = 15 * time.Second / 2, 15*time.Second + time.Millisecond
	for _, s := range []spell{
		{
			// A client may know the end before it comes.
			name: "a byte a second", wantAttempts: 1, least: trickle - time.Second, most: trickle,
			each: func(_ int, r *http.Request) (*http.Response, error) {
				return streamOf(&slow{ctx: r.Context(), text: p.Good}), nil
			},
		},
		{
			name: "silence", wantAttempts: five, least: five*120*time.Second + least, most: five*120*time.Second + most,
			kind: model.ErrUnavailable, says: "no answer for 2m0s",
			each: func(_ int, r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			},
		},
		{
			name: "silence in the middle", wantAttempts: five, least: five*63*time.Second + least, most: five*63*time.Second + most,
			kind: model.ErrUnavailable, says: "no byte for 1m0s",
			each: func(_ int, r *http.Request) (*http.Response, error) {
				return streamOf(&slow{ctx: r.Context(), text: p.Good[:3], hang: true}), nil
			},
		},
		{
			name: "waits that are asked for", wantAttempts: 3, least: 70 * time.Second, most: 72 * time.Second,
			each: func(n int, _ *http.Request) (*http.Response, error) {
				switch n {
				case 1:
					return busyFor("Retry-After", "60"), nil
				case 2:
					return busyFor("Retry-After-Ms", "10000", "Retry-After", "1"), nil
				}
				return streamOf(io.NopCloser(strings.NewReader(p.Good))), nil
			},
		},
		{
			name: "waits that are not", wantAttempts: five, least: least, most: most, kind: model.ErrUnavailable, says: "wait a moment",
			each: func(int, *http.Request) (*http.Response, error) { return busyFor(), nil },
		},
	} {
		t.Run(s.name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { p.spend(t, s) }) })
	}
}

func (p Provider) spend(t *testing.T, s spell) {
	network := &trips{each: s.each}
	client, err := p.New(wire.Config{BaseURL: "http://provider.test", Key: Key, Transport: network})
	if err != nil {
		t.Fatal(err)
	}
	start := time.Now()
	answer, err := client.Call(t.Context(), Request())
	if took := time.Since(start); took < s.least || took > s.most {
		t.Errorf("it took %s, want %s to %s", took, s.least, s.most)
	}
	if network.n != s.wantAttempts {
		t.Errorf("%d requests, want %d", network.n, s.wantAttempts)
	}
	if s.kind != nil {
		_ = failedAs(t, err, s.kind, s.says)
	} else if err != nil || answer.Message.Text != p.Said || answer.Attempts != s.wantAttempts {
		t.Errorf("got %+v, %v", answer, err)
	}
}
