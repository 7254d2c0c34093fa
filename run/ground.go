package run

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"agentrun/run/gateway"
	"agentrun/run/sandbox"
	"agentrun/run/secret"
	"agentrun/storage"
	"agentrun/storage/agentfile"
)

// ground is what the processes of a turn stand on: the workspace, the
// environment, the secrets and the way out.
type ground struct {
	def     agentfile.Definition
	dir     string
	env     []string
	secrets secret.Set
	way     *way
}

// prepare prepares the ground of a turn, or says for people why it cannot.
func (s *Server) prepare(turn *storage.Turn) (g *ground, failure string, err error) {
	return s.prepareWith(turn, gateway.Models{})
}

// prepareWith is prepare for a turn whose commands may use models.
func (s *Server) prepareWith(turn *storage.Turn, models gateway.Models) (g *ground, failure string, err error) {
	def := turn.Definition
	if failure := s.readable(def.Read); failure != "" {
		return nil, failure, nil
	}
	secrets, err := s.secrets.Lookup(def.Secrets)
	if err != nil {
		return nil, err.Error(), nil //nolint:nilerr // It is for the agent's owner.
	}
	id := turn.Run.ID.UUID
	if err := s.workspaces.Ensure(id); err != nil {
		return nil, "", err
	}
	if err := s.workspaces.Own(id, s.sandbox.Owner()); err != nil {
		return nil, "", err
	}
	way, err := openWay(def.Network.Allow, models, s.log)
	if err != nil {
		return nil, err.Error(), nil //nolint:nilerr // It is for the agent's owner.
	}
	dir := s.workspaces.Path(id)
	env := append(environment(turn, dir), way.environ()...)
	return &ground{def: def, dir: dir, env: append(env, secrets.Environ()...), secrets: secrets, way: way}, "", nil
}

// command returns what every command of the turn has in common.
func (g *ground) command(args []string) sandbox.Command {
	return sandbox.Command{
		Args: args, Dir: g.dir, Env: g.env, Limits: limitsOf(g.def.Limits), Read: g.def.Read, Proxy: g.way.proxy(),
	}
}

// mask stands in front of what a process or a tool tells.
func (g *ground) mask(w io.Writer) io.WriteCloser { return g.secrets.Masker(w) }

// client reaches the hosts that the agent file allows; nil when it allows none.
func (g *ground) client() *http.Client {
	if !g.way.toHosts {
		return nil
	}
	return g.way.gateway.Client()
}

// close takes the way out away and returns what was refused on it.
func (g *ground) close() []storage.NetworkRefused {
	g.way.close()
	refused := g.way.refused()
	for i := range refused {
		refused[i].Host = g.secrets.Mask(refused[i].Host)
	}
	return refused
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

// events writes what happened as entries of a history; the first error stays.
type events struct {
	list []storage.Event
	err  error
}

func (e *events) add(kind storage.EventKind, data any) {
	if e.err != nil {
		return
	}
	var event storage.Event
	if event, e.err = storage.NewEvent(kind, data); e.err == nil {
		e.list = append(e.list, event)
	}
}

// addRefused adds where a turn was not let go.
func (e *events) addRefused(refused []storage.NetworkRefused) {
	for _, n := range refused {
		e.add(storage.EventNetworkRefused, n)
	}
}
