package main

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/uuid"

	"agentrun/run"
	"agentrun/run/model/script"
	"agentrun/storage"
	"agentrun/web/gen"
)

// demoModelAgent is the agent file of the demonstration's second half: a model,
// which here follows a script, so that it needs no key either.
const demoModelAgent = `name: reporter
model: script/reporter   # a scripted model; yours would be openai/..., anthropic/... or one on your own machine
instructions: Answer from the files in the workspace.
tools: [read_file, shell]
`

const demoScript = `steps:
- calls: [{tool: read_file, arguments: {path: notes.txt}}]
  tokens: {input: 210, output: 12}
- calls: [{tool: shell, arguments: {command: "wc -w < notes.txt > words.txt; cat words.txt"}}]
  tokens: {input: 260, output: 20}
- say: "I read notes.txt, had its words counted, and wrote the number to words.txt."
  tokens: {input: 290, output: 18}
`

// demoProviders writes the script of the demonstration's model into a folder and
// returns its provider.
func demoProviders(scripts string) (map[string]run.Provider, error) {
	if err := os.WriteFile(filepath.Join(scripts, "reporter.yaml"), []byte(demoScript), 0o600); err != nil {
		return nil, err
	}
	client, err := script.New(scripts)
	return map[string]run.Provider{"script": {Client: client}}, err
}

// walkModel shows an agent that is a model.
func (t *tour) walkModel(ctx context.Context) error {
	t.say("An agent can also be a model with tools. Each step is recorded before the next one is done.\n")
	agent, err := t.prepare(ctx, "reporter", demoModelAgent)
	if err != nil {
		return err
	}
	run, err := t.createRun(ctx, agent)
	if err != nil {
		return err
	}
	if err := t.poll(ctx, run); err != nil {
		return err
	}
	t.say("What it did (agentrun runs events %s):\n", run)
	return t.history(ctx, run)
}

// history prints what a model and its tools did in a run.
func (t *tour) history(ctx context.Context, run string) error {
	id, err := uuid.Parse(run)
	if err != nil {
		return err
	}
	return withClient(inMemory{t.server.management}, func(c *gen.Client) error {
		page, err := c.ListEvents(ctx, gen.ListEventsParams{Run: id})
		if err != nil {
			return err
		}
		for _, e := range page.Events {
			var data struct {
				Calls []storage.ToolCall
				Text  string
				Tool  string
			}
			if e.Kind != string(storage.EventModelAnswered) && e.Kind != string(storage.EventToolReturned) {
				continue
			}
			if err := json.Unmarshal(e.Data, &data); err != nil {
				return err
			}
			for _, call := range data.Calls {
				t.say("  the model calls %s %s", call.Tool, call.Arguments)
			}
			if text, _, _ := strings.Cut(data.Text, "\n"); text != "" {
				who := data.Tool
				if who == "" {
					who = "the model"
				}
				t.say("  %s says: %s", who, text)
			}
		}
		t.say("")
		return nil
	})
}
