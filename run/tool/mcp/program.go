package mcp

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"sync"

	"github.com/go-faster/errors"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentrun/run/sandbox"
)

// maxMessage bounds one message of a server, and all that belongs to one answer
// over HTTP.
const maxMessage = 8 << 20

// quoted is how much of a line that is no message is shown.
const quoted = 200

// program is one life of a server that is a command: its process in the sandbox,
// and the messages to and from it, one a line. It is the transport of the SDK,
// and the one connection that comes of it.
type program struct {
	stdin    *feed
	stderr   *tail
	messages chan jsonrpc.Message

	closed    chan struct{} // by the SDK
	closeOnce sync.Once

	broken    chan struct{} // for reason
	breakOnce sync.Once
	reason    error

	stop context.CancelFunc
	over chan struct{} // when nothing of the process is left
}

var (
	_ sdk.Transport  = (*program)(nil)
	_ sdk.Connection = (*program)(nil)
)

// startProgram starts the command, which is stopped when life ends; stop ends it.
func startProgram(life context.Context, stop context.CancelFunc, runner sandbox.Runner, cmd sandbox.Command) *program {
	p := &program{
		stdin: newFeed(), stderr: &tail{}, messages: make(chan jsonrpc.Message),
		closed: make(chan struct{}), broken: make(chan struct{}), stop: stop, over: make(chan struct{}),
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.stdin, &output{program: p}, p.stderr
	go func() {
		defer close(p.over)
		exit, err := runner.Run(life, cmd)
		p.fail(ending(exit, err))
	}()
	return p
}

// ending says how a process ended.
func ending(exit sandbox.Exit, err error) error {
	switch {
	case err != nil:
		return err
	case exit.Stopped:
		return errors.New("it was stopped")
	case exit.Reached != "":
		return errors.Errorf("it was ended at its limit: %s", exit.Reached)
	case exit.Signal != "":
		return errors.Errorf("it was ended by %s", exit.Signal)
	default:
		return errors.Errorf("it ended with exit code %d", exit.Code)
	}
}

// fail ends the program for a reason; only the first one counts.
func (p *program) fail(reason error) {
	p.breakOnce.Do(func() {
		p.reason = p.withLastWords(reason)
		close(p.broken)
		p.stop()
	})
}

// brokenBy is why the program is of no more use, nil when it is.
func (p *program) brokenBy() error {
	select {
	case <-p.broken:
		return p.reason
	default:
		return nil
	}
}

func (p *program) withLastWords(err error) error {
	words := p.stderr.text()
	if words == "" {
		return err
	}
	return errors.Errorf("%v; its standard error ends with: %s", err, words)
}

// Connect implements sdk.Transport.
func (p *program) Connect(context.Context) (sdk.Connection, error) { return p, nil }

// SessionID implements sdk.Connection.
func (*program) SessionID() string { return "" }

// Read implements sdk.Connection.
func (p *program) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case m := <-p.messages:
		return m, nil
	case <-p.broken:
		return nil, p.reason
	case <-p.closed:
		return nil, io.EOF
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write implements sdk.Connection. It does not wait for the program to read.
func (p *program) Write(_ context.Context, m jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	_, err = p.stdin.Write(append(line, '\n'))
	switch {
	case errors.Is(err, errNotRead):
		p.fail(err)
		return p.reason
	case err != nil:
		// The process is over, and how is about to be known.
		select {
		case <-p.broken:
		case <-p.closed:
		}
		return sdk.ErrConnectionClosed // which says that nothing was sent
	}
	return nil
}

// Close implements sdk.Connection. It tells the program to end, and does not
// wait for it.
func (p *program) Close() error {
	p.closeOnce.Do(func() { close(p.closed) })
	return p.stdin.Close()
}

// output is the program's standard output. It takes everything, as a command's
// has to.
type output struct {
	program *program
	line    []byte // its beginning
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 && o.program.brokenBy() == nil {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if len(o.line)+len(line) > maxMessage {
			o.line = nil
			o.program.fail(errTooLong)
			break
		}
		o.line = append(o.line, line...)
		if !whole {
			break
		}
		o.deliver(bytes.TrimSpace(o.line))
		o.line, b = nil, rest // A message may be made of the line's own bytes.
	}
	return n, nil
}

// deliver hands on a message and waits until it is taken.
func (o *output) deliver(line []byte) {
	if len(line) == 0 {
		return
	}
	m, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		shown := fmt.Sprintf("%q", cut(string(line), quoted))
		o.program.fail(errors.Errorf("it wrote a line to its standard output that is no message: %s", shown))
		return
	}
	if r, ok := m.(*jsonrpc.Request); ok && !r.IsCall() {
		return // There is no notification that is not ignored.
	}
	select {
	case o.program.messages <- m:
	case <-o.program.closed:
	}
}
