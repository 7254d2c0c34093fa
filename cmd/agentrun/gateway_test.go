package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"agentrun/internal/needs"
	"agentrun/run"
)

const (
	// programVariable names the program that .ci/programs/check installs.
	programVariable = "AGENTRUN_TEST_PROGRAM"
	keyUpstream     = "sk-real-0123456789abcdef"
	modelSays       = "Hello from the recorded model."
)

// recordedResponse is a stream of OpenAI's Responses API, shortened to what
// programs read of it.
const recordedResponse = `event: response.created
data: {"type":"response.created","sequence_number":0,"response":{"id":"resp_1","object":"response","status":"in_progress","usage":null}}

event: response.output_item.done
data: {"type":"response.output_item.done","sequence_number":1,"output_index":0,"item":{"id":"msg_1","type":"message","role":"assistant","status":"completed","content":[{"type":"output_text","text":"` + modelSays + `","annotations":[]}]}}

event: response.completed
data: {"type":"response.completed","sequence_number":2,"response":{"id":"resp_1","object":"response","status":"completed","output":[],"usage":{"input_tokens":1200,"input_tokens_details":{"cached_tokens":200},"output_tokens":34,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":1234}}}

`

// playedProvider answers every request with the recorded response, and notes
// the keys that it was asked with.
func playedProvider(t *testing.T) (url string, keys func() []string) {
	t.Helper()
	var mu sync.Mutex
	var seen []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, recordedResponse)
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), seen...)
	}
}

// runProgram runs an agent of the real binary behind a gateway once, and returns
// its output, its history and the whole of the data directory.
func runProgram(t *testing.T, provider, file, input string, flags ...string) (output, history, kept string) {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("AGENTRUN_PROVIDER_LAB_KEY", keyUpstream)
	path, data := filepath.Join(dir, "agent.yaml"), filepath.Join(dir, "data")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	var agent, key struct{ ID, Key string }
	manage(t, data, &agent, "agent", "apply", "-f", path)
	manage(t, data, &key, "key", "create", agent.ID)
	p := startServe(t, data, append([]string{"--provider", "lab=openai," + provider + "/v1,price=1/10"}, flags...)...)
	cmd := exec.CommandContext(t.Context(), "agentrun", "run", input)
	cmd.Env = append(os.Environ(), "AGENTRUN_URL="+p.url, "AGENTRUN_KEY="+key.Key, "AGENTRUN_TEMPLATE="+agent.ID)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	if err != nil {
		t.Errorf("run: %v\n%s", err, stderr.String())
	}
	_, id, _ := strings.Cut(stderr.String(), "run ")
	id, _, _ = strings.Cut(id, ":")
	events, err := exec.CommandContext(t.Context(), "agentrun", "runs", "events", id, "--data", data).CombinedOutput()
	if err != nil {
		t.Errorf("events of %q: %v\n%s", id, err, events)
	}
	_ = p.cmd.Process.Kill()
	<-p.ended
	kept = p.log.String() + stderr.String()
	err = filepath.WalkDir(data, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		kept += string(content)
		return err
	})
	if err != nil {
		t.Error(err)
	}
	return string(text), string(events), kept
}

const modelCalled = `{"model":"lab/gpt-5","spent":{"calls":1,"input":1200,"cached":200,"output":34,"cost":1540}`

func TestProgramBehindTheGateway(t *testing.T) {
	url, keys := playedProvider(t)
	output, history, kept := runProgram(t, url, `name: asker
command:
- sh
- -c
- |
  echo "with $OPENAI_API_KEY"
  /usr/bin/curl -s "$OPENAI_BASE_URL/responses" -H "Authorization: Bearer $OPENAI_API_KEY" -d '{"model":"gpt-5","stream":true}'
gateway: [lab]
limits: {steps: 5, tokens: 100000, cost: 1}
`, "hello")
	if !strings.Contains(output, modelSays) || !strings.Contains(output, "with agentrun-adds-the-key") {
		t.Errorf("got %q", output)
	}
	if !strings.Contains(history, "model_called") || !strings.Contains(history, modelCalled) {
		t.Errorf("got %s", history)
	}
	if got := keys(); len(got) != 1 || got[0] != "Bearer "+keyUpstream {
		t.Errorf("got %q", got)
	}
	if strings.Contains(kept+output+history, keyUpstream) {
		t.Error("the key was kept")
	}
}

func TestProvidersOfTheGateway(t *testing.T) {
	providers, err := openProviders([]string{"lab=openai,http://lab.test/v1", "mind=anthropic,http://mind.test", "script=script," + t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if u := providers["lab"].Upstream; u == nil || *u != (run.Upstream{Dialect: "openai", BaseURL: "http://lab.test/v1"}) {
		t.Errorf("got %+v", u)
	}
	if u := providers["mind"].Upstream; u == nil || u.Dialect != "anthropic" {
		t.Errorf("got %+v", u)
	}
	if u := providers["script"].Upstream; u != nil {
		t.Errorf("a script is at %+v", u)
	}
}

// An agent that other people wrote answers with what its model says, and does
// not know where that is.
func TestProgramOfOthers(t *testing.T) {
	program := os.Getenv(programVariable)
	if program == "" {
		needs.Lacking(t, programVariable+" is not set: a program that other people wrote; .ci/programs/check installs it")
	}
	url, keys := playedProvider(t)
	dir := filepath.Dir(program)
	output, history, kept := runProgram(t, url, `name: codex
command:
- sh
- -c
- |
  exec `+program+` exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -m gpt-5 -c model_provider=gateway \
    -c 'model_providers.gateway={name="gateway",base_url="'"$OPENAI_BASE_URL"'",env_key="OPENAI_API_KEY",wire_api="responses"}' -
gateway: [lab]
read: [`+dir+`]
limits: {turn: 2m, steps: 5}
`, "Say hello.", "--allow-read", dir)
	if !strings.Contains(output, modelSays) || !strings.Contains(history, modelCalled) {
		t.Errorf("got %q with %s", output, history)
	}
	for _, key := range keys() {
		if key != "Bearer "+keyUpstream {
			t.Errorf("asked with %q", key)
		}
	}
	if len(keys()) == 0 || strings.Contains(kept+output+history, keyUpstream) {
		t.Errorf("asked %d times, or the key was kept", len(keys()))
	}
}
