package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"github.com/urfave/cli/v3"
	"go.uber.org/zap"

	"agentrun/handler"
	"agentrun/run/sandbox"
	"agentrun/web/gen"
)

// demoAgent is the agent file of the demonstration: a program, so that it needs
// no model, no key and no network.
const demoAgent = `name: word-count
command:
  - sh
  - -c
  - |
    echo "You asked: $(cat)"
    wc -w -- *
limits: {turn: 1m}
`

const (
	demoInput = "How many words does notes.txt have?"
	demoNotes = "An agent is a program, or a model with tools.\nThis file has some words for it to count.\n"
	// demoPoll is far below what the API recommends to clients over a network.
	demoPoll = 100 * time.Millisecond
	demoTime = time.Minute
)

func demoCommand() *cli.Command {
	return leaf(&cli.Command{
		Name:  "demo",
		Usage: "show the whole tour: an agent, a key, a run with a file, its transcript",
		Flags: []cli.Flag{
			&cli.BoolFlag{Name: "stay", Sources: env("stay"), Usage: "keep the server until Ctrl-C, so that the printed lines can be typed"},
		},
	}, nil, demo)
}

func demo(ctx context.Context, cmd *cli.Command, _ []string) (err error) {
	ctx, cancel := untilSignal(ctx)
	defer cancel()
	dir, err := os.MkdirTemp("", "agentrun-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	scripts, err := os.MkdirTemp("", "agentrun-demo-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scripts)) }()
	providers, err := demoProviders(scripts)
	if err != nil {
		return err
	}
	t := &tour{out: cmd.Root().Writer, http: &http.Client{Timeout: demoTime}}
	s, err := startServer(ctx, serverConfig{
		data: dir, listen: "127.0.0.1:0", workers: 1, maxBody: handler.DefaultMaxBody, sandbox: t.level(ctx),
		providers: providers, log: zap.NewNop(),
	})
	if err != nil {
		return err
	}
	defer s.stop()
	t.server = s
	if err := t.walk(ctx); err != nil {
		return err
	}
	if !cmd.Bool("stay") {
		t.say("That is the main job. To type these lines yourself: agentrun demo --stay.")
		t.say("Now your own: agentrun serve, then agentrun agent apply -f FILE and agentrun key create AGENT.")
		return t.err
	}
	t.say("The server stays at %s until Ctrl-C; type any of the lines above.", s.url())
	t.say("Its pages want a user first, whom you make at %s", s.setupLink())
	if t.err != nil {
		return t.err
	}
	return s.wait(ctx)
}

// tour prints what it does as it goes. The first error of the output stays.
type tour struct {
	out    io.Writer
	err    error
	server *server
	http   *http.Client
	key    string
}

func (t *tour) say(format string, args ...any) {
	if t.err == nil {
		_, t.err = fmt.Fprintf(t.out, format+"\n", args...)
	}
}

// level is the sandbox of the tour. Where the machine has none, the tour's own
// program runs without, and it says so: a server would refuse to.
func (t *tour) level(ctx context.Context) sandbox.Level {
	runner, err := sandbox.Open(ctx, sandbox.Options{Level: sandbox.Auto})
	if err == nil {
		err = sandbox.Refusal(runner)
	}
	if err != nil {
		t.say("This tour's own program runs unconfined, and agentrun serve would refuse to run any: %v; agentrun doctor says how to get it.\n", err)
		return sandbox.Off
	}
	return sandbox.Auto
}

func (t *tour) walk(ctx context.Context) error {
	t.say("A server on %s, with its data in %s.\n", t.server.url(), t.server.data.path)
	agent, err := t.prepare(ctx, "word-count", demoAgent)
	if err != nil {
		return err
	}
	t.say("The contract of the API needs no key:\n")
	head := `curl -s -o /dev/null -w '%{http_code} %{content_type}\n' ` + t.server.url() + "/v1/openapi.json"
	document, err := t.get(ctx, "/v1/openapi.json", "")
	if err != nil {
		return err
	}
	t.say("$ %s\n%d %s\n", head, document.status, document.contentType)
	t.say("A run of the agent, with a file in its workspace:\n")
	run, err := t.createRun(ctx, agent)
	if err != nil {
		return err
	}
	t.say("The run works on its own; poll it until it is no longer running:\n")
	if err := t.poll(ctx, run); err != nil {
		return err
	}
	t.say("Without the key nobody sees it:\n")
	refused, err := t.get(ctx, "/v1/agents/"+run, "")
	if err != nil {
		return err
	}
	t.say("$ curl -s %s/v1/agents/%s\n%s\n", t.server.url(), run, refused.body)
	if err := t.walkModel(ctx); err != nil {
		return err
	}
	return t.err
}

// prepare makes an agent and its key and returns the agent's ID.
func (t *tour) prepare(ctx context.Context, name, file string) (agent string, err error) {
	err = withClient(inMemory{t.server.management}, func(c *gen.Client) error {
		applied, err := c.ApplyAgent(ctx, &gen.ApplyAgentReq{File: file})
		if err != nil {
			return err
		}
		agent = applied.Agent.ID.String()
		key, err := c.CreateKey(ctx, &gen.CreateKeyReq{}, gen.CreateKeyParams{Agent: agent})
		if err != nil {
			return err
		}
		t.key = key.Key
		return nil
	})
	if err != nil {
		return "", err
	}
	t.say("An agent (agentrun agent apply -f %s.yaml):\n\n%s", name, indent(file))
	t.say("Its key (agentrun key create %s):\n\n  %s\n", name, t.key)
	return agent, nil
}

// demoRequest is a create request as a person would write it, in this order.
type demoRequest struct {
	Name       string     `json:"name"`
	TemplateID string     `json:"template_id"`
	InputText  string     `json:"input_text"`
	Files      []demoFile `json:"files"`
}

type demoFile struct {
	Filename string `json:"filename"`
	Content  []byte `json:"content_base64"`
}

// createRun creates the run and returns its ID.
func (t *tour) createRun(ctx context.Context, agent string) (string, error) {
	body, err := json.Marshal(demoRequest{
		Name: "demo", TemplateID: agent, InputText: demoInput,
		Files: []demoFile{{Filename: "notes.txt", Content: []byte(demoNotes)}},
	})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, t.server.url()+"/v1/agents", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Content-Type", "application/json")
	created, err := t.do(req, t.key)
	if err != nil {
		return "", err
	}
	t.say("$ curl -s %s/v1/agents -H 'Authorization: Bearer %s' -H 'Content-Type: application/json' -d '%s'\n%s\n",
		t.server.url(), t.key, body, created.body)
	var answer struct {
		AgentID string `json:"agent_id"`
	}
	if err := json.Unmarshal([]byte(created.body), &answer); err != nil || answer.AgentID == "" {
		return "", errors.Errorf("the run was not created: %s", created.body)
	}
	return answer.AgentID, nil
}

// poll follows the run to its end and prints the last answer.
func (t *tour) poll(ctx context.Context, run string) error {
	begun := time.Now()
	tick := time.NewTicker(demoPoll)
	defer tick.Stop()
	for {
		got, err := t.get(ctx, "/v1/agents/"+run, t.key)
		if err != nil {
			return err
		}
		var status struct {
			LoopStatus string `json:"loop_status"`
		}
		if err := json.Unmarshal([]byte(got.body), &status); err != nil {
			return errors.Wrapf(err, "run %s: %s", run, got.body)
		}
		switch {
		case status.LoopStatus == "finished":
			t.say("$ curl -s %s/v1/agents/%s -H 'Authorization: Bearer %s'\n%s\n", t.server.url(), run, t.key, got.body)
			return nil
		case status.LoopStatus != "running":
			return errors.Errorf("run %s: %s", run, got.body)
		case time.Since(begun) > demoTime:
			return errors.Errorf("run %s: still running after %s", run, demoTime)
		}
		select {
		case <-ctx.Done():
			return errors.New("interrupted")
		case <-tick.C:
		}
	}
}

// httpAnswer is what the server answered.
type httpAnswer struct {
	status      int
	contentType string
	body        string
}

func (t *tour) get(ctx context.Context, path, key string) (httpAnswer, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, t.server.url()+path, nil)
	if err != nil {
		return httpAnswer{}, err
	}
	return t.do(req, key)
}

func (t *tour) do(req *http.Request, key string) (httpAnswer, error) {
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := t.http.Do(req)
	if err != nil {
		return httpAnswer{}, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return httpAnswer{resp.StatusCode, resp.Header.Get("Content-Type"), strings.TrimRight(string(body), "\n")}, err
}

func indent(text string) string {
	return "  " + strings.ReplaceAll(strings.TrimRight(text, "\n"), "\n", "\n  ") + "\n"
}
