package page

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"

	"agentrun/storage/agentfile"
	"agentrun/web/gen"
)

// agentListData is an organisation's agents.
type agentListData struct {
	Agents []agentRow
	// Text and Show are the filter: a part of the name, and active, archived or
	// all.
	Text, Show string
	// Any says that there are agents that the filter may hide.
	Any bool
	// Apply is the command that makes an agent of a file.
	Apply string
}

// agentRow is an agent with what it is.
type agentRow struct {
	gen.Agent
	// Kind is program or model, and What the program or the model; both are empty
	// when the agent file cannot be read.
	Kind, What string
}

// agentList shows the agents of an organisation, by name.
func (a *App) agentList(w http.ResponseWriter, r *http.Request, v *view) error {
	if err := v.enterOrg(r); err != nil {
		return err
	}
	agents, err := a.api.ListAgents(r.Context(), gen.ListAgentsParams{Org: gen.NewOptString(v.Org.ID.String())})
	if err != nil {
		return err
	}
	data := agentListData{Text: r.FormValue("text"), Show: r.FormValue("show"), Any: len(agents) > 0}
	if data.Show != "archived" && data.Show != "all" {
		data.Show = "active"
	}
	data.Apply = "agentrun agent apply -f agent.yaml --org " + joinWords([]string{v.Org.Name})
	for _, agent := range agents {
		fits := data.Show == "all" || agent.Archived == (data.Show == "archived")
		if fits && strings.Contains(strings.ToLower(agent.Name), strings.ToLower(strings.TrimSpace(data.Text))) {
			data.Agents = append(data.Agents, a.agentRow(r.Context(), agent))
		}
	}
	slices.SortStableFunc(data.Agents, func(x, y agentRow) int {
		return cmp.Compare(strings.ToLower(x.Name), strings.ToLower(y.Name))
	})
	v.Section, v.Title, v.Data = "agents", "Agents", data
	return a.show(w, r, http.StatusOK, "agent_list", v)
}

// agentRow adds what the agent file says. An agent whose file cannot be read is
// listed without: its own page tells what is wrong.
func (a *App) agentRow(ctx context.Context, agent gen.Agent) agentRow {
	row := agentRow{Agent: agent}
	exported, err := a.api.ExportAgent(ctx, gen.ExportAgentParams{Agent: agent.ID.String()})
	if err != nil {
		return row
	}
	if file, err := agentfile.Parse(exported.File); err == nil {
		row.Kind, row.What = kindOf(file.Definition)
	}
	return row
}

const (
	kindProgram = "program"
	kindModel   = "model"
)

// kindOf says what an agent is: a program with its command line, or a model.
func kindOf(d agentfile.Definition) (kind, what string) {
	if d.Model != "" {
		return kindModel, d.Model
	}
	return kindProgram, joinWords(d.Command)
}
