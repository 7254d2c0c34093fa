package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"agentrun/web/gen"
)

func runsCommand() *cli.Command {
	return group(&cli.Command{
		Name:  "runs",
		Usage: "look at runs, and hold them",
		Commands: []*cli.Command{
			leaf(&cli.Command{
				Name: "list", Usage: "list runs, newest first",
				Flags: managementFlags(runFilters()...),
			}, nil, runsList),
			leaf(&cli.Command{Name: "show", Usage: "show a run and its transcript", Flags: managementFlags()},
				[]string{"RUN"}, onRun(runsShow)),
			leaf(&cli.Command{
				Name: "events", Usage: "show the history of a run",
				Flags: managementFlags(&cli.BoolFlag{
					Name: "follow", Sources: env("follow"), Usage: "go on with what happens, until the run is terminated",
				}),
			}, []string{"RUN"}, onRun(runsEvents)),
			leaf(&cli.Command{Name: "files", Usage: "list the files in the workspace of a run", Flags: managementFlags()},
				[]string{"RUN"}, onRun(runsFiles)),
			leaf(&cli.Command{
				Name: "download", Usage: "get a file from the workspace of a run",
				Flags: managementFlags(&cli.StringFlag{
					Name: "output", Aliases: []string{"o"}, Sources: env("output"), TakesFile: true, Validator: notEmpty,
					Usage: "the file to write or replace, - for standard output (default, unless that is a terminal)",
				}),
			}, []string{"RUN", "PATH"}, onRun(runsDownload)),
			leaf(&cli.Command{
				Name: "archive", Usage: "get all files from the workspace of a run, as a ZIP archive",
				Flags: managementFlags(&cli.StringFlag{
					Name: "output", Aliases: []string{"o"}, Sources: env("output"), TakesFile: true, Validator: notEmpty,
					Usage: "the file to write or replace, - for standard output (default, unless that is a terminal)",
				}),
			}, []string{"RUN"}, onRun(runsArchive)),
			leaf(&cli.Command{Name: "input", Usage: "give a run more input; - reads it from standard input", Flags: managementFlags()},
				[]string{"RUN", "TEXT="}, onRun(runsInput)),
			leaf(&cli.Command{Name: "stop", Usage: "end a run and all its processes for good", Flags: managementFlags()},
				[]string{"RUN"}, onRun(runsStop)),
			leaf(&cli.Command{Name: "delete", Usage: "end a run and erase its transcript, history and workspace", Flags: managementFlags()},
				[]string{"RUN"}, onRun(runsDelete)),
		},
	})
}

func runTable(runs ...gen.Run) table {
	t := table{head: []string{"ID", "NAME", "STATUS", "TURNS", "WAITING", "CREATED", "REASON"}}
	for _, r := range runs {
		t.rows = append(t.rows, []string{
			r.ID.String(), r.Name, string(r.Status), strconv.Itoa(r.Turns), strconv.Itoa(r.WaitingInputs),
			at(r.CreatedAt), r.Reason.Or(""),
		})
	}
	return t
}

// onRun makes the action of a command whose first argument names a run; args
// are the others.
func onRun(do func(ctx context.Context, cmd *cli.Command, run uuid.UUID, args []string) error) action {
	return func(ctx context.Context, cmd *cli.Command, args []string) error {
		id, err := uuid.Parse(args[0])
		if err != nil {
			return errors.Errorf("%q is not the ID of a run", args[0])
		}
		return do(ctx, cmd, id, args[1:])
	}
}

func runsShow(ctx context.Context, cmd *cli.Command, id uuid.UUID, _ []string) error {
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		run, err := c.GetRun(ctx, gen.GetRunParams{Run: id})
		if err != nil {
			return err
		}
		if cmd.Bool("json") {
			return show(cmd, run, table{})
		}
		return printRun(cmd, run)
	})
}

func printRun(cmd *cli.Command, run *gen.RunDetail) error {
	out := cmd.Root().Writer
	t := table{head: []string{"ID", run.ID.String()}, rows: [][]string{
		{"NAME", run.Name},
		{"AGENT", fmt.Sprintf("%s (revision %d)", run.AgentID, run.Revision)},
		{"STATUS", string(run.Status)},
		{"TURNS", strconv.Itoa(run.Turns)},
		{"WAITING", strconv.Itoa(run.WaitingInputs)},
		{"CREATED", at(run.CreatedAt)},
		{"UPDATED", at(run.UpdatedAt)},
	}}
	if reason, ok := run.Reason.Get(); ok {
		t.rows = append(t.rows, []string{"REASON", reason})
	}
	if err := t.print(out); err != nil {
		return err
	}
	for _, m := range run.Transcript {
		if _, err := fmt.Fprintf(out, "\n%s:\n%s\n", m.Role, printableText(m.Text)); err != nil {
			return err
		}
	}
	return nil
}
