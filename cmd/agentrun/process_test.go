package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// process is a real agentrun serve.
type process struct {
	t     *testing.T
	data  string
	cmd   *exec.Cmd
	url   string
	ended chan struct{}
	// log is what it wrote after it listened; to be read once ended is closed.
	log bytes.Buffer
	// setup receives the link by which the first user is made, if there is none.
	setup chan string
	// agent is the ID of its agent echo, key a key of it; see startEcho.
	agent, key string
}

// startServe serves the data directory in a process of its own, which is killed
// with the test at the latest.
func startServe(t *testing.T, data string, flags ...string) *process {
	t.Helper()
	return startServeIn(t, nil, data, flags...)
}

// startServeIn is startServe with more in the server's environment.
func startServeIn(t *testing.T, environment []string, data string, flags ...string) *process {
	t.Helper()
	p := &process{t: t, data: data, ended: make(chan struct{}), setup: make(chan string, 1)}
	p.cmd = exec.CommandContext(t.Context(), "agentrun",
		append([]string{"serve", "--data", data, "--listen", "127.0.0.1:0"}, flags...)...)
	p.cmd.Env = append(os.Environ(), environment...)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for p.url == "" && lines.Scan() {
		p.url, _ = strings.CutPrefix(lines.Text(), listening)
		if !strings.HasPrefix(p.url, "http://") {
			p.url = ""
		}
	}
	if p.url == "" {
		t.Fatalf("serve ended: %v", p.cmd.Wait())
	}
	go func() {
		defer close(p.ended)
		for lines.Scan() {
			if link, ok := strings.CutPrefix(lines.Text(), makeFirstUser); ok {
				p.setup <- link
			}
			p.log.Write(append(lines.Bytes(), '\n'))
		}
		_ = p.cmd.Wait()
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
	return p
}

// startEcho is startServe for a new data directory that has the agent echo.
func startEcho(t *testing.T) *process {
	t.Helper()
	data := filepath.Join(t.TempDir(), "data")
	file := filepath.Join(t.TempDir(), "echo.yaml")
	if err := os.WriteFile(file, []byte("name: echo\ncommand: [cat]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var agent, key struct{ ID, Key string }
	manage(t, data, &agent, "agent", "apply", "-f", file)
	manage(t, data, &key, "key", "create", "echo")
	p := startServe(t, data)
	p.agent, p.key = agent.ID, key.Key
	return p
}

// manage runs a management command and decodes the document that it prints.
func manage(t *testing.T, data string, into any, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "agentrun", append(args, "--data", data, "--json")...).Output()
	if err == nil {
		err = json.Unmarshal(out, into)
	}
	if err != nil {
		t.Fatalf("%q: %s %v", args, out, err)
	}
}

// post creates a run with an input of this length and returns the answer.
func (p *process) post(inputLength int) (status int, body string, err error) {
	p.t.Helper()
	text, err := json.Marshal(map[string]string{
		"name": "run", "template_id": p.agent, "input_text": strings.Repeat("x", inputLength),
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return p.send(http.MethodPost, "/v1/agents", bytes.NewReader(text))
}

func (p *process) send(method, path string, content io.Reader) (status int, body string, err error) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.url+path, content)
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+p.key)
	req.Header.Set("Content-Type", "application/json")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	return res.StatusCode, strings.TrimSpace(string(raw)), err
}

// runID takes the ID out of a 201.
func runID(t *testing.T, status int, body string, err error) string {
	t.Helper()
	var created struct {
		AgentID string `json:"agent_id"`
	}
	if err != nil || status != http.StatusCreated || json.Unmarshal([]byte(body), &created) != nil {
		t.Fatalf("POST: %d %s %v", status, body, err)
	}
	return created.AgentID
}
