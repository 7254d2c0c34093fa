package tool

import (
	"context"
	_ "embed"
	"fmt"
)

//go:embed write_file.md
var writeFileWords string

// maxWrite is how long a file may be that a tool writes, whatever the agent's
// own limit is.
const maxWrite = 10 << 20

type writeFileArgs struct {
	Path    string `json:"path" jsonschema:"the file, relative to the workspace"`
	Content string `json:"content" jsonschema:"the whole content of the file"`
}

func writeFile(_ context.Context, p *Place, args writeFileArgs, r *report) error {
	path := p.relative(args.Path)
	if written, err := p.write(path, []byte(args.Content), r); !written {
		return err
	}
	r.say("%s was written: %d bytes.", path, len(args.Content))
	return nil
}

// write writes a file, or says why not.
func (p *Place) write(path string, content []byte, r *report) (written bool, err error) {
	if limit, whose := p.fileLimit(); int64(len(content)) > limit {
		r.fail("Nothing was written: the file would have %d bytes, and %s is %d.", len(content), whose, limit)
		return false, nil
	}
	if err := p.Workspaces.WriteFile(p.Run, path, content, p.Sandbox.Owner()); err != nil {
		return false, r.failFile(err)
	}
	return true, nil
}

// fileLimit is how long a file may become, and whose limit that is.
func (p *Place) fileLimit() (limit int64, whose string) {
	if size := p.Command(nil).Limits.FileSize; size > 0 && size < maxWrite {
		return int64(size), "the agent's limit of a file (file_size)"
	}
	return maxWrite, fmt.Sprintf("the most that a tool writes, %d MiB,", maxWrite>>20)
}
