package storage

import (
	"context"
	"encoding/json"
	"time"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// EventKind says what an event reports, and so which type its data has.
type EventKind string

// The kinds of events. They are part of the management API: never renamed.
const (
	// EventRunCreated opens every history; no data.
	EventRunCreated EventKind = "run_created"
	// EventFileDelivered reports a file in the workspace; FileDelivered.
	EventFileDelivered EventKind = "file_delivered"
	// EventInputGiven reports an input that waits for its turn; InputGiven.
	EventInputGiven EventKind = "input_given"
	// EventInputDropped reports an input that no turn will accept; InputGiven.
	EventInputDropped EventKind = "input_dropped"
	// EventTurnStarted reports that a worker took the run; TurnStarted.
	EventTurnStarted EventKind = "turn_started"
	// EventCommandStderr holds a command's standard error; CommandText.
	EventCommandStderr EventKind = "command_stderr"
	// EventCommandStdout holds the standard output of a command that failed, and
	// which is therefore no output of a turn; CommandText.
	EventCommandStdout EventKind = "command_stdout"
	// EventCommandExited reports a command's end; CommandExited.
	EventCommandExited EventKind = "command_exited"
	// EventModelAnswered reports an answer of the model; ModelAnswered.
	EventModelAnswered EventKind = "model_answered"
	// EventModelCalled reports that a program used a model through the gateway;
	// ModelCalled.
	EventModelCalled EventKind = "model_called"
	// EventToolCalled reports that a call of a tool begins; ToolCalled.
	EventToolCalled EventKind = "tool_called"
	// EventToolReturned reports what came of a call of a tool; ToolReturned.
	EventToolReturned EventKind = "tool_returned"
	// EventContextCompacted reports that a summary stands for what was said;
	// ContextCompacted.
	EventContextCompacted EventKind = "context_compacted"
	// EventToolServerFailed reports a tool server whose tools are missing in a
	// turn; ToolServerFailed.
	EventToolServerFailed EventKind = "tool_server_failed"
	// EventNetworkRefused reports a connection that the agent file does not
	// allow; NetworkRefused.
	EventNetworkRefused EventKind = "network_refused"
	// EventOutputShortened reports output over its limit; OutputShortened.
	EventOutputShortened EventKind = "output_shortened"
	// EventOutputNotUTF8 reports bytes replaced by U+FFFD; no data.
	EventOutputNotUTF8 EventKind = "output_not_utf8"
	// EventTurnFinished reports a turn with an output; no data.
	EventTurnFinished EventKind = "turn_finished"
	// EventTurnFailed reports a turn without an output; Reason.
	EventTurnFailed EventKind = "turn_failed"
	// EventTurnParked reports a turn cut off to be run again; Reason.
	EventTurnParked EventKind = "turn_parked"
	// EventStopRequested reports that someone wants the run to end; Reason.
	EventStopRequested EventKind = "stop_requested"
	// EventRunTerminated reports that nothing of the run is alive; Reason.
	EventRunTerminated EventKind = "run_terminated"
)

// FileDelivered is the data of EventFileDelivered.
type FileDelivered struct {
	// Name is the file's name in the workspace.
	Name string `json:"name"`
	// GivenName is the name that was asked for, when it is another.
	GivenName string `json:"given_name,omitempty"`
	// Size is in bytes.
	Size int64 `json:"size"`
}

// InputGiven is the data of EventInputGiven and EventInputDropped.
type InputGiven struct {
	// Input numbers the run's inputs from 1.
	Input uint64 `json:"input"`
}

// TurnStarted is the data of EventTurnStarted.
type TurnStarted struct {
	// Again is true when the turn was begun before and cut off.
	Again bool `json:"again,omitempty"`
	// Sandbox names the confinement level of the turn's commands.
	Sandbox string `json:"sandbox"`
}

// CommandText is the data of EventCommandStderr and EventCommandStdout.
type CommandText struct {
	Text string `json:"text"`
	// LeftOut counts the bytes missing in the middle of Text.
	LeftOut int64 `json:"left_out,omitempty"`
}

// CommandExited is the data of EventCommandExited.
type CommandExited struct {
	// Code is the exit code, -1 when a signal ended the command.
	Code int `json:"code"`
	// Signal names the signal that ended the command.
	Signal string `json:"signal,omitempty"`
	// Seconds is how long the command ran.
	Seconds float64 `json:"seconds"`
}

// OutputShortened is the data of EventOutputShortened.
type OutputShortened struct {
	// LeftOut counts the bytes that the transcript does not have.
	LeftOut int64 `json:"left_out"`
}

// NetworkRefused is the data of EventNetworkRefused.
type NetworkRefused struct {
	Host string `json:"host"`
	Port uint16 `json:"port,omitempty"`
	// Reason says why the connection was refused.
	Reason string `json:"reason"`
}

// Reason is the data of events that say why.
type Reason struct {
	Reason string `json:"reason"`
}

// Event is one entry of a run's history.
type Event struct {
	// Seq numbers the run's events from 1, without gaps.
	Seq uint64
	At  time.Time
	// Turn numbers the turn that the event belongs to; 0 before the first.
	Turn uint64
	Kind EventKind
	// Data is a JSON object whose type follows from Kind; nil when it has none.
	Data json.RawMessage
}

type eventRecord struct {
	Seq  uint64          `json:"seq"`
	At   time.Time       `json:"at"`
	Turn uint64          `json:"turn"`
	Kind EventKind       `json:"kind"`
	Data json.RawMessage `json:"data,omitempty"`
}

// NewEvent returns an event to record; number, time and turn are given to it in
// the transaction that records it. data is nil or the type that kind names.
func NewEvent(kind EventKind, data any) (Event, error) {
	e := Event{Kind: kind}
	if data == nil {
		return e, nil
	}
	raw, err := json.Marshal(data)
	if err != nil {
		return Event{}, errors.Wrapf(err, "event %s", kind)
	}
	e.Data = raw
	return e, nil
}

// StateAndEvents returns a run's state and up to limit of its events with a
// number greater than after, in order, from one snapshot; a limit of 0 means
// all of them. No event follows those of a terminated run. Errors:
// ErrRunNotFound.
func (s *Store) StateAndEvents(ctx context.Context, run RunID, after uint64, limit int) (State, []Event, error) {
	var state State
	var events []Event
	err := s.db.View(ctx, func(r kv.Reader) error {
		events = []Event{}
		rec, err := seenRun(r, ActorOf(ctx), run)
		if err != nil {
			return err
		}
		state = rec.State
		rng := kv.Prefix(spaceEvents, run.UUID[:])
		rng.From, rng.Limit = sequence(run.UUID[:], after+1), limit
		return scan(r, rng, func(_ []byte, rec eventRecord) error {
			events = append(events, Event(rec))
			return nil
		})
	})
	return state, events, err
}

// addEvents appends events to the run's history.
func (tx *tx) addEvents(run *runRecord, events ...Event) error {
	for _, e := range events {
		run.Events++
		rec := eventRecord(e)
		rec.Seq, rec.At, rec.Turn = run.Events, tx.now, run.Turn
		if err := put(tx, spaceEvents, sequence(run.ID.UUID[:], rec.Seq), rec); err != nil {
			return err
		}
	}
	return nil
}

// addEvent appends one event made of kind and data.
func (tx *tx) addEvent(run *runRecord, kind EventKind, data any) error {
	e, err := NewEvent(kind, data)
	if err != nil {
		return err
	}
	return tx.addEvents(run, e)
}
