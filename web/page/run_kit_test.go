package page

import (
	"testing"

	"agentrun/storage"
	"agentrun/storage/storagetest"
)

// mustAgent is an agent of the default organisation, with a key.
func (s *site) mustAgent(source string) (storage.Agent, storage.Caller) {
	s.t.Helper()
	agent := storagetest.MustApply(s.t, s.store, storage.DefaultOrg, source)
	return agent, storagetest.MustCaller(s.t, s.store, agent)
}

// mustRun creates a run with a name.
func (s *site) mustRun(caller storage.Caller, name string, input ...string) storage.Run {
	s.t.Helper()
	id, err := storage.NewRunID()
	if err != nil {
		s.t.Fatal(err)
	}
	n := storage.NewRun{ID: id, Caller: caller, Template: caller.AgentID, Name: name}
	if len(input) > 0 {
		n.Input = &input[0]
	}
	run, err := s.store.CreateRun(s.t.Context(), n)
	if err != nil {
		s.t.Fatal(err)
	}
	return run
}

// mustClaim begins the turn of the run that has waited longest.
func (s *site) mustClaim() *storage.Turn {
	s.t.Helper()
	turn, err := s.store.ClaimNext(s.t.Context(), storage.AgentID{}, "full")
	if err != nil || turn == nil {
		s.t.Fatalf("claimed %v: %v", turn, err)
	}
	return turn
}

// mustRecord appends an event of this kind to the history of a turn.
func (s *site) mustRecord(c storage.Claim, kind storage.EventKind, data any) {
	s.t.Helper()
	s.must(s.store.RecordStep(s.t.Context(), c, storage.Spent{}, mustEvent(s.t, kind, data)))
}

func mustEvent(t *testing.T, kind storage.EventKind, data any) storage.Event {
	t.Helper()
	e, err := storage.NewEvent(kind, data)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func (s *site) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// happening is an event with the words that people read for it.
type happening struct {
	kind  storage.EventKind
	data  any
	words []string
}

// happenings are events of every kind that a turn itself records.
func happenings(text string) []happening {
	spent := storage.Spent{Calls: 1, Input: 11000, Cached: 1000, Output: 1300, Cost: 12300}
	return []happening{
		{storage.EventFileDelivered, storage.FileDelivered{Name: "a.txt", GivenName: "../a.txt" + text, Size: 1234},
			[]string{"File delivered: a.txt", "1.2 kB", "given as ../a.txt"}},
		{storage.EventModelAnswered, storage.ModelAnswered{
			Model: "script/model", Text: "I will look" + text, Stop: "calls", Spent: spent, Seconds: 1.5, Attempts: 2,
			Calls:  []storage.ToolCall{{ID: "c1", Tool: "shell", Arguments: `{"command":"ls ` + text + `"}`}, {ID: "c2", Tool: "search", Arguments: "{"}},
			Opaque: []byte(`"hidden"`),
		}, []string{"Model answered", "script/model", "12.3k tokens, $0.0123", "1.5 s", "2 attempts", "calls shell", "calls search", "I will look"}},
		{storage.EventToolCalled, storage.ToolCalled{Call: "c1", Tool: "shell"}, []string{"shell begins", "ls"}},
		{storage.EventToolReturned, storage.ToolReturned{Call: "c1", Tool: "shell", Text: "a.txt" + text, Seconds: 75}, []string{"shell returned", "1 min 15 s", "Arguments", "Result"}},
		{storage.EventToolReturned, storage.ToolReturned{Call: "c2", Tool: "search", Text: "bad arguments", Failed: true}, []string{"search failed", "bad arguments"}},
		{storage.EventModelAnswered, storage.ModelAnswered{Model: "script/model", Stop: "length", Attempts: 1}, []string{"cut off at its longest length"}},
		{storage.EventModelCalled, storage.ModelCalled{Model: "claude/m" + text, Spent: spent, Seconds: 2, Status: 529, Estimated: true},
			[]string{"Program called a model", "tokens estimated", "HTTP 529"}},
		{storage.EventContextCompacted, storage.ContextCompacted{Summary: "so far" + text, Messages: 12, Spent: spent}, []string{"A summary stands", "12 messages", "so far"}},
		{storage.EventToolServerFailed, storage.ToolServerFailed{Server: "everything" + text, Reason: "no such file" + text}, []string{"Tool server everything", "no such file"}},
		{storage.EventNetworkRefused, storage.NetworkRefused{Host: "example.org" + text, Port: 443, Reason: "not allowed" + text}, []string{"Connection refused: example.org", "443", "not allowed"}},
		{storage.EventCommandStderr, storage.CommandText{Text: "oh \x1b[31mno\x1b[0m" + text, LeftOut: 5000}, []string{"Standard error", "oh no", "5 kB missing in the middle"}},
		{storage.EventCommandStdout, storage.CommandText{Text: "half done" + text}, []string{"Output of the failed command", "half done"}},
		{storage.EventCommandExited, storage.CommandExited{Code: 3, Seconds: 0.25}, []string{"Command failed with exit code 3", "250 ms"}},
		{storage.EventCommandExited, storage.CommandExited{Code: -1, Signal: "killed" + text}, []string{"Command ended by signal killed"}},
		{storage.EventCommandExited, storage.CommandExited{}, []string{"Command done"}},
		{storage.EventOutputShortened, storage.OutputShortened{LeftOut: 2048}, []string{"Output was too long", "2 kB left out"}},
		{storage.EventOutputNotUTF8, nil, []string{"Bytes of the output that are not UTF-8"}},
		{"something_new", map[string]string{"field": "value" + text}, []string{"something_new", "field", "value"}},
		{"something_bare", nil, []string{"something_bare"}},
	}
}

// mustLive gives a run a life in which events of every kind happen, each with
// the text in every place that takes one, and returns what people read.
func (s *site) mustLive(caller storage.Caller, name, text string) (run storage.Run, words []string) {
	s.t.Helper()
	run = s.mustRun(caller, name, "do it"+text)
	turn := s.mustClaim()
	var events []storage.Event
	for _, h := range happenings(text) {
		events = append(events, mustEvent(s.t, h.kind, h.data))
		words = append(words, h.words...)
	}
	s.must(s.store.RecordStep(s.t.Context(), turn.Claim, storage.Spent{}, events...))
	s.must(s.store.ParkTurn(s.t.Context(), turn.Claim, "server stopped"+text))
	turn = s.mustClaim()
	s.must(s.store.FinishTurn(s.t.Context(), turn.Claim, "# Done"+text))
	s.mustInput(run, "more"+text)
	turn = s.mustClaim()
	s.must(s.store.FailTurn(s.t.Context(), turn.Claim, "out of luck"+text))
	return run, append(words,
		"Run created", "Input 1 waits for its turn", "Turn 1 started", "Turn cut off, to go on later", "server stopped", "Turn 1 goes on where it was cut off",
		"sandbox: full", "Turn finished", "Input 2 waits for its turn", "Turn 2 started", "Turn failed", "out of luck")
}

func (s *site) mustInput(run storage.Run, text string) {
	s.t.Helper()
	if _, err := s.store.GiveInput(s.t.Context(), run.ID, text); err != nil {
		s.t.Fatal(err)
	}
}
