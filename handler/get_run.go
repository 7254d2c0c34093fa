package handler

import (
	"context"

	"agentrun/gen"
	"agentrun/storage"
)

// GetAgent answers with a run's status and transcript: GET /v1/agents/{agent_id}.
func (h *Handler) GetAgent(ctx context.Context, params gen.GetAgentParams) (gen.GetAgentRes, error) {
	state, messages, err := h.store.StateAndTranscript(ctx, callerOf(ctx), storage.RunID{UUID: params.AgentID})
	if err != nil {
		return nil, err
	}
	transcript := make([]gen.TranscriptMessage, len(messages))
	for i, m := range messages {
		transcript[i] = gen.TranscriptMessage{Role: gen.TranscriptMessageRole(m.Role), Text: m.Text}
	}
	return &gen.PublicAgentStatusResponse{
		AgentID: params.AgentID, LoopStatus: gen.LoopStatus(state), Transcript: transcript,
	}, nil
}
