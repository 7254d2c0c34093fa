package tool

import (
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"io"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"agentrun/storage/workspace"
)

//go:embed search.md
var searchWords string

// Bounds of a search.
const (
	maxPattern  = 1000
	maxStates   = 5000     // of a pattern with its repetitions spelt out
	maxColumn   = 64 << 10 // bytes of a line that are searched
	maxMatches  = 200
	maxSearched = 8 << 20   // bytes of one file
	maxTotal    = 256 << 20 // bytes of all
	maxLine     = 400       // bytes of a line that are shown
	searchTime  = 20 * time.Second
)

type searchArgs struct {
	Pattern string `json:"pattern" jsonschema:"the regular expression, in RE2 syntax"`
	Path    string `json:"path,omitempty" jsonschema:"the file or folder to search, relative to the workspace; the whole workspace when left out"`
	Glob    string `json:"glob,omitempty" jsonschema:"a pattern of the paths of files below that folder"`
}

func search(ctx context.Context, p *Place, args searchArgs, r *report) error {
	pattern, problem := parsePattern(args.Pattern)
	if problem != "" {
		r.fail("Nothing was searched: %s.", problem)
		return nil
	}
	found, ok, err := p.find(ctx, args.Path, args.Glob, r)
	if !ok {
		return err
	}
	limited, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	s := &searcher{ctx: limited, place: p, pattern: pattern, report: r}
	err = s.all(found.files)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	s.notes(err != nil)
	found.notes(r)
	return nil
}

// parsePattern reads a pattern, or says what is wrong with it. Matching cannot be
// interrupted, and takes time in proportion to the pattern's states and the
// line's length together; so both have bounds.
func parsePattern(text string) (pattern *regexp.Regexp, problem string) {
	if text == "" || len(text) > maxPattern {
		return nil, fmt.Sprintf("pattern has to have 1 to %d bytes", maxPattern)
	}
	tree, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Sprintf("pattern is no regular expression in RE2 syntax: %v", err)
	}
	if states(tree) > maxStates {
		return nil, "pattern has too many repetitions, {n,m}"
	}
	if pattern, err = regexp.Compile(text); err != nil {
		return nil, fmt.Sprintf("pattern is no regular expression in RE2 syntax: %v", err)
	}
	return pattern, ""
}

// states is about how many states a pattern has. The parser sees to it that
// repetitions of repetitions are at most 1000 together.
func states(tree *syntax.Regexp) int {
	n := 1
	if tree.Op == syntax.OpLiteral {
		n = len(tree.Rune)
	}
	for _, sub := range tree.Sub {
		n += states(sub)
	}
	if tree.Op == syntax.OpRepeat {
		n *= max(tree.Min, tree.Max, 1)
	}
	return n
}

// searcher looks for a pattern in files.
type searcher struct {
	ctx     context.Context
	place   *Place
	pattern *regexp.Regexp
	report  *report

	buffer   bytes.Buffer
	matches  int
	searched int   // files
	bytes    int64 // of these
	binary   int   // files
	large    int   // files
	long     int   // lines
	changed  int   // files that were not there any more, or were cut short
	full     bool
}

func (s *searcher) all(files []workspace.Entry) error {
	for _, f := range files {
		if s.full {
			return nil
		}
		switch err := s.file(f.Path); {
		case errors.Is(err, workspace.ErrNoFile), errors.Is(err, workspace.ErrFileRefused),
			errors.Is(err, workspace.ErrCutShort), errors.Is(err, workspace.ErrInvalidPath):
			s.changed++
		case err != nil:
			return err
		}
	}
	return nil
}

func (s *searcher) file(path string) error {
	content, err := s.place.Workspaces.OpenFile(s.place.Run, path)
	if err != nil {
		return err
	}
	defer content.Close()
	if content.Size > maxSearched {
		s.large++
		return nil
	}
	if s.bytes += content.Size; s.bytes > maxTotal {
		s.full = true
		return nil
	}
	s.buffer.Reset()
	if _, err := io.Copy(&s.buffer, content); err != nil {
		return err
	}
	if bytes.IndexByte(s.buffer.Bytes(), 0) >= 0 {
		s.binary++
		return nil
	}
	s.searched++
	number := 0
	for line := range bytes.Lines(s.buffer.Bytes()) {
		number++
		if err := s.ctx.Err(); err != nil {
			return err
		}
		line = bytes.TrimRight(line, "\r\n")
		if len(line) > maxColumn {
			line = line[:maxColumn]
			s.long++
		}
		if !s.pattern.Match(line) {
			continue
		}
		if s.matches == maxMatches {
			s.full = true
			return nil
		}
		s.matches++
		s.report.say("%s:%d: %s\n", printable(path), number, shown(string(line)))
	}
	return nil
}

// shown is as much of a line as is shown.
func shown(line string) string {
	line = strings.ToValidUTF8(line, "\ufffd")
	if len(line) <= maxLine {
		return line
	}
	return cutEnd(line, maxLine) + "…"
}

// notes says what came of it, and what was not searched.
func (s *searcher) notes(timedOut bool) {
	r := s.report
	if s.matches == 0 {
		r.say("No line matches in %d %s.\n", s.searched, plural(s.searched, "file"))
	}
	if s.full && s.matches == maxMatches {
		r.say("[there are more than %d matches; make the pattern, the path or the glob narrower]\n", maxMatches)
	} else if s.full {
		r.say("[stopped after %d MiB; make the path or the glob narrower]\n", maxTotal>>20)
	}
	if timedOut {
		r.say("[stopped after %v, with %d %s searched; make the path or the glob narrower]\n", searchTime, s.searched, plural(s.searched, "file"))
	}
	if s.long > 0 {
		r.say("[%d %s searched in the first %d KiB only]\n", s.long, plural(s.long, "line"), maxColumn>>10)
	}
	for _, skipped := range []struct {
		count int
		why   string
	}{{s.binary, "binary"}, {s.large, "larger than 8 MiB"}, {s.changed, "gone, changed or of a name that is not UTF-8"}} {
		if skipped.count > 0 {
			r.say("[%d %s not searched: %s]\n", skipped.count, plural(skipped.count, "file"), skipped.why)
		}
	}
}
