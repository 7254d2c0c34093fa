package storage_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"agentrun/storage"
	"agentrun/storage/storagetest"
)

const again = "name: again\ncommand: [cat]\nrestart: true\n"

// mustClaim claims the next run and fails the test when none waits.
func mustClaim(t *testing.T, s *storage.Store) *storage.Turn {
	t.Helper()
	turn, err := s.ClaimNext(t.Context(), storage.AgentID{}, "none")
	if err != nil {
		t.Fatal(err)
	}
	if turn == nil {
		t.Fatal("no run waits")
	}
	return turn
}

// look returns what the API tells of a run.
func look(t *testing.T, s *storage.Store, caller storage.Caller, id storage.RunID) (storage.State, []string) {
	t.Helper()
	state, messages, err := s.StateAndTranscript(t.Context(), caller, id)
	if err != nil {
		t.Fatal(err)
	}
	texts := []string{}
	for _, m := range messages {
		texts = append(texts, string(m.Role)+": "+m.Text)
	}
	return state, texts
}

// kinds returns the kinds of a run's events, and checks their numbers.
func kinds(t *testing.T, s *storage.Store, id storage.RunID) []storage.EventKind {
	t.Helper()
	_, events, err := s.StateAndEvents(t.Context(), id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var ks []storage.EventKind
	for i, e := range events {
		if e.Seq != uint64(i)+1 {
			t.Errorf("event %d has number %d", i+1, e.Seq)
		}
		ks = append(ks, e.Kind)
	}
	return ks
}

func TestCreatedWithoutInputIsFinished(t *testing.T) {
	s := storagetest.Open(t)
	caller := storagetest.MustCaller(t, s, storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile))
	run := storagetest.MustRun(t, s, caller)
	if state, texts := look(t, s, caller, run.ID); state != storage.StateFinished || len(texts) != 0 {
		t.Errorf("%s %q", state, texts)
	}
	if turn, err := s.ClaimNext(t.Context(), storage.AgentID{}, "none"); err != nil || turn != nil {
		t.Errorf("an idle run was claimed: %+v, %v", turn, err)
	}
}

func TestCreatedWithInputIsRunningAtOnce(t *testing.T) {
	s := storagetest.Open(t)
	caller := storagetest.MustCaller(t, s, storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile))
	for _, input := range []string{"hello", ""} {
		run := storagetest.MustRun(t, s, caller, input)
		if state, texts := look(t, s, caller, run.ID); state != storage.StateRunning || len(texts) != 0 {
			t.Errorf("input %q: %s %q", input, state, texts)
		}
	}
}

func TestTurnThatFinishes(t *testing.T) {
	s := storagetest.Open(t)
	caller := storagetest.MustCaller(t, s, storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile))
	run := storagetest.MustRun(t, s, caller, "hello")
	turn := mustClaim(t, s)
	if turn.Input != "hello" || turn.Run.ID != run.ID || turn.Run.Turn != 1 || turn.Again {
		t.Errorf("turn: %+v", turn)
	}
	if state, texts := look(t, s, caller, run.ID); state != storage.StateRunning || !slices.Equal(texts, []string{"input_to_agent: hello"}) {
		t.Errorf("while it runs: %s %q", state, texts)
	}
	if err := s.FinishTurn(t.Context(), turn.Claim, "bye"); err != nil {
		t.Fatal(err)
	}
	want := []string{"input_to_agent: hello", "output_from_agent: bye"}
	if state, texts := look(t, s, caller, run.ID); state != storage.StateFinished || !slices.Equal(texts, want) {
		t.Errorf("after it: %s %q", state, texts)
	}
	wantKinds := []storage.EventKind{
		storage.EventRunCreated, storage.EventInputGiven, storage.EventTurnStarted, storage.EventTurnFinished,
	}
	if diff := cmp.Diff(wantKinds, kinds(t, s, run.ID)); diff != "" {
		t.Error(diff)
	}
}

func TestTurnThatFails(t *testing.T) {
	s := storagetest.Open(t)
	caller := storagetest.MustCaller(t, s, storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile))
	run := storagetest.MustRun(t, s, caller, "hello")
	exited, err := storage.NewEvent(storage.EventCommandExited, storage.CommandExited{Code: 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.FailTurn(t.Context(), mustClaim(t, s).Claim, "exit code 3", exited); err != nil {
		t.Fatal(err)
	}
	if state, texts := look(t, s, caller, run.ID); state != storage.StateTechnicalError || len(texts) != 1 {
		t.Errorf("%s %q: a failed turn keeps its input", state, texts)
	}
	row, err := s.Run(t.Context(), run.ID)
	if err != nil || row.Reason != "exit code 3" {
		t.Errorf("row: %+v, %v", row, err)
	}
	wantKinds := []storage.EventKind{
		storage.EventRunCreated, storage.EventInputGiven, storage.EventTurnStarted,
		storage.EventCommandExited, storage.EventTurnFailed,
	}
	if diff := cmp.Diff(wantKinds, kinds(t, s, run.ID)); diff != "" {
		t.Error(diff)
	}
}

func TestStaleClaimsAreRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agentrun.db")
	s := storagetest.OpenFile(t, path, storage.Options{})
	caller := storagetest.MustCaller(t, s, storagetest.MustApply(t, s, storage.DefaultOrg, again))
	run := storagetest.MustRun(t, s, caller, "hello")
	first := mustClaim(t, s)
	if err := s.ParkTurn(t.Context(), first.Claim, "server stopped"); err != nil {
		t.Fatal(err)
	}
	second := mustClaim(t, s)
	if !second.Again || second.Input != "hello" || second.Run.Turn != 1 {
		t.Errorf("the turn again: %+v", second)
	}
	refused := func(when string, s *storage.Store, c storage.Claim) {
		t.Helper()
		for name, err := range map[string]error{
			"finish": s.FinishTurn(t.Context(), c, "late"),
			"fail":   s.FailTurn(t.Context(), c, "late"),
			"park":   s.ParkTurn(t.Context(), c, "late"),
		} {
			if !errors.Is(err, storage.ErrStaleClaim) {
				t.Errorf("%s: %s: got %v, want ErrStaleClaim", when, name, err)
			}
		}
	}
	refused("another claim holds the run", s, first.Claim)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = storagetest.OpenFile(t, path, storage.Options{})
	refused("the store was opened anew", s, second.Claim)
	if state, texts := look(t, s, caller, run.ID); state != storage.StateRunning || len(texts) != 1 {
		t.Errorf("a refused write left a trace: %s %q", state, texts)
	}
	if _, err := s.Settle(t.Context(), "server stopped"); err != nil {
		t.Fatal(err)
	}
	third := mustClaim(t, s)
	if err := s.FinishTurn(t.Context(), third.Claim, "bye"); err != nil {
		t.Fatal(err)
	}
	refused("the turn is over", s, third.Claim)
	want := []string{"input_to_agent: hello", "output_from_agent: bye"}
	if state, texts := look(t, s, caller, run.ID); state != storage.StateFinished || !slices.Equal(texts, want) {
		t.Errorf("%s %q", state, texts)
	}
}

func TestSettle(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agentrun.db")
	s := storagetest.OpenFile(t, path, storage.Options{})
	once := storagetest.MustCaller(t, s, storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile))
	twice := storagetest.MustCaller(t, s, storagetest.MustApply(t, s, storage.DefaultOrg, again))
	doomed := storagetest.MustCaller(t, s, storagetest.MustApply(t, s, storage.DefaultOrg, "name: doomed\ncommand: [cat]\n"))
	failed := storagetest.MustRun(t, s, once, "1")
	parked := storagetest.MustRun(t, s, twice, "2")
	stopped := storagetest.MustRun(t, s, doomed, "3")
	for range 3 {
		mustClaim(t, s)
	}
	waiting := storagetest.MustRun(t, s, once, "4")
	if _, err := s.DeleteAgent(t.Context(), "doomed"); err != nil {
		t.Fatal(err)
	}
	if done, err := s.Settle(t.Context(), "server stopped"); err != nil || !cmp.Equal(done, storage.Settled{}) {
		t.Errorf("claims of this life were settled: %+v, %v", done, err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	s = storagetest.OpenFile(t, path, storage.Options{})
	done, err := s.Settle(t.Context(), "server stopped")
	if err != nil {
		t.Fatal(err)
	}
	want := storage.Settled{
		Failed: []storage.RunID{failed.ID}, Parked: []storage.RunID{parked.ID}, Terminated: []storage.RunID{stopped.ID},
	}
	if diff := cmp.Diff(want, done, cmpopts.EquateEmpty()); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		caller storage.Caller
		run    storage.Run
		state  storage.State
	}{
		{once, failed, storage.StateTechnicalError}, {twice, parked, storage.StateRunning},
		{doomed, stopped, storage.StateTerminated}, {once, waiting, storage.StateRunning},
	} {
		if state, _ := look(t, s, c.caller, c.run.ID); state != c.state {
			t.Errorf("run %s: %s, want %s", c.run.ID, state, c.state)
		}
	}
	if row, err := s.Run(t.Context(), failed.ID); err != nil || row.Reason != "server stopped" {
		t.Errorf("reason: %+v, %v", row, err)
	}
	if n, err := s.Waiting(t.Context(), 10); err != nil || n != 2 {
		t.Errorf("%d runs wait, %v, want 2", n, err)
	}
}

func TestAgentsTakeTurns(t *testing.T) {
	s := storagetest.Open(t)
	var order []string
	for _, name := range []string{"a", "b", "c"} {
		caller := storagetest.MustCaller(t, s,
			storagetest.MustApply(t, s, storage.DefaultOrg, "name: "+name+"\ncommand: [cat]\n"))
		for _, n := range []string{"1", "2", "3"} {
			storagetest.MustRun(t, s, caller, name+n)
		}
	}
	last := storage.AgentID{}
	for range 9 {
		turn, err := s.ClaimNext(t.Context(), last, "none")
		if err != nil {
			t.Fatal(err)
		}
		last = turn.Run.AgentID
		order = append(order, turn.Input)
	}
	want := []string{"a1", "b1", "c1", "a2", "b2", "c2", "a3", "b3", "c3"}
	if diff := cmp.Diff(want, order); diff != "" {
		t.Error(diff)
	}
}

func TestRunsList(t *testing.T) {
	s := storagetest.Open(t)
	one := storagetest.MustApply(t, s, storage.DefaultOrg, "name: one\ncommand: [cat]\n")
	two := storagetest.MustApply(t, s, storage.DefaultOrg, "name: two\ncommand: [cat]\n")
	first, second := storagetest.MustCaller(t, s, one), storagetest.MustCaller(t, s, two)
	const each = 300 // more than one batch of a scan
	for range each {
		storagetest.MustRun(t, s, first)
		storagetest.MustRun(t, s, second, "input")
	}
	count := func(f storage.RunFilter) int {
		t.Helper()
		runs, _, err := s.Runs(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		for i := 1; i < len(runs); i++ {
			if runs[i-1].ID.String() <= runs[i].ID.String() {
				t.Fatalf("%+v: not newest first", f)
			}
		}
		return len(runs)
	}
	for _, c := range []struct {
		filter storage.RunFilter
		want   int
	}{
		{storage.RunFilter{}, 2 * each},
		{storage.RunFilter{Limit: 7}, 7},
		{storage.RunFilter{Agent: &one.ID}, each},
		{storage.RunFilter{Agent: &two.ID, State: storage.StateRunning}, each},
		{storage.RunFilter{Agent: &two.ID, State: storage.StateFinished}, 0},
		{storage.RunFilter{State: storage.StateFinished, Limit: 299}, 299},
		{storage.RunFilter{State: storage.StateTerminated}, 0},
	} {
		if got := count(c.filter); got != c.want {
			t.Errorf("%+v: %d runs, want %d", c.filter, got, c.want)
		}
	}
}
