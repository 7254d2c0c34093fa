package storage

import (
	"context"
	"time"

	"github.com/go-faster/errors"
)

// inputRecord is an input that waits for its turn.
type inputRecord struct {
	Text string    `json:"text"`
	At   time.Time `json:"at"`
}

// GiveInput gives a run one more input. An idle run starts to wait for a
// worker in the same transaction; during a turn the input waits, and starts a
// turn of its own when those before it are over. Errors: ErrRunNotFound,
// ErrForbidden, ErrRunTerminated (also while the run is being stopped), ErrAgentDeleted,
// *ArchivedError.
func (s *Store) GiveInput(ctx context.Context, id RunID, text string) (Run, error) {
	return s.actOnRun(ctx, id, "run.input", func(tx *tx, rec *runRecord) error {
		// A run that is to end would drop the input: better to refuse it now.
		if rec.State == StateTerminated || rec.Stopping != "" {
			return errors.Wrapf(ErrRunTerminated, "run %s", id)
		}
		if _, err := openAgent(tx, rec.AgentID); err != nil {
			return errors.Wrapf(err, "run %s", id)
		}
		return tx.giveInput(rec, text)
	})
}

// giveInput adds an input to those that wait and, when the run is idle, the
// run to those that wait for a worker. The caller writes the row.
func (tx *tx) giveInput(rec *runRecord, text string) error {
	rec.Given++
	key := sequence(rec.ID.UUID[:], rec.Given)
	if err := put(tx, spaceInputs, key, inputRecord{Text: text, At: tx.now}); err != nil {
		return err
	}
	if err := tx.addEvent(rec, EventInputGiven, InputGiven{Input: rec.Given}); err != nil {
		return err
	}
	if rec.State == StateRunning {
		return nil
	}
	rec.State, rec.Reason = StateRunning, ""
	return tx.queue(rec)
}
