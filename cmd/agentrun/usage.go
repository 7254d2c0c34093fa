package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/urfave/cli/v3"

	"agentrun/web/gen"
)

func usageCommand() *cli.Command {
	return leaf(&cli.Command{
		Name:        "usage",
		Usage:       "show what models took for each organisation, agent and key, or by day",
		Description: "Tokens of requests (those from a cache in brackets) and answers, and what they cost by the prices given to serve --provider.",
		Flags: managementFlags(
			&cli.BoolFlag{Name: "by-day", Sources: env("by-day"), Usage: "show what each organisation's models took on each of the last 30 days, by UTC"},
			&cli.StringFlag{Name: "org", Sources: env("org"), Usage: "with --by-day only the organisation with this ID or name"},
		),
	}, nil, usage)
}

func usage(ctx context.Context, cmd *cli.Command, _ []string) error {
	if cmd.Bool("by-day") {
		return usageByDay(ctx, cmd)
	}
	if typed(cmd, "org") {
		return misuse("--org is for --by-day")
	}
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

// dayOfOrg is what an organisation's models took on a day.
type dayOfOrg struct {
	Day   string    `json:"day"`
	OrgID string    `json:"org_id"`
	Org   string    `json:"org"`
	Spent gen.Spent `json:"spent"`
}

func usageByDay(ctx context.Context, cmd *cli.Command) error {
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		orgs, err := orgsOf(ctx, c, cmd.String("org"))
		if err != nil {
			return err
		}
		all := []dayOfOrg{}
		t := table{head: []string{"DAY", "ORGANISATION", "CALLS", "INPUT", "OUTPUT", "COST"}}
		for _, org := range orgs {
			days, err := c.ListDailyUsage(ctx, gen.ListDailyUsageParams{Org: org.ID.String()})
			if err != nil {
				return err
			}
			for _, d := range days {
				day := dayOfOrg{d.Day.Format(time.DateOnly), org.ID.String(), org.Name, d.Spent}
				all = append(all, day)
				t.rows = append(t.rows, append([]string{day.Day, day.Org}, spentCells(day.Spent)...))
			}
		}
		return show(cmd, all, t)
	})
}

// orgsOf returns the organisation with this ID or name, and all without one.
func orgsOf(ctx context.Context, c *gen.Client, name string) ([]gen.Org, error) {
	if name == "" {
		return c.ListOrgs(ctx)
	}
	org, err := c.GetOrg(ctx, gen.GetOrgParams{Org: name})
	if err != nil {
		return nil, err
	}
	return []gen.Org{*org}, nil
}

func spentCells(s gen.Spent) []string {
	return []string{
		strconv.FormatInt(s.Calls, 10), fmt.Sprintf("%d (%d)", s.Input, s.Cached), strconv.FormatInt(s.Output, 10),
		fmt.Sprintf("$%.4f", float64(s.Cost)/1e6),
	}
}
