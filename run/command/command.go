// Package command is a turn of an agent that is a program: the input on
// standard input, the output on standard output. It knows neither storage nor
// runs; what the program did wrong is data in the Result, and an error means
// that our own machinery broke.
package command

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"agentrun/run/sandbox"
)

// Bounds of what is kept of a program's output, in bytes. Beyond them the
// first and the last half are kept.
const (
	// MaxOutput is for standard output without its trailing newlines.
	MaxOutput = 1 << 20
	// MaxStderr is for standard error.
	MaxStderr = 64 << 10
)

// Turn is what a program is run with.
type Turn struct {
	// Args are the program and its arguments.
	Args []string
	// Env is the whole environment, as NAME=value.
	Env []string
	// Dir is the workspace.
	Dir string
	// Input becomes standard input, nothing added.
	Input string
	// MaxOutput is how much of standard output is kept, in bytes; 0 means
	// MaxOutput.
	MaxOutput int
	// Mask, if not nil, stands in front of what the program writes: what it
	// passes on to w is kept. It is closed when the program is over.
	Mask func(w io.Writer) io.WriteCloser
	// Limits, Read and Proxy are those of the sandbox's command.
	Limits sandbox.Limits
	Read   []string
	Proxy  func(net.Listener)
}

// Result is what a program did.
type Result struct {
	// Output is the turn's output.
	Output Text
	// Stderr is what the program wrote to standard error.
	Stderr Text
	// Started is false when no process came to be.
	Started bool
	// Exit is how it ended.
	Exit sandbox.Exit
	// Took is its wall time.
	Took time.Duration
	// Failure says for people why there is no output; empty when there is one.
	Failure string
}

// stopped is the Failure of a program that did not end by itself.
const stopped = "command was stopped"

// masked returns what passes on to a capture.
func (t Turn) masked(c *capture) io.WriteCloser {
	if t.Mask == nil {
		return unmasked{c}
	}
	return t.Mask(c)
}

// unmasked is a capture that has nothing to close.
type unmasked struct{ *capture }

// Close implements io.Closer.
func (unmasked) Close() error { return nil }

// Run runs the program and waits for its end. When ctx ends first, the program
// is ended, or not even started, and Exit.Stopped is true; the caller knows why
// ctx ended.
func Run(ctx context.Context, runner sandbox.Runner, t Turn) (Result, error) {
	if ctx.Err() != nil {
		return Result{Exit: sandbox.Exit{Stopped: true}, Failure: stopped}, nil //nolint:nilerr // The caller knows.
	}
	stdout, stderr := newCapture(cmp.Or(t.MaxOutput, MaxOutput)), newCapture(MaxStderr)
	toStdout, toStderr := t.masked(stdout), t.masked(stderr)
	begun := time.Now()
	exit, err := runner.Run(ctx, sandbox.Command{
		Args: t.Args, Dir: t.Dir, Env: t.Env, Stdin: strings.NewReader(t.Input), Stdout: toStdout, Stderr: toStderr,
		Limits: t.Limits, Read: t.Read, Proxy: t.Proxy,
	})
	// What they held back is passed on; a capture takes everything.
	_, _ = toStdout.Close(), toStderr.Close()
	result := Result{
		Output: stdout.text(), Stderr: stderr.text(),
		Started: err == nil, Exit: exit, Took: time.Since(begun),
	}
	switch {
	case errors.Is(err, sandbox.ErrNotStarted):
		result.Failure = err.Error()
	case err != nil:
		return Result{}, err
	case exit.Stopped:
		result.Failure = stopped
	case exit.Reached != "":
		result.Failure = fmt.Sprintf("command reached its limit of %s", exit.Reached)
	case exit.Signal == "SIGXFSZ":
		result.Failure = "command ended by signal SIGXFSZ: it reached its limit of file size"
	case exit.Signal != "":
		result.Failure = "command ended by signal " + exit.Signal
	case exit.Code != 0:
		result.Failure = fmt.Sprintf("command exited with code %d", exit.Code)
	}
	return result, nil
}
