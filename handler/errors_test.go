package handler

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/gen"
	"agentrun/storage"
	"agentrun/storage/storagetest"
)

const (
	otherFile = "name: other\ncommand: [cat]\n"
	modelFile = "name: thinker\nmodel: local/small\n"
)

// TestSection7 has every row of the specification's table of errors, through
// the generated client: its types are the contract's statuses and bodies.
func TestSection7(t *testing.T) {
	a := newAPI(t)
	acc := a.account(storage.DefaultOrg, storagetest.EchoFile)
	unknown := "ak_" + strings.Repeat("0", 49)
	post := func(acc *account, req *gen.PublicCreateAgentRequest) any {
		t.Helper()
		res, err := acc.client.CreateAgent(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	get := func(c *gen.Client, run uuid.UUID) any {
		t.Helper()
		res, err := c.GetAgent(t.Context(), gen.GetAgentParams{AgentID: run})
		if err != nil {
			t.Fatal(err)
		}
		return res
	}
	same := func(row string, got, want any) {
		t.Helper()
		if fmt.Sprintf("%#v", got) != fmt.Sprintf("%#v", want) {
			t.Errorf("%s: got %#v, want %#v", row, got, want)
		}
	}

	a.wantDetail("401 POST without a key", a.send(http.MethodPost, "/v1/agents", "{}"), 401, "Missing API key")
	a.wantDetail("401 GET without a key", a.send(http.MethodGet, "/v1/agents/"+uuid.NewString(), ""), 401, "Missing API key")
	same("401 GET unknown key", get(a.client(unknown), uuid.New()), &gen.GetAgentUnauthorized{Detail: "Invalid API key"})
	invalid := &account{api: a, agent: acc.agent, client: a.client(unknown)}
	same("401 POST unknown key", post(invalid, acc.request("x")), &gen.CreateAgentUnauthorized{Detail: "Invalid API key"})

	wrong := acc.request("x")
	wrong.TemplateID = uuid.New()
	same("403", post(acc, wrong), &gen.CreateAgentForbidden{Detail: "API key is not valid for the requested template"})

	gone := a.account(storage.DefaultOrg, "name: gone\ncommand: [cat]\n")
	if _, err := a.store.DeleteAgent(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	same("404 POST", post(gone, gone.request("x")), &gen.CreateAgentNotFound{Detail: "Agent template not found"})
	same("404 GET", get(acc.client, uuid.New()), &gen.GetAgentNotFound{Detail: "Agent not found"})

	archived := a.account(storage.DefaultOrg, "name: archived\ncommand: [cat]\n")
	if _, err := a.store.SetArchived(t.Context(), "archived", true); err != nil {
		t.Fatal(err)
	}
	same("409", post(archived, archived.request("x")),
		&gen.CreateAgentConflict{Detail: `agent "archived" is archived and takes no new runs and no new input`})

	large := acc.request("x")
	large.Files = []gen.PublicAgentFileInput{
		{Filename: "a", ContentBase64: base64.StdEncoding.EncodeToString(make([]byte, 10<<20))},
		{Filename: "b", ContentBase64: "QQ=="},
	}
	same("413", post(acc, large), &gen.CreateAgentRequestEntityTooLarge{Detail: "total file size exceeds the allowed limit"})

	broken := acc.request("x")
	broken.Files = []gen.PublicAgentFileInput{{Filename: "a b.txt", ContentBase64: "@@@@"}}
	detail := gen.PublicErrorResponse{Detail: "file 'a b.txt' is not valid base64"}
	base64Answer := gen.NewPublicErrorResponseCreateAgentUnprocessableEntity(detail)
	same("422 base64", post(acc, broken), &base64Answer)

	thinker := a.account(storage.DefaultOrg, modelFile)
	detail = gen.PublicErrorResponse{Detail: "model 'local/small' cannot be used: no provider 'local' is configured on this server"}
	modelAnswer := gen.NewPublicErrorResponseCreateAgentUnprocessableEntity(detail)
	same("422 model", post(thinker, thinker.request("x")), &modelAnswer)

	if got := acc.post(`{"template_id":"` + acc.agent.ID.String() + `"}`); got.status != 422 || !strings.Contains(got.body, `"missing"`) {
		t.Errorf("422 list of POST: %d %s", got.status, got.body)
	}
	if got := acc.get("nope"); got.status != 422 || !strings.Contains(got.body, `"uuid_parsing"`) {
		t.Errorf("422 list of GET: %d %s", got.status, got.body)
	}
	// 502 and 503 are in store_failure_test.go.
}

// TestOrderOfFaults sends one request with every fault and mends them one by
// one, in the order in which they must be answered.
func TestOrderOfFaults(t *testing.T) {
	a := newAPI(t, func(c *Config) { c.MaxBody = 1 << 20 })
	acc := a.account(storage.DefaultOrg, modelFile)
	thinker := acc.agent.ID.String()
	other := a.account(storage.DefaultOrg, otherFile).agent.ID.String()
	if _, err := a.store.SetArchived(t.Context(), thinker, true); err != nil {
		t.Fatal(err)
	}
	files := `"files":[{"filename":"a","content_base64":"QQ"}]`
	long := `{"pad":"` + strings.Repeat("x", 1<<20) + `"}`
	send := func(key, body string) answered {
		t.Helper()
		return a.send(http.MethodPost, "/v1/agents", body, "Authorization", "Bearer "+key, "Content-Type", "application/json")
	}
	a.wantDetail("the key comes first", send("ak_x", long), 401, "Invalid API key")
	a.wantDetail("then the body's length", send(acc.secret, long), 413, "request body exceeds the allowed limit")
	if got := send(acc.secret, `{"template_id":"`+other+`",`+files+`}`); got.status != 422 || !strings.Contains(got.body, `"detail":[`) {
		t.Errorf("then the list: %d %s", got.status, got.body)
	}
	a.wantDetail("then the template", send(acc.secret, `{"name":"n","template_id":"`+other+`",`+files+`}`), 403,
		"API key is not valid for the requested template")
	body := `{"name":"n","template_id":"` + thinker + `",` + files + `}`
	if got := send(acc.secret, body); got.status != 409 {
		t.Errorf("then the archived agent: %d %s", got.status, got.body)
	}
	if _, err := a.store.SetArchived(t.Context(), thinker, false); err != nil {
		t.Fatal(err)
	}
	a.wantDetail("then the files", send(acc.secret, body), 422, "file 'a' is not valid base64")
	body = strings.Replace(body, `"QQ"`, `"QQ=="`, 1)
	if got := send(acc.secret, body); got.status != 422 || !strings.Contains(got.body, "model 'local/small'") {
		t.Errorf("then the model: %d %s", got.status, got.body)
	}
	if _, err := a.store.DeleteAgent(t.Context(), thinker); err != nil {
		t.Fatal(err)
	}
	a.wantDetail("a deleted agent comes before the files", send(acc.secret, strings.Replace(body, `"QQ=="`, `"QQ"`, 1)), 404,
		"Agent template not found")
}

func TestForeignRunsAndUnknownRunsAreTheSameBytes(t *testing.T) {
	a := newAPI(t)
	if _, err := a.store.CreateOrg(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	mine := a.account(storage.DefaultOrg, storagetest.EchoFile)
	sibling := a.account(storage.DefaultOrg, otherFile)
	foreign := a.account("acme", storagetest.EchoFile)
	id := mine.mustCreate(mine.request("secret")).String()
	if got := mine.get(id); got.status != 200 {
		t.Fatalf("its own run: %d %s", got.status, got.body)
	}
	want := mine.get(uuid.NewString())
	a.wantDetail("an unknown run", want, 404, "Agent not found")
	want.header.Del("Date")
	for name, acc := range map[string]*account{"another agent": sibling, "another organisation": foreign} {
		got := acc.get(id)
		got.header.Del("Date")
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

func TestUnknownRoutesAndMethods(t *testing.T) {
	a := newAPI(t)
	for _, path := range []string{"/", "/v1", "/v1/", "/v1/agents/", "/v1/agent", "/v2/agents", "/v1/agents/a/b", "/v1//agents", "/v1/openapi.json/"} {
		a.wantDetail(path, a.send(http.MethodGet, path, ""), 404, "Not Found")
	}
	for path, allow := range map[string]string{
		"/v1/agents": "POST", "/v1/agents/" + uuid.NewString(): "GET", "/v1/openapi.json": "GET",
	} {
		for _, method := range []string{http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions} {
			got := a.send(method, path, "")
			a.wantDetail(method+" "+path, got, 405, "Method Not Allowed")
			if got.header.Get("Allow") != allow {
				t.Errorf("%s %s: Allow %q, want %q", method, path, got.header.Get("Allow"), allow)
			}
		}
	}
}

func TestEveryErrorHasAnAnswer(t *testing.T) {
	// What no row names is a fault of ours: logged, never sent.
	cause := errors.New("bolt: page 7 is on fire")
	if got := answerFor(http.MethodPost, cause); got != internalError {
		t.Errorf("POST: %+v", got)
	}
	if got := answerFor(http.MethodGet, cause); got != lookupFailed {
		t.Errorf("GET: %+v", got)
	}
}
