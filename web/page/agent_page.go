package page

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"agentrun/storage/agentfile"
	"agentrun/web/gen"
)

// recentRuns is how many runs an agent's own page shows.
const recentRuns = 10

// agentOverviewData is the page of an agent.
type agentOverviewData struct {
	agentHead
	// Definition is what the file in force says; nil when this server cannot read
	// it.
	Definition *agentfile.Definition
	Kind, What string
	File       string
	Limits     []limitRow
	Runs       []gen.Run
	// Warnings are what keeps the agent from working on this server.
	Warnings []string
}

// limitRow is a limit that holds for an agent's runs.
type limitRow struct {
	Name, Value string
	// Given says that the agent file sets it, and not the default.
	Given bool
}

func (a *App) agentOverview(w http.ResponseWriter, r *http.Request, v *view) error {
	agent, err := a.enterAgent(r, v)
	if err != nil {
		return err
	}
	ctx := r.Context()
	exported, err := a.api.ExportAgent(ctx, gen.ExportAgentParams{Agent: agent.ID.String()})
	if err != nil {
		return err
	}
	runs, err := a.api.ListRuns(ctx, gen.ListRunsParams{
		Agent: gen.NewOptString(agent.ID.String()), Limit: gen.NewOptInt(recentRuns),
	})
	if err != nil {
		return err
	}
	data := agentOverviewData{agentHead: agentHead{agent, "overview"}, File: exported.File, Runs: runs.Runs}
	if file, err := agentfile.Parse(exported.File); err == nil {
		server, err := a.api.GetServer(ctx)
		if err != nil {
			return err
		}
		data.Definition = &file.Definition
		data.Kind, data.What = kindOf(file.Definition)
		data.Limits = limitRows(file.Definition)
		data.Warnings = missingProviders(file.Definition, server.Providers)
	}
	v.Data = data
	return a.show(w, r, http.StatusOK, "agent_overview", v)
}

// missingProviders says which providers the agent needs and the server lacks.
func missingProviders(d agentfile.Definition, providers []gen.Provider) []string {
	configured := func(name string) bool {
		return slices.ContainsFunc(providers, func(p gen.Provider) bool { return p.Name == name })
	}
	var warnings []string
	if name, _, _ := strings.Cut(d.Model, "/"); d.Model != "" && !configured(name) {
		warnings = append(warnings, fmt.Sprintf("This server has no provider “%s”, so runs are refused until it does.", name))
	}
	for _, name := range d.Gateway {
		if !configured(name) {
			warnings = append(warnings, fmt.Sprintf("This server has no provider “%s”, so turns fail until it does.", name))
		}
	}
	return warnings
}

// limitRows are the limits of an agent's runs, the defaults included.
func limitRows(d agentfile.Definition) []limitRow {
	l := d.Limits
	duration, _ := seconds(l.TurnTime())
	rows := []limitRow{{"Time of a turn", duration, l.Turn != 0}}
	if d.Model != "" || len(d.Gateway) > 0 {
		rows = append(rows,
			limitRow{"Answers of a turn", orNone(int64(l.StepCount()), count), l.Steps != 0},
			limitRow{"Tokens of a turn", orNone(int64(l.Tokens), count), l.Tokens != 0},
			limitRow{"Cost of a run", orNone(l.Cost, money), l.Cost != 0},
		)
	}
	return append(rows,
		limitRow{"Memory of a process", sizeText(l.MemoryBytes()), l.Memory != 0},
		limitRow{"Processes", orNone(int64(l.ProcessCount()), count), l.Processes != 0},
		limitRow{"Open files of a process", orNone(int64(l.OpenFileCount()), count), l.OpenFiles != 0},
		limitRow{"Size of a file", sizeText(l.FileSizeBytes()), l.FileSize != 0},
		limitRow{"Size of the workspace", sizeText(l.WorkspaceBytes()), l.Workspace != 0},
		limitRow{"Output that is kept", sizeText(l.OutputBytes()), l.Output != 0},
	)
}

// orNone writes a limit whose zero means that there is none.
func orNone(n int64, write func(any) (string, error)) string {
	if n == 0 {
		return "no limit"
	}
	text, _ := write(n) // It fails on what is no number only.
	return text
}

// sizeText writes a size as agent files do, in the largest unit that leaves it
// whole.
func sizeText(bytes int64) string {
	units := []string{"", "KiB", "MiB", "GiB", "TiB", "PiB"}
	unit := 0
	for bytes != 0 && bytes%1024 == 0 && unit < len(units)-1 {
		bytes, unit = bytes/1024, unit+1
	}
	return fmt.Sprintf("%d%s", bytes, units[unit])
}

func (a *App) agentArchive(w http.ResponseWriter, r *http.Request, v *view) error {
	agent, err := a.enterAgent(r, v)
	if err != nil {
		return err
	}
	if _, err := a.api.ArchiveAgent(r.Context(), gen.ArchiveAgentParams{Agent: agent.ID.String()}); err != nil {
		return err
	}
	return a.done(w, r, "/agents/"+agent.ID.String(), "agent-archived")
}

func (a *App) agentUnarchive(w http.ResponseWriter, r *http.Request, v *view) error {
	agent, err := a.enterAgent(r, v)
	if err != nil {
		return err
	}
	if _, err := a.api.UnarchiveAgent(r.Context(), gen.UnarchiveAgentParams{Agent: agent.ID.String()}); err != nil {
		return err
	}
	return a.done(w, r, "/agents/"+agent.ID.String(), "agent-unarchived")
}

func (a *App) agentDelete(w http.ResponseWriter, r *http.Request, v *view) error {
	agent, err := a.enterAgent(r, v)
	if err != nil {
		return err
	}
	if _, err := a.api.DeleteAgent(r.Context(), gen.DeleteAgentParams{Agent: agent.ID.String()}); err != nil {
		return err
	}
	return a.done(w, r, "/orgs/"+agent.OrgID.String()+"/agents", "agent-deleted")
}
