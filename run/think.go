package run

import (
	"context"
	"slices"
	"strings"

	"go.uber.org/zap"

	"agentrun/run/model"
	"agentrun/run/tool"
	"agentrun/run/tool/mcp"
	"agentrun/run/turn"
	"agentrun/storage"
)

// runModel executes the turn of an agent that is a model.
func (s *Server) runModel(ctx context.Context, t *storage.Turn) (outcome, error) {
	provider, name, known := s.provider(t.Definition.Model)
	if !known {
		prefix, _, _ := strings.Cut(t.Definition.Model, "/")
		return outcome{failure: (&storage.ModelError{Model: t.Definition.Model, Provider: prefix}).Error()}, nil
	}
	g, failure, err := s.prepare(t)
	if err != nil || failure != "" {
		return outcome{failure: failure}, err
	}
	result, err := s.think(ctx, t, g, provider, name)
	refused := g.close()
	if err != nil && ctx.Err() != nil {
		return outcome{failure: "the turn was stopped", stopped: true}, nil //nolint:nilerr // The caller knows why ctx ended.
	}
	if err != nil {
		return outcome{}, err
	}
	var e events
	e.addRefused(refused)
	return outcome{output: result.Output, failure: g.secrets.Mask(result.Failure), events: e.list}, e.err
}

// think lets the model and its tools work on the turn.
func (s *Server) think(ctx context.Context, t *storage.Turn, g *ground, provider Provider, name string) (turn.Result, error) {
	past, err := s.recall(ctx, t)
	if err != nil {
		return turn.Result{}, err
	}
	tools, err := s.openTools(ctx, t, g)
	if err != nil {
		return turn.Result{}, err
	}
	defer tools.servers.Close()
	steps := &steps{server: s, turn: t, price: provider.price(name)}
	if err := steps.reportServers(ctx, tools.servers.Problems(), g); err != nil {
		return turn.Result{}, err
	}
	limits := t.Definition.Limits
	return turn.Run(ctx, turn.Config{
		Client: provider.Client, Model: name, Instructions: t.Definition.Instructions, Tools: tools,
		History: past.history, Input: t.Input, Begun: past.begun, Spent: past.spent, Record: steps.record,
		Limits: turn.Limits{
			Steps: limits.StepCount(), Tokens: int64(limits.Tokens), Cost: limits.Cost, Price: steps.price, Window: provider.Window,
		},
	})
}

// tools are the tools of a turn: those that come with agentrun, and those of
// its servers.
type tools struct {
	own     *tool.Set
	servers *mcp.Servers
	ground  *ground
}

var _ turn.Tools = tools{}

func (s *Server) openTools(ctx context.Context, t *storage.Turn, g *ground) (tools, error) {
	client := g.client()
	own, err := tool.Open(tool.Place{
		Run: t.Run.ID.UUID, Workspaces: s.workspaces, Sandbox: s.sandbox, Command: g.command, Fetch: client, Mask: g.mask,
	}, t.Definition.Tools...)
	if err != nil {
		return tools{}, err
	}
	var servers []mcp.Server
	for _, m := range t.Definition.MCP {
		servers = append(servers, mcp.Server{Name: m.Name, Command: m.Command, URL: m.URL})
	}
	return tools{own, mcp.Open(ctx, mcp.Config{Servers: servers, Sandbox: s.sandbox, Command: g.command, HTTP: client}), g}, nil
}

// Tools implements turn.Tools.
func (t tools) Tools() []model.Tool { return slices.Concat(t.own.Tools(), t.servers.Tools()) }

// ReadOnly implements turn.Tools.
func (t tools) ReadOnly(name string) bool {
	return !t.servers.Has(name) && t.own.ReadOnly(name)
}

// Call implements turn.Tools.
func (t tools) Call(ctx context.Context, call model.ToolCall) (model.ToolResult, error) {
	if t.servers.Has(call.Name) {
		result, err := t.servers.Call(ctx, call)
		result.Text = t.ground.secrets.Mask(result.Text)
		return result, err
	}
	return t.own.Call(ctx, call)
}

// steps records what happens in a turn.
type steps struct {
	server *Server
	turn   *storage.Turn
	price  model.Price
}

// reportServers records which tool servers do not work.
func (s *steps) reportServers(ctx context.Context, problems []mcp.Problem, g *ground) error {
	if len(problems) == 0 {
		return nil
	}
	var e events
	for _, p := range problems {
		e.add(storage.EventToolServerFailed, storage.ToolServerFailed{Server: p.Server, Reason: g.secrets.Mask(p.Reason)})
	}
	return s.write(ctx, storage.Spent{}, e)
}

// record makes an entry of the turn durable.
func (s *steps) record(ctx context.Context, entry turn.Entry) error {
	var e events
	var spent storage.Spent
	switch {
	case entry.Answered != nil:
		a := entry.Answered
		spent = s.spent(a.Answer.Usage.Add(a.Answer.Lost))
		e.add(storage.EventModelAnswered, storage.ModelAnswered{
			Model: s.turn.Definition.Model, Text: a.Answer.Message.Text, Calls: storedCalls(a.Answer.Message.Calls),
			Stop: string(a.Answer.Stop), Opaque: a.Answer.Message.Opaque, Spent: spent, Seconds: a.Took.Seconds(), Attempts: a.Answer.Attempts,
		})
	case entry.Called != nil:
		e.add(storage.EventToolCalled, storage.ToolCalled{Call: entry.Called.ID, Tool: entry.Called.Name})
	case entry.Returned != nil:
		r := entry.Returned
		e.add(storage.EventToolReturned, storage.ToolReturned{
			Call: r.Call.ID, Tool: r.Call.Name, Text: r.Result.Text, Failed: r.Result.Failed, Seconds: r.Took.Seconds(),
		})
	case entry.Compacted != nil:
		spent = s.spent(entry.Compacted.Usage)
		e.add(storage.EventContextCompacted, storage.ContextCompacted{
			Summary: entry.Compacted.Summary, Messages: entry.Compacted.Messages, Spent: spent,
		})
	}
	return s.write(ctx, spent, e)
}

func (s *steps) spent(u model.Usage) storage.Spent {
	return storage.Spent{Calls: 1, Input: u.Input, Cached: u.Cached, Output: u.Output, Cost: s.price.Cost(u)}
}

// write writes events, and tries again while the store only has no space or
// gives no answer: what happened is known nowhere else.
func (s *steps) write(ctx context.Context, spent storage.Spent, e events) error {
	if e.err != nil {
		return e.err
	}
	log := s.server.log.With(zap.Stringer("run", s.turn.Run.ID), zap.Uint64("turn", s.turn.Run.Turn))
	return s.server.insist(ctx, log, "record a step", func() error {
		return s.server.store.RecordStep(context.WithoutCancel(ctx), s.turn.Claim, spent, e.list...)
	})
}

func storedCalls(calls []model.ToolCall) []storage.ToolCall {
	var stored []storage.ToolCall
	for _, c := range calls {
		stored = append(stored, storage.ToolCall{ID: c.ID, Tool: c.Name, Arguments: c.Arguments})
	}
	return stored
}
