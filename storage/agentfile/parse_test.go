package agentfile_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"

	"agentrun/storage/agentfile"
)

// faultCase is a file with its faults, each as Fault.String writes it.
type faultCase struct {
	name, source string
	want         []string
}

func testFaults(t *testing.T, cases []faultCase) {
	t.Helper()
	for _, tt := range cases {
		t.Run(tt.name, func(t *testing.T) {
			file, err := agentfile.Parse(tt.source)
			var invalid *agentfile.Error
			if !errors.As(err, &invalid) || !errors.Is(err, agentfile.ErrInvalid) {
				t.Fatalf("error %v, definition %+v", err, file.Definition)
			}
			got := make([]string, len(invalid.Faults))
			for i, f := range invalid.Faults {
				got[i] = f.String()
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("more than one line: %q", err)
			}
			if diff := cmp.Diff(agentfile.File{}, file); diff != "" {
				t.Errorf("a faulty file has a definition: %s", diff)
			}
		})
	}
}

func TestFaultsOfTheWhole(t *testing.T) {
	testFaults(t, []faultCase{
		{"no name", "command: [a]\n", []string{"name: missing"}},
		{"neither kind", "name: x\n", []string{"want `command` (an agent that is a program) or `model`"}},
		{"both kinds", "name: x\ncommand: [a]\nmodel: a/b\n",
			[]string{"line 3: model: stands beside `command` (line 2); an agent is one or the other"}},
		{"both kinds, the model first", "name: x\nmodel: a/b\n\ncommand: [a]\n",
			[]string{"line 2: model: stands beside `command` (line 4); an agent is one or the other"}},
		{"no fields", "{}\n", []string{"name: missing", "want `command` (an agent that is a program) or `model`"}},
		{"unknown field", "name: x\ncommand: [a]\ncolour: red\n", []string{"line 3: colour: unknown field"}},
		{"misspelt field", "name: x\ncomand: [a]\n", []string{
			"want `command` (an agent that is a program) or `model`",
			"line 2: comand: unknown field (did you mean `command`?)",
		}},
		{"field in capitals", "Name: x\ncommand: [a]\n",
			[]string{"name: missing", "line 1: Name: unknown field (did you mean `name`?)"}},
		{"misspelt field of limits", "name: x\ncommand: [a]\nlimits:\n  turns: 1m\n",
			[]string{"line 4: limits.turns: unknown field (did you mean `turn`?)"}},
		{"field twice", "name: x\ncommand: [a]\nname: y\n",
			[]string{"line 3: name: given twice, first in line 1"}},
		{"field of limits twice", "name: x\ncommand: [a]\nlimits: {turn: 1m, turn: 2m}\n",
			[]string{"line 3: limits.turn: given twice, first in line 3"}},
		{"a field's name that is a list", "name: x\ncommand: [a]\n? [b]\n: c\n",
			[]string{"line 3: a field's name must be plain text"}},
		{"a field's name that is an alias", "name: &n x\ncommand: [a]\n*n : c\n",
			[]string{"line 3: a field's name must be plain text"}},
		{"a field's name that is empty", "name: x\ncommand: [a]\n\"\": c\n", []string{`line 3: "": unknown field`}},
		{"a field's name of two lines", "name: x\ncommand: [a]\n\"b\\nc\": d\n",
			[]string{`line 3: "b\nc": unknown field`}},
		{"a long field's name", "name: x\ncommand: [a]\n" + strings.Repeat("b", 50) + ": c\n",
			[]string{"line 3: " + strings.Repeat("b", 40) + "…: unknown field"}},
		{"a merge", "name: x\n<<: {command: [a]}\n", []string{
			"want `command` (an agent that is a program) or `model`", "line 2: <<: unknown field",
		}},
		{"fields of a model on a program", "name: x\ncommand: [a]\ninstructions: b\ntools: [shell]\n" +
			"mcp: [{name: d, url: 'http://e'}]\nlimits: {steps: 1, tokens: 1}\n", []string{
			"line 3: instructions: goes only with `model`",
			"line 4: tools: goes only with `model`",
			"line 5: mcp: goes only with `model`",
			"line 6: limits.steps: goes only with `model` or `gateway`",
			"line 6: limits.tokens: goes only with `model` or `gateway`",
		}},
		{"a field of a program on a model", "name: x\nmodel: a/b\nrestart: false\n",
			[]string{"line 3: restart: goes only with `command`"}},
	})
}

// Every field refuses every type but its own.
func TestFaultsOfType(t *testing.T) {
	values := []struct{ yaml, have string }{
		{"", "nothing"}, {"null", "nothing"}, {"5", "5"}, {"1.10", "1.10"}, {"true", "true"}, {"word", `"word"`},
		{"2020-01-02", "2020-01-02"}, {"[a]", "a list"}, {"{a: b}", "fields"}, {"!own 'a\n\n  b'", `"a\nb"`},
	}
	const command, model = "name: x\ncommand: [a]\n", "name: x\nmodel: a/b\n"
	fields := []struct {
		// before and after stand around the value, which is in line 3.
		before, after, path, problem string
		// takes are the values that are right, or have another fault.
		takes string
	}{
		{"command: [a]\n\nname: ", "\n", "name", "want text", "word"},
		{"name: x\n\ncommand: ", "\n", "command", "want a list such as [program, argument]", "[a]"},
		{command + "env: ", "\n", "env", "want NAME: value pairs", "{a: b}"},
		{command + "env: {A: ", "}\n", "env.A", "want text", "5 1.10 true word 2020-01-02 !own"},
		{command + "restart: ", "\n", "restart", "want true or false", "true"},
		{command + "limits: ", "\n", "limits", "want fields", "{a: b}"},
		{command + "limits: {turn: ", "}\n", "limits.turn", "want a duration such as 90s, 10m or 2h", ""},
		{"name: x\n\nmodel: ", "\n", "model", "want text", "word"},
		{model + "instructions: ", "\n", "instructions", "want text", "word"},
		{model + "tools: ", "\n", "tools", "want a list such as [shell, read_file]", "[a]"},
		{model + "tools: [shell, ", "]\n", "tools[1]", "want text", "word"},
		{model + "mcp: ", "\n", "mcp", "want a list of tool servers", "[a]"},
		{model + "mcp: [", "]\n", "mcp[0]", "want fields", "{a: b}"},
		{model + "mcp: [{command: [c], name: ", "}]\n", "mcp[0].name", "want text", "word"},
		{model + "mcp: [{name: s, url: ", "}]\n", "mcp[0].url", "want text", "word"},
		{model + "mcp: [{name: s, command: ", "}]\n", "mcp[0].command", "want a list such as [program, argument]", "[a]"},
		{model + "limits: {steps: ", "}\n", "limits.steps", "want a whole number above 0", "5"},
		{model + "limits: {tokens: ", "}\n", "limits.tokens", "want a whole number above 0", "5"},
		{command + "limits: {memory: ", "}\n", "limits.memory", wantSize, "5"},
		{command + "limits: {file_size: ", "}\n", "limits.file_size", wantSize, "5"},
		{model + "limits: {workspace: ", "}\n", "limits.workspace", wantSize, "5"},
		{model + "limits: {output: ", "}\n", "limits.output", wantSize, "5"},
		{command + "limits: {processes: ", "}\n", "limits.processes", "want a whole number from 16 to 32768", ""},
		{model + "limits: {open_files: ", "}\n", "limits.open_files", "want a whole number from 64 to 1048576", ""},
		{command + "gateway: ", "\n", "gateway", "want a list such as [openai, anthropic]", "[a]"},
		{command + "gateway: [a, ", "]\n", "gateway[1]", "want text", "word"},
		{command + "network: ", "\n", "network", "want fields", "{a: b}"},
		{model + "network: {allow: ", "}\n", "network.allow", `want a list such as [api.example.org, "*.example.com"]`, "[a]"},
		{model + "network: {allow: [b, ", "]}\n", "network.allow[1]", "want text", "word"},
		{command + "secrets: ", "\n", "secrets", "want a list such as [API_TOKEN]", "[a]"},
		{model + "secrets: [B, ", "]\n", "secrets[1]", "want text", "word"},
		{command + "read: ", "\n", "read", "want a list such as [/opt/tools]", "[a]"},
		{model + "read: [/b, ", "]\n", "read[1]", "want text", "word"},
	}
	for _, f := range fields {
		for _, v := range values {
			word, _, _ := strings.Cut(v.yaml, " ")
			inList := strings.HasSuffix(f.before, ", ") || strings.HasSuffix(f.before, "[")
			if v.yaml != "" && strings.Contains(f.takes, word) || v.yaml == "" && inList {
				continue
			}
			testFaults(t, []faultCase{{
				name: f.path + " " + v.yaml, source: f.before + v.yaml + f.after,
				want: []string{fmt.Sprintf("line 3: %s: %s, have %s", f.path, f.problem, v.have)},
			}})
		}
	}
}

func TestFaultsOfValues(t *testing.T) {
	const command, model = "name: x\ncommand: [a]\n", "name: x\nmodel: a/b\n"
	one := func(source, fault string) faultCase { return faultCase{source, source, []string{fault}} }
	testFaults(t, []faultCase{
		one("command: [a]\nname: ' '\n", "line 2: name: is empty"),
		one("name: x\ncommand: []\n", "line 2: command: names no program"),
		one("name: x\ncommand: ['']\n", "line 2: command: names no program"),
		one("name: x\ncommand: [a,\n b, [c]]\n", "line 3: command[2]: want text, have a list"),
		one("name: x\ncommand: [a, {b: c}]\n", "line 2: command[1]: want text, have fields"),
		one("name: x\ncommand: [a, ~]\n", "line 2: command[1]: want text, have nothing"),
		one("name: x\ncommand: [[a]]\n", "line 2: command[0]: want text, have a list"),
		one("name: x\ncommand: [a, \"b\\0\"]\n", "line 2: command[1]: holds a NUL character"),
		one(command+"env: {A-B: c}\n", "line 3: env.A-B: not the name of an environment variable"),
		one(command+"env: {1A: c}\n", "line 3: env.1A: not the name of an environment variable"),
		one(command+"env: {'': c}\n", `line 3: env."": not the name of an environment variable`),
		one(command+"env: {\"A\\nB\": c}\n", `line 3: env."A\nB": not the name of an environment variable`),
		one(command+"env: {\"A\\n\": c}\n", `line 3: env."A\n": not the name of an environment variable`),
		one(command+"env: {A=B: c}\n", "line 3: env.A=B: not the name of an environment variable"),
		one(command+"env: {<<: {A: b}}\n", "line 3: env.<<: not the name of an environment variable"),
		one(command+"env: {? [A] : c}\n", "line 3: env: a variable's name must be plain text"),
		one("name: &N x\ncommand: [a]\nenv: {*N : c}\n", "line 3: env: a variable's name must be plain text"),
		one(command+"env: {AGENTRUN_TURN: 1}\n", "line 3: env.AGENTRUN_TURN: names that begin with AGENTRUN_ are set by the server"),
		one(command+"env: {AGENTRUN_: 1}\n", "line 3: env.AGENTRUN_: names that begin with AGENTRUN_ are set by the server"),
		one(command+"env:\n  A: b\n  A: c\n", "line 5: env.A: given twice, first in line 4"),
		one(command+"env:\n  A:\n", "line 4: env.A: want text, have nothing"),
		one(command+"env: {A: \"\\0\"}\n", "line 3: env.A: holds a NUL character"),
		one(command+"restart: yes\n", `line 3: restart: want true or false, have "yes"`),
		one(command+"restart: !!bool on\n", "line 3: restart: want true or false, have on"),
		one(command+"limits: {turn: 0s}\n", `line 3: limits.turn: want more than 0 and at most 168h, have "0s"`),
		one(command+"limits: {turn: -1m}\n", `line 3: limits.turn: want more than 0 and at most 168h, have "-1m"`),
		one(command+"limits: {turn: 8d}\n", `line 3: limits.turn: want a duration such as 90s, 10m or 2h, have "8d"`),
		one(command+"limits: {turn: 169h}\n", `line 3: limits.turn: want more than 0 and at most 168h, have "169h"`),
		one(command+"limits: {turn: 10}\n", "line 3: limits.turn: want a duration such as 90s, 10m or 2h, have 10"),
		one(model+"limits: {steps: -1}\n", "line 3: limits.steps: want a whole number above 0, have -1"),
		one(model+"limits: {steps: 1.5}\n", "line 3: limits.steps: want a whole number above 0, have 1.5"),
		one(model+"limits: {tokens: 1e3}\n", "line 3: limits.tokens: want a whole number above 0, have 1e3"),
		one(model+"limits: {tokens: 99999999999999999999}\n",
			"line 3: limits.tokens: want a whole number above 0, have 99999999999999999999"),
		one("name: x\nmodel: gpt\n", `line 2: model: want provider/model, have "gpt"`),
		one("name: x\nmodel: ''\n", `line 2: model: want provider/model, have ""`),
		one("name: x\nmodel: a/\n", `line 2: model: want provider/model, have "a/"`),
		one("name: x\nmodel: /b\n", `line 2: model: want provider/model, have "/b"`),
		one("name: x\nmodel: a/b c\n", `line 2: model: want provider/model, have "a/b c"`),
		one("name: x\nmodel: \"a/b\\x7f\"\n", `line 2: model: want provider/model, have "a/b\x7f"`),
		one(model+"tools: [shell, Read File]\n", `line 3: tools[1]: no tool "Read File", there are edit_file, fetch, list_files, read_file, search, shell, write_file`),
		one(model+"tools: ['']\n", `line 3: tools[0]: no tool "", there are edit_file, fetch, list_files, read_file, search, shell, write_file`),
		one(model+"tools:\n- shell\n- shell\n", "line 5: tools[1]: shell is given twice, first in line 4"),
		one(model+"mcp: [{url: 'http://a'}]\n", "line 3: mcp[0].name: missing"),
		one(model+"mcp: [{name: a b, url: 'http://a'}]\n",
			`line 3: mcp[0].name: want a name of letters, digits, '.', '_' and '-', have "a b"`),
		one(model+"mcp: [{name: a}]\n", "line 3: mcp[0]: want exactly one of `command` and `url`"),
		one(model+"mcp: [{name: a, command: [b], url: 'http://c'}]\n",
			"line 3: mcp[0]: want exactly one of `command` and `url`"),
		one(model+"mcp: [{name: a, command: []}]\n", "line 3: mcp[0].command: names no program"),
		one(model+"mcp: [{name: a, url: ftp://b}]\n", `line 3: mcp[0].url: want an http or https URL, have "ftp://b"`),
		one(model+"mcp: [{name: a, url: http:b}]\n", `line 3: mcp[0].url: want an http or https URL, have "http:b"`),
		one(model+"mcp: [{name: a, url: 'http://%'}]\n", `line 3: mcp[0].url: want an http or https URL, have "http://%"`),
		one(model+"mcp:\n- {name: a, url: 'http://b'}\n- {name: a, url: 'http://c'}\n",
			"line 5: mcp[1].name: a is given twice, first in line 4"),
		one(model+"mcp: [{name: a, url: 'http://b', env: {C: d}}]\n", "line 3: mcp[0].env: unknown field"),
	})
}
