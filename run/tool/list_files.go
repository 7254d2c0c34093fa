package tool

import (
	"context"
	_ "embed"
	"strconv"
	"strings"
	"unicode"

	"agentrun/storage/workspace"
)

//go:embed list_files.md
var listFilesWords string

// maxListed is how many files are listed.
const maxListed = 1000

type listFilesArgs struct {
	Path string `json:"path,omitempty" jsonschema:"the folder, relative to the workspace; the whole workspace when left out"`
	Glob string `json:"glob,omitempty" jsonschema:"a pattern of the paths below that folder"`
}

func listFiles(ctx context.Context, p *Place, args listFilesArgs, r *report) error {
	found, ok, err := p.find(ctx, args.Path, args.Glob, r)
	if !ok {
		return err
	}
	for i, f := range found.files {
		if i == maxListed {
			r.say("[%d more; give a folder or a glob]\n", len(found.files)-maxListed)
			break
		}
		r.say("%s (%d bytes)\n", printable(f.Path), f.Size)
	}
	if len(found.files) == 0 {
		r.say("No file was found.\n")
	}
	found.notes(r)
	return nil
}

// found are files that a model asked for.
type found struct {
	files   []workspace.Entry
	own     int // how many there are in folders that nobody asked for
	more    bool
	skipped int
}

// find returns the files at or below a path whose path from there on matches a
// glob, or says what is wrong with these.
func (p *Place) find(ctx context.Context, path, pattern string, r *report) (f found, ok bool, err error) {
	match, valid := parseGlob(pattern)
	if !valid {
		r.fail("Nothing was looked at: glob %q is no pattern of paths, or longer than %d bytes. An example is src/**/*.{c,h}.", pattern, maxGlob)
		return f, false, nil
	}
	base := p.relative(path)
	if base == "." {
		base = ""
	}
	if strings.HasPrefix(base, "/") || hasParent(base) {
		r.fail("Nothing was looked at: path %q is not in the workspace.", path)
		return f, false, nil
	}
	list, err := p.Workspaces.List(p.Run)
	if err != nil {
		return f, false, r.failFile(err)
	}
	f.more, f.skipped = list.More, list.Skipped
	for _, file := range list.Files {
		if err := ctx.Err(); err != nil {
			return f, false, err
		}
		below, inside := under(file.Path, base)
		switch {
		case !inside || !match.match(below):
		case own(below):
			f.own++
		default:
			f.files = append(f.files, file)
		}
	}
	return f, true, nil
}

// under is a path as seen from a folder; a file is below itself, by its name.
func under(path, base string) (below string, inside bool) {
	if base == "" {
		return path, true
	}
	if path == base {
		return path[strings.LastIndexByte(path, '/')+1:], true
	}
	return strings.CutPrefix(path, base+"/")
}

// notes says what is not there.
func (f found) notes(r *report) {
	if f.own > 0 {
		r.say("[%d %s in .git or %s left out]\n", f.own, plural(f.own, "file"), logFolder)
	}
	if f.skipped > 0 {
		r.say("[%d %s skipped in the workspace: no regular files with one name, or closed]\n", f.skipped, plural(f.skipped, "name"))
	}
	if f.more {
		r.say("[the workspace has more files than are looked at; those in deep folders are missing]\n")
	}
}

// printable keeps a path on its line.
func printable(path string) string {
	if strings.ContainsFunc(path, unicode.IsControl) {
		return strconv.Quote(path)
	}
	return path
}
