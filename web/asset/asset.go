// Package asset is what browsers load besides pages: style sheets, scripts and
// icons, which are part of the binary. Every file has an address with a hash of
// its content in it, so that browsers keep it for good and never use an old
// one. It may not know pages, storage or sessions, and imports nothing of
// agentrun.
package asset

import (
	_ "embed"
	"net/http"
	"slices"
)

var (
	//go:embed agent.js
	agentJS []byte
	//go:embed app.js
	appJS []byte
	//go:embed run.js
	runJS []byte
	//go:embed icon.svg
	icon []byte
	//go:embed vendored/htmx.org/dist/htmx.min.js
	htmx []byte
	//go:embed vendored/htmx.org/dist/ext/hx-sse.min.js
	htmxSSE []byte
)

// app is what the pages of the application load. htmx and its extension are one
// file: htmx sets to work in a task of its own as soon as it has run, and what
// registers itself after that finds the page already seen through.
var app = NewSet("/static/", map[string][]byte{
	"agent.js": agentJS,
	"app.js":   appJS,
	"run.js":   runJS,
	"icon.svg": icon,
	"htmx.js":  slices.Concat(htmx, []byte("\n"), htmxSSE),
})

// Handler serves the files of the application, below /static/.
func Handler() http.Handler { return app }

// URL is the address of a file of the application, such as
// /static/0123456789abcdef/app.js for app.js. It panics when there is no such
// file.
func URL(name string) string { return app.URL(name) }

// Sizes are the compressed sizes of the application's files in bytes, by name.
func Sizes() map[string]int { return app.Sizes() }
