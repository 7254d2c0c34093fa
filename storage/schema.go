package storage

import (
	"context"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// The spaces of the drawing in the package comment.
const (
	spaceMeta       = "meta"
	spaceOrgs       = "orgs"
	spaceOrgNames   = "org_names"
	spaceAgents     = "agents"
	spaceAgentNames = "agent_names"
	spaceRevisions  = "agent_revisions"
	spaceKeys       = "keys"
	spaceKeyHashes  = "key_hashes"
	spaceAgentKeys  = "agent_keys"
	spaceRuns       = "runs"
	spaceAgentRuns  = "agent_runs"
	spaceWaiting    = "waiting"
	spaceClaims     = "claims"
	spaceInputs     = "inputs"
	spaceMessages   = "messages"
	spaceEvents     = "events"
	spaceIdle       = "idle"
	spaceErasures   = "erasures"
	spaceSpent      = "spent"
	spaceSpentDaily = "spent_daily"
	spaceOrgRuns    = "org_runs"
	spaceKeyRuns    = "key_runs"

	spaceKeyRefusals = "key_refusals"
	spaceUsers       = "users"
	spaceUserEmails  = "user_emails"
	spaceSessions    = "sessions"
	spaceTokens      = "tokens"
	spaceTokenHashes = "token_hashes"
	spaceUserTokens  = "user_tokens"
	spaceAudit       = "audit"
	spaceOrgAudit    = "org_audit"
)

var (
	keySchema = []byte("schema")
	keyEpoch  = []byte("epoch")
	keyAudit  = []byte("audit")
)

// A migration brings the data from the version before it to its own.
type migration struct {
	name string
	up   func(tx *tx) error
}

// migrations in order; the schema's version is their number. They are only
// ever appended to, and each has a test.
var migrations = []migration{
	{name: "the first schema, with the organisation default", up: func(tx *tx) error {
		_, err := tx.createOrg(DefaultOrg)
		return err
	}},
	{name: "idle runs in the order in which they became so", up: (*tx).indexIdleRuns},
	{name: "the runs of each organisation and of each key", up: (*tx).indexOwnedRuns},
}

type schemaRecord struct {
	Version int `json:"version"`
}

type epochRecord struct {
	Epoch uint64 `json:"epoch"`
}

// ref is the value of an index: the ID that the key leads to.
type ref[ID any] struct {
	ID ID `json:"id"`
}

// present is the value of an index whose key says everything.
type present struct{}

// schemaVersion returns the version of the data, 0 when there is none yet.
func schemaVersion(r kv.Reader) (int, error) {
	rec, err := get[schemaRecord](r, spaceMeta, keySchema)
	if err != nil || rec == nil {
		return 0, err
	}
	return rec.Version, nil
}

// migrate brings the data to the newest version. Data of a newer agentrun is
// refused before anything is written.
func (s *Store) migrate(ctx context.Context) error {
	var have int
	err := s.db.View(ctx, func(r kv.Reader) (err error) {
		have, err = schemaVersion(r)
		return err
	})
	if err != nil {
		return err
	}
	if have > len(migrations) {
		return errors.Wrapf(ErrNewerSchema, "schema version %d, this agentrun knows versions up to %d", have, len(migrations))
	}
	for version := have + 1; version <= len(migrations); version++ {
		m := migrations[version-1]
		err := s.update(ctx, func(tx *tx) error {
			if err := m.up(tx); err != nil {
				return err
			}
			return put(tx, spaceMeta, keySchema, schemaRecord{Version: version})
		})
		if err != nil {
			return errors.Wrapf(err, "migration %d (%s)", version, m.name)
		}
	}
	return nil
}

// raiseEpoch makes every claim of an earlier life stale. Whoever opens the
// store exclusively calls it once.
func (s *Store) raiseEpoch(ctx context.Context) error {
	return s.update(ctx, func(tx *tx) error {
		rec, err := get[epochRecord](tx, spaceMeta, keyEpoch)
		if err != nil {
			return err
		}
		if rec == nil {
			rec = &epochRecord{}
		}
		rec.Epoch++
		s.epoch = rec.Epoch
		return put(tx, spaceMeta, keyEpoch, *rec)
	})
}
