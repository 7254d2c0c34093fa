package web_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"agentrun/storage"
	"agentrun/storage/storagetest"
	"agentrun/storage/workspace"
	"agentrun/web"
)

// operation is a way to call an operation of the contract. The words in braces
// stand for what scene.ids knows; {new} is a name that nothing has.
type operation struct {
	id, method, path, body string
	// scope is what a token needs.
	scope storage.Scope
	// own says that it is about the one who asks, also when it needs
	// storage.ScopeAdmin.
	own bool
	// never says that no token may.
	never bool
}

// operations are all of the contract, some of them in several ways. What ends
// something comes after what needs it.
var operations = []operation{
	{id: "getServer", method: "GET", path: "/server", scope: storage.ScopeRead},
	{id: "getAccount", method: "GET", path: "/account", scope: storage.ScopeRead},
	{id: "changePassword", method: "PUT", path: "/account/password", body: `{"current":"correct horse battery","new":"another long one"}`, never: true},
	{id: "listTokens", method: "GET", path: "/account/tokens", scope: storage.ScopeRead},
	{id: "createToken", method: "POST", path: "/account/tokens", body: `{"name":"new","scopes":["read"]}`, scope: storage.ScopeAdmin, own: true},
	{id: "listUsers", method: "GET", path: "/users", scope: storage.ScopeAdmin},
	{id: "createUser", method: "POST", path: "/users", body: `{"email":"{new}@example.org","password":"correct horse battery","org":"{org}"}`, scope: storage.ScopeAdmin},
	{id: "getUser", method: "GET", path: "/users/{user}", scope: storage.ScopeRead},
	{id: "updateUser", method: "PATCH", path: "/users/{user}", body: `{"disabled":true}`, scope: storage.ScopeAdmin},
	{id: "updateUser", method: "PATCH", path: "/users/{user}", body: `{"password":"another long one"}`, scope: storage.ScopeAdmin},
	{id: "listAudit", method: "GET", path: "/audit", scope: storage.ScopeRead},
	{id: "listAudit", method: "GET", path: "/audit?org={org}", scope: storage.ScopeRead},
	{id: "listOrgs", method: "GET", path: "/orgs", scope: storage.ScopeRead},
	{id: "createOrg", method: "POST", path: "/orgs", body: `{"name":"{new}"}`, scope: storage.ScopeAdmin},
	{id: "listUsage", method: "GET", path: "/usage", scope: storage.ScopeRead},
	{id: "getOrg", method: "GET", path: "/orgs/{org}", scope: storage.ScopeRead},
	{id: "listDailyUsage", method: "GET", path: "/orgs/{org}/usage", scope: storage.ScopeRead},
	{id: "setOrgModels", method: "PUT", path: "/orgs/{org}/models", body: `{"models":["*"]}`, scope: storage.ScopeAdmin},
	{id: "listAgents", method: "GET", path: "/agents", scope: storage.ScopeRead},
	{id: "listAgents", method: "GET", path: "/agents?org={org}", scope: storage.ScopeRead},
	{id: "applyAgent", method: "POST", path: "/agents", body: `{"org":"{org}","file":"name: {new}\ncommand: [cat]\n"}`, scope: storage.ScopeAgents},
	{id: "getAgent", method: "GET", path: "/agents/{agent}", scope: storage.ScopeRead},
	{id: "exportAgent", method: "GET", path: "/agents/{agent}/file", scope: storage.ScopeRead},
	{id: "listRevisions", method: "GET", path: "/agents/{agent}/revisions", scope: storage.ScopeRead},
	{id: "getRevision", method: "GET", path: "/agents/{agent}/revisions/1", scope: storage.ScopeRead},
	{id: "listKeys", method: "GET", path: "/agents/{agent}/keys", scope: storage.ScopeRead},
	{id: "createKey", method: "POST", path: "/agents/{agent}/keys", body: `{}`, scope: storage.ScopeKeys},
	{id: "archiveAgent", method: "POST", path: "/agents/{agent}/archive", scope: storage.ScopeAgents},
	{id: "unarchiveAgent", method: "POST", path: "/agents/{agent}/unarchive", scope: storage.ScopeAgents},
	{id: "rotateKey", method: "POST", path: "/keys/{key}/rotate", body: `{}`, scope: storage.ScopeKeys},
	{id: "getKey", method: "GET", path: "/keys/{key}", scope: storage.ScopeRead},
	{id: "listKeyRequests", method: "GET", path: "/keys/{key}/requests", scope: storage.ScopeRead},
	{id: "disableKey", method: "POST", path: "/keys/{key}/disable", scope: storage.ScopeKeys},
	{id: "enableKey", method: "POST", path: "/keys/{key}/enable", scope: storage.ScopeKeys},
	{id: "listRuns", method: "GET", path: "/runs", scope: storage.ScopeRead},
	{id: "listRuns", method: "GET", path: "/runs?org={org}", scope: storage.ScopeRead},
	{id: "listRuns", method: "GET", path: "/runs?agent={agent}", scope: storage.ScopeRead},
	{id: "listRuns", method: "GET", path: "/runs?key={key}", scope: storage.ScopeRead},
	{id: "listRuns", method: "GET", path: "/runs?text={run}", scope: storage.ScopeRead},
	{id: "getRun", method: "GET", path: "/runs/{run}", scope: storage.ScopeRead},
	{id: "listEvents", method: "GET", path: "/runs/{run}/events", scope: storage.ScopeRead},
	{id: "listFiles", method: "GET", path: "/runs/{run}/files", scope: storage.ScopeRead},
	{id: "downloadFile", method: "GET", path: "/runs/{run}/files/content?path=notes.txt", scope: storage.ScopeRead},
	{id: "downloadArchive", method: "GET", path: "/runs/{run}/archive", scope: storage.ScopeRead},
	{id: "giveInput", method: "POST", path: "/runs/{run}/inputs", body: `{"text":"hello"}`, scope: storage.ScopeRuns},
	{id: "stopRun", method: "POST", path: "/runs/{run}/stop", scope: storage.ScopeRuns},
	{id: "deleteRun", method: "DELETE", path: "/runs/{run}", scope: storage.ScopeRuns},
	{id: "deleteKey", method: "DELETE", path: "/keys/{key}", scope: storage.ScopeKeys},
	{id: "deleteAgent", method: "DELETE", path: "/agents/{agent}", scope: storage.ScopeAgents},
	{id: "deleteUser", method: "DELETE", path: "/users/{user}", scope: storage.ScopeAdmin},
	{id: "deleteToken", method: "DELETE", path: "/account/tokens/{token}", scope: storage.ScopeAdmin, own: true},
}

// String names the row in a message.
func (o operation) String() string { return o.id + " " + o.method + " " + o.path }

// takes says whether the operation is about something of that kind.
func (o operation) takes(kind string) bool { return strings.Contains(o.path+o.body, "{"+kind+"}") }

// TestEveryOperationHasARow compares the table with the contract.
func TestEveryOperationHasARow(t *testing.T) {
	var contract struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(web.Contract, &contract); err != nil {
		t.Fatal(err)
	}
	var defined, rows []string
	for path, methods := range contract.Paths {
		for _, raw := range methods {
			var op struct {
				ID string `json:"operationId"`
			}
			// What is not an operation is the list of a path's parameters.
			if json.Unmarshal(raw, &op) == nil && op.ID != "" {
				defined = append(defined, op.ID)
			}
		}
		if !strings.HasPrefix(path, "/api/v1/") {
			t.Errorf("%s is not below /api/v1", path)
		}
	}
	for _, o := range operations {
		rows = append(rows, o.id)
	}
	slices.Sort(defined)
	slices.Sort(rows)
	if rows = slices.Compact(rows); !slices.Equal(defined, rows) || len(defined) < 40 {
		t.Errorf("the contract has %q\nthe table has %q", defined, rows)
	}
}

// scene is the management API as the owners of tokens reach it.
type scene struct {
	t      *testing.T
	api    http.Handler
	store  *storage.Store
	spaces *workspace.Store
}

func newScene(t *testing.T) *scene {
	t.Helper()
	s := &scene{t: t, store: storagetest.Open(t), spaces: storagetest.Workspaces(t)}
	s.api = must[http.Handler](t)(web.NewManagement(web.Config{Store: s.store, Workspaces: s.spaces, Version: "v1"}).HTTP())
	return s
}

const password = "correct horse battery"

func (s *scene) user(email string, role storage.UserRole, org string) storage.User {
	s.t.Helper()
	return must[storage.User](s.t)(s.store.CreateUser(s.t.Context(), storage.NewUser{Email: email, Password: password, Role: role, Org: org}))
}

// token makes a token of a user.
func (s *scene) token(user storage.User, scopes ...storage.Scope) (storage.Token, string) {
	s.t.Helper()
	actor := must[storage.Actor](s.t)(s.store.UserActor(s.t.Context(), user.ID, user.Generation, "192.0.2.1"))
	token, secret, err := s.store.CreateToken(storage.WithActor(s.t.Context(), actor), "test", scopes, time.Hour)
	if err != nil {
		s.t.Fatal(err)
	}
	return token, secret
}

// agent makes an agent with a key and a run that has a file, and returns what
// names them.
func (s *scene) agent(org, name string) map[string]string {
	s.t.Helper()
	storagetest.MustApply(s.t, s.store, org, "name: "+name+"\ncommand: [cat]\n")
	agent := storagetest.MustApply(s.t, s.store, org, "name: "+name+"\ncommand: [cat, -]\n")
	caller := storagetest.MustCaller(s.t, s.store, agent)
	run := storagetest.MustRun(s.t, s.store, caller)
	folder := s.spaces.Path(run.ID.UUID)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "notes.txt"), []byte(name), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return map[string]string{
		"org": agent.OrgID.String(), "agent": agent.ID.String(), "key": caller.KeyID.String(), "run": run.ID.String(),
	}
}

// answer is what somebody gets to see of an answer.
type answer struct {
	status int
	header http.Header
	body   string
}

// call calls an operation with these IDs, or names.
func (s *scene) call(o operation, token string, ids map[string]string) answer {
	s.t.Helper()
	path, body := o.path, o.body
	for kind, id := range ids {
		path, body = strings.ReplaceAll(path, "{"+kind+"}", id), strings.ReplaceAll(body, "{"+kind+"}", id)
	}
	body = strings.ReplaceAll(body, "{new}", "new-"+uuid.NewString())
	if strings.Contains(path, "{") {
		s.t.Fatalf("%s: %s", o, path)
	}
	r := httptest.NewRequestWithContext(s.t.Context(), o.method, "/api/v1"+path, strings.NewReader(body))
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	s.api.ServeHTTP(w, r)
	return answer{w.Code, w.Header(), w.Body.String()}
}
