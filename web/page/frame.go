package page

import (
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"go.uber.org/zap"

	"agentrun/storage"
	"agentrun/web/gen"
)

// What the frame gives to every page:
//
//   - a.handle("GET /runs/{run}", a.showRun) registers a page for people who are
//     signed in. The request's context has the actor, the view has the account,
//     the organisations and the notice, and a form is parsed (r.PostForm).
//   - v.enterOrg(r) makes the page one of the organisation in {org}; v.enter(id)
//     one of an organisation that is known already.
//   - return a.show(w, r, http.StatusOK, "run", v) answers with a page, and
//     return a.part(w, r, "run", "transcript", data) with one block of it.
//   - return a.done(w, r, "/agents/"+id, "key-disabled") ends a POST: it leads to
//     that page (303), which shows the notice of that code once. The codes are
//     in agentNotices, runNotices and frameNotices; a notice has no other text,
//     because it travels in a cookie and not in the store.
//   - return err answers with the problem that the API makes of the error, and
//     return refuse(http.StatusUnprocessableEntity, "…") with one of the page's.
//   - p, ok := a.fault(r, err) is for a form that is shown again with what is
//     wrong: ok says that it is the reader's to mend.
//   - A secret that is shown once is part of the answer to the POST itself,
//     without a redirect: every answer is no-store, and nothing keeps it.

// route is a path of the application's, with its method.
type route struct {
	pattern string
	// open routes are for everybody, signed in or not.
	open bool
}

// handle registers a page for people who are signed in.
func (a *App) handle(pattern string, fn handler) {
	a.routes = append(a.routes, route{pattern: pattern})
	a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		actor, err := a.actor(r)
		if errors.Is(err, storage.ErrSignInRefused) {
			a.askToSignIn(w, r)
			return
		}
		var v *view
		if err == nil {
			r = r.WithContext(storage.WithActor(r.Context(), actor))
			v, err = a.newView(r.Context(), r)
		}
		if err == nil {
			v.Notice = a.takeNotice(w, r)
			err = parseForm(r)
		}
		if err == nil {
			err = fn(w, r, v)
		}
		if err != nil {
			a.fail(w, r, v, err)
		}
	})
}

// handleOpen registers a page for everybody.
func (a *App) handleOpen(pattern string, fn func(http.ResponseWriter, *http.Request) error) {
	a.routes = append(a.routes, route{pattern: pattern, open: true})
	a.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		err := parseForm(r)
		if err == nil {
			err = fn(w, r)
		}
		if err != nil {
			a.fail(w, r, nil, err)
		}
	})
}

func parseForm(r *http.Request) error {
	err := r.ParseForm()
	var tooLong *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &tooLong):
		return refuse(http.StatusRequestEntityTooLarge, "The form is longer than 2 MiB.")
	default:
		return refuse(http.StatusBadRequest, "The form cannot be read.")
	}
}

// askToSignIn answers whoever is not signed in: with the way to the sign-in
// page, and from there back.
func (a *App) askToSignIn(w http.ResponseWriter, r *http.Request) {
	back := ""
	isPart := r.Header.Get("HX-Request") == "true"
	switch {
	case isPart:
		if page, err := url.Parse(r.Header.Get("HX-Current-URL")); err == nil {
			back = page.RequestURI()
		}
	case r.Method == http.MethodGet:
		back = r.URL.RequestURI()
	}
	target := "/sign-in"
	if back = localPath(back); back != "/" {
		target += "?next=" + url.QueryEscape(back)
	}
	if isPart {
		w.Header().Set("HX-Redirect", target)
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	http.Redirect(w, r, target, http.StatusSeeOther)
}

// localPath is target when it is a path on this server, else "/". Browsers take
// two slashes for the beginning of a host, and a backslash for a slash.
func localPath(target string) string {
	if !strings.HasPrefix(target, "/") || strings.HasPrefix(target, "//") || strings.ContainsFunc(target, func(r rune) bool {
		return r == '\\' || r < ' ' || r == 0x7f
	}) {
		return "/"
	}
	if u, err := url.Parse(target); err != nil || u.Scheme != "" || u.Host != "" {
		return "/"
	}
	return target
}

// enterOrg makes the page one of the organisation that its path names.
func (v *view) enterOrg(r *http.Request) error {
	if id, err := pathID(r, "org"); err == nil {
		v.enter(id)
	}
	if v.Org == nil {
		return refuse(http.StatusNotFound, "There is no such organisation.")
	}
	return nil
}

// pathID is the ID in this part of the request's path. What is no ID names
// nothing: the error is a 404.
func pathID(r *http.Request, name string) (uuid.UUID, error) {
	id, err := uuid.Parse(r.PathValue(name))
	if err != nil || len(r.PathValue(name)) != len(id.String()) {
		return uuid.UUID{}, refuse(http.StatusNotFound, "There is no such page.")
	}
	return id, nil
}

// refusal is a problem that a page found itself.
type refusal struct{ problem gen.Problem }

func (e *refusal) Error() string { return e.problem.Detail }

// refuse is an error that is answered with this status and this sentence.
func refuse(status int, detail string) error {
	return &refusal{gen.Problem{Title: http.StatusText(status), Status: status, Detail: detail}}
}

// problem is what people are told about an error.
func (a *App) problem(r *http.Request, err error) gen.Problem {
	var own *refusal
	if errors.As(err, &own) {
		return own.problem
	}
	return a.api.NewError(r.Context(), err).Response
}

// fault is what is wrong with a form. Only when it returns true is it the
// reader's to mend; the error must be returned otherwise.
func (a *App) fault(r *http.Request, err error) (gen.Problem, bool) {
	p := a.problem(r, err)
	switch p.Status {
	case http.StatusBadRequest, http.StatusForbidden, http.StatusConflict, http.StatusUnprocessableEntity, http.StatusTooManyRequests:
		return p, true
	default:
		return p, false
	}
}

// fail answers with what went wrong.
func (a *App) fail(w http.ResponseWriter, r *http.Request, v *view, err error) {
	problem := a.problem(r, err)
	if v == nil {
		v = &view{}
	}
	v.Title, v.Data = problem.Title, problem
	if r.Header.Get("HX-Request") == "true" {
		err = a.execute(w, r, problem.Status, "problem", "problem", problem)
	} else {
		err = a.show(w, r, problem.Status, "problem", v)
	}
	if err != nil {
		a.log.Error("problem page", zap.Error(err))
	}
}

// notices are what a page can say about the request before it, by their codes.
var notices = mergedNotices(frameNotices, agentNotices, runNotices)

var frameNotices = map[string]string{
	"set-up":           "This server is set up, and you are its first operator.",
	"signed-out":       "You are signed out.",
	"password-changed": "Your password is changed. Sign in with the new one.",
	"token-deleted":    "The token is deleted. Programs that use it are refused from now on.",
	"user-created":     "The user is created and can sign in.",
	"user-changed":     "The user is changed.",
	"user-deleted":     "The user is deleted, with all sessions and tokens.",
	"org-created":      "The organisation is created.",
}

func mergedNotices(all ...map[string]string) map[string]string {
	merged := map[string]string{}
	for _, some := range all {
		maps.Copy(merged, some)
	}
	return merged
}

// noticeCookie holds the code of a notice between a POST and the page after it.
// A session would have to be written by a GET to forget it.
const noticeCookie = "agentrun_notice"

// noticeTime is how long a notice waits for its page.
const noticeTime = time.Minute

// done ends a POST: the browser goes on to a page of this server, which shows
// the notice with this code. It panics on a code that there is not.
func (a *App) done(w http.ResponseWriter, r *http.Request, path, code string) error {
	if notices[code] == "" {
		panic("page: no notice " + code)
	}
	a.setNotice(w, code, int(noticeTime/time.Second))
	if r.Header.Get("HX-Request") == "true" {
		w.Header().Set("HX-Redirect", path)
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	//nolint:gosec // The path is written by a page, with IDs in it at most.
	http.Redirect(w, r, path, http.StatusSeeOther)
	return nil
}

// takeNotice is the notice that waits for this page, which then waits no more.
func (a *App) takeNotice(w http.ResponseWriter, r *http.Request) string {
	cookie, err := r.Cookie(noticeCookie)
	if err != nil || r.Method != http.MethodGet || r.Header.Get("HX-Request") == "true" {
		return ""
	}
	a.setNotice(w, "", -1)
	return notices[cookie.Value]
}

func (a *App) setNotice(w http.ResponseWriter, code string, maxAge int) {
	//nolint:gosec // Secure as the session's cookie is: with a base URL of https.
	http.SetCookie(w, &http.Cookie{
		Name: noticeCookie, Value: code, Path: "/", MaxAge: maxAge,
		HttpOnly: true, SameSite: http.SameSiteLaxMode, Secure: a.secure(),
	})
}
