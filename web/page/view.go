package page

import (
	"bytes"
	"compress/gzip"
	"context"
	"embed"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/web/asset"
	"agentrun/web/gen"
)

//go:embed all:template
var templateFiles embed.FS

// templates are the pages by their names, each parsed together with the layout
// and the parts that pages share (files whose names begin with an underscore).
type templates map[string]*template.Template

func parseTemplates() (templates, error) {
	shared, err := template.New("").Funcs(functions).ParseFS(templateFiles, "template/_*.html")
	if err != nil {
		return nil, err
	}
	files, err := fs.Glob(templateFiles, "template/[a-z]*.html")
	if err != nil {
		return nil, err
	}
	all := templates{}
	for _, file := range files {
		page, err := shared.Clone()
		if err != nil {
			return nil, err
		}
		if _, err = page.ParseFS(templateFiles, file); err != nil {
			return nil, err
		}
		all[strings.TrimSuffix(path.Base(file), ".html")] = page
	}
	return all, nil
}

// view is what every page knows besides its own data.
type view struct {
	// Account is who is signed in.
	Account gen.Account
	// Orgs are the organisations that the account sees, and Org the one that the
	// page is in; nil on pages that are in none.
	Orgs []gen.Org
	Org  *gen.Org
	// Section names the entry of the navigation that the page belongs to.
	Section string
	// Title is the page's own part of the title.
	Title string
	// Notice is what the request before this page did, told once.
	Notice string
	// BaseURL is the address of this server, for people to copy.
	BaseURL string
	// Version is which agentrun this is.
	Version string
	// Data is what the page's template shows.
	Data any
}

// SignedIn says whether there is an account; the pages before sign-in have none.
func (v *view) SignedIn() bool { return v.Account.Name != "" }

// Operator says whether the account is an operator's.
func (v *view) Operator() bool { return v.Account.Role == gen.RoleOperator }

// NavOrg is the organisation that the navigation leads into: that of the page,
// else the first one. Nil when there is none.
func (v *view) NavOrg() *gen.Org {
	if v.Org == nil && len(v.Orgs) > 0 {
		return &v.Orgs[0]
	}
	return v.Org
}

// OrgSection is the page that a change of the organisation leads to.
func (v *view) OrgSection() string {
	switch v.Section {
	case "agents", "models", "audit":
		return v.Section
	default:
		return "runs"
	}
}

// enter makes the page one of an organisation's.
func (v *view) enter(id uuid.UUID) {
	for i := range v.Orgs {
		if v.Orgs[i].ID == id {
			v.Org = &v.Orgs[i]
		}
	}
}

// handler answers a request of somebody who is signed in. An error that it
// returns before it wrote anything becomes an error page.
type handler func(w http.ResponseWriter, r *http.Request, v *view) error

// newView gathers what every page knows, for the actor of the context.
func (a *App) newView(ctx context.Context, r *http.Request) (*view, error) {
	account, err := a.api.GetAccount(ctx)
	if err != nil {
		return nil, err
	}
	orgs, err := a.api.ListOrgs(ctx)
	if err != nil {
		return nil, err
	}
	server, err := a.api.GetServer(ctx)
	if err != nil {
		return nil, err
	}
	return &view{Account: *account, Orgs: orgs, BaseURL: a.baseURL(r), Version: server.Version}, nil
}

// show answers with a page: the layout around the template of that name.
func (a *App) show(w http.ResponseWriter, r *http.Request, status int, name string, v *view) error {
	return a.execute(w, r, status, name, "layout", v)
}

// part answers with one block of a page's template, for htmx to put in place.
func (a *App) part(w http.ResponseWriter, r *http.Request, name, block string, data any) error {
	return a.execute(w, r, http.StatusOK, name, block, data)
}

func (a *App) execute(w http.ResponseWriter, r *http.Request, status int, name, block string, data any) error {
	page, ok := a.templates[name]
	if !ok {
		return errors.Errorf("no template %q", name)
	}
	var body bytes.Buffer
	if err := page.ExecuteTemplate(&body, block, data); err != nil {
		return err
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	// A browser that went away misses nothing of what is written.
	if !mayCompress(r) {
		w.WriteHeader(status)
		_, _ = body.WriteTo(w)
		return nil
	}
	w.Header().Set("Content-Encoding", "gzip")
	w.WriteHeader(status)
	compressed := gzip.NewWriter(w)
	_, _ = body.WriteTo(compressed)
	_ = compressed.Close()
	return nil
}

// mayCompress says whether the answer may be compressed. What another site made
// a browser ask for is not: its size would tell whether a text that the other
// site put into the address is on the page as well (the BREACH attack).
func mayCompress(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return asset.TakesGzip(r.Header)
	default:
		return false
	}
}

// baseURL is the address of this server as the reader of a page reaches it.
func (a *App) baseURL(r *http.Request) string {
	if a.cfg.BaseURL != "" {
		return strings.TrimSuffix(a.cfg.BaseURL, "/")
	}
	scheme := "http"
	if r.TLS != nil {
		scheme = "https"
	}
	return scheme + "://" + r.Host
}
