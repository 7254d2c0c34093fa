// Command agentrun is the whole product in one binary: the server, the tools
// that manage it, a client of its API, and a demonstration. This package parses
// flags, wires the rooms together, and prints; it holds no rule of its own.
package main

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/go-faster/errors"
	"github.com/urfave/cli/v3"
)

// The exit codes.
const (
	exitDone   = 0
	exitFailed = 1 // One line on standard error says what failed.
	exitUsage  = 2
	// The command run ends so when its run does; one line on standard error
	// names the run.
	exitTechnicalError = 3
	exitTerminated     = 4
)

// A process that is to be the first of a sandbox does not get here: run/sandbox
// takes it over before.
func main() {
	os.Exit(execute(context.Background(), os.Args))
}

// execute runs the command line and returns the exit code.
func execute(ctx context.Context, args []string) int {
	err := newRoot().Run(ctx, args)
	var failed *failure
	var end *ending
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &end):
		fmt.Fprintf(os.Stderr, "agentrun: %s\n", oneLine(end))
		return end.code
	case errors.As(err, &failed):
		fmt.Fprintf(os.Stderr, "agentrun: %s\n", oneLine(failed.err))
		return exitFailed
	default:
		fmt.Fprintf(os.Stderr, "agentrun: %s; see '%s --help'\n", oneLine(err), args[0])
		return exitUsage
	}
}

// oneLine is the text of an error, of which joined ones have several lines and
// others quote what somebody else wrote.
func oneLine(err error) string {
	return printable(strings.ReplaceAll(strings.TrimSpace(err.Error()), "\n", "; "))
}

// failure is an error of a command that was understood. Whatever else comes
// back from the parser is wrong usage.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }

// ending is a command that did all it had to, for a run that did not finish.
type ending struct {
	code int // The exit code.
	text string
}

func (e *ending) Error() string { return e.text }

// misuse is an error of a command whose flags do not go together.
type misuse string

func (m misuse) Error() string { return string(m) }

func newRoot() *cli.Command {
	root := &cli.Command{
		Name:                  "agentrun",
		Usage:                 "run pre-configured AI agents behind a small HTTP API",
		Version:               buildVersion(),
		EnableShellCompletion: true,
		Suggest:               true,
		ExitErrHandler:        func(context.Context, *cli.Command, error) {},
		Commands: []*cli.Command{
			serveCommand(), runCommand(), demoCommand(), doctorCommand(), versionCommand(),
			orgCommand(), userCommand(), tokenCommand(), agentCommand(), keyCommand(), runsCommand(), usageCommand(),
			auditCommand(), checkCommand(), checkDataCommand(),
		},
	}
	group(root)
	return root
}

// group makes a command that only holds others: alone it prints its help, and
// a word that is none of its commands is wrong usage.
func group(cmd *cli.Command) *cli.Command {
	cmd.OnUsageError = usageError
	cmd.Action = func(_ context.Context, cmd *cli.Command) error {
		if name := cmd.Args().First(); name != "" {
			return errors.Errorf("unknown command %q", name)
		}
		if cmd.Root() == cmd {
			return cli.ShowRootCommandHelp(cmd)
		}
		return cli.ShowSubcommandHelp(cmd)
	}
	return cmd
}

// action is what a command does with its positional arguments.
type action func(ctx context.Context, cmd *cli.Command, args []string) error

// leaf makes a command that does something. params names its positional
// arguments: "RUN" has to be there and not be empty, "TEXT=" has to be there
// and may be empty, "[INPUT]" may be left out and may be empty. Only the last
// ones can be left out, and args then is that much shorter than params.
func leaf(cmd *cli.Command, params []string, do action) *cli.Command {
	for _, p := range params {
		cmd.ArgsUsage += " " + strings.TrimSuffix(p, "=")
	}
	cmd.OnUsageError = usageError
	cmd.Action = func(ctx context.Context, cmd *cli.Command) error {
		args := cmd.Args().Slice()
		if err := checkArguments(params, args); err != nil {
			return errors.Errorf("%s: %v", cmd.FullName(), err)
		}
		err := do(ctx, cmd, args)
		var wrong misuse
		var end *ending
		if err == nil || errors.As(err, &wrong) || errors.As(err, &end) {
			return err
		}
		return &failure{err}
	}
	return cmd
}

// checkArguments says which argument is missing, empty or one too many, by the
// rules for params that leaf states.
func checkArguments(params, args []string) error {
	if len(args) > len(params) {
		return errors.Errorf("unexpected argument %q", args[len(params)])
	}
	for i, p := range params {
		name, mayBeEmpty := strings.CutSuffix(p, "=")
		optional := strings.HasPrefix(p, "[")
		switch {
		case i >= len(args) && !optional:
			return errors.Errorf("%s is missing", name)
		case i < len(args) && args[i] == "" && !mayBeEmpty && !optional:
			return errors.Errorf("%s is empty", name)
		}
	}
	return nil
}

func usageError(_ context.Context, cmd *cli.Command, err error, _ bool) error {
	return errors.Errorf("%s: %v", cmd.FullName(), err)
}
