package main

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"agentrun/internal/browser"
)

func TestStoryFirstRun(t *testing.T) {
	browser.NeedAxe(t)
	t.Parallel()
	s := &story{Tab: browser.Open(t), t: t, p: startServe(t, filepath.Join(t.TempDir(), "data"))}
	s.Go(<-s.p.setup)
	s.look("setup")
	s.Type("#email", storyEmail)
	s.Type("#password", storyPassword)
	s.Click("main form button.primary")

	s.Wait(`location.pathname.endsWith("/agents")`)
	s.look("agents-empty")
	s.Click(`main a[href$="/agents/new"]`)
	s.waitText("h1", "New agent")
	s.Click(`main .tabs a[href*="start=shell"]`)
	s.Wait(`document.querySelector("#file").value.includes("name:")`)
	s.look("agent-new")
	browser.Evaluate[bool](s.Tab, `(document.querySelector("#file").value = "name: word-count\ncomand: [cat]\n", true)`)
	s.Click("#agent-form button.primary")
	s.waitText("#faults", "line 2")
	s.Forget() // The browser notes the 422.
	s.look("agent-faults")
	browser.Evaluate[bool](s.Tab, `(document.querySelector("#file").value = "name: word-count\ncommand: [sh, -c, 'wc -w notes.txt']   # counts\n", true)`)
	s.Click("#agent-form button.primary")
	s.waitText("h1", "word-count")
	s.look("agent")

	s.Click(`.tabs a[href$="/access"]`)
	s.waitText("h2#keys", "Keys")
	s.Type("#key-name", "nightly-job")
	s.Click(`form[aria-labelledby="create-key"] button`)
	s.Wait(`document.querySelector("#new-key-secret")`)
	s.look("key-created")
	s.shell(s.text("#snippet-curl"), "3 notes.txt")
	s.shellPython(s.text("#snippet-python"), "3 notes.txt")

	s.Go(browser.Evaluate[string](s.Tab, `location.href.replace(/keys$/, "access")`))
	s.waitText(`table[aria-labelledby="keys"] tbody tr`, "nightly-job")
	if used := browser.Evaluate[string](s.Tab, `document.querySelector("tbody tr td:nth-of-type(4)").innerText`); !strings.Contains(used, "ago") && !strings.Contains(used, "now") {
		t.Errorf("last used: %q", used)
	}
	s.look("access")
	s.Click(`tbody th a`)
	s.waitText("main", "201")
	s.look("key")

	s.Click(`.side a[href$="/runs"]`)
	s.waitText("#results", "finished")
	s.look("runs")
	s.Click(`#results tbody th a`)
	s.waitText("#run-status", "finished")
	s.waitText("#transcript", "3 notes.txt")
	s.look("run-finished")
	s.Click(`.tabs a[href$="/files"]`)
	s.waitText("main", "notes.txt")
	s.look("files")
	s.Click(`tbody a[href*="preview"]`)
	s.waitText("pre", "one two three")
	s.look("preview")
}

// shell runs a program that a page shows, as a person does who copies it.
func (s *story) shell(program, want string) {
	s.t.Helper()
	s.program(want, "bash", "-c", program)
}

func (s *story) shellPython(program, want string) {
	s.t.Helper()
	s.program(want, "python3", "-c", program)
}

func (s *story) program(want, name string, args ...string) {
	s.t.Helper()
	out, err := exec.CommandContext(s.t.Context(), name, args...).CombinedOutput()
	if err != nil || !strings.Contains(string(out), want) {
		s.t.Fatalf("%s: %v\n%s", name, err, out)
	}
}

// turnFile is an agent whose turn goes on line by line, as files appear.
const turnFile = `name: slow
command:
- sh
- -c
- |
  read line
  echo "began $line" >&2
  until [ -e go-1 ]; do sleep 0.05; done
  until [ -e go-2 ]; do sleep 0.05; done
  echo "**$line** is done"
`

// allow lets a turn of turnFile go on.
func (s *story) allow(run, step string) {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.p.data, "workspaces", run, step), nil, 0o644); err != nil {
		s.t.Fatal(err)
	}
}

// eventsShown are the events on the page, as their numbers and texts.
func (s *story) eventsShown() string {
	return browser.Evaluate[string](s.Tab,
		`Array.from(document.querySelectorAll("#timeline > li"), e => e.id + " " + e.innerText.replace(/\s+/g, " ")).join("\n")`)
}

func TestStoryWatchARun(t *testing.T) {
	s := begin(t)
	s.apply(turnFile)
	run := s.create("watched", "the work")
	s.Go(s.p.url + "/runs/" + run)
	s.waitText("#run-status", "running")
	s.Wait(`document.querySelector('#timeline [data-kind="turn_started"]')`)
	s.look("run-running")

	// A reload in the middle shows what was there, and goes on.
	before := s.eventsShown()
	s.allow(run, "go-1")
	s.Go(s.p.url + "/runs/" + run)
	if after := s.eventsShown(); !strings.HasPrefix(after, before) {
		t.Errorf("after the reload:\n%s\nbefore:\n%s", after, before)
	}
	s.allow(run, "go-2")
	s.waitText("#run-status", "finished")
	s.waitText("#transcript .is-output", "is done")
	s.Wait(`document.querySelector('#timeline [data-kind="turn_finished"]')`)
	live := s.eventsShown()

	// What came live is what a replay shows, each event once.
	s.Go(s.p.url + "/runs/" + run)
	if replay := s.eventsShown(); replay != live {
		t.Errorf("live:\n%s\nreplay:\n%s", live, replay)
	}

	// An idle run takes input.
	s.Type("#input-text", "more work")
	s.Click("#run-input button.primary")
	s.waitText("#run-status", "running")
	s.waitText("#transcript", "more work")
	s.Wait(`document.querySelectorAll("#transcript .is-output").length === 2`)
	s.waitText("#run-status", "finished")
	s.look("run-two-turns")
}

func TestStoryStopARun(t *testing.T) {
	s := begin(t)
	s.apply(turnFile)
	run := s.create("stopped", "the work")
	s.Go(s.p.url + "/runs/" + run)
	s.Wait(`document.querySelector('#timeline [data-kind="turn_started"]')`)
	s.Click(`[data-opens="stop-run"]`)
	s.look("run-stop-dialog")
	s.Click(`#stop-run[open] button.danger`)
	s.waitText("#run-status", "terminated")
	s.waitText("#run-why", "stopped by "+storyEmail)
	s.look("run-terminated")

	s.confirm("delete-run")
	s.Wait(`location.pathname.endsWith("/runs")`)
	s.look("run-deleted")
	s.Go(s.p.url + "/audit")
	s.waitText("main", "stopped")
	s.look("audit")
}

func TestStoryArchiveAnAgent(t *testing.T) {
	s := begin(t)
	s.apply("name: echo\ncommand: [cat]\n")
	s.Go(s.p.url + "/agents/" + s.p.agent)
	s.confirm("archive-agent")
	s.waitText("main", "archived")
	s.look("agent-archived")
	if status, answer := s.request("x", "y"); status != http.StatusConflict {
		t.Errorf("archived: %d %s", status, answer)
	}
	s.Click(`form[action$="/unarchive"] button`)
	s.Wait(`!document.querySelector('form[action$="/unarchive"]')`)
	if status, answer := s.request("x", "y"); status != http.StatusCreated {
		t.Errorf("unarchived: %d %s", status, answer)
	}
	s.Click(`.tabs a[href$="/revisions"]`)
	s.waitText("main tbody", "1")
	s.look("revisions")
}

// A member of one organisation sees nothing of another.
func TestStoryTwoOrganisations(t *testing.T) {
	s := begin(t)
	s.apply("name: ours\ncommand: [cat]\n")
	run := s.create("our run", "secret plan")
	s.Go(s.p.url + "/orgs")
	s.Type("#name", "Other")
	s.Click("main form button.primary")
	s.waitText("main", "Other")
	s.look("orgs")
	ours := browser.Evaluate[string](s.Tab, `Array.from(document.querySelectorAll("tbody th a")).find(a => a.innerText === "default").pathname`)

	s.Go(s.p.url + "/users")
	s.Type("#email", "member@example.org")
	s.Type("#password", "another long one")
	browser.Evaluate[bool](s.Tab, `((form) => {
		form.querySelector('[name="role"][value="member"], [name="role"]').value === "member" || (form.querySelector('[name="role"]').value = "member");
		const org = form.querySelector('[name="org"]');
		org.value = Array.from(org.options).find(o => o.text.includes("Other")).value;
		return true })(document.querySelector('form[action="/users"]'))`)
	s.look("users")
	s.Click(`form[action="/users"] button.primary`)
	s.waitText("main table", "member@example.org")
	s.Click(`.side form[action="/sign-out"] button`)
	s.Wait(`location.pathname === "/sign-in"`)
	s.look("sign-in")

	s.signIn("member@example.org", "another long one")
	s.Wait(`document.querySelector("main h1")`)
	s.look("member")
	for _, path := range []string{
		ours, strings.Replace(ours, "/agents", "/runs", 1), strings.Replace(ours, "/agents", "/models", 1),
		strings.Replace(ours, "/agents", "/audit", 1), "/agents/" + s.p.agent, "/agents/" + s.p.agent + "/access", "/runs/" + run,
		"/runs/" + run + "/files", "/users", "/audit",
	} {
		s.Go(s.p.url + path)
		if page := s.text("body"); strings.Contains(page, "our run") || strings.Contains(page, "secret plan") || strings.Contains(page, "ours") {
			t.Errorf("%s shows a member of another organisation: %s", path, page)
		}
		if status := browser.Evaluate[int](s.Tab, `performance.getEntriesByType("navigation")[0].responseStatus`); status != http.StatusNotFound && status != http.StatusForbidden {
			t.Errorf("%s: %d", path, status)
		}
	}
	s.Forget() // The browser notes each 404.
	s.Go(s.p.url + "/account")
	s.look("account")
}

// What a model does is on the page step by step.
func TestStoryModel(t *testing.T) {
	scripts := t.TempDir()
	err := os.WriteFile(filepath.Join(scripts, "review.yaml"), []byte(`steps:
- say: "I will look at the figures first."
  calls:
  - {tool: list_files, arguments: {}}
  - {tool: read_file, arguments: {path: sales.csv}}
  tokens: {input: 1840, output: 96}
- calls: [{tool: shell, arguments: {command: "awk -F, 'NR>1 {s[$1]+=$3} END {for (k in s) print k, s[k]}' sales.csv | sort"}}]
  tokens: {input: 2310, output: 71}
- say: |
    **North** sold most this quarter, and **South** fell behind for the second time.

    | region | units |
    | --- | ---: |
    | North | 412 |
    | South | 198 |

    1. Order stock for *North* before the holidays.
    2. Ask the South team about the missing week.
  tokens: {input: 2590, output: 143}
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	s := begin(t, "--provider", "script=script,"+scripts+",price=3/0.3/15")
	s.apply("name: analyst\nmodel: script/review\ninstructions: |\n  You answer questions about the files in the workspace.\ntools: [list_files, read_file, shell]\n")
	body, err := json.Marshal(map[string]any{
		"template_id": s.p.agent, "name": "Third quarter", "input_text": "Which region should we stock up?",
		"files": []map[string]string{{
			"filename":       "sales.csv",
			"content_base64": base64.StdEncoding.EncodeToString([]byte("region,week,units\nNorth,27,200\nNorth,28,212\nSouth,27,198\n")),
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	run := s.created(s.send(body))
	s.Go(s.p.url + "/runs/" + run)
	s.waitText("#run-status", "finished")
	s.Wait(`document.querySelector("#transcript table")`)
	s.Wait(`document.querySelectorAll("#timeline details:not([open])").length >= 3`)
	browser.Evaluate[bool](s.Tab, `Array.from(document.querySelectorAll('#timeline [data-kind="tool_returned"] details')).at(-1).open = true`)
	s.waitText("#timeline", "awk")
	s.waitText("#run-facts", "$")
	s.look("run-model")
	s.Click(`.side a[href$="/models"]`)
	s.waitText("main", "script")
	s.look("models")
}
