package web

import (
	"context"

	"agentrun/storage"
	"agentrun/web/gen"
)

// ListRuns implements listRuns.
func (m *Management) ListRuns(ctx context.Context, params gen.ListRunsParams) ([]gen.Run, error) {
	filter := storage.RunFilter{State: storage.State(params.Status.Or("")), Limit: params.Limit.Or(0)}
	if name, ok := params.Agent.Get(); ok {
		agent, err := m.store.FindAgent(ctx, name)
		if err != nil {
			return nil, err
		}
		filter.Agent = &agent.ID
	}
	runs, err := m.store.Runs(ctx, filter)
	return each(runs, runToAPI), err
}

// GetRun implements getRun.
func (m *Management) GetRun(ctx context.Context, params gen.GetRunParams) (*gen.RunDetail, error) {
	id := storage.RunID{UUID: params.Run}
	run, messages, err := m.store.RunWithTranscript(ctx, id)
	if err != nil {
		return nil, err
	}
	r := runToAPI(run)
	return &gen.RunDetail{
		ID: r.ID, Name: r.Name, AgentID: r.AgentID, OrgID: r.OrgID, Status: r.Status, Reason: r.Reason,
		Revision: r.Revision, Turns: r.Turns, WaitingInputs: r.WaitingInputs,
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, Transcript: each(messages, messageToAPI),
	}, nil
}

func runToAPI(r storage.Run) gen.Run {
	run := gen.Run{
		ID: r.ID.UUID, Name: r.Name, AgentID: r.AgentID.UUID, OrgID: r.OrgID.UUID, Status: gen.Status(r.State),
		Revision: int(r.Revision), Turns: int(r.Turn), WaitingInputs: int(r.WaitingInputs),
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
	if r.Reason != "" {
		run.Reason = gen.NewOptString(r.Reason)
	}
	return run
}

func messageToAPI(m storage.Message) gen.Message {
	return gen.Message{Role: gen.MessageRole(m.Role), Text: m.Text}
}
