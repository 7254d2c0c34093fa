package storage

import (
	"context"
	"encoding/json"
)

// A step of a model is recorded before what follows from it is done: its answer
// before its calls of tools, the beginning of a call before the call, and what
// came of that before the next answer. So a turn that was cut off goes on from
// its events.

// ModelAnswered is the data of EventModelAnswered. With ToolReturned and
// ContextCompacted it is what a conversation is made of again.
type ModelAnswered struct {
	// Model is the model that was asked, as provider/model.
	Model string `json:"model"`
	Text  string `json:"text,omitempty"`
	// Calls are what the model wants tools to do.
	Calls []ToolCall `json:"calls,omitempty"`
	// Stop says why the answer ended: end, calls, length or refused.
	Stop string `json:"stop"`
	// Opaque is what the provider wants back as it is.
	Opaque json.RawMessage `json:"opaque,omitempty"`
	Spent  Spent           `json:"spent"`
	// Seconds is how long the answer took, Attempts how often it was asked for.
	Seconds  float64 `json:"seconds"`
	Attempts int     `json:"attempts"`
}

// ToolCall is one call of a tool, as the model wrote it.
type ToolCall struct {
	ID        string `json:"id"`
	Tool      string `json:"tool"`
	Arguments string `json:"arguments"`
}

// ToolCalled is the data of EventToolCalled.
type ToolCalled struct {
	Call string `json:"call"`
	Tool string `json:"tool"`
}

// ToolReturned is the data of EventToolReturned.
type ToolReturned struct {
	Call string `json:"call"`
	Tool string `json:"tool"`
	// Text is what the model is told, which can be a part of it all.
	Text   string `json:"text"`
	Failed bool   `json:"failed,omitempty"`
	// Seconds is how long the call took; 0 for one that was not made.
	Seconds float64 `json:"seconds"`
}

// ContextCompacted is the data of EventContextCompacted: from here on the
// summary stands for the conversation before the turn's input.
type ContextCompacted struct {
	Summary string `json:"summary"`
	// Messages counts what the summary stands for.
	Messages int   `json:"messages"`
	Spent    Spent `json:"spent"`
}

// ToolServerFailed is the data of EventToolServerFailed.
type ToolServerFailed struct {
	Server string `json:"server"`
	Reason string `json:"reason"`
}

// RecordStep appends to the history of a turn under way, and adds what was
// spent to what its run, its agent, its key and its organisation have spent.
// Errors: ErrStaleClaim.
func (s *Store) RecordStep(ctx context.Context, c Claim, spent Spent, events ...Event) error {
	return s.updateClaimed(ctx, c, func(tx *tx, rec *runRecord) error {
		if err := tx.addEvents(rec, events...); err != nil {
			return err
		}
		return tx.spend(rec, spent)
	})
}
