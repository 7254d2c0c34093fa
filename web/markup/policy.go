package markup

import (
	"net/url"
	"regexp"

	"github.com/microcosm-cc/bluemonday"
)

// linkSchemes are the schemes of links, and what else holds for the URL. A
// browser takes http:/x for a path of the page that it is on.
var linkSchemes = map[string]func(u *url.URL) bool{
	"http":   func(u *url.URL) bool { return u.Host != "" && u.User == nil },
	"https":  func(u *url.URL) bool { return u.Host != "" && u.User == nil },
	"mailto": func(u *url.URL) bool { return u.Opaque != "" },
}

// policy is all the HTML that leaves the package, whatever made it. It is built
// from nothing, so that what a library calls safe plays no part.
var policy = newPolicy()

func newPolicy() *bluemonday.Policy {
	p := bluemonday.NewPolicy()
	p.AllowElements(
		"h3", "h4", "h5", "h6", "p", "br", "hr", "em", "strong", "del", "pre", "code", "blockquote",
		"ul", "ol", "li", "table", "thead", "tbody", "tr", "th", "td",
	)
	p.AllowAttrs("class").Matching(regexp.MustCompile(`^language-[A-Za-z0-9_+.#-]{1,40}$`)).OnElements("code")
	p.AllowAttrs("start").Matching(regexp.MustCompile(`^[0-9]{1,9}$`)).OnElements("ol")
	p.AllowAttrs("align").Matching(regexp.MustCompile(`^(left|center|right)$`)).OnElements("th", "td") //nolint:misspell // HTML's spelling.
	p.AllowAttrs("href").OnElements("a")
	p.RequireParseableURLs(true)
	p.AllowRelativeURLs(false)
	for scheme, allowed := range linkSchemes {
		p.AllowURLSchemeWithCustomPolicy(scheme, allowed)
	}
	p.RequireNoFollowOnLinks(true)
	p.RequireNoReferrerOnLinks(true)
	p.AddTargetBlankToFullyQualifiedLinks(true)
	return p
}
