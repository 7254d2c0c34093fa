package storage

import (
	"context"
	"encoding/binary"
	"time"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// Role says whose message it is. The values are those of the API.
type Role string

// The roles of a message.
const (
	// RoleInput marks an input that a turn accepted.
	RoleInput Role = "input_to_agent"
	// RoleOutput marks the final output of a turn.
	RoleOutput Role = "output_from_agent"
)

// Message is one message of a run's transcript.
type Message struct {
	Role Role
	Text string
	// Turn numbers the turn that accepted or gave the message.
	Turn uint64
	At   time.Time
}

type messageRecord struct {
	Role Role      `json:"role"`
	Text string    `json:"text"`
	Turn uint64    `json:"turn"`
	At   time.Time `json:"at"`
}

// StateAndTranscript returns what the API tells of a run, from one snapshot.
// A run of another agent is ErrRunNotFound, as an unknown one is.
func (s *Store) StateAndTranscript(ctx context.Context, caller Caller, id RunID) (State, []Message, error) {
	var state State
	var messages []Message
	err := s.db.View(ctx, func(r kv.Reader) error {
		rec, err := runByID(r, id)
		if err != nil {
			return err
		}
		if rec.AgentID != caller.AgentID || rec.OrgID != caller.OrgID {
			return errors.Wrapf(ErrRunNotFound, "run %s for key %s", id, caller.KeyID)
		}
		state = rec.State
		messages, err = transcript(r, rec)
		return err
	})
	return state, messages, err
}

// RunWithTranscript returns a run and its transcript, from one snapshot, for
// the management API; ErrRunNotFound also when the actor does not see it.
func (s *Store) RunWithTranscript(ctx context.Context, id RunID) (Run, []Message, error) {
	var run Run
	var messages []Message
	err := s.db.View(ctx, func(r kv.Reader) error {
		rec, err := seenRun(r, ActorOf(ctx), id)
		if err != nil {
			return err
		}
		run = rec.run()
		messages, err = transcript(r, rec)
		return err
	})
	return run, messages, err
}

// transcript reads all messages of a run; one that is missing is damage.
func transcript(r kv.Reader, run *runRecord) ([]Message, error) {
	messages := make([]Message, 0, run.Messages)
	err := scan(r, kv.Prefix(spaceMessages, run.ID.UUID[:]), func(key []byte, rec messageRecord) error {
		seq := binary.BigEndian.Uint64(key[len(run.ID.UUID):])
		if seq != uint64(len(messages))+1 {
			return errors.Wrapf(ErrDamagedRecord, "run %s: message %d missing", run.ID, len(messages)+1)
		}
		messages = append(messages, Message(rec))
		return nil
	})
	if err == nil && uint64(len(messages)) != run.Messages {
		err = errors.Wrapf(ErrDamagedRecord, "run %s: %d messages of %d", run.ID, len(messages), run.Messages)
	}
	return messages, err
}

// addMessage appends a message to the run's transcript.
func (tx *tx) addMessage(run *runRecord, role Role, text string) error {
	run.Messages++
	rec := messageRecord{Role: role, Text: text, Turn: run.Turn, At: tx.now}
	return put(tx, spaceMessages, sequence(run.ID.UUID[:], run.Messages), rec)
}
