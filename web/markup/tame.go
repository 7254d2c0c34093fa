package markup

import (
	"net/url"

	"github.com/yuin/goldmark/ast"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/util"
)

const (
	// firstHeading is the level of the highest heading: those above it are the
	// page's own.
	firstHeading = 3
	// maxURL bounds a link, in bytes; it is more than what people pass around.
	maxURL = 2 << 10
	// maxURLs bounds the links of a text together, in bytes: one that is written
	// once may be referred to from everywhere.
	maxURLs = 4 * MaxMarkdown
)

// tame replaces what may not be shown in a document with what may. It reports
// whether the document's links are within maxURLs.
func tame(doc ast.Node, source []byte) bool {
	t := &tamer{source: source}
	t.children(doc, false)
	return t.urls <= maxURLs
}

type tamer struct {
	source []byte
	// urls is the length of the links so far.
	urls int
}

// children tames what is below a node; linked is true inside a link.
func (t *tamer) children(parent ast.Node, linked bool) {
	var next ast.Node
	for n := parent.FirstChild(); n != nil; n = next {
		next = n.NextSibling() // Before n is replaced.
		switch n := n.(type) {
		case *ast.Heading:
			n.Level = min(n.Level+firstHeading-1, 6)
			t.children(n, linked)
		case *ast.Link:
			t.link(n, n.Destination, linked)
		case *ast.Image:
			if !n.HasChildren() {
				n.AppendChild(n, literal(n.Destination))
			}
			t.link(n, n.Destination, linked)
		case *ast.AutoLink:
			target := util.URLEscape(n.URL(t.source), false)
			if n.AutoLinkType == ast.AutoLinkEmail {
				target = append([]byte("mailto:"), target...)
			}
			if linked || !t.leadsOut(target) {
				parent.ReplaceChild(parent, n, literal(n.Label(t.source)))
			}
		case *extast.TaskCheckBox:
			box := "☐ "
			if n.IsChecked {
				box = "☑ "
			}
			parent.ReplaceChild(parent, n, literal([]byte(box)))
		default:
			t.children(n, linked)
		}
	}
}

// link makes a plain link of a link or an image. Its text alone is left when it
// leads nowhere or stands in another.
func (t *tamer) link(n ast.Node, destination []byte, linked bool) {
	follow := !linked && t.leadsOut(util.URLEscape(destination, true))
	t.children(n, linked || follow)
	parent := n.Parent()
	if follow {
		link := ast.NewLink()
		link.Destination = destination
		for child := n.FirstChild(); child != nil; child = n.FirstChild() {
			link.AppendChild(link, child)
		}
		parent.ReplaceChild(parent, n, link)
		return
	}
	for child := n.FirstChild(); child != nil; child = n.FirstChild() {
		parent.InsertBefore(parent, n, child)
	}
	parent.RemoveChild(parent, n)
}

// leadsOut reports whether a URL, as a page would have it, may be a link.
func (t *tamer) leadsOut(target []byte) bool {
	if t.urls += len(target); len(target) > maxURL {
		return false
	}
	u, err := url.Parse(string(target))
	if err != nil {
		return false
	}
	allowed := linkSchemes[u.Scheme]
	return allowed != nil && allowed(u)
}

// literal is a text in which nothing has a meaning.
func literal(text []byte) *ast.String {
	s := ast.NewString(text)
	s.SetRaw(true)
	return s
}
