package page

import (
	"net/http"
	"strconv"

	"agentrun/web/gen"
)

// agentRevisionsData are the revisions of an agent, newest first.
type agentRevisionsData struct {
	agentHead
	Revisions []gen.Revision
	// Shown is the revision whose file is shown, nil in the list.
	Shown *gen.RevisionFile
	// From and To are the revisions to compare.
	From, To int
	Diff     []diffRow
}

func (a *App) agentRevisions(w http.ResponseWriter, r *http.Request, v *view) error {
	data, err := a.revisionsOf(r, v)
	if err != nil {
		return err
	}
	v.Data = data
	return a.show(w, r, http.StatusOK, "agent_revisions", v)
}

// revisionsOf gathers what the pages about revisions have in common. Unless the
// request says otherwise, the newest revision is compared with the one before.
func (a *App) revisionsOf(r *http.Request, v *view) (*agentRevisionsData, error) {
	agent, err := a.enterAgent(r, v)
	if err != nil {
		return nil, err
	}
	revisions, err := a.api.ListRevisions(r.Context(), gen.ListRevisionsParams{Agent: agent.ID.String()})
	if err != nil {
		return nil, err
	}
	return &agentRevisionsData{
		agentHead: agentHead{agent, "revisions"}, Revisions: revisions,
		From: max(agent.Revision-1, 1), To: agent.Revision,
	}, nil
}

func (a *App) agentRevision(w http.ResponseWriter, r *http.Request, v *view) error {
	data, err := a.revisionsOf(r, v)
	if err != nil {
		return err
	}
	if data.Shown, err = a.revision(r, data.Agent, r.PathValue("revision")); err != nil {
		return err
	}
	number := data.Shown.Revision.Number
	if number < data.Agent.Revision {
		data.From = number
	}
	v.Title, v.Data = data.Agent.Name+", revision "+strconv.Itoa(number), data
	return a.show(w, r, http.StatusOK, "agent_revision", v)
}

func (a *App) agentDiff(w http.ResponseWriter, r *http.Request, v *view) error {
	data, err := a.revisionsOf(r, v)
	if err != nil {
		return err
	}
	from, err := a.revision(r, data.Agent, r.FormValue("from"))
	if err != nil {
		return err
	}
	to, err := a.revision(r, data.Agent, r.FormValue("to"))
	if err != nil {
		return err
	}
	data.From, data.To = from.Revision.Number, to.Revision.Number
	if data.Diff, err = diffRows(from.File, to.File); err != nil {
		return err
	}
	v.Title, v.Data = data.Agent.Name+", changes", data
	return a.show(w, r, http.StatusOK, "agent_diff", v)
}

// revision returns the revision with this number. What is no number names none.
func (a *App) revision(r *http.Request, agent *gen.Agent, number string) (*gen.RevisionFile, error) {
	n, err := strconv.ParseUint(number, 10, 32)
	if err != nil || n == 0 {
		return nil, refuse(http.StatusNotFound, "There is no such revision.")
	}
	return a.api.GetRevision(r.Context(), gen.GetRevisionParams{Agent: agent.ID.String(), Revision: int(n)})
}

// Before is the number of the revision before this one, 0 when it is the first.
func (d *agentRevisionsData) Before(number int) int {
	for _, revision := range d.Revisions {
		if revision.Number < number {
			return revision.Number
		}
	}
	return 0
}
