package sandbox

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentrun/run/sandbox/sandboxtest"
)

// A caller that goes on talking to a command does not hold its end: an input
// that waits is closed when the process is over.
func TestInputThatWaits(t *testing.T) {
	for _, runner := range []Runner{Plain{}, newConfined(Full, ""), newConfined(Landlock, "")} {
		for _, row := range []struct {
			name, said string
			args       []string
			stop       bool
		}{
			{name: "the program ends", said: "in\n", args: []string{"sh", "-c", "read x; echo $x"}},
			{name: "the program does not read", args: []string{"echo", "in"}},
			{name: "the program is stopped", said: "in\n", args: []string{"sh", "-c", "read x; echo $x; read y"}, stop: true},
		} {
			t.Run(runner.Level()+", "+row.name, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				stdin := &talk{said: strings.NewReader(row.said), waits: make(chan struct{}), closed: make(chan struct{})}
				stdout := &firstWrite{happened: make(chan struct{})}
				dir := openWorkspace(t, runner)
				var exit Exit
				var err error
				done := make(chan struct{})
				go func() {
					defer close(done)
					exit, err = runner.Run(ctx, Command{
						Args: row.args, Dir: dir, Env: []string{"PATH=" + Path},
						Stdin: stdin, Stdout: stdout, Stderr: io.Discard,
					})
				}()
				sandboxtest.Wait(t, stdin.waits, "a Read that waits")
				if row.stop {
					sandboxtest.Wait(t, stdout.happened, "the program's answer")
					cancel()
				}
				sandboxtest.Wait(t, done, "the command's end")
				if err != nil || exit.Stopped != row.stop || stdout.text.String() != "in\n" {
					t.Errorf("got %+v, %v, %q", exit, err, &stdout.text)
				}
				select {
				case <-stdin.closed:
				default:
					t.Error("the input is not closed")
				}
			})
		}
	}
}

// talk is an input whose end nobody knows before Close.
type talk struct {
	said          *strings.Reader
	waits, closed chan struct{}
}

func (s *talk) Read(p []byte) (int, error) {
	if s.said.Len() > 0 {
		return s.said.Read(p)
	}
	close(s.waits)
	<-s.closed
	return 0, io.EOF
}

func (s *talk) Close() error {
	close(s.closed)
	return nil
}

// firstWrite keeps what is written and tells of the first write.
type firstWrite struct {
	text     bytes.Buffer
	happened chan struct{}
}

func (w *firstWrite) Write(p []byte) (int, error) {
	if w.text.Len() == 0 {
		close(w.happened)
	}
	return w.text.Write(p)
}

// openWorkspace makes a workspace that the runner's commands can get to.
func openWorkspace(t *testing.T, runner Runner) string {
	t.Helper()
	// Not below t.TempDir, whose folders are closed to other users.
	base, err := os.MkdirTemp("", "sandbox-test-") //nolint:usetesting // its folders are closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	workspace := filepath.Join(base, "run")
	for _, err := range []error{
		os.Chmod(base, 0o711), os.Mkdir(workspace, 0o700), os.Chown(workspace, runner.Owner(), -1),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return workspace
}
