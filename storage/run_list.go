package storage

import (
	"bytes"
	"context"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/storage/kv"
)

// RunFilter chooses among the runs that nobody wanted deleted.
type RunFilter struct {
	// Org, Agent and Key are whose runs these are; nil means everybody's. The most
	// exact of them is what is searched by.
	Org   *OrgID
	Agent *AgentID
	Key   *KeyID
	// State is the state of the runs; empty means every state.
	State State
	// Text is in the runs' names, in any case, or begins their IDs.
	Text string
	// Since and Until bound when the runs were made; zero means no bound.
	Since, Until time.Time
	// Before is the run that these come after in the list; zero means the newest.
	Before RunID
	// Limit is the most runs to return; 0 means all.
	Limit int
}

const (
	// scanBatch is how many keys a filtered scan reads at a time.
	scanBatch = 256
	// maxLooked is how many runs are looked at for one page, so that a filter
	// which hardly fits any does not keep everybody waiting.
	maxLooked = 5_000
	// maxRowDelay is how much older than its row a run's ID can be: in between,
	// the files that came with the request are written.
	maxRowDelay = time.Minute
	// damagedName is in the place of the name of a run that cannot be read.
	damagedName = "damaged record"
)

// Runs returns a page of the runs that fit and that the actor sees, newest
// first, and the run to go on before; the zero ID at the end. A page with a
// limit can have fewer runs than that, and others may still follow. A run that
// cannot be read is in the list all the same, whatever its state and its text
// would be, with its ID, the time in its ID and a reason that says so.
//
// Errors: ErrOrgNotFound for an organisation that the actor does not see.
func (s *Store) Runs(ctx context.Context, f RunFilter) (page []Run, next RunID, err error) {
	if actor := ActorOf(ctx); actor.Role != OperatorRole {
		if f.Org != nil && *f.Org != actor.Org {
			return nil, RunID{}, errors.Wrapf(ErrOrgNotFound, "%q", f.Org)
		}
		f.Org = &actor.Org
	}
	f.Text = strings.ToLower(strings.TrimSpace(f.Text))
	err = s.db.View(ctx, func(r kv.Reader) error {
		page, next = []Run{}, RunID{}
		rng := f.keys()
		for looked := 0; ; {
			runs, err := runsIn(r, rng)
			if err != nil || len(runs) == 0 {
				return err
			}
			for _, id := range runs {
				run, fits, err := f.look(r, id)
				switch {
				case err != nil:
					return err
				case f.Org != nil && run.OrgID != (OrgID{}) && run.OrgID != *f.Org:
					return nil // The agent or the key is another organisation's, with all its runs.
				case fits && f.Limit > 0 && len(page) == f.Limit:
					next = page[f.Limit-1].ID
					return nil
				case fits:
					page = append(page, run)
				}
				if looked++; f.Limit > 0 && looked == maxLooked {
					next = id
					return nil
				}
			}
			rng.To = f.key(runs[len(runs)-1])
		}
	})
	return page, next, err
}

// owners are the indexes in which all the wanted runs are, the smallest first;
// each is a space and whose runs they are in it.
func (f RunFilter) owners() []owner {
	var owners []owner
	if f.Key != nil {
		owners = append(owners, owner{spaceKeyRuns, f.Key.UUID[:]})
	}
	if f.Agent != nil {
		owners = append(owners, owner{spaceAgentRuns, f.Agent.UUID[:]})
	}
	if f.Org != nil {
		owners = append(owners, owner{spaceOrgRuns, f.Org.UUID[:]})
	}
	return append(owners, owner{spaceRuns, nil})
}

type owner struct {
	space string
	id    []byte
}

// key is where the list has a run.
func (f RunFilter) key(run RunID) []byte { return join(f.owners()[0].id, run.UUID[:]) }

// keys are where the runs are found: in the smallest index that has all of them.
func (f RunFilter) keys() kv.Range {
	index := f.owners()[0]
	rng := kv.Prefix(index.space, index.id)
	// A run's ID is a little older than the time in its row, by which it is chosen.
	if !f.Since.IsZero() {
		rng.From = join(index.id, firstRunID(f.Since.Add(-maxRowDelay)))
	}
	if !f.Until.IsZero() {
		rng.To = join(index.id, firstRunID(f.Until.Add(time.Millisecond)))
	}
	if before := f.key(f.Before); f.Before != (RunID{}) && (rng.To == nil || bytes.Compare(before, rng.To) < 0) {
		rng.To = before
	}
	rng.Reverse, rng.Limit = true, scanBatch
	return rng
}

// look returns the run with this ID and says whether it is one of those that
// are wanted.
func (f RunFilter) look(r kv.Reader, id RunID) (run Run, fits bool, err error) {
	run, err = listedRun(r, id)
	switch {
	case err != nil,
		!f.Since.IsZero() && run.CreatedAt.Before(f.Since),
		!f.Until.IsZero() && !run.CreatedAt.Before(f.Until):
		return run, false, err
	case run.OrgID == (OrgID{}):
		fits, err = f.indexed(r, id)
		return run, fits, err
	case run.Deleted,
		f.Org != nil && run.OrgID != *f.Org,
		f.Agent != nil && run.AgentID != *f.Agent,
		f.Key != nil && run.KeyID != *f.Key,
		f.State != "" && run.State != f.State:
		return run, false, nil
	}
	return run, strings.Contains(strings.ToLower(run.Name), f.Text) || strings.HasPrefix(run.ID.String(), f.Text), nil
}

// indexed says of a run that cannot be read whether all the indexes have it.
func (f RunFilter) indexed(r kv.Reader, id RunID) (bool, error) {
	for _, o := range f.owners() {
		if o.space == spaceRuns {
			continue // of which it is damage, not news, when it is missing there
		}
		if raw, err := r.Get(o.space, join(o.id, id.UUID[:])); err != nil || raw == nil {
			return false, err
		}
	}
	return true, nil
}

// listedRun returns a run that an index leads to. In the place of one that
// cannot be read it returns one that says so, and has no organisation: the list
// is not to fail for it, and not to keep quiet about it.
func listedRun(r kv.Reader, id RunID) (Run, error) {
	rec, err := indexedRun(r, id)
	switch {
	case errors.Is(err, ErrDamagedRecord):
		at := idTime(id.UUID)
		return Run{
			ID: id, Name: damagedName, State: StateTechnicalError, Reason: "the run cannot be read: " + err.Error(),
			CreatedAt: at, UpdatedAt: at,
		}, nil
	case err != nil:
		return Run{}, err
	}
	return rec.run(), nil
}

// indexOwned enters a run among those of its organisation and of its key.
func (tx *tx) indexOwned(rec *runRecord) error {
	if err := put(tx, spaceOrgRuns, join(rec.OrgID.UUID[:], rec.ID.UUID[:]), present{}); err != nil {
		return err
	}
	if rec.KeyID.UUID == uuid.Nil {
		return nil
	}
	return put(tx, spaceKeyRuns, join(rec.KeyID.UUID[:], rec.ID.UUID[:]), present{})
}

// indexOwnedRuns enters the runs of data in which they were not indexed.
func (tx *tx) indexOwnedRuns() error { return tx.eachRun(tx.indexOwned) }
