package page

import (
	"net/http"

	"agentrun/web/gen"
)

// requestsPerPage is how many requests of a key one page shows.
const requestsPerPage = 50

// keyData is the page of a key.
type keyData struct {
	agentHead
	Key      keyRow
	Overlaps []span
	Requests []gen.KeyRequest
	// Before is the time that the page ends before, empty on the first; Next is
	// that of the next page, empty on the last.
	Before, Next string
}

// keyByID leads from a key whose agent is not at hand to its page.
func (a *App) keyByID(w http.ResponseWriter, r *http.Request, _ *view) error {
	id, err := pathID(r, "key")
	if err != nil {
		return err
	}
	key, err := a.api.GetKey(r.Context(), gen.GetKeyParams{Key: id})
	if err != nil {
		return err
	}
	http.Redirect(w, r, "/agents/"+key.AgentID.String()+"/keys/"+key.ID.String(), http.StatusSeeOther)
	return nil
}

func (a *App) keyPage(w http.ResponseWriter, r *http.Request, v *view) error {
	agent, key, err := a.enterKey(r, v)
	if err != nil {
		return err
	}
	params := gen.ListKeyRequestsParams{Key: key.ID, Limit: gen.NewOptInt(requestsPerPage)}
	data := keyData{agentHead: agentHead{agent, "access"}, Key: key, Overlaps: keyOverlaps, Before: r.FormValue("before")}
	if data.Before != "" {
		params.Before = gen.NewOptString(data.Before)
	}
	page, err := a.api.ListKeyRequests(r.Context(), params)
	if err != nil {
		return err
	}
	data.Requests, data.Next = page.Requests, page.Next.Or("")
	v.Title, v.Data = "Key "+key.Name, data
	return a.show(w, r, http.StatusOK, "key", v)
}

// requestMeaning says what the status of a request to create a run means to
// whoever looks for a run.
func requestMeaning(status int) string {
	switch status {
	case http.StatusCreated:
		return "run created"
	case http.StatusUnauthorized:
		return "key refused"
	case http.StatusForbidden:
		return "another template_id"
	case http.StatusNotFound:
		return "agent is gone"
	case http.StatusConflict:
		return "agent is archived"
	case http.StatusRequestEntityTooLarge:
		return "files are too large"
	case http.StatusUnprocessableEntity:
		return "request is not valid"
	default:
		return "failed"
	}
}

func (a *App) keyDisable(w http.ResponseWriter, r *http.Request, v *view) error {
	agent, key, err := a.enterKey(r, v)
	if err != nil {
		return err
	}
	if _, err := a.api.DisableKey(r.Context(), gen.DisableKeyParams{Key: key.ID}); err != nil {
		return err
	}
	return a.done(w, r, "/agents/"+agent.ID.String()+"/access", "key-disabled")
}

func (a *App) keyEnable(w http.ResponseWriter, r *http.Request, v *view) error {
	agent, key, err := a.enterKey(r, v)
	if err != nil {
		return err
	}
	if _, err := a.api.EnableKey(r.Context(), gen.EnableKeyParams{Key: key.ID}); err != nil {
		return err
	}
	return a.done(w, r, "/agents/"+agent.ID.String()+"/access", "key-enabled")
}

func (a *App) keyDelete(w http.ResponseWriter, r *http.Request, v *view) error {
	agent, key, err := a.enterKey(r, v)
	if err != nil {
		return err
	}
	if _, err := a.api.DeleteKey(r.Context(), gen.DeleteKeyParams{Key: key.ID}); err != nil {
		return err
	}
	return a.done(w, r, "/agents/"+agent.ID.String()+"/access", "key-deleted")
}
