package page

import (
	"net/http"
	"strings"

	"github.com/google/uuid"

	"agentrun/web/gen"
)

// endWait is how many seconds a page waits for a run's end before it says that
// the run is being ended.
const endWait = 5

// runInput gives a run more input.
func (a *App) runInput(w http.ResponseWriter, r *http.Request, _ *view) error {
	id, err := pathID(r, "run")
	if err != nil {
		return err
	}
	// Browsers end the lines of a text with \r\n; a program or model expects \n.
	text := strings.ReplaceAll(r.PostForm.Get("text"), "\r\n", "\n")
	if strings.TrimSpace(text) == "" {
		return refuse(http.StatusUnprocessableEntity, "The input is empty. Go back and write what the agent should do.")
	}
	if _, err := a.api.GiveInput(r.Context(), &gen.GiveInputReq{Text: text}, gen.GiveInputParams{Run: id}); err != nil {
		return err
	}
	return a.done(w, r, runAddress(id), "input-given")
}

// runStop ends a run for good.
func (a *App) runStop(w http.ResponseWriter, r *http.Request, _ *view) error {
	id, err := pathID(r, "run")
	if err != nil {
		return err
	}
	run, err := a.api.StopRun(r.Context(), gen.StopRunParams{Run: id, Wait: gen.NewOptInt(a.endWait)})
	if err != nil {
		return err
	}
	if run.Status == gen.StatusTerminated {
		return a.done(w, r, runAddress(id), "run-stopped")
	}
	return a.done(w, r, runAddress(id), "run-stopping")
}

// runDelete ends a run and erases what is known of it.
func (a *App) runDelete(w http.ResponseWriter, r *http.Request, _ *view) error {
	id, err := pathID(r, "run")
	if err != nil {
		return err
	}
	run, err := a.api.DeleteRun(r.Context(), gen.DeleteRunParams{Run: id, Wait: gen.NewOptInt(a.endWait)})
	if err != nil {
		return err
	}
	list := "/orgs/" + run.OrgID.String() + "/runs"
	if run.Status == gen.StatusTerminated && !run.Erasing {
		return a.done(w, r, list, "run-deleted")
	}
	return a.done(w, r, list, "run-erasing")
}

func runAddress(id uuid.UUID) string { return "/runs/" + id.String() }
