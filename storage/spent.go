package storage

import (
	"context"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/storage/kv"
)

// Spent is what models have taken: of one call, or of many.
type Spent struct {
	// Calls counts answers.
	Calls int64 `json:"calls,omitempty"`
	// Input, Cached and Output are tokens; Cached are those of Input that the
	// provider had in a cache.
	Input  int64 `json:"input,omitempty"`
	Cached int64 `json:"cached,omitempty"`
	Output int64 `json:"output,omitempty"`
	// Cost is in millionths of a US dollar, by the prices that the server knows.
	Cost int64 `json:"cost,omitempty"`
}

func (s Spent) plus(more Spent) Spent {
	return Spent{
		Calls: s.Calls + more.Calls, Input: s.Input + more.Input, Cached: s.Cached + more.Cached,
		Output: s.Output + more.Output, Cost: s.Cost + more.Cost,
	}
}

// Tokens are those of requests and answers.
func (s Spent) Tokens() int64 { return s.Input + s.Output }

// Spender is who models have worked for.
type Spender struct {
	Kind SpenderKind
	ID   uuid.UUID
	// Name is empty for one that was deleted.
	Name  string
	Spent Spent
}

// SpenderKind says what a Spender is.
type SpenderKind string

// The kinds, which begin the keys of the space.
const (
	SpenderOrg   SpenderKind = "organisation"
	SpenderAgent SpenderKind = "agent"
	SpenderKey   SpenderKind = "key"
)

func spentKey(kind SpenderKind, id uuid.UUID) []byte { return join([]byte(kind), id[:]) }

// spend adds what a run has spent to its own account and to those of its
// organisation, its agent and its key.
func (tx *tx) spend(rec *runRecord, spent Spent) error {
	if spent == (Spent{}) {
		return nil
	}
	rec.Spent = rec.Spent.plus(spent)
	for _, key := range [][]byte{
		spentKey(SpenderOrg, rec.OrgID.UUID), spentKey(SpenderAgent, rec.AgentID.UUID), spentKey(SpenderKey, rec.KeyID.UUID),
	} {
		before, err := get[Spent](tx, spaceSpent, key)
		if err != nil {
			return err
		}
		if before == nil {
			before = &Spent{}
		}
		if err := put(tx, spaceSpent, key, before.plus(spent)); err != nil {
			return err
		}
	}
	return tx.spendToday(rec.OrgID, spent)
}

// spendToday adds to what an organisation has spent today, by UTC.
func (tx *tx) spendToday(org OrgID, spent Spent) error {
	key := spentDailyKey(org, tx.now)
	before, err := get[Spent](tx, spaceSpentDaily, key)
	if err != nil {
		return err
	}
	if before == nil {
		before = &Spent{}
	}
	return put(tx, spaceSpentDaily, key, before.plus(spent))
}

func spentDailyKey(org OrgID, day time.Time) []byte {
	return join(org.UUID[:], []byte(day.UTC().Format("20060102")))
}

// DailySpent is what an organisation spent on a day.
type DailySpent struct {
	// Day is its first moment, by UTC.
	Day   time.Time
	Spent Spent
}

// SpentByDay returns what the organisation with this ID or name spent on each of
// the last days, today included, oldest first; those without any are there too.
// Errors: ErrOrgNotFound.
func (s *Store) SpentByDay(ctx context.Context, ref string, days int) ([]DailySpent, error) {
	var all []DailySpent
	err := s.db.View(ctx, func(r kv.Reader) error {
		all = []DailySpent{}
		org, err := findOrg(r, ActorOf(ctx), ref)
		if err != nil {
			return err
		}
		today := s.now().UTC().Truncate(24 * time.Hour)
		for ago := days - 1; ago >= 0; ago-- {
			day := DailySpent{Day: today.AddDate(0, 0, -ago)}
			spent, err := get[Spent](r, spaceSpentDaily, spentDailyKey(org.ID, day.Day))
			if err != nil {
				return err
			}
			if spent != nil {
				day.Spent = *spent
			}
			all = append(all, day)
		}
		return nil
	})
	return all, err
}

// Spenders returns everybody for whom models have worked and whom the actor
// sees, with what they have spent, organisations first, then agents, then keys, the oldest first.
func (s *Store) Spenders(ctx context.Context) ([]Spender, error) {
	var all []Spender
	actor := ActorOf(ctx)
	err := s.db.View(ctx, func(r kv.Reader) error {
		all = []Spender{}
		for _, kind := range []SpenderKind{SpenderOrg, SpenderAgent, SpenderKey} {
			err := scan(r, kv.Prefix(spaceSpent, []byte(kind)), func(key []byte, spent Spent) error {
				id, err := uuid.FromBytes(key[len(kind):])
				if err != nil {
					return errors.Wrapf(ErrDamagedRecord, "%s %x", spaceSpent, key)
				}
				name, org, err := nameOf(r, kind, id)
				if err == nil && actor.sees(org) {
					all = append(all, Spender{Kind: kind, ID: id, Name: name, Spent: spent})
				}
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

// nameOf returns the name of a spender, empty when it was deleted, and the
// organisation that it belongs to, zero when that is not known any more.
func nameOf(r kv.Reader, kind SpenderKind, id uuid.UUID) (string, OrgID, error) {
	switch kind {
	case SpenderOrg:
		rec, err := get[orgRecord](r, spaceOrgs, id[:])
		if err != nil || rec == nil {
			return "", OrgID{id}, err
		}
		return rec.Name, rec.ID, nil
	case SpenderAgent:
		rec, err := get[agentRecord](r, spaceAgents, id[:])
		switch {
		case err != nil || rec == nil:
			return "", OrgID{}, err
		case rec.Deleted:
			return "", rec.OrgID, nil
		}
		return rec.Name, rec.OrgID, nil
	default:
		rec, err := get[keyRecord](r, spaceKeys, id[:])
		if err != nil || rec == nil {
			return "", OrgID{}, err
		}
		return rec.Name, rec.OrgID, nil
	}
}
