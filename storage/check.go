package storage

import (
	"bytes"
	"context"
	"encoding/json"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// spaces are all of the drawing in the package comment.
var spaces = []string{
	spaceMeta, spaceOrgs, spaceOrgNames, spaceAgents, spaceAgentNames, spaceRevisions, spaceKeys, spaceKeyHashes,
	spaceAgentKeys, spaceRuns, spaceAgentRuns, spaceWaiting, spaceClaims, spaceInputs, spaceMessages, spaceEvents,
	spaceIdle, spaceErasures, spaceSpent, spaceSpentDaily, spaceOrgRuns, spaceKeyRuns, spaceKeyRefusals, spaceUsers,
	spaceUserEmails, spaceSessions, spaceTokens, spaceTokenHashes, spaceUserTokens, spaceAudit, spaceOrgAudit,
}

// CheckReport is what Check found.
type CheckReport struct {
	// Records counts the records that were read, damaged ones included.
	Records int
	// Damaged has a line for each damage: the space, the key and what is wrong.
	// It is empty when everything is whole.
	Damaged []string
	// AuditEntries counts the entries of the audit log up to the first damage.
	AuditEntries uint64
}

// OpenAsIs returns a Store that only looks: nothing is written, the schema stays
// as it is, and no life begins. It is for Check. The Store owns db from then on.
func OpenAsIs(db kv.DB) *Store { return &Store{db: db} }

// Check reads every record and the chain of the audit log. It does not tell
// whether a record is missing that others name. Errors: ErrNewerSchema, and what
// the store underneath answers; damage is no error but a line of the report.
func (s *Store) Check(ctx context.Context) (CheckReport, error) {
	var report CheckReport
	err := s.db.View(ctx, func(r kv.Reader) error {
		// What is damaged here is found again below.
		if have, err := schemaVersion(r); err == nil && have > len(migrations) {
			return errors.Wrapf(ErrNewerSchema, "schema version %d, this agentrun knows versions up to %d", have, len(migrations))
		}
		return nil
	})
	if err != nil && !errors.Is(err, ErrStoreDamaged) {
		return report, err
	}
	for _, space := range spaces {
		if err := s.checkSpace(ctx, space, &report); err != nil {
			return report, err
		}
	}
	report.AuditEntries, err = s.CheckAudit(ctx)
	return report, report.note("audit log", err)
}

// checkSpace reads the records of a space, a batch at a time.
func (s *Store) checkSpace(ctx context.Context, space string, report *CheckReport) error {
	rng := kv.Range{Space: space, Limit: scanBatch}
	for more := true; more; {
		var next []byte
		err := s.db.View(ctx, func(r kv.Reader) error {
			next = nil
			pairs, err := r.Scan(rng)
			if err != nil {
				return err
			}
			for _, p := range pairs {
				if next != nil && bytes.Compare(p.Key, next) < 0 || bytes.Compare(p.Key, rng.From) < 0 {
					return errors.Wrapf(ErrDamagedRecord, "%x stands in the wrong place, and nothing behind it was read", p.Key)
				}
				report.Records++
				if err := report.note("", decodeRecord(space, p.Key, p.Value, &json.RawMessage{})); err != nil {
					return err
				}
				next = append(join(p.Key), 0)
			}
			return nil
		})
		if err != nil {
			return report.note(space, err)
		}
		rng.From, more = next, next != nil
	}
	return nil
}

// note takes damage into the report, once, and hands back every other error.
func (c *CheckReport) note(where string, err error) error {
	if !errors.Is(err, ErrDamagedRecord) && !errors.Is(err, ErrStoreDamaged) {
		return err
	}
	for _, line := range c.Damaged {
		if line == err.Error() {
			return nil
		}
	}
	if where != "" {
		err = errors.Wrap(err, where)
	}
	c.Damaged = append(c.Damaged, err.Error())
	return nil
}
