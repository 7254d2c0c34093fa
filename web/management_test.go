package web_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"github.com/ogen-go/ogen/ogenerrors"

	"agentrun/storage"
	"agentrun/storage/storagetest"
	"agentrun/web"
	"agentrun/web/gen"
)

// newClient returns a client of the management API over real HTTP and storage.
func newClient(t *testing.T, providers ...string) (*gen.Client, *storage.Store, string) {
	t.Helper()
	store := storagetest.Open(t)
	var configured []web.Provider
	for _, name := range providers {
		configured = append(configured, web.Provider{Name: name, Dialect: "script"})
	}
	h, err := web.NewManagement(web.Config{Store: store, Workspaces: storagetest.Workspaces(t), Providers: configured}).Local()
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	client, err := gen.NewClient(server.URL, local{})
	if err != nil {
		t.Fatal(err)
	}
	return client, store, server.URL
}

// must fails the test on an error and returns the value.
func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// problem returns the problem document of a failed call.
func problem(t *testing.T, err error) gen.ProblemStatusCode {
	t.Helper()
	var p *gen.ProblemStatusCode
	if !errors.As(err, &p) {
		t.Fatalf("got %v, want a problem", err)
	}
	if p.StatusCode != p.Response.Status {
		t.Errorf("status %d in the head, %d in the body", p.StatusCode, p.Response.Status)
	}
	return *p
}

func TestOrgs(t *testing.T) {
	c, _, _ := newClient(t)
	acme := must[*gen.Org](t)(c.CreateOrg(t.Context(), &gen.CreateOrgReq{Name: "acme"}))
	orgs := must[[]gen.Org](t)(c.ListOrgs(t.Context()))
	if len(orgs) != 2 || orgs[0].Name != "default" || orgs[1].ID != acme.ID {
		t.Errorf("orgs: %+v", orgs)
	}
	for _, models := range []gen.Models{{"openai/*", "local/x"}, {}} {
		set := must[*gen.Org](t)(c.SetOrgModels(t.Context(), &gen.SetOrgModelsReq{Models: models}, gen.SetOrgModelsParams{Org: "acme"}))
		got := must[*gen.Org](t)(c.GetOrg(t.Context(), gen.GetOrgParams{Org: acme.ID.String()}))
		if diff := cmp.Diff(models, got.Models); diff != "" || !cmp.Equal(set.Models, got.Models) {
			t.Error(diff)
		}
	}
	for want, err := range map[int]error{
		404: second(c.GetOrg(t.Context(), gen.GetOrgParams{Org: "nobody"})),
		409: second(c.CreateOrg(t.Context(), &gen.CreateOrgReq{Name: "acme"})),
		422: second(c.CreateOrg(t.Context(), &gen.CreateOrgReq{Name: " acme"})),
		// Refused by the generated code, before the operation.
		413: second(c.CreateOrg(t.Context(), &gen.CreateOrgReq{Name: gen.Name(strings.Repeat("x", 9<<20))})),
	} {
		if p := problem(t, err); p.StatusCode != want || p.Response.Detail == "" {
			t.Errorf("%+v, want %d", p, want)
		}
	}
}

func second[T any](_ T, err error) error { return err }

func TestAgents(t *testing.T) {
	c, _, _ := newClient(t, "openai")
	apply := func(file string) (*gen.AppliedAgent, error) {
		return c.ApplyAgent(t.Context(), &gen.ApplyAgentReq{File: file})
	}
	applied := must[*gen.AppliedAgent](t)(apply(storagetest.EchoFile))
	if applied.Agent.Revision != 1 || len(applied.Warnings) != 0 {
		t.Errorf("applied: %+v", applied)
	}
	byName := gen.GetAgentParams{Agent: "echo"}
	if got := must[*gen.Agent](t)(c.GetAgent(t.Context(), byName)); got.ID != applied.Agent.ID {
		t.Errorf("by name: %+v", got)
	}
	if got := must[*gen.AgentFile](t)(c.ExportAgent(t.Context(), gen.ExportAgentParams{Agent: "echo"})); got.File != storagetest.EchoFile {
		t.Errorf("exported %q", got.File)
	}
	if got := must[*gen.Agent](t)(c.ArchiveAgent(t.Context(), gen.ArchiveAgentParams{Agent: "echo"})); !got.Archived {
		t.Errorf("archived: %+v", got)
	}
	if got := must[*gen.Agent](t)(c.UnarchiveAgent(t.Context(), gen.UnarchiveAgentParams{Agent: "echo"})); got.Archived {
		t.Errorf("unarchived: %+v", got)
	}
	strange := must[*gen.AppliedAgent](t)(apply("name: \"a/b ? ä\"\ncommand: [cat]\n"))
	if got := must[*gen.Agent](t)(c.GetAgent(t.Context(), gen.GetAgentParams{Agent: "a/b ? ä"})); got.ID != strange.Agent.ID {
		t.Errorf("a name with everything: %+v", got)
	}
	if got := must[[]gen.Agent](t)(c.ListAgents(t.Context(), gen.ListAgentsParams{})); len(got) != 2 {
		t.Errorf("agents: %+v", got)
	}
	must[*gen.Agent](t)(c.DeleteAgent(t.Context(), gen.DeleteAgentParams{Agent: "echo"}))
	if p := problem(t, second(c.GetAgent(t.Context(), byName))); p.StatusCode != http.StatusNotFound {
		t.Errorf("deleted: %+v", p)
	}
}

func TestApplyWarnsOfAMissingProvider(t *testing.T) {
	c, _, _ := newClient(t, "openai")
	for file, warnings := range map[string]int{
		"name: a\nmodel: openai/gpt\n": 0, "name: b\nmodel: local/small\n": 1,
		"name: c\ncommand: [d]\ngateway: [openai]\n": 0, "name: d\ncommand: [d]\ngateway: [openai, local]\n": 1,
	} {
		applied := must[*gen.AppliedAgent](t)(c.ApplyAgent(t.Context(), &gen.ApplyAgentReq{File: file}))
		if len(applied.Warnings) != warnings || warnings > 0 && !strings.Contains(applied.Warnings[0], "'local'") {
			t.Errorf("%q: %q", file, applied.Warnings)
		}
	}
}

func TestFaultsOfAnAgentFile(t *testing.T) {
	c, _, _ := newClient(t)
	err := second(c.ApplyAgent(t.Context(), &gen.ApplyAgentReq{File: "name: x\ncomand: [cat]\n"}))
	p := problem(t, err)
	if p.StatusCode != 422 || len(p.Response.Faults) == 0 || p.Response.Faults[len(p.Response.Faults)-1].Line != 2 {
		t.Errorf("%+v", p)
	}
	err = second(c.ApplyAgent(t.Context(), &gen.ApplyAgentReq{File: storagetest.EchoFile, Org: gen.NewOptString("nobody")}))
	if p := problem(t, err); p.StatusCode != http.StatusNotFound {
		t.Errorf("unknown organisation: %+v", p)
	}
}

func TestKeys(t *testing.T) {
	c, store, _ := newClient(t)
	agent := must[*gen.AppliedAgent](t)(c.ApplyAgent(t.Context(), &gen.ApplyAgentReq{File: storagetest.EchoFile})).Agent
	key := must[*gen.CreatedKey](t)(c.CreateKey(t.Context(),
		&gen.CreateKeyReq{Name: gen.NewOptName("ci"), ExpiresIn: gen.NewOptInt(3600)}, gen.CreateKeyParams{Agent: "echo"}))
	accepted := func() bool {
		t.Helper()
		caller, err := store.Authenticate(t.Context(), key.Key)
		return err == nil && caller.AgentID.UUID == agent.ID
	}
	if !accepted() || key.Name != "ci" || !key.ExpiresAt.IsSet() {
		t.Errorf("created: %+v", key)
	}
	if got := must[*gen.Key](t)(c.DisableKey(t.Context(), gen.DisableKeyParams{Key: key.ID})); !got.Disabled || accepted() {
		t.Errorf("disabled: %+v", got)
	}
	if got := must[*gen.Key](t)(c.EnableKey(t.Context(), gen.EnableKeyParams{Key: key.ID})); got.Disabled || !accepted() {
		t.Errorf("enabled: %+v", got)
	}
	keys := must[[]gen.Key](t)(c.ListKeys(t.Context(), gen.ListKeysParams{Agent: "echo"}))
	if len(keys) != 1 || keys[0].ID != key.ID || !strings.HasPrefix(key.Key, keys[0].Prefix) {
		t.Errorf("listed: %+v", keys)
	}
	must[*gen.Key](t)(c.DeleteKey(t.Context(), gen.DeleteKeyParams{Key: key.ID}))
	if accepted() {
		t.Error("a deleted key is accepted")
	}
	if p := problem(t, second(c.EnableKey(t.Context(), gen.EnableKeyParams{Key: key.ID}))); p.StatusCode != http.StatusNotFound {
		t.Errorf("a deleted key: %+v", p)
	}
	if p := problem(t, second(c.CreateKey(t.Context(), &gen.CreateKeyReq{}, gen.CreateKeyParams{Agent: "nobody"}))); p.StatusCode != http.StatusNotFound {
		t.Errorf("a key of nobody: %+v", p)
	}
}

func TestRuns(t *testing.T) {
	c, store, _ := newClient(t)
	caller := storagetest.MustCaller(t, store, storagetest.MustApply(t, store, storage.DefaultOrg, storagetest.EchoFile))
	run := storagetest.MustRun(t, store, caller, "hello")
	storagetest.MustRun(t, store, caller)
	turn := must[*storage.Turn](t)(store.ClaimNext(t.Context(), storage.AgentID{}, "none"))
	if err := store.FailTurn(t.Context(), turn.Claim, "exit code 3"); err != nil {
		t.Fatal(err)
	}
	got := must[*gen.RunDetail](t)(c.GetRun(t.Context(), gen.GetRunParams{Run: run.ID.UUID}))
	if got.Status != gen.StatusTechnicalError || got.Reason.Value != "exit code 3" || got.AgentID != caller.AgentID.UUID ||
		len(got.Transcript) != 1 || got.Transcript[0].Text != "hello" {
		t.Errorf("run: %+v", got)
	}
	for want, params := range map[int]gen.ListRunsParams{
		2: {Agent: gen.NewOptString("echo")},
		1: {Status: gen.NewOptStatus(gen.StatusTechnicalError)},
		0: {Status: gen.NewOptStatus(gen.StatusTerminated)},
	} {
		if page := must[*gen.RunPage](t)(c.ListRuns(t.Context(), params)); len(page.Runs) != want {
			t.Errorf("%+v: %d runs", params, len(page.Runs))
		}
	}
	if p := problem(t, second(c.GetRun(t.Context(), gen.GetRunParams{Run: uuid.New()}))); p.StatusCode != http.StatusNotFound {
		t.Errorf("unknown run: %+v", p)
	}
	if p := problem(t, second(c.ListRuns(t.Context(), gen.ListRunsParams{Agent: gen.NewOptString("nobody")}))); p.StatusCode != http.StatusNotFound {
		t.Errorf("runs of nobody: %+v", p)
	}
}

func TestRefusedRequestsAreProblems(t *testing.T) {
	_, _, url := newClient(t)
	for _, c := range []struct {
		method, path, body string
		status             int
	}{
		{http.MethodGet, "/api/v1/nothing", "", 404},
		{http.MethodDelete, "/api/v1/orgs", "", 405},
		{http.MethodGet, "/api/v1/runs/nope", "", 422},
		{http.MethodGet, "/api/v1/runs?limit=0", "", 422},
		{http.MethodGet, "/api/v1/runs/" + uuid.NewString() + "/files/content", "", 422},
		{http.MethodPost, "/api/v1/orgs", "{", 422},
		{http.MethodPost, "/api/v1/orgs", `{"name":""}`, 422},
		{http.MethodPost, "/api/v1/orgs", `{"name":"` + strings.Repeat("x", 9<<20) + `"}`, 413},
	} {
		req := must[*http.Request](t)(http.NewRequestWithContext(t.Context(), c.method, url+c.path, strings.NewReader(c.body)))
		req.Header.Set("Content-Type", "application/json")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if res.StatusCode != c.status || res.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s: %d %s", c.method, c.path, res.StatusCode, res.Header.Get("Content-Type"))
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHealth(t *testing.T) {
	store := storagetest.Open(t)
	ready := true
	h := web.Health(store, func() bool { return ready })
	ask := func(path string) int {
		t.Helper()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w.Code
	}
	want := func(when string, healthz, readyz int) {
		t.Helper()
		if h, r := ask("/healthz"), ask("/readyz"); h != healthz || r != readyz {
			t.Errorf("%s: healthz %d, readyz %d", when, h, r)
		}
	}
	want("serving", 200, 200)
	ready = false
	want("draining", 200, 503)
	ready = true
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	want("the store is closed", 200, 503)
}

// local is a client's security on the socket, where there is none.
type local struct{}

func (local) PersonalToken(context.Context, gen.OperationName) (gen.PersonalToken, error) {
	return gen.PersonalToken{}, ogenerrors.ErrSkipClientSecurity
}
