package storage

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/storage/kv"
)

// DefaultOrg is the name of the organisation that every new store has.
const DefaultOrg = "default"

// maxNameLength bounds the names of organisations, agents and keys, in code
// points; it is the bound that the API has for the name of a run.
const maxNameLength = 200

// AnyModel is the pattern of an allowlist that fits every model.
const AnyModel = "*"

// Org is an organisation: the owner of agents and of a model allowlist.
type Org struct {
	ID   OrgID
	Name string
	// Models are the patterns of the models that the organisation's agents may
	// use, as globs over provider/model; empty allows none.
	Models    []string
	CreatedAt time.Time
}

type orgRecord struct {
	ID        OrgID     `json:"id"`
	Name      string    `json:"name"`
	Models    []string  `json:"models"`
	CreatedAt time.Time `json:"created_at"`
}

func (r orgRecord) org() Org { return Org(r) }

// CreateOrg makes an organisation that allows any model. Errors:
// ErrForbidden, ErrInvalidName, ErrNameTaken.
func (s *Store) CreateOrg(ctx context.Context, name string) (Org, error) {
	var org Org
	err := s.update(ctx, func(tx *tx) (err error) {
		if err := tx.may(ScopeAdmin); err != nil {
			return err
		}
		if org, err = tx.createOrg(name); err != nil {
			return err
		}
		return tx.audit("organisation.create", org.ID, org.subject(), "")
	})
	return org, err
}

func (o Org) subject() Subject { return Subject{Kind: "organisation", ID: o.ID.UUID, Name: o.Name} }

func (tx *tx) createOrg(name string) (Org, error) {
	if err := checkName(name); err != nil {
		return Org{}, err
	}
	taken, err := get[ref[OrgID]](tx, spaceOrgNames, []byte(name))
	if err != nil {
		return Org{}, err
	}
	if taken != nil {
		return Org{}, errors.Wrapf(ErrNameTaken, "organisation %q", name)
	}
	id, err := newUUID()
	if err != nil {
		return Org{}, err
	}
	rec := orgRecord{ID: OrgID{id}, Name: name, Models: []string{AnyModel}, CreatedAt: tx.now}
	if err := put(tx, spaceOrgNames, []byte(name), ref[OrgID]{rec.ID}); err != nil {
		return Org{}, err
	}
	return rec.org(), put(tx, spaceOrgs, rec.ID.UUID[:], rec)
}

// Orgs returns all organisations that the actor sees, oldest first.
func (s *Store) Orgs(ctx context.Context) ([]Org, error) {
	var orgs []Org
	err := s.db.View(ctx, func(r kv.Reader) (err error) {
		orgs, err = allOrgs(r, ActorOf(ctx))
		return err
	})
	return orgs, err
}

func allOrgs(r kv.Reader, actor Actor) ([]Org, error) {
	orgs := []Org{}
	err := scan(r, kv.Range{Space: spaceOrgs}, func(_ []byte, rec orgRecord) error {
		if actor.sees(rec.ID) {
			orgs = append(orgs, rec.org())
		}
		return nil
	})
	return orgs, err
}

// FindOrg returns the organisation with this ID or name; ErrOrgNotFound.
func (s *Store) FindOrg(ctx context.Context, ref string) (Org, error) {
	var org Org
	err := s.db.View(ctx, func(r kv.Reader) error {
		rec, err := findOrg(r, ActorOf(ctx), ref)
		if err == nil {
			org = rec.org()
		}
		return err
	})
	return org, err
}

// findOrg returns the organisation with this ID or name; one that the actor does
// not see is not found.
func findOrg(r kv.Reader, actor Actor, name string) (*orgRecord, error) {
	id, err := uuid.Parse(name)
	if err != nil {
		index, err := get[ref[OrgID]](r, spaceOrgNames, []byte(name))
		if err != nil {
			return nil, err
		}
		if index == nil {
			return nil, errors.Wrapf(ErrOrgNotFound, "%q", name)
		}
		id = index.ID.UUID
	}
	rec, err := get[orgRecord](r, spaceOrgs, id[:])
	if err == nil && (rec == nil || !actor.sees(rec.ID)) {
		err = errors.Wrapf(ErrOrgNotFound, "%q", name)
	}
	return rec, err
}

// SetModels replaces the model allowlist of the organisation with this ID or
// name. Errors: ErrForbidden, ErrOrgNotFound, ErrInvalidPattern.
func (s *Store) SetModels(ctx context.Context, ref string, patterns []string) (Org, error) {
	for _, p := range patterns {
		if p == "" || !utf8.ValidString(p) || strings.ContainsFunc(p, unicode.IsSpace) || strings.ContainsFunc(p, unicode.IsControl) {
			return Org{}, errors.Errorf("%w %q: want a glob over provider/model such as 'openai/*'", ErrInvalidPattern, p)
		}
	}
	var org Org
	err := s.update(ctx, func(tx *tx) error {
		rec, err := findOrg(tx, tx.actor, ref)
		if err != nil {
			return err
		}
		if err := tx.may(ScopeAdmin); err != nil {
			return err
		}
		if slices.Equal(rec.Models, patterns) {
			org = rec.org()
			return nil
		}
		rec.Models = append([]string{}, patterns...)
		org = rec.org()
		if err := put(tx, spaceOrgs, rec.ID.UUID[:], *rec); err != nil {
			return err
		}
		return tx.audit("organisation.models", org.ID, org.subject(), strings.Join(org.Models, " "))
	})
	return org, err
}

// allows says whether one of the organisation's patterns fits model.
func (r *orgRecord) allows(model string) bool {
	for _, p := range r.Models {
		if MatchModel(p, model) {
			return true
		}
	}
	return false
}

// MatchModel says whether a glob fits the name of a model. In it '*' stands for
// any run of characters, slashes included, which names of models have, and '?'
// for one character.
func MatchModel(pattern, s string) bool {
	for pattern != "" {
		p, size := utf8.DecodeRuneInString(pattern)
		if p == '*' {
			rest := strings.TrimLeft(pattern, "*")
			for i := range len(s) + 1 {
				if MatchModel(rest, s[i:]) {
					return true
				}
			}
			return false
		}
		c, n := utf8.DecodeRuneInString(s)
		if n == 0 || p != '?' && p != c {
			return false
		}
		pattern, s = pattern[size:], s[n:]
	}
	return s == ""
}

// checkName refuses names that could not be told apart from IDs, or not shown.
func checkName(name string) error {
	switch {
	case strings.TrimSpace(name) == "":
		return errors.Errorf("%w: it is empty", ErrInvalidName)
	case strings.TrimSpace(name) != name:
		return errors.Errorf("%w: %q has blanks around it", ErrInvalidName, name)
	case !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl):
		return errors.Errorf("%w: %q has characters that cannot be shown", ErrInvalidName, name)
	case utf8.RuneCountInString(name) > maxNameLength:
		return errors.Errorf("%w: it is longer than %d characters", ErrInvalidName, maxNameLength)
	}
	if _, err := uuid.Parse(name); err == nil {
		return errors.Errorf("%w: %q looks like an ID", ErrInvalidName, name)
	}
	return nil
}
