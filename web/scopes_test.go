package web_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"agentrun/storage"
)

var allScopes = []storage.Scope{storage.ScopeRead, storage.ScopeRuns, storage.ScopeAgents, storage.ScopeKeys, storage.ScopeAdmin}

// asker is somebody with a token.
type asker struct {
	name   string
	user   storage.User
	token  string
	scopes []storage.Scope
}

// may says whether the operation is for the asker.
func (a asker) may(o operation) bool {
	switch {
	case o.never:
		return false
	case o.scope == storage.ScopeAdmin && !o.own && a.user.Role != storage.OperatorRole:
		return false
	}
	return o.scope == storage.ScopeRead || slices.Contains(a.scopes, o.scope)
}

// TestScopes calls every operation with a token of every scope alone, with one
// of a member that has them all, with none and with a wrong one.
func TestScopes(t *testing.T) {
	s := newScene(t)
	op := s.user("op@example.org", storage.OperatorRole, "")
	member := s.user("member@example.org", storage.MemberRole, storage.DefaultOrg)
	askers := []asker{{name: "nobody"}, {name: "a stranger", token: "am_0000000000000000000000000000000000000000000000000"}}
	for _, scope := range allScopes {
		_, token := s.token(op, scope)
		askers = append(askers, asker{string(scope), op, token, []storage.Scope{scope}})
	}
	_, token := s.token(member, allScopes...)
	askers = append(askers, asker{"a member", member, token, allScopes})
	calls := map[int]int{}
	for _, o := range operations {
		for _, a := range askers {
			got := s.call(o, a.token, s.fresh(o, a))
			calls[got.status]++
			switch {
			case a.scopes == nil:
				if got.status != http.StatusUnauthorized {
					t.Errorf("%s for %s: %+v", o, a.name, got)
				}
			// A user whom one may not see does not exist.
			case o.id == "getUser" && a.user.Role != storage.OperatorRole:
				if got.status != http.StatusNotFound {
					t.Errorf("%s for %s: %+v", o, a.name, got)
				}
			case a.may(o) && got.status != http.StatusOK && got.status != http.StatusCreated:
				t.Errorf("%s with %s: %+v", o, a.name, got)
			case !a.may(o) && got.status != http.StatusForbidden:
				t.Errorf("%s with %s: %+v", o, a.name, got)
			}
		}
	}
	t.Logf("statuses of %d operations for %d askers: %v", len(operations), len(askers), calls)
}

// A refusal says how to ask, as RFC 9110 (section 11.6.1) wants it.
func TestRefusalsNameTheScheme(t *testing.T) {
	s := newScene(t)
	for _, token := range []string{"", "am_0000000000000000000000000000000000000000000000000"} {
		got := s.call(operations[0], token, nil)
		if got.status != http.StatusUnauthorized || got.header.Get("WWW-Authenticate") != "Bearer" || strings.Contains(got.body, "operation ") {
			t.Errorf("%q: %+v", token, got)
		}
	}
}

// fresh makes what an operation is about. Without an asker it is never found.
func (s *scene) fresh(o operation, a asker) map[string]string {
	s.t.Helper()
	ids := map[string]string{"org": storage.DefaultOrg, "user": "victim@example.org"}
	if o.takes("agent") || o.takes("key") || o.takes("run") {
		ids = s.agent(storage.DefaultOrg, "agent-"+uuid.NewString())
	}
	if o.takes("user") {
		if _, err := s.store.FindUser(s.t.Context(), ids["user"]); err != nil {
			s.user(ids["user"], storage.MemberRole, storage.DefaultOrg)
		}
	}
	if o.takes("token") {
		ids["token"] = uuid.NewString()
		if a.scopes != nil {
			token, _ := s.token(a.user, storage.ScopeRead)
			ids["token"] = token.ID.String()
		}
	}
	return ids
}

// A token is worth nothing once its user is disabled, or it was deleted.
func TestTokensEnd(t *testing.T) {
	s := newScene(t)
	s.user("op@example.org", storage.OperatorRole, "")
	member := s.user("member@example.org", storage.MemberRole, storage.DefaultOrg)
	first, secret := s.token(member, allScopes...)
	_, other := s.token(member, storage.ScopeRead)
	account := operations[slices.IndexFunc(operations, func(o operation) bool { return o.id == "getAccount" })]
	del := operations[slices.IndexFunc(operations, func(o operation) bool { return o.id == "deleteToken" })]
	status := func(token string) int { return s.call(account, token, nil).status }
	if a, b := status(secret), status(other); a != http.StatusOK || b != http.StatusOK {
		t.Fatal(a, b)
	}
	if got := s.call(del, secret, map[string]string{"token": first.ID.String()}); got.status != http.StatusOK {
		t.Error(got)
	}
	if a, b := status(secret), status(other); a != http.StatusUnauthorized || b != http.StatusOK {
		t.Error(a, b)
	}
	disabled := true
	must[storage.User](t)(s.store.ChangeUser(t.Context(), member.Email, storage.UserChange{Disabled: &disabled}))
	if got := status(other); got != http.StatusUnauthorized {
		t.Error(got)
	}
}
