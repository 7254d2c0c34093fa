package storage

import (
	"context"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// StopRun ends a run: at once when no server holds it, else as soon as its
// holder has seen to it that nothing of it is alive; the run returned says
// which. reason goes to the history. A run that is terminated, or is being
// stopped, stays as it is. Errors: ErrRunNotFound, ErrForbidden.
func (s *Store) StopRun(ctx context.Context, id RunID, reason string) (Run, error) {
	return s.actOnRun(ctx, id, "run.stop", func(tx *tx, rec *runRecord) error { return tx.stop(rec, reason) })
}

// StopRequested returns why the run of a claim is to end; empty when it is not.
// Errors: ErrRunNotFound.
func (s *Store) StopRequested(ctx context.Context, c Claim) (string, error) {
	var reason string
	err := s.db.View(ctx, func(r kv.Reader) error {
		rec, err := runByID(r, c.Run)
		if err == nil {
			reason = rec.Stopping
		}
		return err
	})
	return reason, err
}

// stopRunsOf stops the runs of an agent that wait or are claimed. One whose row
// cannot be read does not keep the others going.
func (tx *tx) stopRunsOf(agent AgentID) error {
	for _, space := range []string{spaceWaiting, spaceClaims} {
		runs, err := runsIn(tx, kv.Prefix(space, agent.UUID[:]))
		if err != nil {
			return err
		}
		for _, id := range runs {
			rec, err := indexedRun(tx, id)
			if errors.Is(err, ErrDamagedRecord) {
				continue
			}
			if err != nil {
				return err
			}
			if err := tx.stop(rec, "agent deleted"); err != nil {
				return err
			}
			if err := tx.putRun(rec); err != nil {
				return err
			}
		}
	}
	return nil
}

// runsIn returns the runs that an index leads to.
func runsIn(r kv.Reader, rng kv.Range) ([]RunID, error) {
	pairs, err := r.Scan(rng)
	if err != nil {
		return nil, err
	}
	runs := make([]RunID, len(pairs))
	for i, p := range pairs {
		if runs[i], err = lastID(rng.Space, p.Key); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// stop ends a run that no server holds, and asks the holder of one that is
// claimed to end it. A terminated run stays as it is. The caller writes the row.
func (tx *tx) stop(rec *runRecord, reason string) error {
	if rec.State == StateTerminated || rec.Stopping != "" {
		return nil
	}
	if err := tx.addEvent(rec, EventStopRequested, Reason{reason}); err != nil {
		return err
	}
	if rec.Claim != nil {
		rec.Stopping = reason
		return nil
	}
	if rec.Ticket != nil {
		if err := tx.unqueue(rec); err != nil {
			return err
		}
	}
	return tx.terminate(rec, reason)
}

// terminate ends the run of which nothing is alive any more. Inputs that still
// wait are dropped with an event. The caller writes the row.
func (tx *tx) terminate(rec *runRecord, reason string) error {
	for rec.Accepted < rec.Given {
		rec.Accepted++
		if err := tx.Delete(spaceInputs, sequence(rec.ID.UUID[:], rec.Accepted)); err != nil {
			return err
		}
		if err := tx.addEvent(rec, EventInputDropped, InputGiven{Input: rec.Accepted}); err != nil {
			return err
		}
	}
	rec.State, rec.Reason, rec.Stopping, rec.TurnOpen = StateTerminated, reason, "", false
	if err := tx.addEvent(rec, EventRunTerminated, Reason{reason}); err != nil || !rec.Deleted {
		return err
	}
	return tx.erase(rec)
}
