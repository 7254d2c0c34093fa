package page

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"agentrun/web/gen"
)

// auditOnPage is how many entries a page of the audit log has at most.
const auditOnPage = 100

// auditPage is a part of the audit log.
type auditPage struct {
	// Self is the address of the log's newest part.
	Self string
	// Whole says that it is the log of the whole server.
	Whole  bool
	Before int64
	Rows   []auditRow
	// Older is the address of the part before this one; empty at the beginning.
	Older string
}

// auditRow is an entry as people read it.
type auditRow struct {
	gen.AuditEntry
	// What says in words what was done.
	What string
	// Link is the page of the subject, Org the name of the organisation; both are
	// empty when there is none.
	Link, Org string
}

// Who says who did it, where the name alone would not.
func (r auditRow) Who() string {
	switch r.Actor.Kind {
	case "server":
		return "the server itself"
	case "operator":
		return "operator, on the machine"
	default:
		return r.Actor.Name
	}
}

// orgAudit answers with what was done in an organisation.
func (a *App) orgAudit(w http.ResponseWriter, r *http.Request, v *view) error {
	if err := v.enterOrg(r); err != nil {
		return err
	}
	return a.audit(w, r, v, auditPage{Self: "/orgs/" + v.Org.ID.String() + "/audit"}, gen.NewOptString(v.Org.ID.String()))
}

// wholeAudit answers with what was done on the whole server.
func (a *App) wholeAudit(w http.ResponseWriter, r *http.Request, v *view) error {
	if !v.Operator() {
		return refuse(http.StatusForbidden, "Only operators see the audit log of the whole server. That of your organisation is in the menu.")
	}
	return a.audit(w, r, v, auditPage{Self: "/audit", Whole: true}, gen.OptString{})
}

func (a *App) audit(w http.ResponseWriter, r *http.Request, v *view, page auditPage, org gen.OptString) error {
	params := gen.ListAuditParams{Org: org, Limit: gen.NewOptInt(auditOnPage)}
	if page.Before = numberOr0(r.URL.Query().Get("before")); page.Before > 0 {
		params.Before = gen.NewOptInt64(page.Before)
	}
	found, err := a.api.ListAudit(r.Context(), params)
	if err != nil {
		return err
	}
	if next, ok := found.Next.Get(); ok {
		page.Older = page.Self + "?" + url.Values{"before": {strconv.FormatInt(next, 10)}}.Encode()
	}
	page.Rows = auditRows(found.Entries, v)
	v.Section, v.Title, v.Data = "audit", "Audit log", page
	if page.Whole {
		v.Section, v.Title = "server-audit", "Server audit log"
	}
	return a.show(w, r, http.StatusOK, "audit", v)
}

// auditRows makes entries readable. The newest come first, so that the subject
// of an entry that was deleted later on this page is known to lead nowhere.
func auditRows(entries []gen.AuditEntry, v *view) []auditRow {
	orgs, deleted := map[uuid.UUID]string{}, map[uuid.UUID]bool{}
	for _, org := range v.Orgs {
		orgs[org.ID] = org.Name
	}
	rows := make([]auditRow, len(entries))
	for i, e := range entries {
		row := auditRow{AuditEntry: e, What: actionText(e.Action), Org: orgs[e.OrgID.Value]}
		if strings.HasSuffix(e.Action, ".delete") && e.Subject.Kind != "run" {
			deleted[e.Subject.ID.Value] = true
		}
		if e.Subject.ID.Set && !deleted[e.Subject.ID.Value] {
			row.Link = subjectLink(e.Subject.Kind, e.Subject.ID.Value, v.Operator())
		}
		rows[i] = row
	}
	return rows
}

// actions says actions in words. What is missing here is shown as it is.
var actions = map[string]string{
	"agent.apply":         "applied an agent file",
	"agent.archive":       "archived an agent",
	"agent.unarchive":     "unarchived an agent",
	"agent.delete":        "deleted an agent",
	"key.create":          "created a key",
	"key.rotate":          "rotated a key",
	"key.disable":         "disabled a key",
	"key.enable":          "enabled a key",
	"key.delete":          "deleted a key",
	"organisation.create": "created an organisation",
	"organisation.models": "changed the models that are allowed",
	"run.input":           "gave a run input",
	"run.stop":            "stopped a run",
	"run.delete":          "deleted a run",
	"session.create":      "signed in",
	"session.delete":      "signed out",
	"session.refuse":      "was refused at sign-in",
	"token.create":        "created a token",
	"token.delete":        "deleted a token",
	"user.create":         "created a user",
	"user.change":         "changed a user",
	"user.delete":         "deleted a user",
}

func actionText(action string) string {
	if text, ok := actions[action]; ok {
		return text
	}
	return action
}

// subjectLink is the page of what something was done to.
func subjectLink(kind string, id uuid.UUID, operator bool) string {
	switch {
	case kind == "agent":
		return "/agents/" + id.String()
	case kind == "key":
		return "/keys/" + id.String()
	case kind == "run":
		return "/runs/" + id.String()
	case kind == "organisation":
		return "/orgs/" + id.String() + "/runs"
	case kind == "user" && operator:
		return "/users/" + id.String()
	default:
		return ""
	}
}
