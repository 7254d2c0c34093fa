package page

import (
	"context"
	"net/http"
	"time"

	"github.com/google/uuid"

	"agentrun/storage"
	"agentrun/web/gen"
)

// agentRoutes registers the pages of agents and of their keys.
func (a *App) agentRoutes() {
	a.handle("GET /orgs/{org}/agents", a.agentList)
	a.handle("GET /orgs/{org}/agents/new", a.agentNew)
	a.handle("POST /orgs/{org}/agents", a.agentCreate)
	a.handle("POST /agent-form", a.agentForm)
	a.handle("GET /agents/{agent}", a.agentOverview)
	a.handle("GET /agents/{agent}/edit", a.agentEdit)
	a.handle("POST /agents/{agent}/edit", a.agentSave)
	a.handle("GET /agents/{agent}/revisions", a.agentRevisions)
	a.handle("GET /agents/{agent}/revisions/{revision}", a.agentRevision)
	a.handle("GET /agents/{agent}/diff", a.agentDiff)
	a.handle("GET /agents/{agent}/access", a.agentAccess)
	a.handle("POST /agents/{agent}/archive", a.agentArchive)
	a.handle("POST /agents/{agent}/unarchive", a.agentUnarchive)
	a.handle("POST /agents/{agent}/delete", a.agentDelete)
	a.handle("POST /agents/{agent}/keys", a.keyCreate)
	a.handle("GET /agents/{agent}/keys/{key}", a.keyPage)
	a.handle("GET /keys/{key}", a.keyByID)
	a.handle("POST /agents/{agent}/keys/{key}/disable", a.keyDisable)
	a.handle("POST /agents/{agent}/keys/{key}/enable", a.keyEnable)
	a.handle("POST /agents/{agent}/keys/{key}/delete", a.keyDelete)
	a.handle("POST /agents/{agent}/keys/{key}/rotate", a.keyRotate)
}

// agentNotices are what these pages say about the request before, by code.
var agentNotices = map[string]string{
	"agent-created":    "The agent is created. Next it needs a key: see API access.",
	"agent-saved":      "The agent file is saved as a new revision. Runs that exist keep theirs.",
	"agent-unchanged":  "The agent file is the one in force already; nothing has changed.",
	"agent-archived":   "The agent is archived. It takes no new runs and no input.",
	"agent-unarchived": "The agent takes new runs and input again.",
	"agent-deleted":    "The agent is deleted. Its runs are being stopped.",
	"key-disabled":     "The key is disabled. Requests with it are refused from now on.",
	"key-enabled":      "The key is enabled. Requests with it are accepted again.",
	"key-deleted":      "The key is deleted. Requests with it are refused for good.",
}

// agentFunctions are for the templates of agents only.
var agentFunctions = map[string]any{
	"requestMeaning": requestMeaning, // {{requestMeaning .Status}}: what a create request's status says.
}

// enterAgent returns the agent that the path names, and makes the page one of
// its organisation.
func (a *App) enterAgent(r *http.Request, v *view) (*gen.Agent, error) {
	id, err := pathID(r, "agent")
	if err != nil {
		return nil, err
	}
	return a.enterAgentWith(r.Context(), id, v)
}

func (a *App) enterAgentWith(ctx context.Context, id uuid.UUID, v *view) (*gen.Agent, error) {
	agent, err := a.api.GetAgent(ctx, gen.GetAgentParams{Agent: id.String()})
	if err != nil {
		return nil, err
	}
	v.enter(agent.OrgID)
	v.Section, v.Title = "agents", agent.Name
	return agent, nil
}

// agentHead is what the pages of one agent have at their top.
type agentHead struct {
	Agent *gen.Agent
	// Tab is the tab that the page is: overview, revisions or access.
	Tab string
}

// keyRow is a key with its state at the time of the page.
type keyRow struct {
	gen.Key
	// State is active, disabled or expired.
	State string
}

func newKeyRow(key gen.Key, now time.Time) keyRow {
	state := "active"
	switch {
	case key.ExpiresAt.Set && !key.ExpiresAt.Value.After(now):
		state = "expired"
	case key.Disabled:
		state = "disabled"
	}
	return keyRow{key, state}
}

// enterKey returns the agent and the key that the path names.
func (a *App) enterKey(r *http.Request, v *view) (*gen.Agent, keyRow, error) {
	agent, err := a.enterAgent(r, v)
	if err != nil {
		return nil, keyRow{}, err
	}
	id, err := pathID(r, "key")
	if err != nil {
		return nil, keyRow{}, err
	}
	keys, err := a.api.ListKeys(r.Context(), gen.ListKeysParams{Agent: agent.ID.String()})
	if err != nil {
		return nil, keyRow{}, err
	}
	for _, key := range keys {
		if key.ID == id {
			return agent, newKeyRow(key, time.Now()), nil
		}
	}
	return nil, keyRow{}, storage.ErrKeyNotFound
}
