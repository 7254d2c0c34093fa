package storage

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// damage flips a bit of the value at key.
func damage(t *testing.T, s *Store, space string, key []byte) {
	t.Helper()
	err := s.db.Update(t.Context(), func(tx kv.Tx) error {
		raw, err := tx.Get(space, key)
		if err != nil {
			return err
		}
		if raw == nil {
			return errors.Errorf("%s %x: nothing to damage", space, key)
		}
		flipped := append([]byte{}, raw...)
		flipped[len(flipped)/2] ^= 4
		return tx.Put(space, key, flipped)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func remove(t *testing.T, s *Store, space string, key []byte) {
	t.Helper()
	if err := s.db.Update(t.Context(), func(tx kv.Tx) error { return tx.Delete(space, key) }); err != nil {
		t.Fatal(err)
	}
}

// damagedStore has an agent with one run that waits with input "hello".
func damagedStore(t *testing.T) (*Store, Caller, Run) {
	t.Helper()
	s, err := Open(t.Context(), openDB(t, filepath.Join(t.TempDir(), "agentrun.db")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	caller := callerOf(t, s, applyEcho(t, s))
	return s, caller, createRun(t, s, caller, "hello")
}

func createRun(t *testing.T, s *Store, caller Caller, input string) Run {
	t.Helper()
	return create(t, s, NewRun{Caller: caller, Template: caller.AgentID, Name: "run", Input: &input})
}

func createIdle(t *testing.T, s *Store, caller Caller) Run {
	t.Helper()
	return create(t, s, NewRun{Caller: caller, Template: caller.AgentID, Name: "run"})
}

func create(t *testing.T, s *Store, n NewRun) Run {
	t.Helper()
	id, err := NewRunID()
	if err != nil {
		t.Fatal(err)
	}
	n.ID = id
	run, err := s.CreateRun(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

func TestDamagedTranscriptIsNeverAnswered(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, s *Store, run Run){
		"a message is flipped": func(t *testing.T, s *Store, run Run) {
			t.Helper()
			damage(t, s, spaceMessages, sequence(run.ID.UUID[:], 1))
		},
		"the first message is missing": func(t *testing.T, s *Store, run Run) {
			t.Helper()
			remove(t, s, spaceMessages, sequence(run.ID.UUID[:], 1))
		},
		"the last message is missing": func(t *testing.T, s *Store, run Run) {
			t.Helper()
			remove(t, s, spaceMessages, sequence(run.ID.UUID[:], 2))
		},
		"the row is flipped": func(t *testing.T, s *Store, run Run) {
			t.Helper()
			damage(t, s, spaceRuns, run.ID.UUID[:])
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, caller, run := damagedStore(t)
			turn, err := s.ClaimNext(t.Context(), AgentID{}, "none")
			if err != nil {
				t.Fatal(err)
			}
			if err := s.FinishTurn(t.Context(), turn.Claim, "bye"); err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.StateAndTranscript(t.Context(), caller, run.ID); err != nil {
				t.Fatalf("before the damage: %v", err)
			}
			harm(t, s, run)
			if state, messages, err := s.StateAndTranscript(t.Context(), caller, run.ID); !errors.Is(err, ErrDamagedRecord) {
				t.Errorf("got %s %+v %v, want ErrDamagedRecord", state, messages, err)
			}
		})
	}
}

// TestDamagedRunDoesNotBlockTheQueue damages what a claim reads, one after the
// other: the run is set aside and reported, and the one behind it is claimed.
func TestDamagedRunDoesNotBlockTheQueue(t *testing.T) {
	for name, c := range map[string]struct {
		place    func(run Run) (space string, key []byte)
		readable bool // the row is, and tells what happened
	}{
		"the run": {func(run Run) (string, []byte) { return spaceRuns, run.ID.UUID[:] }, false},
		"the input": {func(run Run) (string, []byte) {
			return spaceInputs, sequence(run.ID.UUID[:], 1)
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, caller, run := damagedStore(t)
			behind := createRun(t, s, caller, "next")
			space, key := c.place(run)
			damage(t, s, space, key)

			if turn, err := s.ClaimNext(t.Context(), AgentID{}, "none"); !errors.Is(err, ErrDamagedRecord) {
				t.Fatalf("got %+v, %v, want ErrDamagedRecord", turn, err)
			}
			turn, err := s.ClaimNext(t.Context(), AgentID{}, "none")
			if err != nil || turn == nil || turn.Run.ID != behind.ID {
				t.Fatalf("the run behind it: %+v, %v", turn, err)
			}
			if c.readable {
				state, _, err := s.StateAndTranscript(t.Context(), caller, run.ID)
				if err != nil || state != StateTechnicalError {
					t.Errorf("the run itself: %s, %v", state, err)
				}
			}
		})
	}
}

func TestSettleGoesOnBehindADamagedRun(t *testing.T) {
	s, caller, run := damagedStore(t)
	other := createRun(t, s, caller, "next")
	for range 2 {
		if _, err := s.ClaimNext(t.Context(), AgentID{}, "none"); err != nil {
			t.Fatal(err)
		}
	}
	damage(t, s, spaceRuns, run.ID.UUID[:])
	if err := s.raiseEpoch(t.Context()); err != nil {
		t.Fatal(err)
	}
	done, err := s.Settle(t.Context(), "server stopped")
	if err != nil || len(done.Damaged) != 1 || done.Damaged[0] != run.ID || len(done.Failed) != 1 || done.Failed[0] != other.ID {
		t.Errorf("%+v, %v", done, err)
	}
}

// TestSettleWithoutTheAgentFile: a run must not stay running because the file
// that would say whether its turn may be run again is damaged.
func TestSettleWithoutTheAgentFile(t *testing.T) {
	s, caller, run := damagedStore(t)
	if _, err := s.ClaimNext(t.Context(), AgentID{}, "none"); err != nil {
		t.Fatal(err)
	}
	damage(t, s, spaceRevisions, revisionKey(run.AgentID, run.Revision))
	if err := s.raiseEpoch(t.Context()); err != nil {
		t.Fatal(err)
	}
	done, err := s.Settle(t.Context(), "server stopped")
	if err != nil || len(done.Failed) != 1 {
		t.Errorf("%+v, %v", done, err)
	}
	if state, _, err := s.StateAndTranscript(t.Context(), caller, run.ID); err != nil || state != StateTechnicalError {
		t.Errorf("%s, %v", state, err)
	}
}

func TestMissingRunsBehindIndexes(t *testing.T) {
	s, caller, claimed := damagedStore(t)
	if _, err := s.ClaimNext(t.Context(), AgentID{}, "none"); err != nil {
		t.Fatal(err)
	}
	waiting, sound := createRun(t, s, caller, "gone"), createRun(t, s, caller, "sound")
	remove(t, s, spaceRuns, claimed.ID.UUID[:])
	remove(t, s, spaceRuns, waiting.ID.UUID[:])
	if err := s.raiseEpoch(t.Context()); err != nil {
		t.Fatal(err)
	}
	if done, err := s.Settle(t.Context(), "server stopped"); err != nil || len(done.Damaged) != 1 {
		t.Errorf("Settle: %+v, %v", done, err)
	}
	if _, err := s.DeleteAgent(t.Context(), "echo"); err != nil {
		t.Errorf("DeleteAgent: %v", err)
	}
	if state, _, err := s.StateAndTranscript(t.Context(), caller, sound.ID); err != nil || state != StateTerminated {
		t.Errorf("the sound run: %s, %v", state, err)
	}
}

// A run that cannot be read is not stopped, and is not in the way of the others.
func TestStopIdleGoesOnBehindADamagedRun(t *testing.T) {
	s, caller, _ := damagedStore(t)
	damaged, missing, sound := createIdle(t, s, caller), createIdle(t, s, caller), createIdle(t, s, caller)
	damage(t, s, spaceRuns, damaged.ID.UUID[:])
	remove(t, s, spaceRuns, missing.ID.UUID[:])
	stopped, err := s.StopIdle(t.Context(), time.Now(), "test")
	if err != nil || len(stopped) != 1 || stopped[0] != sound.ID {
		t.Errorf("stopped %v, %v, want %s", stopped, err, sound.ID)
	}
	if since, err := s.LongestIdle(t.Context()); err != nil || !since.IsZero() {
		t.Errorf("still idle since %v, %v", since, err)
	}
}
