package storage

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// Revision is an agent file of an agent. It never changes.
type Revision struct {
	// Number counts the agent's files from 1.
	Number    uint32
	CreatedAt time.Time
	// CreatedBy names who applied it; empty when that is not known.
	CreatedBy string
}

// Revisions returns the revisions of the agent with this ID or name, newest
// first. Errors: those of FindAgent.
func (s *Store) Revisions(ctx context.Context, agent string) ([]Revision, error) {
	var revisions []Revision
	err := s.db.View(ctx, func(r kv.Reader) error {
		revisions = []Revision{}
		owner, err := findAgent(r, ActorOf(ctx), agent)
		if err != nil {
			return err
		}
		rng := kv.Prefix(spaceRevisions, owner.ID.UUID[:])
		rng.Reverse = true
		err = scan(r, rng, func(key []byte, rec revisionRecord) error {
			revisions = append(revisions, rec.revision(binary.BigEndian.Uint32(key[len(owner.ID.UUID):])))
			return nil
		})
		if err == nil && len(revisions) != int(owner.Revision) {
			err = errors.Wrapf(ErrDamagedRecord, "agent %s: %d revisions of %d", owner.ID, len(revisions), owner.Revision)
		}
		return err
	})
	return revisions, err
}

func (r revisionRecord) revision(number uint32) Revision {
	return Revision{Number: number, CreatedAt: r.CreatedAt, CreatedBy: r.CreatedBy}
}

// RevisionFile returns a revision of the agent with this ID or name, and its
// text. Errors: those of FindAgent; ErrRevisionNotFound.
func (s *Store) RevisionFile(ctx context.Context, agent string, number uint32) (Revision, string, error) {
	var rev Revision
	var source string
	err := s.db.View(ctx, func(r kv.Reader) error {
		owner, err := findAgent(r, ActorOf(ctx), agent)
		if err != nil {
			return err
		}
		if number == 0 || number > owner.Revision {
			return errors.Wrapf(ErrRevisionNotFound, "agent %s: revision %d", owner.ID, number)
		}
		rec, err := revision(r, owner.ID, number)
		if err != nil {
			return err
		}
		rev, source = rec.revision(number), rec.Source
		return nil
	})
	return rev, source, err
}
