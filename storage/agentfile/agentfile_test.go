package agentfile_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"

	"agentrun/storage/agentfile"
)

const (
	programFile = `name: word-count               # unique in its organisation
command: [sh, -c, "wc -w *"]   # an agent that is a program: working directory = the run's workspace
env: {LANG: C.UTF-8}           # optional
limits: {turn: 10m}            # wall time of a turn; more limits where they are described
`
	modelFile = `name: analyst
model: local/gemma-3-270m      # provider/model; exactly one of ` + "`command` and `model`" + `
instructions: |
  You answer questions about the files in the workspace.
tools: [shell, read_file, write_file, list_files]
mcp:                           # tool servers
  - {name: everything, command: [mcp-server-everything]}   # installed on the host beforehand
limits: {turn: 30m, steps: 100, tokens: 500000}
`
	// everyProgramField and everyModelField have each field once.
	everyProgramField = `name: program
command: [sleep, 5, true, 1.10, "", "*"]
env:
  _: under
  LANG: C.UTF-8
  DEBUG: 1
  VERBOSE: true
  VERSION: 1.10
  EMPTY: ""
restart: true
gateway: [openai, lab_2]
network:
  allow: [api.example.org, "*.Example.COM", xn--bcher-kva.example, 10.0.0.7, "2001:DB8::0:1"]
secrets: [API_TOKEN, X]
read: [/opt/tools, /srv/a b]
limits:
  turn: 90s
  memory: 512MiB
  processes: 16
  open_files: 1048576
  file_size: 1MiB
  workspace: 20GB
  output: 1024
`
	everyModelField = `name: model
model: openai/gpt-5
instructions: Be brief.
tools: [shell]
env: {A: b}
mcp:
- name: local-1.0
  command: [server, --port, 80]
- name: remote_2
  url: https://tools.example.org/mcp?team=a
network: {allow: [localhost]}
secrets: [A2]
read: [/opt]
limits: {turn: 168h, steps: 1, tokens: 1, memory: 1PiB, processes: 32768, open_files: 64, file_size: 2TiB, workspace: 1MiB, output: 1MiB}
`
)

var definitions = []struct {
	name, source string
	want         agentfile.Definition
}{
	{"the program of the manual", programFile, agentfile.Definition{
		Name: "word-count", Command: []string{"sh", "-c", "wc -w *"},
		Env:    map[string]string{"LANG": "C.UTF-8"},
		Limits: agentfile.Limits{Turn: agentfile.Duration(10 * time.Minute)},
	}},
	{"the model of the manual", modelFile, agentfile.Definition{
		Name: "analyst", Model: "local/gemma-3-270m",
		Instructions: "You answer questions about the files in the workspace.\n",
		Tools:        []string{"shell", "read_file", "write_file", "list_files"},
		MCP:          []agentfile.ToolServer{{Name: "everything", Command: []string{"mcp-server-everything"}}},
		Limits:       agentfile.Limits{Turn: agentfile.Duration(30 * time.Minute), Steps: 100, Tokens: 500000},
	}},
	{"every field of a program", everyProgramField, agentfile.Definition{
		Name: "program", Command: []string{"sleep", "5", "true", "1.10", "", "*"},
		Env: map[string]string{
			"_": "under", "LANG": "C.UTF-8", "DEBUG": "1", "VERBOSE": "true", "VERSION": "1.10", "EMPTY": "",
		},
		Restart: true, Gateway: []string{"openai", "lab_2"},
		Network: agentfile.Network{Allow: []string{
			"api.example.org", "*.example.com", "xn--bcher-kva.example", "10.0.0.7", "2001:db8::1",
		}},
		Secrets: []string{"API_TOKEN", "X"},
		Read:    []string{"/opt/tools", "/srv/a b"},
		Limits: agentfile.Limits{
			Turn: agentfile.Duration(90 * time.Second), Memory: 512 << 20, Processes: 16, OpenFiles: 1 << 20,
			FileSize: 1 << 20, Workspace: 20e9, Output: 1024,
		},
	}},
	{"every field of a model", everyModelField, agentfile.Definition{
		Name: "model", Model: "openai/gpt-5", Instructions: "Be brief.", Tools: []string{"shell"},
		Env: map[string]string{"A": "b"},
		MCP: []agentfile.ToolServer{
			{Name: "local-1.0", Command: []string{"server", "--port", "80"}},
			{Name: "remote_2", URL: "https://tools.example.org/mcp?team=a"},
		},
		Network: agentfile.Network{Allow: []string{"localhost"}}, Secrets: []string{"A2"}, Read: []string{"/opt"},
		Limits: agentfile.Limits{
			Turn: agentfile.Duration(agentfile.MaxTurn), Steps: 1, Tokens: 1, Memory: 1 << 50, Processes: 1 << 15,
			OpenFiles: 64, FileSize: 2 << 40, Workspace: 1 << 20, Output: 1 << 20,
		},
	}},
	{"the least", "name: x\ncommand: [a]", agentfile.Definition{Name: "x", Command: []string{"a"}}},
	{"empty lists say nothing", "name: x\nmodel: a/b\ntools: []\nmcp: []\nenv: {}\nlimits: {}\n" +
		"network: {allow: []}\nsecrets: []\nread: []\n",
		agentfile.Definition{Name: "x", Model: "a/b"}},
	{"a network without fields says nothing", "name: x\nmodel: a/b\nnetwork: {}\n",
		agentfile.Definition{Name: "x", Model: "a/b"}},
	{"variables of a proxy without a network", "name: x\ncommand: [a]\nenv: {HTTP_PROXY: 'http://p:1', no_proxy: ''}\n",
		agentfile.Definition{
			Name: "x", Command: []string{"a"}, Env: map[string]string{"HTTP_PROXY": "http://p:1", "no_proxy": ""},
		}},
	{"words of YAML that are texts in quotes", "name: \"null\"\ncommand: [\"~\", 'no', null1]\n",
		agentfile.Definition{Name: "null", Command: []string{"~", "no", "null1"}}},
	{"a model with slashes", "name: x\nmodel: local/org/model:7b@q4\n",
		agentfile.Definition{Name: "x", Model: "local/org/model:7b@q4"}},
	{"anchors and aliases", "name: &n x\ncommand: &c [echo, *n]\nenv: {A: *n, B: &b 1, C: *b}\n",
		agentfile.Definition{
			Name: "x", Command: []string{"echo", "x"}, Env: map[string]string{"A": "x", "B": "1", "C": "1"},
		}},
	{"an alias of a list and of fields", "name: x\nmodel: a/b\nmcp:\n- {name: a, command: &c [srv, &o -v]}\n- {name: b, command: *c}\n",
		agentfile.Definition{Name: "x", Model: "a/b", MCP: []agentfile.ToolServer{
			{Name: "a", Command: []string{"srv", "-v"}}, {Name: "b", Command: []string{"srv", "-v"}},
		}}},
	{"a byte order mark", "\ufeffname: x\ncommand: [a]\n", agentfile.Definition{Name: "x", Command: []string{"a"}}},
	{"lines that end as on Windows", "name: x\r\nmodel: a/b\r\ninstructions: |\r\n  one\r\n  two\r\n",
		agentfile.Definition{Name: "x", Model: "a/b", Instructions: "one\ntwo\n"}},
	{"the marks of a document", "%YAML 1.1\n---\nname: x\ncommand: [a]\n...\n# the end\n",
		agentfile.Definition{Name: "x", Command: []string{"a"}}},
	{"JSON", `{"name": "x", "command": ["a"], "restart": true}`,
		agentfile.Definition{Name: "x", Command: []string{"a"}, Restart: true}},
	{"explicit tags", "name: !!str 5\ncommand: !!seq [a]\nrestart: !!bool True\n",
		agentfile.Definition{Name: "5", Command: []string{"a"}, Restart: true}},
}

func TestParse(t *testing.T) {
	for _, tt := range definitions {
		t.Run(tt.name, func(t *testing.T) {
			file, err := agentfile.Parse(tt.source)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(agentfile.File{Source: tt.source, Definition: tt.want}, file); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// The JSON form is what storage keeps: nothing may get lost in it.
func TestDefinitionSurvivesJSON(t *testing.T) {
	for _, tt := range definitions {
		t.Run(tt.name, func(t *testing.T) {
			raw, err := json.Marshal(tt.want)
			if err != nil {
				t.Fatal(err)
			}
			var got agentfile.Definition
			if err := json.Unmarshal(raw, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

// Fields of the JSON form are never renamed: there are data directories with
// them.
func TestJSONForm(t *testing.T) {
	d := agentfile.Definition{
		Name: "n", Command: []string{"c"}, Env: map[string]string{"E": "v"}, Restart: true, Model: "p/m",
		Instructions: "i", Tools: []string{"t"},
		MCP:     []agentfile.ToolServer{{Name: "s", Command: []string{"c"}, URL: "http://u"}},
		Gateway: []string{"g"},
		Network: agentfile.Network{Allow: []string{"h"}}, Secrets: []string{"S"}, Read: []string{"/r"},
		Limits: agentfile.Limits{
			Turn: agentfile.Duration(time.Minute), Steps: 2, Tokens: 3, Memory: 4, Processes: 5, OpenFiles: 6,
			FileSize: 7, Workspace: 8, Output: 9,
		},
	}
	const want = `{"name":"n","command":["c"],"env":{"E":"v"},"restart":true,"model":"p/m","instructions":"i",` +
		`"tools":["t"],"mcp":[{"name":"s","command":["c"],"url":"http://u"}],` +
		`"gateway":["g"],"network":{"allow":["h"]},"secrets":["S"],"read":["/r"],` +
		`"limits":{"turn":"1m0s","steps":2,"tokens":3,"memory":4,"processes":5,"open_files":6,` +
		`"file_size":7,"workspace":8,"output":9}}`
	got, err := json.Marshal(d)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	for _, bad := range []string{`{"limits":{"turn":"soon"}}`, `{"limits":{"turn":60}}`} {
		if err := json.Unmarshal([]byte(bad), &d); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

// A record of an older server lacks the fields that came since.
func TestOldRecord(t *testing.T) {
	const record = `{"name":"n","command":["c"],"env":{"E":"v"},"limits":{"turn":"1m0s","steps":2,"tokens":3}}`
	want := agentfile.Definition{
		Name: "n", Command: []string{"c"}, Env: map[string]string{"E": "v"},
		Limits: agentfile.Limits{Turn: agentfile.Duration(time.Minute), Steps: 2, Tokens: 3},
	}
	var got agentfile.Definition
	if err := json.Unmarshal([]byte(record), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	checkLimits(t, got.Limits, effective{
		turn: time.Minute, memory: 4 << 30, processes: 512, openFiles: 4096, fileSize: 4 << 30,
		workspace: 10 << 30, output: 1 << 20,
	})
	again, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(record, string(again)); diff != "" {
		t.Errorf("written again, the record has other fields (-want +got)\n%s", diff)
	}
}

func TestSeveralFaultsAreAllTold(t *testing.T) {
	_, err := agentfile.Parse(`nam: x
command: sh
env: {AGENTRUN_X: a, B: [c]}
restart: maybe
tools: [shell]
limits:
  turn: soon
  steps: 0
`)
	const want = "name: missing; " +
		"line 1: nam: unknown field (did you mean `name`?); " +
		`line 2: command: want a list such as [program, argument], have "sh"; ` +
		"line 3: env.AGENTRUN_X: names that begin with AGENTRUN_ are set by the server; " +
		"line 3: env.B: want text, have a list; " +
		`line 4: restart: want true or false, have "maybe"; ` +
		"line 5: tools: goes only with `model`; " +
		`line 7: limits.turn: want a duration such as 90s, 10m or 2h, have "soon"; ` +
		"line 8: limits.steps: want a whole number above 0, have 0; " +
		"line 8: limits.steps: goes only with `model` or `gateway`"
	if err == nil {
		t.Fatal("no error")
	}
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if !errors.Is(err, agentfile.ErrInvalid) {
		t.Error("not ErrInvalid")
	}
}
