package web

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"agentrun/storage"
	"agentrun/storage/agentfile"
	"agentrun/web/gen"
)

// ListAgents implements listAgents.
func (m *Management) ListAgents(ctx context.Context, params gen.ListAgentsParams) ([]gen.Agent, error) {
	org, err := m.orgID(ctx, params.Org)
	if err != nil {
		return nil, err
	}
	agents, err := m.store.Agents(ctx, org)
	return each(agents, agentToAPI), err
}

// ApplyAgent implements applyAgent.
func (m *Management) ApplyAgent(ctx context.Context, req *gen.ApplyAgentReq) (*gen.AppliedAgent, error) {
	file, err := agentfile.Parse(req.File)
	if err != nil {
		return nil, err
	}
	agent, err := m.store.ApplyAgent(ctx, req.Org.Or(storage.DefaultOrg), file)
	if err != nil {
		return nil, err
	}
	return &gen.AppliedAgent{Agent: agentToAPI(agent), Warnings: m.warnings(file.Definition)}, nil
}

// warnings says what will keep the agent from working on this server.
func (m *Management) warnings(d agentfile.Definition) []string {
	warnings := []string{}
	configured := func(name string) bool {
		return slices.ContainsFunc(m.providers, func(p Provider) bool { return p.Name == name })
	}
	if provider, _, _ := strings.Cut(d.Model, "/"); d.Model != "" && !configured(provider) {
		warnings = append(warnings, fmt.Sprintf(
			"model '%s': no provider '%s' is configured on this server; runs are refused until it is", d.Model, provider))
	}
	for _, provider := range d.Gateway {
		if !configured(provider) {
			warnings = append(warnings, fmt.Sprintf(
				"gateway: no provider '%s' is configured on this server; turns fail until it is", provider))
		}
	}
	return warnings
}

// GetAgent implements getAgent.
func (m *Management) GetAgent(ctx context.Context, params gen.GetAgentParams) (*gen.Agent, error) {
	return one(agentToAPI)(m.store.FindAgent(ctx, params.Agent))
}

// ExportAgent implements exportAgent.
func (m *Management) ExportAgent(ctx context.Context, params gen.ExportAgentParams) (*gen.AgentFile, error) {
	file, err := m.store.AgentFile(ctx, params.Agent)
	if err != nil {
		return nil, err
	}
	return &gen.AgentFile{File: file.Source}, nil
}

// ListRevisions implements listRevisions.
func (m *Management) ListRevisions(ctx context.Context, params gen.ListRevisionsParams) ([]gen.Revision, error) {
	revisions, err := m.store.Revisions(ctx, params.Agent)
	return each(revisions, revisionToAPI), err
}

// GetRevision implements getRevision.
func (m *Management) GetRevision(ctx context.Context, params gen.GetRevisionParams) (*gen.RevisionFile, error) {
	revision, file, err := m.store.RevisionFile(ctx, params.Agent, uint32(params.Revision))
	if err != nil {
		return nil, err
	}
	return &gen.RevisionFile{Revision: revisionToAPI(revision), File: file}, nil
}

func revisionToAPI(r storage.Revision) gen.Revision {
	return gen.Revision{Number: int(r.Number), CreatedAt: r.CreatedAt, CreatedBy: optString(r.CreatedBy)}
}

// ArchiveAgent implements archiveAgent.
func (m *Management) ArchiveAgent(ctx context.Context, params gen.ArchiveAgentParams) (*gen.Agent, error) {
	return one(agentToAPI)(m.store.SetArchived(ctx, params.Agent, true))
}

// UnarchiveAgent implements unarchiveAgent.
func (m *Management) UnarchiveAgent(ctx context.Context, params gen.UnarchiveAgentParams) (*gen.Agent, error) {
	return one(agentToAPI)(m.store.SetArchived(ctx, params.Agent, false))
}

// DeleteAgent implements deleteAgent.
func (m *Management) DeleteAgent(ctx context.Context, params gen.DeleteAgentParams) (*gen.Agent, error) {
	return one(agentToAPI)(m.store.DeleteAgent(ctx, params.Agent))
}

func agentToAPI(a storage.Agent) gen.Agent {
	return gen.Agent{
		ID: a.ID.UUID, Name: a.Name, OrgID: a.OrgID.UUID, Revision: int(a.Revision), Archived: a.Archived,
		CreatedAt: a.CreatedAt, UpdatedAt: a.UpdatedAt,
	}
}
