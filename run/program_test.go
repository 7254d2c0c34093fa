package run

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"agentrun/run/sandbox"
	"agentrun/storage"
)

// What most histories begin with.
var begun = []storage.EventKind{storage.EventRunCreated, storage.EventInputGiven, storage.EventTurnStarted}

func TestTurn(t *testing.T) {
	const exited, finished, failed = storage.EventCommandExited, storage.EventTurnFinished, storage.EventTurnFailed
	for _, row := range []struct {
		name, script string
		input        string
		fields       string
		state        storage.State
		reason       string
		transcript   []string
		events       []storage.EventKind // after those of begun
	}{
		{
			name: "an output", script: "tr a-z A-Z", input: "hello\n", state: storage.StateFinished,
			transcript: []string{"in: hello\n", "out: HELLO"}, events: []storage.EventKind{exited, finished},
		},
		{
			name: "an empty input and output", script: "cat", state: storage.StateFinished,
			transcript: []string{"in: ", "out: "}, events: []storage.EventKind{exited, finished},
		},
		{
			name: "standard error", script: "echo oops >&2; echo fine", input: "x", state: storage.StateFinished,
			transcript: []string{"in: x", "out: fine"}, events: []storage.EventKind{storage.EventCommandStderr, exited, finished},
		},
		{
			name: "too long an output that is not UTF-8", input: "x", state: storage.StateFinished,
			script:     `printf '\377'; head -c 1048575 /dev/zero | tr '\0' x; printf y`,
			transcript: []string{"in: x", "out: \ufffd" + strings.Repeat("x", 1<<19-1) + "[1 bytes left out]" + strings.Repeat("x", 1<<19-1) + "y"},
			events:     []storage.EventKind{exited, storage.EventOutputShortened, storage.EventOutputNotUTF8, finished},
		},
		{
			name: "a non-zero exit", script: "echo half done; exit 3", input: "x", state: storage.StateTechnicalError,
			reason:     "command exited with code 3",
			transcript: []string{"in: x"}, events: []storage.EventKind{exited, storage.EventCommandStdout, failed},
		},
		{
			name: "what a failure wrote is no output", input: "x", state: storage.StateTechnicalError,
			script: `printf '\377'; echo why >&2; exit 1`, reason: "command exited with code 1",
			transcript: []string{"in: x"}, events: []storage.EventKind{storage.EventCommandStderr, exited, storage.EventCommandStdout, failed},
		},
		{
			name: "a signal", script: "kill -9 $$", input: "x", state: storage.StateTechnicalError,
			reason:     "command ended by signal SIGKILL",
			transcript: []string{"in: x"}, events: []storage.EventKind{exited, failed},
		},
		{
			name: "the time limit", script: "exec sleep 600", fields: "limits: {turn: 50ms}", input: "x", state: storage.StateTechnicalError,
			reason:     "the turn's time limit was reached (50ms)",
			transcript: []string{"in: x"}, events: []storage.EventKind{exited, failed},
		},
		{
			name: "exit 0 at the time limit", script: "trap 'exit 0' TERM; sleep 600 & wait", fields: "limits: {turn: 50ms}",
			state: storage.StateTechnicalError, reason: "the turn's time limit was reached (50ms)",
			transcript: []string{"in: "}, events: []storage.EventKind{exited, failed},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			id := h.run(h.agent("one", row.script, row.fields), row.input)
			h.serve(1)
			run := h.await(id, row.state)
			if run.Reason != row.reason || run.Turn != 1 {
				t.Errorf("turn %d ended by %q, want %q", run.Turn, run.Reason, row.reason)
			}
			if diff := cmp.Diff(row.transcript, h.transcript(id)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(append(slices.Clone(begun), row.events...), h.kinds(id)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTurnEventsHaveTheirData(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.run(h.agent("one", "echo half done; echo oops >&2; exit 3"), "x")
	h.serve(1)
	h.await(id, storage.StateTechnicalError)
	for _, row := range []struct {
		kind storage.EventKind
		want string // the beginning
	}{
		{storage.EventTurnStarted, `{"sandbox":"off"}`},
		{storage.EventCommandStderr, `{"text":"oops"}`},
		{storage.EventCommandExited, `{"code":3,"seconds":0.`},
		{storage.EventCommandStdout, `{"text":"half done"}`},
		{storage.EventTurnFailed, `{"reason":"command exited with code 3"}`},
	} {
		if got := h.data(id, row.kind); len(got) != 1 || !strings.HasPrefix(got[0], row.want) {
			t.Errorf("%s: got %v, want %s", row.kind, got, row.want)
		}
	}
}

// A turn for which no process came to be has no end of one in its history.
func TestTurnThatCannotBegin(t *testing.T) {
	for _, row := range []struct{ name, file, reason string }{
		{
			name: "no such program", file: "name: one\ncommand: [no-such-program]\n",
			reason: "no-such-program: no such program in " + sandbox.Path + ": command not started",
		},
		{
			name: "a directory", file: "name: one\ncommand: [/]\n",
			reason: "/: permission denied: command not started",
		},
		{
			name: "a model whose provider is gone", file: "name: one\nmodel: local/small\n",
			reason: "model 'local/small' cannot be used: no provider 'local' is configured on this server",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			caller := h.apply(row.file)
			id, err := storage.NewRunID()
			if err != nil {
				t.Fatal(err)
			}
			input := "x"
			_, err = h.store.CreateRun(t.Context(), storage.NewRun{
				ID: id, Caller: caller, Template: caller.AgentID, Input: &input, Providers: []string{"local"},
			})
			if err != nil {
				t.Fatal(err)
			}
			h.serve(1)
			if run := h.await(id, storage.StateTechnicalError); run.Reason != row.reason {
				t.Errorf("got %q, want %q", run.Reason, row.reason)
			}
			if diff := cmp.Diff([]string{"in: x"}, h.transcript(id)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(append(slices.Clone(begun), storage.EventTurnFailed), h.kinds(id)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestTurnSeesTheDeliveredFiles(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	caller := h.agent("one", "pwd -P; ls; cat notes.txt; echo new > made; cat made")
	id, err := storage.NewRunID()
	if err != nil {
		t.Fatal(err)
	}
	delivery, err := h.spaces.Deliver(id.UUID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := delivery.Add("notes.txt", strings.NewReader("what I noted\n")); err != nil {
		t.Fatal(err)
	}
	if err := delivery.Commit(); err != nil {
		t.Fatal(err)
	}
	input := ""
	_, err = h.store.CreateRun(t.Context(), storage.NewRun{
		ID: id, Caller: caller, Template: caller.AgentID, Input: &input,
		Files: []storage.FileDelivered{{Name: "notes.txt", Size: 13}},
	})
	if err != nil {
		t.Fatal(err)
	}
	h.serve(1)
	h.await(id, storage.StateFinished)
	dir, err := filepath.EvalSymlinks(h.spaces.Path(id.UUID))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"in: ", "out: " + dir + "\nnotes.txt\nwhat I noted\nnew"}, h.transcript(id)); diff != "" {
		t.Error(diff)
	}
	if made, err := os.ReadFile(filepath.Join(dir, "made")); err != nil || string(made) != "new\n" {
		t.Errorf("what the turn made is %q, %v", made, err)
	}
}

func TestTurnEnvironment(t *testing.T) {
	t.Setenv("RUN_TEST_CANARY", "the server's own")
	t.Setenv("LANG", "xx_XX")
	h := newHouse(t)
	for _, row := range []struct {
		name, env string
		want      map[string]string // beside those of the run and its agent
	}{
		{
			name: "nothing said", env: "env: {}",
			want: map[string]string{"PATH": sandbox.Path, "HOME": "the workspace", "TMPDIR": "/tmp", "LANG": "C.UTF-8"},
		},
		{
			name: "the agent file's", env: "env: {LANG: de_DE, PATH: /opt/bin, NEW: 'a b'}",
			want: map[string]string{"PATH": "/opt/bin", "HOME": "the workspace", "TMPDIR": "/tmp", "LANG": "de_DE", "NEW": "a b"},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			caller := h.apply("name: one\ncommand: [env, '-0']\n" + row.env + "\n")
			id := h.run(caller, "")
			server := h.serve(1)
			h.await(id, storage.StateFinished)
			server.stop()
			got := map[string]string{}
			for pair := range strings.SplitSeq(strings.TrimSuffix(strings.TrimPrefix(h.transcript(id)[1], "out: "), "\x00"), "\x00") {
				name, value, _ := strings.Cut(pair, "=")
				got[name] = value
			}
			row.want["HOME"] = h.spaces.Path(id.UUID)
			row.want["AGENTRUN_RUN_ID"] = id.String()
			row.want["AGENTRUN_AGENT_ID"] = caller.AgentID.String()
			row.want["AGENTRUN_TURN"] = "1"
			if diff := cmp.Diff(row.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// What our own machinery did wrong is told to the operator, not to the caller.
func TestTurnWithABrokenWorkspace(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.run(h.agent("one", "echo not reached"), "x")
	if err := os.Symlink(t.TempDir(), h.spaces.Path(id.UUID)); err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.ErrorLevel)
	h.start(&Server{workers: 1, log: zap.New(core)})
	if run := h.await(id, storage.StateTechnicalError); run.Reason != "internal error" {
		t.Errorf("got %q", run.Reason)
	}
	if diff := cmp.Diff([]string{"in: x"}, h.transcript(id)); diff != "" {
		t.Error(diff)
	}
	if logs.Len() != 1 || logs.All()[0].ContextMap()["run"] != id.String() {
		t.Errorf("logged: %v", logs.All())
	}
}
