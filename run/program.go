package run

import (
	"context"

	"agentrun/run/command"
	"agentrun/storage"
)

// runCommand executes the turn of an agent that is a program.
func (s *Server) runCommand(ctx context.Context, turn *storage.Turn) (outcome, error) {
	models, failure, err := s.openModels(ctx, turn)
	if err != nil || failure != "" {
		return outcome{failure: failure}, err
	}
	g, failure, err := s.prepareWith(turn, models)
	if err != nil || failure != "" {
		return outcome{failure: failure}, err
	}
	def := turn.Definition
	common := g.command(def.Command)
	result, err := command.Run(ctx, s.sandbox, command.Turn{
		Args: common.Args, Env: common.Env, Dir: common.Dir, Input: turn.Input,
		MaxOutput: int(def.Limits.OutputBytes()), Limits: common.Limits, Read: common.Read, Proxy: common.Proxy, Mask: g.mask,
	})
	refused := g.close()
	if err != nil {
		return outcome{}, err
	}
	result.Failure = g.secrets.Mask(result.Failure)
	events, err := commandEvents(result, refused)
	return outcome{
		output: result.Output.Text, failure: result.Failure, stopped: result.Exit.Stopped, events: events,
	}, err
}

// commandEvents are the entries of the history about a program's end, and about
// where it was not let go.
func commandEvents(r command.Result, refused []storage.NetworkRefused) ([]storage.Event, error) {
	var e events
	e.addRefused(refused)
	if r.Stderr.Text != "" {
		e.add(storage.EventCommandStderr, storage.CommandText{Text: r.Stderr.Text, LeftOut: r.Stderr.LeftOut})
	}
	if r.Started {
		e.add(storage.EventCommandExited, storage.CommandExited{
			Code: r.Exit.Code, Signal: r.Exit.Signal, Seconds: r.Took.Seconds(),
		})
	}
	if r.Failure != "" {
		if r.Output.Text != "" {
			e.add(storage.EventCommandStdout, storage.CommandText{Text: r.Output.Text, LeftOut: r.Output.LeftOut})
		}
		return e.list, e.err // There is no output of which more could be said.
	}
	if r.Output.LeftOut > 0 {
		e.add(storage.EventOutputShortened, storage.OutputShortened{LeftOut: r.Output.LeftOut})
	}
	if r.Output.Replaced {
		e.add(storage.EventOutputNotUTF8, nil)
	}
	return e.list, e.err
}
