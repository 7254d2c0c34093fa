package web

import (
	"context"
	"time"

	"github.com/google/uuid"

	"agentrun/storage"
	"agentrun/web/gen"
)

// ListRuns implements listRuns.
func (m *Management) ListRuns(ctx context.Context, params gen.ListRunsParams) (*gen.RunPage, error) {
	filter := storage.RunFilter{
		State: storage.State(params.Status.Or("")), Text: params.Text.Or(""),
		Since: params.Since.Or(time.Time{}), Until: params.Until.Or(time.Time{}),
		Before: storage.RunID{UUID: params.Before.Or(uuid.Nil)}, Limit: params.Limit.Or(defaultPage),
	}
	org, err := m.orgID(ctx, params.Org)
	if err != nil {
		return nil, err
	}
	filter.Org = org
	if key, ok := params.Key.Get(); ok {
		filter.Key = &storage.KeyID{UUID: key}
	}
	if name, ok := params.Agent.Get(); ok {
		agent, err := m.store.FindAgent(ctx, name)
		if err != nil {
			return nil, err
		}
		filter.Agent = &agent.ID
	}
	runs, next, err := m.store.Runs(ctx, filter)
	if err != nil {
		return nil, err
	}
	page := &gen.RunPage{Runs: each(runs, runToAPI)}
	if next != (storage.RunID{}) {
		page.Next = gen.NewOptUUID(next.UUID)
	}
	return page, nil
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
		ID: r.ID, Name: r.Name, AgentID: r.AgentID, OrgID: r.OrgID, KeyID: r.KeyID, Status: r.Status, Reason: r.Reason,
		Stopping: r.Stopping, Deleted: r.Deleted, Erasing: r.Erasing,
		Revision: r.Revision, Turns: r.Turns, WaitingInputs: r.WaitingInputs,
		Spent: r.Spent, CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, Transcript: each(messages, messageToAPI),
	}, nil
}

// GiveInput implements giveInput.
func (m *Management) GiveInput(ctx context.Context, req *gen.GiveInputReq, params gen.GiveInputParams) (*gen.Run, error) {
	return one(runToAPI)(m.store.GiveInput(ctx, storage.RunID{UUID: params.Run}, req.Text))
}

// StopRun implements stopRun.
func (m *Management) StopRun(ctx context.Context, params gen.StopRunParams) (*gen.Run, error) {
	id := storage.RunID{UUID: params.Run}
	if _, err := m.store.StopRun(ctx, id, "stopped by "+whom(ctx)); err != nil {
		return nil, err
	}
	return m.await(ctx, id, params.Wait, func(r storage.Run) bool { return r.State == storage.StateTerminated })
}

// DeleteRun implements deleteRun.
func (m *Management) DeleteRun(ctx context.Context, params gen.DeleteRunParams) (*gen.Run, error) {
	id := storage.RunID{UUID: params.Run}
	if _, err := m.store.DeleteRun(ctx, id, "deleted by "+whom(ctx)); err != nil {
		return nil, err
	}
	return m.await(ctx, id, params.Wait, func(r storage.Run) bool {
		return r.State == storage.StateTerminated && !r.Erasing
	})
}

// whom names the actor in the history of a run.
func whom(ctx context.Context) string {
	if actor := storage.ActorOf(ctx); actor.UserID != (storage.UserID{}) {
		return actor.Name
	}
	return "the operator"
}

// await returns the run once it is as wanted, or as it is when the wait is over.
func (m *Management) await(ctx context.Context, id storage.RunID, seconds gen.OptInt, wanted func(storage.Run) bool) (*gen.Run, error) {
	var run storage.Run
	err := m.watch(ctx, id, seconds, func() (done bool, err error) {
		run, err = m.store.Run(ctx, id)
		return wanted(run), err
	})
	return one(runToAPI)(run, err)
}

// watch calls look after each commit that changed the run, the first time at
// once, until it says done or the wait is over: after these seconds, when the
// client has gone, or when the server ends.
func (m *Management) watch(ctx context.Context, id storage.RunID, seconds gen.OptInt, look func() (done bool, err error)) error {
	watch := m.store.Watch(id)
	defer watch.Close()
	over := time.NewTimer(time.Duration(seconds.Or(0)) * time.Second)
	defer over.Stop()
	for {
		if done, err := look(); done || err != nil {
			return err
		}
		select {
		case <-watch.C:
		case <-over.C:
			return nil
		case <-m.quit:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func runToAPI(r storage.Run) gen.Run {
	run := gen.Run{
		ID: r.ID.UUID, Name: r.Name, AgentID: r.AgentID.UUID, OrgID: r.OrgID.UUID, KeyID: r.KeyID.UUID, Status: gen.Status(r.State),
		Stopping: r.Stopping, Deleted: r.Deleted, Erasing: r.Erasing,
		Revision: int(r.Revision), Turns: int(r.Turn), WaitingInputs: int(r.WaitingInputs),
		CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt,
	}
	if r.Reason != "" {
		run.Reason = gen.NewOptString(r.Reason)
	}
	if r.Spent != (storage.Spent{}) {
		run.Spent = gen.NewOptSpent(gen.Spent(r.Spent))
	}
	return run
}

func messageToAPI(m storage.Message) gen.Message {
	return gen.Message{Role: gen.MessageRole(m.Role), Text: m.Text, Turn: int(m.Turn), At: m.At}
}
