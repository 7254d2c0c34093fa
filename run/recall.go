package run

import (
	"context"
	"encoding/json"

	"github.com/go-faster/errors"

	"agentrun/run/model"
	"agentrun/run/turn"
	"agentrun/storage"
)

// notMade is what the model is told of a call that nobody made.
const notMade = "The turn ended before this call was made."

// past is what a conversation has come to, as its run's history tells it.
type past struct {
	turn    uint64
	inputs  map[uint64]string
	history []model.Message
	// open are the calls of the last answer that have no result, begun those of
	// them that were begun.
	open  []model.ToolCall
	begun map[string]bool
	spent turn.Spent
}

// recall makes the conversation of a run anew from its history, up to the turn.
func (s *Server) recall(ctx context.Context, t *storage.Turn) (*past, error) {
	run, messages, err := s.store.RunWithTranscript(ctx, t.Run.ID)
	if err != nil {
		return nil, err
	}
	_, events, err := s.store.StateAndEvents(ctx, t.Run.ID, 0, 0)
	if err != nil {
		return nil, err
	}
	p := &past{inputs: map[uint64]string{}, begun: map[string]bool{}}
	for _, m := range messages {
		if m.Role == storage.RoleInput {
			p.inputs[m.Turn] = m.Text
		}
	}
	for _, e := range events {
		if err := p.take(e); err != nil {
			return nil, errors.Wrapf(err, "run %s: event %d", t.Run.ID, e.Seq)
		}
	}
	p.spent.Cost = run.Spent.Cost
	return p, nil
}

func (p *past) take(e storage.Event) error {
	switch e.Kind {
	case storage.EventTurnStarted:
		p.start(e.Turn)
	case storage.EventModelAnswered:
		var a storage.ModelAnswered
		if err := json.Unmarshal(e.Data, &a); err != nil {
			return err
		}
		p.answer(a)
	case storage.EventToolCalled:
		var c storage.ToolCalled
		if err := json.Unmarshal(e.Data, &c); err != nil {
			return err
		}
		p.begun[c.Call] = true
	case storage.EventToolReturned:
		var r storage.ToolReturned
		if err := json.Unmarshal(e.Data, &r); err != nil {
			return err
		}
		p.result(model.ToolResult{CallID: r.Call, Text: r.Text, Failed: r.Failed})
	case storage.EventContextCompacted:
		var c storage.ContextCompacted
		if err := json.Unmarshal(e.Data, &c); err != nil {
			return err
		}
		p.spend(c.Spent)
		p.history, p.open = []model.Message{turn.Summarised(c.Summary, p.inputs[p.turn])}, nil
	}
	return nil
}

// start begins a turn with its input, unless it goes on with one. Providers
// want a result for each call, also for those of a turn that failed.
func (p *past) start(number uint64) {
	if number == p.turn {
		return
	}
	for _, c := range p.open {
		text := notMade
		if p.begun[c.ID] {
			text = turn.Interrupted
		}
		p.history = append(p.history, model.Message{Role: model.RoleTool, Result: &model.ToolResult{CallID: c.ID, Text: text, Failed: true}})
	}
	p.turn, p.open, p.spent = number, nil, turn.Spent{}
	p.history = append(p.history, model.Message{Role: model.RoleUser, Text: p.inputs[number]})
}

func (p *past) answer(a storage.ModelAnswered) {
	p.spend(a.Spent)
	m := model.Message{Role: model.RoleModel, Text: a.Text, Opaque: a.Opaque}
	for _, c := range a.Calls {
		m.Calls = append(m.Calls, model.ToolCall{ID: c.ID, Name: c.Tool, Arguments: c.Arguments})
	}
	p.history = append(p.history, m)
	p.open = m.Calls
	clear(p.begun)
}

func (p *past) result(r model.ToolResult) {
	for i, c := range p.open {
		if c.ID == r.CallID {
			p.open = append(p.open[:i:i], p.open[i+1:]...)
			break
		}
	}
	p.history = append(p.history, model.Message{Role: model.RoleTool, Result: &r})
}

func (p *past) spend(s storage.Spent) {
	p.spent.Steps++
	p.spent.Tokens += s.Tokens()
}
