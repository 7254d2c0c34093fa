package tool

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// badPaths are paths that no tool takes, with what it says.
func (b *bench) badPaths() map[string]string {
	b.t.Helper()
	out := filepath.Join(b.t.TempDir(), "secret")
	b.must(os.WriteFile(out, []byte("secret"), 0o600))
	b.file("d/f", "inside")
	join := func(name string) string { return filepath.Join(b.dir, name) }
	for name, target := range map[string]string{"link": out, "dirlink": filepath.Dir(out), "link-in": "d/f"} {
		b.must(os.Symlink(target, join(name)))
	}
	b.must(os.Link(out, join("hard")))
	b.must(syscall.Mkfifo(join("fifo"), 0o600))
	return map[string]string{
		"":          "invalid path",
		"..":        "invalid path",
		"../x":      "invalid path",
		"d/../d/f":  "invalid path",
		"/etc/x":    "invalid path",
		out:         "invalid path",
		"a\x00b":    "invalid path",
		b.dir + "x": "invalid path",
		b.dir:       "invalid path",
		".":         "invalid path",
		"link":      "symbolic link", "link-in": "symbolic link", "dirlink/secret": "symbolic link",
		"hard": "hard links", "fifo": "named pipe", "d": "is a directory", "d/": "is a directory",
	}
}

func TestBadPaths(t *testing.T) {
	b := newBench(t)
	rows := 0
	for path, why := range b.badPaths() {
		for name, a := range map[string]args{
			"read_file": {"path": path}, "write_file": {"path": path, "content": "attack"}, "edit_file": {"path": path, "old": "inside", "new": "attack"},
		} {
			text := b.failed(name, a, why)
			if strings.Contains(text, b.Run.String()+":") || strings.Contains(text, "secret\n") {
				t.Errorf("%s: %q", name, text)
			}
			rows++
		}
	}
	b.failed("write_file", args{"path": "d/f/x", "content": ""}, "is no directory")
	b.failed("write_file", args{"path": strings.Repeat("n", 300), "content": ""}, "invalid path")
	b.failed("read_file", args{"path": "no"}, `file "no": no such file`)
	b.failed("edit_file", args{"path": "no", "old": "a", "new": "b"}, "no such file")
	for _, path := range []string{"..", "/etc", "a/../..", "/"} {
		b.failed("list_files", args{"path": path}, "is not in the workspace")
		b.failed("search", args{"path": path, "pattern": "x"}, "is not in the workspace")
	}
	if b.content("d/f") != "inside" || b.content("link") != "secret" || b.content("hard") != "secret" {
		t.Error("something was written")
	}
	t.Logf("%d refused", rows)
}

func TestReadFile(t *testing.T) {
	b := newBench(t)
	b.file("three", "one\ntwo\nthree\n")
	b.file("crlf", "a\r\nb")
	b.file("empty", "")
	b.file("latin", "caf\xe9\n")
	b.file("binary", "a\x00b")
	b.file("late", strings.Repeat("x\n", 10_000)+"\x00")
	for _, row := range []struct {
		name   string
		args   args
		want   string
		failed bool
	}{
		{name: "all", args: args{"path": "three"}, want: "three, 14 bytes, lines 1 to 3, the last one:\none\ntwo\nthree\n"},
		{name: "numbers", args: args{"path": "./three", "numbers": true}, want: "three, 14 bytes, lines 1 to 3, the last one:\n     1\tone\n     2\ttwo\n     3\tthree\n"},
		{name: "the first", args: args{"path": "three", "limit": 1}, want: "three, 14 bytes, lines 1 to 1; there are more, from offset 2 on:\none\n"},
		{name: "in the middle", args: args{"path": "three", "offset": 2, "limit": 1}, want: "three, 14 bytes, lines 2 to 2; there are more, from offset 3 on:\ntwo\n"},
		{name: "the last", args: args{"path": "three", "offset": 3, "limit": 1}, want: "three, 14 bytes, lines 3 to 3, the last one:\nthree\n"},
		{name: "a great limit", args: args{"path": "three", "offset": 3, "limit": 1<<63 - 1}, want: "three, 14 bytes, lines 3 to 3, the last one:\nthree\n"},
		{name: "too far", args: args{"path": "three", "offset": 4}, want: "three has only 3 lines (14 bytes).", failed: true},
		{name: "much too far", args: args{"path": "three", "offset": 1<<63 - 1}, want: "three has only 3 lines (14 bytes).", failed: true},
		{name: "no newline at the end", args: args{"path": "crlf"}, want: "crlf, 4 bytes, lines 1 to 2, the last one:\na\r\nb"},
		{name: "empty", args: args{"path": "empty"}, want: "empty is empty (0 bytes)."},
		{name: "not UTF-8", args: args{"path": "latin"}, want: "latin, 5 bytes, lines 1 to 1, the last one:\ncaf\ufffd\n"},
		{name: "absolute", args: args{"path": b.dir + "/crlf", "limit": 1}, want: "crlf, 4 bytes, lines 1 to 1; there are more, from offset 2 on:\na\r\n"},
		{name: "negative offset", args: args{"path": "three", "offset": -1}, want: "Nothing was read: offset and limit have to be 1 or more.", failed: true},
		{name: "negative limit", args: args{"path": "three", "limit": -1}, want: "Nothing was read: offset and limit have to be 1 or more.", failed: true},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := b.call("read_file", row.args.String()); got.Text != row.want || got.Failed != row.failed {
				t.Errorf("got %+v, want %q", got, row.want)
			}
		})
	}
	b.failed("read_file", args{"path": "binary"}, "binary is a binary file of 3 bytes, and only text can be read.")
	b.failed("read_file", args{"path": "late", "offset": 9_999}, "late holds binary data in the lines from 9999 on (20001 bytes in all)")
}

// All lines of a long file can be read, one call after the other.
func TestReadLongFile(t *testing.T) {
	b := newBench(t)
	b.MaxResult = 1500
	var whole strings.Builder
	for i := range 3000 {
		fmt.Fprintf(&whole, "line %d %s\n", i, strings.Repeat("y", i%50))
	}
	b.file("long", whole.String())
	var read strings.Builder
	for offset, calls := 1, 0; ; calls++ {
		text := b.done("read_file", args{"path": "long", "offset": offset})
		head, lines, _ := strings.Cut(text, ":\n")
		read.WriteString(lines)
		if len(text) > 1500 || calls > 1000 {
			t.Fatalf("%d bytes in call %d", len(text), calls)
		}
		if strings.HasSuffix(head, "the last one") {
			break
		}
		if _, err := fmt.Sscanf(head[strings.Index(head, "there"):], "there are more, from offset %d on", &offset); err != nil {
			t.Fatal(head, err)
		}
	}
	if read.String() != whole.String() {
		t.Errorf("%d bytes were read of %d", read.Len(), whole.Len())
	}
}

func TestReadLongLines(t *testing.T) {
	b := newBench(t)
	b.MaxResult = 1500
	b.file("long", "short\n"+strings.Repeat("x", 200_000)+"\nafter\n")
	b.done("read_file", args{"path": "long"}, "lines 1 to 1; there are more, from offset 2 on:\nshort\n")
	b.done("read_file", args{"path": "long", "offset": 2}, "the beginning of line 2, which is too long to be read as a whole; line 3 comes next:\nxxx")
	b.done("read_file", args{"path": "long", "offset": 3}, "lines 3 to 3, the last one:\nafter\n")
	if list := b.names("."); list != "long" {
		t.Errorf("kept: %s", list)
	}
	f, err := os.OpenFile(filepath.Join(b.dir, "huge"), os.O_CREATE|os.O_WRONLY, 0o600)
	b.must(err)
	defer f.Close()
	_, err = f.WriteString(strings.Repeat("text ", 10_000))
	b.must(err)
	b.must(f.Truncate(10 << 30)) // One line, and all of it NUL from here on.
	b.failed("read_file", args{"path": "huge", "offset": 2}, "Line 2 of huge (10737418240 bytes) lies too far from the beginning")
	b.done("read_file", args{"path": "huge", "offset": 1}, "the beginning of line 1")
}

func TestWriteFile(t *testing.T) {
	b := newBench(t)
	for path, content := range map[string]string{
		"a": "text", "deep/er/b": "", "ä ö": "ü\n", b.dir + "/c": "c", "./d": "d\r\n", "-rf": "x",
	} {
		for range 2 {
			name := strings.TrimPrefix(strings.TrimPrefix(path, b.dir+"/"), "./")
			b.done("write_file", args{"path": path, "content": content}, fmt.Sprintf("%s was written: %d bytes.", name, len(content)))
			if got := b.content(name); got != content {
				t.Errorf("%s: %q", path, got)
			}
		}
	}
	b.failed("write_file", args{"path": "large", "content": strings.Repeat("x", 1<<20+1)}, "would have 1048577 bytes, and the agent's limit of a file (file_size) is 1048576")
	b.done("write_file", args{"path": "large", "content": strings.Repeat("x", 1<<20)})
	cmd := b.Command(nil)
	cmd.Limits.FileSize = 0
	limit, whose := (&Place{Command: replying(cmd)}).fileLimit()
	if limit != 10<<20 || whose != "the most that a tool writes, 10 MiB," {
		t.Errorf("%d: %s", limit, whose)
	}
}

func TestEditFile(t *testing.T) {
	for _, row := range []struct {
		name, before string
		args         args
		after, want  string // no after: it fails, and stays as it is
	}{
		{name: "one", before: "a b c\n", args: args{"old": "b", "new": "B"}, after: "a B c\n", want: "f was changed in 1 place; it has 6 bytes now."},
		{name: "delete", before: "a b c", args: args{"old": " b", "new": ""}, after: "a c", want: "1 place"},
		{name: "lines", before: "a\nb\nc\n", args: args{"old": "a\nb\n", "new": "x\ny\nz\n"}, after: "x\ny\nz\nc\n", want: "1 place"},
		{name: "all", before: "a b a b a", args: args{"old": "a", "new": "aa", "all": true}, after: "aa b aa b aa", want: "changed in 3 places; it has 12 bytes"},
		{name: "all of one", before: "a", args: args{"old": "a", "new": "b", "all": true}, after: "b", want: "1 place"},
		{name: "what it would make anew", before: "xx", args: args{"old": "x", "new": "xx", "all": true}, after: "xxxx", want: "2 places"},
		{name: "CRLF", before: "a\r\nb\r\nc\r\n", args: args{"old": "a\nb", "new": "x\ny\nz"}, after: "x\r\ny\r\nz\r\nc\r\n", want: "1 place"},
		{name: "CRLF as it is", before: "a\r\nb\r\n", args: args{"old": "a\r\nb", "new": "x\r\ny"}, after: "x\r\ny\r\n", want: "1 place"},
		{name: "mixed line ends", before: "a\r\nb\nc\n", args: args{"old": "b\nc", "new": "x\ny"}, after: "a\r\nx\ny\n", want: "1 place"},
		{name: "not UTF-8 around", before: "\xff a \xfe", args: args{"old": "a", "new": "ä"}, after: "\xff ä \xfe", want: "1 place"},
		{name: "dollars and backslashes", before: "$1 \\1", args: args{"old": "$1 \\", "new": "\\$0 "}, after: "\\$0 1", want: "1 place"},
		{name: "not unique", before: "a\nb\na\nx a\n", args: args{"old": "a", "new": "b"}, want: "old occurs 3 times in f (lines 1, 3, 4)"},
		{name: "many times", before: strings.Repeat("a\n", 50), args: args{"old": "a", "new": "b"}, want: "old occurs 50 times in f (lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and so on)"},
		{name: "twice a few lines", before: "a\nb\na\nb\n", args: args{"old": "a\nb\n", "new": "b"}, want: "2 times in f (lines 1, 3)"},
		{name: "absent", before: "a b", args: args{"old": "a  b", "new": "b"}, want: "old does not occur in f."},
		{name: "no old", before: "a", args: args{"old": "", "new": "b"}, want: "old is empty"},
		{name: "nothing new", before: "a", args: args{"old": "a", "new": "a"}, want: "old and new are the same"},
		{name: "binary", before: "a\x00", args: args{"old": "a", "new": "b"}, want: "f is a binary file of 2 bytes"},
		{name: "too large then", before: strings.Repeat("a", 1<<20), args: args{"old": "a", "new": "bb", "all": true}, want: "would have 2097152 bytes"},
	} {
		t.Run(row.name, func(t *testing.T) {
			b := newBench(t)
			b.file("f", row.before)
			row.args["path"] = "f"
			if row.after == "" {
				row.after = row.before
				b.failed("edit_file", row.args, "Nothing was ", row.want)
			} else {
				b.done("edit_file", row.args, row.want)
			}
			if got := b.content("f"); got != row.after {
				t.Errorf("got %.100q, want %.100q", got, row.after)
			}
		})
	}
	b := newBench(t)
	b.file("large", strings.Repeat("a", maxWrite+1))
	b.failed("edit_file", args{"path": "large", "old": "a", "new": "b"}, "files of more than 10 MiB are not edited")
	b.file("script", "echo a\n")
	b.must(os.Chmod(filepath.Join(b.dir, "script"), 0o755))
	b.done("edit_file", args{"path": "script", "old": "a", "new": "b"})
	b.done("shell", args{"command": "./script || sh -x script; ls -l script"}, "-rwxr-xr-x")
}
