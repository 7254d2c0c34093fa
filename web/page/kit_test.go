package page

import (
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"agentrun/storage"
	"agentrun/storage/kv"
	"agentrun/storage/storagetest"
	"agentrun/storage/workspace"
	"agentrun/web"
	"agentrun/web/asset"
)

// site is the application on a server of its own, over a real store.
type site struct {
	t      *testing.T
	app    *App
	store  *storage.Store
	spaces *workspace.Store
	server *httptest.Server
	file   string
	// ahead is how far the clock of the store and of sign-in is before the real one.
	ahead atomic.Int64
}

const (
	testEmail    = "ada@example.org"
	testPassword = "correct horse battery"
	testToken    = "let-me-in"
)

// newSite serves the pages; change may adapt the configuration first. Nobody is
// signed in, and there is no user.
func newSite(t *testing.T, change ...func(*Config)) *site {
	t.Helper()
	return newSiteOver(t, func(db kv.DB) kv.DB { return db }, change...)
}

// newSiteOver is newSite with something between the store and its file.
func newSiteOver(t *testing.T, wrap func(kv.DB) kv.DB, change ...func(*Config)) *site {
	t.Helper()
	s := &site{t: t, file: filepath.Join(t.TempDir(), "agentrun.db")}
	now := func() time.Time { return time.Now().Add(time.Duration(s.ahead.Load())) }
	s.store = storagetest.OpenWrapped(t, s.file, storage.Options{Now: now}, wrap)
	s.spaces = storagetest.Workspaces(t)
	api := web.NewManagement(web.Config{Store: s.store, Workspaces: s.spaces, Version: "1.2.3", Offline: true, Providers: []web.Provider{
		{Name: "script", Dialect: "script"}, {Name: "anthropic", Dialect: "anthropic", BaseURL: "https://api.anthropic.com"},
	}})
	cfg := Config{API: api, Store: s.store, SetupToken: testToken}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	if s.app, err = newApp(cfg); err != nil {
		t.Fatal(err)
	}
	s.app.slow, s.app.endWait = newSlowDown(now), 0
	mux := http.NewServeMux()
	mux.Handle("/static/", asset.Handler())
	mux.HandleFunc("/v1/", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, `{"error":"of the API"}`)
	})
	s.server = httptest.NewServer(s.app.protect(mux))
	t.Cleanup(s.server.Close)
	return s
}

// contents are the bytes of the store, summed up.
func (s *site) contents() [sha256.Size]byte {
	s.t.Helper()
	bytes, err := os.ReadFile(s.file)
	if err != nil {
		s.t.Fatal(err)
	}
	return sha256.Sum256(bytes)
}

// forward moves the clock of the store and of sign-in.
func (s *site) forward(d time.Duration) { s.ahead.Add(int64(d)) }

// mustUser makes a user with testPassword: an operator when org is empty, else a
// member of the organisation.
func (s *site) mustUser(email, org string) storage.User {
	s.t.Helper()
	role := storage.MemberRole
	if org == "" {
		role = storage.OperatorRole
	}
	user, err := s.store.CreateUser(s.t.Context(), storage.NewUser{Email: email, Password: testPassword, Role: role, Org: org})
	if err != nil {
		s.t.Fatal(err)
	}
	return user
}

// visitor is somebody who looks at the site: it keeps cookies, says where a form
// came from, and follows no redirect by itself.
type visitor struct {
	site   *site
	client *http.Client
}

func (s *site) newBrowser() *visitor {
	s.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return &visitor{s, &http.Client{
		Jar: jar, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// operator is a browser at which an operator is signed in, who is made for it.
func (s *site) operator() *visitor {
	s.t.Helper()
	s.mustUser(testEmail, "")
	return s.signedIn(testEmail)
}

// signedIn is a browser at which the user is signed in.
func (s *site) signedIn(email string) *visitor {
	s.t.Helper()
	b := s.newBrowser()
	if got := b.post("/sign-in", "email", email, "password", testPassword); got.StatusCode != http.StatusSeeOther {
		s.t.Fatalf("sign-in: status %d\n%s", got.StatusCode, got.body)
	}
	return b
}

// page is an answer with its body.
type page struct {
	*http.Response
	body string
}

func (b *visitor) do(req *http.Request) page {
	b.site.t.Helper()
	res, err := b.client.Do(req)
	if err != nil {
		b.site.t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		b.site.t.Fatal(err)
	}
	return page{res, string(body)}
}

// request is one that the browser would send from a page of the site itself.
func (b *visitor) request(method, path string, form ...string) *http.Request {
	b.site.t.Helper()
	values := url.Values{}
	for i := 0; i < len(form); i += 2 {
		values.Add(form[i], form[i+1])
	}
	req, err := http.NewRequestWithContext(b.site.t.Context(), method, b.site.server.URL+path, strings.NewReader(values.Encode()))
	if err != nil {
		b.site.t.Fatal(err)
	}
	req.Header.Set("Accept", "text/html,application/xhtml+xml")
	if method != http.MethodGet {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		req.Header.Set("Origin", b.site.server.URL)
		req.Header.Set("Sec-Fetch-Site", "same-origin")
	}
	return req
}

func (b *visitor) get(path string) page {
	b.site.t.Helper()
	return b.do(b.request(http.MethodGet, path))
}

func (b *visitor) post(path string, form ...string) page {
	b.site.t.Helper()
	return b.do(b.request(http.MethodPost, path, form...))
}

// cookie is the value of one of the browser's cookies; empty when there is none.
func (b *visitor) cookie(name string) string {
	b.site.t.Helper()
	address, err := url.Parse(b.site.server.URL)
	if err != nil {
		b.site.t.Fatal(err)
	}
	for _, cookie := range b.client.Jar.Cookies(address) {
		if cookie.Name == name {
			return cookie.Value
		}
	}
	return ""
}

// want fails the test unless the page has this status and these texts.
func (p page) want(t *testing.T, status int, texts ...string) {
	t.Helper()
	if p.StatusCode != status {
		t.Errorf("%s %s: status %d, want %d\n%s", p.Request.Method, p.Request.URL.Path, p.StatusCode, status, p.body)
	}
	for _, text := range texts {
		if !strings.Contains(p.body, text) {
			t.Errorf("%s %s has no %q:\n%s", p.Request.Method, p.Request.URL.Path, text, p.body)
		}
	}
}

// wantRedirect fails the test unless the answer leads to this path.
func (p page) wantRedirect(t *testing.T, target string) {
	t.Helper()
	if got := p.Header.Get("Location"); p.StatusCode != http.StatusSeeOther || got != target {
		t.Errorf("%s %s: status %d to %q, want %q\n%s", p.Request.Method, p.Request.URL.Path, p.StatusCode, got, target, p.body)
	}
}

// sortedTail sorts all but the first.
func sortedTail(list []string) []string {
	slices.Sort(list[1:])
	return list
}
