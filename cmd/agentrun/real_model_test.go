package main

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

const (
	// realModelURL and realModel are the variables that say where a model is, and
	// its name.
	realModelURL = "AGENTRUN_TEST_MODEL_URL"
	realModel    = "AGENTRUN_TEST_MODEL"

	// realModelTries is how often a run may fail because of what the model says.
	realModelTries = 3
	// realModelPatience is longer than a turn may take.
	realModelPatience = 3 * time.Minute

	realModelNote = "The meeting is on Tuesday."
)

// TestRealModel lets a model that thinks for itself, after a fashion, work with
// its tools. What it says may make no sense; everything around has to.
func TestRealModel(t *testing.T) {
	base, name := os.Getenv(realModelURL), os.Getenv(realModel)
	if base == "" || name == "" {
		t.Skip("NOT TESTED: agents with a real model. .ci/model/check serves one and runs this test; " +
			realModelURL + " and " + realModel + " name another.")
	}
	t.Run("answers", func(t *testing.T) {
		b := tryRealModel(t, base, name, "What is the capital of France?", "Say hello.", "What is the capital of Italy?")
		b.check()
	})
	t.Run("calls a tool", func(t *testing.T) {
		call := `<tool_call>` + "\n" + `{"name": "read_file", "arguments": {"path": "notes.txt"}}` + "\n" + `</tool_call>`
		b := tryRealModel(t, base, name, "Repeat: "+call, "Please repeat: "+call, call)
		b.check()
		b.checkCall()
	})
}

// realBench is a server whose agent is a real model, and a run of it.
type realBench struct {
	*process
	name    string
	witness *modelWitness
	run     string
	answer  answer
	took    time.Duration
}

// tryRealModel gives the model the inputs, each on a server of its own, until a
// run is finished.
func tryRealModel(t *testing.T, base, name string, inputs ...string) *realBench {
	t.Helper()
	for try, input := range inputs[:realModelTries] {
		b := newRealBench(t, base, name)
		b.ask(input)
		if b.answer.LoopStatus == "finished" {
			t.Logf("finished at try %d of %d", try+1, realModelTries)
			return b
		}
		reason := b.failure()
		t.Logf("try %d of %d: %s: %s", try+1, realModelTries, b.answer.LoopStatus, reason)
		if b.answer.LoopStatus != "technical_error" || !modelsFault(reason) {
			t.FailNow()
		}
	}
	t.Fatalf("%d runs failed", realModelTries)
	return nil
}

// modelsFault says whether a turn failed because the model found no end.
func modelsFault(reason string) bool {
	return slices.ContainsFunc([]string{"limits.steps", "cut off at its limit of tokens", "time limit was reached"},
		func(fault string) bool { return strings.Contains(reason, fault) })
}

func newRealBench(t *testing.T, base, name string) *realBench {
	t.Helper()
	b := &realBench{name: name, witness: newModelWitness(t, base)}
	data, file := filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "reader.yaml")
	text := "name: reader\nmodel: local/" + name + "\ninstructions: Answer with one short sentence.\n" +
		"tools: [read_file, list_files]\nlimits: {steps: 6, turn: 2m}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	b.process = startServe(t, data, "--provider", "local=openai,"+b.witness.url+",window=8192,price=1/10")
	var agent, key struct{ ID, Key string }
	manage(t, data, &agent, "agent", "apply", "-f", file)
	manage(t, data, &key, "key", "create", "reader")
	b.agent, b.key = agent.ID, key.Key
	return b
}

// ask makes a run of an input and a file, and waits for its end, as a client
// does.
func (b *realBench) ask(input string) {
	b.t.Helper()
	text, err := json.Marshal(map[string]any{
		"name": "real", "template_id": b.agent, "input_text": input,
		"files": []map[string]any{{"filename": "notes.txt", "content_base64": []byte(realModelNote)}},
	})
	if err != nil {
		b.t.Fatal(err)
	}
	begun := time.Now()
	status, body, err := b.send(http.MethodPost, "/v1/agents", bytes.NewReader(text))
	b.run = runID(b.t, status, body, err)
	deadline, tick := time.After(realModelPatience), time.NewTicker(100*time.Millisecond)
	defer tick.Stop()
	for {
		status, body, err := b.send(http.MethodGet, "/v1/agents/"+b.run, http.NoBody)
		if err == nil && status == http.StatusOK {
			err = json.Unmarshal([]byte(body), &b.answer)
		}
		if err != nil || status != http.StatusOK {
			b.t.Fatalf("GET: %d %s %v", status, body, err)
		}
		if b.answer.LoopStatus != "running" {
			b.took = time.Since(begun)
			return
		}
		select {
		case <-tick.C:
		case <-deadline:
			b.t.Fatalf("the run goes on after %s", realModelPatience)
		}
	}
}

// failure is why the turn failed.
func (b *realBench) failure() string {
	b.t.Helper()
	for _, e := range b.events(b.run) {
		if e.Kind == "turn_failed" {
			return string(e.Data)
		}
	}
	return "no event says why"
}

// realSpent is what models took, as the command line prints it.
type realSpent struct{ Calls, Input, Cached, Output, Cost int64 }

// check holds what agentrun tells of a finished run against what the model's
// server was asked and answered.
func (b *realBench) check() {
	b.t.Helper()
	transcript := b.answer.Transcript
	if len(transcript) != 2 || transcript[1].Role != "output_from_agent" || strings.TrimSpace(transcript[1].Text) == "" {
		b.t.Errorf("the transcript is %q", transcript)
	}
	var shown struct {
		Status string
		Spent  realSpent
	}
	manage(b.t, b.data, &shown, "runs", "show", b.run)
	if shown.Status != "finished" {
		b.t.Errorf("the run is shown as %s", shown.Status)
	}
	requests, answered := b.witness.end()
	for i, r := range requests {
		var tools []string
		for _, tool := range r.Tools {
			tools = append(tools, tool.Function.Name)
		}
		if r.Model != b.name || !r.Stream || !r.StreamOptions.IncludeUsage || !slices.Equal(tools, []string{"read_file", "list_files"}) {
			b.t.Errorf("request %d: model %q, stream %v, %+v, tools %q", i+1, r.Model, r.Stream, r.StreamOptions, tools)
		}
	}
	want := realSpent{Calls: int64(len(requests)), Cached: shown.Spent.Cached}
	for _, u := range answered {
		want.Input += u.Input
		want.Output += u.Output
	}
	want.Cost = want.Input + 10*want.Output
	if want.Input == 0 || want.Output == 0 || shown.Spent != want {
		b.t.Errorf("the run took %+v, the model's server says %+v", shown.Spent, want)
	}
	b.checkUsage(want)
	b.t.Logf("%d requests, %d tokens in (%d of them cached), %d out, %.1f s; the model says %q",
		want.Calls, want.Input, want.Cached, want.Output, b.took.Seconds(), transcript[len(transcript)-1].Text)
}

// checkUsage looks for what the only run took wherever it is added up.
func (b *realBench) checkUsage(want realSpent) {
	b.t.Helper()
	var usage []struct {
		Kind  string
		Spent realSpent
	}
	manage(b.t, b.data, &usage, "usage")
	var kinds []string
	for _, u := range usage {
		kinds = append(kinds, u.Kind)
		if u.Spent != want {
			b.t.Errorf("the %s took %+v, want %+v", u.Kind, u.Spent, want)
		}
	}
	if !slices.Equal(kinds, []string{"organisation", "agent", "key"}) {
		b.t.Errorf("the usage is that of %q", kinds)
	}
}

// checkCall wants a call of the model's in the history, with the delivered file
// as its result, and both in what the model was told next.
func (b *realBench) checkCall() {
	b.t.Helper()
	var called, returned bool
	for _, e := range b.events(b.run) {
		called = called || e.Kind == "tool_called"
		returned = returned || e.Kind == "tool_returned" && called && strings.Contains(string(e.Data), realModelNote)
	}
	if !returned {
		b.t.Errorf("no tool was called that read the file: %v", b.events(b.run))
	}
	requests, _ := b.witness.end()
	last := requests[len(requests)-1].Messages
	for i, m := range last {
		if i > 0 && m.Role == "tool" && m.ToolCallID != "" && strings.Contains(m.Content, realModelNote) {
			return
		}
	}
	b.t.Errorf("the model was not told what the file says: %+v", last)
}

// modelRequest is what agentrun asks of a model.
type modelRequest struct {
	Model         string
	Stream        bool
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Tools []struct {
		Function struct{ Name string }
	}
	Messages []struct {
		Role, Content string
		ToolCallID    string `json:"tool_call_id"`
	}
}

// modelUsage is what an answer took.
type modelUsage struct {
	Input  int64 `json:"prompt_tokens"`
	Output int64 `json:"completion_tokens"`
}

// modelWitness stands between agentrun and a model's server, and notes what
// passes.
type modelWitness struct {
	t      *testing.T
	url    string
	server *httptest.Server

	mu       sync.Mutex
	requests []modelRequest
	answers  []*bytes.Buffer
}

func newModelWitness(t *testing.T, base string) *modelWitness {
	t.Helper()
	target, err := url.Parse(base)
	if err != nil {
		t.Fatal(err)
	}
	w := &modelWitness{t: t}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) },
		ModifyResponse: func(res *http.Response) error {
			res.Body = w.note(res.Body)
			return nil
		},
	}
	w.server = httptest.NewServer(http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.pass(proxy, rw, r)
	}))
	t.Cleanup(w.server.Close)
	w.url = w.server.URL
	return w
}

// pass notes a request before it goes on.
func (w *modelWitness) pass(proxy http.Handler, rw http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var request modelRequest
	if err == nil {
		err = json.Unmarshal(body, &request)
	}
	if err != nil || r.Method != http.MethodPost || r.URL.Path != "/chat/completions" {
		w.t.Errorf("the model's server was sent %s %s %q %v", r.Method, r.URL.Path, body, err)
	}
	w.mu.Lock()
	w.requests = append(w.requests, request)
	w.mu.Unlock()
	r.Body = io.NopCloser(bytes.NewReader(body))
	proxy.ServeHTTP(rw, r)
}

// note notes an answer while it is read.
func (w *modelWitness) note(body io.ReadCloser) io.ReadCloser {
	noted := &bytes.Buffer{}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answers = append(w.answers, noted)
	return struct {
		io.Reader
		io.Closer
	}{io.TeeReader(body, noted), body}
}

// end lets nothing pass any more, and returns what was asked, and what the
// answers took by their own account.
func (w *modelWitness) end() ([]modelRequest, []modelUsage) {
	w.t.Helper()
	w.server.Close()
	w.mu.Lock()
	defer w.mu.Unlock()
	var answered []modelUsage
	for _, answer := range w.answers {
		for line := range strings.Lines(answer.String()) {
			data, found := strings.CutPrefix(strings.TrimSpace(line), "data: ")
			if !found || data == "[DONE]" {
				continue
			}
			var chunk struct{ Usage *modelUsage }
			if err := json.Unmarshal([]byte(data), &chunk); err != nil {
				w.t.Errorf("the model's server answered %q: %v", data, err)
			}
			if chunk.Usage != nil {
				answered = append(answered, *chunk.Usage)
			}
		}
	}
	return w.requests, answered
}
