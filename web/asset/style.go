package asset

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"strconv"
	"strings"
)

var (
	//go:embed app.css
	appCSS string
	//go:embed agent.css
	agentCSS string
	//go:embed run.css
	runCSS string
)

// styles are the style sheets of the application. They are in the pages
// themselves: whoever has a page has all that it takes to paint it.
var styles = map[string]string{"app.css": appCSS, "agent.css": agentCSS, "run.css": runCSS}

// Style is the element that a page holds for a style sheet. It panics when there
// is no such sheet.
func Style(name string) string {
	css, found := styles[name]
	if !found {
		panic("asset: no style sheet " + strconv.Quote(name))
	}
	return "<style>" + css + "</style>"
}

// StylePolicy are the sources of style-src in a Content Security Policy that
// allows these sheets and no other.
func StylePolicy() string {
	sources := make([]string, 0, len(styles))
	for _, name := range []string{"app.css", "agent.css", "run.css"} {
		sum := sha256.Sum256([]byte(styles[name]))
		sources = append(sources, "'sha256-"+base64.StdEncoding.EncodeToString(sum[:])+"'")
	}
	return strings.Join(sources, " ")
}
