package sandbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentrun/internal/needs"
	"agentrun/run/sandbox/sandboxtest"
)

// A server in these tests is a process of its own, since what a sandbox is
// depends on who made it: one that runs one command in a sandbox, as a user of
// the test's choice, and tells what came of it.

// orderVariable makes the test binary such a server; its value is the order.
const orderVariable = "SANDBOX_TEST_ORDER"

// order is what a server of a test is to run.
type order struct {
	Level  Level
	Data   string // the data directory
	Args   []string
	Dir    string
	Env    []string
	Stdin  string
	Limits Limits
	Read   []string
	// Stop is when to stop the command; 0 means never.
	Stop time.Duration
	// Open lets Open choose the runner, as a real server does.
	Open bool
	// Before is a shell script for the server itself, between its start and the
	// command.
	Before string
	// Grace stands for StopGrace; 0 means that.
	Grace time.Duration
	// Linger lets the server stay until its standard input ends.
	Linger bool
	// Examine asks for the checks of the host alone.
	Examine bool
}

// outcome is what came of an order.
type outcome struct {
	Exit           Exit
	Level          string // of the runner
	Err            string
	Stdout, Stderr string
	Took           time.Duration
	Checks         []Check
}

// serveOrder runs the order in the environment, if there is one, and exits.
func serveOrder() {
	text := os.Getenv(orderVariable)
	if text == "" {
		return
	}
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		panic(err)
	}
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	if o.Stop > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, o.Stop)
		defer cancel()
	}
	if o.Examine {
		_ = json.NewEncoder(os.Stdout).Encode(outcome{Checks: Examine(ctx)})
		os.Exit(0)
	}
	runner, err := o.runner(ctx)
	if err != nil {
		_ = json.NewEncoder(os.Stdout).Encode(outcome{Err: err.Error()})
		os.Exit(0)
	}
	if o.Before != "" {
		if err := exec.Command("sh", "-c", o.Before).Run(); err != nil {
			panic(err)
		}
	}
	var stdout, stderr bytes.Buffer
	begun := time.Now()
	exit, err := runner.Run(ctx, Command{
		Args: o.Args, Dir: o.Dir, Env: o.Env, Stdin: strings.NewReader(o.Stdin), Stdout: &stdout, Stderr: &stderr,
		Limits: o.Limits, Read: o.Read,
	})
	r := outcome{Exit: exit, Level: runner.Level(), Stdout: stdout.String(), Stderr: stderr.String(), Took: time.Since(begun)}
	if err != nil {
		r.Err = err.Error()
	}
	_ = json.NewEncoder(os.Stdout).Encode(r)
	if o.Linger {
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	os.Exit(0)
}

func (o order) runner(ctx context.Context) (Runner, error) {
	switch {
	case o.Open:
		return Open(ctx, Options{Level: o.Level, Data: o.Data})
	case o.Level == Off:
		return Plain{grace: o.Grace}, nil
	default:
		c := newConfined(o.Level, o.Data)
		c.grace = o.Grace
		return c, nil
	}
}

// setting is who runs a server, and at which level it confines.
type setting struct {
	t     *testing.T
	uid   int
	level Level
	// data is the data directory, run the folder of a run's workspace in it.
	data, workspace string
	// host is what the server's host lacks, as sandboxtest has it; empty means
	// nothing. binary is the server's own, empty for this one.
	host, binary string
}

// everySetting runs a test at the levels full and landlock, as root and as
// nobody. Root is needed for that.
func everySetting(t *testing.T, test func(t *testing.T, s *setting)) {
	t.Helper()
	if os.Geteuid() != 0 {
		needs.Lacking(t, "root, to be more than one user")
	}
	for _, level := range []Level{Full, Landlock} {
		for _, uid := range []int{0, nobody} {
			t.Run(fmt.Sprintf("%s as %d", level, uid), func(t *testing.T) { test(t, newSetting(t, level, uid)) })
		}
	}
}

// eitherSetting is everySetting for tests that take long: of every day's, each
// level and each user has a part, and a full one has them all.
func eitherSetting(t *testing.T, test func(t *testing.T, s *setting)) {
	t.Helper()
	everySetting(t, func(t *testing.T, s *setting) {
		if !longTests() && (s.level == Full) != (s.uid == 0) {
			t.Skip("with AGENTRUN_TEST=full only")
		}
		test(t, s)
	})
}

// newSetting makes a data directory with a workspace, as a server does.
func newSetting(t *testing.T, level Level, uid int) *setting {
	t.Helper()
	// Not below t.TempDir, whose folders are closed to other users.
	base, err := os.MkdirTemp("", "sandbox-test-") //nolint:usetesting // its folders are closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	s := &setting{t: t, uid: uid, level: level, data: filepath.Join(base, "data")}
	s.workspace = filepath.Join(s.data, "workspaces", "run")
	owner := uid
	if uid == 0 && level != Off {
		owner = commandUser
	}
	for _, err := range []error{
		os.Chmod(base, 0o711), os.MkdirAll(s.workspace, 0o700),
		os.Chown(s.data, uid, uid), os.Chown(filepath.Dir(s.workspace), uid, uid), os.Chown(s.workspace, owner, owner),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if level == Landlock && uid == 0 {
		if err := newConfined(level, s.data).openWay(s.data); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// script orders a shell script.
func (s *setting) script(text string) order {
	return s.order("sh", "-c", text)
}

func (s *setting) order(args ...string) order {
	return order{
		Level: s.level, Data: s.data, Args: args, Dir: s.workspace,
		Env: []string{"PATH=" + Path, "HOME=" + s.workspace, "TMPDIR=/tmp", "LANG=C.UTF-8"},
	}
}

// server returns the process of a server with an order, not started yet.
func (s *setting) server(o order) *exec.Cmd { return s.serverIn(s.t.Context(), o) }

// serverIn is server for a time. It may be called by any goroutine.
func (s *setting) serverIn(ctx context.Context, o order) *exec.Cmd {
	text, err := json.Marshal(o)
	if err != nil {
		panic(err)
	}
	cmd := exec.CommandContext(ctx, cmp.Or(s.binary, "/proc/self/exe"))
	cmd.Dir = "/"
	// A binary with the race detector would wait a second at its end.
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", orderVariable+"="+string(text), sandboxtest.HostVariable+"="+s.host)
	if s.uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(s.uid), Gid: uint32(s.uid)}}
	}
	return cmd
}

// run runs an order to its end.
func (s *setting) run(o order) outcome {
	s.t.Helper()
	cmd := s.server(o)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	var r outcome
	if err == nil {
		err = json.Unmarshal(out, &r)
	}
	if err != nil {
		s.t.Fatalf("the server: %v\n%s%s", err, out, &stderr)
	}
	return r
}
