package run

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"agentrun/storage"
)

// settle puts the house in order, as a server's start does.
func (h *house) settle() {
	h.t.Helper()
	if err := Settle(h.t.Context(), h.store, h.spaces, zap.NewNop()); err != nil {
		h.t.Fatal(err)
	}
}

// mustClaim makes the claim of a server that is killed before the turn ends.
func (h *house) mustClaim() *storage.Turn {
	h.t.Helper()
	turn, err := h.store.ClaimNext(h.t.Context(), storage.AgentID{}, "none")
	if err != nil {
		h.t.Fatal(err)
	}
	if turn == nil {
		h.t.Fatal("no run waits")
	}
	return turn
}

func TestSettleOfAKilledServersTurn(t *testing.T) {
	const failed, parked = storage.EventTurnFailed, storage.EventTurnParked
	for _, row := range []struct {
		name, fields string
		deleted      bool // its agent, before the server was killed
		settled      storage.State
		reason       string
		events       []storage.EventKind // after those of begun
		end          storage.State       // once a server ran
		transcript   []string
	}{
		{
			name: "a turn that must not be run twice", settled: storage.StateTechnicalError, reason: "server stopped",
			events: []storage.EventKind{failed}, end: storage.StateTechnicalError, transcript: []string{"in: hello"},
		},
		{
			name: "a turn that may be run again", fields: "restart: true", settled: storage.StateRunning,
			events: []storage.EventKind{parked}, end: storage.StateFinished, transcript: []string{"in: hello", "out: HELLO"},
		},
		{
			name: "a turn that was to be stopped", fields: "restart: true", deleted: true,
			settled: storage.StateTerminated, reason: "agent deleted",
			events: []storage.EventKind{storage.EventStopRequested, failed, storage.EventRunTerminated},
			end:    storage.StateTerminated, transcript: []string{"in: hello"},
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t)
			caller := h.agent("one", "tr a-z A-Z", row.fields)
			id := h.run(caller, "hello")
			claim := h.mustClaim().Claim
			if row.deleted {
				if _, err := h.store.DeleteAgent(t.Context(), caller.AgentID.String()); err != nil {
					t.Fatal(err)
				}
			}
			h.reopen()
			h.settle()

			if run := h.mustRun(id); run.State != row.settled || run.Reason != row.reason || run.Turn != 1 {
				t.Errorf("settled as %+v", run)
			}
			if diff := cmp.Diff(append(begun[:3:3], row.events...), h.kinds(id)); diff != "" {
				t.Error(diff)
			}
			if err := h.store.FinishTurn(t.Context(), claim, "too late"); !errors.Is(err, storage.ErrStaleClaim) {
				t.Errorf("a late write of the killed server: %v", err)
			}
			h.settle() // finds nothing more to do

			h.serve(1)
			h.await(id, row.end)
			if diff := cmp.Diff(row.transcript, h.transcript(id)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// The claim of the life before is refused also while the turn is run again.
func TestLateWriteBesideTheNewTurn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.run(h.agent("one", "cat", "restart: true"), "hello")
	old := h.mustClaim()
	h.reopen()
	h.settle()
	again := h.mustClaim()
	if !again.Again || again.Input != "hello" || again.Run.ID != id {
		t.Errorf("got %+v", again)
	}
	for name, write := range map[string]func() error{
		"finish": func() error { return h.store.FinishTurn(t.Context(), old.Claim, "late") },
		"fail":   func() error { return h.store.FailTurn(t.Context(), old.Claim, "late") },
		"park":   func() error { return h.store.ParkTurn(t.Context(), old.Claim, "late") },
	} {
		if err := write(); !errors.Is(err, storage.ErrStaleClaim) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := h.store.FinishTurn(t.Context(), again.Claim, "in time"); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff([]string{"in: hello", "out: in time"}, h.transcript(id)); diff != "" {
		t.Error(diff)
	}
}

// What waited when the server was killed is executed by the next one.
func TestSettleLeavesWhatWaits(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.run(h.agent("one", "cat"), "hello")
	h.reopen()
	h.settle()
	if diff := cmp.Diff([]storage.EventKind{storage.EventRunCreated, storage.EventInputGiven}, h.kinds(id)); diff != "" {
		t.Error(diff)
	}
	h.serve(1)
	h.await(id, storage.StateFinished)
}

func TestSettleOfWorkspaces(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	known := h.run(h.agent("one", "cat"), "x")
	unknown, err := storage.NewRunID()
	if err != nil {
		t.Fatal(err)
	}
	workspaces := filepath.Dir(h.spaces.Path(known.UUID))
	for _, name := range []string{known.String(), unknown.String(), unknown.String() + ".new", "notes"} {
		if err := os.Mkdir(filepath.Join(workspaces, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(workspaces, name, "file"), []byte("content"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	core, logs := observer.New(zap.InfoLevel)
	if err := Settle(t.Context(), h.store, h.spaces, zap.New(core)); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string][]string{
		".":        {".orphans", known.String(), "notes"},
		".orphans": {unknown.String()},
		filepath.Join(".orphans", unknown.String()): {"file"},
		known.String(): {"file"},
	} {
		entries, err := os.ReadDir(filepath.Join(workspaces, folder))
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, e := range entries {
			names = append(names, e.Name())
		}
		slices.Sort(want)
		if diff := cmp.Diff(want, names); diff != "" {
			t.Errorf("%s: %s", folder, diff)
		}
	}
	if got := logs.Len(); got != 3 {
		t.Errorf("%d lines are logged for an unfinished, an unknown and a foreign folder: %v", got, logs.All())
	}
}

func TestSettleOfAStoreThatFails(t *testing.T) {
	t.Parallel()
	h, db := newFaultyHouse(t)
	id := h.run(h.agent("one", "cat"), "x")
	h.mustClaim()
	h.reopenFaulty(db)
	db.refusing(storage.ErrNoSpace, 0)
	if err := Settle(t.Context(), h.store, h.spaces, zap.NewNop()); !errors.Is(err, storage.ErrNoSpace) {
		t.Errorf("got %v", err)
	}
	if run := h.mustRun(id); run.State != storage.StateRunning {
		t.Errorf("got %+v", run)
	}
}
