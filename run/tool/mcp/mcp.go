// Package mcp gives a model the tools of servers that speak the Model Context
// Protocol: commands, which run in the sandbox like any other command of the
// run, and servers elsewhere, which are reached by streamable HTTP.
//
// A server is a stranger, and so is what it says. Its process is started by
// sandbox.Runner and by nothing else, its hosts are those that the given HTTP
// client allows, and everything that it sends is bounded. What it does wrong is
// a result that failed or a problem to be shown, never an error of the turn. It
// gets nothing back but calls: no sampling, no roots, no elicitation, no OAuth;
// its notifications are ignored, and its tools are those of its first list.
//
// The package keeps nothing and knows nothing of runs, turns or storage. It
// masks no secrets: results and problems have what the servers said.
package mcp

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"

	"agentrun/run/model"
	"agentrun/run/sandbox"
)

// Config is what Open needs. Sandbox and Command may be nil when no server is a
// command.
type Config struct {
	Servers []Server
	Sandbox sandbox.Runner
	// Command makes a command of the turn from its program and arguments. Its
	// streams are set here.
	Command func(args []string) sandbox.Command
	// HTTP reaches the hosts that are allowed; nil means that none is.
	HTTP *http.Client
	// Patience bounds how long a server has to start, say hello and list its
	// tools; 0 means 30 seconds.
	Patience time.Duration
	// CallLimit bounds one call; 0 means 5 minutes.
	CallLimit time.Duration
}

// The bounds of a Config that names none.
const (
	DefaultPatience  = 30 * time.Second
	DefaultCallLimit = 5 * time.Minute
)

// Server is a tool server; exactly one of Command and URL is set.
type Server struct {
	Name    string
	Command []string
	URL     string
}

// Problem is why a server has none, or not all, of its tools here.
type Problem struct {
	Server, Reason string
}

// Servers are the tool servers of one turn. It may be used by many goroutines.
type Servers struct {
	cfg Config
	// life ends all calls, and whoever connects for one.
	life     context.Context
	end      context.CancelFunc
	servers  []*server
	problems []Problem
	tools    []model.Tool
	// behind says by a tool's name which tool of which server it is.
	behind map[string]offered
}

// offered is a tool of a server by the server's own name for it.
type offered struct {
	server *server
	tool   string
}

// Open connects to all servers at once and returns when each has connected or
// failed, at the latest when ctx ends. A server that failed is no error: its
// tools are missing, and Problems says why. The servers live until Close.
func Open(ctx context.Context, cfg Config) *Servers {
	if cfg.Patience == 0 {
		cfg.Patience = DefaultPatience
	}
	if cfg.CallLimit == 0 {
		cfg.CallLimit = DefaultCallLimit
	}
	s := &Servers{cfg: cfg, behind: map[string]offered{}}
	s.life, s.end = context.WithCancel(context.Background())
	for _, server := range cfg.Servers {
		s.servers = append(s.servers, newServer(server, &s.cfg))
	}
	found := make([]listing, len(s.servers))
	var opening sync.WaitGroup
	for i, server := range s.servers {
		opening.Go(func() { found[i] = server.open(ctx) })
	}
	opening.Wait()
	for i, server := range s.servers {
		s.add(server, found[i])
	}
	return s
}

// add offers the tools of a server under names that no other has.
func (s *Servers) add(from *server, found listing) {
	for _, reason := range found.problems {
		s.problems = append(s.problems, Problem{Server: from.Name, Reason: reason})
	}
	for _, tool := range found.tools {
		name := uniqueName(from.Name, tool.Name, s.Has)
		s.behind[name] = offered{server: from, tool: tool.Name}
		tool.Name = name
		s.tools = append(s.tools, tool)
	}
}

// Problems are what went wrong in Open, for people.
func (s *Servers) Problems() []Problem { return slices.Clone(s.problems) }

// Tools are what the model may call, in the order of the servers and of the
// tools' names, so that the same servers make the same request. Names are
// server__tool in the characters that providers take, and unique.
func (s *Servers) Tools() []model.Tool { return slices.Clone(s.tools) }

// Has says whether a tool of that name is there.
func (s *Servers) Has(name string) bool {
	_, ok := s.behind[name]
	return ok
}

// ReadOnly says whether a tool is known to change nothing. None is: a server's
// own word for it is the hint of a stranger.
func (*Servers) ReadOnly(string) bool { return false }

// Close ends all servers and calls. It returns when nothing of them is left,
// which is a matter of seconds. The idle connections of the HTTP client are its
// owner's.
func (s *Servers) Close() {
	s.end()
	var closing sync.WaitGroup
	for _, server := range s.servers {
		closing.Go(server.close)
	}
	closing.Wait()
}
