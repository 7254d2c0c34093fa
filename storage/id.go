package storage

import (
	"encoding/binary"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
)

// The IDs of the nouns. They are distinct types, so that the ID of a run cannot
// be handed over as that of an agent; all are UUIDv7, so that new rows append.
type (
	// OrgID identifies an organisation.
	OrgID struct{ uuid.UUID }
	// AgentID identifies an agent; on the wire it is the template_id.
	AgentID struct{ uuid.UUID }
	// KeyID identifies an API key; it is no secret.
	KeyID struct{ uuid.UUID }
	// UserID identifies a user.
	UserID struct{ uuid.UUID }
	// TokenID identifies a personal access token; it is no secret.
	TokenID struct{ uuid.UUID }
	// RunID identifies a run; on the wire it is the agent_id.
	RunID struct{ uuid.UUID }
)

// NewRunID returns a fresh run ID. Its owner may name a workspace with it
// before the run's row exists.
func NewRunID() (RunID, error) {
	id, err := newUUID()
	return RunID{id}, err
}

func newUUID() (uuid.UUID, error) {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.UUID{}, errors.Wrap(err, "new ID")
	}
	return id, nil
}

// firstRunID returns what the IDs of runs that were made at a moment or later
// are not below: an ID begins with its milliseconds since 1970 (RFC 9562, 5.7).
func firstRunID(at time.Time) []byte {
	var id uuid.UUID
	milli := uint64(max(0, at.UnixMilli())) << 16
	binary.BigEndian.PutUint64(id[:8], milli)
	return id[:]
}

// idTime returns when an ID was made, to the millisecond.
func idTime(id uuid.UUID) time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16)).UTC()
}

// join concatenates the parts of a key.
func join(parts ...[]byte) []byte {
	n := 0
	for _, p := range parts {
		n += len(p)
	}
	key := make([]byte, 0, n)
	for _, p := range parts {
		key = append(key, p...)
	}
	return key
}
