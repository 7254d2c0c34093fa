// Package tool has the tools that come with agentrun for agents that are
// models: what a model is told of them, and what they do when it calls one.
//
// Each tool is a file, with its words for the model beside it. What a model
// writes is data that nobody vouches for, so a tool reaches the world by three
// ways only: a run's files through storage/workspace, programs through
// run/sandbox, and hosts through a client that keeps to the agent file. What a
// model or a program did wrong is a result that says so; an error means that
// our own machinery broke.
//
// The package knows nothing of turns, steps, storage or providers.
package tool

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/run/model"
	"agentrun/run/sandbox"
	"agentrun/storage/workspace"
)

// Bounds of Place.MaxResult.
const (
	DefaultMaxResult = 32 << 10
	MinMaxResult     = 1 << 10
)

// Place is where the tools of one turn act.
type Place struct {
	// Run is whose workspace it is. Its folder exists, and belongs to
	// Sandbox.Owner.
	Run        uuid.UUID
	Workspaces *workspace.Store
	Sandbox    sandbox.Runner
	// Command returns what every command of the turn has in common; shell adds
	// the streams. It is also asked, without arguments, for the limit of a file's
	// size, and must have no effect by itself.
	Command func(args []string) sandbox.Command
	// Fetch keeps to the hosts that the agent file allows; nil means that it
	// allows none.
	Fetch *http.Client
	// Mask stands in front of whatever a tool returns or keeps, and is closed at
	// its end; nil means that there are no secrets.
	Mask func(io.Writer) io.WriteCloser
	// MaxResult is how many bytes of a result the model gets, at least
	// MinMaxResult; 0 means DefaultMaxResult. The rest goes to a file in the
	// workspace.
	MaxResult int
}

// maxResult is MaxResult with its bounds.
func (p *Place) maxResult() int {
	if p.MaxResult == 0 {
		return DefaultMaxResult
	}
	return max(p.MaxResult, MinMaxResult)
}

// builtins are all tools, sorted by their names.
var builtins = []builtin{
	define("edit_file", editFileWords, false, editFile),
	define("fetch", fetchWords, true, fetch),
	define("list_files", listFilesWords, true, listFiles),
	define("read_file", readFileWords, true, readFile),
	define("search", searchWords, true, search),
	define("shell", shellWords, false, shell),
	define("write_file", writeFileWords, false, writeFile),
}

// Names returns the names of all tools, sorted.
func Names() []string {
	names := make([]string, len(builtins))
	for i, b := range builtins {
		names[i] = b.name
	}
	return names
}

// Set are the tools of one turn. Its methods may be called by many goroutines.
type Set struct {
	place Place
	tools []opened
}

// opened is a tool that can be called.
type opened struct {
	builtin
	schema json.RawMessage
	call   call
}

// Open returns the named tools for a place, in that order, each once. Errors:
// ErrUnknownTool.
func Open(p Place, names ...string) (*Set, error) {
	s := &Set{place: p}
	for _, name := range names {
		if _, known := s.find(name); known {
			continue
		}
		i := slices.IndexFunc(builtins, func(b builtin) bool { return b.name == name })
		if i < 0 {
			return nil, errors.Wrapf(ErrUnknownTool, "%q: there are %s", name, strings.Join(Names(), ", "))
		}
		schema, call, err := builtins[i].open()
		if err != nil {
			return nil, errors.Wrapf(err, "tool %s", name)
		}
		s.tools = append(s.tools, opened{builtins[i], schema, call})
	}
	return s, nil
}

func (s *Set) find(name string) (opened, bool) {
	i := slices.IndexFunc(s.tools, func(t opened) bool { return t.name == name })
	if i < 0 {
		return opened{}, false
	}
	return s.tools[i], true
}

// Tools returns what the model is told.
func (s *Set) Tools() []model.Tool {
	tools := make([]model.Tool, len(s.tools))
	for i, t := range s.tools {
		tools[i] = model.Tool{Name: t.name, Description: t.words, Schema: t.schema}
	}
	return tools
}

// ReadOnly says whether a call of the tool may be repeated without harm when
// nobody knows whether it was made.
func (s *Set) ReadOnly(name string) bool {
	t, known := s.find(name)
	return known && t.readOnly
}

// Call does what the model wants. Errors: ctx's; a fault of our own.
func (s *Set) Call(ctx context.Context, call model.ToolCall) (model.ToolResult, error) {
	if err := ctx.Err(); err != nil {
		return model.ToolResult{}, err
	}
	r := newReport(&s.place)
	t, known := s.find(call.Name)
	if known {
		if err := t.call(ctx, &s.place, call.Arguments, r); err != nil {
			if ctx.Err() != nil {
				return model.ToolResult{}, ctx.Err()
			}
			return model.ToolResult{}, errors.Wrapf(err, "tool %s: call %s", t.name, call.ID)
		}
	} else {
		r.fail("There is no tool %q. %s", call.Name, s.offer())
	}
	text, err := r.finish(call.ID)
	if err != nil {
		return model.ToolResult{}, errors.Wrapf(err, "tool %s: call %s", call.Name, call.ID)
	}
	return model.ToolResult{CallID: call.ID, Text: text, Failed: r.failed}, nil
}

// offer names the tools for a model that called another one.
func (s *Set) offer() string {
	if len(s.tools) == 0 {
		return "There are none."
	}
	names := make([]string, len(s.tools))
	for i, t := range s.tools {
		names[i] = t.name
	}
	return "There are: " + strings.Join(names, ", ") + "."
}
