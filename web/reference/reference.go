// Package reference is the page about the contracts, /docs/api: Swagger UI, out
// of the binary, on the public contract and the management contract. Everything
// that the page loads or calls is on the server itself. It gets the contracts
// as bytes; it may not know what is in them, nor who may see them.
package reference

import (
	"bytes"
	_ "embed"
	"html/template"
	"net/http"

	"agentrun/web/asset"
)

var (
	//go:embed vendored/swagger-ui-dist/swagger-ui.css
	swaggerCSS []byte
	//go:embed vendored/swagger-ui-dist/swagger-ui-bundle.js
	swaggerJS []byte
	//go:embed vendored/swagger-ui-dist/LICENSE
	swaggerLicence []byte
	//go:embed vendored/swagger-ui-dist/NOTICE
	swaggerNotice []byte
	//go:embed vendored/swagger-ui-dist/swagger-ui-bundle.js.LICENSE.txt
	swaggerBundled []byte
	//go:embed reference.css
	ownCSS []byte
	//go:embed reference.js
	ownJS []byte
	//go:embed page.html
	pageHTML string
)

const (
	pagePath       = "/docs/api"
	publicPath     = pagePath + "/public.json"
	managementPath = pagePath + "/management.json"
)

// newFiles returns what the page loads. The licence and the notices are in the
// binary because they go wherever Swagger UI goes.
func newFiles() *asset.Set {
	return asset.NewSet(pagePath+"/", map[string][]byte{
		"swagger-ui.css":                   swaggerCSS,
		"swagger-ui-bundle.js":             swaggerJS,
		"LICENSE":                          swaggerLicence,
		"NOTICE":                           swaggerNotice,
		"swagger-ui-bundle.js.LICENSE.txt": swaggerBundled,
		"reference.css":                    ownCSS,
		"reference.js":                     ownJS,
	})
}

// contract is one of those that the page can show. The query of the page says
// which.
type contract struct {
	Title, Page, JSON string
	Current           bool
}

// New returns the page and all below it, GET /docs/api and GET /docs/api/…, for
// two contracts in JSON, which the handler keeps. The page's icon is one of the
// files that asset.Handler serves.
func New(public, management []byte) http.Handler {
	// Not before: every start of the binary would wait for it, also for a command.
	files := newFiles()
	page := template.Must(template.New("page").Funcs(template.FuncMap{"file": files.URL, "asset": asset.URL}).Parse(pageHTML))
	onPublic, onManagement := render(page, publicPath), render(page, managementPath)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+pagePath, func(w http.ResponseWriter, r *http.Request) {
		shown := onPublic
		if r.URL.Query().Get("contract") == "management" {
			shown = onManagement
		}
		answer(w, "text/html; charset=utf-8", shown)
	})
	mux.Handle("GET "+pagePath+"/{$}", http.RedirectHandler(pagePath, http.StatusPermanentRedirect))
	mux.HandleFunc("GET "+publicPath, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, "application/json", public)
	})
	mux.HandleFunc("GET "+managementPath, func(w http.ResponseWriter, _ *http.Request) {
		answer(w, "application/json", management)
	})
	mux.Handle("GET "+pagePath+"/{hash}/{name}", files)
	return mux
}

// render returns the page that shows the contract at this path.
func render(page *template.Template, shown string) []byte {
	var html bytes.Buffer
	err := page.Execute(&html, []contract{
		{Title: "Public API", Page: pagePath, JSON: publicPath, Current: shown == publicPath},
		{Title: "Management API", Page: pagePath + "?contract=management", JSON: managementPath, Current: shown == managementPath},
	})
	if err != nil {
		panic(err) // The template is part of the program, and so is what it is given.
	}
	return html.Bytes()
}

// policy lets the page use its own server and nothing else. Swagger UI sets
// styles on its elements, and its style sheet has images as data.
const policy = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

func answer(w http.ResponseWriter, contentType string, body []byte) {
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Content-Security-Policy", policy)
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("Cache-Control", "no-store")
	_, _ = w.Write(body) // The client may have left.
}
