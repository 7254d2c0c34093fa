package agentfile_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"agentrun/storage/agentfile"
)

// commented is a file in which everything has a comment.
const commented = `# The agent that counts.
# It is ours.

name: word-count               # unique

# What it runs.
command: [sh, -c, "wc -w *"]   # the program
env: {GREETING: hello}  # said first

network:
  # Its hosts.
  allow:
    - api.example.org   # the first
    - "*.example.com"
limits:                        # sizes: 64KiB
  # Long enough.
  turn: 10m                    # wall time
  memory: 2GiB     # of one process

  # Not many.
  processes: 256
# The end.
`

const analystFile = `name: analyst
model: openai/gpt-4o-mini
instructions: |                # the system prompt
  You answer questions.

  # This is no comment.
tools: [read_file, list_files] # two
mcp:
- {name: everything, command: [mcp-server-everything]}
limits: {steps: 100, cost: 0.50}   # small
`

func set(field string, value any) []agentfile.Change {
	return []agentfile.Change{{Field: field, Value: value}}
}

// edits change one text in a file into another, and nothing else.
var edits = []struct {
	name, source string
	changes      []agentfile.Change
	old, new     string
}{
	{"a text", commented, set("name", "words"), "name: word-count               # unique", "name: words                    # unique"},
	{"a longer text", commented, set("name", strings.Repeat("word ", 9)+"count"),
		"name: word-count               #", "name: " + strings.Repeat("word ", 9) + "count #"},
	{"a text in quotes", commented, set("name", "true"), "name: word-count               #", "name: \"true\"                   #"},
	{"a list", commented, set("command", []string{"cat", "-n", "a b", "5"}),
		`command: [sh, -c, "wc -w *"]   #`, `command: [cat, -n, a b, "5"]   #`},
	{"a limit", commented, set("limits.turn", "1h"), "turn: 10m ", "turn: 1h  "},
	{"a number", commented, set("limits.processes", int64(64)), "processes: 256", "processes: 64"},
	{"another number", commented, set("limits.processes", 64), "processes: 256", "processes: 64"},
	{"a new limit", commented, set("limits.steps", int64(5)), "# wall time\n", "# wall time\n  steps: 5\n"},
	{"a new last limit", commented, set("limits.output", "1KiB"), "processes: 256\n", "processes: 256\n  output: 1KiB\n"},
	{"a new field", commented, set("restart", true), "# said first\n", "# said first\nrestart: true\n"},
	{"a new field before the last", commented, set("secrets", []string{"A", "B"}), "limits: ", "secrets: [A, B]\nlimits: "},
	{"a field away", commented, set("env", nil), "env: {GREETING: hello}  # said first\n", ""},
	{"a limit away", commented, set("limits.memory", nil), "  memory: 2GiB     # of one process\n", ""},
	{"the other kind", commented,
		[]agentfile.Change{{Field: "model", Value: "a/b"}, {Field: "instructions", Value: "Count.\nAll.\n"}, {Field: "command"}},
		"command: [sh, -c, \"wc -w *\"]   # the program\n", "model: a/b\ninstructions: |\n  Count.\n  All.\n"},

	{"a text of lines", analystFile, set("instructions", "One.\n\n  Two.\n"),
		"  You answer questions.\n\n  # This is no comment.\n", "  One.\n\n    Two.\n"},
	{"a text of lines without the last end", analystFile, set("instructions", "One.\nTwo."),
		"|                # the system prompt\n  You answer questions.\n\n  # This is no comment.\n",
		"|-               # the system prompt\n  One.\n  Two.\n"},
	{"a text of one line", analystFile, set("instructions", "One."),
		"|                # the system prompt\n  You answer questions.\n\n  # This is no comment.\n",
		"One.             # the system prompt\n"},
	{"a limit in braces", analystFile, set("limits.steps", int64(7)), "steps: 100, cost: 0.50}   #", "steps: 7, cost: 0.50}     #"},
	{"a new limit in braces", analystFile, set("limits.tokens", int64(9)), "100, cost: 0.50}   #", "100, tokens: 9, cost: 0.50} #"},
	{"a limit in braces away", analystFile, set("limits.cost", nil), ", cost: 0.50}  ", "}              "},
	{"the last limits away", analystFile, []agentfile.Change{{Field: "limits.steps"}, {Field: "limits.cost"}},
		"limits: {steps: 100, cost: 0.50}   # small\n", ""},
	{"an amount", analystFile, set("limits.cost", 1.25), "0.50}  ", "1.25}  "},

	{"the end of the file", "name: a\ncommand: [b]", set("limits.turn", "5m"), "[b]", "[b]\nlimits:\n  turn: 5m\n"},
	{"limits of nothing", "name: a\nlimits:\ncommand: [b]\n", set("limits.turn", "5m"), "limits:", "limits:\n  turn: 5m"},
	{"a list of lines", "name: a\nmodel: b/c\ntools:\n- shell\n- fetch\n", set("tools", []string{"shell", "search"}),
		"tools:\n- shell\n- fetch\n", "tools:\n  - shell\n  - search\n"},
	{"a field before all", "# c\ncommand: [b]\n", set("name", "a"), "command", "name: a\ncommand"},
	{"lines of Windows", "name: a\r\ncommand: [b]\r\n", set("restart", true), "[b]\r\n", "[b]\r\nrestart: true\r\n"},
	{"a byte order mark", "\ufeffname: a\ncommand: [b]\n", set("name", "c"), "name: a", "name: c"},
	{"the end of the document", "---\nname: a\ncommand: [b]\n...\n", set("restart", true), "[b]\n", "[b]\nrestart: true\n"},
	{"fields that are indented", "  name: a\n  command: [b]\n", set("restart", true), "[b]\n", "[b]\n  restart: true\n"},
	{"all in braces", "{name: a, command: [b]}\n", set("name", "c"), "name: a", "name: c"},
	{"nothing", "", []agentfile.Change{{Field: "command", Value: []string{"b"}}, {Field: "name", Value: "a"}}, "", "name: a\ncommand: [b]\n"},
	{"only a comment", "# c\n", set("name", "a"), "# c\n", "# c\nname: a\n"},
}

func TestEdit(t *testing.T) {
	for _, tt := range edits {
		t.Run(tt.name, func(t *testing.T) {
			if tt.old != "" && strings.Count(tt.source, tt.old) != 1 {
				t.Fatalf("%q stands %d times in the source", tt.old, strings.Count(tt.source, tt.old))
			}
			got, err := agentfile.Edit(tt.source, tt.changes)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Replace(tt.source, tt.old, tt.new, 1), got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestEditOfWhatIsThere(t *testing.T) {
	for _, source := range []string{commented, analystFile, "{name: a, command: [b]}", "name: 'a'\r\ncommand:\r\n- \"b\"\r\n"} {
		file, err := agentfile.Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		d := file.Definition
		changes := set("name", d.Name)
		changes = append(changes, set("limits.file_size", nil)...)
		if d.Model != "" {
			changes = append(changes, set("tools", d.Tools)...)
			changes = append(changes, set("instructions", d.Instructions)...)
			changes = append(changes, set("limits.steps", int64(100))...)
			changes = append(changes, set("limits.cost", 0.5)...)
			changes = append(changes, set("command", nil)...)
		} else {
			changes = append(changes, set("command", d.Command)...)
			changes = append(changes, set("model", nil)...)
		}
		got, err := agentfile.Edit(source, changes)
		if err != nil || got != source {
			t.Errorf("error %v (-want +got)\n%s", err, cmp.Diff(source, got))
		}
	}
}

func TestEditRefuses(t *testing.T) {
	for _, tt := range []struct {
		name, source string
		change       agentfile.Change
		want         string
		invalid      bool
	}{
		{"a list", "- a\n", agentfile.Change{Field: "name", Value: "b"}, "line 1: want fields such as `name:`, have a list", true},
		{"a tab", "name: a\n\tb: c\n", agentfile.Change{Field: "name", Value: "b"}, "line 2: a tab, where YAML wants blanks", true},
		{"a list of limits", "name: a\nlimits: [b]\n", agentfile.Change{Field: "limits.turn", Value: "1m"},
			"line 2: limits: want fields, have a list", true},
		{"an anchor that is used", "name: &a b\ncommand: [*a]\n", agentfile.Change{Field: "name"},
			"line 1: name: cannot be changed by itself, perhaps because of an anchor; change the file's text", true},
		{"a field that is none", "name: a\n", agentfile.Change{Field: "colour", Value: "b"}, "no field colour", false},
		{"a limit that is none", "name: a\n", agentfile.Change{Field: "limits.a.b", Value: "b"}, "no field limits.a.b", false},
		{"a value that is none", "name: a\n", agentfile.Change{Field: "name", Value: 'a'}, "field name: a value of type int32", false},
		{"broken text", "name: a\n", agentfile.Change{Field: "name", Value: "\xff"}, "field name: the text is not UTF-8", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := agentfile.Edit(tt.source, []agentfile.Change{tt.change})
			var invalid *agentfile.Error
			if err == nil || err.Error() != tt.want || errors.As(err, &invalid) != tt.invalid || got != "" {
				t.Errorf("error %v, file %q", err, got)
			}
		})
	}
}

// Every field of a file can be removed, so none is missing in the order.
func TestEditKnowsEveryField(t *testing.T) {
	for path, of := range map[string]any{"": agentfile.Definition{}, "limits.": agentfile.Limits{}} {
		for field := range reflect.TypeOf(of).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if _, err := agentfile.Edit("name: a\n", set(path+name, nil)); err != nil {
				t.Errorf("%s%s: %v", path, name, err)
			}
		}
	}
}

func TestEditThenParse(t *testing.T) {
	sources := []string{commented, analystFile, "{name: a, command: [b], limits: {turn: 1m}}\n", "name: a\nmodel: b/c\n"}
	text := rapid.OneOf(
		rapid.StringN(1, 30, 100),
		rapid.StringMatching(`[a-z #:'"{}\[\]\\&*!|>%@,\n\t?~-]{0,40}`),
		rapid.SampledFrom([]string{"", "\n", " a\nb", "a\n\n\n", "---\na", "...\n", "# a\n", "null", "1.10", "a: b", "\ta\n", "a\r\nb", "\ufeff"}),
	)
	rapid.Check(t, func(t *rapid.T) {
		source := rapid.SampledFrom(sources).Draw(t, "source")
		before, err := agentfile.Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		want, change := before.Definition, agentfile.Change{}
		switch rapid.IntRange(0, 3).Draw(t, "field") {
		case 0:
			value := text.Filter(func(s string) bool { return strings.TrimSpace(s) != "" }).Draw(t, "name")
			want.Name, change = value, agentfile.Change{Field: "name", Value: value}
		case 1:
			value := text.Draw(t, "instructions")
			if want.Model == "" {
				return
			}
			want.Instructions, change = value, agentfile.Change{Field: "instructions", Value: value}
		case 2:
			if want.Model != "" {
				return
			}
			words := append([]string{"a"}, rapid.SliceOfN(text.Filter(func(s string) bool { return !strings.Contains(s, "\x00") }), 0, 4).Draw(t, "words")...)
			want.Command, change = words, agentfile.Change{Field: "command", Value: words}
		case 3:
			n := rapid.Int64Range(16, 1<<15).Draw(t, "processes")
			want.Limits.Processes, change = int(n), agentfile.Change{Field: "limits.processes", Value: n}
		}
		edited, err := agentfile.Edit(source, []agentfile.Change{change})
		if err != nil {
			t.Fatal(err)
		}
		after, err := agentfile.Parse(edited)
		if err != nil {
			t.Fatalf("%v\n%s", err, edited)
		}
		if diff := cmp.Diff(want, after.Definition); diff != "" {
			t.Fatalf("%s\n(-want +got)\n%s", edited, diff)
		}
		if again, err := agentfile.Edit(edited, []agentfile.Change{change}); err != nil || again != edited {
			t.Fatalf("error %v, and again it is\n%s", err, again)
		}
		for line := range strings.Lines(source) {
			if _, note, ok := strings.Cut(line, " # "); ok && !strings.HasPrefix(note, "This is no comment") && !strings.Contains(edited, "# "+note) {
				t.Fatalf("the comment %q is lost in\n%s", note, edited)
			}
		}
	})
}

func FuzzEdit(f *testing.F) {
	for _, tt := range edits {
		f.Add(tt.source, "a\nb")
	}
	f.Add("? name\n: a\n", "b")
	f.Add("name: a\u2028limits: {turn: 1m}\n", "b")
	f.Add("a: &x {name: b}\n<<: *x\n", "b")
	f.Fuzz(func(t *testing.T, source, value string) {
		edited, err := agentfile.Edit(source, set("instructions", value))
		if err != nil {
			return
		}
		if again, err := agentfile.Edit(edited, set("instructions", value)); err != nil || again != edited {
			t.Errorf("error %v, %q, and again %q", err, edited, again)
		}
	})
}
