package agentfile_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"agentrun/storage/agentfile"
)

func TestFaultsOfYAML(t *testing.T) {
	const head = "# A comment.\nname: x\n"
	testFaults(t, []faultCase{
		{"empty", "", []string{"the file is empty"}},
		{"blank lines", "\n \n", []string{"the file is empty"}},
		{"only comments", "# nothing\n", []string{"the file is empty"}},
		{"only a byte order mark", "\ufeff", []string{"the file is empty"}},
		{"only the beginning of a document", "---\n", []string{"the file is empty"}},
		{"null", "null\n", []string{"the file is empty"}},
		{"a text", "\nhello\n", []string{"line 2: want fields such as `name:`, have \"hello\""}},
		{"a list", "- name: x\n", []string{"line 1: want fields such as `name:`, have a list"}},
		{"a tab before a field", head + "\tcommand: [a]\n", []string{"line 3: a tab, where YAML wants blanks"}},
		{"a tab in nested fields", head + "limits:\n\tturn: 1m\n", []string{"line 4: a tab, where YAML wants blanks"}},
		{"a tab first", "\tname: x\n", []string{"line 1: a tab, where YAML wants blanks"}},
		{"a text that must be quoted", head + "command: @a\n",
			[]string{"line 3: a text that begins with '@' has to be in quotes"}},
		{"a list without its end", head + "command: [a\nenv: {}\n", []string{"line 4: did not find expected ',' or ']'"}},
		{"a quote without its end", head + "command: [\"a]\n", []string{"line 3: found unexpected end of stream"}},
		{"a bracket too many", head + "command: [a]]\n", []string{"line 3: did not find expected key"}},
		{"a bracket by itself", head + "command: }\n", []string{"line 3: did not find expected node content"}},
		{"a colon too many", head + "command: a: b\n", []string{"line 3: mapping values are not allowed in this context"}},
		{"a line without a colon", head + "command\n\nenv: {}\n", []string{"line 3: could not find expected ':'"}},
		{"a text that is not indented enough", head + "instructions: |\n  one\n two\n",
			[]string{"line 5: did not find expected key"}},
		{"a list among fields", head + "- a\n", []string{"line 3: did not find expected key"}},
		{"an escape that is none", head + "command: [\"\\q\"]\n", []string{"line 3: found unknown escape character"}},
		{"an alias of nothing", head + "command: *all\n", []string{`line 3: unknown anchor "all" referenced`}},
		{"a fault after characters of several bytes", "# äöü€🙂\nname: äöü€🙂\ncommand: @\n",
			[]string{"line 3: a text that begins with '@' has to be in quotes"}},
		{"a fault after a byte order mark", "\ufeffname: x\n@\n", []string{"line 2: a text that begins with '@' has to be in quotes"}},
		{"a fault after lines that end as on Windows", "name: x\r\n\r\ncommand: }\r\n",
			[]string{"line 3: did not find expected node content"}},
		{"a control character", head + "command: [\x01]\n", []string{"line 3: control characters are not allowed"}},
		{"a control character after characters of several bytes", "# äöü€🙂\nname: \x01\n# end\n",
			[]string{"line 2: control characters are not allowed"}},
		{"a NUL", head + "\x00", []string{"line 3: control characters are not allowed"}},
		{"bytes that are not UTF-8", head + "command: [\xff]\n", []string{"line 3: the file is not UTF-8 text"}},
		{"UTF-16", "\xff\xfen\x00a\x00m\x00e\x00", []string{"line 1: the file is not UTF-8 text"}},
		{"YAML of the future", "%YAML 2.0\n---\nname: x\ncommand: [a]\n",
			[]string{"line 1: found incompatible YAML document"}},
		{"a second document", head + "command: [a]\n---\nname: y\ncommand: [b]\n",
			[]string{"line 4: a second document begins here; a file has one agent"}},
		{"a second document that is empty", head + "command: [a]\n---\n",
			[]string{"line 4: a second document begins here; a file has one agent"}},
		{"a second document that is no YAML", head + "command: [a]\n---\n{{{\n",
			[]string{"line 5: did not find expected node content"}},
		{"text after the end", head + "command: [a]\n...\nname: y\n",
			[]string{"line 5: did not find expected <document start>"}},
	})
}

// A file may be as long as MaxSize, and its faults are found with little memory
// and told in few words, whatever it is made of.
func TestLargeFiles(t *testing.T) {
	long := strings.Repeat("a", agentfile.MaxSize-len("name: x\ncommand: []"))
	if _, err := agentfile.Parse("name: x\ncommand: [" + long + "]"); err != nil {
		t.Error(err)
	}
	fill := func(text string) string { return strings.Repeat(text, (agentfile.MaxSize-100)/len(text)) }
	server := "name: x\nmodel: a/b\nmcp:\n- &a {name: y, command: [" + strings.Repeat("w,", 1<<14) + "]}\n"
	for _, tt := range []struct{ name, source, want string }{
		{"one byte too many", "name: x\ncommand: [a" + long + "]", "the file is longer than 1048576 bytes"},
		{"two megabytes", strings.Repeat("#\n", 1<<20), "the file is longer than 1048576 bytes"},
		{"deep lists", "name: x\ncommand: " + fill("[ "), "exceeded max depth"},
		{"deep fields", fill("{a: "), "exceeded max depth"},
		{"deep items", fill("- "), "exceeded max depth"},
		{"deep questions", fill("? "), "exceeded max depth"},
		{"many unknown fields", strings.Repeat("y: 1\n", 20_000), "more faults"},
		{"many faulty words", "name: x\ncommand: [" + strings.Repeat("[],", 20_000) + "]", "more faults"},
		{"a long field", fill("y") + "\nz: 1", "line 2: mapping values are not allowed"},
		{"aliases of a large server", server + strings.Repeat("- *a\n", 1<<13), "aliases stand for too much"},
		{"aliases of faults", "name: x\nmodel: a/b\nmcp:\n- &a {" + strings.Repeat("b: c,", 1<<10) + "}\n" +
			strings.Repeat("- *a\n", 1<<13), "more faults"},
		{"aliases of hosts", "name: x\nmodel: a/b\nnetwork:\n  allow: [" + strings.Repeat("&b h,", 1<<10) +
			strings.Repeat("*b,", 1<<16) + "]\n", "more faults"},
		{"many secrets that are variables too", manySecrets(), "more faults"},
		{"aliases of aliases", billionLaughs(), "unknown field"},
		{"an alias of itself", "name: x\ncommand: &a [b, *a]\n", `line 2: anchor "a" value contains itself`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := agentfile.Parse(tt.source)
			runtime.ReadMemStats(&after)
			if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 256 {
				t.Errorf("it used %d MiB of memory", used)
			}
			switch text := fmt.Sprint(err); {
			case !strings.Contains(text, tt.want):
				t.Errorf("%.2000s\nwant it to say %q", text, tt.want)
			case len(text) > 16<<10:
				t.Errorf("%d bytes of faults", len(text))
			}
		})
	}
}

// manySecrets returns a file in which ten thousand names stand in both `env` and
// `secrets`.
func manySecrets() string {
	var env, secrets strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&env, "  S%d: x\n", i)
		fmt.Fprintf(&secrets, "- S%d\n", i)
	}
	return "name: x\ncommand: [a]\nenv:\n" + env.String() + "secrets:\n" + secrets.String()
}

// billionLaughs returns a file of a few hundred bytes whose aliases stand for a
// billion words.
func billionLaughs() string {
	var b strings.Builder
	b.WriteString("name: x\ncommand: [a]\nl0: &l0 [ha]\n")
	for i := 1; i < 10; i++ {
		fmt.Fprintf(&b, "l%d: &l%d [%s]\n", i, i, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*l%d,", i-1), 10), ","))
	}
	return b.String()
}
