package markup

import (
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/util"
)

// ranked gives a part of the library its place among those that could begin at the
// same character. The places are the library's own.
var ranked = util.Prioritized //nolint:misspell // The library's spelling.

// reader reads GitHub's Markdown without its HTML: a tag is text like any other.
var reader = parser.NewParser(
	parser.WithBlockParsers(
		ranked(shortSetext{parser.NewSetextHeadingParser()}, 100),
		ranked(parser.NewThematicBreakParser(), 200),
		ranked(shallow{parser.NewListParser()}, 300),
		ranked(parser.NewListItemParser(), 400),
		ranked(parser.NewCodeBlockParser(), 500),
		ranked(shortLine{parser.NewATXHeadingParser()}, 600),
		ranked(parser.NewFencedCodeBlockParser(), 700),
		ranked(shallow{parser.NewBlockquoteParser()}, 800),
		ranked(parser.NewParagraphParser(), 1000),
	),
	parser.WithInlineParsers(
		ranked(extension.NewTaskCheckBoxParser(), 0),
		ranked(parser.NewCodeSpanParser(), 100),
		ranked(parser.NewLinkParser(), 200),
		ranked(parser.NewAutoLinkParser(), 300),
		ranked(parser.NewEmphasisParser(), 500),
		ranked(extension.NewStrikethroughParser(), 500),
		ranked(extension.NewLinkifyParser(), 999),
	),
	parser.WithParagraphTransformers(
		ranked(parser.LinkReferenceParagraphTransformer, 100),
		ranked(fullTable{extension.NewTableParagraphTransformer()}, 200),
		ranked(shortParagraph{}, 300),
	),
	parser.WithASTTransformers(ranked(extension.NewTableASTTransformer(), 0)),
)

// writer writes what reader reads, once tame has seen it. An alignment is an
// attribute, since the application's pages allow no styles in them.
var writer = renderer.NewRenderer(renderer.WithNodeRenderers(
	ranked(extension.NewTableHTMLRenderer(
		extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute),
	), 500),
	ranked(extension.NewStrikethroughHTMLRenderer(), 500),
	ranked(html.NewRenderer(), 1000),
))
