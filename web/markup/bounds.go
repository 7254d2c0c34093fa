package markup

import (
	"bytes"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

// The parser takes time and memory that grow faster than the text, unless these
// are bounded. No text that is meant to be read comes near them.
const (
	// maxDepth is how many quotes and lists may stand in one another.
	maxDepth = 40
	// maxInline is how long a paragraph or a heading may be, in bytes. Links and
	// emphasis are looked for from each of its marks to its end.
	maxInline = 4 << 10
	// maxCellsPerBar is how many cells a table may have for each | in it: a short
	// row is filled up with empty cells.
	maxCellsPerBar = 3
	// maxEscapedBars is how many | of tables may be escaped in a text: each is
	// compared with all.
	maxEscapedBars = 500
)

// shallow opens no block below maxDepth others.
type shallow struct{ parser.BlockParser }

func (b shallow) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	if len(pc.OpenedBlocks()) >= maxDepth {
		return nil, parser.NoChildren
	}
	return b.BlockParser.Open(parent, reader, pc)
}

// shortLine opens no block in a line that is longer than maxInline.
type shortLine struct{ parser.BlockParser }

func (b shortLine) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	if line, _ := reader.PeekLine(); len(line) > maxInline {
		return nil, parser.NoChildren
	}
	return b.BlockParser.Open(parent, reader, pc)
}

// shortSetext makes no heading of a paragraph that is longer than maxInline.
type shortSetext struct{ parser.BlockParser }

func (b shortSetext) Open(parent ast.Node, reader text.Reader, pc parser.Context) (ast.Node, parser.State) {
	if last := pc.LastOpenedBlock().Node; last != nil && ast.IsParagraph(last) && span(last.Lines()) > maxInline {
		return nil, parser.NoChildren
	}
	return b.BlockParser.Open(parent, reader, pc)
}

// span returns the distance from the first to the last byte of lines.
func span(lines *text.Segments) int {
	if lines.Len() == 0 {
		return 0
	}
	return lines.At(lines.Len()-1).Stop - lines.At(0).Start
}

// shortParagraph shows a paragraph as it is that is longer than maxInline, as
// the output of a program often is.
type shortParagraph struct{}

func (shortParagraph) Transform(node *ast.Paragraph, _ text.Reader, _ parser.Context) {
	if span(node.Lines()) <= maxInline {
		return
	}
	block := ast.NewCodeBlock()
	block.SetLines(node.Lines())
	node.Parent().ReplaceChild(node.Parent(), node, block)
}

// fullTable makes a table of a paragraph whose rows have about as many cells as
// its first, and where no cell is longer than maxInline.
type fullTable struct{ parser.ParagraphTransformer }

var escapedBars = parser.NewContextKey()

func (t fullTable) Transform(node *ast.Paragraph, reader text.Reader, pc parser.Context) {
	rows, columns, bars := 0, 0, 0
	escaped, _ := pc.Get(escapedBars).(int)
	for _, segment := range node.Lines().Sliced(0, node.Lines().Len()) {
		line := segment.Value(reader.Source())
		if len(line) > maxInline {
			return
		}
		n := bytes.Count(line, []byte("|"))
		if bars += n; bars > 0 { // Before the first | is text.
			rows++
		}
		columns = max(columns, n+1)
		escaped += bytes.Count(line, []byte(`\|`))
	}
	if rows*columns > maxCellsPerBar*bars || escaped > maxEscapedBars {
		return
	}
	if t.ParagraphTransformer.Transform(node, reader, pc); node.Parent() == nil || node.NextSibling() != nil {
		pc.Set(escapedBars, escaped)
	}
}
