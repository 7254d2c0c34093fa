package page

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"agentrun/storage"
	"agentrun/storage/storagetest"
)

const hostile = `<script>alert(1)</script>"'&`

func TestAgentList(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	org, err := s.store.FindOrg(t.Context(), storage.DefaultOrg)
	if err != nil {
		t.Fatal(err)
	}
	list := "/orgs/" + org.ID.String() + "/agents"
	b.get(list).want(t, http.StatusOK, "No agents yet", list+"/new", "agentrun agent apply -f agent.yaml --org default")

	words, _ := s.mustAgent("name: words\ncommand: [sh, -c, \"wc -w *\"]\n")
	s.mustAgent("name: analyst\nmodel: script/x\n")
	s.mustAgent("name: '" + strings.ReplaceAll(hostile, "'", "''") + "'\ncommand: [cat]\n")
	if _, err := s.store.SetArchived(t.Context(), "analyst", true); err != nil {
		t.Fatal(err)
	}
	active := b.get(list)
	active.want(t, http.StatusOK, "/agents/"+words.ID.String(), "sh -c &#39;wc -w *&#39;", "&lt;script&gt;")
	if strings.Contains(active.body, "analyst") || strings.Contains(active.body, "<script>alert") {
		t.Errorf("active agents:\n%s", active.body)
	}
	harmless(t, active.body)
	b.get(list+"?show=archived").want(t, http.StatusOK, "analyst", "script/x", "archived")
	b.get(list+"?show=all&text=WORD").want(t, http.StatusOK, "words", `value="WORD"`)
	b.get(list+"?text=nothing").want(t, http.StatusOK, "No agent fits the filter")
}

func TestCreateAgent(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	org, err := s.store.FindOrg(t.Context(), storage.DefaultOrg)
	if err != nil {
		t.Fatal(err)
	}
	list := "/orgs/" + org.ID.String() + "/agents"
	for _, start := range starts {
		b.get(list+"/new?start="+start.ID).want(t, http.StatusOK, "Create agent", "script/", "anthropic/")
	}
	const broken = "\n# mine\nname: one\r\ncommand: [cat]\nlimits: {turn: soon}\n" + hostile
	refused := b.post(list, "file", broken)
	harmless(t, refused.body)
	refused.want(t, http.StatusUnprocessableEntity, "cannot be saved yet", "line 6", "&lt;script&gt;", "\n\n# mine")
	refused = b.post(list, "file", "name: one\ncommand: [cat]\nlimits: {turn: soon}\n")
	refused.want(t, http.StatusUnprocessableEntity, "line 3", `id="error-limits.turn">want a duration`, "turn: soon")

	created := b.post(list, "file", "name: one\r\ncommand: [cat]\r\n")
	one, err := s.store.FindAgent(t.Context(), "one")
	if err != nil {
		t.Fatal(err)
	}
	created.wantRedirect(t, "/agents/"+one.ID.String())
	b.get("/agents/"+one.ID.String()).want(t, http.StatusOK, "The agent is created", "No runs yet")
	file, err := s.store.AgentFile(t.Context(), "one")
	if err != nil || file.Source != "name: one\ncommand: [cat]\n" {
		t.Errorf("file %q: %v", file.Source, err)
	}
	// A second agent of that name would be a new revision of the first.
	b.post(list, "file", "name: one\ncommand: [dog]\n").want(t, http.StatusUnprocessableEntity, "is the name of another agent", "[dog]")
}

func TestEditAgent(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	agent, _ := s.mustAgent(programSource)
	path := "/agents/" + agent.ID.String()
	b.get(path+"/edit").want(t, http.StatusOK, "# Counts.", `value="words"`, `value="10m"`)

	b.post(path+"/edit", "file", programSource, "revision", "1").wantRedirect(t, path)
	b.get(path).want(t, http.StatusOK, "nothing has changed")
	b.post(path+"/edit", "file", strings.Replace(programSource, "10m", "20m", 1), "revision", "1").wantRedirect(t, path)
	b.get(path).want(t, http.StatusOK, "saved as a new revision", "20 min", "sh -c &#39;wc -w *&#39;")

	stale := b.post(path+"/edit", "file", strings.Replace(programSource, "10m", "30m", 1), "revision", "1")
	stale.want(t, http.StatusConflict, "somebody else saved revision 2", "turn: 30m", `name="revision" value="2"`)
	renamed := b.post(path+"/edit", "file", strings.Replace(programSource, "words", "letters", 1), "revision", "2")
	renamed.want(t, http.StatusUnprocessableEntity, "an agent keeps its name", "name: letters", "line 2")

	// What was typed into the form and not applied to the file is saved too.
	form := typed(newDraft(programSource), programSource, "limits.memory", "1GiB")
	form.Set("revision", "2")
	pairs := []string{}
	for name := range form {
		pairs = append(pairs, name, form.Get(name))
	}
	b.post(path+"/edit", pairs...).wantRedirect(t, path)
	file, err := s.store.AgentFile(t.Context(), "words")
	if err != nil || !strings.Contains(file.Source, "memory: 1GiB") {
		t.Errorf("file %q: %v", file.Source, err)
	}
}

func TestAgentForm(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	agent, _ := s.mustAgent(programSource)
	form := typed(newDraft(programSource), programSource, "name", "words", "command", "cat")
	pairs := []string{"agent", agent.ID.String()}
	for name := range form {
		pairs = append(pairs, name, form.Get(name))
	}
	b.post("/agent-form", pairs...).want(t, http.StatusOK, "<!doctype html>", "command: [cat]", "/agents/"+agent.ID.String()+"/edit")

	req := b.request(http.MethodPost, "/agent-form", append(pairs, "typed", "form")...)
	req.Header.Set("HX-Request", "true")
	part := b.do(req)
	part.want(t, http.StatusOK, "command: [cat]", "hx-swap-oob", `id="agent-fields"`)
	if part.Header.Get("HX-Reswap") != "outerMorph" || strings.Contains(part.body, "<html") {
		t.Errorf("HX-Reswap %q\n%s", part.Header.Get("HX-Reswap"), part.body)
	}
	b.post("/agent-form", "org", agent.ID.String(), "file", "x").want(t, http.StatusNotFound)
}

func TestAgentPages(t *testing.T) {
	s := newSite(t)
	b := s.operator()
	const source = "name: analyst\nmodel: script/x\ntools: [shell]\nsecrets: [API_TOKEN]\nnetwork: {allow: [example.org]}\n" +
		"limits: {cost: 0.5}\n"
	agent, _ := s.mustAgent(source)
	path := "/agents/" + agent.ID.String()
	b.get(path).want(t, http.StatusOK, "script/x", "API_TOKEN", "example.org", "$0.50", "No runs yet")
	words, caller := s.mustAgent(programSource)
	run := s.mustRun(caller, "First "+hostile)
	b.get("/agents/"+words.ID.String()).want(t, http.StatusOK, "/runs/"+run.ID.String(), "First &lt;script&gt;")
	lost, _ := s.mustAgent("name: lost\nmodel: nowhere/x\n")
	b.get("/agents/"+lost.ID.String()).want(t, http.StatusOK, "This server has no provider “nowhere”")
	b.get(path+"/revisions").want(t, http.StatusOK, "Revision 1", "in force", "the first")

	storagetest.MustApply(t, s.store, storage.DefaultOrg, source+"# more "+hostile+"\n")
	b.get(path+"/revisions").want(t, http.StatusOK, "diff?from=1&amp;to=2")
	b.get(path+"/revisions/1").want(t, http.StatusOK, "Revision 1", "script/x", "To go back to it")
	b.get(path+"/diff?from=1&to=2").want(t, http.StatusOK, "# more &lt;script&gt;", "diff-new", "3 lines that are the same")
	for _, page := range []string{"", "/edit", "/revisions", "/revisions/2", "/diff?from=1&to=2"} {
		harmless(t, b.get(path+page).body)
	}
	harmless(t, b.get("/agents/"+words.ID.String()).body)
	b.get(path+"/diff?from=2&to=2").want(t, http.StatusOK, "Both files are the same")
	for _, missing := range []string{"/revisions/3", "/revisions/0", "/revisions/x", "/diff?from=1", "/diff?from=1&to=9"} {
		b.get(path+missing).want(t, http.StatusNotFound)
	}

	b.post(path+"/archive").wantRedirect(t, path)
	b.get(path).want(t, http.StatusOK, "The agent is archived", path+"/unarchive")
	b.post(path+"/unarchive").wantRedirect(t, path)
	b.get(path).want(t, http.StatusOK, path+"/archive")
	b.post(path+"/delete").wantRedirect(t, "/orgs/"+agent.OrgID.String()+"/agents")
	b.get(path).want(t, http.StatusNotFound)
}

// A member sees and changes the agents of one organisation only.
func TestAgentsOfOthers(t *testing.T) {
	s := newSite(t)
	operator := s.operator()
	agent, _ := s.mustAgent(programSource)
	key, _ := storagetest.MustKey(t, s.store, agent)
	other, err := s.store.CreateOrg(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	s.mustUser("eve@example.org", other.ID.String())
	eve := s.signedIn("eve@example.org")
	path := "/agents/" + agent.ID.String()
	for _, page := range []string{
		"/orgs/" + agent.OrgID.String() + "/agents", "/orgs/" + agent.OrgID.String() + "/agents/new", path, path + "/edit",
		path + "/revisions", path + "/revisions/1", path + "/diff?from=1&to=1", path + "/access", fmt.Sprintf("%s/keys/%s", path, key.ID),
	} {
		operator.get(page).want(t, http.StatusOK)
		eve.get(page).want(t, http.StatusNotFound)
	}
	for _, action := range []string{
		"/archive", "/unarchive", "/delete", "/edit", "/keys", fmt.Sprintf("/keys/%s/delete", key.ID), fmt.Sprintf("/keys/%s/rotate", key.ID),
	} {
		eve.post(path+action, "file", programSource+"# x", "overlap", "0", "expires_in", "0").want(t, http.StatusNotFound)
	}
	eve.post("/agent-form", "agent", agent.ID.String(), "file", "x").want(t, http.StatusNotFound)
	eve.post("/orgs/"+agent.OrgID.String()+"/agents", "file", "name: x\ncommand: [a]\n").want(t, http.StatusNotFound)
	if now, err := s.store.FindAgent(t.Context(), "words"); err != nil || now.Revision != 1 || now.Archived {
		t.Errorf("%+v: %v", now, err)
	}
}
