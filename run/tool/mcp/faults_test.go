package mcp

import (
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"go.uber.org/goleak"

	"agentrun/run/model"
	"agentrun/run/sandbox"
	"agentrun/run/sandbox/sandboxtest"
)

func TestServersThatFailAtTheirStart(t *testing.T) {
	eachHost(t, func(t *testing.T, h host) {
		for _, row := range []struct {
			mode  string
			words []string
		}{
			{"dies", []string{"it ended with exit code 3; its standard error ends with: no configuration found"}},
			{"garbage", []string{`it wrote a line to its standard output that is no message: "Server listening on port 8080"`}},
			{"giant", []string{"it sent a message of more than 8 MiB"}},
		} {
			t.Run(row.mode, func(t *testing.T) {
				s := open(t, h.config(row.mode, "good"))
				onlyProblem(t, s, row.mode, row.words...)
				works(t, s, "good__echo", `{"text":"not concerned"}`, "not concerned")
				fails(t, s, row.mode+"__echo", "{}", "there is no tool")
			})
		}
	})
}

func TestServerThatHangsAtItsStart(t *testing.T) {
	h := plainHost(t)
	before := goleak.IgnoreCurrent()
	cfg := h.config("hangs")
	cfg.Patience = 500 * time.Millisecond
	begun := time.Now()
	s := Open(t.Context(), cfg)
	onlyProblem(t, s, "hangs", "no answer within 500ms; its standard error ends with: I never answer")
	if took := time.Since(begun); took < cfg.Patience || took > cfg.Patience+time.Second {
		t.Errorf("it took %v", took)
	}
	s.Close()
	checkNothingLeft(t, h, before)
}

func TestNoSuchProgram(t *testing.T) {
	cfg := plainHost(t).config()
	cfg.Servers = []Server{{Name: "gone", Command: []string{"no-such-program"}}}
	onlyProblem(t, open(t, cfg), "gone", "no such program")
}

func TestOpenIsStopped(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	over := false
	runner := &watched{Runner: sandbox.Plain{}, begun: cancel, ended: func() { over = true }}
	cfg := plainHost(t).config("hangs")
	cfg.Sandbox = runner
	begun := time.Now()
	s := Open(ctx, cfg)
	if took := time.Since(begun); took > time.Second || ctx.Err() == nil {
		t.Errorf("it took %v", took)
	}
	onlyProblem(t, s, "hangs", context.Canceled.Error())
	if s.Close(); !over {
		t.Error("Close did not wait for the server's end")
	}
}

// watched tells of the beginning and the end of a command.
type watched struct {
	sandbox.Runner
	begun, ended func()
}

func (w *watched) Run(ctx context.Context, cmd sandbox.Command) (sandbox.Exit, error) {
	w.begun()
	defer w.ended()
	return w.Runner.Run(ctx, cmd)
}

// A server that ends is started again, not for ever.
func TestServerThatDiesInACall(t *testing.T) {
	eachHost(t, func(t *testing.T, h host) {
		s := mustOpen(t, h.config("good"))
		for range 1 + maxRestarts {
			works(t, s, "good__echo", `{"text":"alive"}`, "alive")
			fails(t, s, "good__die", "{}", "the tool server good: it ended with exit code 7; its standard error ends with: ", "panic: out of luck")
		}
		for range 2 {
			fails(t, s, "good__echo", `{"text":"alive"}`, errRestarts.Error())
		}
	})
}

// The first call after a server ended between two calls is not lost.
func TestServerThatDiesBetweenCalls(t *testing.T) {
	s := mustOpen(t, plainHost(t).config("good"))
	first := s.servers[0].link
	first.end()
	sandboxtest.Wait(t, first.program.over, "the server's end")
	works(t, s, "good__echo", `{"text":"alive"}`, "alive")
	if s.servers[0].link == first || s.servers[0].restarts != 1 {
		t.Error("it was not started again")
	}
}

func TestServerThatUpsetsItsOutputInACall(t *testing.T) {
	s := mustOpen(t, plainHost(t).config("good"))
	first := s.servers[0].link.program
	fails(t, s, "good__garbage", "{}", `no message: "DEBUG: called"`)
	sandboxtest.Wait(t, first.over, "the server's end")
	works(t, s, "good__echo", `{"text":"again"}`, "again")
	fails(t, s, "good__giant", "{}", "a message of more than 8 MiB")
	works(t, s, "good__echo", `{"text":"again"}`, "again")
}

func TestCallWithoutAnAnswer(t *testing.T) {
	cfg := plainHost(t).config("good")
	cfg.CallLimit = 300 * time.Millisecond
	s := mustOpen(t, cfg)
	meet := sandboxtest.NewPipe(t)
	begun := time.Now()
	fails(t, s, "good__hang", pipeArgument(meet.Path), "no answer within 300ms")
	if took := time.Since(begun); took < cfg.CallLimit || took > cfg.CallLimit+time.Second {
		t.Errorf("it took %v", took)
	}
	if meet.Line() != "begun" || meet.Line() != "cancelled" {
		t.Error("the tool was not called and told")
	}
	works(t, s, "good__echo", `{"text":"the same server"}`, "the same server")
	if s.servers[0].restarts != 0 {
		t.Error("it was started again")
	}
}

func TestCallIsStopped(t *testing.T) {
	s := mustOpen(t, plainHost(t).config("good"))
	ctx, cancel := context.WithCancel(t.Context())
	meet := sandboxtest.NewPipe(t)
	c := start(ctx, s, "good__hang", pipeArgument(meet.Path))
	if meet.Line() != "begun" {
		t.Fatal("the tool was not called")
	}
	stopped := time.Now()
	cancel()
	if <-c.done; !errors.Is(c.err, context.Canceled) || time.Since(stopped) > time.Second {
		t.Errorf("after %v: %+v, %v", time.Since(stopped), c.result, c.err)
	}
	if _, err := s.Call(ctx, model.ToolCall{ID: "1", Name: "good__echo"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a call after the end: %v", err)
	}
	works(t, s, "good__echo", `{"text":"for others"}`, "for others")
}

// The servers do not end with the context that they were opened in.
func TestServersOutliveOpen(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := Open(ctx, plainHost(t).config("good"))
	defer s.Close()
	cancel()
	works(t, s, "good__echo", `{"text":"alive"}`, "alive")
	if s.servers[0].restarts != 0 {
		t.Error("it was started again")
	}
}

func TestCloseLeavesNothing(t *testing.T) {
	eachHost(t, func(t *testing.T, h host) {
		before := goleak.IgnoreCurrent()
		s := mustOpen(t, h.config("good", "good"))
		if len(processesIn(t, h.dir)) < 2 {
			t.Error("the processes are not seen")
		}
		begun := time.Now()
		s.Close() // of servers at rest, which end by themselves
		if took := time.Since(begun); took > closeGrace {
			t.Errorf("it took %v", took)
		}
		checkNothingLeft(t, h, before)
	})
	t.Run("full, of one that does not want to end", func(t *testing.T) {
		h := confinedHost(t)
		before := goleak.IgnoreCurrent()
		s := mustOpen(t, h.config("stubborn"))
		begun := time.Now()
		s.Close()
		if took := time.Since(begun); took < sandbox.StopGrace || took > closeGrace+sandbox.StopGrace+2*time.Second {
			t.Errorf("it took %v", took)
		}
		checkNothingLeft(t, h, before)
	})
	t.Run("during a call", func(t *testing.T) {
		h := plainHost(t)
		before := goleak.IgnoreCurrent()
		s := mustOpen(t, h.config("good"))
		meet := sandboxtest.NewPipe(t)
		c := start(t.Context(), s, "good__hang", pipeArgument(meet.Path))
		if meet.Line() != "begun" {
			t.Fatal("the tool was not called")
		}
		s.Close()
		if <-c.done; c.err != nil || !c.result.Failed || !strings.Contains(c.result.Text, errClosed.Error()) {
			t.Errorf("%+v, %v", c.result, c.err)
		}
		checkNothingLeft(t, h, before)
		fails(t, s, "good__echo", `{"text":"x"}`, errClosed.Error())
		s.Close() // once more
	})
}

func checkNothingLeft(t *testing.T, h host, before goleak.Option) {
	t.Helper()
	if left := processesIn(t, h.dir); len(left) > 0 {
		t.Errorf("alive are %v", left)
	}
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

// What upset us does not go on, even when it does not care for its input's end.
func TestFailureStopsTheProgram(t *testing.T) {
	stopped := 0
	p := &program{broken: make(chan struct{}), stderr: &tail{}, stop: func() { stopped++ }}
	p.fail(errTooLong)
	p.fail(errNotRead)
	if stopped != 1 || !errors.Is(p.brokenBy(), errTooLong) {
		t.Errorf("stopped %d times; %v", stopped, p.brokenBy())
	}
}

// Nobody has to take what is ignored.
func TestNotificationsAreIgnored(t *testing.T) {
	o := &output{program: &program{broken: make(chan struct{})}}
	line := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n \n"
	if n, err := o.Write([]byte(line)); n != len(line) || err != nil || o.program.brokenBy() != nil {
		t.Errorf("got %d, %v", n, err)
	}
}

// A server that never reads holds no call.
func TestServerThatDoesNotRead(t *testing.T) {
	f := newFeed()
	for range maxPending >> 20 {
		if _, err := f.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := f.Write([]byte("x")); !errors.Is(err, errNotRead) {
		t.Errorf("got %v", err)
	}
	_ = f.Close()
	if _, err := f.Write(nil); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("got %v", err)
	}
	if n, err := io.Copy(io.Discard, f); n != maxPending || err != nil {
		t.Errorf("read %d, %v", n, err)
	}
}
