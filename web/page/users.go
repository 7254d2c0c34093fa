package page

import (
	"net/http"

	"github.com/google/uuid"

	"agentrun/web/gen"
)

// usersPage is what operators see of the users.
type usersPage struct {
	Users []userRow
	// Orgs are for the form that makes a user.
	Orgs    []gen.Org
	Form    userForm
	Problem gen.Problem
}

// userRow is a user with the name of a member's organisation.
type userRow struct {
	gen.User
	OrgName string
}

// userForm is what a form about a user was filled with.
type userForm struct{ Email, Role, Org string }

// userPage is what operators see of one user.
type userPage struct {
	User    userRow
	Self    bool
	Orgs    []gen.Org
	Form    userForm
	Problem gen.Problem
}

func (v *view) orgName(id gen.OptUUID) string {
	for _, org := range v.Orgs {
		if id.Set && org.ID == id.Value {
			return org.Name
		}
	}
	return ""
}

func (a *App) showUsers(w http.ResponseWriter, r *http.Request, v *view) error {
	return a.answerUsers(w, r, v, http.StatusOK, usersPage{Form: userForm{Role: string(gen.RoleMember)}})
}

func (a *App) answerUsers(w http.ResponseWriter, r *http.Request, v *view, status int, page usersPage) error {
	users, err := a.api.ListUsers(r.Context())
	if err != nil {
		return err
	}
	for _, user := range users {
		page.Users = append(page.Users, userRow{user, v.orgName(user.OrgID)})
	}
	page.Orgs = v.Orgs
	v.Title, v.Section, v.Data = "Users", "users", page
	return a.show(w, r, status, "users", v)
}

func (a *App) createUser(w http.ResponseWriter, r *http.Request, v *view) error {
	form := userForm{r.PostForm.Get("email"), r.PostForm.Get("role"), r.PostForm.Get("org")}
	req := gen.CreateUserReq{
		Email: gen.Email(form.Email), Password: gen.Password(r.PostForm.Get("password")), Role: gen.NewOptRole(gen.Role(form.Role)),
	}
	if form.Role == string(gen.RoleMember) {
		req.Org = gen.NewOptString(form.Org)
	}
	err := checkRole(form.Role)
	if err == nil && req.Validate() != nil {
		err = refuse(http.StatusUnprocessableEntity, "Give an email address and a password of at least 10 characters.")
	}
	if err == nil {
		_, err = a.api.CreateUser(r.Context(), &req)
	}
	if err != nil {
		problem, ok := a.fault(r, err)
		if !ok {
			return err
		}
		return a.answerUsers(w, r, v, problem.Status, usersPage{Form: form, Problem: problem})
	}
	return a.done(w, r, "/users", "user-created")
}

func checkRole(role string) error {
	if err := gen.Role(role).Validate(); err != nil {
		return refuse(http.StatusUnprocessableEntity, "Choose whether the user is an operator or a member.")
	}
	return nil
}

func (a *App) showUser(w http.ResponseWriter, r *http.Request, v *view) error {
	id, err := pathID(r, "user")
	if err != nil {
		return err
	}
	return a.answerUser(w, r, v, http.StatusOK, id, userPage{})
}

func (a *App) answerUser(w http.ResponseWriter, r *http.Request, v *view, status int, id uuid.UUID, page userPage) error {
	user, err := a.api.GetUser(r.Context(), gen.GetUserParams{User: id.String()})
	if err != nil {
		return err
	}
	page.User, page.Orgs = userRow{*user, v.orgName(user.OrgID)}, v.Orgs
	page.Self = v.Account.UserID.Set && v.Account.UserID.Value == user.ID
	if page.Problem.Detail == "" {
		page.Form = userForm{Role: string(user.Role)}
		if user.OrgID.Set {
			page.Form.Org = user.OrgID.Value.String()
		}
	}
	v.Title, v.Section, v.Data = user.Email, "users", page
	return a.show(w, r, status, "user", v)
}

// changeUser takes three forms: the role, a new password, and whether the user
// is disabled. What a form does not have, it does not change.
func (a *App) changeUser(w http.ResponseWriter, r *http.Request, v *view) error {
	id, err := pathID(r, "user")
	if err != nil {
		return err
	}
	form := userForm{Role: r.PostForm.Get("role"), Org: r.PostForm.Get("org")}
	req, err := userChange(r, form)
	if err == nil {
		_, err = a.api.UpdateUser(r.Context(), req, gen.UpdateUserParams{User: id.String()})
	}
	if err != nil {
		problem, ok := a.fault(r, err)
		if !ok {
			return err
		}
		return a.answerUser(w, r, v, problem.Status, id, userPage{Form: form, Problem: problem})
	}
	return a.done(w, r, "/users/"+id.String(), "user-changed")
}

func userChange(r *http.Request, form userForm) (*gen.UpdateUserReq, error) {
	var req gen.UpdateUserReq
	if r.PostForm.Has("role") {
		if err := checkRole(form.Role); err != nil {
			return nil, err
		}
		req.Role = gen.NewOptRole(gen.Role(form.Role))
		if form.Role == string(gen.RoleMember) {
			req.Org = gen.NewOptString(form.Org)
		}
	}
	if r.PostForm.Has("password") {
		req.Password = gen.NewOptPassword(gen.Password(r.PostForm.Get("password")))
	}
	switch r.PostForm.Get("disabled") {
	case "true":
		req.Disabled = gen.NewOptBool(true)
	case "false":
		req.Disabled = gen.NewOptBool(false)
	}
	if req.Validate() != nil {
		return nil, refuse(http.StatusUnprocessableEntity, "Give a password of at least 10 characters.")
	}
	return &req, nil
}

func (a *App) deleteUser(w http.ResponseWriter, r *http.Request, _ *view) error {
	id, err := pathID(r, "user")
	if err != nil {
		return err
	}
	if _, err := a.api.DeleteUser(r.Context(), gen.DeleteUserParams{User: id.String()}); err != nil {
		return err
	}
	return a.done(w, r, "/users", "user-deleted")
}
