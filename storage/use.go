package storage

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/storage/kv"
)

// keptRefusals is how many refused requests of a key are kept.
const keptRefusals = 100

// KeyRequest is a request to create a run.
type KeyRequest struct {
	At time.Time `json:"at"`
	// Status is the HTTP status that it was answered with.
	Status int `json:"status"`
	// Run is the run that it made; zero when it made none.
	Run  RunID  `json:"-"`
	Name string `json:"-"`
}

// uses are what is remembered of keys and tokens until the next flush, so that
// a request that only reads, or is refused, causes no write.
type uses struct {
	mu      sync.Mutex
	last    map[uuid.UUID]time.Time
	refused map[KeyID][]KeyRequest
}

// note remembers that a key or a token was used.
func (u *uses) note(id uuid.UUID, at time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last == nil {
		u.last = map[uuid.UUID]time.Time{}
	}
	if at.After(u.last[id]) {
		u.last[id] = at
	}
}

// latest returns when a key or a token was last used, given what is recorded.
func (u *uses) latest(id uuid.UUID, recorded time.Time) time.Time {
	u.mu.Lock()
	defer u.mu.Unlock()
	if at := u.last[id]; at.After(recorded) {
		return at.UTC()
	}
	return recorded
}

// take empties what is remembered and returns it.
func (u *uses) take() (map[uuid.UUID]time.Time, map[KeyID][]KeyRequest) {
	u.mu.Lock()
	defer u.mu.Unlock()
	last, refused := u.last, u.refused
	u.last, u.refused = nil, nil
	return last, refused
}

// giveBack remembers again what could not be flushed.
func (u *uses) giveBack(last map[uuid.UUID]time.Time, refused map[KeyID][]KeyRequest) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.last == nil {
		u.last = map[uuid.UUID]time.Time{}
	}
	for id, at := range last {
		if at.After(u.last[id]) {
			u.last[id] = at
		}
	}
	if u.refused == nil {
		u.refused = map[KeyID][]KeyRequest{}
	}
	for id, requests := range refused {
		u.refused[id] = newest(requests, u.refused[id])
	}
}

// newest joins two lists of requests and keeps the end.
func newest(earlier, later []KeyRequest) []KeyRequest {
	all := slices.Concat(earlier, later)
	return all[max(0, len(all)-keptRefusals):]
}

// NoteRefused remembers that a request of a key to create a run was refused.
func (s *Store) NoteRefused(key KeyID, status int) {
	s.uses.mu.Lock()
	defer s.uses.mu.Unlock()
	if s.uses.refused == nil {
		s.uses.refused = map[KeyID][]KeyRequest{}
	}
	one := []KeyRequest{{At: s.now().UTC(), Status: status}}
	s.uses.refused[key] = newest(s.uses.refused[key], one)
}

// FlushUses writes down when keys and tokens were last used, and what keys were
// refused. Whoever serves requests calls it about once a minute, and at the end;
// what is remembered in between is lost with the process, and is no promise.
func (s *Store) FlushUses(ctx context.Context) error {
	last, refused := s.uses.take()
	if len(last) == 0 && len(refused) == 0 {
		return nil
	}
	err := s.update(ctx, func(tx *tx) error {
		for _, id := range slices.SortedFunc(maps.Keys(last), compareIDs) {
			if err := tx.recordUse(id, last[id]); err != nil {
				return err
			}
		}
		for key, requests := range refused {
			if err := tx.recordRefused(key, requests); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		s.uses.giveBack(last, refused)
	}
	return err
}

func compareIDs(a, b uuid.UUID) int { return slices.Compare(a[:], b[:]) }

// recordUse writes the last use of a key or a token that is still there. One that
// cannot be read is passed over, so that it does not keep the others.
func (tx *tx) recordUse(id uuid.UUID, at time.Time) error {
	key, err := get[keyRecord](tx, spaceKeys, id[:])
	if err != nil {
		return unlessDamaged(err)
	}
	if key != nil {
		key.LastUsedAt = at.UTC()
		return put(tx, spaceKeys, id[:], *key)
	}
	token, err := get[tokenRecord](tx, spaceTokens, id[:])
	if err != nil || token == nil {
		return unlessDamaged(err)
	}
	token.LastUsedAt = at.UTC()
	return put(tx, spaceTokens, id[:], *token)
}

func unlessDamaged(err error) error {
	if errors.Is(err, ErrDamagedRecord) {
		return nil
	}
	return err
}

// refusedRecord are the last refused requests of a key, oldest first.
type refusedRecord struct {
	Requests []KeyRequest `json:"requests"`
}

func (tx *tx) recordRefused(id KeyID, requests []KeyRequest) error {
	if key, err := get[keyRecord](tx, spaceKeys, id.UUID[:]); err != nil || key == nil {
		return unlessDamaged(err)
	}
	rec, err := get[refusedRecord](tx, spaceKeyRefusals, id.UUID[:])
	if unlessDamaged(err) != nil {
		return err
	}
	if rec == nil { // or it cannot be read: the next ones begin anew
		rec = &refusedRecord{}
	}
	return put(tx, spaceKeyRefusals, id.UUID[:], refusedRecord{newest(rec.Requests, requests)})
}

// KeyRequests returns up to limit requests of a key to create a run, made before
// a moment, newest first; the zero time means now. To go on, the moment is that
// of the last request of the page, in full: two requests of the same nanosecond
// on both sides of the end of a page are one too few. Errors: ErrKeyNotFound.
func (s *Store) KeyRequests(ctx context.Context, id KeyID, before time.Time, limit int) ([]KeyRequest, error) {
	var requests []KeyRequest
	err := s.db.View(ctx, func(r kv.Reader) error {
		if _, err := findKey(r, ActorOf(ctx), id); err != nil {
			return err
		}
		var err error
		requests, err = s.refusedBefore(r, id, before)
		if err != nil {
			return err
		}
		made, err := madeBefore(r, id, before, limit)
		requests = append(requests, made...)
		return err
	})
	slices.SortStableFunc(requests, func(a, b KeyRequest) int { return b.At.Compare(a.At) })
	return requests[:min(limit, len(requests))], err
}

// madeBefore returns the newest requests of a key that made a run before a
// moment, up to limit and a few more. The index has them in the order of the
// runs' IDs, which are a little older than the rows, and not in their order.
func madeBefore(r kv.Reader, id KeyID, before time.Time, limit int) ([]KeyRequest, error) {
	rng := kv.Prefix(spaceKeyRuns, id.UUID[:])
	if !before.IsZero() {
		// A run's ID is older than its row, by which the list goes.
		rng.To = join(id.UUID[:], firstRunID(before.Add(time.Millisecond)))
	}
	rng.Reverse, rng.Limit = true, scanBatch
	var made []KeyRequest
	var oldest time.Time // of the first that fill the page
	for {
		runs, err := runsIn(r, rng)
		if err != nil || len(runs) == 0 {
			return made, err
		}
		for _, id := range runs {
			if len(made) >= limit && idTime(id.UUID).Add(maxRowDelay).Before(oldest) {
				return made, nil
			}
			run, err := listedRun(r, id)
			if err != nil {
				return nil, err
			}
			if !before.IsZero() && !run.CreatedAt.Before(before) {
				continue
			}
			made = append(made, KeyRequest{At: run.CreatedAt, Status: 201, Run: id, Name: run.Name})
			if len(made) == 1 || len(made) <= limit && run.CreatedAt.Before(oldest) {
				oldest = run.CreatedAt
			}
		}
		rng.To = join(id.UUID[:], runs[len(runs)-1].UUID[:])
	}
}

// refusedBefore returns what is recorded and remembered of refused requests.
func (s *Store) refusedBefore(r kv.Reader, id KeyID, before time.Time) ([]KeyRequest, error) {
	rec, err := get[refusedRecord](r, spaceKeyRefusals, id.UUID[:])
	if err != nil {
		return nil, err
	}
	var all []KeyRequest
	if rec != nil {
		all = rec.Requests
	}
	s.uses.mu.Lock()
	all = newest(all, s.uses.refused[id])
	s.uses.mu.Unlock()
	return slices.DeleteFunc(all, func(k KeyRequest) bool { return !before.IsZero() && !k.At.Before(before) }), nil
}
