package tool

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"strings"
)

//go:embed edit_file.md
var editFileWords string

// maxPlaces is how many places the model is told of where a text is not unique.
const maxPlaces = 10

type editFileArgs struct {
	Path string `json:"path" jsonschema:"the file, relative to the workspace"`
	Old  string `json:"old" jsonschema:"the text to replace, exactly as it is in the file"`
	New  string `json:"new" jsonschema:"the text that takes its place; empty to delete"`
	All  bool   `json:"all,omitempty" jsonschema:"whether every occurrence is replaced, instead of the only one"`
}

func editFile(_ context.Context, p *Place, args editFileArgs, r *report) error {
	path := p.relative(args.Path)
	text, read, err := p.readToEdit(path, r)
	if !read {
		return err
	}
	before, after := args.Old, args.New
	if crlf(text) {
		before, after = toCRLF(before), toCRLF(after)
	}
	count := strings.Count(text, before)
	switch {
	case before == "":
		r.fail("Nothing was changed: old is empty. To write a whole file use write_file, if it is there.")
	case before == after:
		r.fail("Nothing was changed: old and new are the same.")
	case count == 0:
		r.fail("Nothing was changed: old does not occur in %s. It has to be exactly what is there, with all blanks and line breaks; read the file again.", path)
	case count > 1 && !args.All:
		r.fail("Nothing was changed: old occurs %d times in %s (%s). Give more of what is around the one that you mean, or set all.", count, path, places(text, before))
	default:
		text = strings.ReplaceAll(text, before, after)
		if written, err := p.write(path, []byte(text), r); !written {
			return err
		}
		r.say("%s was changed in %d %s; it has %d bytes now.", path, count, plural(count, "place"), len(text))
	}
	return nil
}

// readToEdit returns the text of a file, or says why it cannot be edited.
func (p *Place) readToEdit(path string, r *report) (text string, read bool, err error) {
	content, err := p.Workspaces.OpenFile(p.Run, path)
	if err != nil {
		return "", false, r.failFile(err)
	}
	defer content.Close()
	if content.Size > maxWrite {
		r.fail("Nothing was changed: %s has %d bytes, and files of more than %d MiB are not edited.", path, content.Size, maxWrite>>20)
		return "", false, nil
	}
	raw, err := io.ReadAll(content)
	if err != nil {
		return "", false, r.failFile(err)
	}
	if bytes.IndexByte(raw, 0) >= 0 {
		r.fail("Nothing was changed: %s is a binary file of %d bytes, and only text can be edited.", path, len(raw))
		return "", false, nil
	}
	return string(raw), true, nil
}

// crlf says whether every line of a text ends with CRLF.
func crlf(text string) bool {
	ends := strings.Count(text, "\n")
	return ends > 0 && strings.Count(text, "\r\n") == ends
}

func toCRLF(text string) string {
	return strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\n", "\r\n")
}

// places names the lines where a text begins.
func places(text, part string) string {
	var lines []string
	line, at := 1, 0
	for len(lines) < maxPlaces {
		next := strings.Index(text[at:], part)
		if next < 0 {
			return "lines " + strings.Join(lines, ", ")
		}
		line += strings.Count(text[at:at+next], "\n")
		lines = append(lines, fmt.Sprint(line))
		line += strings.Count(part, "\n")
		at += next + len(part)
	}
	return "lines " + strings.Join(lines, ", ") + " and so on"
}

func plural(n int, word string) string {
	if n == 1 {
		return word
	}
	return word + "s"
}
