package tool

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"go.uber.org/goleak"

	"agentrun/run/model"
	"agentrun/run/sandbox"
	"agentrun/storage/workspace"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runner is the best sandbox of this host.
var runner = sync.OnceValues(func() (sandbox.Runner, error) {
	return sandbox.Open(context.Background(), sandbox.Options{Level: sandbox.Auto})
})

// bench is a place for tools, with a workspace of its own.
type bench struct {
	Place
	t   *testing.T
	dir string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	box, err := runner()
	if err != nil {
		t.Fatal(err)
	}
	spaces, err := workspace.Open(filepath.Join(t.TempDir(), "workspaces"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = spaces.Close() })
	b := &bench{t: t, Place: Place{Run: uuid.Must(uuid.NewV7()), Workspaces: spaces, Sandbox: box}}
	b.dir = spaces.Path(b.Run)
	b.Command = func(args []string) sandbox.Command {
		return sandbox.Command{
			Args: args, Dir: b.dir, Env: []string{"PATH=" + sandbox.Path, "HOME=" + b.dir},
			Limits: sandbox.Limits{FileSize: 1 << 20},
		}
	}
	b.must(spaces.Ensure(b.Run))
	b.must(spaces.Own(b.Run, box.Owner()))
	return b
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// file puts a file into the workspace.
func (b *bench) file(path, content string) {
	b.t.Helper()
	b.must(b.Workspaces.WriteFile(b.Run, path, []byte(content), b.Sandbox.Owner()))
}

// content is that of a file in the workspace.
func (b *bench) content(path string) string {
	b.t.Helper()
	content, err := os.ReadFile(filepath.Join(b.dir, path))
	b.must(err)
	return string(content)
}

// names are those of a folder in the workspace.
func (b *bench) names(path string) string {
	b.t.Helper()
	list, err := os.ReadDir(filepath.Join(b.dir, path))
	b.must(err)
	names := make([]string, len(list))
	for i, entry := range list {
		names[i] = entry.Name()
	}
	return strings.Join(names, " ")
}

func (b *bench) open() *Set {
	b.t.Helper()
	set, err := Open(b.Place, Names()...)
	b.must(err)
	return set
}

// args are arguments for a tool, as a model writes them.
type args map[string]any

func (a args) String() string {
	if a == nil {
		return "{}"
	}
	raw, err := json.Marshal(a)
	if err != nil {
		panic(err)
	}
	return string(raw)
}

// call calls a tool as a model does.
func (b *bench) call(name, arguments string) model.ToolResult {
	b.t.Helper()
	result, err := b.open().Call(b.t.Context(), model.ToolCall{ID: "call_1", Name: name, Arguments: arguments})
	b.must(err)
	if result.CallID != "call_1" {
		b.t.Errorf("the result is for call %q", result.CallID)
	}
	return result
}

// done checks that a call does its work and that its text has these parts.
func (b *bench) done(name string, a args, parts ...string) string {
	b.t.Helper()
	return b.check(b.call(name, a.String()), false, parts...)
}

// failed checks that a call fails, with these parts in its text.
func (b *bench) failed(name string, a args, parts ...string) string {
	b.t.Helper()
	return b.check(b.call(name, a.String()), true, parts...)
}

func (b *bench) check(got model.ToolResult, failed bool, parts ...string) string {
	b.t.Helper()
	if got.Failed != failed {
		b.t.Errorf("failed: %v, with %q", got.Failed, got.Text)
	}
	for _, part := range parts {
		if !strings.Contains(got.Text, part) {
			b.t.Errorf("got %q, without %q", got.Text, part)
		}
	}
	return got.Text
}
