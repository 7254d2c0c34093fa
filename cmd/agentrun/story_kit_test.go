package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"agentrun/internal/browser"
)

// The operator of the stories.
const (
	storyEmail    = "op@example.org"
	storyPassword = "correct horse battery"
)

// story is a person at a browser, in front of a real agentrun.
type story struct {
	*browser.Tab
	t *testing.T
	p *process
}

// unattended starts a server that has an operator.
func unattended(t *testing.T, flags ...string) *process {
	t.Helper()
	return startServeIn(t, []string{"AGENTRUN_ADMIN_EMAIL=" + storyEmail, "AGENTRUN_ADMIN_PASSWORD=" + storyPassword},
		filepath.Join(t.TempDir(), "data"), flags...)
}

// begin starts a server that has an operator, who is signed in. It goes on
// beside other tests.
func begin(t *testing.T, flags ...string) *story {
	t.Helper()
	browser.NeedAxe(t)
	t.Parallel()
	s := &story{Tab: browser.Open(t), t: t, p: unattended(t, flags...)}
	s.signIn(storyEmail, storyPassword)
	return s
}

func (s *story) signIn(email, password string) {
	s.t.Helper()
	s.Go(s.p.url + "/sign-in")
	s.Type("#email", email)
	s.Type("#password", password)
	s.Click("main form button.primary")
	s.Wait(`location.pathname.startsWith("/orgs")`)
}

// apply makes an agent by the command line, with a key.
func (s *story) apply(file string) {
	s.t.Helper()
	path := filepath.Join(s.t.TempDir(), "agent.yaml")
	if err := os.WriteFile(path, []byte(file), 0o600); err != nil {
		s.t.Fatal(err)
	}
	var agent, key struct{ ID, Key string }
	manage(s.t, s.p.data, &agent, "agent", "apply", "-f", path)
	manage(s.t, s.p.data, &key, "key", "create", agent.ID, "--name", "story")
	s.p.agent, s.p.key = agent.ID, key.Key
}

// create starts a run by the public API and returns its ID.
func (s *story) create(name, input string) string {
	s.t.Helper()
	return s.created(s.request(name, input))
}

// created returns the ID of the run that was created.
func (s *story) created(status int, answer []byte) string {
	s.t.Helper()
	if status != http.StatusCreated {
		s.t.Fatalf("%d: %s", status, answer)
	}
	var created struct {
		Run string `json:"agent_id"`
	}
	if err := json.Unmarshal(answer, &created); err != nil {
		s.t.Fatal(err)
	}
	return created.Run
}

func (s *story) request(name, input string) (status int, answer []byte) {
	s.t.Helper()
	body, err := json.Marshal(map[string]string{"template_id": s.p.agent, "name": name, "input_text": input})
	if err != nil {
		s.t.Fatal(err)
	}
	return s.send(body)
}

// send posts a request to create a run.
func (s *story) send(body []byte) (status int, answer []byte) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.p.url+"/v1/agents", bytes.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+s.p.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	if answer, err = io.ReadAll(res.Body); err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, answer
}

// look finds out whether the page looks well.
func (s *story) look(name string) {
	s.t.Helper()
	s.LooksWell(name, s.p.url)
}

func (s *story) waitText(selector, text string) {
	s.t.Helper()
	s.Wait(fmt.Sprintf(`document.querySelector(%q)?.innerText.includes(%q)`, selector, text))
}

func (s *story) text(selector string) string {
	s.t.Helper()
	return browser.Evaluate[string](s.Tab, fmt.Sprintf(`document.querySelector(%q).textContent`, selector))
}

// confirm opens a dialog and does what it asks about.
func (s *story) confirm(id string) {
	s.t.Helper()
	s.Click(`[data-opens="` + id + `"]`)
	s.Click(`#` + id + `[open] button.danger`)
}

// From the link that an empty server prints to the first finished run, with
// nothing but the browser and the command that it shows.
