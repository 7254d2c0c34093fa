package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/go-faster/errors"

	"agentrun/run/model"
	"agentrun/run/sandbox"
)

func TestNames(t *testing.T) {
	want := []string{"edit_file", "fetch", "list_files", "read_file", "search", "shell", "write_file"}
	if got := Names(); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestOpen(t *testing.T) {
	b := newBench(t)
	set, err := Open(b.Place, "shell", "read_file", "shell")
	b.must(err)
	tools := set.Tools()
	if len(tools) != 2 || tools[0].Name != "shell" || tools[1].Name != "read_file" {
		t.Errorf("got %+v", tools)
	}
	_, err = Open(b.Place, "read_file", "reed_file")
	if !errors.Is(err, ErrUnknownTool) || !strings.Contains(err.Error(), `"reed_file": there are edit_file, fetch, `) {
		t.Errorf("got %v", err)
	}
	b.check(b.callOf(set, "write_file", "{}"), true, `There is no tool "write_file". There are: shell, read_file.`)
	none, err := Open(b.Place)
	b.must(err)
	b.check(b.callOf(none, "", ""), true, "There are none.")
}

func (b *bench) callOf(set *Set, name, arguments string) model.ToolResult {
	b.t.Helper()
	result, err := set.Call(b.t.Context(), model.ToolCall{ID: "x", Name: name, Arguments: arguments})
	b.must(err)
	return result
}

// What a model is told is complete: words, and a schema that allows nothing
// else, with a description of each argument.
func TestToolsAreDescribed(t *testing.T) {
	required := map[string]string{
		"edit_file": "path,old,new", "fetch": "url", "list_files": "", "read_file": "path", "search": "pattern",
		"shell": "command", "write_file": "path,content",
	}
	set := newBench(t).open()
	for _, tool := range set.Tools() {
		var schema struct {
			Type                 string
			AdditionalProperties *bool
			Required             []string
			Properties           map[string]struct{ Type, Description string }
		}
		if err := json.Unmarshal(tool.Schema, &schema); err != nil {
			t.Fatalf("%s: %v in %s", tool.Name, err, tool.Schema)
		}
		if schema.Type != "object" || schema.AdditionalProperties == nil || *schema.AdditionalProperties {
			t.Errorf("%s: %s", tool.Name, tool.Schema)
		}
		if got := strings.Join(schema.Required, ","); got != required[tool.Name] {
			t.Errorf("%s requires %s", tool.Name, got)
		}
		for name, property := range schema.Properties {
			if property.Description == "" || !slices.Contains([]string{"string", "integer", "boolean"}, property.Type) {
				t.Errorf("%s: %s is %+v", tool.Name, name, property)
			}
		}
		if len(tool.Description) < 100 {
			t.Errorf("%s: %q", tool.Name, tool.Description)
		}
	}
}

func TestReadOnly(t *testing.T) {
	set := newBench(t).open()
	for _, name := range append(Names(), "no_tool") {
		want := slices.Contains([]string{"fetch", "list_files", "read_file", "search"}, name)
		if set.ReadOnly(name) != want {
			t.Errorf("%s: %v", name, !want)
		}
	}
}

// Every tool refuses what its schema does not allow, and does nothing then.
func TestBadArguments(t *testing.T) {
	b := newBench(t)
	valid := map[string]args{
		"edit_file": {"path": "f", "old": "a", "new": "b", "all": true}, "fetch": {"url": "http://a.test/", "method": "GET"},
		"list_files": {"path": ".", "glob": "*"}, "read_file": {"path": "f", "offset": 1, "limit": 1, "numbers": true},
		"search": {"pattern": "x", "path": ".", "glob": "*"}, "shell": {"command": "echo > made", "timeout_seconds": 1}, "write_file": {"path": "made", "content": "x"},
	}
	set := b.open()
	rows := 0
	refused := func(name, arguments string, parts ...string) {
		t.Helper()
		rows++
		parts = append(parts, "Nothing was done: ", "The arguments are one JSON object with: ")
		b.check(b.callOf(set, name, arguments), true, parts...)
	}
	for _, tool := range set.Tools() {
		name, all := tool.Name, valid[tool.Name]
		for _, arguments := range []string{"x", `{"path":`, "{", "'{}'", "{} {}", `{"path":"a",}`, "\xff", "{\x00}"} {
			refused(name, arguments, "the arguments are not JSON")
		}
		for _, arguments := range []string{"null", "[]", `"text"`, "1", "true"} {
			refused(name, arguments, "the arguments are not a JSON object")
		}
		var schema struct{ Required []string }
		b.must(json.Unmarshal(tool.Schema, &schema))
		for argument := range all {
			with := func(value any) string {
				changed := args{}
				for k, v := range all {
					changed[k] = v
				}
				changed[argument] = value
				return changed.String()
			}
			for _, wrong := range []any{args{"a": 1}, []int{1}, 1.5} {
				refused(name, with(wrong), fmt.Sprintf("the argument %q has to be ", argument))
			}
			refused(name, strings.Replace(with(all[argument]), `"`+argument+`"`, `"`+strings.ToUpper(argument)+`"`, 1), fmt.Sprintf("there is no argument %q", strings.ToUpper(argument)))
			if slices.Contains(schema.Required, argument) {
				refused(name, with(nil), fmt.Sprintf("the argument %q is missing", argument))
			}
		}
		all["more"] = "x"
		refused(name, all.String(), `there is no argument "more"`)
		if len(schema.Required) > 0 {
			refused(name, "", "is missing")
			refused(name, "{}", "is missing")
		}
	}
	refused("read_file", `{"path":"f","offset":"1"}`, `the argument "offset" has to be a whole number, and is a JSON string`)
	refused("read_file", `{"path":"f","offset":1e400}`, "offset")
	refused("read_file", `{"path":"f","numbers":"true"}`, `the argument "numbers" has to be true or false`)
	refused("shell", `{"command":["ls"]}`, `the argument "command" has to be a string, and is a JSON array`)
	if names := b.names("."); names != "" {
		t.Errorf("made: %s", names)
	}
	t.Logf("%d refused", rows)
}

func TestNoArgumentsAtAll(t *testing.T) {
	b := newBench(t)
	for _, arguments := range []string{"", " \n", "{}", `{"path":null,"glob":null}`} {
		b.check(b.call("list_files", arguments), false, "No file was found.")
	}
}

func TestContextEnds(t *testing.T) {
	b := newBench(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range Names() {
		_, err := b.open().Call(ctx, model.ToolCall{ID: "x", Name: name})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// brokenRunner is a sandbox that does not work.
type brokenRunner struct{ sandbox.Runner }

var errBroken = errors.New("broken")

func (brokenRunner) Run(context.Context, sandbox.Command) (sandbox.Exit, error) {
	return sandbox.Exit{}, errBroken
}

func TestFaultOfOursIsAnError(t *testing.T) {
	b := newBench(t)
	b.Sandbox = brokenRunner{b.Sandbox}
	_, err := b.open().Call(t.Context(), model.ToolCall{ID: "call_7", Name: "shell", Arguments: `{"command":"true"}`})
	if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), "tool shell: call call_7: ") {
		t.Errorf("got %v", err)
	}
	b.must(b.Workspaces.Close())
	for name, a := range map[string]args{
		"read_file": {"path": "f"}, "write_file": {"path": "f", "content": ""}, "edit_file": {"path": "f", "old": "a", "new": "b"},
		"list_files": {}, "search": {"pattern": "x"},
	} {
		if _, err := b.open().Call(t.Context(), model.ToolCall{ID: "x", Name: name, Arguments: a.String()}); err == nil {
			t.Errorf("%s works without a workspace", name)
		}
	}
}

// hiding replaces a secret in whatever is written, at its end.
type hiding struct {
	strings.Builder
	w io.Writer
}

func (h *hiding) Close() error {
	_, err := io.WriteString(h.w, strings.ReplaceAll(h.String(), "sesame", "[secret]"))
	return err
}

func TestSecretsAreMasked(t *testing.T) {
	b := newBench(t)
	b.Mask = func(w io.Writer) io.WriteCloser { return &hiding{w: w} }
	b.MaxResult = MinMaxResult
	b.file("sesame.txt", "open sesame\n")
	for name, a := range map[string]args{
		"read_file": {"path": "sesame.txt"}, "list_files": {}, "search": {"pattern": "open"}, "shell": {"command": "cat sesame.txt; cat sesame.txt >&2"},
		"write_file": {"path": "sesame2", "content": "x"}, "edit_file": {"path": "sesame2", "old": "y", "new": "z"},
		"fetch": {"url": "http://sesame.test/"},
	} {
		if got := b.call(name, a.String()).Text; strings.Contains(got, "sesame") || name != "fetch" && !strings.Contains(got, "[secret]") {
			t.Errorf("%s: %q", name, got)
		}
	}
	b.done("shell", args{"command": "yes open sesame | head -n 500"}, ".agentrun/tool-call_1.txt")
	if kept := b.content(".agentrun/tool-call_1.txt"); strings.Contains(kept, "sesame") || strings.Count(kept, "open [secret]\n") != 500 {
		t.Errorf("kept: %.100q", kept)
	}
}
