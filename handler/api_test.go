package handler

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"

	"agentrun/gen"
	"agentrun/storage"
	"agentrun/storage/storagetest"
	"agentrun/storage/workspace"
)

// api is a public API over real storage, served over real HTTP. Nothing
// executes runs: tests move them along with storage's own methods.
type api struct {
	t      *testing.T
	url    string
	dbPath string
	store  *storage.Store
	spaces *workspace.Store
}

func newAPI(t *testing.T, change ...func(*Config)) *api {
	t.Helper()
	a := &api{t: t, dbPath: filepath.Join(t.TempDir(), "agentrun.db"), spaces: storagetest.Workspaces(t)}
	a.store = storagetest.OpenFile(t, a.dbPath, storage.Options{})
	cfg := Config{Store: a.store, Workspaces: a.spaces}
	for _, c := range change {
		c(&cfg)
	}
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	a.url = server.URL
	return a
}

// account is an agent with a key, and a client that uses it.
type account struct {
	*api
	agent  storage.Agent
	key    storage.Key
	secret string
	client *gen.Client
}

func (a *api) account(org, file string) *account {
	a.t.Helper()
	acc := &account{api: a, agent: storagetest.MustApply(a.t, a.store, org, file)}
	acc.key, acc.secret = storagetest.MustKey(a.t, a.store, acc.agent)
	acc.client = a.client(acc.secret)
	return acc
}

func (a *api) client(key string) *gen.Client {
	a.t.Helper()
	client, err := gen.NewClient(a.url, bearer(key))
	if err != nil {
		a.t.Fatal(err)
	}
	return client
}

// bearer is a source of credentials that sends a key the preferred way, and
// nothing when it is empty.
type bearer string

func (b bearer) BearerKey(context.Context, gen.OperationName) (gen.BearerKey, error) {
	return gen.BearerKey{Token: string(b)}, nil
}

func (bearer) HeaderKey(context.Context, gen.OperationName) (gen.HeaderKey, error) {
	return gen.HeaderKey{APIKey: "ignored, because the other header counts"}, nil
}

// request returns a create request of the account's agent.
func (acc *account) request(input string) *gen.PublicCreateAgentRequest {
	return &gen.PublicCreateAgentRequest{
		Name: "run", TemplateID: acc.agent.ID.UUID, InputText: gen.NewOptNilString(input),
	}
}

// mustCreate creates a run through the generated client.
func (acc *account) mustCreate(req *gen.PublicCreateAgentRequest) uuid.UUID {
	acc.t.Helper()
	res, err := acc.client.CreateAgent(acc.t.Context(), req)
	if err != nil {
		acc.t.Fatal(err)
	}
	created, ok := res.(*gen.PublicCreateAgentResponse)
	if !ok {
		acc.t.Fatalf("POST: %T %+v", res, res)
	}
	return created.AgentID
}

// mustGet gets a run through the generated client.
func (acc *account) mustGet(run uuid.UUID) *gen.PublicAgentStatusResponse {
	acc.t.Helper()
	res, err := acc.client.GetAgent(acc.t.Context(), gen.GetAgentParams{AgentID: run})
	if err != nil {
		acc.t.Fatal(err)
	}
	status, ok := res.(*gen.PublicAgentStatusResponse)
	if !ok {
		acc.t.Fatalf("GET: %T %+v", res, res)
	}
	return status
}

// answered is a raw answer.
type answered struct {
	status int
	header http.Header
	body   string
}

// send sends a request as it is given; headers are name, value pairs.
func (a *api) send(method, path, body string, headers ...string) answered {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), method, a.url+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		a.t.Fatal(err)
	}
	return answered{res.StatusCode, res.Header, strings.TrimSuffix(string(raw), "\n")}
}

// post sends a JSON body with the account's key.
func (acc *account) post(body string) answered {
	acc.t.Helper()
	return acc.send(http.MethodPost, "/v1/agents", body, "Authorization", "Bearer "+acc.secret, "Content-Type", "application/json")
}

// get asks for a run with the account's key.
func (acc *account) get(run string) answered {
	acc.t.Helper()
	return acc.send(http.MethodGet, "/v1/agents/"+run, "", "Authorization", "Bearer "+acc.secret)
}

// wantDetail checks a failure of the shape {"detail": "…"}, to the letter.
func (a *api) wantDetail(what string, got answered, status int, detail string) {
	a.t.Helper()
	if want := `{"detail":"` + detail + `"}`; got.status != status || got.body != want {
		a.t.Errorf("%s: %d %s, want %d %s", what, got.status, got.body, status, want)
	}
	if ct := got.header.Get("Content-Type"); !strings.HasPrefix(ct, "application/json") {
		a.t.Errorf("%s: content type %q", what, ct)
	}
}
