package tool

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/go-faster/errors"

	"agentrun/run/sandbox"
)

//go:embed shell.md
var shellWords string

// Bounds of a command's time, in seconds.
const (
	defaultTimeout = 120
	maxTimeout     = 24 * 60 * 60
)

// shellProgram runs its $0 with the best shell there is. Both streams become
// one, so that what comes of them is in the order in which it was written.
const shellProgram = `if command -v bash > /dev/null 2>&1; then exec bash -c "$0" 2>&1; fi; exec sh -c "$0" 2>&1`

type shellArgs struct {
	Command        string `json:"command" jsonschema:"the command line to run"`
	TimeoutSeconds int    `json:"timeout_seconds,omitempty" jsonschema:"after how many seconds the command is ended; 120 when left out"`
}

func shell(ctx context.Context, p *Place, args shellArgs, r *report) error {
	seconds := args.TimeoutSeconds
	if seconds == 0 {
		seconds = defaultTimeout
	}
	if seconds < 0 || seconds > maxTimeout {
		r.fail("Nothing was run: timeout_seconds has to be from 1 to %d.", maxTimeout)
		return nil
	}
	cmd := p.Command([]string{"sh", "-c", shellProgram, args.Command})
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, r, r
	limited, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second)
	defer cancel()
	exit, err := p.Sandbox.Run(limited, cmd)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if errors.Is(err, sandbox.ErrNotStarted) {
		r.fail("%v", err)
		return nil
	}
	if err != nil {
		return err
	}
	r.failed = exit != sandbox.Exit{}
	r.end = fmt.Sprintf("\n[%s]", ended(exit, seconds))
	return nil
}

// ended says how a command ended.
func ended(exit sandbox.Exit, seconds int) string {
	switch {
	case exit.Stopped:
		return fmt.Sprintf("timed out after %d seconds and was ended", seconds)
	case exit.Reached != "":
		return fmt.Sprintf("ended: the agent's limit of %s was reached", exit.Reached)
	case exit.Signal == "SIGXFSZ":
		return "ended by signal SIGXFSZ: the agent's limit of file size was reached"
	case exit.Signal != "":
		return "ended by signal " + exit.Signal
	}
	return fmt.Sprintf("exit code %d", exit.Code)
}
