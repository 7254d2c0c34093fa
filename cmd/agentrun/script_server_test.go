package main

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"agentrun/run/sandbox/sandboxtest"
)

// background is the server of a script, of which there is one at a time.
type background struct {
	cmd   *exec.Cmd
	ended chan struct{}
	err   error // how it ended; to be read once ended is closed

	mu  sync.Mutex
	log bytes.Buffer
}

type backgroundKey struct{}

func backgroundOf(ts *testscript.TestScript) *background {
	return ts.Value(backgroundKey{}).(*background)
}

func (b *background) running() bool {
	if b.cmd == nil {
		return false
	}
	select {
	case <-b.ended:
		return false
	default:
		return true
	}
}

func (b *background) logged() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.log.String()
}

// listening is the line of a server that accepts connections.
const listening = "listening on "

// cmdServe starts a server on a free port and waits until it listens. It sets
// URL, and HOST to its address without the scheme. The server ends with the
// script at the latest.
func cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	takes(ts, "serve [FLAG...]", neg, args, 0, 100)
	b := backgroundOf(ts)
	if b.running() {
		ts.Fatalf("there is a server already")
	}
	if b.cmd == nil {
		ts.Defer(b.kill)
	}
	cmd := exec.Command("agentrun", append([]string{"serve", "--listen", "127.0.0.1:0"}, args...)...)
	cmd.Dir = ts.MkAbs(".")
	cmd.Env = []string{"PATH=" + ts.Getenv("PATH"), "TMPDIR=" + ts.Getenv("TMPDIR"), "GORACE=" + ts.Getenv("GORACE")}
	if data := ts.Getenv("AGENTRUN_DATA"); data != "" {
		cmd.Env = append(cmd.Env, "AGENTRUN_DATA="+data)
	}
	cmd.Env = append(cmd.Env, sandboxtest.HostVariable+"="+ts.Getenv(sandboxtest.HostVariable))
	stderr, err := cmd.StderrPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	*b = background{cmd: cmd, ended: make(chan struct{})}
	started := make(chan string, 1)
	go b.follow(bufio.NewScanner(stderr), started)
	var url string
	select {
	case url = <-started:
	case <-time.After(patience):
	}
	if url == "" {
		ts.Fatalf("serve does not listen:\n%s", b.logged())
	}
	ts.Setenv("URL", url)
	ts.Setenv("HOST", strings.TrimPrefix(url, "http://"))
}

// follow keeps what the server writes, hands over its URL, and sees it end.
func (b *background) follow(lines *bufio.Scanner, started chan<- string) {
	for lines.Scan() {
		b.mu.Lock()
		b.log.WriteString(lines.Text() + "\n")
		b.mu.Unlock()
		if url, ok := strings.CutPrefix(lines.Text(), listening); ok {
			started <- url
		}
	}
	b.err = b.cmd.Wait()
	close(b.ended)
	close(started)
}

func (b *background) kill() {
	if b.running() {
		_ = b.cmd.Process.Kill()
		<-b.ended
	}
}

// cmdSignal sends a signal to the server.
func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	takes(ts, "signal TERM|INT|KILL", neg, args, 1, 1)
	signals := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "KILL": syscall.SIGKILL}
	b := backgroundOf(ts)
	if !b.running() || signals[args[0]] == nil {
		ts.Fatalf("no server, or no signal %s", args[0])
	}
	ts.Check(b.cmd.Process.Signal(signals[args[0]]))
}

// cmdEnded waits for the end of the server and checks its exit code. What it
// wrote is the standard error for the commands that follow.
func cmdEnded(ts *testscript.TestScript, neg bool, args []string) {
	takes(ts, "ended CODE", neg, args, 1, 1)
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	b := backgroundOf(ts)
	awaitThat(ts, "the server's end", func() bool { return !b.running() })
	var exit *exec.ExitError
	if b.err != nil && !errors.As(b.err, &exit) {
		ts.Fatalf("%v", b.err)
	}
	if got := b.cmd.ProcessState.ExitCode(); got != want {
		ts.Fatalf("the server ended with %d, want %d\n%s", got, want, b.logged())
	}
	_, err = ts.Stderr().Write([]byte(b.logged()))
	ts.Check(err)
}

// cmdLogged waits until the server has written what fits an expression.
func cmdLogged(ts *testscript.TestScript, neg bool, args []string) {
	takes(ts, "logged EXPRESSION", neg, args, 1, 1)
	pattern, err := regexp.Compile("(?m)" + args[0])
	ts.Check(err)
	b := backgroundOf(ts)
	awaitThat(ts, "the server to log "+args[0], func() bool { return pattern.MatchString(b.logged()) })
}
