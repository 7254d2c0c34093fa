package storage

import (
	"context"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/storage/agentfile"
	"agentrun/storage/kv"
)

// Claim is a server's hold on a run. Every write of a turn names it and is
// refused with ErrStaleClaim when the run is held by another claim or by none.
type Claim struct {
	Run RunID `json:"run"`
	// Epoch is the life of the store in which the claim was made.
	Epoch uint64 `json:"epoch"`
	// Token tells the claims of one epoch apart.
	Token uuid.UUID `json:"token"`
}

// Turn is what a claim hands to its holder: an accepted input to work on.
type Turn struct {
	Claim Claim
	Run   Run
	// Definition is the agent file's content at the run's revision.
	Definition agentfile.Definition
	Input      string
	// Again is true when the turn was begun before and cut off.
	Again bool
}

// Waiting returns how many runs wait for a worker, counting up to limit.
func (s *Store) Waiting(ctx context.Context, limit int) (int, error) {
	var n int
	err := s.db.View(ctx, func(r kv.Reader) error {
		pairs, err := r.Scan(kv.Range{Space: spaceWaiting, Limit: limit})
		n = len(pairs)
		return err
	})
	return n, err
}

// ClaimNext claims the run that has waited longest of the first agent behind
// after, in turn, so that no agent's runs keep those of another waiting. The
// run's oldest input enters the transcript in the same transaction; sandbox is
// noted in its history. It returns nil when no run waits. A run that cannot be
// read is taken out of the queue and reported as ErrDamagedRecord.
func (s *Store) ClaimNext(ctx context.Context, after AgentID, sandbox string) (*Turn, error) {
	var turn *Turn
	var damage error
	err := s.update(ctx, func(tx *tx) error {
		turn, damage = nil, nil
		key, err := headOfQueue(tx, after)
		if err != nil || key == nil {
			return err
		}
		turn, err = tx.claim(key, sandbox)
		if errors.Is(err, ErrDamagedRecord) {
			damage = err
			return tx.setAside(key, damage)
		}
		return err
	})
	if err == nil {
		err = damage
	}
	if err != nil {
		return nil, err
	}
	return turn, nil
}

// headOfQueue returns the key of the run at the head of the queue of the first
// agent behind after, beginning anew after the last agent; nil when none waits.
func headOfQueue(r kv.Reader, after AgentID) ([]byte, error) {
	for _, from := range [][]byte{kv.After(after.UUID[:]), nil} {
		pairs, err := r.Scan(kv.Range{Space: spaceWaiting, From: from, Limit: 1})
		if err != nil {
			return nil, err
		}
		if len(pairs) > 0 {
			return join(pairs[0].Key), nil
		}
	}
	return nil, nil
}

// waitingRun returns the run that a key of the queue leads to.
func waitingRun(r kv.Reader, key []byte) (*runRecord, error) {
	id, err := lastID(spaceWaiting, key)
	if err != nil {
		return nil, err
	}
	return indexedRun(r, id)
}

// claim makes the claim on the run at key. It reads all that it needs before
// its first write, so that damage is found while nothing is changed yet.
func (tx *tx) claim(key []byte, sandbox string) (*Turn, error) {
	rec, err := waitingRun(tx, key)
	if err != nil {
		return nil, err
	}
	rev, err := revision(tx, rec.AgentID, rec.Revision)
	if err != nil {
		return nil, err
	}
	input, err := turnInput(tx, rec)
	if err != nil {
		return nil, err
	}
	token, err := newUUID()
	if err != nil {
		return nil, err
	}
	turn := &Turn{Definition: rev.Definition, Input: input, Again: rec.TurnOpen}
	if err := tx.unqueue(rec); err != nil {
		return nil, err
	}
	rec.Claim = &Claim{Run: rec.ID, Epoch: tx.epoch, Token: token}
	if err := put(tx, spaceClaims, claimKey(rec), present{}); err != nil {
		return nil, err
	}
	if !rec.TurnOpen {
		if err := tx.acceptInput(rec, input); err != nil {
			return nil, err
		}
	}
	if err := tx.addEvent(rec, EventTurnStarted, TurnStarted{Again: turn.Again, Sandbox: sandbox}); err != nil {
		return nil, err
	}
	turn.Claim, turn.Run = *rec.Claim, rec.run()
	return turn, tx.putRun(rec)
}

// setAside takes a run that cannot be worked on out of the queue, and lets it
// end with the reason as far as its row is readable.
func (tx *tx) setAside(key []byte, damage error) error {
	rec, unreadable := waitingRun(tx, key)
	if err := tx.Delete(spaceWaiting, key); err != nil {
		return err
	}
	if unreadable != nil {
		return nil //nolint:nilerr // The row is the damage; whoever reads the run is told.
	}
	rec.Ticket, rec.TurnOpen = nil, false
	rec.State, rec.Reason = StateTechnicalError, damage.Error()
	if err := tx.addEvent(rec, EventTurnFailed, Reason{rec.Reason}); err != nil {
		return err
	}
	return tx.putRun(rec)
}

// turnInput returns the input of the run's next turn: the next one that waits,
// or that of the turn that was cut off, which is the last message.
func turnInput(r kv.Reader, rec *runRecord) (string, error) {
	if rec.TurnOpen {
		last, err := get[messageRecord](r, spaceMessages, sequence(rec.ID.UUID[:], rec.Messages))
		if err != nil {
			return "", err
		}
		if last == nil {
			return "", errors.Wrapf(ErrDamagedRecord, "run %s: message %d missing", rec.ID, rec.Messages)
		}
		return last.Text, nil
	}
	input, err := get[inputRecord](r, spaceInputs, sequence(rec.ID.UUID[:], rec.Accepted+1))
	if err != nil {
		return "", err
	}
	if input == nil {
		return "", errors.Wrapf(ErrDamagedRecord, "run %s: input %d missing", rec.ID, rec.Accepted+1)
	}
	return input.Text, nil
}

// acceptInput opens a turn with the run's next input, which leaves those that
// wait and enters the transcript.
func (tx *tx) acceptInput(rec *runRecord, text string) error {
	rec.Accepted++
	rec.Turn++
	rec.TurnOpen = true
	if err := tx.Delete(spaceInputs, sequence(rec.ID.UUID[:], rec.Accepted)); err != nil {
		return err
	}
	return tx.addMessage(rec, RoleInput, text)
}

// FinishTurn ends a turn with its output. Output and new state are one
// transaction: running when another input waits, else finished. When a stop
// was asked for meanwhile, the output is kept and the run is terminated.
// Errors: ErrStaleClaim.
func (s *Store) FinishTurn(ctx context.Context, c Claim, output string, events ...Event) error {
	return s.updateClaimed(ctx, c, func(tx *tx, rec *runRecord) error {
		if err := tx.addEvents(rec, events...); err != nil {
			return err
		}
		if err := tx.addMessage(rec, RoleOutput, output); err != nil {
			return err
		}
		if err := tx.addEvent(rec, EventTurnFinished, nil); err != nil {
			return err
		}
		return tx.endTurn(rec, StateFinished, "")
	})
}

// FailTurn ends a turn without an output: the reason goes to the history, the
// run on to its next input, or to technical_error when none waits. Errors:
// ErrStaleClaim.
func (s *Store) FailTurn(ctx context.Context, c Claim, reason string, events ...Event) error {
	return s.updateClaimed(ctx, c, func(tx *tx, rec *runRecord) error {
		return tx.failTurn(rec, reason, events...)
	})
}

func (tx *tx) failTurn(rec *runRecord, reason string, events ...Event) error {
	if err := tx.addEvents(rec, events...); err != nil {
		return err
	}
	if err := tx.addEvent(rec, EventTurnFailed, Reason{reason}); err != nil {
		return err
	}
	return tx.endTurn(rec, StateTechnicalError, reason)
}

// ParkTurn releases the claim of a turn that is to be run again; the run stays
// running. Errors: ErrStaleClaim.
func (s *Store) ParkTurn(ctx context.Context, c Claim, reason string, events ...Event) error {
	return s.updateClaimed(ctx, c, func(tx *tx, rec *runRecord) error {
		return tx.parkTurn(rec, reason, events...)
	})
}

func (tx *tx) parkTurn(rec *runRecord, reason string, events ...Event) error {
	if err := tx.addEvents(rec, events...); err != nil {
		return err
	}
	if rec.Stopping != "" {
		return tx.endTurn(rec, StateTechnicalError, reason)
	}
	if err := tx.addEvent(rec, EventTurnParked, Reason{reason}); err != nil {
		return err
	}
	if err := tx.release(rec); err != nil {
		return err
	}
	return tx.queue(rec)
}

// updateClaimed runs fn on the row of a run that c still holds.
func (s *Store) updateClaimed(ctx context.Context, c Claim, fn func(*tx, *runRecord) error) error {
	return s.update(ctx, func(tx *tx) error {
		rec, err := runByID(tx, c.Run)
		if err != nil {
			return err
		}
		if rec.Claim == nil || *rec.Claim != c || c.Epoch != tx.epoch {
			return errors.Wrapf(ErrStaleClaim, "run %s", c.Run)
		}
		if err := fn(tx, rec); err != nil {
			return err
		}
		return tx.putRun(rec)
	})
}

// endTurn closes the open turn and gives the run its next state: idle is the
// state for a run that has nothing more to do.
func (tx *tx) endTurn(rec *runRecord, idle State, reason string) error {
	rec.TurnOpen = false
	if err := tx.release(rec); err != nil {
		return err
	}
	switch {
	case rec.Stopping != "":
		return tx.terminate(rec, rec.Stopping)
	case rec.Given > rec.Accepted:
		return tx.queue(rec)
	}
	rec.State, rec.Reason = idle, reason
	return nil
}

// release ends the run's claim.
func (tx *tx) release(rec *runRecord) error {
	rec.Claim = nil
	return tx.Delete(spaceClaims, claimKey(rec))
}

func claimKey(rec *runRecord) []byte { return join(rec.AgentID.UUID[:], rec.ID.UUID[:]) }
