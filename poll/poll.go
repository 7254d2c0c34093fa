// Package poll waits for a run over the public API with the generated client,
// as the API asks its clients to: it looks again every few seconds while the
// run is running, backs off while the server cannot answer, and ends with what
// will not change. Any program may use it. It only reads: it creates no run,
// repeats no POST, and of this module imports the generated client alone.
package poll

import (
	"context"
	"net/http"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/gen"
)

const (
	// firstLook is how long after the call of Wait the first request is sent. A
	// run that was just created is hardly ever over at once, and to find it
	// running would cost a whole interval.
	firstLook = time.Second

	// MinInterval is the shortest time that the API recommends between two
	// requests while a run is running.
	MinInterval = 3 * time.Second
	// MaxInterval is the longest one.
	MaxInterval = 10 * time.Second

	// grownInterval is where an interval that grows stops. What the requests
	// need on their way still leaves it below MaxInterval.
	grownInterval = 9 * time.Second

	// DefaultGiveUp is how long Wait goes on without any answer.
	DefaultGiveUp = 5 * time.Minute

	minBackoff = time.Second
	maxBackoff = 30 * time.Second

	// answerTime bounds one request, with its answer. Expired, it counts as no
	// answer.
	answerTime = 30 * time.Second
)

// Client is what Wait asks. *gen.Client is one; give it an HTTP client made by
// KeepStatus.
type Client interface {
	GetAgent(ctx context.Context, params gen.GetAgentParams) (gen.GetAgentRes, error)
}

// Options of Wait. The zero value is good for every run.
type Options struct {
	// Interval is the time between an answer that says `running` and the next
	// request. Shorter than MinInterval or longer than MaxInterval, the nearer
	// of the two counts. 0 means that it grows with the run: a tenth of the
	// time waited so far, from 3 s to 9 s.
	Interval time.Duration

	// GiveUp is how long Wait goes on without any answer, counted from its call
	// or the last answer of any status. 0 or less means DefaultGiveUp. A server
	// that answers, if only that it cannot answer now, is waited for without
	// end.
	GiveUp time.Duration

	// Observe, if it is not nil, is called after each request, before the wait
	// for the next one.
	Observe func(Progress)
}

// Progress is what one request has shown.
type Progress struct {
	// Last is the last status of the run so far: of this request when Err is
	// nil, of an earlier one otherwise. It is nil as long as there is none.
	Last *gen.PublicAgentStatusResponse
	// Err says why this request has shown nothing.
	Err error
	// Next is the time until the next request, 0 when there is none.
	Next time.Duration
}

// Wait polls the run until it is no longer running and returns that last
// status. The first request is sent after one second. It reads every answer,
// so a status of `technical_error` or `terminated` is no error here.
//
// A 429, any 5xx and no answer at all are retried after 1 s, 2 s, 4 s and so
// on up to 30 s, from 1 s again after a good answer. What remains is an error
// that names the run: *StatusError for an answer that will not change (401,
// 404, 422 and every other one), ErrNoAnswer after opts.GiveUp, and the error
// of ctx as soon as that is done. The run itself is never touched.
func Wait(ctx context.Context, client Client, run uuid.UUID, opts Options) (*gen.PublicAgentStatusResponse, error) {
	now := time.Now()
	w := &waiter{client: client, run: run, opts: opts, begun: now, heard: now}
	if w.opts.GiveUp <= 0 {
		w.opts.GiveUp = DefaultGiveUp
	}
	for delay := firstLook; ; {
		if err := pause(ctx, delay); err != nil {
			return nil, errors.Wrapf(err, "run %s", run)
		}
		status, err := w.get(ctx)
		if err != nil && ctx.Err() != nil {
			return nil, errors.Wrapf(ctx.Err(), "run %s", run)
		}
		delay = w.next(status, err)
		if w.opts.Observe != nil {
			w.opts.Observe(Progress{Last: w.last, Err: err, Next: delay})
		}
		switch {
		case delay > 0:
		case err != nil:
			return nil, w.final(err)
		default:
			return status, nil
		}
	}
}

func pause(ctx context.Context, delay time.Duration) error {
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// waiter is one call of Wait.
type waiter struct {
	client   Client
	run      uuid.UUID
	opts     Options
	begun    time.Time
	heard    time.Time // when the last answer came, or the call
	failures int       // since the last good answer
	last     *gen.PublicAgentStatusResponse
}

// get sends one request. Its errors are a *StatusError when the status of the
// answer is known.
func (w *waiter) get(ctx context.Context) (*gen.PublicAgentStatusResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	res, err := w.client.GetAgent(ctx, gen.GetAgentParams{AgentID: w.run})
	if err != nil {
		return nil, withStatus(err)
	}
	if status, ok := res.(*gen.PublicAgentStatusResponse); ok {
		return status, nil
	}
	return nil, refusal(res)
}

// next takes note of what a request has shown and returns the time until the
// next one, 0 for none.
func (w *waiter) next(status *gen.PublicAgentStatusResponse, err error) time.Duration {
	now := time.Now()
	if err == nil {
		w.last, w.heard, w.failures = status, now, 0
		if status.LoopStatus != gen.LoopStatusRunning {
			return 0
		}
		return w.interval(now)
	}
	delay := maxBackoff
	if w.failures < 5 { // Beyond that it is longer than maxBackoff.
		delay = minBackoff << w.failures
	}
	w.failures++
	var answer *StatusError
	switch {
	case !errors.As(err, &answer):
		// The last request of all is sent when the time is up, not later.
		return max(0, min(delay, w.opts.GiveUp-now.Sub(w.heard)))
	case !answer.Temporary():
		return 0
	default:
		w.heard = now
		return delay
	}
}

func (w *waiter) interval(now time.Time) time.Duration {
	if w.opts.Interval != 0 {
		return min(max(w.opts.Interval, MinInterval), MaxInterval)
	}
	return min(max(now.Sub(w.begun)/10, MinInterval), grownInterval)
}

// final is the error that Wait ends with.
func (w *waiter) final(err error) error {
	var answer *StatusError
	switch {
	case !errors.As(err, &answer):
		return errors.Errorf("run %s: %w for %s: %w", w.run, ErrNoAnswer, w.opts.GiveUp, err)
	case answer.Status == http.StatusNotFound:
		return errors.Errorf("run %s: %w (a 404 usually means that the key does not belong to the run's agent)", w.run, err)
	default:
		return errors.Wrapf(err, "run %s", w.run)
	}
}
