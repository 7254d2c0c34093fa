// Package sandbox runs the processes of agents. A Runner is the one way to
// start a process on behalf of a run: it decides what the process may reach and
// sees to it that nothing of it is left when it is over.
//
// The package knows nothing of runs, turns or storage, and imports nothing of
// agentrun.
package sandbox

import (
	"context"
	"io"
	"net"
	"time"

	"github.com/go-faster/errors"
)

// Path is where a command's program is looked for, and the PATH that it sees.
const Path = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// StopGrace is how long a command has between SIGTERM and SIGKILL.
const StopGrace = 2 * time.Second

// ErrNotStarted says that a command's program could not be started: it does not
// exist, is no program, or may not be run. The text is for the agent's owner.
var ErrNotStarted = errors.New("command not started")

// Command is a process to run.
type Command struct {
	// Args are the program and its arguments; a program without a slash is
	// looked for in Path, another one relative to Dir.
	Args []string
	// Dir is the absolute path of the workspace, the working directory.
	Dir string
	// Env is the whole environment, as NAME=value.
	Env []string
	// Stdin is what the process reads; nil means nothing. Run waits for its Read:
	// one that can wait for something must be an io.Closer too, which is closed
	// once the process is over, and whose Close ends the Read.
	Stdin io.Reader
	// Stdout and Stderr receive what it writes. They must take everything
	// without an error, and are not written to after Run returned.
	Stdout, Stderr io.Writer
	// Limits bound what it may take.
	Limits Limits
	// Read are more absolute paths of the host that it may read.
	Read []string
	// Proxy, if not nil, is called once, before the command starts, with what
	// listens at ProxyAddress of the command's own loopback. It must return at
	// once, and whoever it hands the listener to closes it.
	Proxy func(net.Listener)
}

// Exit is how a process ended.
type Exit struct {
	// Code is the exit code, -1 when a signal ended the process.
	Code int
	// Signal names the signal that ended the process, empty when none did.
	Signal string
	// Stopped is true when the context ended before the process did.
	Stopped bool
	// Reached is the limit of the command as a whole that ended it, if one did.
	Reached Limit
}

// Limit names one of Limits.
type Limit string

// MemoryLimit is Limits.Memory.
const MemoryLimit Limit = "memory"

// Runner runs commands at one level of confinement.
type Runner interface {
	// Level names the confinement, for people.
	Level() string

	// Owner is the user of the host that commands run as, to whom workspaces
	// have to belong.
	Owner() int

	// Run starts the command and returns once it is over and what it left
	// behind is ended too. When ctx ends first, everything of the command gets
	// SIGTERM, and SIGKILL after StopGrace; Run then still returns how the
	// process ended, and a nil error. Errors: ErrNotStarted; anything else is a
	// fault of our own.
	Run(ctx context.Context, cmd Command) (Exit, error)
}
