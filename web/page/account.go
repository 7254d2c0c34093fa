package page

import (
	"net/http"
	"slices"
	"strconv"

	"agentrun/web/gen"
)

// accountPage is what people see of themselves.
type accountPage struct {
	// OrgName is the name of a member's organisation.
	OrgName string
	Tokens  []gen.Token
	// Created is a token that was just made, with its secret.
	Created *gen.CreatedToken
	// Scopes are what a token can be for.
	Scopes  []scopeChoice
	Days    []dayChoice
	Name    string
	Token   gen.Problem
	Changed gen.Problem
}

// scopeChoice is one thing that a token may be for.
type scopeChoice struct {
	Scope   gen.Scope
	What    string
	Checked bool
}

// dayChoice is one time for which a token may live.
type dayChoice struct {
	Days   int
	Chosen bool
}

// scopeTexts say what each scope is for, in the contract's order.
var scopeTexts = map[gen.Scope]string{
	gen.ScopeRead:   "see agents, keys, runs and their files",
	gen.ScopeRuns:   "give input to runs, stop and delete them",
	gen.ScopeAgents: "make, change, archive and delete agents",
	gen.ScopeKeys:   "make, disable, rotate and delete keys",
	gen.ScopeAdmin:  "organisations, users and model allowlists",
}

// tokenDays are for how long a token may live; the second is the default.
var tokenDays = []int{30, 90, 365}

const defaultTokenDays = 90

func (a *App) showAccount(w http.ResponseWriter, r *http.Request, v *view) error {
	return a.answerAccount(w, r, v, http.StatusOK, accountPage{})
}

// answerAccount shows the account page with what its forms came to.
func (a *App) answerAccount(w http.ResponseWriter, r *http.Request, v *view, status int, page accountPage) error {
	tokens, err := a.api.ListTokens(r.Context())
	if err != nil {
		return err
	}
	page.Tokens = tokens
	for _, org := range v.Orgs {
		if org.ID == v.Account.OrgID.Value && v.Account.OrgID.Set {
			page.OrgName = org.Name
		}
	}
	chosen, days := r.PostForm["scope"], r.PostForm.Get("days")
	if page.Token.Detail == "" {
		chosen, days = []string{string(gen.ScopeRead)}, strconv.Itoa(defaultTokenDays)
	}
	for _, scope := range gen.Scope("").AllValues() {
		if scope == gen.ScopeAdmin && !v.Operator() {
			continue
		}
		page.Scopes = append(page.Scopes, scopeChoice{scope, scopeTexts[scope], slices.Contains(chosen, string(scope))})
	}
	for _, n := range tokenDays {
		page.Days = append(page.Days, dayChoice{n, days == strconv.Itoa(n)})
	}
	v.Title, v.Section, v.Data = "Account", "account", page
	return a.show(w, r, status, "account", v)
}

func (a *App) changePassword(w http.ResponseWriter, r *http.Request, v *view) error {
	err := a.tryToChangePassword(w, r, v)
	if err != nil {
		problem, ok := a.fault(r, err)
		if !ok {
			return err
		}
		return a.answerAccount(w, r, v, problem.Status, accountPage{Changed: problem})
	}
	// All sessions have ended with the old password, this one too.
	if err := a.endSession(w, r); err != nil {
		return err
	}
	return a.done(w, r, "/sign-in", "password-changed")
}

func (a *App) tryToChangePassword(w http.ResponseWriter, r *http.Request, v *view) error {
	changed, again := r.PostForm.Get("new"), r.PostForm.Get("again")
	if changed != again {
		return refuse(http.StatusUnprocessableEntity, "The new password and its repetition differ.")
	}
	from := clientAddress(r)
	if err := a.mayTry(w, v.Account.Name, from); err != nil {
		return err
	}
	_, err := a.api.ChangePassword(r.Context(), &gen.ChangePasswordReq{
		Current: gen.Password(r.PostForm.Get("current")), New: gen.Password(changed),
	})
	if err == nil {
		a.slow.succeeded(v.Account.Name, from)
	}
	return err
}

func (a *App) createToken(w http.ResponseWriter, r *http.Request, v *view) error {
	req := gen.CreateTokenReq{Name: gen.Name(r.PostForm.Get("name"))}
	for _, scope := range r.PostForm["scope"] {
		req.Scopes = append(req.Scopes, gen.Scope(scope))
	}
	days, _ := strconv.Atoi(r.PostForm.Get("days"))
	var err error
	switch {
	case !slices.Contains(tokenDays, days):
		err = refuse(http.StatusUnprocessableEntity, "Choose for how long the token lives.")
	case len(req.Scopes) == 0:
		err = refuse(http.StatusUnprocessableEntity, "Choose what the token may do.")
	case req.Validate() != nil:
		err = refuse(http.StatusUnprocessableEntity, "Give the token a name of 1 to 200 characters.")
	}
	req.ExpiresIn = gen.NewOptInt(days * 24 * 60 * 60)
	var created *gen.CreatedToken
	if err == nil {
		created, err = a.api.CreateToken(r.Context(), &req)
	}
	if err != nil {
		problem, ok := a.fault(r, err)
		if !ok {
			return err
		}
		return a.answerAccount(w, r, v, problem.Status, accountPage{Token: problem, Name: string(req.Name)})
	}
	return a.answerAccount(w, r, v, http.StatusCreated, accountPage{Created: created})
}

func (a *App) deleteToken(w http.ResponseWriter, r *http.Request, _ *view) error {
	id, err := pathID(r, "token")
	if err != nil {
		return err
	}
	if _, err := a.api.DeleteToken(r.Context(), gen.DeleteTokenParams{Token: id}); err != nil {
		return err
	}
	return a.done(w, r, "/account", "token-deleted")
}
