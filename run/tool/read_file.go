package tool

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"strings"

	"github.com/go-faster/errors"

	"agentrun/storage/workspace"
)

//go:embed read_file.md
var readFileWords string

const (
	// defaultLines is how many lines are read when the model does not say.
	defaultLines = 2000
	// maxScan is how far into a file lines are looked for.
	maxScan = 64 << 20
	// headRoom is more than what is said around the lines of a file takes, but
	// for its path.
	headRoom = 256
)

type readFileArgs struct {
	Path    string `json:"path" jsonschema:"the file, relative to the workspace"`
	Offset  int    `json:"offset,omitempty" jsonschema:"the number of the first line to read, from 1; 1 when left out"`
	Limit   int    `json:"limit,omitempty" jsonschema:"how many lines to read at most; 2000 when left out"`
	Numbers bool   `json:"numbers,omitempty" jsonschema:"whether each line has its number before it"`
}

func readFile(ctx context.Context, p *Place, args readFileArgs, r *report) error {
	if args.Offset < 0 || args.Limit < 0 {
		r.fail("Nothing was read: offset and limit have to be 1 or more.")
		return nil
	}
	path := p.relative(args.Path)
	content, err := p.Workspaces.OpenFile(p.Run, path)
	if err != nil {
		return r.failFile(err)
	}
	defer content.Close()
	l := lines{
		ctx: ctx, source: bufio.NewReaderSize(content, 64<<10), numbers: args.Numbers,
		first: max(args.Offset, 1), limit: args.Limit, room: max(p.maxResult()-headRoom-len(path), headRoom),
	}
	if l.limit == 0 {
		l.limit = defaultLines
	}
	if start, _ := l.source.Peek(8 << 10); bytes.IndexByte(start, 0) >= 0 {
		r.fail("%s is a binary file of %d bytes, and only text can be read. Programs that read it can be run with shell, if that is there.", path, content.Size)
		return nil
	}
	if err := l.read(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return r.failFile(err)
	}
	l.report(path, content, r)
	return nil
}

// lines reads some lines of a text.
type lines struct {
	ctx     context.Context
	source  *bufio.Reader
	first   int
	limit   int
	room    int // how many bytes there is room for
	numbers bool

	text    strings.Builder
	next    int // the number of the line that comes next
	scanned int
	cut     bool // the one line that was read is longer than there is room for
	tooFar  bool // the first line lies beyond maxScan
	over    bool // the text has no more lines
}

func (l *lines) read() error {
	for l.next = 1; l.next-l.first < l.limit; l.next++ {
		if l.tooFar = l.next <= l.first && l.scanned > maxScan; l.tooFar {
			return nil
		}
		if l.next < l.first {
			if _, _, err := l.line(0); err != nil {
				return l.end(err)
			}
			continue
		}
		prefix := ""
		if l.numbers {
			prefix = fmt.Sprintf("%6d\t", l.next)
		}
		room := l.room - l.text.Len() - len(prefix)
		if room <= 0 {
			break
		}
		line, whole, err := l.line(room)
		if err != nil {
			return l.end(err)
		}
		if !whole && l.next > l.first {
			return nil // It comes first in the next call.
		}
		l.text.WriteString(prefix)
		l.text.WriteString(line)
		if !whole {
			l.cut = true
			l.next++
			return nil
		}
	}
	_, err := l.source.Peek(1)
	return l.end(err)
}

// end notes the end of the text, which is no fault.
func (l *lines) end(err error) error {
	if l.over = errors.Is(err, io.EOF); l.over {
		return nil
	}
	return err
}

// line reads the next line with its end, of which it returns as much as there
// is room for, and whether that is all.
func (l *lines) line(room int) (line string, whole bool, err error) {
	var kept []byte
	length := 0
	for {
		part, err := l.source.ReadSlice('\n')
		length += len(part)
		l.scanned += len(part)
		kept = append(kept, part[:min(len(part), room-len(kept))]...)
		switch {
		case l.ctx.Err() != nil:
			return "", false, l.ctx.Err()
		case err == nil, errors.Is(err, io.EOF) && length > 0:
			return string(kept), length == len(kept), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return "", false, err
		case length > maxScan:
			// What follows is the same line, and nobody gets to it from here.
			return string(kept), false, nil
		}
	}
}

func (l *lines) report(path string, content *workspace.Content, r *report) {
	last := l.next - 1
	text := l.text.String()
	switch {
	case strings.ContainsRune(text, 0):
		r.fail("%s holds binary data in the lines from %d on (%d bytes in all), and only text can be read.", path, l.first, content.Size)
	case l.tooFar:
		r.fail("Line %d of %s (%d bytes) lies too far from the beginning to be read here. Use shell, if that is there: tail, sed -n.", l.first, path, content.Size)
	case content.Size == 0:
		r.say("%s is empty (0 bytes).", path)
	case text == "":
		r.fail("%s has only %d lines (%d bytes).", path, last, content.Size)
	case l.cut:
		r.say("%s, %d bytes, the beginning of line %d, which is too long to be read as a whole; line %d comes next:\n%s", path, content.Size, last, l.next, text)
	case l.over:
		r.say("%s, %d bytes, lines %d to %d, the last one:\n%s", path, content.Size, l.first, last, text)
	default:
		r.say("%s, %d bytes, lines %d to %d; there are more, from offset %d on:\n%s", path, content.Size, l.first, last, l.next, text)
	}
}
