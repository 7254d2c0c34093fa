package storage

import (
	"context"

	"agentrun/storage/kv"
)

// DeleteRun stops a run as StopRun does and, with its end, erases its
// transcript and its history. What stays is the row, terminated and empty.
// The workspace is for others to remove: Erasures leads to it, and the run is
// Erasing until WorkspaceErased. A deleted run stays as it is. Errors:
// ErrRunNotFound, ErrForbidden.
func (s *Store) DeleteRun(ctx context.Context, id RunID, reason string) (Run, error) {
	return s.actOnRun(ctx, id, "run.delete", func(tx *tx, rec *runRecord) error {
		if rec.Deleted {
			return nil
		}
		rec.Deleted = true
		if rec.State == StateTerminated {
			return tx.erase(rec)
		}
		return tx.stop(rec, reason)
	})
}

// erase removes what is known of a run that is terminated, up to its row. The
// caller writes the row.
func (tx *tx) erase(rec *runRecord) error {
	for _, space := range []string{spaceMessages, spaceEvents} {
		pairs, err := tx.Scan(kv.Prefix(space, rec.ID.UUID[:]))
		if err != nil {
			return err
		}
		for _, p := range pairs {
			if err := tx.Delete(space, p.Key); err != nil {
				return err
			}
		}
	}
	rec.Messages, rec.Events, rec.Erasing = 0, 0, true
	return put(tx, spaceErasures, rec.ID.UUID[:], present{})
}

// Erasures returns up to limit deleted runs whose workspace is still to be
// removed; a limit of 0 means all of them. Nothing of these runs is alive.
func (s *Store) Erasures(ctx context.Context, limit int) ([]RunID, error) {
	var runs []RunID
	err := s.db.View(ctx, func(r kv.Reader) (err error) {
		runs, err = runsIn(r, kv.Range{Space: spaceErasures, Limit: limit})
		return err
	})
	return runs, err
}

// WorkspaceErased records that the workspace of a deleted run is gone. Errors:
// ErrRunNotFound.
func (s *Store) WorkspaceErased(ctx context.Context, id RunID) error {
	_, err := s.changeRun(ctx, id, func(tx *tx, rec *runRecord) error {
		rec.Erasing = false
		return tx.Delete(spaceErasures, id.UUID[:])
	})
	return err
}
