package page

import (
	"net/http"
	"strings"
	"testing"
)

func TestSetUp(t *testing.T) {
	s := newSite(t)
	b := s.newBrowser()
	b.get("/sign-in").want(t, http.StatusOK, "no user yet")
	for _, token := range []string{"", "?token=", "?token=wrong", "?token=" + testToken + "x"} {
		got := b.get("/setup" + token)
		got.want(t, http.StatusForbidden, "open the address that it printed")
		if strings.Contains(got.body, "<form") {
			t.Errorf("/setup%s has a form", token)
		}
	}
	b.post("/setup", "token", "wrong", "email", testEmail, "password", testPassword).want(t, http.StatusForbidden)
	b.get("/setup?token="+testToken).want(t, http.StatusOK, `name="token" value="`+testToken+`"`)
	b.post("/setup", "token", testToken, "email", testEmail, "password", "short").want(t, http.StatusUnprocessableEntity, "form-error", `value="`+testEmail+`"`)
	b.post("/setup", "token", testToken, "email", "ada", "password", testPassword).want(t, http.StatusUnprocessableEntity, "form-error")
	if used, err := s.store.HasUsers(t.Context()); err != nil || used {
		t.Fatalf("after what was refused there are users: %v, %v", used, err)
	}

	got := b.post("/setup", "token", testToken, "email", testEmail, "password", testPassword)
	orgs, err := s.store.Orgs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got.wantRedirect(t, "/orgs/"+orgs[0].ID.String()+"/agents")
	b.get("/orgs").want(t, http.StatusOK, "you are its first operator", "New organisation")

	// From now on nobody can, with whatever token.
	other := s.newBrowser()
	other.get("/setup?token="+testToken).want(t, http.StatusNotFound, "set up already")
	other.post("/setup", "token", testToken, "email", "eve@example.org", "password", testPassword).want(t, http.StatusNotFound)
	if page := other.get("/sign-in"); strings.Contains(page.body, "no user yet") {
		t.Error("sign-in still says that there is no user")
	}
}

func TestWithoutATokenNobodySetsUp(t *testing.T) {
	s := newSite(t, func(c *Config) { c.SetupToken = "" })
	b := s.newBrowser()
	b.get("/setup?token=").want(t, http.StatusForbidden)
	b.post("/setup", "token", "", "email", testEmail, "password", testPassword).want(t, http.StatusForbidden)
}
