package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"agentrun/run/model"
)

func TestLongResult(t *testing.T) {
	b := newBench(t)
	b.MaxResult = 2000
	text := b.done("shell", args{"command": "echo begin; seq 10000; echo end"}, "begin\n1\n2\n", "\n9999\n10000\nend\n\n[exit code 0]")
	if len(text) > 2000 || len(text) < 1700 {
		t.Errorf("%d bytes", len(text))
	}
	whole := b.content(".agentrun/tool-call_1.txt")
	if !strings.HasPrefix(whole, "begin\n1\n") || !strings.HasSuffix(whole, "10000\nend\n") || strings.Contains(whole, "left out") {
		t.Errorf("kept: %d bytes", len(whole))
	}
	head, rest, _ := strings.Cut(text, "\n[")
	note, rest, _ := strings.Cut(rest, "]\n")
	tail := strings.TrimSuffix(rest, "\n[exit code 0]")
	if want := fmt.Sprintf("%d bytes left out; the whole is in .agentrun/tool-call_1.txt", len(whole)-len(head)-len(tail)); note != want {
		t.Errorf("got %q, want %q", note, want)
	}
	if !strings.HasPrefix(whole, head) || !strings.HasSuffix(whole, tail) {
		t.Error("what is left is not the beginning and the end")
	}
	// The model can read what it was told of.
	b.done("read_file", args{"path": ".agentrun/tool-call_1.txt", "offset": 5000, "limit": 1}, "\n4999\n")
}

func TestVeryLongResult(t *testing.T) {
	b := newBench(t)
	text := b.done("shell", args{"command": "echo begin; head -c 6000000 /dev/zero | tr '\\0' '\\377'; echo end"},
		"begin\n\ufffd", "\ufffdend\n\n[exit code 0]", "the first and the last 524288 bytes are in .agentrun/tool-call_1.txt")
	if len(text) > DefaultMaxResult || !utf8.ValidString(text) {
		t.Errorf("%d bytes", len(text))
	}
	kept := b.content(".agentrun/tool-call_1.txt")
	if len(kept) > maxLog+noteRoom || !utf8.ValidString(kept) || !strings.Contains(kept, " bytes left out]") {
		t.Errorf("kept: %d bytes", len(kept))
	}
}

func TestExactlyAsLongAsAllowed(t *testing.T) {
	b := newBench(t)
	b.MaxResult = 1500
	for size, cut := range map[int]bool{1500 - len("\n[exit code 0]"): false, 1501 - len("\n[exit code 0]"): true} {
		text := b.done("shell", args{"command": fmt.Sprintf("head -c %d /dev/zero | tr '\\0' x", size)})
		if strings.Contains(text, "left out") != cut || len(text) > 1500 {
			t.Errorf("%d bytes became %d", size, len(text))
		}
	}
}

// A program can put anything where the texts are kept. Then there is none, and
// nothing is written elsewhere.
func TestLogThatCannotBeKept(t *testing.T) {
	for name, plant := range map[string]func(dir, out string) error{
		"a link to a folder": func(dir, out string) error { return os.Symlink(out, dir+"/.agentrun") },
		"a file":             func(dir, _ string) error { return os.WriteFile(dir+"/.agentrun", nil, 0o600) },
		"a link": func(dir, out string) error {
			if err := os.Mkdir(dir+"/.agentrun", 0o700); err != nil {
				return err
			}
			return os.Symlink(out+"/file", dir+"/.agentrun/tool-call_1.txt")
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			out := t.TempDir()
			b.must(plant(b.dir, out))
			b.done("shell", args{"command": "seq 100000"}, "bytes left out; and could not be kept in .agentrun]")
			if list, err := os.ReadDir(out); err != nil || len(list) > 0 {
				t.Errorf("outside: %v, %v", list, err)
			}
		})
	}
}

func TestLogName(t *testing.T) {
	b := newBench(t)
	b.MaxResult = MinMaxResult
	ids := []string{"toolu_01Ab-c", "../../x", "a/b", "a b", "a_b", "\x00", "ü", strings.Repeat("x", 500), strings.Repeat("x", 501)}
	seen := map[string]bool{}
	for _, id := range ids {
		result, err := b.open().Call(t.Context(), model.ToolCall{ID: id, Name: "shell", Arguments: `{"command":"seq 1000"}`})
		b.must(err)
		if !strings.Contains(result.Text, "the whole is in .agentrun/tool-") {
			t.Errorf("%.20q: %q", id, result.Text)
		}
		seen[fileName(id)] = true
	}
	if list := strings.Fields(b.names(".agentrun")); len(list) != len(ids) || len(seen) != len(ids) || b.names(".") != ".agentrun" {
		t.Errorf("%d files for %d calls: %q", len(list), len(ids), list)
	}
}

func TestKeptAgainstModel(t *testing.T) {
	pieces := rapid.SampledFrom([]string{"a", "\n", "ä", "€", "\U0001f600", "0123456789"})
	rapid.Check(t, func(rt *rapid.T) {
		half := rapid.IntRange(4, 20).Draw(rt, "half")
		all := strings.Join(rapid.SliceOfN(pieces, 0, 60).Draw(rt, "text"), "")
		k := newKept(2 * half)
		for rest := all; rest != ""; {
			n := rapid.IntRange(1, len(rest)).Draw(rt, "chunk")
			_, _ = k.Write([]byte(rest[:n]))
			rest = rest[n:]
		}
		if len(all) <= 2*half {
			if k.text() != all {
				rt.Fatalf("%q became %q", all, k.text())
			}
			return
		}
		head, tail := k.parts()
		if !strings.HasPrefix(all, head) || !strings.HasSuffix(all, tail) || !utf8.ValidString(head) || !utf8.ValidString(tail) ||
			len(head) > half || len(head) < half-3 || len(tail) > half || len(tail) < half-3 {
			rt.Fatalf("%q became %q and %q", all, head, tail)
		}
		if want := fmt.Sprintf("%s\n[%d bytes left out]\n%s", head, len(all)-len(head)-len(tail), tail); k.text() != want {
			rt.Fatalf("%q, want %q", k.text(), want)
		}
	})
}

func TestRelative(t *testing.T) {
	b := newBench(t)
	for given, want := range map[string]string{
		"a": "a", "./a": "a", "a/": "a", "a//b": "a/b", "./": ".", ".": ".", "": "",
		b.dir: ".", b.dir + "/": ".", b.dir + "/a/b": "a/b", b.dir + "//a": "a",
		b.dir + "x/a": b.dir + "x/a", b.dir + "/../x": b.dir + "/../x", "a/../b": "a/../b", "..": "..", "/etc": "/etc",
		filepath.Dir(b.dir): filepath.Dir(b.dir), "...": "...",
	} {
		if got := b.relative(given); got != want {
			t.Errorf("%q became %q, want %q", given, got, want)
		}
	}
}
