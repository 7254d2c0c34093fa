package script_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"

	"agentrun/run/model"
	"agentrun/run/model/script"
)

func newClient(t *testing.T, text string) *script.Client {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := script.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func user(text string) model.Message { return model.Message{Role: model.RoleUser, Text: text} }

// A script is followed by what the conversation shows of it.
func TestConversation(t *testing.T) {
	c := newClient(t, `
steps:
- calls:
  - {tool: shell, arguments: {command: "ls"}}
  - {tool: shell, arguments: "no JSON"}
  tokens: {input: 10, output: 5}
- say: "heard ${input}, got ${result}"
summary: nothing else
`)
	req := model.Request{Model: "a", Messages: []model.Message{user("go")}}
	first, err := c.Call(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	want := model.Answer{
		Message: model.Message{Role: model.RoleModel, Calls: []model.ToolCall{
			{ID: "step1_call1", Name: "shell", Arguments: `{"command":"ls"}`}, {ID: "step1_call2", Name: "shell", Arguments: "no JSON"},
		}},
		Stop: model.StopCalls, Usage: model.Usage{Input: 10, Output: 5}, Attempts: 1,
	}
	if diff := cmp.Diff(want, first); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	req.Messages = append(req.Messages, first.Message, model.Message{Role: model.RoleTool, Result: &model.ToolResult{Text: "a file"}})
	second, err := c.Call(t.Context(), req)
	if err != nil || second.Message.Text != "heard go, got a file" || second.Stop != model.StopEnd {
		t.Errorf("got %+v, %v", second, err)
	}
	req.Messages = append(req.Messages, second.Message, user("more"))
	var e *model.Error
	if _, err := c.Call(t.Context(), req); !errors.As(err, &e) || !errors.Is(err, model.ErrRefused) || !strings.Contains(e.Message, "only 2 steps") {
		t.Errorf("got %v", err)
	}
}

// A summary keeps the place in the script.
func TestSummary(t *testing.T) {
	c := newClient(t, "steps:\n- say: one\n- say: two\nsummary: all\n")
	summary, err := c.Call(t.Context(), model.Request{Model: "a", Summary: true, Messages: []model.Message{user("[user] go\n[model] one\n")}})
	if err != nil || !strings.HasSuffix(summary.Message.Text, "all") {
		t.Fatalf("got %+v, %v", summary, err)
	}
	next, err := c.Call(t.Context(), model.Request{Model: "a", Messages: []model.Message{user("Before: " + summary.Message.Text)}})
	if err != nil || next.Message.Text != "two" {
		t.Errorf("got %+v, %v", next, err)
	}
}

func TestFailureAndWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClient(t, "steps:\n- wait: 10s\n  fail: {kind: unavailable, status: 503, message: busy}\n")
		req := model.Request{Model: "a", Messages: []model.Message{user("go")}}
		begun := time.Now()
		_, err := c.Call(t.Context(), req)
		if want := "the provider is not available (HTTP 503): busy"; err == nil || err.Error() != want || time.Since(begun) != 10*time.Second {
			t.Errorf("got %v after %v", err, time.Since(begun))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := c.Call(ctx, req); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

func TestBadScripts(t *testing.T) {
	for _, row := range []struct{ name, text, model, want string }{
		{"another name", "steps: []\n", "b", "the script b.yaml cannot be read"},
		{"a path", "steps: []\n", "../a", "no script can have the name"},
		{"an unknown field", "step: []\n", "a", "a.yaml: "},
		{"an unknown failure", "steps:\n- fail: {kind: odd}\n", "a", "step 1: fail.kind"},
		{"a failure that speaks", "steps:\n- fail: {kind: refused}\n  say: a\n", "a", "step 1: an answer that fails"},
		{"no tool", "steps:\n- calls: [{arguments: {}}]\n", "a", "step 1: call 1 names no tool"},
		{"a bad time", "steps:\n- wait: long\n", "a", "invalid duration"},
	} {
		t.Run(row.name, func(t *testing.T) {
			_, err := newClient(t, row.text).Call(t.Context(), model.Request{Model: row.model})
			if err == nil || !strings.Contains(err.Error(), row.want) {
				t.Errorf("got %v, want %q", err, row.want)
			}
		})
	}
	if _, err := script.New(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a folder that is not there was opened")
	}
}
