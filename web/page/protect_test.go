package page

import (
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentrun/storage"
	"agentrun/storage/storagetest"
	"agentrun/web/asset"
)

// nobody is an ID of nothing.
const nobody = "018f0000-0000-7000-8000-000000000000"

// mustIDs makes one of each thing that pages are about, and returns their IDs
// by the names that paths have for them.
func (s *site) mustIDs() map[string]string {
	s.t.Helper()
	agent := storagetest.MustApply(s.t, s.store, storage.DefaultOrg, storagetest.EchoFile)
	key, _ := storagetest.MustKey(s.t, s.store, agent)
	run := storagetest.MustRun(s.t, s.store, storagetest.MustCaller(s.t, s.store, agent), "hello")
	user := s.mustUser("somebody@example.org", storage.DefaultOrg)
	return map[string]string{
		"{org}": agent.OrgID.String(), "{agent}": agent.ID.String(), "{key}": key.ID.String(), "{run}": run.ID.String(),
		"{user}": user.ID.String(), "{revision}": "1", "{$}": "",
	}
}

// filled is a pattern's method, and its path with these IDs in place of names.
func (r route) filled(ids map[string]string) (method, path string) {
	method, path, _ = strings.Cut(r.pattern, " ")
	parts := strings.Split(path, "/")
	for i, part := range parts {
		if strings.HasPrefix(part, "{") {
			id, known := ids[part]
			// What is live does not end by itself.
			if !known || strings.HasSuffix(path, "/live") {
				id = nobody
			}
			parts[i] = id
		}
	}
	return method, strings.Join(parts, "/")
}

func TestFormsOfOtherSitesAreRefused(t *testing.T) {
	s := newSite(t)
	user, ids := s.operator(), s.mustIDs()
	stranger := s.newBrowser()
	set := func(pairs ...string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Del("Origin")
			r.Header.Del("Sec-Fetch-Site")
			for i := 0; i < len(pairs); i += 2 {
				r.Header.Set(pairs[i], pairs[i+1])
			}
		}
	}
	otherPort := strings.Replace(s.server.URL, "127.0.0.1:", "127.0.0.1:1", 1)
	attacks := map[string]struct {
		by     *visitor
		change func(*http.Request)
	}{
		"another site":                     {user, set("Sec-Fetch-Site", "cross-site", "Origin", "https://evil.example")},
		"another site, with our origin":    {user, set("Sec-Fetch-Site", "cross-site", "Origin", s.server.URL)},
		"another host of the site":         {user, set("Sec-Fetch-Site", "same-site", "Origin", "http://other.example.org")},
		"something unknown":                {user, set("Sec-Fetch-Site", "elsewhere")},
		"an old browser, another site":     {user, set("Origin", "https://evil.example")},
		"an old browser, no origin":        {user, set("Origin", "null")},
		"an old browser, another port":     {user, set("Origin", otherPort)},
		"an old browser, a longer name":    {user, set("Origin", s.server.URL+".evil.example")},
		"no browser, not signed in":        {stranger, set()},
		"another site, a method in a head": {user, set("Sec-Fetch-Site", "cross-site", "X-HTTP-Method-Override", "GET", "X-Method-Override", "GET")},
		"another site, not signed in":      {stranger, set("Sec-Fetch-Site", "cross-site")},
	}
	posts := 0
	for _, r := range s.app.routes {
		method, path := r.filled(ids)
		if method == http.MethodGet {
			continue
		}
		posts++
		for name, attack := range attacks {
			req := attack.by.request(method, path, "_method", "GET")
			attack.change(req)
			if got := attack.by.do(req); got.StatusCode != http.StatusForbidden || !strings.Contains(got.body, "nothing was done") {
				t.Errorf("%s from %s: status %d", r.pattern, name, got.StatusCode)
			}
		}
		req := user.request(method, path)
		req.Header.Set("Content-Type", "text/plain")
		if got := user.do(req); got.StatusCode != http.StatusUnsupportedMediaType {
			t.Errorf("%s with another type: status %d", r.pattern, got.StatusCode)
		}
	}
	if posts < 10 {
		t.Errorf("only %d routes that change something", posts)
	}
	// The positive control: the same forms from our own pages do something.
	for name, change := range map[string]func(*http.Request){
		"this site":                  set("Sec-Fetch-Site", "same-origin", "Origin", s.server.URL),
		"an old browser, this site":  set("Origin", s.server.URL),
		"no browser, with a session": set(),
	} {
		req := user.request(http.MethodPost, "/orgs", "name", name)
		change(req)
		user.do(req).wantRedirect(t, "/orgs")
	}
	// A method that is overridden is not: this is a GET, which makes nothing.
	req := user.request(http.MethodGet, "/orgs?_method=POST&name=overridden")
	req.Header.Set("X-HTTP-Method-Override", http.MethodPost)
	if got := user.do(req); got.StatusCode != http.StatusOK || strings.Contains(got.body, "overridden") {
		t.Errorf("an overridden method: status %d\n%s", got.StatusCode, got.body)
	}
	t.Logf("%d routes × %d attacks: %[3]d injected, %[3]d survived", posts, len(attacks), posts*len(attacks))
}

func TestPagesNeedASession(t *testing.T) {
	s := newSite(t)
	ids := s.mustIDs()
	b := s.newBrowser()
	for _, r := range s.app.routes {
		if r.open {
			continue
		}
		method, path := r.filled(ids)
		got := b.do(b.request(method, path))
		if got.StatusCode != http.StatusSeeOther || !strings.HasPrefix(got.Header.Get("Location"), "/sign-in") {
			t.Errorf("%s of a stranger: status %d to %q", r.pattern, got.StatusCode, got.Header.Get("Location"))
		}
	}
	var open []string
	for _, r := range s.app.routes {
		if r.open {
			open = append(open, r.pattern)
		}
	}
	if diff := cmp.Diff([]string{"GET /setup", "POST /setup", "GET /sign-in", "POST /sign-in"}, open); diff != "" {
		t.Errorf("pages for everybody (-want +got):\n%s", diff)
	}
}

func TestEveryAnswerHasTheHeaders(t *testing.T) {
	want := map[string]string{
		"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src " + asset.StylePolicy() + "; img-src 'self'; connect-src 'self'; " +
			"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "same-origin", "Cache-Control": "no-store",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin",
		"Permissions-Policy": "camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()",
	}
	s := newSite(t)
	operator, stranger, ids := s.operator(), s.newBrowser(), s.mustIDs()
	checked := 0
	check := func(by string, got page) {
		t.Helper()
		checked++
		for name, value := range want {
			have := got.Header.Get(name)
			// What an agent made is downloaded with a policy of its own, which allows less.
			if name == "Content-Security-Policy" && have == "default-src 'none'; sandbox" {
				continue
			}
			if have != value {
				t.Errorf("%s %s, %s (status %d): %s is %q", got.Request.Method, got.Request.URL.Path, by, got.StatusCode, name, have)
			}
		}
		if got.StatusCode >= http.StatusInternalServerError {
			t.Errorf("%s %s, %s: status %d\n%s", got.Request.Method, got.Request.URL.Path, by, got.StatusCode, got.body)
		}
	}
	for _, r := range s.app.routes {
		method, path := r.filled(ids)
		check("stranger", stranger.do(stranger.request(method, path)))
		if path == "/sign-out" {
			continue
		}
		check("operator", operator.do(operator.request(method, path)))
		foreign := operator.request(method, path)
		foreign.Host = "evil.example"
		check("another name", operator.do(foreign))
	}
	check("no such method", operator.do(operator.request(http.MethodDelete, "/sign-in")))
	check("no such page", operator.get("/nothing/here"))
	t.Logf("%d answers of %d routes", checked, len(s.app.routes))
}

func TestNamesOfTheServer(t *testing.T) {
	s := newSite(t, func(c *Config) {
		c.BaseURL = "https://Agents.example.org:8443/"
		c.Hosts = []string{"agentrun", "ci.example.org"}
	})
	b := s.newBrowser()
	for host, allowed := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:8080": true, "192.0.2.7:80": true, "[::1]:8080": true, "[::1]": true, "[fe80::1%25eth0]:80": true,
		"localhost": true, "LocalHost:8080": true, "localhost.": false, "localhost.evil.example": false,
		"agents.example.org": true, "AGENTS.example.org:1": true, "agentrun:8080": true, "ci.example.org": true,
		"evil.example": false, "evil.example:8080": false, "agents.example.org.evil.example": false, "xagents.example.org": false,
		"127.0.0.1.nip.io": false, "127.0.0.1.evil.example:8080": false, "0x7f.1": false, "example.org": false, "app.localhost": false,
	} {
		for _, method := range []string{http.MethodGet, http.MethodPost} {
			req := b.request(method, "/sign-in")
			req.Host = host
			req.Header.Set("Origin", "http://"+host)
			got := b.do(req)
			if refused := got.StatusCode == http.StatusMisdirectedRequest; refused == allowed {
				t.Errorf("%s for %s: status %d", method, host, got.StatusCode)
			} else if refused && !strings.Contains(got.body, "--base-url") {
				t.Errorf("%s for %s does not say what to do:\n%s", method, host, got.body)
			}
		}
	}
}

func TestOtherPathsAreLeftAlone(t *testing.T) {
	s := newSite(t)
	b := s.newBrowser()
	for _, path := range []string{"/v1/agents", "/v1/"} {
		req := b.request(http.MethodGet, path)
		req.Host = "evil.example"
		got := b.do(req)
		got.want(t, http.StatusNotFound, `{"error":"of the API"}`)
		have := slices.Sorted(maps.Keys(got.Header))
		if diff := cmp.Diff([]string{"Content-Length", "Content-Type", "Date"}, have); diff != "" {
			t.Errorf("%s: headers (-want +got):\n%s", path, diff)
		}
	}
	cross := b.request(http.MethodPost, "/v1/agents")
	cross.Header.Set("Sec-Fetch-Site", "cross-site")
	cross.Header.Set("Content-Type", "application/json")
	b.do(cross).want(t, http.StatusNotFound, `{"error":"of the API"}`)

	b.get("/nothing").want(t, http.StatusNotFound, "There is nothing at this address.", "<h1>")
	program := b.request(http.MethodGet, "/nothing")
	program.Header.Set("Accept", "*/*")
	if got := b.do(program); got.StatusCode != http.StatusNotFound || strings.Contains(got.body, "<h1>") {
		t.Errorf("a program is told: %d\n%s", got.StatusCode, got.body)
	}
	if got := b.do(b.request(http.MethodDelete, "/account")); got.StatusCode != http.StatusForbidden && got.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("DELETE of a page: status %d", got.StatusCode)
	}
	b.get("/static/0000000000000000/app.js").want(t, http.StatusNotFound, "<h1>")
}

func TestFormsAreBounded(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	b.post("/orgs", "name", strings.Repeat("x", maxForm)).want(t, http.StatusRequestEntityTooLarge, "2 MiB")
	req := b.request(http.MethodPost, "/orgs")
	req.Body, req.ContentLength = io.NopCloser(strings.NewReader("name=%zz")), -1
	b.do(req).want(t, http.StatusBadRequest, "cannot be read")
	b.post("/orgs", "name", strings.Repeat("x", 201)).want(t, http.StatusUnprocessableEntity, `aria-invalid="true"`, "1 to 200 characters")
}

// Only a POST may change the store: a GET is what links, images and crawlers do.
func TestNoGetWritesTheStore(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	ids := s.mustIDs()
	before := s.contents()
	if again := s.contents(); again != before {
		t.Fatal("the store changes by itself")
	}
	for _, r := range s.app.routes {
		method, path := r.filled(ids)
		if method != http.MethodGet {
			continue
		}
		if b.do(b.request(method, path)); s.contents() != before {
			t.Fatalf("%s changed the store", r.pattern)
		}
	}
	if s.contents() != before {
		t.Error("a GET changed the store")
	}
	// The positive control.
	b.post("/orgs", "name", "another").wantRedirect(t, "/orgs")
	if s.contents() == before {
		t.Error("a POST did not change the store")
	}
}
