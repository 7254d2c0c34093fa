package storage

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/storage/kv"
)

// State is the state of a run. The values are those of the API's loop_status.
type State string

// The states of a run.
const (
	// StateRunning covers waiting for a worker, startup and work.
	StateRunning State = "running"
	// StateFinished means idle: the last turn ended normally, or none began.
	StateFinished State = "finished"
	// StateTechnicalError means that the last turn failed.
	StateTechnicalError State = "technical_error"
	// StateTerminated is final: the run was stopped or deleted.
	StateTerminated State = "terminated"
)

// Run is one execution of an agent.
type Run struct {
	ID      RunID
	OrgID   OrgID
	AgentID AgentID
	// KeyID is the key that created the run.
	KeyID KeyID
	Name  string
	// Revision is the agent's revision that the run keeps for its life.
	Revision uint32
	State    State
	// Reason says why the run is in StateTechnicalError or StateTerminated.
	Reason string
	// Turn counts the turns begun.
	Turn uint64
	// WaitingInputs counts the inputs that no turn has accepted yet.
	WaitingInputs uint64
	// Stopping is true while a server still ends what is alive of the run.
	Stopping bool
	// Deleted is true once the run's deletion was asked for.
	Deleted bool
	// Erasing is true while the workspace of a deleted run is still there.
	Erasing bool
	// Spent is what the run's models have taken.
	Spent     Spent
	CreatedAt time.Time
	UpdatedAt time.Time
}

// runRecord is a run's row. The counters are what makes a missing row of a
// list an error instead of a shorter list.
type runRecord struct {
	ID       RunID   `json:"id"`
	OrgID    OrgID   `json:"org_id"`
	AgentID  AgentID `json:"agent_id"`
	KeyID    KeyID   `json:"key_id"`
	Name     string  `json:"name"`
	Revision uint32  `json:"revision"`
	State    State   `json:"state"`
	Reason   string  `json:"reason,omitempty"`
	Turn     uint64  `json:"turn"`
	// TurnOpen is true from the acceptance of an input to the turn's end, also
	// while a turn that was cut off waits to be run again.
	TurnOpen bool `json:"turn_open,omitempty"`
	// Ticket is the run's place among the waiting; nil when it does not wait.
	Ticket *uuid.UUID `json:"ticket,omitempty"`
	// Claim is the hold of a server on the run; nil when there is none.
	Claim *Claim `json:"claim,omitempty"`
	// Stopping is why a claimed run is to end; its claim holder sees to it.
	Stopping string `json:"stopping,omitempty"`
	// Deleted is true once someone wanted the run deleted: it is erased with its
	// end. Erasing is true from then until its workspace is gone.
	Deleted bool `json:"deleted,omitempty"`
	Erasing bool `json:"erasing,omitempty"`
	// Given and Accepted number the last input given and the last accepted.
	Given     uint64    `json:"given"`
	Accepted  uint64    `json:"accepted"`
	Messages  uint64    `json:"messages"`
	Events    uint64    `json:"events"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
	// IdleSince is when the run came to be idle; zero while it is not.
	IdleSince time.Time `json:"idle_since,omitzero"`
	Spent     Spent     `json:"spent,omitzero"`
}

func (r *runRecord) run() Run {
	return Run{
		ID: r.ID, OrgID: r.OrgID, AgentID: r.AgentID, KeyID: r.KeyID, Name: r.Name,
		Revision: r.Revision, State: r.State, Reason: r.Reason, Turn: r.Turn,
		WaitingInputs: r.Given - r.Accepted, Stopping: r.Stopping != "", Deleted: r.Deleted, Erasing: r.Erasing, Spent: r.Spent,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
}

// NewRun is what a run is created from.
type NewRun struct {
	ID     RunID
	Caller Caller
	// Template is the agent that the caller named.
	Template AgentID
	Name     string
	// Input is the first input; nil creates an idle run.
	Input *string
	// Files are in the run's workspace already.
	Files []FileDelivered
	// Providers are the names of the model providers that are configured.
	Providers []string
}

// CheckCreate says whether the caller may create a run of the agent it named:
// ErrTemplateMismatch, ErrAgentDeleted, *ArchivedError, in this order. It only
// reads; CreateRun checks again.
func (s *Store) CheckCreate(ctx context.Context, caller Caller, template AgentID) error {
	return s.db.View(ctx, func(r kv.Reader) error {
		_, err := checkCreate(r, caller, template)
		return err
	})
}

func checkCreate(r kv.Reader, caller Caller, template AgentID) (*agentRecord, error) {
	if template != caller.AgentID {
		return nil, errors.Wrapf(ErrTemplateMismatch, "key %s", caller.KeyID)
	}
	return openAgent(r, caller.AgentID)
}

// CreateRun makes a run, and hands its input to the workers, in one
// transaction. The key is checked once more (ErrInvalidKey), then what
// CheckCreate checks, then the model (*ModelError).
func (s *Store) CreateRun(ctx context.Context, n NewRun) (Run, error) {
	var run Run
	err := s.update(ctx, func(tx *tx) error {
		if _, err := usableKey(tx, n.Caller.KeyID, tx.now); err != nil {
			return err
		}
		agent, err := checkCreate(tx, n.Caller, n.Template)
		if err != nil {
			return err
		}
		if err := checkModel(tx, agent, n.Providers); err != nil {
			return err
		}
		rec := &runRecord{
			ID: n.ID, OrgID: agent.OrgID, AgentID: agent.ID, KeyID: n.Caller.KeyID, Name: n.Name,
			Revision: agent.Revision, State: StateFinished, CreatedAt: tx.now,
		}
		if err := tx.openHistory(rec, n); err != nil {
			return err
		}
		if err := put(tx, spaceAgentRuns, join(rec.AgentID.UUID[:], rec.ID.UUID[:]), present{}); err != nil {
			return err
		}
		if err := tx.indexOwned(rec); err != nil {
			return err
		}
		run = rec.run()
		return tx.putRun(rec)
	})
	return run, err
}

// openHistory records what a run begins with: its files and its first input.
func (tx *tx) openHistory(rec *runRecord, n NewRun) error {
	if err := tx.addEvent(rec, EventRunCreated, nil); err != nil {
		return err
	}
	for _, f := range n.Files {
		if err := tx.addEvent(rec, EventFileDelivered, f); err != nil {
			return err
		}
	}
	if n.Input == nil {
		return nil
	}
	return tx.giveInput(rec, *n.Input)
}

// checkModel refuses an agent whose model the organisation does not allow or
// whose provider is not configured; a program needs no model.
func checkModel(r kv.Reader, agent *agentRecord, providers []string) error {
	rev, err := revision(r, agent.ID, agent.Revision)
	if err != nil || rev.Definition.Model == "" {
		return err
	}
	model := rev.Definition.Model
	provider, _, _ := strings.Cut(model, "/")
	if !slices.Contains(providers, provider) {
		return &ModelError{Model: model, Provider: provider}
	}
	org, err := get[orgRecord](r, spaceOrgs, agent.OrgID.UUID[:])
	if err != nil {
		return err
	}
	if org == nil {
		return errors.Wrapf(ErrDamagedRecord, "organisation %s: missing", agent.OrgID)
	}
	if !org.allows(model) {
		return &ModelError{Model: model, Allowed: org.Models}
	}
	return nil
}

// queue puts the run behind those of its agent that wait for a worker.
func (tx *tx) queue(rec *runRecord) error {
	ticket, err := newUUID()
	if err != nil {
		return err
	}
	rec.Ticket = &ticket
	return put(tx, spaceWaiting, waitingKey(rec), present{})
}

// unqueue takes the run out of those that wait for a worker.
func (tx *tx) unqueue(rec *runRecord) error {
	key := waitingKey(rec)
	rec.Ticket = nil
	return tx.Delete(spaceWaiting, key)
}

// waitingKey is the place of a run that has a ticket.
func waitingKey(rec *runRecord) []byte {
	return join(rec.AgentID.UUID[:], rec.Ticket[:], rec.ID.UUID[:])
}

// lastID returns the ID of the run at the end of a key of an index.
func lastID(space string, key []byte) (RunID, error) {
	id, err := uuid.FromBytes(key[max(0, len(key)-len(uuid.UUID{})):])
	if err != nil {
		return RunID{}, errors.Wrapf(ErrDamagedRecord, "%s %x", space, key)
	}
	return RunID{id}, nil
}

// subject is what the audit log says of the run.
func (r *runRecord) subject() Subject { return Subject{Kind: "run", ID: r.ID.UUID, Name: r.Name} }

// actOnRun applies what the actor wants to one run; what changes nothing is not
// in the audit log. Errors: ErrRunNotFound, ErrForbidden.
func (s *Store) actOnRun(ctx context.Context, id RunID, action Action, change func(*tx, *runRecord) error) (Run, error) {
	return s.changeRun(ctx, id, func(tx *tx, rec *runRecord) error {
		if !tx.actor.sees(rec.OrgID) {
			return errors.Wrapf(ErrRunNotFound, "run %s", id)
		}
		if err := tx.may(ScopeRuns); err != nil {
			return err
		}
		before := *rec
		if err := change(tx, rec); err != nil || *rec == before {
			return err
		}
		return tx.audit(action, rec.OrgID, rec.subject(), "")
	})
}

// changeRun applies change to the row of one run, in one transaction. A row
// that comes out as it went in is not written.
func (s *Store) changeRun(ctx context.Context, id RunID, change func(*tx, *runRecord) error) (Run, error) {
	var run Run
	err := s.update(ctx, func(tx *tx) error {
		rec, err := runByID(tx, id)
		if err != nil {
			return err
		}
		before := *rec
		err = change(tx, rec)
		if err == nil && *rec != before {
			err = tx.putRun(rec)
		}
		run = rec.run()
		return err
	})
	return run, err
}

// putRun writes the run's row, with its place among the idle, and wakes its
// watchers once that is durable.
func (tx *tx) putRun(rec *runRecord) error {
	rec.UpdatedAt = tx.now
	if err := tx.indexIdle(rec); err != nil {
		return err
	}
	tx.changed = append(tx.changed, rec.ID)
	return put(tx, spaceRuns, rec.ID.UUID[:], *rec)
}

func runByID(r kv.Reader, id RunID) (*runRecord, error) {
	rec, err := get[runRecord](r, spaceRuns, id.UUID[:])
	if err == nil && rec == nil {
		err = errors.Wrapf(ErrRunNotFound, "run %s", id)
	}
	return rec, err
}

// indexedRun returns a run that an index leads to; that it is missing is damage.
func indexedRun(r kv.Reader, id RunID) (*runRecord, error) {
	rec, err := runByID(r, id)
	if errors.Is(err, ErrRunNotFound) {
		err = errors.Wrapf(ErrDamagedRecord, "run %s: missing", id)
	}
	return rec, err
}

// seenRun returns a run that the actor sees; ErrRunNotFound.
func seenRun(r kv.Reader, actor Actor, id RunID) (*runRecord, error) {
	rec, err := runByID(r, id)
	if err == nil && !actor.sees(rec.OrgID) {
		rec, err = nil, errors.Wrapf(ErrRunNotFound, "run %s", id)
	}
	return rec, err
}

// Run returns a run that the actor sees; ErrRunNotFound.
func (s *Store) Run(ctx context.Context, id RunID) (Run, error) {
	var run Run
	err := s.db.View(ctx, func(r kv.Reader) error {
		rec, err := seenRun(r, ActorOf(ctx), id)
		if err == nil {
			run = rec.run()
		}
		return err
	})
	return run, err
}

// HasRun says whether a run with this ID was ever created.
func (s *Store) HasRun(ctx context.Context, id uuid.UUID) (bool, error) {
	var has bool
	err := s.db.View(ctx, func(r kv.Reader) error {
		raw, err := r.Get(spaceRuns, id[:])
		has = raw != nil
		return err
	})
	return has, err
}
