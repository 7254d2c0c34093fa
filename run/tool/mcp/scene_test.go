package mcp

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"agentrun/internal/needs"
	"agentrun/run/model"
	"agentrun/run/sandbox"
)

// host is where the commands of a test run.
type host struct {
	runner sandbox.Runner
	dir    string
	binary string
	limits sandbox.Limits
	read   []string
}

// binaryFolder has a copy of the test binary that every user can get to: Go
// builds tests in a folder that is closed to others.
var (
	binaryMu     sync.Mutex
	binaryFolder string
)

func testBinary(t *testing.T) string {
	t.Helper()
	binaryMu.Lock()
	defer binaryMu.Unlock()
	if binaryFolder == "" {
		dir, err := os.MkdirTemp("", "mcp-test-") //nolint:usetesting // It is for all tests, and its folder open to other users.
		if err != nil {
			t.Fatal(err)
		}
		binaryFolder = dir
		copyBinary(t, filepath.Join(dir, "server"))
	}
	return filepath.Join(binaryFolder, "server")
}

func copyBinary(t *testing.T, path string) {
	t.Helper()
	from, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	to, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(to, from)
	for _, err := range []error{err, to.Close(), os.Chmod(filepath.Dir(path), 0o755)} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

func removeBinary() {
	if binaryFolder != "" {
		_ = os.RemoveAll(binaryFolder)
	}
}

// plainHost confines nothing.
func plainHost(t *testing.T) host {
	t.Helper()
	return host{runner: sandbox.Plain{}, dir: t.TempDir(), binary: "/proc/self/exe"}
}

// confinedHost confines fully, where the machine lets it.
func confinedHost(t *testing.T) host {
	t.Helper()
	runner, err := sandbox.Open(t.Context(), sandbox.Options{Level: sandbox.Full})
	if err != nil {
		needs.Lacking(t, err.Error())
	}
	// Not below t.TempDir, whose folders are closed to other users.
	base, err := os.MkdirTemp("", "mcp-test-") //nolint:usetesting // its folders are closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	dir := filepath.Join(base, "run")
	for _, err := range []error{
		os.Chmod(base, 0o711), os.Mkdir(dir, 0o700), os.Chown(dir, runner.Owner(), -1),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	binary := testBinary(t)
	return host{runner: runner, dir: dir, binary: binary, read: []string{filepath.Dir(binary)}, limits: sandbox.Limits{
		Memory: 1 << 30, Processes: 256, OpenFiles: 1024, FileSize: 1 << 30,
	}}
}

// eachHost runs a test without confinement and with.
func eachHost(t *testing.T, test func(t *testing.T, h host)) {
	t.Helper()
	t.Run("off", func(t *testing.T) { test(t, plainHost(t)) })
	t.Run("full", func(t *testing.T) { test(t, confinedHost(t)) })
}

// config is for servers of these modes, each a command named after its mode.
func (h host) config(modes ...string) Config {
	cfg := Config{Sandbox: h.runner, Patience: 10 * time.Second, CallLimit: 10 * time.Second}
	for _, mode := range modes {
		cfg.Servers = append(cfg.Servers, Server{Name: mode, Command: []string{h.binary, mode}})
	}
	cfg.Command = func(args []string) sandbox.Command {
		return sandbox.Command{
			Args: args, Dir: h.dir, Limits: h.limits, Read: h.read,
			Env: []string{"PATH=" + sandbox.Path, "HOME=" + h.dir, "GORACE=atexit_sleep_ms=0", modeVariable + "=" + args[len(args)-1]},
		}
	}
	return cfg
}

// open opens servers that go with the test.
func open(t *testing.T, cfg Config) *Servers {
	t.Helper()
	s := Open(t.Context(), cfg)
	t.Cleanup(s.Close)
	return s
}

// mustOpen opens servers that have no problems.
func mustOpen(t *testing.T, cfg Config) *Servers {
	t.Helper()
	s := open(t, cfg)
	if len(s.Problems()) > 0 {
		t.Fatalf("problems: %+v", s.Problems())
	}
	return s
}

// call calls a tool, which no error may prevent.
func call(t *testing.T, s *Servers, tool, arguments string) model.ToolResult {
	t.Helper()
	r, err := s.Call(t.Context(), model.ToolCall{ID: "call_1", Name: tool, Arguments: arguments})
	if err != nil || r.CallID != "call_1" {
		t.Fatalf("%s: %+v, %v", tool, r, err)
	}
	return r
}

// works calls a tool that has to work.
func works(t *testing.T, s *Servers, tool, arguments, want string) {
	t.Helper()
	if r := call(t, s, tool, arguments); r.Failed || r.Text != want {
		t.Errorf("%s: got %+v, want %q", tool, r, want)
	}
}

// fails calls a tool that has to fail with these words.
func fails(t *testing.T, s *Servers, tool, arguments string, words ...string) {
	t.Helper()
	r := call(t, s, tool, arguments)
	if !r.Failed {
		t.Errorf("%s: it did not fail: %q", tool, cut(r.Text, 200))
	}
	for _, word := range words {
		if !strings.Contains(r.Text, word) {
			t.Errorf("%s: %q is not in %q", tool, word, cut(r.Text, 6000))
		}
	}
}

// onlyProblem checks that the servers have one problem, with these words.
func onlyProblem(t *testing.T, s *Servers, server string, words ...string) {
	t.Helper()
	problems := s.Problems()
	if len(problems) != 1 || problems[0].Server != server {
		t.Fatalf("problems: %+v", problems)
	}
	for _, word := range words {
		if !strings.Contains(problems[0].Reason, word) {
			t.Errorf("%q is not in %q", word, problems[0].Reason)
		}
	}
}

// processesIn are the processes that work in a folder.
func processesIn(t *testing.T, dir string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && strings.HasPrefix(at, dir) {
			found = append(found, link)
		}
	}
	return found
}

// pending is a call under way.
type pending struct {
	done   chan struct{}
	result model.ToolResult
	err    error
}

func start(ctx context.Context, s *Servers, tool, arguments string) *pending {
	p := &pending{done: make(chan struct{})}
	go func() {
		defer close(p.done)
		p.result, p.err = s.Call(ctx, model.ToolCall{ID: "call_1", Name: tool, Arguments: arguments})
	}()
	return p
}

// pipeArgument are the arguments of hang.
func pipeArgument(path string) string { return fmt.Sprintf(`{"pipe":%q}`, path) }
