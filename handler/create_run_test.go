package handler

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"

	"agentrun/gen"
	"agentrun/storage"
	"agentrun/storage/storagetest"
)

func TestCreateThenGet(t *testing.T) {
	a := newAPI(t)
	acc := a.account(storage.DefaultOrg, storagetest.EchoFile)
	id := acc.mustCreate(acc.request("hello"))
	if id.Version() != 7 {
		t.Errorf("run ID %s is not time-ordered", id)
	}
	if got := acc.mustGet(id); got.AgentID != id || got.LoopStatus != gen.LoopStatusRunning || len(got.Transcript) != 0 {
		t.Errorf("at once: %+v", got)
	}
	turn, err := a.store.ClaimNext(t.Context(), storage.AgentID{}, "none")
	if err != nil {
		t.Fatal(err)
	}
	if err := a.store.FinishTurn(t.Context(), turn.Claim, "bye <&> \u2028 \x00"); err != nil {
		t.Fatal(err)
	}
	want := []gen.TranscriptMessage{
		{Role: gen.TranscriptMessageRoleInputToAgent, Text: "hello"},
		{Role: gen.TranscriptMessageRoleOutputFromAgent, Text: "bye <&> \u2028 \x00"},
	}
	if got := acc.mustGet(id); got.LoopStatus != gen.LoopStatusFinished || !slices.Equal(got.Transcript, want) {
		t.Errorf("after the turn: %+v", got)
	}
}

func TestCreateWithoutInputIsIdle(t *testing.T) {
	a := newAPI(t)
	acc := a.account(storage.DefaultOrg, storagetest.EchoFile)
	absent := acc.request("")
	absent.InputText = gen.OptNilString{}
	null := acc.request("")
	null.InputText.SetToNull()
	for name, req := range map[string]*gen.PublicCreateAgentRequest{"absent": absent, "null": null} {
		if got := acc.mustGet(acc.mustCreate(req)); got.LoopStatus != gen.LoopStatusFinished || len(got.Transcript) != 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := acc.mustGet(acc.mustCreate(acc.request(""))); got.LoopStatus != gen.LoopStatusRunning {
		t.Errorf("an empty input is an input: %+v", got)
	}
	// The field is there also when there is nothing in it.
	if got := acc.get(acc.mustCreate(absent).String()); !strings.HasSuffix(got.body, `"loop_status":"finished","transcript":[]}`) {
		t.Errorf("body: %s", got.body)
	}
}

func TestByteOrderMarkIsPassedOver(t *testing.T) {
	a := newAPI(t)
	acc := a.account(storage.DefaultOrg, storagetest.EchoFile)
	body := `{"name":"n","template_id":"` + acc.agent.ID.String() + `"}`
	if got := acc.post("\ufeff" + body); got.status != 201 {
		t.Errorf("with one mark: %d %s", got.status, got.body)
	}
	if got := acc.post("\ufeff\ufeff" + body); got.status != 422 {
		t.Errorf("with two: %d %s", got.status, got.body)
	}
	if got := acc.post("\ufeff"); got.status != 422 || !strings.Contains(got.body, `"missing"`) {
		t.Errorf("the mark alone: %d %s", got.status, got.body)
	}
}

func TestFilesAreDelivered(t *testing.T) {
	a := newAPI(t)
	acc := a.account(storage.DefaultOrg, storagetest.EchoFile)
	req := acc.request("look")
	req.Files = []gen.PublicAgentFileInput{
		{Filename: "notes.txt", ContentBase64: base64.StdEncoding.EncodeToString([]byte("one"))},
		{Filename: "../../notes.txt", ContentBase64: base64.StdEncoding.EncodeToString([]byte("two"))},
		{Filename: ".env", ContentBase64: "Zh=="}, // padding bits that are not zero
		{Filename: "bytes", ContentBase64: base64.StdEncoding.EncodeToString([]byte{0, 255, 10})},
	}
	id := acc.mustCreate(req)
	for name, want := range map[string]string{
		"notes.txt": "one", "notes-2.txt": "two", "env": "f", "bytes": "\x00\xff\n",
	} {
		got, err := os.ReadFile(filepath.Join(a.spaces.Path(id), name))
		if err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	entries, err := os.ReadDir(a.spaces.Path(id))
	if err != nil || len(entries) != len(req.Files) {
		t.Errorf("%d entries, %v", len(entries), err)
	}
	_, events, err := a.store.StateAndEvents(t.Context(), storage.RunID{UUID: id}, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var delivered []string
	for _, e := range events {
		if e.Kind == storage.EventFileDelivered {
			delivered = append(delivered, string(e.Data))
		}
	}
	want := []string{
		`{"name":"notes.txt","size":3}`, `{"name":"notes-2.txt","given_name":"../../notes.txt","size":3}`,
		`{"name":"env","given_name":".env","size":1}`, `{"name":"bytes","size":3}`,
	}
	if !slices.Equal(delivered, want) {
		t.Errorf("events %q, want %q", delivered, want)
	}
}

func TestContentThatIsNotBase64(t *testing.T) {
	a := newAPI(t)
	acc := a.account(storage.DefaultOrg, storagetest.EchoFile)
	long := strings.Repeat("QUJD", 300)
	for name, content := range map[string]string{
		"no padding": "QQ", "half the padding": "QQ=", "too much padding": "QUJD====", "only padding": "====",
		"line break": "QUJD\nQUJD", "line break at the end": "QUJD\n", "carriage return": "QUJD\r\nQUJD", "four line breaks": "\n\n\n\n",
		"blank": "QU D", "URL alphabet": "-_-_", "not ASCII": "QUJé", "padding inside": "QQ==QQ==",
		"padding inside at a read's end": strings.Repeat("QUJD", 255) + "QQ==" + "QUJD", "rubbish behind much": long + "@@@@",
		"NUL": "QUJ\x00", "lone padding": "Q===",
	} {
		req := acc.request("x")
		req.Files = []gen.PublicAgentFileInput{{Filename: "good", ContentBase64: "QQ=="}, {Filename: "bad", ContentBase64: content}}
		res, err := acc.client.CreateAgent(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		refused, ok := res.(*gen.CreateAgentUnprocessableEntity)
		if !ok || refused.PublicErrorResponse.Detail != "file 'bad' is not valid base64" {
			t.Errorf("%s: %+v", name, res)
		}
	}
	a.wantNoWorkspaces("after refused files")
}

// wantNoWorkspaces checks that nothing was left behind.
func (a *api) wantNoWorkspaces(when string) {
	a.t.Helper()
	entries, err := os.ReadDir(filepath.Dir(a.spaces.Path(uuid.New())))
	if err != nil || len(entries) != 0 {
		a.t.Errorf("%s: %v %v", when, entries, err)
	}
}

func TestSumOfTheFiles(t *testing.T) {
	a := newAPI(t)
	acc := a.account(storage.DefaultOrg, storagetest.EchoFile)
	zeros := func(n int) string { return base64.StdEncoding.EncodeToString(make([]byte, n)) }
	for _, c := range []struct {
		name   string
		files  []gen.PublicAgentFileInput
		status int
	}{
		{"exactly 10 MiB", []gen.PublicAgentFileInput{{Filename: "a", ContentBase64: zeros(10 << 20)}}, 201},
		{"one byte more", []gen.PublicAgentFileInput{{Filename: "a", ContentBase64: zeros(10<<20 + 1)}}, 413},
		{"exactly 10 MiB in two", []gen.PublicAgentFileInput{
			{Filename: "a", ContentBase64: zeros(10<<20 - 1)}, {Filename: "b", ContentBase64: zeros(1)},
		}, 201},
		{"one byte more in two", []gen.PublicAgentFileInput{
			{Filename: "a", ContentBase64: zeros(10 << 20)}, {Filename: "b", ContentBase64: zeros(1)},
		}, 413},
		{"a bad file before the sum is passed", []gen.PublicAgentFileInput{
			{Filename: "a", ContentBase64: "@@@@"}, {Filename: "b", ContentBase64: zeros(10<<20 + 1)},
		}, 422},
		{"a bad file behind", []gen.PublicAgentFileInput{
			{Filename: "a", ContentBase64: zeros(10<<20 + 1)}, {Filename: "b", ContentBase64: "@@@@"},
		}, 413},
		{"the file that passes it is bad", []gen.PublicAgentFileInput{
			{Filename: "a", ContentBase64: zeros(10 << 20)}, {Filename: "b", ContentBase64: "QUJD@@@@"},
		}, 422},
	} {
		req := acc.request("x")
		req.InputText = gen.OptNilString{}
		req.Files = c.files
		res, err := acc.client.CreateAgent(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		status := map[bool]int{true: 201}[is[*gen.PublicCreateAgentResponse](res)]
		if is[*gen.CreateAgentRequestEntityTooLarge](res) {
			status = 413
		}
		if is[*gen.CreateAgentUnprocessableEntity](res) {
			status = 422
		}
		if status != c.status {
			t.Errorf("%s: %T, want %d", c.name, res, c.status)
		}
	}
}

func is[T any](v any) bool {
	_, ok := v.(T)
	return ok
}

func TestRefusedRunLeavesNoFiles(t *testing.T) {
	a := newAPI(t)
	acc := a.account(storage.DefaultOrg, modelFile)
	req := acc.request("x")
	req.Files = []gen.PublicAgentFileInput{{Filename: "a", ContentBase64: "QQ=="}}
	res, err := acc.client.CreateAgent(t.Context(), req)
	if err != nil || !is[*gen.CreateAgentUnprocessableEntity](res) {
		t.Fatalf("%+v, %v", res, err)
	}
	a.wantNoWorkspaces("after the model was refused")
}
