package storage

import (
	"bytes"
	"context"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// CheckAudit walks the audit log from its first entry to its head, with the
// index of what was done in each organisation, and returns how many entries it
// has. Errors: ErrDamagedRecord, with the first entry at which the chain is
// broken.
func (s *Store) CheckAudit(ctx context.Context) (entries uint64, err error) {
	err = s.db.View(ctx, func(r kv.Reader) error {
		entries = 0
		head, err := readAuditHead(r)
		if err != nil {
			return err
		}
		last, inOrgs := []byte(nil), 0
		err = eachPair(r, spaceAudit, func(p kv.Pair) error {
			entries++
			rec, err := chainedEntry(p, entries, last)
			if err != nil {
				return err
			}
			last = auditSum(p.Value)
			if rec.Org == (OrgID{}) {
				return nil
			}
			inOrgs++
			return checkOrgAudit(r, rec)
		})
		if err != nil {
			return err
		}
		if entries != head.Seq || !bytes.Equal(last, head.Sum) {
			return errors.Wrapf(ErrDamagedRecord, "audit: %d entries, and the head names %d", entries, head.Seq)
		}
		return checkOrgAudits(r, inOrgs)
	})
	return entries, err
}

// chainedEntry returns the entry that has to come with this number behind the
// one with this sum.
func chainedEntry(p kv.Pair, seq uint64, before []byte) (*auditRecord, error) {
	var rec auditRecord
	if err := decodeRecord(spaceAudit, p.Key, p.Value, &rec); err != nil {
		return nil, err
	}
	if rec.Seq != seq || !bytes.Equal(p.Key, auditKey(seq)) || !bytes.Equal(rec.Before, before) {
		return nil, errors.Wrapf(ErrDamagedRecord, "audit %d: the chain is broken", seq)
	}
	return &rec, nil
}

// checkOrgAudit looks for an entry among those of its organisation.
func checkOrgAudit(r kv.Reader, rec *auditRecord) error {
	index, err := get[present](r, spaceOrgAudit, join(rec.Org.UUID[:], auditKey(rec.Seq)))
	if err == nil && index == nil {
		err = errors.Wrapf(ErrDamagedRecord, "audit %d: not among those of organisation %s", rec.Seq, rec.Org)
	}
	return err
}

// checkOrgAudits looks for entries of organisations that are not in the log.
func checkOrgAudits(r kv.Reader, want int) error {
	got := 0
	err := eachPair(r, spaceOrgAudit, func(kv.Pair) error {
		got++
		return nil
	})
	if err == nil && got != want {
		err = errors.Wrapf(ErrDamagedRecord, "audit: organisations have %d entries, and the log %d of them", got, want)
	}
	return err
}

// eachPair hands over what is in a space, a part at a time.
func eachPair(r kv.Reader, space string, do func(kv.Pair) error) error {
	rng := kv.Range{Space: space, Limit: scanBatch}
	for {
		pairs, err := r.Scan(rng)
		if err != nil || len(pairs) == 0 {
			return err
		}
		for _, p := range pairs {
			if err := do(p); err != nil {
				return err
			}
		}
		rng.From = join(pairs[len(pairs)-1].Key, []byte{0})
	}
}
