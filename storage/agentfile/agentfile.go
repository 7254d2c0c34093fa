// Package agentfile reads the agent file: the YAML in which a person says what
// an agent is. It knows the file's fields and their rules and tells every fault
// with its line and field. It stores nothing and runs nothing, and imports
// nothing of agentrun.
package agentfile

import (
	"fmt"
	"strings"

	"github.com/go-faster/errors"
)

// MaxSize bounds the file, in bytes.
const MaxSize = 1 << 20

// File is an agent file as it was written, with what it says.
type File struct {
	Source     string
	Definition Definition
}

// Definition is what an agent file says. Exactly one of Command and Model is
// set. Its JSON form is kept on disk: fields may be added, never renamed.
type Definition struct {
	Name string `json:"name"`
	// Command is the program of the agent with its arguments.
	Command []string `json:"command,omitempty"`
	// Env is added to the environment of the agent's commands.
	Env map[string]string `json:"env,omitempty"`
	// Restart says that a turn of the program may be run again when a server's
	// end cut it off.
	Restart bool `json:"restart,omitempty"`
	// Model is the agent's model as provider/model.
	Model string `json:"model,omitempty"`
	// Instructions are the model's system prompt.
	Instructions string `json:"instructions,omitempty"`
	// Tools are the names of the built-in tools offered to the model.
	Tools []string `json:"tools,omitempty"`
	// MCP are the tool servers offered to the model.
	MCP []ToolServer `json:"mcp,omitempty"`
	// Gateway are the names of the providers whose models a program may use
	// without a key of its own, none twice. Where a program knows of one provider
	// of a kind only, that is the first. Empty means none.
	Gateway []string `json:"gateway,omitempty"`
	// Network is what the agent's commands may reach. Zero means nothing.
	Network Network `json:"network,omitzero"`
	// Secrets are the names of environment variables of the agent's commands
	// whose values only the server has: 64 capital letters, digits and
	// underscores at most, none of them in Env, none twice. Empty means none.
	Secrets []string `json:"secrets,omitempty"`
	// Read are paths of the machine that the agent's commands may read besides
	// what every command may: absolute and clean, none twice. They are what the
	// file asks for; whether the server permits them is not decided here. Empty
	// means none.
	Read   []string `json:"read,omitempty"`
	Limits Limits   `json:"limits,omitzero"`
}

// Resumes says whether a turn that a server's end cut off may be begun again: a
// model's goes on from what is recorded of it, a program's starts anew.
func (d Definition) Resumes() bool { return d.Model != "" || d.Restart }

// ToolServer is a tool server of a model; exactly one of Command and URL is set.
type ToolServer struct {
	Name    string   `json:"name"`
	Command []string `json:"command,omitempty"`
	URL     string   `json:"url,omitempty"`
}

// ErrInvalid says that an agent file has faults. It always comes inside *Error.
var ErrInvalid = errors.New("invalid agent file")

// Error lists everything that is wrong with an agent file.
type Error struct {
	// Faults is never empty, and ordered by line.
	Faults []Fault
}

// Fault is one thing that is wrong with an agent file.
type Fault struct {
	// Line counts from 1; 0 means the file as a whole.
	Line int
	// Field is the path of the field, such as limits.turn; empty when the
	// fault is not in a field.
	Field string
	// Problem says what is wrong and what is wanted.
	Problem string
}

func (f Fault) String() string {
	text := f.Problem
	if f.Field != "" {
		text = f.Field + ": " + text
	}
	if f.Line > 0 {
		text = fmt.Sprintf("line %d: %s", f.Line, text)
	}
	return text
}

func (e *Error) Error() string {
	texts := make([]string, len(e.Faults))
	for i, f := range e.Faults {
		texts[i] = f.String()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns ErrInvalid.
func (e *Error) Unwrap() error { return ErrInvalid }
