package page

import (
	"net/http"
	"regexp"
	"strings"
	"testing"
)

func TestTokensAreShownOnce(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	b.get("/account").want(t, http.StatusOK, "No tokens", "Operator", `value="read" checked`, `value="90" selected`)
	made := b.post("/account/tokens", "name", "<deploy>", "scope", "runs", "scope", "read", "days", "30")
	made.want(t, http.StatusCreated, "&lt;deploy&gt;", "in 29 days", `data-copy="#secret"`)
	secret := regexp.MustCompile(`am_[0-9A-Za-z_-]{20,}`).FindString(made.body)
	if secret == "" {
		t.Fatalf("no secret:\n%s", made.body)
	}
	later := b.get("/account")
	later.want(t, http.StatusOK, "&lt;deploy&gt;", secret[:6])
	if strings.Contains(later.body, secret) {
		t.Error("the secret is shown again")
	}
	if strings.Contains(later.body, "<deploy>") {
		t.Error("a name is HTML")
	}
	id := regexp.MustCompile(`/account/tokens/([0-9a-f-]{36})/delete`).FindStringSubmatch(later.body)
	b.post("/account/tokens/"+id[1]+"/delete").wantRedirect(t, "/account")
	b.get("/account").want(t, http.StatusOK, "The token is deleted.", "No tokens")
	b.post("/account/tokens/"+id[1]+"/delete").want(t, http.StatusNotFound)
	b.post("/account/tokens/x/delete").want(t, http.StatusNotFound)
}

func TestTokensThatCannotBeMade(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	for _, form := range [][]string{
		{"name", "", "scope", "read", "days", "30"},
		{"name", "x", "days", "30"},
		{"name", "x", "scope", "everything", "days", "30"},
		{"name", "x", "scope", "read", "scope", "read", "days", "30"},
		{"name", "x", "scope", "read", "days", "36500"},
		{"name", "x", "scope", "read"},
		{"name", strings.Repeat("x", 201), "scope", "read", "days", "30"},
	} {
		b.post("/account/tokens", form...).want(t, http.StatusUnprocessableEntity, `id="token-error"`)
	}
	// What was filled in stays.
	b.post("/account/tokens", "name", "kept", "scope", "keys", "days", "365", "scope", "nonsense").
		want(t, http.StatusUnprocessableEntity, `value="kept"`, `value="keys" checked`, `value="365" selected`)
	// A member is offered no token for what only operators do, and gets none.
	s.mustUser("bob@example.org", "default")
	bob := s.signedIn("bob@example.org")
	if got := bob.get("/account"); strings.Contains(got.body, `value="admin"`) {
		t.Error("a member is offered an admin token")
	}
}

func TestPasswordChange(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	elsewhere := s.signedIn(testEmail)
	const changed = "another horse battery"
	b.post("/account/password", "current", testPassword, "new", changed, "again", changed+"x").want(t, http.StatusUnprocessableEntity, "differ")
	b.post("/account/password", "current", "not this one", "new", changed, "again", changed).want(t, http.StatusForbidden, `id="password-error"`)
	b.post("/account/password", "current", testPassword, "new", "short", "again", "short").want(t, http.StatusUnprocessableEntity, `id="password-error"`)
	elsewhere.get("/account").want(t, http.StatusOK)
	b.post("/account/password", "current", testPassword, "new", changed, "again", changed).wantRedirect(t, "/sign-in")
	b.get("/sign-in").want(t, http.StatusOK, "Your password is changed.")
	elsewhere.get("/account").wantRedirect(t, "/sign-in?next=%2Faccount")
	b.post("/sign-in", "email", testEmail, "password", testPassword).want(t, http.StatusForbidden)
	b.post("/sign-in", "email", testEmail, "password", changed).wantRedirect(t, "/")
}
