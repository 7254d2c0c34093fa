package command

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-faster/errors"
	"go.uber.org/goleak"

	"agentrun/run/sandbox"
	"agentrun/run/sandbox/sandboxtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runScript runs a shell script in dir to its end.
func runScript(ctx context.Context, t *testing.T, dir, script, input string) Result {
	t.Helper()
	return runProgram(ctx, t, dir, input, "sh", "-c", script)
}

func runProgram(ctx context.Context, t *testing.T, dir, input string, args ...string) Result {
	t.Helper()
	result, err := Run(ctx, sandbox.Plain{}, Turn{Args: args, Dir: dir, Input: input})
	if err != nil {
		t.Fatal(err)
	}
	return result
}

func TestInputArrivesByteForByte(t *testing.T) {
	for _, row := range []struct{ name, input string }{
		{name: "empty", input: ""},
		{name: "no newline at the end", input: "hello"},
		{name: "newlines at the end", input: "hello\n\n"},
		{name: "only a newline", input: "\n"},
		{name: "carriage returns and tabs", input: "a\r\nb\tc\r"},
		{name: "NUL", input: "a\x00b\x00"},
		{name: "not UTF-8", input: "\xff\xfe\xc3"},
		{name: "what a shell would expand", input: "$HOME `id` $(id) \\n %s"},
		{name: "1 MiB", input: strings.Repeat("0123456789abcdef", 1<<16)},
	} {
		t.Run(row.name, func(t *testing.T) {
			dir := t.TempDir()
			result := runScript(t.Context(), t, dir, "cat > got", row.input)
			got, err := os.ReadFile(filepath.Join(dir, "got"))
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != row.input {
				t.Errorf("got %d bytes, want %d", len(got), len(row.input))
			}
			if result.Failure != "" || result.Output != (Text{}) {
				t.Errorf("got %+v, want an empty output", result)
			}
		})
	}
}

func TestInputNeedNotBeRead(t *testing.T) {
	result := runScript(t.Context(), t, t.TempDir(), "echo done", strings.Repeat("x", 1<<20))
	if result.Failure != "" || result.Output != (Text{Text: "done"}) {
		t.Errorf("got %+v", result)
	}
}

func TestOutput(t *testing.T) {
	const mib = 1 << 20
	xs := func(n int) string { return strings.Repeat("x", n) }
	const write = `x() { head -c $1 /dev/zero | tr '\0' x; }; `
	for _, row := range []struct {
		name   string
		script string
		want   Text
	}{
		{name: "none", script: ":", want: Text{}},
		{name: "only newlines", script: `printf '\n\n\n'`, want: Text{}},
		{name: "newlines at the end", script: `printf 'a\nb\n\n\n'`, want: Text{Text: "a\nb"}},
		{name: "newlines inside and in front", script: `printf '\n\na\n\n\n\nb'`, want: Text{Text: "\n\na\n\n\n\nb"}},
		{name: "other blanks at the end stay", script: `printf 'a \t\r\n'`, want: Text{Text: "a \t\r"}},
		{name: "1 MiB", script: "x 1048576", want: Text{Text: xs(mib)}},
		{name: "1 MiB and newlines", script: `x 1048576; printf '\n\n\n'`, want: Text{Text: xs(mib)}},
		{
			name: "1 MiB and 1 byte", script: "x 524288; printf y; x 524288",
			want: Text{Text: xs(mib/2) + "[1 bytes left out]" + xs(mib/2), LeftOut: 1},
		},
		{
			name: "3 MiB", script: "printf begin; x 3145718; printf 'end\n\n'",
			want: Text{Text: "begin" + xs(mib/2-5) + "[2097150 bytes left out]" + xs(mib/2-3) + "end", LeftOut: 2097150},
		},
		{name: "not UTF-8", script: `printf 'a\377\376b\303'`, want: Text{Text: "a\ufffd\ufffdb\ufffd", Replaced: true}},
		{name: "characters", script: `printf 'äß€😀'`, want: Text{Text: "äß€😀"}},
		{name: "NUL", script: `printf 'a\0b'`, want: Text{Text: "a\x00b"}},
	} {
		t.Run(row.name, func(t *testing.T) {
			result := runScript(t.Context(), t, t.TempDir(), write+row.script, "")
			if result.Failure != "" || result.Output != row.want {
				t.Errorf("got %s %q %d %v, want %q %d %v", result.Failure,
					brief(result.Output.Text), result.Output.LeftOut, result.Output.Replaced,
					brief(row.want.Text), row.want.LeftOut, row.want.Replaced)
			}
			if !result.Started || result.Exit != (sandbox.Exit{}) || result.Took <= 0 {
				t.Errorf("got %+v %v %v", result.Exit, result.Started, result.Took)
			}
		})
	}
}

// brief shortens a text for a message.
func brief(s string) string {
	if len(s) <= 200 {
		return s
	}
	return s[:100] + "…" + s[len(s)-100:]
}

func TestStderrIsKept(t *testing.T) {
	result := runScript(t.Context(), t, t.TempDir(), "echo out; printf 'a\nb\n' >&2; exit 1", "")
	if want := (Text{Text: "a\nb"}); result.Stderr != want {
		t.Errorf("got %+v", result.Stderr)
	}
	result = runScript(t.Context(), t, t.TempDir(), `head -c 70000 /dev/zero | tr '\0' x >&2`, "")
	half := strings.Repeat("x", MaxStderr/2)
	if want := (Text{Text: half + "[4464 bytes left out]" + half, LeftOut: 4464}); result.Stderr != want {
		t.Errorf("got %q, %d left out", brief(result.Stderr.Text), result.Stderr.LeftOut)
	}
	if result.Output != (Text{}) || result.Failure != "" {
		t.Errorf("got %+v, %s", result.Output, result.Failure)
	}
}

func TestFailureIsData(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "data"), []byte("no program"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, row := range []struct {
		name    string
		args    []string
		failure string
		exit    sandbox.Exit
		started bool
	}{
		{
			name: "non-zero exit", args: []string{"sh", "-c", "echo out; exit 3"},
			failure: "command exited with code 3", exit: sandbox.Exit{Code: 3}, started: true,
		},
		{
			name: "a signal", args: []string{"sh", "-c", "kill -SEGV $$"},
			failure: "command ended by signal SIGSEGV", exit: sandbox.Exit{Code: -1, Signal: "SIGSEGV"}, started: true,
		},
		{
			name: "a signal without a name", args: []string{"sh", "-c", "kill -40 $$"},
			failure: "command ended by signal 40", exit: sandbox.Exit{Code: -1, Signal: "40"}, started: true,
		},
		{
			name: "no such program", args: []string{"no-such-program"},
			failure: "no-such-program: no such program in " + sandbox.Path + ": command not started",
		},
		{
			name: "no such path", args: []string{"./missing"},
			failure: "./missing: no such file or directory: command not started",
		},
		{
			name: "not executable", args: []string{"./data"},
			failure: "./data: permission denied: command not started",
		},
		{
			name: "a directory", args: []string{"/"},
			failure: "/: permission denied: command not started",
		},
		{
			name: "too long an argument", args: []string{"echo", strings.Repeat("x", 1<<20)},
			failure: "echo: argument list too long: command not started",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			result := runProgram(t.Context(), t, dir, "", row.args...)
			if result.Failure != row.failure || result.Exit != row.exit || result.Started != row.started {
				t.Errorf("got %+v, want %q, %+v, started: %v", result, row.failure, row.exit, row.started)
			}
		})
	}
}

func TestStop(t *testing.T) {
	meet := sandboxtest.NewPipe(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	dir := t.TempDir()
	done := make(chan struct{})
	var result Result
	go func() {
		defer close(done)
		result = runScript(ctx, t, dir, "trap 'echo bye; exit 0' TERM; echo err >&2; sh -c 'echo > "+meet.Path+"; exec sleep 600' & wait", "")
	}()
	meet.Line()
	cancel()
	sandboxtest.Wait(t, done, "the command's end")
	if result.Failure != "command was stopped" || result.Exit != (sandbox.Exit{Stopped: true}) || !result.Started {
		t.Errorf("got %+v", result)
	}
	if result.Output.Text != "bye" || result.Stderr.Text != "err" {
		t.Errorf("got the output %+v and %+v", result.Output, result.Stderr)
	}
}

func TestStopBeforeTheStart(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	result := runScript(ctx, t, dir, "echo started > started", "")
	if want := (Result{Exit: sandbox.Exit{Stopped: true}, Failure: "command was stopped"}); result != want {
		t.Errorf("got %+v, want %+v", result, want)
	}
	if _, err := os.Stat(filepath.Join(dir, "started")); err == nil {
		t.Error("the program was started")
	}
}

// brokenRunner is a sandbox that does not work.
type brokenRunner struct{ sandbox.Plain }

var errBroken = errors.New("broken")

func (brokenRunner) Run(context.Context, sandbox.Command) (sandbox.Exit, error) {
	return sandbox.Exit{}, errBroken
}

func TestFaultOfOursIsAnError(t *testing.T) {
	result, err := Run(t.Context(), brokenRunner{}, Turn{Args: []string{"true"}, Dir: t.TempDir()})
	if !errors.Is(err, errBroken) || result != (Result{}) {
		t.Errorf("got %+v, %v", result, err)
	}
}
