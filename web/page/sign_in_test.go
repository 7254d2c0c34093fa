package page

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"agentrun/storage"
)

const sessionCookie = "agentrun"

func TestSignInAndOut(t *testing.T) {
	s := newSite(t)
	s.mustUser(testEmail, "")
	b := s.newBrowser()
	b.get("/").wantRedirect(t, "/sign-in")
	b.get("/account?x=1").wantRedirect(t, "/sign-in?next=%2Faccount%3Fx%3D1")
	b.get("/sign-in?next=%2Faccount%3Fx%3D1").want(t, http.StatusOK, `value="/account?x=1"`)
	b.post("/sign-in", "email", " ADA@example.org", "password", testPassword, "next", "/account?x=1").wantRedirect(t, "/account?x=1")
	b.get("/account").want(t, http.StatusOK, testEmail, "<h1>Account</h1>")
	b.get("/sign-in").wantRedirect(t, "/")

	stolen := b.cookie(sessionCookie)
	b.post("/sign-out").wantRedirect(t, "/sign-in")
	b.get("/sign-in").want(t, http.StatusOK, "You are signed out.")
	if got := b.get("/sign-in"); strings.Contains(got.body, "signed out") {
		t.Error("the notice is told twice")
	}
	if got := b.cookie(sessionCookie); got != "" {
		t.Errorf("after sign-out the cookie is %q", got)
	}
	req := b.request(http.MethodGet, "/account")
	req.AddCookie(&http.Cookie{Name: sessionCookie, Value: stolen})
	b.do(req).wantRedirect(t, "/sign-in?next=%2Faccount")
}

func TestSignInIsRefusedAlike(t *testing.T) {
	s := newSite(t)
	s.mustUser(testEmail, "")
	disabled := s.mustUser("off@example.org", "default")
	yes := true
	if _, err := s.store.ChangeUser(t.Context(), disabled.ID.String(), storage.UserChange{Disabled: &yes}); err != nil {
		t.Fatal(err)
	}
	b := s.newBrowser()
	var told []string
	for _, form := range [][2]string{
		{testEmail, "wrong password"}, {"nobody@example.org", testPassword}, {"off@example.org", testPassword}, {testEmail, ""}, {"", ""},
	} {
		got := b.post("/sign-in", "email", form[0], "password", form[1])
		got.want(t, http.StatusForbidden, "do not go together")
		if b.cookie(sessionCookie) != "" {
			t.Errorf("%v has a session", form)
		}
		_, alert, _ := strings.Cut(got.body, `role="alert"`)
		alert, _, _ = strings.Cut(alert, "</div>")
		told = append(told, alert)
	}
	for _, text := range told {
		if text != told[0] {
			t.Errorf("what is told differs: %q and %q", text, told[0])
		}
	}
}

func TestATokenFromElsewhereIsNotAdopted(t *testing.T) {
	s := newSite(t)
	s.mustUser(testEmail, "")
	b := s.newBrowser()
	address, _ := url.Parse(s.server.URL)
	const planted = "planted-by-somebody-else"
	b.client.Jar.SetCookies(address, []*http.Cookie{{Name: sessionCookie, Value: planted, Path: "/"}})
	b.post("/sign-in", "email", testEmail, "password", testPassword).wantRedirect(t, "/")
	first := b.cookie(sessionCookie)
	if first == planted || first == "" {
		t.Fatalf("the session's token is %q", first)
	}
	// Also one's own token changes, and the one before is worth nothing.
	b.post("/sign-in", "email", testEmail, "password", testPassword).wantRedirect(t, "/")
	if second := b.cookie(sessionCookie); second == first {
		t.Error("a sign-in kept the token")
	}
	for _, token := range []string{planted, first} {
		other := s.newBrowser()
		req := other.request(http.MethodGet, "/account")
		req.AddCookie(&http.Cookie{Name: sessionCookie, Value: token})
		other.do(req).wantRedirect(t, "/sign-in?next=%2Faccount")
	}
	b.get("/account").want(t, http.StatusOK)
}

func TestSessionsEnd(t *testing.T) {
	yes, password := true, "another horse battery"
	for name, end := range map[string]func(*site, storage.User) error{
		"by themselves after a week": func(s *site, _ storage.User) error {
			s.forward(sessionTime + time.Minute)
			return nil
		},
		"when the user is disabled": func(s *site, u storage.User) error {
			_, err := s.store.ChangeUser(s.t.Context(), u.ID.String(), storage.UserChange{Disabled: &yes})
			return err
		},
		"when the user has a new password": func(s *site, u storage.User) error {
			_, err := s.store.ChangeUser(s.t.Context(), u.ID.String(), storage.UserChange{Password: &password})
			return err
		},
		"when the user is deleted": func(s *site, u storage.User) error {
			_, err := s.store.DeleteUser(s.t.Context(), u.ID.String())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			s.mustUser(testEmail, "")
			user := s.mustUser("bob@example.org", "default")
			b := s.signedIn(user.Email)
			s.forward(sessionTime - time.Hour)
			b.get("/account").want(t, http.StatusOK)
			if err := end(s, user); err != nil {
				t.Fatal(err)
			}
			b.get("/account").wantRedirect(t, "/sign-in?next=%2Faccount")
			part := b.request(http.MethodGet, "/account")
			part.Header.Set("HX-Request", "true")
			part.Header.Set("HX-Current-URL", s.server.URL+"/users?x=1")
			if got := b.do(part); got.StatusCode != http.StatusUnauthorized || got.Header.Get("HX-Redirect") != "/sign-in?next=%2Fusers%3Fx%3D1" {
				t.Errorf("htmx is told %d, %q", got.StatusCode, got.Header.Get("HX-Redirect"))
			}
		})
	}
}

func TestCookies(t *testing.T) {
	for base, want := range map[string]string{
		"":                            "agentrun=; HttpOnly; Path=/; SameSite=Lax",
		"http://agents.example.org":   "agentrun=; HttpOnly; Path=/; SameSite=Lax",
		"https://agents.example.org/": "__Host-agentrun=; HttpOnly; Path=/; SameSite=Lax; Secure",
	} {
		s := newSite(t, func(c *Config) { c.BaseURL = base })
		s.mustUser(testEmail, "")
		got := s.newBrowser().post("/sign-in", "email", testEmail, "password", testPassword)
		cookies := got.Cookies()
		if len(cookies) != 1 {
			t.Fatalf("base URL %q: cookies %v", base, cookies)
		}
		c := cookies[0]
		if len(c.Value) < 40 || c.MaxAge < int(sessionTime/time.Second)-60 || c.MaxAge > int(sessionTime/time.Second)+60 {
			t.Errorf("base URL %q: value %q, max age %d", base, c.Value, c.MaxAge)
		}
		flags := []string{c.Name + "="}
		for flag, set := range map[string]bool{"HttpOnly": c.HttpOnly, "Path=" + c.Path: true, "SameSite=Lax": c.SameSite == http.SameSiteLaxMode, "Secure": c.Secure, "Domain": c.Domain != ""} {
			if set {
				flags = append(flags, flag)
			}
		}
		if strings.Join(sortedTail(flags), "; ") != want {
			t.Errorf("base URL %q: %v, want %s", base, flags, want)
		}
	}
}

func TestLocalPath(t *testing.T) {
	for target, want := range map[string]string{
		"/runs/1?a=b#c": "/runs/1?a=b#c", "/": "/", "/a//b": "/a//b", "/%2F%2Fevil.example": "/%2F%2Fevil.example",
		"": "/", "runs": "/", "//evil.example": "/", "///evil.example": "/", `/\evil.example`: "/", `\/evil.example`: "/", `\\evil.example`: "/",
		"https://evil.example": "/", "https:/evil.example": "/", "javascript:alert(1)": "/", "/\t/evil.example": "/", "/\r\nSet-Cookie: a=b": "/",
		" //evil.example": "/", "/%zz": "/",
	} {
		if got := localPath(target); got != want {
			t.Errorf("localPath(%q) = %q, want %q", target, got, want)
		}
	}
}

func TestSignInLeadsNowhereElse(t *testing.T) {
	s := newSite(t)
	s.mustUser(testEmail, "")
	for _, next := range []string{"//evil.example", "https://evil.example/", `/\evil.example`} {
		b := s.newBrowser()
		b.get("/sign-in?next="+url.QueryEscape(next)).want(t, http.StatusOK, `name="next" value="/"`)
		b.post("/sign-in", "email", testEmail, "password", testPassword, "next", next).wantRedirect(t, "/")
	}
}
