package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/urfave/cli/v3"

	"agentrun/web/gen"
)

func usageCommand() *cli.Command {
	return leaf(&cli.Command{
		Name:        "usage",
		Usage:       "show what models took for each organisation, agent and key",
		Description: "Tokens of requests (those from a cache in brackets) and answers, and what they cost by the prices given to serve --provider.",
		Flags:       managementFlags(),
	}, nil, usage)
}

func usage(ctx context.Context, cmd *cli.Command, _ []string) error {
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		all, err := c.ListUsage(ctx)
		if err != nil {
			return err
		}
		t := table{head: []string{"WHAT", "NAME", "ID", "CALLS", "INPUT", "OUTPUT", "COST"}}
		for _, u := range all {
			t.rows = append(t.rows, append([]string{string(u.Kind), u.Name, u.ID.String()}, spentCells(u.Spent)...))
		}
		return show(cmd, all, t)
	})
}

func spentCells(s gen.Spent) []string {
	return []string{
		strconv.FormatInt(s.Calls, 10), fmt.Sprintf("%d (%d)", s.Input, s.Cached), strconv.FormatInt(s.Output, 10),
		fmt.Sprintf("$%.4f", float64(s.Cost)/1e6),
	}
}
