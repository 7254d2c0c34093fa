// Package markuptest gives tests of pages the hostile texts that a page has to
// bear. It is for tests only, and may not import the pages that it attacks.
package markuptest

import (
	"slices"
	"strings"
)

// Payload is a text that attacks the page on which it is shown.
type Payload struct {
	// Name is unique, short, and a part of a URL as it is.
	Name string
	// Text calls the JavaScript function xss, or makes a browser fetch a URL that
	// begins with Canary and ends with Name, on a page that shows it carelessly. A
	// few do neither and only deceive the reader.
	Text string
}

// Canary begins the URLs that no page may fetch, on a host that does not exist.
const Canary = "http://canary.invalid/"

// Payloads are all payloads. They are not to be changed.
var Payloads = build()

// build puts together the payloads; [canary] in a text becomes its URL.
func build() []Payload {
	all := slices.Concat(tags, attributes, fetches, links, breakouts, frameworks, characters)
	for i, p := range all {
		all[i].Text = strings.ReplaceAll(p.Text, "[canary]", Canary+p.Name)
	}
	return all
}
