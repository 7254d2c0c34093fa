package page

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"

	"agentrun/storage"
	"agentrun/web/gen"
)

// setUpPage is what the page shows on which the first user is made.
type setUpPage struct {
	Email, Token string
	Problem      gen.Problem
}

// maySetUp says whether whoever has this token may make the first user now.
// Comparing takes the same time for every token.
func (a *App) maySetUp(r *http.Request, token string) error {
	used, err := a.cfg.Store.HasUsers(r.Context())
	if err != nil {
		return err
	}
	if used {
		return refuse(http.StatusNotFound, "This server is set up already. Sign in, or ask an operator for a user of your own.")
	}
	given, wanted := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(a.cfg.SetupToken))
	if a.cfg.SetupToken == "" || subtle.ConstantTimeCompare(given[:], wanted[:]) != 1 {
		return refuse(http.StatusForbidden, "To set up this server, open the address that it printed when it started.")
	}
	return nil
}

func (a *App) showSetUp(w http.ResponseWriter, r *http.Request) error {
	token := r.URL.Query().Get("token")
	if err := a.maySetUp(r, token); err != nil {
		return err
	}
	return a.showOpen(w, r, http.StatusOK, "setup", "Set up", setUpPage{Token: token})
}

func (a *App) setUp(w http.ResponseWriter, r *http.Request) error {
	form := setUpPage{Email: r.PostForm.Get("email"), Token: r.PostForm.Get("token")}
	if err := a.maySetUp(r, form.Token); err != nil {
		return err
	}
	// Whoever has the token was told it by the machine itself.
	operator := storage.LocalOperator
	operator.From = clientAddress(r)
	user, err := a.cfg.Store.SetUp(storage.WithActor(r.Context(), operator), form.Email, r.PostForm.Get("password"))
	if err != nil {
		problem, ok := a.fault(r, err)
		if !ok {
			return err
		}
		form.Problem = problem
		return a.showOpen(w, r, problem.Status, "setup", "Set up", form)
	}
	if err := a.beginSession(w, r, user); err != nil {
		return err
	}
	orgs, err := a.api.ListOrgs(storage.WithActor(r.Context(), operator))
	if err != nil {
		return err
	}
	target := "/orgs"
	if len(orgs) > 0 {
		target += "/" + orgs[0].ID.String() + "/agents"
	}
	return a.done(w, r, target, "set-up")
}
