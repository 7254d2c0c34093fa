package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// tree fills a workspace.
func (b *bench) tree() {
	b.t.Helper()
	for path, content := range map[string]string{
		"README.md": "# Title\nHello world\n", "main.go": "package main\n\nfunc main() {}\n",
		"src/a.go": "package a\n", "src/b_test.go": "package a\n\nfunc TestB() {}\n", "src/deep/er/c.go": "package c\r\n// hello\r\n",
		"src/data.bin": "hello\x00", ".git/config": "hello\n", "sub/.git/HEAD": "hello\n", ".agentrun/tool-x.txt": "hello\n",
		".hidden": "hello there\n", "two\nlines": "hello\n",
	} {
		b.file(path, content)
	}
	b.must(os.Symlink("README.md", filepath.Join(b.dir, "link")))
	b.must(syscall.Mkfifo(filepath.Join(b.dir, "fifo"), 0o600))
}

func TestListFiles(t *testing.T) {
	b := newBench(t)
	b.tree()
	const skipped = "[2 names skipped in the workspace: no regular files with one name, or closed]\n"
	for _, row := range []struct {
		name string
		args args
		want string
	}{
		{name: "all", want: ".hidden (12 bytes)\nREADME.md (20 bytes)\nmain.go (29 bytes)\nsrc/a.go (10 bytes)\nsrc/b_test.go (27 bytes)\n" +
			"src/data.bin (6 bytes)\nsrc/deep/er/c.go (21 bytes)\n\"two\\nlines\" (6 bytes)\n[3 files in .git or .agentrun left out]\n"},
		{name: "a folder", args: args{"path": "src/deep"}, want: "src/deep/er/c.go (21 bytes)\n"},
		{name: "an absolute one", args: args{"path": b.dir + "/src/deep/"}, want: "src/deep/er/c.go (21 bytes)\n"},
		{name: "git's", args: args{"path": ".git"}, want: ".git/config (6 bytes)\n"},
		{name: "one file", args: args{"path": "main.go"}, want: "main.go (29 bytes)\n"},
		{name: "names", args: args{"glob": "*.go"}, want: "main.go (29 bytes)\nsrc/a.go (10 bytes)\nsrc/b_test.go (27 bytes)\nsrc/deep/er/c.go (21 bytes)\n"},
		{name: "paths", args: args{"glob": "src/*.go"}, want: "src/a.go (10 bytes)\nsrc/b_test.go (27 bytes)\n"},
		{name: "below a folder", args: args{"path": "src", "glob": "deep/**"}, want: "src/deep/er/c.go (21 bytes)\n"},
		{name: "nothing", args: args{"glob": "*.rs"}, want: "No file was found.\n"},
		{name: "no such folder", args: args{"path": "sr"}, want: "No file was found.\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := b.call("list_files", row.args.String()); got.Text != row.want+skipped || got.Failed {
				t.Errorf("got %+v, want %q", got, row.want+skipped)
			}
		})
	}
	b.failed("list_files", args{"glob": "{a,b"}, `glob "{a,b" is no pattern of paths`)
	b.failed("list_files", args{"glob": strings.Repeat("x", 201)}, "or longer than 200 bytes")
	b.failed("list_files", args{"glob": "[z-a]"}, `glob "[z-a]" is no pattern`)
}

func TestListMany(t *testing.T) {
	b := newBench(t)
	b.done("shell", args{"command": "mkdir d && cd d && seq 1 1203 | xargs touch"})
	text := b.done("list_files", nil, "[203 more; give a folder or a glob]")
	if strings.Count(text, "\n") != 1001 || len(text) > DefaultMaxResult {
		t.Errorf("%d lines, %d bytes", strings.Count(text, "\n"), len(text))
	}
}

func TestGlob(t *testing.T) {
	for _, row := range []struct{ pattern, matches, others string }{
		{pattern: "*", matches: "a a/b .x a/b/c"},
		{pattern: "*.go", matches: "a.go x/a.go .go", others: "a.gox ago a.go/x"},
		{pattern: "./*.go", matches: "a.go x/a.go"},
		{pattern: "a/*", matches: "a/b a/", others: "a a/b/c b/a/c"},
		{pattern: "a/**", matches: "a/b a/b/c", others: "a b/a/c"},
		{pattern: "**/b", matches: "b a/b a/c/b", others: "ab a/bb"},
		{pattern: "a/**/b", matches: "a/b a/x/b a/x/y/b", others: "ab a/xb"},
		{pattern: "?.c", matches: "a.c ä.c", others: "ab.c .c"},
		{pattern: "[a-c]x", matches: "ax cx", others: "dx x"},
		{pattern: "[!a-c]x", matches: "dx", others: "ax x"},
		{pattern: "a/[!b]", matches: "a/c", others: "a/b a//"},
		{pattern: "*.{c,h}", matches: "a.c b/a.h", others: "a.ch a."},
		{pattern: "{src,test}/*.{c,h}", matches: "src/a.c test/b.h", others: "other/a.c src/a.o"},
		{pattern: `a\*b`, matches: "a*b", others: "axb"},
		{pattern: `\ä`, matches: "ä"},
		{pattern: "a+(b)|$^", matches: "a+(b)|$^", others: "aab"},
		{pattern: "a,b}", matches: "a,b}"},
		{pattern: "[", matches: "["},
		{pattern: "äöü*", matches: "äöüß"},
	} {
		g, valid := parseGlob(row.pattern)
		if !valid {
			t.Fatalf("%s is refused", row.pattern)
		}
		for _, path := range strings.Fields(row.matches) {
			if !g.match(path) {
				t.Errorf("%s does not match %s (%v)", row.pattern, path, g.whole)
			}
		}
		for _, path := range strings.Fields(row.others) {
			if g.match(path) {
				t.Errorf("%s matches %s (%v)", row.pattern, path, g.whole)
			}
		}
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("a/**/[!x-z]?{b,c}\\*", "a/b")
	f.Fuzz(func(_ *testing.T, pattern, path string) {
		if g, valid := parseGlob(pattern); valid {
			g.match(path)
		}
	})
}

func TestSearch(t *testing.T) {
	b := newBench(t)
	b.tree()
	for _, row := range []struct {
		name string
		args args
		want string // without what is said of what was skipped
	}{
		{name: "everywhere", args: args{"pattern": "hello"}, want: ".hidden:1: hello there\nsrc/deep/er/c.go:2: // hello\n\"two\\nlines\":1: hello\n[1 file not searched: binary]\n[3 files in .git or .agentrun left out]\n"},
		{name: "any case", args: args{"pattern": "(?i)HELLO", "glob": "*.md"}, want: "README.md:2: Hello world\n"},
		{name: "a folder", args: args{"pattern": "^package", "path": "src", "glob": "*.go"}, want: "src/a.go:1: package a\nsrc/b_test.go:1: package a\nsrc/deep/er/c.go:1: package c\n"},
		{name: "a file", args: args{"pattern": "main", "path": "main.go"}, want: "main.go:1: package main\nmain.go:3: func main() {}\n"},
		{name: "the end of a line", args: args{"pattern": "hello$", "glob": "c.go"}, want: "src/deep/er/c.go:2: // hello\n"},
		{name: "an empty line", args: args{"pattern": "^$", "path": "main.go"}, want: "main.go:2: \n"},
		{name: "git's", args: args{"pattern": "h", "path": ".git"}, want: ".git/config:1: hello\n"},
		{name: "none", args: args{"pattern": "nowhere", "glob": "*.go"}, want: "No line matches in 4 files.\n"},
		{name: "no file", args: args{"pattern": "x", "path": "nowhere"}, want: "No line matches in 0 files.\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			want := row.want + "[2 names skipped in the workspace: no regular files with one name, or closed]\n"
			if got := b.call("search", row.args.String()); got.Text != want || got.Failed {
				t.Errorf("got %+v, want %q", got, want)
			}
		})
	}
	for pattern, why := range map[string]string{
		"": "has to have 1 to 1000 bytes", strings.Repeat("x", 1001): "has to have 1 to 1000 bytes", "(": "no regular expression in RE2 syntax: ",
		"(?=a)": "no regular expression", `(a)\1`: "no regular expression", "(a{1000}){1000}": "no regular expression",
		"(abcdefgh?){1000}": "too many repetitions", "((x{10}y){10}z){10}": "",
	} {
		if why == "" {
			b.done("search", args{"pattern": pattern})
			continue
		}
		b.failed("search", args{"pattern": pattern}, "Nothing was searched: ", why)
	}
	b.failed("search", args{"pattern": "a", "glob": "{"}, `glob "{" is no pattern`)
}

func TestSearchIsBounded(t *testing.T) {
	b := newBench(t)
	b.file("many", strings.Repeat("match\n", 300))
	text := b.done("search", args{"pattern": "match"}, "many:200: match\n[there are more than 200 matches;")
	if strings.Count(text, "many:") != 200 {
		t.Errorf("%d matches", strings.Count(text, "many:"))
	}
	b.file("many", strings.Repeat("match\n", 200))
	if text := b.done("search", args{"pattern": "match"}); strings.Contains(text, "more than") {
		t.Errorf("got %q", text[len(text)-100:])
	}
	b.file("line", strings.Repeat("ä", 5000)+"needle\n")
	text = b.done("search", args{"pattern": "needle", "path": "line"}, "line:1: ää", "ä…\n")
	if len(text) > 420 {
		t.Errorf("%d bytes", len(text))
	}
	b.file("long", strings.Repeat("x", maxColumn)+"needle\nneedle\n")
	b.done("search", args{"pattern": "needle", "path": "long"}, "long:2: needle\n[1 line searched in the first 64 KiB only]\n")
	for i := range 6 {
		f, err := os.Create(filepath.Join(b.dir, fmt.Sprintf("sparse%02d", i)))
		b.must(err)
		b.must(f.Truncate(maxSearched + int64(i%2)))
		b.must(f.Close())
	}
	b.done("search", args{"pattern": "needle", "glob": "sparse*"}, "No line matches in 0 files.\n[3 files not searched: binary]\n[3 files not searched: larger than 8 MiB]\n")
}

func TestSearchStopsAfterSoManyBytes(t *testing.T) {
	b := newBench(t)
	b.file("a", "x")
	r := newReport(&b.Place)
	s := &searcher{ctx: t.Context(), place: &b.Place, report: r, bytes: maxTotal}
	found, _, err := b.find(t.Context(), "", "", r)
	b.must(err)
	b.must(s.all(found.files))
	s.notes(true)
	text, err := r.finish("x")
	b.must(err)
	if want := "No line matches in 0 files.\n[stopped after 256 MiB; make the path or the glob narrower]\n[stopped after 20s, with 0 files searched; make the path or the glob narrower]\n"; text != want {
		t.Errorf("got %q", text)
	}
}
