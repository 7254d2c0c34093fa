package modeltest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/go-faster/errors"

	"agentrun/run/model"
	"agentrun/run/model/wire"
)

// Faults checks what comes of every fault: the kind and the words of the error,
// the number of attempts, no key, and that the server was asked as often.
func Faults(t *testing.T, p Provider) {
	right := 0
	all := faults()
	for _, f := range all {
		if t.Run(f.name, func(t *testing.T) { p.inject(t, f) }) {
			right++
		}
	}
	for name, check := range map[string]func(*testing.T, Provider){
		"connection refused": refused, "recovery": recovers, "bad arguments": badArguments, "memory": memory,
	} {
		all = append(all, fault{name: name})
		if t.Run(name, func(t *testing.T) { check(t, p) }) {
			right++
		}
	}
	t.Logf("%d faults injected, %d ended right", len(all), right)
}

func (p Provider) inject(t *testing.T, f fault) {
	var server *Server
	server = Serve(t, func(w http.ResponseWriter, r *http.Request) { f.serve(p, server, w, r) })
	answer, err := p.client(t, server.URL, f.tune).Call(t.Context(), Request())
	if hits := server.Hits(); hits != f.attempts {
		t.Errorf("%d requests, want %d", hits, f.attempts)
	}
	if f.kind == nil {
		if err != nil || answer.Message.Text != p.Said || answer.Attempts != f.attempts {
			t.Errorf("got %+v, %v", answer, err)
		}
		return
	}
	says := f.says
	if says == "Why" {
		says = p.Why
	}
	failed := failedAs(t, err, f.kind, says)
	if failed.Status != f.status || failed.Attempts != f.attempts || failed.After != f.after && f.after != 0 {
		t.Errorf("status %d, %d attempts, after %s", failed.Status, failed.Attempts, failed.After)
	}
}

// failedAs checks an error, and that its words are fit to be shown.
func failedAs(t *testing.T, err, kind error, says string) *model.Error {
	t.Helper()
	var failed *model.Error
	if !errors.As(err, &failed) {
		t.Fatalf("got %v", err)
	}
	if !errors.Is(err, kind) || !strings.Contains(failed.Message, says) {
		t.Errorf("got %v, want %v with %q", err, kind, says)
	}
	if text := fmt.Sprintf("%v %+v %#v", err, err, *failed); strings.Contains(text, Key) {
		t.Errorf("the key is in %s", text)
	}
	if len(failed.Message) > wire.MaxMessage || strings.ContainsAny(failed.Message, "\n\r") {
		t.Errorf("%d bytes in %q", len(failed.Message), failed.Message)
	}
	return failed
}

// nowhere is an address where nobody listens.
func nowhere(t *testing.T) string {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return "http://" + l.Addr().String()
}

func refused(t *testing.T, p Provider) {
	_, err := p.client(t, nowhere(t), nil).Call(t.Context(), Request())
	if failed := failedAs(t, err, model.ErrUnavailable, "connection refused"); failed.Attempts != five {
		t.Errorf("%d attempts", failed.Attempts)
	}
}

// recovers checks that an answer comes after one attempt that was refused, one
// that broke in the middle and one that ended in an error.
func recovers(t *testing.T, p Provider) {
	var server *Server
	server = Serve(t, func(w http.ResponseWriter, _ *http.Request) {
		switch server.Hits() {
		case 1:
			fail(w, 529, jsonKind, busy)
		case 2:
			send(w, half(p.Good))
		case 3:
			send(w, p.Overloaded)
		default:
			send(w, p.Good)
		}
	})
	answer, err := p.client(t, server.URL, nil).Call(t.Context(), Request())
	if err != nil || answer.Message.Text != p.Said || answer.Attempts != 4 || server.Hits() != 4 {
		t.Errorf("got %+v, %v after %d requests", answer, err, server.Hits())
	}
}

func badArguments(t *testing.T, p Provider) {
	answer, _ := Play(t, p, p.BadArguments, Request())
	if calls := answer.Message.Calls; len(calls) != 1 || calls[0].Arguments != p.Arguments {
		t.Errorf("got %+v, want %q", calls, p.Arguments)
	}
}

// memory checks that a line without end is not kept: of what the server has to
// say, hardly more than the bound is read.
func memory(t *testing.T, p Provider) {
	var server *Server
	server = Serve(t, func(w http.ResponseWriter, r *http.Request) { longLine(p, server, w, r) })
	client := p.client(t, server.URL, func(cfg *wire.Config) { cfg.Retry.Attempts = 1 })
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := client.Call(t.Context(), Request())
	runtime.ReadMemStats(&after)
	_ = failedAs(t, err, model.ErrUnavailable, "line longer than")
	if used := after.TotalAlloc - before.TotalAlloc; used > huge/2 {
		t.Errorf("%d bytes for a line of %d", used, huge)
	}
}

// Cancels checks that a call returns soon after its context ended, wherever it
// is: connecting, waiting, reading, or between attempts.
func Cancels(t *testing.T, p Provider) {
	count, right := 0, 0
	var longest time.Duration
	for _, f := range faults() {
		if f.attempts == 1 {
			continue // It ends by itself.
		}
		count++
		ok := t.Run(f.name, func(t *testing.T) {
			var server *Server
			server = Serve(t, func(w http.ResponseWriter, r *http.Request) { f.serve(p, server, w, r) })
			longest = max(longest, p.cancel(t, server.URL, Request(), server.Reached, nil))
		})
		if ok {
			right++
		}
	}
	for name, phase := range map[string]func(*testing.T, Provider) time.Duration{
		"connecting": connecting, "shaking hands": shakingHands, "uploading": uploading,
	} {
		count++
		if t.Run(name, func(t *testing.T) { longest = max(longest, phase(t, p)) }) {
			right++
		}
	}
	t.Logf("%d calls cancelled, %d returned in time; the slowest took %s", count, right, longest)
}

// cancel calls, ends the context when the call has got where it should, and
// returns how long the call went on. Between attempts it would wait for hours.
func (p Provider) cancel(t *testing.T, base string, req model.Request, reached <-chan struct{}, tune func(*wire.Config)) time.Duration {
	t.Helper()
	client := p.client(t, base, func(cfg *wire.Config) {
		cfg.Retry = model.Retry{First: time.Hour, Longest: time.Hour}
		if tune != nil {
			tune(cfg)
		}
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := client.Call(ctx, req)
		ended <- err
	}()
	await(t, reached)
	start := time.Now()
	cancel()
	select {
	case err := <-ended:
		took := time.Since(start)
		if !errors.Is(err, context.Canceled) || took > limit {
			t.Errorf("%v after %s", err, took)
		}
		return took
	case <-time.After(patience):
		t.Fatal("the call does not end")
		return patience
	}
}

func await(t *testing.T, reached <-chan struct{}) {
	t.Helper()
	select {
	case <-reached:
	case <-time.After(patience):
		t.Fatal("the call did not get there")
	}
}
