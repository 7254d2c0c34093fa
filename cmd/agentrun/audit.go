package main

import (
	"context"
	"strconv"

	"github.com/urfave/cli/v3"

	"agentrun/web/gen"
)

func auditCommand() *cli.Command {
	return leaf(&cli.Command{
		Name: "audit", Usage: "show who did what, newest first",
		Flags: managementFlags(
			&cli.StringFlag{Name: "org", Sources: env("org"), Usage: "only what was done in the organisation with this ID or name"},
			&cli.IntFlag{Name: "limit", Value: 50, Sources: env("limit"), Usage: "the most entries to show", Validator: atLeast(1)},
		),
	}, nil, audit)
}

func audit(ctx context.Context, cmd *cli.Command, _ []string) error {
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		entries, err := auditEntries(ctx, c, gen.ListAuditParams{Org: orgOf(cmd)}, cmd.Int("limit"))
		if err != nil {
			return err
		}
		t := table{head: []string{"NUMBER", "AT", "WHO", "FROM", "WHAT", "TO", "DETAIL"}}
		for _, e := range entries {
			t.rows = append(t.rows, []string{
				strconv.FormatInt(e.Seq, 10), at(e.At), e.Actor.Name, e.Actor.From.Or(unknown), e.Action, e.Subject.Name, e.Detail.Or(""),
			})
		}
		return show(cmd, entries, t)
	})
}

// auditEntries reads up to limit entries, page by page.
func auditEntries(ctx context.Context, c *gen.Client, params gen.ListAuditParams, limit int) ([]gen.AuditEntry, error) {
	entries := []gen.AuditEntry{}
	for {
		params.Limit = gen.NewOptInt(min(limit-len(entries), maxPage))
		page, err := c.ListAudit(ctx, params)
		if err != nil {
			return nil, err
		}
		entries = append(entries, page.Entries...)
		if !page.Next.Set || len(entries) == limit {
			return entries, nil
		}
		params.Before = page.Next
	}
}
