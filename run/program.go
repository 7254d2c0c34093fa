package run

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"agentrun/run/command"
	"agentrun/run/sandbox"
	"agentrun/storage"
	"agentrun/storage/agentfile"
)

// runCommand executes the turn of an agent that is a program.
func (s *Server) runCommand(ctx context.Context, turn *storage.Turn) (outcome, error) {
	def := turn.Definition
	if len(def.Command) == 0 {
		provider, _, _ := strings.Cut(def.Model, "/")
		return outcome{failure: (&storage.ModelError{Model: def.Model, Provider: provider}).Error()}, nil
	}
	if failure := s.readable(def.Read); failure != "" {
		return outcome{failure: failure}, nil
	}
	secrets, err := s.secrets.Lookup(def.Secrets)
	if err != nil {
		return outcome{failure: err.Error()}, nil // It is for the agent's owner.
	}
	id := turn.Run.ID.UUID
	if err := s.workspaces.Ensure(id); err != nil {
		return outcome{}, err
	}
	if err := s.workspaces.Own(id, s.sandbox.Owner()); err != nil {
		return outcome{}, err
	}
	way, err := openWay(def.Network.Allow, s.log)
	if err != nil {
		return outcome{failure: err.Error()}, nil // It is for the agent's owner.
	}
	defer way.close()
	dir := s.workspaces.Path(id)
	env := append(environment(turn, dir), way.environ()...)
	result, err := command.Run(ctx, s.sandbox, command.Turn{
		Args: def.Command, Env: append(env, secrets.Environ()...), Dir: dir, Input: turn.Input,
		MaxOutput: int(def.Limits.OutputBytes()), Limits: limitsOf(def.Limits), Read: def.Read, Proxy: way.proxy(),
		Mask: func(w io.Writer) io.WriteCloser { return secrets.Masker(w) },
	})
	if err != nil {
		return outcome{}, err
	}
	way.close()
	result.Failure = secrets.Mask(result.Failure)
	refused := way.refused()
	for i := range refused {
		refused[i].Host = secrets.Mask(refused[i].Host)
	}
	events, err := commandEvents(result, refused)
	return outcome{
		output: result.Output.Text, failure: result.Failure, stopped: result.Exit.Stopped, events: events,
	}, err
}

func limitsOf(l agentfile.Limits) sandbox.Limits {
	return sandbox.Limits{
		Memory: uint64(l.MemoryBytes()), Processes: uint64(l.ProcessCount()),
		OpenFiles: uint64(l.OpenFileCount()), FileSize: uint64(l.FileSizeBytes()),
	}
}

// readable says for people why a path may not be read, if there is one.
func (s *Server) readable(paths []string) string {
	for _, path := range paths {
		if !slices.ContainsFunc(s.allowRead, func(dir string) bool {
			return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
		}) {
			return fmt.Sprintf("the agent file wants to read %s, which this server does not permit (serve --allow-read)", path)
		}
	}
	return ""
}

// runVariable tells a program of which run it is, and whoever looks for what a
// server left behind.
const runVariable = "AGENTRUN_RUN_ID"

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
	vars[runVariable] = turn.Run.ID.String()
	vars["AGENTRUN_AGENT_ID"] = turn.Run.AgentID.String()
	vars["AGENTRUN_TURN"] = strconv.FormatUint(turn.Run.Turn, 10)
	env := make([]string, 0, len(vars))
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		env = append(env, name+"="+vars[name])
	}
	return env
}

// commandEvents are the entries of the history about a program's end, and about
// where it was not let go.
func commandEvents(r command.Result, refused []storage.NetworkRefused) ([]storage.Event, error) {
	var events []storage.Event
	add := func(kind storage.EventKind, data any) error {
		e, err := storage.NewEvent(kind, data)
		events = append(events, e)
		return err
	}
	var err error
	for _, n := range refused {
		if err == nil {
			err = add(storage.EventNetworkRefused, n)
		}
	}
	if err == nil && r.Stderr.Text != "" {
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
