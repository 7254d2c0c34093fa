package storage

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// idle says whether the run has nothing to do and waits for input.
func (r *runRecord) idle() bool {
	return r.State == StateFinished || r.State == StateTechnicalError
}

// indexIdle enters a run that came to be idle among the idle, and takes out one
// that no longer is. The caller writes the row.
func (tx *tx) indexIdle(rec *runRecord) error {
	switch {
	case rec.idle() && rec.IdleSince.IsZero():
		rec.IdleSince = rec.UpdatedAt
		return put(tx, spaceIdle, idleKey(rec), present{})
	case !rec.idle() && !rec.IdleSince.IsZero():
		key := idleKey(rec)
		rec.IdleSince = time.Time{}
		return tx.Delete(spaceIdle, key)
	}
	return nil
}

// idleKey is the place of a run among the idle, of whom the one that has been
// so longest comes first.
func idleKey(rec *runRecord) []byte { return join(idleTime(rec.IdleSince), rec.ID.UUID[:]) }

// idleTime encodes a time so that the order of the bytes is that of time. Times
// before 1970 do not occur.
func idleTime(t time.Time) []byte { return binary.BigEndian.AppendUint64(nil, uint64(t.UnixNano())) }

// maxIdleStops is how many idle runs one transaction stops.
const maxIdleStops = 100

// LongestIdle returns since when the run has been idle that has been so
// longest; the zero time when no run is idle.
func (s *Store) LongestIdle(ctx context.Context) (time.Time, error) {
	var since time.Time
	err := s.db.View(ctx, func(r kv.Reader) error {
		since = time.Time{}
		pairs, err := r.Scan(kv.Range{Space: spaceIdle, Limit: 1})
		if err == nil && len(pairs) > 0 {
			since = time.Unix(0, int64(binary.BigEndian.Uint64(pairs[0].Key))).UTC()
		}
		return err
	})
	return since, err
}

// StopIdle stops the runs that have been idle since before or longer, at most
// a hundred at once, and returns them; reason goes to their histories. A run
// that cannot be read is no longer counted among the idle.
func (s *Store) StopIdle(ctx context.Context, before time.Time, reason string) ([]RunID, error) {
	var stopped []RunID
	err := s.update(ctx, func(tx *tx) error {
		stopped = nil
		due, err := tx.Scan(kv.Range{Space: spaceIdle, To: kv.After(idleTime(before)), Limit: maxIdleStops})
		if err != nil {
			return err
		}
		for _, p := range due {
			id, err := lastID(spaceIdle, p.Key)
			if err == nil {
				err = tx.stopIdle(id, reason)
			}
			switch {
			case errors.Is(err, ErrDamagedRecord):
				if err := tx.Delete(spaceIdle, p.Key); err != nil {
					return err
				}
			case err != nil:
				return err
			default:
				stopped = append(stopped, id)
			}
		}
		return nil
	})
	return stopped, err
}

func (tx *tx) stopIdle(id RunID, reason string) error {
	rec, err := indexedRun(tx, id)
	if err != nil {
		return err
	}
	if err := tx.stop(rec, reason); err != nil {
		return err
	}
	return tx.putRun(rec)
}

// indexIdleRuns enters the idle runs of data in which they were not indexed.
func (tx *tx) indexIdleRuns() error {
	return tx.eachRun(func(rec *runRecord) error {
		if err := tx.indexIdle(rec); err != nil {
			return err
		}
		return put(tx, spaceRuns, rec.ID.UUID[:], *rec)
	})
}

// eachRun hands every run of old data to a migration. Those that cannot be read
// are passed over.
func (tx *tx) eachRun(do func(*runRecord) error) error {
	rng := kv.Range{Space: spaceRuns, Limit: scanBatch}
	for {
		pairs, err := tx.Scan(rng)
		if err != nil || len(pairs) == 0 {
			return err
		}
		for _, p := range pairs {
			rec, err := get[runRecord](tx, spaceRuns, p.Key)
			if errors.Is(err, ErrDamagedRecord) {
				continue
			}
			if err != nil {
				return err
			}
			if err := do(rec); err != nil {
				return err
			}
		}
		rng.From = join(pairs[len(pairs)-1].Key, []byte{0})
	}
}
