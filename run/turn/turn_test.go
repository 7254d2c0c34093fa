package turn_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"

	"agentrun/run/model"
	"agentrun/run/model/script"
	"agentrun/run/turn"
)

// bench is what a turn works with, and a record of it that outlives the turn.
type bench struct {
	t      *testing.T
	cfg    turn.Config
	record []turn.Entry
	// cutAfter is how many entries are recorded until the server is gone.
	cutAfter int
	// effects counts the calls that were made, by their arguments.
	effects map[string]int
	// asked are the requests that the model got.
	asked []model.Request
}

var errCut = errors.New("the server is gone")

// newBench returns a bench with a scripted model.
func newBench(t *testing.T, text string) *bench {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	client, err := script.New(dir)
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t: t, cutAfter: -1, effects: map[string]int{}}
	b.cfg = turn.Config{
		Client: listener{client, b}, Model: "a", Instructions: "Do it.", Tools: b, Input: "go",
		History: []model.Message{{Role: model.RoleUser, Text: "go"}}, Record: b.note,
	}
	return b
}

// listener is a client whose requests are looked at.
type listener struct {
	model.Client
	b *bench
}

func (l listener) Call(ctx context.Context, req model.Request) (model.Answer, error) {
	l.b.asked = append(l.b.asked, req)
	return l.Client.Call(ctx, req)
}

func (b *bench) note(_ context.Context, e turn.Entry) error {
	if b.cutAfter == len(b.record) {
		return errCut
	}
	b.record = append(b.record, e)
	return nil
}

func (b *bench) Tools() []model.Tool {
	return []model.Tool{{Name: "work", Schema: []byte(`{"type":"object"}`)}, {Name: "look", Schema: []byte(`{"type":"object"}`)}}
}

func (b *bench) ReadOnly(name string) bool { return name == "look" }

// Call has its effect before it returns, as everything has that can be cut off.
func (b *bench) Call(ctx context.Context, call model.ToolCall) (model.ToolResult, error) {
	last := b.record[len(b.record)-1]
	if last.Called == nil || last.Called.ID != call.ID {
		b.t.Errorf("%s is called before that is recorded", call.ID)
	}
	b.effects[call.Arguments]++
	return model.ToolResult{Text: "did " + call.Arguments}, ctx.Err()
}

func (b *bench) run() turn.Result {
	b.t.Helper()
	r, err := turn.Run(b.t.Context(), b.cfg)
	if err != nil {
		b.t.Fatal(err)
	}
	return r
}

// resume is the configuration of the turn that goes on from the record.
func (b *bench) resume() turn.Config {
	cfg := b.cfg
	cfg.History, cfg.Begun = slices.Clone(cfg.History), map[string]bool{}
	for _, e := range b.record {
		switch {
		case e.Answered != nil:
			cfg.History = append(cfg.History, e.Answered.Answer.Message)
			cfg.Spent.Steps++
			clear(cfg.Begun)
		case e.Called != nil:
			cfg.Begun[e.Called.ID] = true
		case e.Returned != nil:
			cfg.History = append(cfg.History, model.Message{Role: model.RoleTool, Result: &e.Returned.Result})
		case e.Compacted != nil:
			cfg.History = []model.Message{turn.Summarised(e.Compacted.Summary, cfg.Input)}
		}
	}
	return cfg
}

const threeSteps = `
steps:
- say: first
  calls:
  - {tool: work, arguments: {n: 1}}
  - {tool: look, arguments: {n: 2}}
- calls:
  - {tool: work, arguments: {n: 3}}
- say: "done, last was ${result}"
`

// A turn is recorded step by step, each before what follows from it.
func TestTurn(t *testing.T) {
	b := newBench(t, threeSteps)
	if r := b.run(); r != (turn.Result{Output: `done, last was did {"n":3}`}) {
		t.Errorf("got %+v", r)
	}
	var kinds []string
	for _, e := range b.record {
		switch {
		case e.Answered != nil:
			kinds = append(kinds, "answered")
		case e.Called != nil:
			kinds = append(kinds, "called "+e.Called.Name)
		case e.Returned != nil:
			kinds = append(kinds, "returned "+e.Returned.Call.Name)
		}
	}
	want := []string{
		"answered", "called work", "returned work", "called look", "returned look",
		"answered", "called work", "returned work", "answered",
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// Wherever a turn is cut off, it goes on to the same end, and does nothing
// twice but what can be repeated.
func TestTurnIsCutOff(t *testing.T) {
	const entries = 9
	for cut := range entries {
		b := newBench(t, threeSteps)
		b.cutAfter = cut
		if _, err := turn.Run(t.Context(), b.cfg); !errors.Is(err, errCut) {
			t.Fatalf("cut %d: %v", cut, err)
		}
		b.cutAfter = -1
		r, err := turn.Run(t.Context(), b.resume())
		if err != nil || !strings.HasPrefix(r.Output, "done, last was ") {
			t.Errorf("cut %d: %+v, %v", cut, r, err)
		}
		for call, times := range b.effects {
			if times > 1 && call != `{"n":2}` {
				t.Errorf("cut %d: %s was done %d times", cut, call, times)
			}
		}
		// Cut off between the effect and its record, the model is told.
		if lost := cut == 2 || cut == 7; lost != slices.ContainsFunc(b.record, func(e turn.Entry) bool {
			return e.Returned != nil && strings.Contains(e.Returned.Result.Text, "It may have been done") && e.Returned.Result.Failed
		}) {
			t.Errorf("cut %d: the model is told of an interruption: %v, want %v", cut, !lost, lost)
		}
		if cut == 4 && b.effects[`{"n":2}`] != 2 {
			t.Errorf("cut %d: what only reads was not repeated", cut)
		}
	}
}

func TestLimits(t *testing.T) {
	price := model.Price{Input: 1, Output: 10}
	for _, row := range []struct {
		name   string
		limits turn.Limits
		spent  turn.Spent
		steps  int // answers that there still are
		want   string
	}{
		{"steps", turn.Limits{Steps: 2}, turn.Spent{}, 2, "the limit of 2 steps was reached (limits.steps)"},
		{"steps of an earlier life", turn.Limits{Steps: 2}, turn.Spent{Steps: 1}, 1, "the limit of 2 steps was reached (limits.steps)"},
		{"tokens", turn.Limits{Tokens: 1500}, turn.Spent{}, 1, "the limit of 1500 tokens was reached: 1100 are spent, and the next request has about 700 (limits.tokens)"},
		{"tokens of an earlier life", turn.Limits{Tokens: 1500}, turn.Spent{Tokens: 1490}, 0, "the limit of 1500 tokens was reached: 1490 are spent"},
		{"cost", turn.Limits{Cost: 2000, Price: price}, turn.Spent{}, 1, "the limit of $0.002 was reached: the run has cost $0.002 (limits.cost)"},
		{"cost of an earlier turn", turn.Limits{Cost: 2000, Price: price}, turn.Spent{Cost: 2000}, 0, "the limit of $0.002 was reached"},
		{"enough of all", turn.Limits{Steps: 3, Tokens: 9999, Cost: 1e6, Price: price}, turn.Spent{}, 3, ""},
	} {
		t.Run(row.name, func(t *testing.T) {
			long := strings.Repeat("x", 1000)
			b := newBench(t, fmt.Sprintf(`
steps:
- calls: [{tool: work, arguments: {n: 1, text: %[1]s}}]
  tokens: {input: 1000, output: 100}
- calls: [{tool: work, arguments: {n: 2}}]
  tokens: {input: 1000, output: 100}
- say: done
  tokens: {input: 1000, output: 100}
`, long))
			b.cfg.Limits, b.cfg.Spent = row.limits, row.spent
			r := b.run()
			if !strings.HasPrefix(r.Failure, row.want) || (r.Failure == "") != (row.want == "") {
				t.Errorf("got %+v, want %q", r, row.want)
			}
			if len(b.asked) != row.steps {
				t.Errorf("the model was asked %d times, want %d", len(b.asked), row.steps)
			}
		})
	}
}

// The bound of an answer is what is left of the limits.
func TestAnswerIsBounded(t *testing.T) {
	b := newBench(t, "steps:\n- say: a\n")
	b.cfg.Limits = turn.Limits{Tokens: 1000, Cost: 3000, Price: model.Price{Output: 10}}
	b.run()
	if got := b.asked[0].MaxTokens; got != 300 {
		t.Errorf("got %d, want 300", got)
	}
}

// What outgrows the model's window is compacted, told so, and the turn goes on.
func TestCompaction(t *testing.T) {
	b := newBench(t, `
steps:
- calls: [{tool: work, arguments: {n: 1}}]
  tokens: {input: 900, output: 10}
- say: done
summary: one was done
`)
	b.cfg.Limits.Window = 1000
	if r := b.run(); r.Output != "done" {
		t.Fatalf("got %+v", r)
	}
	if len(b.asked) != 3 {
		t.Fatalf("the model was asked %d times", len(b.asked))
	}
	summary, after := b.asked[1], b.asked[2]
	if !summary.Summary || !strings.Contains(summary.Messages[0].Text, `[tool] did {"n":1}`) {
		t.Errorf("the model was asked %+v", summary)
	}
	if len(after.Messages) != 1 || !strings.Contains(after.Messages[0].Text, "one was done") || !strings.HasSuffix(after.Messages[0].Text, "\n\ngo") {
		t.Errorf("it went on with %+v", after.Messages)
	}
	if c := b.record[len(b.record)-2].Compacted; c == nil || c.Messages != 3 {
		t.Errorf("recorded: %+v", c)
	}
}

// tooLong is a client that finds what it is asked too long, so many times.
type tooLong struct {
	model.Client
	times *int
}

func (c tooLong) Call(ctx context.Context, req model.Request) (model.Answer, error) {
	if *c.times--; *c.times >= 0 {
		return model.Answer{}, &model.Error{Kind: model.ErrTooLong}
	}
	return c.Client.Call(ctx, req)
}

func TestCompactionOnRefusal(t *testing.T) {
	for _, row := range []struct {
		times int
		want  turn.Result
	}{
		{1, turn.Result{Output: "a"}},
		{3, turn.Result{Output: "a"}}, // The summary is then written from excerpts.
		{9, turn.Result{Failure: model.ErrTooLong.Error()}},
	} {
		b := newBench(t, "steps:\n- say: a\nsummary: s\n")
		times := row.times
		b.cfg.Client = tooLong{b.cfg.Client, &times}
		if r := b.run(); r != row.want {
			t.Errorf("%d times: got %+v", row.times, r)
		}
	}
}

func TestProviderFails(t *testing.T) {
	b := newBench(t, "steps:\n- fail: {kind: refused, status: 401, message: bad key}\n")
	if r := b.run(); r.Failure != "the provider refused the request (HTTP 401): bad key" {
		t.Errorf("got %+v", r)
	}
}

func TestContextEnds(t *testing.T) {
	b := newBench(t, "steps:\n- wait: 1h\n  say: a\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := turn.Run(ctx, b.cfg); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
