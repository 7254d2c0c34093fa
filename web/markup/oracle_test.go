package markup_test

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/net/html"

	"agentrun/web/markup"
	"agentrun/web/markup/markuptest"
)

// allowed are the elements that a text may become, with their attributes. They
// are written again here, so that a slip in the policy shows.
var allowed = map[string][]string{
	"h3": nil, "h4": nil, "h5": nil, "h6": nil, "p": nil, "br": nil, "hr": nil, "em": nil, "strong": nil, "del": nil,
	"pre": nil, "code": {"class"}, "blockquote": nil, "ul": nil, "ol": {"start"}, "li": nil,
	"table": nil, "thead": nil, "tbody": nil, "tr": nil, "th": {"align"}, "td": {"align"},
	"a": {"href", "rel", "target"},
}

var values = map[string]*regexp.Regexp{
	"class":  regexp.MustCompile(`^language-[A-Za-z0-9_+.#-]+$`),
	"start":  regexp.MustCompile(`^[0-9]+$`),
	"align":  regexp.MustCompile(`^(left|center|right)$`), //nolint:misspell // HTML's spelling.
	"rel":    regexp.MustCompile(`^nofollow noreferrer( noopener)?$`),
	"target": regexp.MustCompile(`^_blank$`),
}

// violations parses a part of a page as a browser does and returns what must not
// be in it.
func violations(t *testing.T, page string) []string {
	t.Helper()
	const before, after = `<!DOCTYPE html><html><head></head><body><main id="page">`, `</main><footer id="end"></footer></body></html>`
	doc, err := html.Parse(strings.NewReader(before + page + after))
	if err != nil {
		return []string{"does not parse: " + err.Error()}
	}
	main := find(doc, "main")
	end := find(doc, "footer")
	if main == nil || end == nil || end.Parent != main.Parent || main.NextSibling != end || end.FirstChild != nil {
		return []string{"changes the page around it"}
	}
	var found []string
	for n := range main.Descendants() {
		switch n.Type {
		case html.TextNode:
			if hidden(n.Data) {
				found = append(found, "hidden character in the text")
			}
		case html.ElementNode:
			found = append(found, element(n)...)
		default:
			found = append(found, "a comment or a declaration")
		}
	}
	return found
}

func find(doc *html.Node, name string) *html.Node {
	for n := range doc.Descendants() {
		if n.Type == html.ElementNode && n.Data == name {
			return n
		}
	}
	return nil
}

func element(n *html.Node) []string {
	attributes, ok := allowed[n.Data]
	if !ok || n.Namespace != "" {
		return []string{"element " + n.Data}
	}
	var found []string
	for _, a := range n.Attr {
		switch {
		case a.Namespace != "" || !slices.Contains(attributes, a.Key):
			found = append(found, "attribute "+a.Key)
		case a.Key == "href":
			found = append(found, link(n, a.Val)...)
		case !values[a.Key].MatchString(a.Val):
			found = append(found, a.Key+" "+a.Val)
		}
	}
	return found
}

// link says what is wrong with a link.
func link(n *html.Node, href string) []string {
	u, err := url.Parse(href)
	web := err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != ""
	switch rel, target := attribute(n, "rel"), attribute(n, "target"); {
	case err != nil || hidden(href) || !strings.HasPrefix(href, u.Scheme+":"):
		return []string{"link " + href}
	case web && rel == "nofollow noreferrer noopener" && target == "_blank":
		return nil
	case u.Scheme == "mailto" && rel == "nofollow noreferrer" && target == "":
		return nil
	default:
		return []string{"link " + href + " " + rel + " " + target}
	}
}

func attribute(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key {
			return a.Val
		}
	}
	return ""
}

// hidden reports whether a text has characters that a reader cannot see or that
// change the order of others.
func hidden(text string) bool {
	return !utf8.ValidString(text) || strings.ContainsFunc(text, func(r rune) bool {
		return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 ||
			strings.ContainsRune("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", r)
	})
}

func TestPayloadsDoNothing(t *testing.T) {
	for _, p := range markuptest.Payloads {
		t.Run(p.Name, func(t *testing.T) {
			page := string(markup.Markdown(p.Text))
			if found := violations(t, page); found != nil {
				t.Errorf("%q\nbecame %s\nwith %q", p.Text, page, found)
			}
			shown := markup.Terminal(p.Text)
			if hidden(shown) {
				t.Errorf("%q is shown as %q", p.Text, shown)
			}
			if found := violations(t, "<pre>"+html.EscapeString(shown)+"</pre>"); found != nil {
				t.Errorf("%q\nis shown as %q\nwith %q", p.Text, shown, found)
			}
		})
	}
}

// The same check must see what the payloads do to a page that shows them as they
// are. The rest of them are Markdown, or meant for something other than a page.
func TestPayloadsAreSeenByTheCheck(t *testing.T) {
	seen := 0
	for _, p := range markuptest.Payloads {
		if violations(t, p.Text) != nil {
			seen++
		}
	}
	const least = 275
	if seen < least {
		t.Errorf("%d of %d payloads are seen when they are shown as they are, want %d", seen, len(markuptest.Payloads), least)
	}
}

func TestPayloadsAreWhatTheySay(t *testing.T) {
	if len(markuptest.Payloads) < 300 {
		t.Errorf("only %d payloads", len(markuptest.Payloads))
	}
	name := regexp.MustCompile(`^[a-z0-9-]{1,40}$`)
	names := map[string]bool{}
	for _, p := range markuptest.Payloads {
		if !name.MatchString(p.Name) || names[p.Name] {
			t.Errorf("name %q is no name or not the only one", p.Name)
		}
		names[p.Name] = true
		armed := strings.Contains(p.Text, "xss()") || strings.Contains(p.Text, "canary.invalid/"+p.Name) ||
			strings.Contains(p.Text, `href="`+markuptest.Canary)
		if !armed || strings.Contains(p.Text, "[canary]") {
			t.Errorf("%s does nothing: %q", p.Name, p.Text)
		}
	}
}

func FuzzMarkdown(f *testing.F) {
	for _, p := range markuptest.Payloads {
		f.Add(p.Text)
	}
	for _, tt := range pages {
		f.Add(tt.text)
	}
	for _, text := range nasty {
		f.Add(text(200))
	}
	f.Fuzz(func(t *testing.T, text string) {
		page := string(markup.Markdown(text))
		if found := violations(t, page); found != nil {
			t.Errorf("%q\nbecame %s\nwith %q", text, page, found)
		}
		if shown := markup.Terminal(text); hidden(shown) || markup.Terminal(shown) != shown {
			t.Errorf("%q is shown as %q", text, shown)
		}
	})
}
