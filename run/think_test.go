package run

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentrun/run/model"
	"agentrun/run/model/script"
	"agentrun/run/sandbox"
	"agentrun/run/secret"
	"agentrun/run/tool"
	"agentrun/storage"
	"agentrun/storage/agentfile"
)

// scripted returns a server whose model "script/a" follows a script.
func scripted(t *testing.T, text string) *Server {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := script.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	prices := []ModelPrice{{Models: "b*", Price: model.Price{Input: 9}}, {Models: "*", Price: model.Price{Input: 2, Output: 4}}}
	return &Server{workers: 1, providers: map[string]Provider{"script": {Client: client, Prices: prices}}}
}

const thinker = "name: thinker\nmodel: script/a\ntools: [shell, write_file, read_file]\n"

// A turn of a model works with its tools, and is in the history.
func TestModelTurn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	s := scripted(t, `
steps:
- say: I write it down.
  calls:
  - {tool: write_file, arguments: {path: notes/a.txt, content: "one\n"}}
  - {tool: shell, arguments: {command: "cat notes/a.txt; echo $GREETING $AGENTRUN_TURN"}}
  tokens: {input: 10, output: 5}
- say: "got ${result}"
  tokens: {input: 30, output: 7}
- say: "second: ${input}"
`)
	id := h.run(h.apply(thinker+"env: {GREETING: hello}\n"), "go")
	h.start(s)
	h.await(id, storage.StateFinished)
	if _, err := h.store.GiveInput(t.Context(), id, "more"); err != nil {
		t.Fatal(err)
	}
	watch := h.store.Watch(id)
	defer watch.Close()
	for len(h.transcript(id)) < 4 {
		<-watch.C
	}
	want := []string{"in: go", "out: got one\nhello 1\n\n[exit code 0]", "in: more", "out: second: more"}
	if diff := cmp.Diff(want, h.transcript(id)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	kinds := slices.DeleteFunc(h.kinds(id), func(k storage.EventKind) bool { return strings.HasPrefix(string(k), "input_") })
	if diff := cmp.Diff([]storage.EventKind{
		storage.EventRunCreated, storage.EventTurnStarted, storage.EventModelAnswered,
		storage.EventToolCalled, storage.EventToolReturned, storage.EventToolCalled, storage.EventToolReturned,
		storage.EventModelAnswered, storage.EventTurnFinished,
		storage.EventTurnStarted, storage.EventModelAnswered, storage.EventTurnFinished,
	}, kinds); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	spent := storage.Spent{Calls: 3, Input: 40, Output: 12, Cost: 2*40 + 4*12}
	if got := h.mustRun(id).Spent; got != spent {
		t.Errorf("spent %+v, want %+v", got, spent)
	}
	all, err := h.store.Spenders(t.Context())
	if err != nil || len(all) != 3 {
		t.Fatalf("spenders: %+v, %v", all, err)
	}
	for _, who := range all {
		if who.Spent != spent || who.Name == "" {
			t.Errorf("%+v", who)
		}
	}
}

// Why a turn of a model can fail is in the history.
func TestModelTurnFails(t *testing.T) {
	t.Parallel()
	const calls = "steps:\n- calls: [{tool: shell, arguments: {command: 'true'}}]\n- calls: [{tool: shell, arguments: {command: 'true'}}]\n"
	for _, row := range []struct{ name, script, fields, want string }{
		{"the provider", "steps:\n- fail: {kind: unavailable, status: 503, message: busy}\n", "", "the provider is not available (HTTP 503): busy"},
		{"steps", calls, "limits: {steps: 1}\n", "the limit of 1 steps was reached (limits.steps)"},
		{"tokens", "steps:\n- say: a\n", "limits: {tokens: 1}\n", "the limit of 1 tokens was reached"},
		{"cost", "steps:\n- say: a\n", "limits: {cost: 0.000001}\n", "the limit of $1e-06 was reached"},
		{"time", "steps:\n- wait: 1h\n", "limits: {turn: 50ms}\n", "the turn's time limit was reached (50ms)"},
		{"a secret that is not there", "steps:\n- say: a\n", "secrets: [NONE]\n", "NONE"},
		{"a path that is not permitted", "steps:\n- say: a\n", "read: [/opt]\n", "which this server does not permit"},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHouse(t)
			id := h.run(h.apply(thinker+row.fields), "go")
			h.start(scripted(t, row.script))
			if got := h.await(id, storage.StateTechnicalError).Reason; !strings.Contains(got, row.want) {
				t.Errorf("got %q, want %q", got, row.want)
			}
		})
	}
	t.Run("no provider", func(t *testing.T) {
		h := newHouse(t)
		id := h.run(h.apply(thinker), "go")
		h.start(&Server{workers: 1})
		if got := h.await(id, storage.StateTechnicalError).Reason; !strings.Contains(got, "no provider 'script' is configured") {
			t.Errorf("got %q", got)
		}
	})
}

// After a turn that failed with a call under way, the conversation goes on.
func TestConversationAfterAFailedTurn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.run(h.apply(thinker+"limits: {turn: 1s}\n"), "go")
	h.start(scripted(t, `
steps:
- calls:
  - {tool: shell, arguments: {command: "sleep 600"}}
  - {tool: shell, arguments: {command: "true"}}
- say: "told ${result}"
`))
	h.await(id, storage.StateTechnicalError)
	if _, err := h.store.GiveInput(t.Context(), id, "go on"); err != nil {
		t.Fatal(err)
	}
	h.await(id, storage.StateFinished)
	if got, want := h.transcript(id)[2], "out: told "+notMade; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A model that is waited for does not keep a run from its end.
func TestStopOfAModelTurn(t *testing.T) {
	t.Parallel()
	for name, steps := range map[string]string{
		"in a call of the model": "steps:\n- say: never\n  wait: 1h\n",
		"in a call of a tool":    "steps:\n- calls: [{tool: shell, arguments: {command: 'sleep 600', timeout_seconds: 900}}]\n",
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			id := h.run(h.apply(thinker), "go")
			h.start(scripted(t, steps))
			watch := h.store.Watch(id)
			defer watch.Close()
			for !slices.Contains(h.kinds(id), storage.EventTurnStarted) {
				<-watch.C
			}
			if _, err := h.store.StopRun(t.Context(), id, "enough"); err != nil {
				t.Fatal(err)
			}
			begun := time.Now()
			h.await(id, storage.StateTerminated)
			if took := time.Since(begun); took > sandbox.StopGrace+time.Second {
				t.Errorf("the end took %v", took)
			}
		})
	}
}

// What a drain cuts off goes on with the next server.
func TestModelTurnGoesOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	const first = "steps:\n- calls: [{tool: shell, arguments: {command: 'echo once >> effects'}}]\n"
	id := h.run(h.apply(thinker), "go")
	running := h.start(scripted(t, first+"- wait: 1h\n"))
	watch := h.store.Watch(id)
	defer watch.Close()
	for !slices.Contains(h.kinds(id), storage.EventToolReturned) {
		<-watch.C
	}
	running.stop()
	if got := h.mustRun(id).State; got != storage.StateRunning {
		t.Fatalf("after the drain it is %s", got)
	}
	h.start(scripted(t, first+"- say: done\n"))
	h.await(id, storage.StateFinished)
	effects, err := os.ReadFile(filepath.Join(h.spaces.Path(id.UUID), "effects"))
	if err != nil || string(effects) != "once\n" {
		t.Errorf("effects: %q, %v", effects, err)
	}
	if got := h.data(id, storage.EventTurnStarted); len(got) != 2 || !strings.Contains(got[1], `"again":true`) {
		t.Errorf("turns: %v", got)
	}
}

// Secrets are masked in what tools tell the model.
func TestSecretsOfAModelTurn(t *testing.T) {
	t.Parallel()
	source, err := secret.Open("", []string{"AGENTRUN_SECRET_TOKEN=a-very-secret-token"})
	if err != nil {
		t.Fatal(err)
	}
	h := newHouse(t)
	s := scripted(t, "steps:\n- calls: [{tool: shell, arguments: {command: 'echo ${#TOKEN}; echo $TOKEN; echo $TOKEN > kept'}}]\n"+
		"- calls: [{tool: read_file, arguments: {path: kept}}]\n- say: 'got ${result}'\n")
	s.secrets = source
	id := h.run(h.apply(thinker+"secrets: [TOKEN]\n"), "go")
	h.start(s)
	h.await(id, storage.StateFinished)
	events, err := json.Marshal(h.events(id))
	if err != nil {
		t.Fatal(err)
	}
	everything := strings.Join(h.transcript(id), "\n") + string(events)
	if strings.Contains(everything, "a-very-secret-token") || strings.Count(everything, "[secret TOKEN]") < 3 || !strings.Contains(everything, `19\n`) {
		t.Errorf("got %s", everything)
	}
}

// A tool server that does not work is told of; the turn goes on without it.
func TestToolServerThatFails(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.run(h.apply(thinker+"mcp: [{name: broken, command: [sh, -c, 'echo out of order >&2; exit 3']}, {name: web, url: 'http://127.0.0.1:1/'}]\n"), "go")
	h.start(scripted(t, "steps:\n- say: done\n"))
	h.await(id, storage.StateFinished)
	got := strings.Join(h.data(id, storage.EventToolServerFailed), "\n")
	if !strings.Contains(got, `"server":"broken"`) || !strings.Contains(got, "out of order") || !strings.Contains(got, `"server":"web"`) {
		t.Errorf("got %s", got)
	}
}

// The agent file knows the tools that there are.
func TestToolsOfTheAgentFile(t *testing.T) {
	if diff := cmp.Diff(tool.Names(), agentfile.Tools); diff != "" {
		t.Errorf("(-tools +agent file)\n%s", diff)
	}
}
