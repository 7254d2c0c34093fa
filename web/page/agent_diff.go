package page

import (
	"strings"

	"github.com/aymanbagabas/go-udiff"
	"github.com/go-faster/errors"
)

// diffRow is a line of a comparison of two texts.
type diffRow struct {
	// Kind is same, old, new, or fold for lines that are the same and left out.
	Kind string
	// Old and New are the line's numbers, 0 where it has none.
	Old, New int
	// Text is the line without its end.
	Text string
	// Open says that the text ends here without a line end.
	Open bool
	// Folded is how many lines a fold stands for.
	Folded int
}

// Sign is what stands before the line, so that its colour is not all that tells
// what became of it.
func (d diffRow) Sign() string {
	switch d.Kind {
	case "old":
		return "-"
	case "new":
		return "+"
	default:
		return ""
	}
}

// diffRows compares two texts, none when they are the same. Of lines that are
// the same, three around each change are left.
func diffRows(from, to string) ([]diffRow, error) {
	diff, err := udiff.ToUnifiedDiff("", "", from, udiff.Lines(from, to), udiff.DefaultContextLines)
	if err != nil {
		return nil, errors.Wrap(err, "compare")
	}
	var rows []diffRow
	oldLine, newLine := 1, 1
	fold := func(until int) {
		if n := until - oldLine; n > 0 {
			rows = append(rows, diffRow{Kind: "fold", Folded: n})
			oldLine, newLine = oldLine+n, newLine+n
		}
	}
	for _, hunk := range diff.Hunks {
		fold(hunk.FromLine)
		for _, line := range hunk.Lines {
			row := diffRow{Kind: "same", Text: strings.TrimRight(line.Content, "\r\n"), Open: !strings.HasSuffix(line.Content, "\n")}
			switch line.Kind {
			case udiff.Delete:
				row.Kind, row.Old = "old", oldLine
				oldLine++
			case udiff.Insert:
				row.Kind, row.New = "new", newLine
				newLine++
			default:
				row.Old, row.New = oldLine, newLine
				oldLine, newLine = oldLine+1, newLine+1
			}
			rows = append(rows, row)
		}
	}
	if len(rows) > 0 {
		fold(lineCount(from) + 1)
	}
	return rows, nil
}

// lineCount counts the lines of a text, the last one with or without its end.
func lineCount(text string) int {
	n := strings.Count(text, "\n")
	if text != "" && !strings.HasSuffix(text, "\n") {
		n++
	}
	return n
}
