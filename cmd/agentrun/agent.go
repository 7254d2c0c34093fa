package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"unicode/utf8"

	"github.com/go-faster/errors"
	"github.com/urfave/cli/v3"

	"agentrun/storage/agentfile"
	"agentrun/web/gen"
)

func agentCommand() *cli.Command {
	on := []string{"AGENT"}
	return group(&cli.Command{
		Name:  "agent",
		Usage: "manage agents",
		Commands: []*cli.Command{
			leaf(&cli.Command{
				Name: "apply", Usage: "create the agent of an agent file, or update it",
				Flags: managementFlags(
					&cli.StringFlag{
						Name: "file", Aliases: []string{"f"}, Sources: env("file"), Required: true, TakesFile: true,
						Usage: "the agent file, - for standard input",
					},
					&cli.StringFlag{Name: "org", Sources: env("org"), Usage: "ID or name of the organisation (default: default)"},
				),
			}, nil, agentApply),
			leaf(&cli.Command{Name: "list", Usage: "list the agents", Flags: managementFlags()}, nil, agentList),
			leaf(&cli.Command{Name: "show", Usage: "show an agent", Flags: managementFlags()}, on,
				onAgent(func(ctx context.Context, c *gen.Client, agent string) (*gen.Agent, error) {
					return c.GetAgent(ctx, gen.GetAgentParams{Agent: agent})
				})),
			leaf(&cli.Command{
				Name: "export", Usage: "print the agent file in force, or an earlier one",
				Flags: managementFlags(&cli.IntFlag{
					Name: "revision", Sources: env("revision"), Validator: atLeast(1), Usage: "the number of a revision (default: the one in force)",
				}),
			}, on, agentExport),
			leaf(&cli.Command{Name: "revisions", Usage: "list the agent files that were ever in force, newest first", Flags: managementFlags()},
				on, agentRevisions),
			leaf(&cli.Command{Name: "archive", Usage: "take no new runs of an agent", Flags: managementFlags()}, on,
				onAgent(func(ctx context.Context, c *gen.Client, agent string) (*gen.Agent, error) {
					return c.ArchiveAgent(ctx, gen.ArchiveAgentParams{Agent: agent})
				})),
			leaf(&cli.Command{Name: "unarchive", Usage: "take new runs of an agent again", Flags: managementFlags()}, on,
				onAgent(func(ctx context.Context, c *gen.Client, agent string) (*gen.Agent, error) {
					return c.UnarchiveAgent(ctx, gen.UnarchiveAgentParams{Agent: agent})
				})),
			leaf(&cli.Command{
				Name: "delete", Usage: "delete an agent and stop its runs in flight", Flags: managementFlags(),
			}, on,
				onAgent(func(ctx context.Context, c *gen.Client, agent string) (*gen.Agent, error) {
					return c.DeleteAgent(ctx, gen.DeleteAgentParams{Agent: agent})
				})),
		},
	})
}

// onAgent makes the action of a command that names one agent and shows it.
func onAgent(do func(context.Context, *gen.Client, string) (*gen.Agent, error)) action {
	return func(ctx context.Context, cmd *cli.Command, args []string) error {
		return withManagement(ctx, cmd, func(c *gen.Client) error {
			agent, err := do(ctx, c, args[0])
			if err != nil {
				return err
			}
			return show(cmd, agent, agentTable(*agent))
		})
	}
}

func agentApply(ctx context.Context, cmd *cli.Command, _ []string) error {
	path := cmd.String("file")
	source, err := readAgentFile(path)
	if err != nil {
		return err
	}
	req := &gen.ApplyAgentReq{File: source}
	if org := cmd.String("org"); org != "" {
		req.Org = gen.NewOptString(org)
	}
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		applied, err := c.ApplyAgent(ctx, req)
		var problem *gen.ProblemStatusCode
		if errors.As(err, &problem) && problem.StatusCode == http.StatusUnprocessableEntity {
			return errors.Errorf("%s: %s", path, problem.Response.Detail)
		}
		if err != nil {
			return err
		}
		for _, w := range applied.Warnings {
			if _, err := fmt.Fprintf(os.Stderr, "agentrun: warning: %s\n", w); err != nil {
				return err
			}
		}
		return show(cmd, applied.Agent, agentTable(applied.Agent))
	})
}

// readAgentFile reads an agent file as it is. Of one that is too long it reads
// enough to be refused.
func readAgentFile(path string) (string, error) {
	file := os.Stdin
	if path != "-" {
		var err error
		if file, err = os.Open(path); err != nil {
			return "", err
		}
		defer file.Close() // It was only read.
	}
	source, err := io.ReadAll(io.LimitReader(file, agentfile.MaxSize+1))
	if err != nil {
		return "", err
	}
	// On its way in JSON other text would be changed without a word.
	if whole := len(source) <= agentfile.MaxSize; whole && !utf8.Valid(source) {
		return "", errors.Errorf("%s: the file is not UTF-8 text", path)
	}
	return string(source), nil
}

func agentList(ctx context.Context, cmd *cli.Command, _ []string) error {
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		agents, err := c.ListAgents(ctx, gen.ListAgentsParams{})
		if err != nil {
			return err
		}
		return show(cmd, agents, agentTable(agents...))
	})
}

func agentExport(ctx context.Context, cmd *cli.Command, args []string) error {
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		if cmd.IsSet("revision") {
			return exportRevision(ctx, cmd, c, args[0])
		}
		file, err := c.ExportAgent(ctx, gen.ExportAgentParams{Agent: args[0]})
		if err != nil {
			return err
		}
		if cmd.Bool("json") {
			return show(cmd, file, table{})
		}
		_, err = io.WriteString(cmd.Root().Writer, file.File)
		return err
	})
}

func exportRevision(ctx context.Context, cmd *cli.Command, c *gen.Client, agent string) error {
	revision, err := c.GetRevision(ctx, gen.GetRevisionParams{Agent: agent, Revision: cmd.Int("revision")})
	if err != nil {
		return err
	}
	if cmd.Bool("json") {
		return show(cmd, revision, table{})
	}
	_, err = io.WriteString(cmd.Root().Writer, revision.File)
	return err
}

func agentRevisions(ctx context.Context, cmd *cli.Command, args []string) error {
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		revisions, err := c.ListRevisions(ctx, gen.ListRevisionsParams{Agent: args[0]})
		if err != nil {
			return err
		}
		t := table{head: []string{"REVISION", "APPLIED", "BY"}}
		for _, r := range revisions {
			t.rows = append(t.rows, []string{strconv.Itoa(r.Number), at(r.CreatedAt), r.CreatedBy.Or(unknown)})
		}
		return show(cmd, revisions, t)
	})
}

func agentTable(agents ...gen.Agent) table {
	t := table{head: []string{"ID", "NAME", "REVISION", "ARCHIVED", "UPDATED"}}
	for _, a := range agents {
		t.rows = append(t.rows, []string{
			a.ID.String(), a.Name, strconv.Itoa(a.Revision), yesNo(a.Archived), at(a.UpdatedAt),
		})
	}
	return t
}
