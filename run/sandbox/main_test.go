package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"agentrun/run/sandbox/sandboxtest"
)

// serverVariable makes the test binary a server that runs one shell script, for
// the test that kills a server.
const serverVariable = "SANDBOX_TEST_SCRIPT"

func TestMain(m *testing.M) {
	sandboxtest.OnHost()
	serveOrder()
	if script := os.Getenv(serverVariable); script != "" {
		exit, err := Plain{}.Run(context.Background(), Command{
			Args: []string{"sh", "-c", script}, Dir: os.TempDir(), Stdout: os.Stdout, Stderr: os.Stderr,
		})
		fmt.Println("the script ended by itself:", exit, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// ran is what came of a command.
type ran struct {
	exit           Exit
	err            error
	stdout, stderr string
}

// runIn runs a command in a folder to its end.
func runIn(ctx context.Context, p Plain, dir string, cmd Command) ran {
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &stdout, &stderr
	exit, err := p.Run(ctx, cmd)
	return ran{exit, err, stdout.String(), stderr.String()}
}

// mustRun runs a program to its end, which no fault of ours may prevent.
func mustRun(t *testing.T, args ...string) ran {
	t.Helper()
	r := runIn(t.Context(), Plain{}, t.TempDir(), Command{Args: args})
	if r.err != nil {
		t.Fatal(r.err)
	}
	return r
}

// running is a command under way.
type running struct {
	t      *testing.T
	dir    string
	cancel context.CancelFunc
	done   chan struct{}
	ran    ran
}

// start starts a shell script, which finds the pipes as variables $MEET, where
// it tells of itself, and $GO, where it waits.
func start(t *testing.T, p Plain, script string) (r *running, meet, goOn *sandboxtest.Pipe) {
	t.Helper()
	meet, goOn = sandboxtest.NewPipe(t), sandboxtest.NewPipe(t)
	ctx, cancel := context.WithCancel(t.Context())
	r = &running{t: t, dir: t.TempDir(), cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(r.done)
		r.ran = runIn(ctx, p, r.dir, Command{
			Args: []string{"sh", "-c", script}, Env: []string{"MEET=" + meet.Path, "GO=" + goOn.Path},
		})
	}()
	t.Cleanup(func() {
		cancel()
		<-r.done
	})
	return r, meet, goOn
}

// wait waits for the command's end.
func (r *running) wait() ran {
	r.t.Helper()
	sandboxtest.Wait(r.t, r.done, "the command's end")
	if r.ran.err != nil {
		r.t.Fatal(r.ran.err)
	}
	return r.ran
}
