package web_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/uuid"

	"agentrun/storage"
	"agentrun/web"
	"agentrun/web/gen"
)

// bearer is a client's security with a token.
type bearer string

func (b bearer) PersonalToken(context.Context, gen.OperationName) (gen.PersonalToken, error) {
	return gen.PersonalToken{Token: string(b)}, nil
}

// newTokenClient returns a client of the management API for the owner of a token
// that may do everything its user may.
func newTokenClient(t *testing.T, store *storage.Store, user *gen.User) *gen.Client {
	t.Helper()
	h, err := web.NewManagement(web.Config{Store: store, Version: "v1.2.3"}).HTTP()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	s := &scene{t: t, store: store}
	_, secret := s.token(must[storage.User](t)(store.FindUser(t.Context(), user.ID.String())), allScopes...)
	return must[*gen.Client](t)(gen.NewClient(server.URL, bearer(secret)))
}

func TestUsers(t *testing.T) {
	c, store, _ := newClient(t)
	org := must[*gen.Org](t)(c.CreateOrg(t.Context(), &gen.CreateOrgReq{Name: "acme"}))
	op := must[*gen.User](t)(c.CreateUser(t.Context(), &gen.CreateUserReq{
		Email: " Op@Example.org", Password: password, Role: gen.NewOptRole(gen.RoleOperator),
	}))
	if op.Email != "op@example.org" || op.Role != gen.RoleOperator || op.OrgID.Set || op.SignedInAt.Set {
		t.Errorf("operator: %+v", op)
	}
	member := must[*gen.User](t)(c.CreateUser(t.Context(), &gen.CreateUserReq{Email: "m@example.org", Password: password, Org: gen.NewOptString("acme")}))
	if member.Role != gen.RoleMember || member.OrgID.Value != org.ID {
		t.Errorf("member: %+v", member)
	}
	if users := must[[]gen.User](t)(c.ListUsers(t.Context())); len(users) != 2 || users[0].ID != op.ID || users[1].ID != member.ID {
		t.Errorf("users: %+v", users)
	}
	change := func(user string, req gen.UpdateUserReq) (*gen.User, error) {
		return c.UpdateUser(t.Context(), &req, gen.UpdateUserParams{User: user})
	}
	if got := must[*gen.User](t)(change("m@example.org", gen.UpdateUserReq{Disabled: gen.NewOptBool(true)})); !got.Disabled || got.OrgID != member.OrgID {
		t.Errorf("disabled: %+v", got)
	}
	if _, err := store.SignIn(t.Context(), "m@example.org", password, ""); err == nil {
		t.Error("a disabled user signed in")
	}
	must[*gen.User](t)(change(member.ID.String(), gen.UpdateUserReq{Disabled: gen.NewOptBool(false), Password: gen.NewOptPassword("another long one")}))
	must[storage.User](t)(store.SignIn(t.Context(), "m@example.org", "another long one", ""))
	if got := must[*gen.User](t)(c.GetUser(t.Context(), gen.GetUserParams{User: "M@example.org"})); !got.SignedInAt.Set || got.Disabled {
		t.Errorf("after signing in: %+v", got)
	}
	for want, err := range map[int]error{
		404: second(c.GetUser(t.Context(), gen.GetUserParams{User: "nobody@example.org"})),
		409: second(c.DeleteUser(t.Context(), gen.DeleteUserParams{User: op.Email})),
		422: second(c.CreateUser(t.Context(), &gen.CreateUserReq{Email: "x@example.org", Password: "short"})),
	} {
		if p := problem(t, err); p.StatusCode != want {
			t.Errorf("%+v, want %d", p, want)
		}
	}
	for what, err := range map[string]error{
		"a second time": second(c.CreateUser(t.Context(), &gen.CreateUserReq{Email: "op@example.org", Password: password})),
		"the last one":  second(change(op.Email, gen.UpdateUserReq{Role: gen.NewOptRole(gen.RoleMember)})),
	} {
		if p := problem(t, err); p.StatusCode != 409 {
			t.Errorf("%s: %+v", what, p)
		}
	}
	must[*gen.User](t)(c.DeleteUser(t.Context(), gen.DeleteUserParams{User: "m@example.org"}))
	if users := must[[]gen.User](t)(c.ListUsers(t.Context())); len(users) != 1 {
		t.Errorf("users: %+v", users)
	}
}

func TestAccountAndTokens(t *testing.T) {
	c, store, _ := newClient(t)
	if got := must[*gen.Account](t)(c.GetAccount(t.Context())); got.Kind != gen.AccountKindOperator || got.UserID.Set || got.Scopes != nil {
		t.Errorf("on the machine: %+v", got)
	}
	if p := problem(t, second(c.CreateToken(t.Context(), &gen.CreateTokenReq{Name: "x", Scopes: gen.Scopes{gen.ScopeRead}}))); p.StatusCode != 403 {
		t.Errorf("a token of the operator on the machine: %+v", p)
	}
	user := must[*gen.User](t)(c.CreateUser(t.Context(), &gen.CreateUserReq{Email: "m@example.org", Password: password}))
	own := newTokenClient(t, store, user)
	got := must[*gen.Account](t)(own.GetAccount(t.Context()))
	if got.Kind != gen.AccountKindToken || got.UserID.Value != user.ID || got.OrgID != user.OrgID || got.Role != gen.RoleMember || len(got.Scopes) != len(allScopes) {
		t.Errorf("account: %+v", got)
	}
	made := must[*gen.CreatedToken](t)(own.CreateToken(t.Context(), &gen.CreateTokenReq{
		Name: "ci", Scopes: gen.Scopes{gen.ScopeRuns}, ExpiresIn: gen.NewOptInt(3600),
	}))
	if life := made.Token.ExpiresAt.Sub(made.Token.CreatedAt).Seconds(); life != 3600 || !strings.HasPrefix(made.Secret, made.Token.Prefix) {
		t.Errorf("made: %+v", made)
	}
	if tokens := must[[]gen.Token](t)(own.ListTokens(t.Context())); len(tokens) != 2 || tokens[1].ID != made.Token.ID || tokens[1].LastUsedAt.Set || !tokens[0].LastUsedAt.Set {
		t.Errorf("tokens: %+v", tokens)
	}
	must[*gen.Token](t)(own.DeleteToken(t.Context(), gen.DeleteTokenParams{Token: made.Token.ID}))
	if p := problem(t, second(own.DeleteToken(t.Context(), gen.DeleteTokenParams{Token: made.Token.ID}))); p.StatusCode != 404 {
		t.Errorf("twice: %+v", p)
	}
	if server := must[*gen.ServerInfo](t)(own.GetServer(t.Context())); server.Version != "v1.2.3" || server.Providers == nil {
		t.Errorf("server: %+v", server)
	}
}

func TestAudit(t *testing.T) {
	c, store, _ := newClient(t)
	org := must[*gen.Org](t)(c.CreateOrg(t.Context(), &gen.CreateOrgReq{Name: "acme"}))
	user := must[*gen.User](t)(c.CreateUser(t.Context(), &gen.CreateUserReq{Email: "m@example.org", Password: password, Org: gen.NewOptString("acme")}))
	must[*gen.Org](t)(c.CreateOrg(t.Context(), &gen.CreateOrgReq{Name: "other"}))
	member := newTokenClient(t, store, user)
	must[*gen.AppliedAgent](t)(member.ApplyAgent(t.Context(), &gen.ApplyAgentReq{File: "name: a\ncommand: [cat]\n", Org: gen.NewOptString("acme")}))

	// pages reads the log in pages of this length and returns what was done.
	pages := func(c *gen.Client, org string, length int) (all []gen.AuditEntry) {
		t.Helper()
		params := gen.ListAuditParams{Limit: gen.NewOptInt(length)}
		if org != "" {
			params.Org = gen.NewOptString(org)
		}
		for {
			page := must[*gen.AuditPage](t)(c.ListAudit(t.Context(), params))
			if len(page.Entries) > length {
				t.Errorf("%d entries on a page of %d", len(page.Entries), length)
			}
			all = append(all, page.Entries...)
			if !page.Next.Set {
				return all
			}
			params.Before = page.Next
		}
	}
	actions := func(entries []gen.AuditEntry) string {
		var words []string
		for _, e := range entries {
			words = append(words, e.Action)
		}
		return strings.Join(words, " ")
	}
	const everything = "agent.apply token.create organisation.create user.create organisation.create"
	for _, length := range []int{1, 2, 5, 100} {
		if got := actions(pages(c, "", length)); got != everything {
			t.Errorf("pages of %d: %s", length, got)
		}
	}
	if got := actions(pages(c, "acme", 2)); got != "agent.apply token.create user.create organisation.create" {
		t.Errorf("of acme: %s", got)
	}
	seen := pages(member, "", 100)
	if got := actions(seen); got != "agent.apply token.create user.create organisation.create" {
		t.Errorf("for the member: %s", got)
	}
	last := seen[0]
	if last.Actor.Kind != "token" || last.Actor.Name != "m@example.org (test)" || last.Actor.ID.Value == uuid.Nil ||
		last.OrgID.Value != org.ID || last.Subject.Kind != "agent" || last.Subject.Name != "a" || last.Detail.Value != "revision 1" {
		t.Errorf("the last entry: %+v", last)
	}
	if p := problem(t, second(member.ListAudit(t.Context(), gen.ListAuditParams{Org: gen.NewOptString("other")}))); p.StatusCode != 404 {
		t.Errorf("of somebody else: %+v", p)
	}
}
