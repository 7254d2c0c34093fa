package storage_test

import (
	"bytes"
	"cmp"
	"slices"

	"agentrun/storage"
)

// plain is what a store should hold, written down once more as plainly as
// possible: the table of states over maps and slices.
type plain struct {
	agents []*plainAgent // in the order of their IDs
	runs   []*plainRun   // in the order of their IDs
}

type plainAgent struct {
	caller            storage.Caller
	restart           bool
	archived, deleted bool
	queue             []*plainRun // that wait for a worker
}

type plainRun struct {
	id    storage.RunID
	agent *plainAgent

	state             storage.State
	reason            string
	turns             uint64
	turnOpen, claimed bool
	stopping          string
	deleted, erasing  bool
	waiting           []string // inputs that no turn accepted
	transcript        []string
	events            []storage.EventKind
}

func (r *plainRun) tell(kinds ...storage.EventKind) { r.events = append(r.events, kinds...) }

// refusal is why an agent takes neither runs nor input.
func (a *plainAgent) refusal() error {
	switch {
	case a.deleted:
		return storage.ErrAgentDeleted
	case a.archived:
		return storage.ErrAgentArchived
	}
	return nil
}

func (p *plain) create(a *plainAgent, id storage.RunID, input *string) error {
	if err := a.refusal(); err != nil {
		return err
	}
	r := &plainRun{id: id, agent: a, state: storage.StateFinished}
	r.tell(storage.EventRunCreated)
	p.runs = append(p.runs, r)
	if input != nil {
		r.give(*input)
	}
	return nil
}

func (r *plainRun) input(text string) error {
	if r.state == storage.StateTerminated || r.stopping != "" {
		return storage.ErrRunTerminated
	}
	if err := r.agent.refusal(); err != nil {
		return err
	}
	r.give(text)
	return nil
}

func (r *plainRun) give(text string) {
	r.waiting = append(r.waiting, text)
	r.tell(storage.EventInputGiven)
	if r.state != storage.StateRunning {
		r.state, r.reason = storage.StateRunning, ""
		r.queue()
	}
}

func (r *plainRun) queue() { r.agent.queue = append(r.agent.queue, r) }

// next is the run that is claimed next when the agent after was served last.
func (p *plain) next(after storage.AgentID) *plainRun {
	var first *plainRun
	for _, a := range p.agents {
		switch {
		case len(a.queue) == 0:
		case bytes.Compare(a.caller.AgentID.UUID[:], after.UUID[:]) > 0:
			return a.queue[0]
		case first == nil:
			first = a.queue[0]
		}
	}
	return first
}

// claim lets a worker take the run, and returns what it is to work on.
func (r *plainRun) claim() (input string, again bool) {
	r.agent.queue = r.agent.queue[1:]
	again = r.turnOpen
	if !again {
		r.turns++
		r.turnOpen = true
		r.transcript = append(r.transcript, "input_to_agent: "+r.waiting[0])
		r.waiting = r.waiting[1:]
	}
	r.claimed = true
	r.tell(storage.EventTurnStarted)
	return r.transcript[len(r.transcript)-1][len("input_to_agent: "):], again
}

func (r *plainRun) finish(output string) {
	r.transcript = append(r.transcript, "output_from_agent: "+output)
	r.tell(storage.EventTurnFinished)
	r.endTurn(storage.StateFinished, "")
}

func (r *plainRun) fail(reason string) {
	r.tell(storage.EventTurnFailed)
	r.endTurn(storage.StateTechnicalError, reason)
}

func (r *plainRun) park() {
	r.claimed = false
	if r.stopping != "" {
		r.terminate(r.stopping)
		return
	}
	r.tell(storage.EventTurnParked)
	r.queue()
}

func (r *plainRun) endTurn(idle storage.State, reason string) {
	r.claimed, r.turnOpen = false, false
	switch {
	case r.stopping != "":
		r.terminate(r.stopping)
	case len(r.waiting) > 0:
		r.queue()
	default:
		r.state, r.reason = idle, reason
	}
}

func (r *plainRun) stop(reason string) {
	if r.state == storage.StateTerminated || r.stopping != "" {
		return
	}
	r.tell(storage.EventStopRequested)
	if r.claimed {
		r.stopping = reason
		return
	}
	r.agent.queue = slices.DeleteFunc(r.agent.queue, func(other *plainRun) bool { return other == r })
	r.terminate(reason)
}

func (r *plainRun) terminate(reason string) {
	for range r.waiting {
		r.tell(storage.EventInputDropped)
	}
	r.tell(storage.EventRunTerminated)
	r.waiting, r.turnOpen = nil, false
	r.state, r.reason, r.stopping = storage.StateTerminated, reason, ""
	if r.deleted {
		r.erase()
	}
}

func (r *plainRun) delete(reason string) {
	if r.deleted {
		return
	}
	r.deleted = true
	if r.state == storage.StateTerminated {
		r.erase()
		return
	}
	r.stop(reason)
}

func (r *plainRun) erase() { r.transcript, r.events, r.erasing = nil, nil, true }

func (p *plain) deleteAgent(a *plainAgent) {
	a.deleted = true
	for _, r := range p.runs {
		if r.agent == a && r.state == storage.StateRunning {
			r.stop("agent deleted")
		}
	}
}

// restart is a kill and the start after it.
func (p *plain) restart() {
	cut := slices.DeleteFunc(slices.Clone(p.runs), func(r *plainRun) bool { return !r.claimed })
	slices.SortStableFunc(cut, func(a, b *plainRun) int {
		return cmp.Or(
			bytes.Compare(a.agent.caller.AgentID.UUID[:], b.agent.caller.AgentID.UUID[:]),
			bytes.Compare(a.id.UUID[:], b.id.UUID[:]),
		)
	})
	for _, r := range cut {
		if r.agent.restart && r.stopping == "" {
			r.park()
		} else {
			r.fail("server stopped")
		}
	}
}
