package poll

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/gen"
)

var testRun = uuid.MustParse("0197a3c2-6a7e-7000-8000-000000000001")

// answer is one line of a script: a status and a body, or no answer at all.
type answer struct {
	status int
	body   string
	kind   string // content type, application/json when it is empty
	err    error
	hangs  bool // until the request is given up
}

func is(state gen.LoopStatus) answer {
	return answer{status: 200, body: fmt.Sprintf(`{"agent_id":%q,"loop_status":%q,"transcript":[]}`, testRun, state)}
}

func fails(status int, detail string) answer {
	return answer{status: status, body: fmt.Sprintf(`{"detail":%q}`, detail)}
}

var (
	running  = is(gen.LoopStatusRunning)
	finished = is(gen.LoopStatusFinished)
	broken   = fails(502, "event history lookup failed")
	busy     = fails(503, "event history is temporarily unavailable")
	silence  = answer{err: errors.New("connection refused")}
	page     = answer{status: 502, body: "<html>Bad Gateway</html>", kind: "text/html"}
)

// script is a server that answers as written and notes when it was asked, since
// its first second. Its last answer is repeated.
type script struct {
	t       *testing.T
	answers []answer
	begun   time.Time
	asked   []time.Duration
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	if want := "/v1/agents/" + testRun.String(); r.Method != http.MethodGet || r.URL.Path != want {
		s.t.Errorf("%s %s, want GET %s", r.Method, r.URL.Path, want)
	}
	if got := r.Header.Get("Authorization"); got != "Bearer ak_test" || r.Header.Get("X-API-Key") != "" {
		s.t.Errorf("Authorization %q, X-API-Key %q", got, r.Header.Get("X-API-Key"))
	}
	a := s.answers[min(len(s.asked), len(s.answers)-1)]
	s.asked = append(s.asked, time.Since(s.begun))
	if a.hangs {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if a.err != nil {
		return nil, a.err
	}
	header := http.Header{"Content-Type": {"application/json"}}
	if a.kind != "" {
		header.Set("Content-Type", a.kind)
	}
	return &http.Response{StatusCode: a.status, Header: header, Body: io.NopCloser(strings.NewReader(a.body)), Request: r}, nil
}

// waiting is what a call of Wait came to.
type waiting struct {
	status *gen.PublicAgentStatusResponse
	err    error
	asked  []time.Duration
	took   time.Duration
	seen   []Progress
}

func (w waiting) wantAsked(t *testing.T, want ...time.Duration) {
	t.Helper()
	for i := range want {
		want[i] *= time.Second
	}
	if !slices.Equal(w.asked, want) {
		t.Errorf("asked at %v\nwant     %v", w.asked, want)
	}
}

// wait calls Wait with the generated client on a script and a clock that stands
// still unless everybody waits.
func wait(t *testing.T, ctx context.Context, opts Options, bare bool, answers ...answer) (w waiting) {
	t.Helper()
	begun := time.Now()
	s := &script{t: t, answers: answers, begun: begun}
	doer := KeepStatus(&http.Client{Transport: s})
	if bare {
		doer = &http.Client{Transport: s}
	}
	client, err := gen.NewClient("http://agentrun.test", Key("ak_test"), gen.WithClient(doer))
	if err != nil {
		t.Fatal(err)
	}
	opts.Observe = func(p Progress) { w.seen = append(w.seen, p) }
	w.status, w.err = Wait(ctx, client, testRun, opts)
	w.asked, w.took = s.asked, time.Since(begun)
	if len(w.seen) != len(w.asked) && ctx.Err() == nil {
		t.Errorf("%d requests, %d observed", len(w.asked), len(w.seen))
	}
	return w
}

// bothClients runs a test with a generated client as it is and with one that
// keeps the status: what the contract says is the same to both.
func bothClients(t *testing.T, test func(t *testing.T, bare bool)) {
	for name, bare := range map[string]bool{"KeepStatus": false, "bare": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { test(t, bare) })
		})
	}
}

func TestWaitReturnsEveryEnd(t *testing.T) {
	for _, state := range []gen.LoopStatus{
		gen.LoopStatusFinished, gen.LoopStatusTechnicalError, gen.LoopStatusTerminated,
	} {
		synctest.Test(t, func(t *testing.T) {
			w := wait(t, t.Context(), Options{}, false, is(state))
			if w.err != nil || w.status.LoopStatus != state || w.status.AgentID != testRun {
				t.Errorf("%+v, %v", w.status, w.err)
			}
			// A run that is over when it is first looked at costs a second.
			w.wantAsked(t, 1)
			if last := w.seen[0]; last.Last != w.status || last.Err != nil || last.Next != 0 {
				t.Errorf("observed %+v", last)
			}
		})
	}
}

func TestWaitIntervals(t *testing.T) {
	until := func(polls int) []answer { return append(slices.Repeat([]answer{running}, polls), finished) }
	for _, c := range []struct {
		interval time.Duration
		polls    int
		want     []time.Duration // in seconds
	}{
		{0, 4, []time.Duration{1, 4, 7, 10, 13}},
		{3 * time.Second, 3, []time.Duration{1, 4, 7, 10}},
		{5 * time.Second, 3, []time.Duration{1, 6, 11, 16}},
		{10 * time.Second, 3, []time.Duration{1, 11, 21, 31}},
		{time.Second, 2, []time.Duration{1, 4, 7}},
		{-time.Second, 2, []time.Duration{1, 4, 7}},
		{time.Minute, 2, []time.Duration{1, 11, 21}},
	} {
		t.Run(c.interval.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wait(t, t.Context(), Options{Interval: c.interval}, false, until(c.polls)...).wantAsked(t, c.want...)
			})
		})
	}
}

// An interval that grows starts at 3 s and stays, however long the run lasts,
// between the bounds that the API gives.
func TestWaitGrowingInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wait(t, t.Context(), Options{}, false, append(slices.Repeat([]answer{running}, 100), finished)...)
		for i := 1; i < len(w.asked); i++ {
			gap := w.asked[i] - w.asked[i-1]
			want := min(max(w.asked[i-1]/10, 3*time.Second), 9*time.Second)
			if gap != want {
				t.Errorf("after %s the gap is %s, want %s", w.asked[i-1], gap, want)
			}
		}
		if last := w.asked[len(w.asked)-1] - w.asked[len(w.asked)-2]; last != 9*time.Second {
			t.Errorf("the last gap is %s", last)
		}
	})
}

func TestWaitBacksOff(t *testing.T) {
	for name, failure := range map[string]answer{
		"502": broken, "503": busy,
		"500": fails(500, "internal error"), "504": fails(504, ""), "429": fails(429, "slow down"),
		"nothing": silence, "hang up": {err: io.ErrUnexpectedEOF},
		"broken off":  {status: 200, body: `{"agent_id":"`},
		"a page":      {status: 200, body: "<html>", kind: "text/html"},
		"a new state": is("paused"),
	} {
		t.Run(name, func(t *testing.T) {
			bothClients(t, func(t *testing.T, bare bool) {
				answers := append(slices.Repeat([]answer{failure}, 7), finished)
				w := wait(t, t.Context(), Options{}, bare, answers...)
				if w.err != nil {
					t.Fatal(w.err)
				}
				// After 1, 2, 4, 8, 16, 30 and 30 seconds.
				w.wantAsked(t, 1, 2, 4, 8, 16, 32, 62, 92)
				for i, p := range w.seen[:7] {
					if p.Last != nil || p.Err == nil || p.Next != w.asked[i+1]-w.asked[i] {
						t.Errorf("request %d: observed %+v", i, p)
					}
				}
			})
		})
	}
}

// A proxy's page instead of the API's error keeps its status with KeepStatus.
// Without, it counts as no answer, and in the end that is given up.
func TestWaitOnAProxysPage(t *testing.T) {
	answers := append(slices.Repeat([]answer{page}, 20), finished)
	synctest.Test(t, func(t *testing.T) {
		if w := wait(t, t.Context(), Options{}, false, answers...); w.err != nil {
			t.Error(w.err)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		if w := wait(t, t.Context(), Options{}, true, answers...); !errors.Is(w.err, ErrNoAnswer) {
			t.Errorf("%v", w.err)
		}
	})
}

func TestWaitResetsBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wait(t, t.Context(), Options{}, false,
			running, broken, busy, silence, running, busy, busy, silence, finished)
		if w.err != nil {
			t.Fatal(w.err)
		}
		w.wantAsked(t, 1, 4, 5, 7, 11, 14, 15, 17, 21)
		if p := w.seen[2]; p.Last == nil || p.Last.LoopStatus != gen.LoopStatusRunning || p.Next != 2*time.Second {
			t.Errorf("a failure hides the last status: %+v", p)
		}
	})
}

func TestWaitFinalAnswers(t *testing.T) {
	for _, c := range []struct {
		answer  answer
		want    StatusError
		mention string
	}{
		{fails(401, "Invalid API key"), StatusError{401, "Invalid API key"}, "401 Unauthorized: Invalid API key"},
		{fails(404, "Agent not found"), StatusError{404, "Agent not found"}, "the key does not belong to the run's agent"},
		{
			answer{status: 422, body: `{"detail":[{"loc":["path","agent_id"],"msg":"bad","type":"uuid"},{"loc":["body",0],"msg":"worse","type":"x"}]}`},
			StatusError{422, "path.agent_id: bad; body.0: worse"}, "422 Unprocessable Entity: path",
		},
		{fails(403, "no"), StatusError{403, "no"}, "403 Forbidden: no"},
		{fails(410, "a\r\n  b"), StatusError{410, "a b"}, "410 Gone: a b"},
		{answer{status: 307, body: "elsewhere", kind: "text/plain"}, StatusError{307, ""}, "307 Temporary Redirect"},
		{fails(499, strings.Repeat("ä", 2000)), StatusError{499, strings.Repeat("ä", 1000) + "…"}, "499: ä"},
	} {
		t.Run(c.mention, func(t *testing.T) {
			bothClients(t, func(t *testing.T, bare bool) {
				w := wait(t, t.Context(), Options{}, bare, running, busy, c.answer)
				w.wantAsked(t, 1, 4, 5)
				var got *StatusError
				if !errors.As(w.err, &got) || *got != c.want || w.status != nil {
					t.Fatalf("%v, want %v", w.err, c.want)
				}
				for _, part := range []string{testRun.String(), c.mention} {
					if !strings.Contains(w.err.Error(), part) {
						t.Errorf("%q does not say %q", w.err, part)
					}
				}
				if last := w.seen[2]; last.Err == nil || last.Next != 0 {
					t.Errorf("observed %+v", last)
				}
			})
		})
	}
	// With KeepStatus the API's own shape is not needed.
	synctest.Test(t, func(t *testing.T) {
		w := wait(t, t.Context(), Options{}, false, answer{status: 404, body: "<html>", kind: "text/html"})
		var got *StatusError
		if !errors.As(w.err, &got) || *got != (StatusError{Status: 404}) {
			t.Errorf("%v", w.err)
		}
	})
}

func TestWaitGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wait(t, t.Context(), Options{}, false, silence)
		if !errors.Is(w.err, ErrNoAnswer) || !strings.Contains(w.err.Error(), "connection refused") ||
			!strings.Contains(w.err.Error(), testRun.String()) {
			t.Errorf("%v", w.err)
		}
		// The last one is sent when the five minutes are over.
		w.wantAsked(t, 1, 2, 4, 8, 16, 32, 62, 92, 122, 152, 182, 212, 242, 272, 300)
	})
	synctest.Test(t, func(t *testing.T) {
		w := wait(t, t.Context(), Options{GiveUp: 20 * time.Second}, false, running, silence, silence, busy, silence)
		if !errors.Is(w.err, ErrNoAnswer) {
			t.Errorf("%v", w.err)
		}
		// The 503 at 7 s is an answer: from there on it is silent.
		w.wantAsked(t, 1, 4, 5, 7, 11, 19, 27)
	})
	synctest.Test(t, func(t *testing.T) {
		w := wait(t, t.Context(), Options{GiveUp: time.Millisecond}, false, silence)
		w.wantAsked(t, 1)
	})
}

// Errors of the server alone are waited for without end, whatever GiveUp says.
func TestWaitStaysWhileAnErrorIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wait(t, t.Context(), Options{GiveUp: 2 * time.Second}, false, append(slices.Repeat([]answer{busy, broken}, 500), finished)...)
		if w.err != nil || len(w.asked) != 1001 {
			t.Errorf("%d requests, %v", len(w.asked), w.err)
		}
	})
}

// A request that is not answered ends after 30 s and is repeated.
func TestWaitBoundsARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wait(t, t.Context(), Options{}, false, answer{hangs: true}, answer{hangs: true}, finished)
		if w.err != nil {
			t.Fatal(w.err)
		}
		w.wantAsked(t, 1, 32, 64)
		if err := w.seen[0].Err; !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v", err)
		}
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	for name, answers := range map[string][]answer{
		"between polls": {running}, "in a backoff": {busy}, "in a request": {{hangs: true}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 2500*time.Millisecond)
				defer cancel()
				w := wait(t, ctx, Options{}, false, answers...)
				if !errors.Is(w.err, context.DeadlineExceeded) || !strings.Contains(w.err.Error(), testRun.String()) {
					t.Errorf("%v", w.err)
				}
				if w.took != 2500*time.Millisecond {
					t.Errorf("took %s", w.took)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		w := wait(t, ctx, Options{}, false, finished)
		if !errors.Is(w.err, context.Canceled) || len(w.asked) != 0 || w.took != 0 {
			t.Errorf("%v after %s and %d requests", w.err, w.took, len(w.asked))
		}
	})
}

func TestKeyDoesNotPrintItself(t *testing.T) {
	for _, verb := range []string{"%v", "%s", "%+v", "%#v"} {
		if text := fmt.Sprintf(verb, struct{ Key Key }{"ak_secret"}); strings.Contains(text, "secret") {
			t.Errorf("%s prints %s", verb, text)
		}
	}
	if text := fmt.Sprintf("%q %x", Key("ak_secret"), Key("ak_secret")); strings.Contains(text, "secret") {
		t.Errorf("%s", text)
	}
}
