package handler

import (
	"context"

	"github.com/go-faster/errors"
	"go.uber.org/zap"

	"agentrun/gen"
	"agentrun/storage"
)

// CreateAgent starts a run: POST /v1/agents. The files are durable in their
// place before the row that makes them a run's is written.
func (h *Handler) CreateAgent(ctx context.Context, req *gen.PublicCreateAgentRequest) (gen.CreateAgentRes, error) {
	caller, template := callerOf(ctx), storage.AgentID{UUID: req.TemplateID}
	if err := h.store.CheckCreate(ctx, caller, template); err != nil {
		return nil, err
	}
	id, err := storage.NewRunID()
	if err != nil {
		return nil, err
	}
	files, err := h.deliver(id, req.Files)
	if err != nil {
		return nil, err
	}
	run := storage.NewRun{
		ID: id, Caller: caller, Template: template, Name: req.Name, Files: files, Providers: h.providers,
	}
	if text, ok := req.InputText.Get(); ok {
		run.Input = &text
	}
	if _, err := h.store.CreateRun(ctx, run); err != nil {
		h.undeliver(id, files, err)
		return nil, err
	}
	return &gen.PublicCreateAgentResponse{AgentID: id.UUID}, nil
}

// undeliver removes the files of a run that was refused. When it is not known
// whether the run exists, they stay: the next start finds out.
func (h *Handler) undeliver(id storage.RunID, files []storage.FileDelivered, refusal error) {
	if len(files) == 0 || errors.Is(refusal, storage.ErrCommitUnknown) {
		return
	}
	if err := h.workspaces.Discard(id.UUID); err != nil {
		h.log.Warn("remove the files of a refused run", zap.Stringer("run", id), zap.Error(err))
	}
}
