package storage

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/storage/agentfile"
	"agentrun/storage/kv"
)

// Agent is a pre-configured agent, the "template" of the API.
type Agent struct {
	ID    AgentID
	OrgID OrgID
	Name  string
	// Revision numbers the agent file in force, from 1.
	Revision  uint32
	Archived  bool
	Deleted   bool
	CreatedAt time.Time
	UpdatedAt time.Time
}

type agentRecord struct {
	ID        AgentID   `json:"id"`
	OrgID     OrgID     `json:"org_id"`
	Name      string    `json:"name"`
	Revision  uint32    `json:"revision"`
	Archived  bool      `json:"archived"`
	Deleted   bool      `json:"deleted"`
	CreatedAt time.Time `json:"created_at"`
	UpdatedAt time.Time `json:"updated_at"`
}

func (r agentRecord) agent() Agent { return Agent(r) }

// revisionRecord keeps what a person wrote, with its comments, beside what a
// run needs of it.
type revisionRecord struct {
	Source     string               `json:"source"`
	Definition agentfile.Definition `json:"definition"`
	CreatedAt  time.Time            `json:"created_at"`
	// CreatedBy names who applied it; empty when that is not known.
	CreatedBy string `json:"created_by,omitempty"`
}

func revisionKey(agent AgentID, revision uint32) []byte {
	return binary.BigEndian.AppendUint32(join(agent.UUID[:]), revision)
}

// ApplyAgent creates the agent that file names in the organisation with this
// ID or name, or gives the agent of that name a new revision; a file equal to
// the one in force changes nothing. Errors: ErrForbidden, ErrOrgNotFound,
// ErrInvalidName.
func (s *Store) ApplyAgent(ctx context.Context, org string, file agentfile.File) (Agent, error) {
	if err := checkName(file.Definition.Name); err != nil {
		return Agent{}, err
	}
	var agent Agent
	err := s.update(ctx, func(tx *tx) error {
		owner, err := findOrg(tx, tx.actor, org)
		if err != nil {
			return err
		}
		if err := tx.may(ScopeAgents); err != nil {
			return err
		}
		rec, err := tx.agentToApply(owner.ID, file.Definition.Name)
		if err != nil {
			return err
		}
		agent = rec.agent()
		if rec.Revision > 0 {
			current, err := revision(tx, rec.ID, rec.Revision)
			if err != nil || current.Source == file.Source {
				return err
			}
		}
		rec.Revision++
		rec.UpdatedAt = tx.now
		agent = rec.agent()
		rev := revisionRecord{Source: file.Source, Definition: file.Definition, CreatedAt: tx.now, CreatedBy: tx.actor.Name}
		if err := put(tx, spaceRevisions, revisionKey(rec.ID, rec.Revision), rev); err != nil {
			return err
		}
		if err := put(tx, spaceAgents, rec.ID.UUID[:], *rec); err != nil {
			return err
		}
		return tx.audit("agent.apply", rec.OrgID, agent.subject(), fmt.Sprintf("revision %d", rec.Revision))
	})
	return agent, err
}

// agentToApply returns the organisation's agent of that name, or a fresh one
// without a revision whose name is taken but whose row is not yet written.
func (tx *tx) agentToApply(org OrgID, name string) (*agentRecord, error) {
	nameKey := join(org.UUID[:], []byte(name))
	index, err := get[ref[AgentID]](tx, spaceAgentNames, nameKey)
	if err != nil {
		return nil, err
	}
	if index != nil {
		return agentByID(tx, index.ID)
	}
	id, err := newUUID()
	if err != nil {
		return nil, err
	}
	rec := &agentRecord{ID: AgentID{id}, OrgID: org, Name: name, CreatedAt: tx.now}
	return rec, put(tx, spaceAgentNames, nameKey, ref[AgentID]{rec.ID})
}

func (a Agent) subject() Subject { return Subject{Kind: "agent", ID: a.ID.UUID, Name: a.Name} }

// Agents returns the agents that are not deleted and that the actor sees, oldest
// first; of one organisation when org is not nil.
func (s *Store) Agents(ctx context.Context, org *OrgID) ([]Agent, error) {
	agents := []Agent{}
	actor := ActorOf(ctx)
	err := s.db.View(ctx, func(r kv.Reader) error {
		agents = agents[:0]
		return scan(r, kv.Range{Space: spaceAgents}, func(_ []byte, rec agentRecord) error {
			if !rec.Deleted && actor.sees(rec.OrgID) && (org == nil || *org == rec.OrgID) {
				agents = append(agents, rec.agent())
			}
			return nil
		})
	})
	return agents, err
}

// FindAgent returns the agent with this ID, or the only one with this name.
// Errors: ErrAgentNotFound (also for deleted agents, and those that the actor
// does not see), ErrAmbiguousName.
func (s *Store) FindAgent(ctx context.Context, ref string) (Agent, error) {
	var agent Agent
	err := s.db.View(ctx, func(r kv.Reader) error {
		rec, err := findAgent(r, ActorOf(ctx), ref)
		if err == nil {
			agent = rec.agent()
		}
		return err
	})
	return agent, err
}

// AgentFile returns the agent file in force as it was applied. Errors: those of
// FindAgent.
func (s *Store) AgentFile(ctx context.Context, ref string) (agentfile.File, error) {
	var file agentfile.File
	err := s.db.View(ctx, func(r kv.Reader) error {
		rec, err := findAgent(r, ActorOf(ctx), ref)
		if err != nil {
			return err
		}
		rev, err := revision(r, rec.ID, rec.Revision)
		if err != nil {
			return err
		}
		file = agentfile.File{Source: rev.Source, Definition: rev.Definition}
		return nil
	})
	return file, err
}

// SetArchived archives or unarchives an agent. An archived agent takes no new
// run and no new input; what runs may end. Errors: those of FindAgent;
// ErrForbidden.
func (s *Store) SetArchived(ctx context.Context, ref string, archived bool) (Agent, error) {
	action := Action("agent.unarchive")
	if archived {
		action = "agent.archive"
	}
	return s.changeAgent(ctx, ref, action, func(_ *tx, rec *agentRecord) error {
		rec.Archived = archived
		return nil
	})
}

// DeleteAgent deletes an agent: its name is free again, its keys find no agent
// any more, its runs in flight are stopped, its other runs stay readable.
// Errors: those of FindAgent; ErrForbidden.
func (s *Store) DeleteAgent(ctx context.Context, ref string) (Agent, error) {
	return s.changeAgent(ctx, ref, "agent.delete", func(tx *tx, rec *agentRecord) error {
		rec.Deleted = true
		if err := tx.Delete(spaceAgentNames, join(rec.OrgID.UUID[:], []byte(rec.Name))); err != nil {
			return err
		}
		return tx.stopRunsOf(rec.ID)
	})
}

// changeAgent applies change to one agent, in one transaction. One that comes out
// as it went in is not written.
func (s *Store) changeAgent(ctx context.Context, ref string, action Action, change func(*tx, *agentRecord) error) (Agent, error) {
	var agent Agent
	err := s.update(ctx, func(tx *tx) error {
		rec, err := findAgent(tx, tx.actor, ref)
		if err != nil {
			return err
		}
		if err := tx.may(ScopeAgents); err != nil {
			return err
		}
		before := *rec
		if err := change(tx, rec); err != nil {
			return err
		}
		if *rec == before {
			agent = rec.agent()
			return nil
		}
		rec.UpdatedAt = tx.now
		agent = rec.agent()
		if err := put(tx, spaceAgents, rec.ID.UUID[:], *rec); err != nil {
			return err
		}
		return tx.audit(action, rec.OrgID, agent.subject(), "")
	})
	return agent, err
}

// findAgent returns the agent with this ID, or the only one of that name which
// the actor sees.
func findAgent(r kv.Reader, actor Actor, name string) (*agentRecord, error) {
	if id, err := uuid.Parse(name); err == nil {
		rec, err := get[agentRecord](r, spaceAgents, id[:])
		if err == nil && (rec == nil || rec.Deleted || !actor.sees(rec.OrgID)) {
			err = errors.Wrapf(ErrAgentNotFound, "%q", name)
		}
		return rec, err
	}
	orgs, err := allOrgs(r, actor)
	if err != nil {
		return nil, err
	}
	var found []AgentID
	for _, org := range orgs {
		index, err := get[ref[AgentID]](r, spaceAgentNames, join(org.ID.UUID[:], []byte(name)))
		if err != nil {
			return nil, err
		}
		if index != nil {
			found = append(found, index.ID)
		}
	}
	switch len(found) {
	case 0:
		return nil, errors.Wrapf(ErrAgentNotFound, "%q", name)
	case 1:
		return agentByID(r, found[0])
	default:
		return nil, errors.Errorf("%w: %d agents are named %q; use the ID", ErrAmbiguousName, len(found), name)
	}
}

// agentByID returns the agent that a row refers to, deleted or not.
func agentByID(r kv.Reader, id AgentID) (*agentRecord, error) {
	rec, err := get[agentRecord](r, spaceAgents, id.UUID[:])
	if err == nil && rec == nil {
		err = errors.Wrapf(ErrDamagedRecord, "agent %s: missing", id)
	}
	return rec, err
}

// openAgent returns the agent that a row refers to when it takes new runs and
// new input; else ErrAgentDeleted or *ArchivedError.
func openAgent(r kv.Reader, id AgentID) (*agentRecord, error) {
	agent, err := agentByID(r, id)
	switch {
	case err != nil:
		return nil, err
	case agent.Deleted:
		return nil, errors.Wrapf(ErrAgentDeleted, "agent %s", agent.ID)
	case agent.Archived:
		return nil, &ArchivedError{Name: agent.Name}
	}
	return agent, nil
}

// revision returns a revision that a row refers to.
func revision(r kv.Reader, agent AgentID, number uint32) (*revisionRecord, error) {
	rec, err := get[revisionRecord](r, spaceRevisions, revisionKey(agent, number))
	if err == nil && rec == nil {
		err = errors.Wrapf(ErrDamagedRecord, "agent %s: revision %d missing", agent, number)
	}
	return rec, err
}
