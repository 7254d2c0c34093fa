package storage

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/storage/kv"
)

// The audit log is a chain: each entry holds the SHA-256 of the entry before
// it, as the bytes that are kept, and the head in the space meta holds the
// number and the sum of the last one. An entry that is changed, taken out, put in or cut off at the end breaks
// the chain. Whoever can write the data file can make a whole new chain: the
// log tells of accidents and of hands that do not know it, not of the owner.

// Action is what was done, as object.verb. Actions are kept: never renamed.
type Action string

// Audit is an entry of the audit log.
type Audit struct {
	// Seq numbers the entries from 1, without gaps.
	Seq uint64
	At  time.Time
	// Actor is who did it; role and scopes are not kept.
	Actor  Actor
	Action Action
	// Org is the organisation in which it was done; zero when in none.
	Org     OrgID
	Subject Subject
	// Detail says more about it; it holds no secret.
	Detail string
}

// Subject is to what something was done.
type Subject struct {
	Kind string    `json:"kind"`
	ID   uuid.UUID `json:"id,omitzero"`
	// Name is the name at that time.
	Name string `json:"name"`
}

type auditRecord struct {
	Seq     uint64    `json:"seq"`
	At      time.Time `json:"at"`
	Kind    ActorKind `json:"kind"`
	ActorID uuid.UUID `json:"actor_id,omitzero"`
	Name    string    `json:"name"`
	From    string    `json:"from,omitempty"`
	Action  Action    `json:"action"`
	Org     OrgID     `json:"org,omitzero"`
	Subject Subject   `json:"subject"`
	Detail  string    `json:"detail,omitempty"`
	// Before is the sum of the entry before; empty in the first.
	Before []byte `json:"before,omitempty"`
}

func (r auditRecord) audit() Audit {
	return Audit{
		Seq: r.Seq, At: r.At, Actor: Actor{Kind: r.Kind, ID: r.ActorID, Name: r.Name, From: r.From},
		Action: r.Action, Org: r.Org, Subject: r.Subject, Detail: r.Detail,
	}
}

// auditHead is the end of the chain.
type auditHead struct {
	Seq uint64 `json:"seq"`
	Sum []byte `json:"sum,omitempty"`
}

func auditKey(seq uint64) []byte { return binary.BigEndian.AppendUint64(nil, seq) }

// audit appends to the audit log what the transaction does.
func (tx *tx) audit(action Action, org OrgID, subject Subject, detail string) error {
	head, err := readAuditHead(tx)
	if err != nil {
		return err
	}
	rec := auditRecord{
		Seq: head.Seq + 1, At: tx.now, Kind: tx.actor.Kind, ActorID: tx.actor.ID, Name: tx.actor.Name, From: tx.actor.From,
		Action: action, Org: org, Subject: subject, Detail: detail, Before: head.Sum,
	}
	raw, err := encodeRecord(spaceAudit, auditKey(rec.Seq), rec)
	if err != nil {
		return err
	}
	if err := tx.Put(spaceAudit, auditKey(rec.Seq), raw); err != nil {
		return err
	}
	if org != (OrgID{}) {
		if err := put(tx, spaceOrgAudit, join(org.UUID[:], auditKey(rec.Seq)), present{}); err != nil {
			return err
		}
	}
	return put(tx, spaceMeta, keyAudit, auditHead{Seq: rec.Seq, Sum: auditSum(raw)})
}

// auditSum is what the next entry holds of the one that is kept as raw.
func auditSum(raw []byte) []byte {
	sum := sha256.Sum256(raw)
	return sum[:]
}

// readAuditHead returns the end of the chain. One that is not that of the last
// entry is damage: nothing is appended there, which could take another's place.
func readAuditHead(r kv.Reader) (auditHead, error) {
	head, err := get[auditHead](r, spaceMeta, keyAudit)
	if err != nil {
		return auditHead{}, err
	}
	if head == nil {
		head = &auditHead{}
	}
	last, err := r.Scan(kv.Range{Space: spaceAudit, Reverse: true, Limit: 1})
	if err != nil {
		return auditHead{}, err
	}
	if len(last) == 0 && head.Seq > 0 || len(last) > 0 && !bytes.Equal(last[0].Key, auditKey(head.Seq)) {
		return auditHead{}, errors.Wrapf(ErrDamagedRecord, "audit: the last entry is not %d, which the head names", head.Seq)
	}
	return *head, nil
}

// AuditFilter chooses a page of the audit log.
type AuditFilter struct {
	// Org is the organisation in which something was done; nil means everywhere.
	Org *OrgID
	// Before is the number that entries are below; 0 means no bound.
	Before uint64
	// Limit is the most entries to return; it is at least 1.
	Limit int
}

// AuditLog returns a page of the audit log, newest first, and the number to go
// on before, 0 at the end. A member sees what was done in its organisation.
// Errors: ErrOrgNotFound for another one; ErrDamagedRecord when an entry of the
// page cannot be read or is missing.
func (s *Store) AuditLog(ctx context.Context, f AuditFilter) (page []Audit, next uint64, err error) {
	if actor := ActorOf(ctx); actor.Role != OperatorRole {
		if f.Org != nil && *f.Org != actor.Org {
			return nil, 0, errors.Wrapf(ErrOrgNotFound, "%q", f.Org)
		}
		f.Org = &actor.Org
	}
	err = s.db.View(ctx, func(r kv.Reader) error {
		page, next = []Audit{}, 0
		numbers, err := f.numbers(r)
		if err != nil {
			return err
		}
		for _, seq := range numbers[:min(f.Limit, len(numbers))] {
			rec, err := auditEntry(r, seq)
			if err != nil {
				return err
			}
			if rec.Seq != seq || f.Org != nil && rec.Org != *f.Org {
				return errors.Wrapf(ErrDamagedRecord, "audit %d: another entry in its place", seq)
			}
			page = append(page, rec.audit())
		}
		if len(numbers) > f.Limit {
			next = numbers[f.Limit-1]
		}
		return nil
	})
	return page, next, err
}

// numbers are those of the page's entries, newest first, and of one more when
// there is one. Those of the whole log have no gap; an index has those of an
// organisation.
func (f AuditFilter) numbers(r kv.Reader) ([]uint64, error) {
	numbers := make([]uint64, 0, f.Limit+1)
	if f.Org == nil {
		head, err := readAuditHead(r)
		last := head.Seq
		if f.Before > 0 {
			last = min(last, f.Before-1)
		}
		for ; last > 0 && len(numbers) <= f.Limit; last-- {
			numbers = append(numbers, last)
		}
		return numbers, err
	}
	rng := kv.Prefix(spaceOrgAudit, f.Org.UUID[:])
	if f.Before > 0 {
		rng.To = join(f.Org.UUID[:], auditKey(f.Before))
	}
	rng.Reverse, rng.Limit = true, f.Limit+1
	err := scan(r, rng, func(key []byte, _ present) error {
		seq, err := indexedAudit(key)
		numbers = append(numbers, seq)
		return err
	})
	return numbers, err
}

// indexedAudit returns the number of the entry that a key of the index leads to.
func indexedAudit(key []byte) (uint64, error) {
	number := key[min(len(key), len(uuid.UUID{})):]
	if len(number) != 8 {
		return 0, errors.Wrapf(ErrDamagedRecord, "%s %x", spaceOrgAudit, key)
	}
	return binary.BigEndian.Uint64(number), nil
}

func auditEntry(r kv.Reader, seq uint64) (*auditRecord, error) {
	rec, err := get[auditRecord](r, spaceAudit, auditKey(seq))
	if err == nil && rec == nil {
		err = errors.Wrapf(ErrDamagedRecord, "audit %d: missing", seq)
	}
	return rec, err
}
