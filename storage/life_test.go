package storage_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"

	"agentrun/storage"
	"agentrun/storage/storagetest"
)

// The events of a run that was stopped.
const stopped = "stop_requested, run_terminated"

// TestStateTable has a row for each edge of the table of states, and for what
// must be no edge. The steps are those of life.do, the last one being the edge;
// before it, the run is in the state from.
func TestStateTable(t *testing.T) {
	for _, row := range []struct {
		name  string
		from  storage.State
		steps string
		to    storage.State
		err   error // of the last step
		// transcript and events are those of the end; "…" stands for the events
		// of the steps before.
		transcript, events string
	}{
		{name: "created without input", steps: "create", to: storage.StateFinished, events: "run_created"},
		{name: "created with input", steps: "create:a", to: storage.StateRunning, events: "run_created, input_given"},

		{name: "input to a run that never worked", from: storage.StateFinished, steps: "create input:a", to: storage.StateRunning, events: "…, input_given"},
		{name: "input to a finished run", from: storage.StateFinished, steps: "create:a claim finish:b input:c", to: storage.StateRunning, transcript: "in a, out b", events: "…, input_given"},
		{name: "input after a technical error", from: storage.StateTechnicalError, steps: "create:a claim fail input:c", to: storage.StateRunning, transcript: "in a", events: "…, input_given"},
		{name: "input while the run waits for a worker", from: storage.StateRunning, steps: "create:a input:b", to: storage.StateRunning, events: "…, input_given"},
		{name: "input during a turn", from: storage.StateRunning, steps: "create:a claim input:b", to: storage.StateRunning, transcript: "in a", events: "…, input_given"},
		{name: "an empty input is an input", from: storage.StateFinished, steps: "create input:", to: storage.StateRunning, events: "…, input_given"},

		{name: "a worker takes the run", from: storage.StateRunning, steps: "create:a claim", to: storage.StateRunning, transcript: "in a", events: "…, turn_started"},
		{name: "the turn ended, none waits", from: storage.StateRunning, steps: "create:a claim finish:b", to: storage.StateFinished, transcript: "in a, out b", events: "…, turn_finished"},
		{name: "the turn ended, another input waits", from: storage.StateRunning, steps: "create:a claim input:c finish:b", to: storage.StateRunning, transcript: "in a, out b", events: "…, turn_finished"},
		{name: "the waiting inputs start turns in their order", from: storage.StateRunning, steps: "create:a claim input:c input:e finish:b claim finish:d claim finish:f", to: storage.StateFinished, transcript: "in a, out b, in c, out d, in e, out f", events: "…, turn_finished"},
		{name: "the turn failed, none waits", from: storage.StateRunning, steps: "create:a claim fail", to: storage.StateTechnicalError, transcript: "in a", events: "…, turn_failed"},
		{name: "the turn failed, another input waits", from: storage.StateRunning, steps: "create:a claim input:b fail", to: storage.StateRunning, transcript: "in a", events: "…, turn_failed"},
		{name: "the turn is parked", from: storage.StateRunning, steps: "create:a claim park", to: storage.StateRunning, transcript: "in a", events: "…, turn_parked"},
		{name: "the parked turn goes first", from: storage.StateRunning, steps: "create:a claim input:c park claim finish:b", to: storage.StateRunning, transcript: "in a, out b", events: "…, turn_finished"},
		{name: "killed in a turn", from: storage.StateRunning, steps: "create:a claim kill", to: storage.StateTechnicalError, transcript: "in a", events: "…, turn_failed"},
		{name: "killed in a turn, another input waits", from: storage.StateRunning, steps: "create:a claim input:b kill", to: storage.StateRunning, transcript: "in a", events: "…, turn_failed"},
		{name: "killed while the run waits", from: storage.StateRunning, steps: "create:a kill", to: storage.StateRunning, events: "…"},
		{name: "killed when the turn was over", from: storage.StateFinished, steps: "create:a claim finish:b kill", to: storage.StateFinished, transcript: "in a, out b", events: "…"},

		{name: "stop before any work", from: storage.StateFinished, steps: "create stop", to: storage.StateTerminated, events: "…, " + stopped},
		{name: "stop when finished", from: storage.StateFinished, steps: "create:a claim finish:b stop", to: storage.StateTerminated, transcript: "in a, out b", events: "…, " + stopped},
		{name: "stop after a technical error", from: storage.StateTechnicalError, steps: "create:a claim fail stop", to: storage.StateTerminated, transcript: "in a", events: "…, " + stopped},
		{name: "stop while the run waits for a worker", from: storage.StateRunning, steps: "create:a stop", to: storage.StateTerminated, events: "…, stop_requested, input_dropped, run_terminated"},
		{name: "stop while a parked turn waits", from: storage.StateRunning, steps: "create:a claim park stop", to: storage.StateTerminated, transcript: "in a", events: "…, " + stopped},
		{name: "stop during a turn", from: storage.StateRunning, steps: "create:a claim stop", to: storage.StateRunning, transcript: "in a", events: "…, stop_requested"},
		{name: "stopped during a turn that failed", from: storage.StateRunning, steps: "create:a claim stop fail", to: storage.StateTerminated, transcript: "in a", events: "…, turn_failed, run_terminated"},
		{name: "stopped during a turn that still had an output", from: storage.StateRunning, steps: "create:a claim stop finish:b", to: storage.StateTerminated, transcript: "in a, out b", events: "…, turn_finished, run_terminated"},
		{name: "stopped during a turn that was to be parked", from: storage.StateRunning, steps: "create:a claim stop park", to: storage.StateTerminated, transcript: "in a", events: "…, run_terminated"},
		{name: "stopped during a turn, and killed", from: storage.StateRunning, steps: "create:a claim stop kill", to: storage.StateTerminated, transcript: "in a", events: "…, turn_failed, run_terminated"},
		{name: "inputs that wait when the run is stopped", from: storage.StateRunning, steps: "create:a claim input:b input:c stop fail", to: storage.StateTerminated, transcript: "in a", events: "…, turn_failed, input_dropped, input_dropped, run_terminated"},
		{name: "stop when terminated", from: storage.StateTerminated, steps: "create stop stop", to: storage.StateTerminated, events: "…"},
		{name: "stop twice during a turn", from: storage.StateRunning, steps: "create:a claim stop stop", to: storage.StateRunning, transcript: "in a", events: "…"},

		{name: "the idle policy before any work", from: storage.StateFinished, steps: "create idle", to: storage.StateTerminated, events: "…, " + stopped},
		{name: "the idle policy when finished", from: storage.StateFinished, steps: "create:a claim finish:b idle", to: storage.StateTerminated, transcript: "in a, out b", events: "…, " + stopped},
		{name: "the idle policy after a technical error", from: storage.StateTechnicalError, steps: "create:a claim fail idle", to: storage.StateTerminated, transcript: "in a", events: "…, " + stopped},
		{name: "the idle policy while the run waits for a worker", from: storage.StateRunning, steps: "create:a idle", to: storage.StateRunning, events: "…"},
		{name: "the idle policy while a run waits again", from: storage.StateRunning, steps: "create:a claim finish:b input:c idle", to: storage.StateRunning, transcript: "in a, out b", events: "…"},
		{name: "the idle policy during a turn", from: storage.StateRunning, steps: "create:a claim idle", to: storage.StateRunning, transcript: "in a", events: "…"},
		{name: "the idle policy when terminated", from: storage.StateTerminated, steps: "create stop idle", to: storage.StateTerminated, events: "…"},

		{name: "delete before any work", from: storage.StateFinished, steps: "create delete", to: storage.StateTerminated},
		{name: "delete when finished", from: storage.StateFinished, steps: "create:a claim finish:b delete", to: storage.StateTerminated},
		{name: "delete after a technical error", from: storage.StateTechnicalError, steps: "create:a claim fail delete", to: storage.StateTerminated},
		{name: "delete when terminated", from: storage.StateTerminated, steps: "create:a claim finish:b stop delete", to: storage.StateTerminated},
		{name: "delete while the run waits for a worker", from: storage.StateRunning, steps: "create:a delete", to: storage.StateTerminated},
		{name: "delete during a turn", from: storage.StateRunning, steps: "create:a claim delete", to: storage.StateRunning, transcript: "in a", events: "…, stop_requested"},
		{name: "deleted during a turn", from: storage.StateRunning, steps: "create:a claim input:b delete finish:c", to: storage.StateTerminated},
		{name: "deleted during a turn, and killed", from: storage.StateRunning, steps: "create:a claim delete kill", to: storage.StateTerminated},
		{name: "delete while the run is being stopped", from: storage.StateRunning, steps: "create:a claim stop delete fail", to: storage.StateTerminated},
		{name: "stop while the run is being deleted", from: storage.StateRunning, steps: "create:a claim delete stop fail", to: storage.StateTerminated},
		{name: "delete twice", from: storage.StateTerminated, steps: "create:a delete delete", to: storage.StateTerminated},

		{name: "input to a terminated run", from: storage.StateTerminated, steps: "create stop input:a", to: storage.StateTerminated, err: storage.ErrRunTerminated, events: "…"},
		{name: "input to a deleted run", from: storage.StateTerminated, steps: "create delete input:a", to: storage.StateTerminated, err: storage.ErrRunTerminated},
		{name: "input to a run that is being stopped", from: storage.StateRunning, steps: "create:a claim stop input:b", to: storage.StateRunning, err: storage.ErrRunTerminated, transcript: "in a", events: "…"},

		{name: "a run of an archived agent", steps: "archive create", err: storage.ErrAgentArchived},
		{name: "input to a run of an archived agent", from: storage.StateFinished, steps: "create archive input:a", to: storage.StateFinished, err: storage.ErrAgentArchived, events: "…"},
		{name: "archived during a turn", from: storage.StateRunning, steps: "create:a claim archive finish:b", to: storage.StateFinished, transcript: "in a, out b", events: "…, turn_finished"},
		{name: "archived while inputs wait", from: storage.StateRunning, steps: "create:a archive claim finish:b", to: storage.StateFinished, transcript: "in a, out b", events: "…, turn_finished"},
		{name: "input after the agent was unarchived", from: storage.StateFinished, steps: "create archive unarchive input:a", to: storage.StateRunning, events: "…, input_given"},
		{name: "stop of a run of an archived agent", from: storage.StateFinished, steps: "create archive stop", to: storage.StateTerminated, events: "…, " + stopped},
		{name: "a run of a deleted agent", steps: "agentdelete create", err: storage.ErrAgentDeleted},
		{name: "input to a run of a deleted agent", from: storage.StateFinished, steps: "create agentdelete input:a", to: storage.StateFinished, err: storage.ErrAgentDeleted, events: "…"},
		{name: "the agent deleted while the run waits", from: storage.StateRunning, steps: "create:a agentdelete", to: storage.StateTerminated, events: "…, stop_requested, input_dropped, run_terminated"},
		{name: "the agent deleted during a turn", from: storage.StateRunning, steps: "create:a claim agentdelete fail", to: storage.StateTerminated, transcript: "in a", events: "…, turn_failed, run_terminated"},
		{name: "the agent deleted when the run is finished", from: storage.StateFinished, steps: "create:a claim finish:b agentdelete", to: storage.StateFinished, transcript: "in a, out b", events: "…"},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			l := newLife(t)
			steps := strings.Split(row.steps, " ")
			for _, step := range steps[:len(steps)-1] {
				if err := l.do(step); err != nil {
					t.Fatalf("%s: %v", step, err)
				}
			}
			before := l.kinds()
			if state := l.state(); state != row.from {
				t.Fatalf("before the edge the run is %q, not %q", state, row.from)
			}
			if err := l.do(steps[len(steps)-1]); !errors.Is(err, row.err) || (err != nil) != (row.err != nil) {
				t.Fatalf("the edge returned %v, want %v", err, row.err)
			}
			if state := l.state(); state != row.to {
				t.Errorf("the run is %q, want %q", state, row.to)
			}
			if diff := cmp.Diff(row.transcript, l.transcript()); diff != "" {
				t.Error(diff)
			}
			want := row.events
			if rest, ok := strings.CutPrefix(want, "…"); ok {
				want = before + rest
			}
			if diff := cmp.Diff(want, l.kinds()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// life is one run of one agent, from its creation on.
type life struct {
	t      *testing.T
	path   string
	store  *storage.Store
	caller storage.Caller
	run    storage.RunID // zero before it is created
	claim  storage.Claim
}

func newLife(t *testing.T) *life {
	t.Helper()
	l := &life{t: t, path: filepath.Join(t.TempDir(), "agentrun.db")}
	l.store = storagetest.OpenFile(t, l.path, storage.Options{})
	l.caller = storagetest.MustCaller(t, l.store, storagetest.MustApply(t, l.store, storage.DefaultOrg, storagetest.EchoFile))
	return l
}

// do does one step, given as VERB or as VERB:TEXT.
func (l *life) do(step string) (err error) {
	ctx, agent := l.t.Context(), l.caller.AgentID.String()
	verb, text, hasText := strings.Cut(step, ":")
	switch verb {
	case "create":
		err = l.create(text, hasText)
	case "input":
		_, err = l.store.GiveInput(ctx, l.run, text)
	case "claim":
		l.claim = mustClaim(l.t, l.store).Claim
	case "finish":
		err = l.store.FinishTurn(ctx, l.claim, text)
	case "fail":
		err = l.store.FailTurn(ctx, l.claim, "it failed")
	case "park":
		err = l.store.ParkTurn(ctx, l.claim, "server stopped")
	case "stop":
		_, err = l.store.StopRun(ctx, l.run, "enough")
	case "delete":
		_, err = l.store.DeleteRun(ctx, l.run, "no more of it")
	case "idle":
		_, err = l.store.StopIdle(ctx, time.Now(), "idle for too long")
	case "archive", "unarchive":
		_, err = l.store.SetArchived(ctx, agent, verb == "archive")
	case "agentdelete":
		_, err = l.store.DeleteAgent(ctx, agent)
	case "kill":
		if err := l.store.Close(); err != nil {
			return err
		}
		l.store = storagetest.OpenFile(l.t, l.path, storage.Options{})
		_, err = l.store.Settle(ctx, "server stopped")
	default:
		l.t.Fatalf("no step %q", step)
	}
	return err
}

func (l *life) create(text string, hasText bool) error {
	id, err := storage.NewRunID()
	if err != nil {
		return err
	}
	n := storage.NewRun{ID: id, Caller: l.caller, Template: l.caller.AgentID, Name: "test"}
	if hasText {
		n.Input = &text
	}
	run, err := l.store.CreateRun(l.t.Context(), n)
	if err == nil {
		l.run = run.ID
	}
	return err
}

// state is the run's state, empty before it is created.
func (l *life) state() storage.State {
	l.t.Helper()
	if l.run == (storage.RunID{}) {
		return ""
	}
	state, _ := look(l.t, l.store, l.caller, l.run)
	return state
}

// transcript is the run's transcript as "in TEXT, out TEXT".
func (l *life) transcript() string {
	l.t.Helper()
	if l.run == (storage.RunID{}) {
		return ""
	}
	_, texts := look(l.t, l.store, l.caller, l.run)
	for i := range texts {
		texts[i] = strings.NewReplacer("input_to_agent:", "in", "output_from_agent:", "out").Replace(texts[i])
	}
	return strings.Join(texts, ", ")
}

func (l *life) kinds() string {
	l.t.Helper()
	if l.run == (storage.RunID{}) {
		return ""
	}
	var names []string
	for _, k := range kinds(l.t, l.store, l.run) {
		names = append(names, string(k))
	}
	return strings.Join(names, ", ")
}

// A tombstone says that it is one, is in no list, and keeps its place in the
// queue of workspaces to remove until that is done.
func TestTombstone(t *testing.T) {
	l := newLife(t)
	for _, step := range []string{"create:a", "claim", "finish:b", "delete"} {
		if err := l.do(step); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, erasing bool) {
		t.Helper()
		row, err := l.store.Run(t.Context(), l.run)
		if err != nil || !row.Deleted || row.Erasing != erasing || row.Reason != "no more of it" || row.Name != "test" {
			t.Errorf("%s: %+v, %v", when, row, err)
		}
		want := []storage.RunID{l.run}
		if !erasing {
			want = nil
		}
		if left, err := l.store.Erasures(t.Context(), 0); err != nil || !slices.Equal(left, want) {
			t.Errorf("%s: workspaces left: %v, %v", when, left, err)
		}
		if runs, _, err := l.store.Runs(t.Context(), storage.RunFilter{}); err != nil || len(runs) != 0 {
			t.Errorf("%s: listed: %+v, %v", when, runs, err)
		}
	}
	check("deleted", true)
	if err := l.do("kill"); err != nil {
		t.Fatal(err)
	}
	check("after a restart", true)
	for range 2 {
		if err := l.store.WorkspaceErased(t.Context(), l.run); err != nil {
			t.Fatal(err)
		}
		check("with its workspace removed", false)
	}
}

// A run that is asked to do what it did already is not written again.
func TestStopAndDeleteTwiceChangeNothing(t *testing.T) {
	for _, steps := range []string{"create:a stop", "create:a delete", "create:a claim stop", "create:a claim delete"} {
		l := newLife(t)
		all := strings.Split(steps, " ")
		for _, step := range all {
			if err := l.do(step); err != nil {
				t.Fatalf("%s: %v", steps, err)
			}
		}
		watch := l.store.Watch(l.run)
		before := fmt.Sprint(l.store.Run(t.Context(), l.run))
		if err := l.do(all[len(all)-1]); err != nil {
			t.Fatalf("%s: %v", steps, err)
		}
		if after := fmt.Sprint(l.store.Run(t.Context(), l.run)); after != before {
			t.Errorf("%s: %s, before %s", steps, after, before)
		}
		select {
		case <-watch.C:
			t.Errorf("%s: watchers were woken", steps)
		default:
		}
		watch.Close()
	}
}

func TestNoSuchRun(t *testing.T) {
	s := storagetest.Open(t)
	id, err := storage.NewRunID()
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	_, inputErr := s.GiveInput(ctx, id, "x")
	_, stopErr := s.StopRun(ctx, id, "x")
	_, deleteErr := s.DeleteRun(ctx, id, "x")
	_, _, eventsErr := s.StateAndEvents(ctx, id, 0, 0)
	for what, err := range map[string]error{
		"input": inputErr, "stop": stopErr, "delete": deleteErr, "events": eventsErr, "erased": s.WorkspaceErased(ctx, id),
	} {
		if !errors.Is(err, storage.ErrRunNotFound) || !strings.Contains(err.Error(), id.String()) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
