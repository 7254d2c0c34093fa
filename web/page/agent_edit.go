package page

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"agentrun/storage/agentfile"
	"agentrun/web/gen"
)

// agentEditData is an agent file that is being written: its text, and a form for
// the fields that most agents need. A field of the form that was changed is
// changed in the text too, by the browser as one types, and at the latest when
// the file is saved; the text is what counts.
type agentEditData struct {
	draft
	// Agent is nil for a new one.
	Agent *gen.Agent
	Org   uuid.UUID
	// Problem is what is wrong besides the faults, empty when nothing is.
	Problem string
	// Starts are what a new agent can begin with, and Start is what it began with.
	Starts []start
	Start  string
	// Models are proposals for the model's name.
	Models []string
	// Tools are the tools that come with agentrun.
	Tools []toolBox
	// ErrorAt are the faults of the form's fields, by their paths.
	ErrorAt map[string]string
	// Edited says that the form changed the text, for parts of the page.
	Edited bool
}

// toolBox is a tool with its check box.
type toolBox struct {
	Name string
	On   bool
}

// Was are the form's values as the file has them, for the next request.
func (d agentEditData) Was() (string, error) {
	text, err := json.Marshal(d.was)
	return string(text), err
}

// Action is where the file is saved.
func (d agentEditData) Action() string {
	if d.Agent == nil {
		return "/orgs/" + d.Org.String() + "/agents"
	}
	return "/agents/" + d.Agent.ID.String() + "/edit"
}

// Rows is how many lines the text is shown with.
func (d agentEditData) Rows() int { return min(max(strings.Count(d.File, "\n")+3, 24), 60) }

// agentNew begins an agent.
func (a *App) agentNew(w http.ResponseWriter, r *http.Request, v *view) error {
	if err := v.enterOrg(r); err != nil {
		return err
	}
	server, err := a.api.GetServer(r.Context())
	if err != nil {
		return err
	}
	begun, file := startFile(r.FormValue("start"), server.Providers)
	data := &agentEditData{draft: newDraft(file), Org: v.Org.ID, Start: begun.ID}
	return a.showEdit(w, r, http.StatusOK, v, data)
}

func (a *App) agentEdit(w http.ResponseWriter, r *http.Request, v *view) error {
	agent, err := a.enterAgent(r, v)
	if err != nil {
		return err
	}
	exported, err := a.api.ExportAgent(r.Context(), gen.ExportAgentParams{Agent: agent.ID.String()})
	if err != nil {
		return err
	}
	return a.showEdit(w, r, http.StatusOK, v, &agentEditData{draft: newDraft(exported.File), Agent: agent, Org: agent.OrgID})
}

// showEdit adds what every page of a draft has.
func (a *App) showEdit(w http.ResponseWriter, r *http.Request, status int, v *view, data *agentEditData) error {
	if err := a.completeEdit(r, v, data); err != nil {
		return err
	}
	v.Section, v.Title, v.Data = "agents", "New agent", data
	if data.Agent != nil {
		v.Title = "Edit " + data.Agent.Name
	} else {
		data.Starts = starts
	}
	return a.show(w, r, status, "agent_edit", v)
}

func (a *App) completeEdit(r *http.Request, v *view, data *agentEditData) error {
	server, err := a.api.GetServer(r.Context())
	if err != nil {
		return err
	}
	for _, provider := range server.Providers {
		data.Models = append(data.Models, provider.Name+"/")
	}
	if v.Org != nil {
		for _, pattern := range v.Org.Models {
			if !strings.ContainsAny(pattern, "*?[") {
				data.Models = append(data.Models, pattern)
			}
		}
	}
	on := strings.Fields(data.Values["tools"])
	for _, name := range agentfile.Tools {
		data.Tools = append(data.Tools, toolBox{name, slices.Contains(on, name)})
	}
	data.ErrorAt = faultsByField(data.Faults)
	return nil
}

// agentForm brings the form and the text together. For htmx it answers with the
// parts of the page that change, otherwise with the page.
func (a *App) agentForm(w http.ResponseWriter, r *http.Request, v *view) error {
	data := &agentEditData{draft: readDraft(r.PostForm)}
	if err := a.enterDraft(r, v, data); err != nil {
		return err
	}
	if r.Header.Get("HX-Request") != "true" {
		return a.showEdit(w, r, http.StatusOK, v, data)
	}
	if err := a.completeEdit(r, v, data); err != nil {
		return err
	}
	data.Edited = data.File != unixLines(r.PostFormValue("file"))
	// What is being typed into the form must stay, and check boxes must follow the
	// text when that is what was typed into.
	w.Header().Set("HX-Reswap", "outerHTML")
	if r.PostFormValue("typed") == "form" {
		w.Header().Set("HX-Reswap", "outerMorph")
	}
	return a.part(w, r, "agent_edit", "agent-parts", data)
}

// enterDraft finds the agent or the organisation that a draft is for.
func (a *App) enterDraft(r *http.Request, v *view, data *agentEditData) error {
	if id, err := uuid.Parse(r.PostFormValue("agent")); err == nil {
		data.Agent, err = a.enterAgentWith(r.Context(), id, v)
		if err != nil {
			return err
		}
		data.Org = data.Agent.OrgID
		return nil
	}
	id, err := uuid.Parse(r.PostFormValue("org"))
	if err == nil {
		v.enter(id)
	}
	if v.Org == nil {
		return refuse(http.StatusNotFound, "There is no such organisation.")
	}
	data.Org = v.Org.ID
	return nil
}

// agentCreate makes the agent of a file.
func (a *App) agentCreate(w http.ResponseWriter, r *http.Request, v *view) error {
	if err := v.enterOrg(r); err != nil {
		return err
	}
	data := &agentEditData{draft: readDraft(r.PostForm), Org: v.Org.ID}
	if data.Definition != nil {
		agents, err := a.api.ListAgents(r.Context(), gen.ListAgentsParams{Org: gen.NewOptString(v.Org.ID.String())})
		if err != nil {
			return err
		}
		// Applied, the file would give that agent a new revision without a word.
		if slices.ContainsFunc(agents, func(agent gen.Agent) bool { return agent.Name == data.Definition.Name }) {
			data.refuseName("is the name of another agent; choose one that is free, or edit that agent")
		}
	}
	return a.apply(w, r, v, data)
}

// agentSave gives an agent a new revision.
func (a *App) agentSave(w http.ResponseWriter, r *http.Request, v *view) error {
	agent, err := a.enterAgent(r, v)
	if err != nil {
		return err
	}
	data := &agentEditData{draft: readDraft(r.PostForm), Agent: agent, Org: agent.OrgID}
	if data.Definition != nil && data.Definition.Name != agent.Name {
		// Applied, the file would make another agent, or change one.
		data.refuseName(fmt.Sprintf("an agent keeps its name, here %q; another name is for a new agent", agent.Name))
	}
	if was := r.PostFormValue("revision"); was != "" && was != strconv.Itoa(agent.Revision) && len(data.Faults) == 0 {
		data.Problem = fmt.Sprintf("Meanwhile somebody else saved revision %d. Nothing of yours is lost: look at what changed, "+
			"then save again to replace it.", agent.Revision)
		return a.showEdit(w, r, http.StatusConflict, v, data)
	}
	return a.apply(w, r, v, data)
}

// refuseName adds a fault at the name, where it stands in the file.
func (d *agentEditData) refuseName(problem string) {
	line := 0
	for i, text := range strings.Split(d.File, "\n") {
		if strings.HasPrefix(text, "name:") {
			line = i + 1
			break
		}
	}
	d.Faults = append(d.Faults, gen.Fault{Line: line, Field: "name", Problem: problem})
}

// apply saves a file, or shows it again with what is wrong.
func (a *App) apply(w http.ResponseWriter, r *http.Request, v *view, data *agentEditData) error {
	if len(data.Faults) > 0 {
		return a.showEdit(w, r, http.StatusUnprocessableEntity, v, data)
	}
	applied, err := a.api.ApplyAgent(r.Context(), &gen.ApplyAgentReq{Org: gen.NewOptString(data.Org.String()), File: data.File})
	if err != nil {
		problem, ok := a.fault(r, err)
		if !ok {
			return err
		}
		if data.Faults = problem.Faults; len(data.Faults) == 0 {
			data.Problem = problem.Detail
		}
		return a.showEdit(w, r, problem.Status, v, data)
	}
	path := "/agents/" + applied.Agent.ID.String()
	switch {
	case data.Agent == nil:
		return a.done(w, r, path, "agent-created")
	case applied.Agent.Revision == data.Agent.Revision:
		return a.done(w, r, path, "agent-unchanged")
	default:
		return a.done(w, r, path, "agent-saved")
	}
}
