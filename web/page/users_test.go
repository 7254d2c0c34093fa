package page

import (
	"net/http"
	"strings"
	"testing"

	"agentrun/storage"
)

func TestUsers(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	org, err := s.store.CreateOrg(t.Context(), "research")
	if err != nil {
		t.Fatal(err)
	}
	b.post("/users", "email", "Bob@example.org", "password", testPassword, "role", "member", "org", org.ID.String()).wantRedirect(t, "/users")
	b.get("/users").want(t, http.StatusOK, "The user is created", "bob@example.org", "research")
	bob, err := s.store.FindUser(t.Context(), "bob@example.org")
	if err != nil {
		t.Fatal(err)
	}
	page := "/users/" + bob.ID.String()
	b.get(page).want(t, http.StatusOK, "<h1>bob@example.org</h1>", `value="member" required checked`, `value="`+org.ID.String()+`" selected`, "Disable user", "Delete user")
	signedIn := s.signedIn("bob@example.org")

	b.post(page, "disabled", "true").wantRedirect(t, page)
	b.get(page).want(t, http.StatusOK, "The user is changed.", "disabled", "Enable")
	signedIn.get("/account").wantRedirect(t, "/sign-in?next=%2Faccount")
	b.post(page, "disabled", "false").wantRedirect(t, page)
	b.post(page, "role", "operator", "org", org.ID.String()).wantRedirect(t, page)
	b.post(page, "password", "another horse battery").wantRedirect(t, page)
	s.newBrowser().post("/sign-in", "email", "bob@example.org", "password", "another horse battery").wantRedirect(t, "/")
	now, err := s.store.FindUser(t.Context(), "bob@example.org")
	if err != nil || now.Role != storage.OperatorRole || now.Disabled {
		t.Errorf("bob is %+v, %v", now, err)
	}
	b.post(page+"/delete").wantRedirect(t, "/users")
	b.get("/users").want(t, http.StatusOK, "The user is deleted")
	b.get(page).want(t, http.StatusNotFound)
}

func TestUsersThatCannotBeMadeOrChanged(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	for _, form := range [][]string{
		{"email", "", "password", testPassword, "role", "member", "org", "default"},
		{"email", "no address", "password", testPassword, "role", "member", "org", "default"},
		{"email", "bob@example.org", "password", "short", "role", "member", "org", "default"},
		{"email", "bob@example.org", "password", testPassword, "role", "king", "org", "default"},
		{"email", "bob@example.org", "password", testPassword, "org", "default"},
	} {
		b.post("/users", form...).want(t, http.StatusUnprocessableEntity, `id="form-error"`)
	}
	b.post("/users", "email", testEmail, "password", testPassword, "role", "operator").want(t, http.StatusConflict, `value="`+testEmail+`"`, `value="operator" checked`)

	ada, err := s.store.FindUser(t.Context(), testEmail)
	if err != nil {
		t.Fatal(err)
	}
	page := "/users/" + ada.ID.String()
	b.get(page).want(t, http.StatusOK, "This is you.")
	b.post(page, "role", "member", "org", "default").want(t, http.StatusConflict, `id="form-error"`)
	b.post(page, "password", "short").want(t, http.StatusUnprocessableEntity, `id="form-error"`)
	b.post(page, "role", "king").want(t, http.StatusUnprocessableEntity)
	b.post(page+"/delete").want(t, http.StatusConflict)
	b.get("/users/x").want(t, http.StatusNotFound)
	b.get("/users/"+nobody).want(t, http.StatusNotFound)
}

func TestMembersSeeTheirOrganisationOnly(t *testing.T) {
	s := newSite(t)
	s.operator()
	other, err := s.store.CreateOrg(t.Context(), "secret-project")
	if err != nil {
		t.Fatal(err)
	}
	s.mustUser("bob@example.org", "default")
	b := s.signedIn("bob@example.org")
	b.get("/users").want(t, http.StatusForbidden)
	b.post("/users", "email", "eve@example.org", "password", testPassword, "role", "operator").want(t, http.StatusForbidden)
	b.post("/orgs", "name", "mine").want(t, http.StatusForbidden)
	page := b.get("/orgs")
	page.want(t, http.StatusOK, "default")
	for _, text := range []string{"secret-project", `href="/users"`, `href="/audit"`, "New organisation"} {
		if strings.Contains(page.body, text) {
			t.Errorf("a member sees %q", text)
		}
	}
	b.get("/orgs/"+other.ID.String()+"/agents").want(t, http.StatusNotFound)
	b.get("/").wantRedirect(t, "/orgs/"+mustDefaultOrg(t, s).String()+"/runs")
}

func mustDefaultOrg(t *testing.T, s *site) storage.OrgID {
	t.Helper()
	org, err := s.store.FindOrg(t.Context(), storage.DefaultOrg)
	if err != nil {
		t.Fatal(err)
	}
	return org.ID
}
