package storage

import (
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
