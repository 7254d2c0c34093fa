package page

import (
	"strings"
	"testing"
	"unicode"

	"golang.org/x/net/html"

	"agentrun/web/asset"
)

// harmless fails the test when a page has anything that a stranger's text could
// have put there: a script or style of its own, a handler, a form or a frame,
// an address that runs something or is of another host.
func harmless(t *testing.T, body string) {
	t.Helper()
	if at := danger(body); at != "" {
		t.Errorf("the page has %s", at)
	}
}

// danger returns the first of that, empty when there is none.
func danger(body string) string {
	// Each of our own style sheets may be there once.
	for _, sheet := range []string{"app.css", "run.css", "agent.css"} {
		body = strings.Replace(body, asset.Style(sheet), "", 1)
	}
	tags := html.NewTokenizer(strings.NewReader(body))
	for {
		switch tags.Next() {
		case html.ErrorToken:
			return ""
		case html.StartTagToken, html.SelfClosingTagToken:
			token := tags.Token()
			if dangerousTag(token) {
				return token.String()
			}
		}
	}
}

func dangerousTag(tag html.Token) bool {
	attributes := map[string]string{}
	for _, a := range tag.Attr {
		attributes[a.Key] = a.Val
		if strings.HasPrefix(a.Key, "on") || a.Key == "style" || a.Key == "srcdoc" || strings.HasPrefix(a.Key, "hx-on") {
			return true
		}
	}
	switch tag.Data {
	case "script":
		return !strings.HasPrefix(attributes["src"], "/static/")
	case "link":
		return !strings.HasPrefix(attributes["href"], "/static/")
	case "form":
		return !strings.HasPrefix(attributes["action"], "/")
	case "a":
		href, _, _ := strings.Cut(attributes["href"], ":")
		return strings.Contains(attributes["href"], ":") && href != "http" && href != "https" && href != "mailto" && !strings.HasPrefix(href, "/")
	case "img", "iframe", "object", "embed", "base", "style", "audio", "video", "math", "marquee", "image", "frame":
		return true
	}
	return false
}

// printable is what a name can have of a text.
func printable(r rune) rune {
	if unicode.IsPrint(r) {
		return r
	}
	return -1
}

func TestHarmless(t *testing.T) {
	for _, bad := range []string{
		"<script>xss()</script>", "<img src=x>", "<p onclick=xss()>", "<p style='x'>", "<a href='javascript:xss()'>", "<form action='//x.invalid'><iframe>",
		"<pre>x</pre><script src=//x.invalid></script>",
	} {
		if danger(bad) == "" {
			t.Errorf("%s is not found", bad)
		}
	}
	if at := danger(`<script src="/static/1/app.js" defer></script><a href="/runs/1?x=a:b">a</a><form action="/x">&lt;script&gt;</form>`); at != "" {
		t.Errorf("%s is found", at)
	}
}
