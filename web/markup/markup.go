// Package markup makes HTML for the application's pages from text that an agent
// or a stranger wrote, all of it hostile. What it returns runs nothing, fetches
// nothing by itself and holds no form, no style and no name that a page could
// mistake for its own. It may not read anything but the text, nor know what the
// text is about, and imports nothing of agentrun.
package markup

import (
	"bytes"
	"html"
	"html/template"
	"strings"

	"github.com/yuin/goldmark/text"
)

// MaxMarkdown bounds the text that is read as Markdown, in bytes: what takes the
// parser the longest takes it less than a second at this size.
const MaxMarkdown = 128 << 10

// Markdown shows a text written in GitHub's Markdown. Tags in it are shown as
// text, images as links to them, and links lead out of the application in a new
// tab or are no links. Headings begin at h3. Characters that would not show, or
// turn the order of others around, are treated as Terminal does. A text of more
// than MaxMarkdown bytes, and one whose links would outgrow it by far, is shown
// as it is, in a <pre>.
func Markdown(source string) template.HTML {
	source = Terminal(source)
	if len(source) > MaxMarkdown {
		return preformatted(source)
	}
	raw := []byte(source)
	doc := reader.Parse(text.NewReader(raw))
	if !tame(doc, raw) {
		return preformatted(source)
	}
	var page bytes.Buffer
	if err := writer.Render(&page, raw, doc); err != nil {
		return preformatted(source)
	}
	// After the policy, which makes characters out of what was written as &#x202e;.
	safe := strings.Map(visible, policy.Sanitize(page.String())) //nolint:misspell // The library's spelling.
	return template.HTML(safe)                                   //nolint:gosec // This is what the package is for: policy let it pass.
}

// preformatted shows a text as it is. The first \n of a <pre> is no part of it.
func preformatted(source string) template.HTML {
	return template.HTML("<pre>\n" + html.EscapeString(source) + "</pre>") //nolint:gosec // Nothing of it is a tag.
}
