package page

import (
	"net/http"

	"github.com/google/uuid"

	"agentrun/web/gen"
)

func (a *App) orgRoutes() {
	a.handle("GET /orgs", a.showOrgs)
	a.handle("POST /orgs", a.createOrg)
}

// orgsPage is a list of the organisations.
type orgsPage struct {
	Orgs    []orgRow
	Name    string
	Problem gen.Problem
}

// orgRow is an organisation with what it has and what it took.
type orgRow struct {
	gen.Org
	Agents int
	Spent  gen.Spent
}

func (a *App) showOrgs(w http.ResponseWriter, r *http.Request, v *view) error {
	return a.answerOrgs(w, r, v, http.StatusOK, orgsPage{})
}

func (a *App) answerOrgs(w http.ResponseWriter, r *http.Request, v *view, status int, page orgsPage) error {
	agents, err := a.api.ListAgents(r.Context(), gen.ListAgentsParams{})
	if err != nil {
		return err
	}
	usage, err := a.api.ListUsage(r.Context())
	if err != nil {
		return err
	}
	have, spent := map[uuid.UUID]int{}, map[uuid.UUID]gen.Spent{}
	for _, agent := range agents {
		have[agent.OrgID]++
	}
	for _, u := range usage {
		if u.Kind == gen.UsageKindOrganisation {
			spent[u.ID] = u.Spent
		}
	}
	for _, org := range v.Orgs {
		page.Orgs = append(page.Orgs, orgRow{org, have[org.ID], spent[org.ID]})
	}
	v.Title, v.Section, v.Data = "Organisations", "orgs", page
	return a.show(w, r, status, "orgs", v)
}

func (a *App) createOrg(w http.ResponseWriter, r *http.Request, v *view) error {
	req := gen.CreateOrgReq{Name: gen.Name(r.PostForm.Get("name"))}
	var err error
	if req.Validate() != nil {
		err = refuse(http.StatusUnprocessableEntity, "Give the organisation a name of 1 to 200 characters.")
	} else {
		_, err = a.api.CreateOrg(r.Context(), &req)
	}
	if err != nil {
		problem, ok := a.fault(r, err)
		if !ok {
			return err
		}
		return a.answerOrgs(w, r, v, problem.Status, orgsPage{Name: string(req.Name), Problem: problem})
	}
	return a.done(w, r, "/orgs", "org-created")
}
