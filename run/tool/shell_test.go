package tool

import (
	"context"
	"strings"
	"testing"

	"github.com/go-faster/errors"

	"agentrun/run/model"
	"agentrun/run/sandbox"
	"agentrun/run/sandbox/sandboxtest"
)

func TestShell(t *testing.T) {
	b := newBench(t)
	for _, row := range []struct {
		name, command, want string
		failed              bool
	}{
		{name: "nothing", command: ":", want: "\n[exit code 0]"},
		{name: "output", command: "echo hello", want: "hello\n\n[exit code 0]"},
		{name: "both streams in order", command: "echo a; echo b >&2; echo c; echo d >&2", want: "a\nb\nc\nd\n\n[exit code 0]"},
		{name: "exit code", command: "echo a; exit 3", want: "a\n\n[exit code 3]", failed: true},
		{name: "signal", command: "kill -SEGV $$", want: "\n[ended by signal SIGSEGV]", failed: true},
		{name: "the workspace", command: `[ "$PWD" = "$HOME" ] && pwd`, want: b.dir + "\n\n[exit code 0]"},
		{name: "quotes", command: `printf '%s|' "a  b" 'c"d' $'\x41' "$((1+1))"`, want: "a  b|c\"d|A|2|\n[exit code 0]"},
		{name: "lines", command: "for i in 1 2\ndo\n  echo $i\ndone\n", want: "1\n2\n\n[exit code 0]"},
		{name: "bash", command: "[[ a == a ]] && echo ${BASH_VERSION:+bash}", want: "bash\n\n[exit code 0]"},
		{name: "no input", command: "cat; echo over", want: "over\n\n[exit code 0]"},
		{name: "not UTF-8", command: `printf 'a\377b\303'`, want: "a\ufffdb\ufffd\n[exit code 0]"},
		{name: "empty", command: "", want: "\n[exit code 0]"},
	} {
		t.Run(row.name, func(t *testing.T) {
			got := b.call("shell", args{"command": row.command}.String())
			if got.Failed != row.failed || got.Text != row.want {
				t.Errorf("got %+v, want %q", got, row.want)
			}
		})
	}
	b.failed("shell", args{"command": "if"}, "syntax error", "[exit code 2]")
	b.failed("shell", args{"command": "no-such-program"}, "no-such-program", "[exit code 127]")
	b.failed("shell", args{"command": "exec head -c 2000000 /dev/zero > large"}, "[ended by signal SIGXFSZ: the agent's limit of file size was reached]")
	b.failed("shell", args{"command": strings.Repeat("x", 200_000)}, "argument list too long", "command not started")
	b.failed("shell", args{"command": "true", "timeout_seconds": -1}, "timeout_seconds has to be from 1 to 86400")
	b.failed("shell", args{"command": "true", "timeout_seconds": 86401}, "timeout_seconds has to be from 1 to 86400")
}

// What a call makes in the workspace is there for the next call and for the
// other tools.
func TestShellAndFiles(t *testing.T) {
	b := newBench(t)
	b.done("shell", args{"command": "mkdir -p a/b; echo one > a/b/c; cd a; x=1"})
	b.done("shell", args{"command": "cat a/b/c; echo ${x-unset}"}, "one\nunset\n")
	b.done("edit_file", args{"path": "a/b/c", "old": "one", "new": "two"})
	b.done("write_file", args{"path": "a/n/new.sh", "content": "echo new"})
	b.done("shell", args{"command": "cat a/b/c; echo three >> a/b/c; sh a/n/new.sh; echo x >> a/n/new.sh; touch a/n/other"}, "two\nnew\n")
	b.done("read_file", args{"path": "a/b/c"}, "two\nthree\n")
}

func TestShellTimesOut(t *testing.T) {
	b := newBench(t)
	b.failed("shell", args{"command": "echo begun; sleep 600", "timeout_seconds": 1}, "begun\n\n[timed out after 1 seconds and was ended]")
}

// A process in the background does not hold the turn.
func TestShellInTheBackground(t *testing.T) {
	b := newBench(t)
	b.done("shell", args{"command": "sleep 600 & (setsid sleep 600 &) ; echo over"}, "over\n\n[exit code 0]")
}

func TestShellEndsWithTheTurn(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	begun := make(chan struct{})
	b.Sandbox = telling{b.Sandbox, begun}
	failed := make(chan error, 1)
	set := b.open()
	go func() {
		_, err := set.Call(ctx, model.ToolCall{ID: "x", Name: "shell", Arguments: `{"command":"sleep 600"}`})
		failed <- err
	}()
	sandboxtest.Wait(t, begun, "the command")
	cancel()
	if err := <-failed; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// telling tells when it is asked to run something.
type telling struct {
	sandbox.Runner
	begun chan struct{}
}

func (r telling) Run(ctx context.Context, cmd sandbox.Command) (sandbox.Exit, error) {
	close(r.begun)
	return r.Runner.Run(ctx, cmd)
}

func TestShellReachesALimit(t *testing.T) {
	b := newBench(t)
	for exit, want := range map[sandbox.Exit]string{
		{Code: -1, Signal: "SIGKILL", Reached: sandbox.MemoryLimit}: "ended: the agent's limit of memory was reached",
		{Code: -1, Signal: "SIGXFSZ"}:                               "ended by signal SIGXFSZ: the agent's limit of file size was reached",
	} {
		b.Sandbox = ending{b.Sandbox, exit}
		b.failed("shell", args{"command": "x"}, "["+want+"]")
	}
}

// ending is a sandbox in which everything ends in one way.
type ending struct {
	sandbox.Runner
	exit sandbox.Exit
}

func (r ending) Run(context.Context, sandbox.Command) (sandbox.Exit, error) { return r.exit, nil }
