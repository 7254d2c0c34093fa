package run

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"agentrun/run/command"
	"agentrun/run/sandbox"
	"agentrun/storage"
)

// runCommand executes the turn of an agent that is a program.
func (s *Server) runCommand(ctx context.Context, turn *storage.Turn) (outcome, error) {
	id := turn.Run.ID.UUID
	if len(turn.Definition.Command) == 0 {
		model := turn.Definition.Model
		provider, _, _ := strings.Cut(model, "/")
		return outcome{failure: (&storage.ModelError{Model: model, Provider: provider}).Error()}, nil
	}
	if err := s.workspaces.Ensure(id); err != nil {
		return outcome{}, err
	}
	if err := s.workspaces.Own(id, s.sandbox.Owner()); err != nil {
		return outcome{}, err
	}
	dir := s.workspaces.Path(id)
	result, err := command.Run(ctx, s.sandbox, command.Turn{
		Args: turn.Definition.Command, Env: environment(turn, dir), Dir: dir, Input: turn.Input,
	})
	if err != nil {
		return outcome{}, err
	}
	events, err := commandEvents(result)
	return outcome{
		output: result.Output.Text, failure: result.Failure, stopped: result.Exit.Stopped, events: events,
	}, err
}

// environment is all that a command sees of the world outside its workspace;
// nothing of the server's own environment is in it.
func environment(turn *storage.Turn, dir string) []string {
	vars := map[string]string{
		"PATH":   sandbox.Path,
		"HOME":   dir,
		"TMPDIR": "/tmp",
		"LANG":   "C.UTF-8",
	}
	// An agent file can set these four anew, but none of ours.
	maps.Copy(vars, turn.Definition.Env)
	vars["AGENTRUN_RUN_ID"] = turn.Run.ID.String()
	vars["AGENTRUN_AGENT_ID"] = turn.Run.AgentID.String()
	vars["AGENTRUN_TURN"] = strconv.FormatUint(turn.Run.Turn, 10)
	env := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}

// commandEvents are the entries of the history about a program's end.
func commandEvents(r command.Result) ([]storage.Event, error) {
	var events []storage.Event
	add := func(kind storage.EventKind, data any) error {
		e, err := storage.NewEvent(kind, data)
		events = append(events, e)
		return err
	}
	var err error
	if r.Stderr.Text != "" {
		err = add(storage.EventCommandStderr, storage.CommandText{Text: r.Stderr.Text, LeftOut: r.Stderr.LeftOut})
	}
	if err == nil && r.Started {
		err = add(storage.EventCommandExited, storage.CommandExited{
			Code: r.Exit.Code, Signal: r.Exit.Signal, Seconds: r.Took.Seconds(),
		})
	}
	if r.Failure != "" {
		if err == nil && r.Output.Text != "" {
			err = add(storage.EventCommandStdout, storage.CommandText{Text: r.Output.Text, LeftOut: r.Output.LeftOut})
		}
		return events, err // There is no output of which more could be said.
	}
	if err == nil && r.Output.LeftOut > 0 {
		err = add(storage.EventOutputShortened, storage.OutputShortened{LeftOut: r.Output.LeftOut})
	}
	if err == nil && r.Output.Replaced {
		err = add(storage.EventOutputNotUTF8, nil)
	}
	return events, err
}
