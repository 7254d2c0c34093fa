package page

import (
	"fmt"
	"net/http"

	"github.com/go-faster/errors"

	"agentrun/storage"
	"agentrun/web/gen"
)

func (a *App) frameRoutes() {
	a.handle("GET /{$}", a.showFirst)
	a.handleOpen("GET /setup", a.showSetUp)
	a.handleOpen("POST /setup", a.setUp)
	a.handleOpen("GET /sign-in", a.showSignIn)
	a.handleOpen("POST /sign-in", a.signIn)
	a.handle("POST /sign-out", a.signOut)
	a.handle("GET /account", a.showAccount)
	a.handle("POST /account/password", a.changePassword)
	a.handle("POST /account/tokens", a.createToken)
	a.handle("POST /account/tokens/{token}/delete", a.deleteToken)
	a.handle("GET /users", a.showUsers)
	a.handle("POST /users", a.createUser)
	a.handle("GET /users/{user}", a.showUser)
	a.handle("POST /users/{user}", a.changeUser)
	a.handle("POST /users/{user}/delete", a.deleteUser)
}

// showFirst leads to what somebody sees first.
func (a *App) showFirst(w http.ResponseWriter, r *http.Request, v *view) error {
	target := "/orgs"
	if org := v.NavOrg(); org != nil {
		target = fmt.Sprintf("/orgs/%s/runs", org.ID)
	}
	http.Redirect(w, r, target, http.StatusSeeOther)
	return nil
}

// signInPage is what the sign-in page shows.
type signInPage struct {
	Email string
	Next  string
	// Unused says that there is nobody who could sign in yet.
	Unused  bool
	Problem gen.Problem
}

func (a *App) showSignIn(w http.ResponseWriter, r *http.Request) error {
	next := localPath(r.URL.Query().Get("next"))
	if _, err := a.actor(r); err == nil {
		//nolint:gosec // It is a path of this server.
		http.Redirect(w, r, next, http.StatusSeeOther)
		return nil
	}
	used, err := a.cfg.Store.HasUsers(r.Context())
	if err != nil {
		return err
	}
	return a.showOpen(w, r, http.StatusOK, "sign_in", "Sign in", signInPage{Next: next, Unused: !used})
}

func (a *App) signIn(w http.ResponseWriter, r *http.Request) error {
	form := signInPage{Email: r.PostForm.Get("email"), Next: localPath(r.PostForm.Get("next"))}
	user, err := a.tryToSignIn(w, r, form.Email, r.PostForm.Get("password"))
	if err != nil {
		problem, ok := a.fault(r, err)
		if errors.Is(err, storage.ErrSignInRefused) {
			// The same for an unknown address, a wrong password and a disabled user.
			problem, ok = gen.Problem{Status: http.StatusForbidden, Detail: "This email address and password do not go together, or the user is disabled."}, true
		}
		if !ok {
			return err
		}
		form.Problem = problem
		return a.showOpen(w, r, problem.Status, "sign_in", "Sign in", form)
	}
	if err := a.beginSession(w, r, user); err != nil {
		return err
	}
	http.Redirect(w, r, form.Next, http.StatusSeeOther)
	return nil
}

func (a *App) tryToSignIn(w http.ResponseWriter, r *http.Request, email, password string) (storage.User, error) {
	from := clientAddress(r)
	if err := a.mayTry(w, email, from); err != nil {
		return storage.User{}, err
	}
	user, err := a.cfg.Store.SignIn(r.Context(), email, password, from)
	if err != nil {
		return storage.User{}, err
	}
	a.slow.succeeded(email, from)
	return user, nil
}

func (a *App) signOut(w http.ResponseWriter, r *http.Request, _ *view) error {
	if err := a.endSession(w, r); err != nil {
		return err
	}
	if err := a.cfg.Store.SignOut(r.Context()); err != nil {
		return err
	}
	return a.done(w, r, "/sign-in", "signed-out")
}

// showOpen answers with a page for who is not signed in.
func (a *App) showOpen(w http.ResponseWriter, r *http.Request, status int, name, title string, data any) error {
	return a.show(w, r, status, name, &view{Title: title, Notice: a.takeNotice(w, r), BaseURL: a.baseURL(r), Data: data})
}
