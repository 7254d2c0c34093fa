package page

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/storage"
	"agentrun/web/gen"
)

// runsOnPage is how many runs a page of the list has at most.
const runsOnPage = 50

// maxSearch bounds the text that runs are looked for by, in bytes.
const maxSearch = 200

// runList is the list of an organisation's runs.
type runList struct {
	Org    gen.Org
	Filter runFilter
	// Agents are those to choose from; Keys those of the chosen one.
	Agents []gen.Agent
	Keys   []gen.Key
	Rows   []runRow
	// Problem says what is wrong with the filter.
	Problem string
	// Next is where the list goes on; empty at its end.
	Next string
}

// runRow is a run in the list.
type runRow struct {
	gen.Run
	// Agent and Key are names; empty when what they name was deleted.
	Agent, Key string
}

// Took is how long the run has gone on.
func (r runRow) Took() time.Duration { return took(r.Status, r.CreatedAt, r.UpdatedAt) }

// runFilter is what the list is filtered by, as it is in the address.
type runFilter struct {
	Agent, Status, Key, Text, Since, Until, Before string
}

func filterOf(query url.Values) runFilter {
	value := func(name string) string { return strings.TrimSpace(query.Get(name)) }
	f := runFilter{
		Agent: value("agent"), Status: value("status"), Key: value("key"), Text: value("text"),
		Since: value("since"), Until: value("until"), Before: value("before"),
	}
	if f.Agent == "" {
		f.Key = "" // It is a key of the agent chosen before.
	}
	return f
}

// Any says whether the filter leaves anything out.
func (f runFilter) Any() bool {
	f.Before = ""
	return f != runFilter{}
}

// query is the filter as it goes into an address.
func (f runFilter) query() url.Values {
	query := url.Values{}
	for name, value := range map[string]string{
		"agent": f.Agent, "status": f.Status, "key": f.Key, "text": f.Text, "since": f.Since, "until": f.Until, "before": f.Before,
	} {
		if value != "" {
			query.Set(name, value)
		}
	}
	return query
}

// Self is the list's address without a filter.
func (l runList) Self() string { return "/orgs/" + l.Org.ID.String() + "/runs" }

// Older is the address of the list's next part, Newest that of its first.
func (l runList) Older() string { return l.from(l.Next) }

// Newest is the address of the list's first part.
func (l runList) Newest() string { return l.from("") }

func (l runList) from(before string) string {
	f := l.Filter
	f.Before = before
	if query := f.query().Encode(); query != "" {
		return l.Self() + "?" + query
	}
	return l.Self()
}

// Looked says that the list's end is not reached although it shows too little.
func (l runList) Looked() bool { return l.Next != "" && len(l.Rows) < runsOnPage }

// Statuses are those to choose from.
func (l runList) Statuses() []gen.Status { return gen.Status("").AllValues() }

// UsesAgent is an agent that somebody can use, to go on from an empty list.
func (l runList) UsesAgent() *gen.Agent {
	for i := range l.Agents {
		if !l.Agents[i].Archived {
			return &l.Agents[i]
		}
	}
	return nil
}

// runList answers with the runs of an organisation that fit the filter.
func (a *App) runList(w http.ResponseWriter, r *http.Request, v *view) error {
	if err := v.enterOrg(r); err != nil {
		return err
	}
	ctx := r.Context()
	list := runList{Org: *v.Org, Filter: filterOf(r.URL.Query())}
	var err error
	if list.Agents, err = a.api.ListAgents(ctx, gen.ListAgentsParams{Org: gen.NewOptString(v.Org.ID.String())}); err != nil {
		return err
	}
	if err := a.fillRuns(ctx, &list); err != nil {
		return err
	}
	v.Section, v.Title, v.Data = "runs", "Runs", list
	w.Header().Set("Vary", "HX-Request-Type")
	if r.Header.Get("HX-Request-Type") == "partial" {
		return a.part(w, r, "run_list", "results-part", list)
	}
	return a.show(w, r, http.StatusOK, "run_list", v)
}

// fillRuns fills in the runs and the keys to choose from.
func (a *App) fillRuns(ctx context.Context, list *runList) error {
	params, problem := list.Filter.params(list)
	names := newNames(a, list.Agents)
	if list.Filter.Agent != "" && names.agents[list.Filter.Agent] == "" {
		problem = "There is no such agent in this organisation."
	}
	if list.Problem = problem; problem != "" {
		return nil
	}
	if list.Filter.Agent != "" {
		var err error
		if list.Keys, err = a.api.ListKeys(ctx, gen.ListKeysParams{Agent: list.Filter.Agent}); err != nil {
			return err
		}
	}
	page, err := a.api.ListRuns(ctx, params)
	if err != nil {
		return err
	}
	if next, ok := page.Next.Get(); ok {
		list.Next = next.String()
	}
	for _, run := range page.Runs {
		key, err := names.key(ctx, run.AgentID, run.KeyID)
		if err != nil {
			return err
		}
		list.Rows = append(list.Rows, runRow{Run: run, Agent: names.agents[run.AgentID.String()], Key: key})
	}
	return nil
}

// params are what to ask for. A problem is told when the filter is malformed.
func (f runFilter) params(list *runList) (params gen.ListRunsParams, problem string) {
	params.Org, params.Limit = gen.NewOptString(list.Org.ID.String()), gen.NewOptInt(runsOnPage)
	if f.Agent != "" {
		params.Agent = gen.NewOptString(f.Agent)
	}
	if f.Status != "" {
		if !slices.Contains(gen.Status("").AllValues(), gen.Status(f.Status)) {
			return params, "There is no such status."
		}
		params.Status = gen.NewOptStatus(gen.Status(f.Status))
	}
	if f.Text != "" {
		if len(f.Text) > maxSearch {
			return params, "The text to look for is longer than 200 characters."
		}
		params.Text = gen.NewOptString(f.Text)
	}
	for _, id := range []struct {
		text string
		into *gen.OptUUID
	}{{f.Key, &params.Key}, {f.Before, &params.Before}} {
		if parsed, err := uuid.Parse(id.text); err == nil {
			*id.into = gen.NewOptUUID(parsed)
		} else if id.text != "" {
			return params, "The address is incomplete: it names no key or run where it should."
		}
	}
	for _, moment := range []struct {
		text string
		into *gen.OptDateTime
	}{{f.Since, &params.Since}, {f.Until, &params.Until}} {
		if parsed, ok := readMoment(moment.text); ok {
			*moment.into = gen.NewOptDateTime(parsed)
		} else if moment.text != "" {
			return params, "A time is written as 2026-01-31T15:04, in UTC."
		}
	}
	return params, ""
}

// readMoment reads a time as browsers send it, in UTC.
func readMoment(text string) (time.Time, bool) {
	for _, layout := range []string{"2006-01-02T15:04", "2006-01-02T15:04:05", "2006-01-02"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, true
		}
	}
	return time.Time{}, false
}

// names finds the names of agents and keys.
type names struct {
	app    *App
	agents map[string]string
	// keys are the names of keys, of the agents that were asked for so far.
	keys  map[uuid.UUID]string
	asked map[uuid.UUID]bool
}

func newNames(app *App, agents []gen.Agent) *names {
	n := &names{app: app, agents: map[string]string{}, keys: map[uuid.UUID]string{}, asked: map[uuid.UUID]bool{}}
	for _, agent := range agents {
		n.agents[agent.ID.String()] = agent.Name
	}
	return n
}

// key returns what an agent's key is called, by its prefix when it has no name;
// empty when the agent or the key was deleted.
func (n *names) key(ctx context.Context, agent, key uuid.UUID) (string, error) {
	if !n.asked[agent] && n.agents[agent.String()] != "" {
		keys, err := n.app.api.ListKeys(ctx, gen.ListKeysParams{Agent: agent.String()})
		if err != nil && !errors.Is(err, storage.ErrAgentNotFound) {
			return "", err
		}
		for _, k := range keys {
			n.keys[k.ID] = keyText(k)
		}
	}
	n.asked[agent] = true
	return n.keys[key], nil
}

// keyText is what people tell a key by.
func keyText(k gen.Key) string {
	if k.Name == "" {
		return k.Prefix + "…"
	}
	return k.Name
}
