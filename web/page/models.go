package page

import (
	"context"
	"net/http"
	"strings"

	"agentrun/web/gen"
)

// usageDays is how many days the page of models looks back.
const usageDays = 30

// modelsPage is about the models that an organisation uses.
type modelsPage struct {
	Org       gen.Org
	Providers []gen.Provider
	Days      []gen.DailyUsage
	Chart     chart
	// Total is what was spent in these days.
	Total gen.Spent
	// Agents and Keys are those of the organisation that spent something.
	Agents, Keys []usageRow
	// Patterns is the allowlist, as it was sent when it was refused.
	Patterns string
	// Problem says why it was refused.
	Problem string
}

// usageRow is what was spent by somebody.
type usageRow struct {
	gen.Usage
	// Link is the page of it; empty when there is none any more.
	Link string
}

// AllowsAny says whether the allowlist lets any model pass.
func (p modelsPage) AllowsAny() bool {
	for _, pattern := range p.Org.Models {
		if pattern == "*" {
			return true
		}
	}
	return false
}

// Busy says whether there is something to show in the chart.
func (p modelsPage) Busy() bool { return p.Total.Calls > 0 }

// models answers with the providers, the allowlist and what was spent.
func (a *App) models(w http.ResponseWriter, r *http.Request, v *view) error {
	if err := v.enterOrg(r); err != nil {
		return err
	}
	return a.showModels(w, r, v, http.StatusOK, strings.Join(v.Org.Models, "\n"), "")
}

// setModels replaces the allowlist.
func (a *App) setModels(w http.ResponseWriter, r *http.Request, v *view) error {
	if err := v.enterOrg(r); err != nil {
		return err
	}
	patterns := r.PostForm.Get("models")
	models := gen.Models{}
	for line := range strings.Lines(patterns) {
		if line = strings.TrimSpace(line); line != "" {
			models = append(models, line)
		}
	}
	_, err := a.api.SetOrgModels(r.Context(), &gen.SetOrgModelsReq{Models: models}, gen.SetOrgModelsParams{Org: v.Org.ID.String()})
	if err == nil {
		return a.done(w, r, "/orgs/"+v.Org.ID.String()+"/models", "models-changed")
	}
	if p, ok := a.fault(r, err); ok {
		return a.showModels(w, r, v, p.Status, patterns, p.Detail)
	}
	return err
}

func (a *App) showModels(w http.ResponseWriter, r *http.Request, v *view, status int, patterns, problem string) error {
	ctx := r.Context()
	server, err := a.api.GetServer(ctx)
	if err != nil {
		return err
	}
	page := modelsPage{Org: *v.Org, Providers: server.Providers, Patterns: patterns, Problem: problem}
	page.Days, err = a.api.ListDailyUsage(ctx, gen.ListDailyUsageParams{Org: v.Org.ID.String(), Days: gen.NewOptInt(usageDays)})
	if err != nil {
		return err
	}
	for _, day := range page.Days {
		page.Total.Calls += day.Spent.Calls
		page.Total.Input += day.Spent.Input
		page.Total.Cached += day.Spent.Cached
		page.Total.Output += day.Spent.Output
		page.Total.Cost += day.Spent.Cost
	}
	page.Chart = newChart(page.Days)
	if err := a.fillUsage(ctx, &page); err != nil {
		return err
	}
	v.Section, v.Title, v.Data = "models", "Models", page
	return a.show(w, r, status, "models", v)
}

// fillUsage fills in who spent how much. What was deleted has no name and is in
// no organisation any more.
func (a *App) fillUsage(ctx context.Context, page *modelsPage) error {
	usage, err := a.api.ListUsage(ctx)
	if err != nil {
		return err
	}
	agents, err := a.api.ListAgents(ctx, gen.ListAgentsParams{Org: gen.NewOptString(page.Org.ID.String())})
	if err != nil {
		return err
	}
	links := map[string]string{}
	for _, agent := range agents {
		links[agent.ID.String()] = "/agents/" + agent.ID.String()
		keys, err := a.api.ListKeys(ctx, gen.ListKeysParams{Agent: agent.ID.String()})
		if err != nil {
			return err
		}
		for _, key := range keys {
			links[key.ID.String()] = "/keys/" + key.ID.String()
		}
	}
	for _, u := range usage {
		link, ok := links[u.ID.String()]
		if !ok {
			continue
		}
		switch u.Kind {
		case gen.UsageKindAgent:
			page.Agents = append(page.Agents, usageRow{Usage: u, Link: link})
		case gen.UsageKindKey:
			page.Keys = append(page.Keys, usageRow{Usage: u, Link: link})
		}
	}
	return nil
}
