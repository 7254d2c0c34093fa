package page

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"agentrun/internal/browser"
	"agentrun/storage"
	"agentrun/storage/storagetest"
)

// openTab is a browser's tab at which an operator is signed in. Its test goes on
// beside others.
func (s *site) openTab(t *testing.T) *browser.Tab {
	t.Helper()
	t.Parallel()
	s.mustUser(testEmail, "")
	tab := browser.Open(s.t)
	tab.Go(s.server.URL + "/sign-in")
	tab.Type("#email", testEmail)
	tab.Type("#password", testPassword+"\n")
	tab.Wait(`document.querySelector("nav[aria-label=Main]")`)
	return tab
}

// The form and the text follow each other while one types into either.
func TestFormAndFileInBrowser(t *testing.T) {
	s := newSite(t)
	agent, _ := s.mustAgent(programSource)
	tab := s.openTab(t)
	tab.Go(s.server.URL + "/agents/" + agent.ID.String() + "/edit")

	// From the form to the text, which is typed into before the answer is there.
	tab.Type("#field-secrets", "API_TOKEN\t# more\n")
	want := "# more\n" + strings.Replace(programSource, "limits:", "secrets: [API_TOKEN]\nlimits:", 1)
	tab.Wait(fmt.Sprintf(`document.querySelector("#file").value === %q`, want))

	// From the text to the form, with a fault at its field.
	tab.Go(s.server.URL + "/agents/" + agent.ID.String() + "/edit")
	set := func(text string) {
		browser.Evaluate[bool](tab, fmt.Sprintf(`(() => {
			const file = document.querySelector("#file");
			file.focus(); file.value = %q; file.setSelectionRange(5, 5);
			file.dispatchEvent(new InputEvent("input", {bubbles: true}));
			return true;
		})()`, text))
	}
	set(strings.Replace(programSource, "10m", "soon", 1))
	tab.Wait(`document.getElementById("error-limits.turn").textContent.includes("want a duration")`)
	if focus := browser.Evaluate[string](tab, `document.activeElement.id + document.activeElement.selectionStart`); focus != "file5" {
		t.Errorf("the cursor is at %s", focus)
	}
	tab.Click("[data-line]")
	if line := browser.Evaluate[string](tab, `getSelection().toString()`); line != "limits: {turn: soon}" {
		t.Errorf("the line of the fault is %q", line)
	}
	set(strings.Replace(programSource, "10m", "2h", 1))
	tab.Wait(`document.getElementById("field-limits.turn").value === "2h"`)

	// A model by a click, with check boxes that follow the text.
	tab.Click("#kind-model")
	tab.Wait(`document.querySelector("#file").value.includes("model:")`)
	tab.Type("#field-model", "script/x\t")
	tab.Wait(`document.querySelector("#file").value.includes("model: script/x")`)
	tab.Click("input[value=shell]")
	tab.Wait(`document.querySelector("#file").value.includes("tools: [shell]")`)
	set("name: words\nmodel: script/x\ntools: [fetch]\n")
	tab.Wait(`document.querySelector("input[value=fetch]").checked && !document.querySelector("input[value=shell]").checked`)

	// Enter in a field applies it, and does not save.
	tab.Do(chromedp.Clear(chromedp.CSS("#field-model")))
	tab.Type("#field-model", "script/y\n")
	tab.Wait(`document.querySelector("#file").value.includes("model: script/y")`)
	tab.Click("button.primary")
	tab.Wait(`document.querySelector(".notice")`)
	file, err := s.store.AgentFile(t.Context(), "words")
	if err != nil || file.Source != "name: words\nmodel: script/y\ntools: [fetch]\n" {
		t.Errorf("file %q: %v", file.Source, err)
	}
	tab.Quiet("the page", s.server.URL)
}

// Every page about agents is good to look at and to use: on narrow screens
// nothing sticks out, and axe-core finds nothing.
func TestAgentPagesInBrowser(t *testing.T) {
	browser.NeedAxe(t)
	s := newSite(t)
	agent, caller := s.mustAgent(programSource)
	storagetest.MustApply(t, s.store, storage.DefaultOrg, strings.Replace(programSource, "10m", "20m", 1)+"env: {A: b}\nnetwork: {allow: [example.org]}\n")
	s.mustAgent("name: analyst\nmodel: script/hello\ntools: [shell, read_file]\nlimits: {cost: 0.5}\n")
	s.mustAgent("name: " + strings.Repeat("long-", 30) + "name\ncommand: [sh, -c, \"" + strings.Repeat("echo a long command; ", 10) + "\"]\n")
	for i := range 3 {
		s.mustRun(caller, fmt.Sprintf("Nightly count %d", i), "Count.")
	}
	tab := s.openTab(t)
	path, list := "/agents/"+agent.ID.String(), "/orgs/"+agent.OrgID.String()+"/agents"
	empty, err := s.store.CreateOrg(t.Context(), "Empty")
	if err != nil {
		t.Fatal(err)
	}
	look := func(name, address string) {
		t.Helper()
		if address != "" {
			tab.Go(s.server.URL + address)
		}
		tab.LooksWell("agents-"+name, s.server.URL)
	}
	look("list", list)
	look("list-empty", "/orgs/"+empty.ID.String()+"/agents")
	look("new", list+"/new?start=model")
	look("edit", path+"/edit")
	look("overview", path)
	look("revisions", path+"/revisions")
	look("revision", path+"/revisions/1")
	look("diff", path+"/diff?from=1&to=2")
	look("access", path+"/access")
	look("key", path+"/keys/"+caller.KeyID.String())
	tab.Go(s.server.URL + path)
	tab.Click("[data-opens=delete-agent]")
	look("delete", "")
	tab.Go(s.server.URL + path + "/access")
	tab.Type("#key-name", "nightly-job\n")
	tab.Wait(`document.querySelector("#new-key-secret")`)
	look("new-key", "")
	tab.Go(s.server.URL + path + "/edit")
	browser.Evaluate[bool](tab, `(document.querySelector("#file").value = "name: words\ncomand: [cat]\nlimits: {turn: soon}\n", true)`)
	tab.Click("button.primary")
	tab.Wait(`document.querySelector("#faults li")`)
	tab.Forget() // The browser notes the 422.
	look("faults", "")
	for _, complaint := range tab.Complaints() {
		// The answer to a form with faults, which Chromium tells too.
		if !strings.Contains(complaint, fmt.Sprint(http.StatusUnprocessableEntity)) {
			t.Errorf("complaint of the browser: %q", complaint)
		}
	}
}
