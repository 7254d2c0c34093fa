package page

import (
	"maps"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentrun/storage/agentfile"
	"agentrun/web/gen"
)

func TestCommandWords(t *testing.T) {
	for _, tt := range []struct {
		line, problem string
		words         []string
	}{
		{line: "", words: nil},
		{line: "  \n ", words: nil},
		{line: `sh -c "wc -w *"`, words: []string{"sh", "-c", "wc -w *"}},
		{line: `sh -c 'echo "a" $HOME \n'`, words: []string{"sh", "-c", `echo "a" $HOME \n`}},
		{line: `a\ b "c\"d\\e\f" '' ""`, words: []string{"a b", `c"d\e\f`, "", ""}},
		{line: "a\nb\tc", words: []string{"a", "b", "c"}},
		{line: `pre'mid'"post"`, words: []string{"premidpost"}},
		{line: `größe "日 本"`, words: []string{"größe", "日 本"}},
		{line: `a "b`, problem: "a quote is not closed"},
		{line: `a 'b\'`, words: []string{"a", `b\`}},
		{line: `a \`, problem: "nothing follows the last backslash"},
		{line: `a "b\`, problem: "a quote is not closed"},
	} {
		words, problem := splitWords(tt.line)
		if diff := cmp.Diff(tt.words, words); diff != "" || problem != tt.problem {
			t.Errorf("%q: problem %q (-want +got)\n%s", tt.line, problem, diff)
		}
	}
}

func FuzzCommandWords(f *testing.F) {
	f.Add("sh", "-c", "wc -w *")
	f.Add("", "'", "a\nb\\\"$(x)")
	f.Fuzz(func(t *testing.T, a, b, c string) {
		want := []string{strings.ToValidUTF8(a, ""), strings.ToValidUTF8(b, ""), strings.ToValidUTF8(c, "")}
		got, problem := splitWords(joinWords(want))
		if diff := cmp.Diff(want, got); diff != "" || problem != "" {
			t.Errorf("%q, problem %q (-want +got)\n%s", joinWords(want), problem, diff)
		}
	})
}

const programSource = "# Counts.\nname: words # ours\ncommand: [sh, -c, \"wc -w *\"]\nlimits: {turn: 10m}\n"

// typed are the requests that a page makes whose fields were changed.
func typed(d draft, file string, changes ...string) url.Values {
	form := url.Values{"file": {strings.ReplaceAll(file, "\n", "\r\n")}}
	was, _ := agentEditData{draft: d}.Was()
	form.Set("was", was)
	values := maps.Clone(d.Values)
	for i := 0; i < len(changes); i += 2 {
		values[changes[i]] = changes[i+1]
	}
	for path, value := range values {
		if path == "tools" {
			form["f.tools"] = strings.Fields(value)
			continue
		}
		form.Set("f."+path, strings.ReplaceAll(value, "\n", "\r\n"))
	}
	return form
}

func TestFormChangesFile(t *testing.T) {
	for _, tt := range []struct {
		name    string
		changes []string
		want    string
	}{
		{"nothing", nil, programSource},
		{"a name", []string{"name", "count"}, strings.Replace(programSource, "words #", "count #", 1)},
		{"a command", []string{"command", "cat 'a b'"}, strings.Replace(programSource, `[sh, -c, "wc -w *"]`, "[cat, a b]", 1)},
		{"a limit", []string{"limits.turn", "90s", "limits.memory", "1GiB"}, strings.Replace(programSource, "turn: 10m", "turn: 90s, memory: 1GiB", 1)},
		{"a limit away", []string{"limits.turn", ""}, strings.Replace(programSource, "limits: {turn: 10m}\n", "", 1)},
		{"secrets", []string{"secrets", "A_KEY, B_KEY"}, strings.Replace(programSource, "limits:", "secrets: [A_KEY, B_KEY]\nlimits:", 1)},
		{"a model", []string{"kind", "model", "model", "openai/x", "tools", "shell fetch", "limits.steps", "5", "limits.cost", "0.5"},
			"# Counts.\nname: words # ours\nmodel: openai/x\ntools: [fetch, shell]\nlimits: {turn: 10m, steps: 5, cost: 0.5}\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := readDraft(typed(newDraft(programSource), programSource, tt.changes...))
			if diff := cmp.Diff(tt.want, d.File); diff != "" || len(d.Faults) > 0 {
				t.Errorf("faults %v (-want +got)\n%s", d.Faults, diff)
			}
			again := readDraft(typed(d, d.File))
			if diff := cmp.Diff(d.File, again.File); diff != "" {
				t.Errorf("it changes once more (-want +got)\n%s", diff)
			}
		})
	}
}

// Whoever looks at the other kind of agent and comes back finds the fields as
// they were.
func TestFormKeepsTheOtherKind(t *testing.T) {
	d := newDraft("name: a\nmodel: openai/x\ninstructions: |\n  Be brief.\ntools: [shell]\nlimits: {steps: 5}\n")
	d = readDraft(typed(d, d.File, "kind", "program", "command", "cat"))
	if want := "name: a\ncommand: [cat]\n"; d.File != want || len(d.Faults) > 0 {
		t.Fatalf("%q, faults %v, want %q", d.File, d.Faults, want)
	}
	d = readDraft(typed(d, d.File, "kind", "model"))
	if want := "name: a\nmodel: openai/x\ninstructions: |\n  Be brief.\ntools: [shell]\n"; d.File != want || len(d.Faults) > 0 {
		t.Errorf("%q, faults %v, want %q", d.File, d.Faults, want)
	}
	if d.Values["command"] != "cat" {
		t.Errorf("command %q", d.Values["command"])
	}
}

func TestFileChangesForm(t *testing.T) {
	before := newDraft(programSource)
	d := readDraft(typed(before, strings.NewReplacer("words", "count", "10m", "1h30m").Replace(programSource)))
	if d.Values["name"] != "count" || d.Values["limits.turn"] != "1h30m" || len(d.Faults) > 0 {
		t.Errorf("values %v, faults %v", d.Values, d.Faults)
	}
	// Both at once: the file without scripts, where one may type into either.
	d = readDraft(typed(before, strings.Replace(programSource, "10m", "1h", 1), "name", "both"))
	if want := strings.NewReplacer("words #", "both  #", "10m", "1h").Replace(programSource); d.File != want {
		t.Errorf("%q, want %q", d.File, want)
	}
}

// Nothing that is typed is lost to a fault: neither a field's text that no file
// can hold, nor a field that was changed while the file is no YAML.
func TestFaultsOfDraft(t *testing.T) {
	before := newDraft(programSource)
	d := readDraft(typed(before, programSource, "command", "sh -c 'open", "name", "count"))
	if d.File != strings.Replace(programSource, "words", "count", 1) || d.Values["command"] != "sh -c 'open" {
		t.Errorf("file %q, values %v", d.File, d.Values)
	}
	if got := faultsByField(d.Faults); got["command"] != "a quote is not closed" {
		t.Errorf("faults %v", got)
	}
	d = readDraft(typed(d, d.File, "command", "sh -c 'closed'"))
	if !strings.Contains(d.File, "[sh, -c, closed]") || len(d.Faults) > 0 {
		t.Errorf("file %q, faults %v", d.File, d.Faults)
	}

	broken := programSource + "{{{"
	d = readDraft(typed(before, broken, "name", "count"))
	if d.File != broken || d.Values["name"] != "count" || len(d.Faults) == 0 {
		t.Errorf("file %q, values %v, faults %v", d.File, d.Values, d.Faults)
	}
	d = readDraft(typed(d, programSource))
	if d.File != strings.Replace(programSource, "words", "count", 1) {
		t.Errorf("after the file was mended: %q", d.File)
	}

	d = readDraft(typed(before, programSource, "limits.turn", "soon", "limits.steps", "many"))
	byField := faultsByField(d.Faults)
	if got := slices.Sorted(maps.Keys(byField)); !slices.Equal(got, []string{"limits.steps", "limits.turn"}) {
		t.Errorf("faults %v", d.Faults)
	}
	if d.Values["limits.turn"] != "soon" || !strings.Contains(d.File, "turn: soon") {
		t.Errorf("file %q, values %v", d.File, d.Values)
	}
}

func TestFaultsByField(t *testing.T) {
	got := faultsByField([]gen.Fault{
		{Field: "command[1]", Problem: "a"}, {Field: "command", Problem: "b"}, {Field: "commands", Problem: "c"},
		{Field: "limits.turn", Problem: "d"}, {Field: "limits", Problem: "e"}, {Problem: "f"},
	})
	if diff := cmp.Diff(map[string]string{"command": "a; b", "limits.turn": "d"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// The files to begin with are agents as they are, but for the model's name.
func TestStartFiles(t *testing.T) {
	for _, s := range starts {
		for _, providers := range [][]gen.Provider{nil, {{Name: "openai"}}, {{Name: "local"}}} {
			begun, file := startFile(s.ID, providers)
			parsed, err := agentfile.Parse(file)
			if err != nil || begun != s {
				t.Fatalf("%s: began with %v: %v", s.ID, begun, err)
			}
			kind, _ := kindOf(parsed.Definition)
			if (kind == kindModel) != (s.ID == "model") {
				t.Errorf("%s is a %s", s.ID, kind)
			}
		}
	}
	if begun, _ := startFile("none", nil); begun != starts[0] {
		t.Errorf("began with %v", begun)
	}
}
