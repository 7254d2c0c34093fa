package storage

import (
	"context"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// Settled reports what Settle did, by run.
type Settled struct {
	// Failed runs lost a turn that must not be run twice.
	Failed []RunID
	// Parked runs have a turn that is run again.
	Parked []RunID
	// Terminated runs were to be stopped.
	Terminated []RunID
	// Damaged runs cannot be read; they are left as they are.
	Damaged []RunID
}

// Settle gives every run that a server of an earlier life held its right
// state, once nothing of that life is alive: the turn of a model goes on, that
// of a program fails with the reason, unless its agent file says restart: true.
func (s *Store) Settle(ctx context.Context, reason string) (Settled, error) {
	var stale []RunID
	err := s.db.View(ctx, func(r kv.Reader) (err error) {
		stale, err = runsIn(r, kv.Range{Space: spaceClaims})
		return err
	})
	if err != nil {
		return Settled{}, err
	}
	var done Settled
	for _, id := range stale {
		err := s.settle(ctx, id, reason, &done)
		switch {
		case errors.Is(err, ErrDamagedRecord):
			done.Damaged = append(done.Damaged, id)
		case err != nil:
			return done, err
		}
	}
	return done, nil
}

func (s *Store) settle(ctx context.Context, id RunID, reason string, done *Settled) error {
	var into *[]RunID
	err := s.update(ctx, func(tx *tx) error {
		into = nil
		rec, err := indexedRun(tx, id)
		if err != nil || rec.Claim == nil || rec.Claim.Epoch == tx.epoch {
			return err
		}
		rev, err := revision(tx, rec.AgentID, rec.Revision)
		if err != nil && !errors.Is(err, ErrDamagedRecord) {
			return err
		}
		// Of an agent file that cannot be read it is not known that its turn may
		// be begun again.
		restart := err == nil && rev.Definition.Resumes()
		switch {
		case rec.Stopping != "":
			into = &done.Terminated
			err = tx.failTurn(rec, reason)
		case restart:
			into = &done.Parked
			err = tx.parkTurn(rec, reason)
		default:
			into = &done.Failed
			err = tx.failTurn(rec, reason)
		}
		if err != nil {
			return err
		}
		return tx.putRun(rec)
	})
	if err == nil && into != nil {
		*into = append(*into, id)
	}
	return err
}
