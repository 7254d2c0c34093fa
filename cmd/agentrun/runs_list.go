package main

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"agentrun/web/gen"
)

// runFilters are the flags that choose among runs.
func runFilters() []cli.Flag {
	const when = "a duration such as 24h ago, a day such as 2026-01-31, or a moment such as 2026-01-31T12:00:00Z"
	return []cli.Flag{
		&cli.StringFlag{Name: "org", Sources: env("org"), Usage: "only runs of the organisation with this ID or name"},
		&cli.StringFlag{Name: "agent", Sources: env("agent"), Usage: "only runs of the agent with this ID or name"},
		// AGENTRUN_KEY is the secret of the command run.
		&cli.StringFlag{Name: "key", Sources: env("key-id"), Usage: "only runs that the key with this ID made"},
		&cli.StringFlag{Name: "status", Sources: env("status"), Usage: "only runs that are running, finished, technical_error or terminated"},
		&cli.StringFlag{Name: "text", Sources: env("text"), Usage: "only runs with this text in the name, in any case, or at the beginning of the ID"},
		&cli.StringFlag{Name: "since", Sources: env("since"), Usage: "only runs made since then: " + when},
		&cli.StringFlag{Name: "until", Sources: env("until"), Usage: "only runs made before then: the same"},
		&cli.IntFlag{Name: "limit", Value: 50, Sources: env("limit"), Usage: "the most runs to list", Validator: atLeast(1)},
	}
}

func runsList(ctx context.Context, cmd *cli.Command, _ []string) error {
	params, err := runParams(cmd, time.Now())
	if err != nil {
		return err
	}
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		runs, err := listRuns(ctx, c, params, cmd.Int("limit"))
		if err != nil {
			return err
		}
		return show(cmd, runs, runTable(runs...))
	})
}

// listRuns reads up to limit runs, page by page.
func listRuns(ctx context.Context, c *gen.Client, params gen.ListRunsParams, limit int) ([]gen.Run, error) {
	runs := []gen.Run{}
	for {
		params.Limit = gen.NewOptInt(min(limit-len(runs), maxPage))
		page, err := c.ListRuns(ctx, params)
		if err != nil {
			return nil, err
		}
		runs = append(runs, page.Runs...)
		if !page.Next.Set || len(runs) == limit {
			return runs, nil
		}
		params.Before = page.Next
	}
}

// runParams are the filters that the flags ask for.
func runParams(cmd *cli.Command, now time.Time) (gen.ListRunsParams, error) {
	params := gen.ListRunsParams{Org: orgOf(cmd)}
	if agent := cmd.String("agent"); agent != "" {
		params.Agent = gen.NewOptString(agent)
	}
	if text := cmd.String("text"); text != "" {
		params.Text = gen.NewOptString(text)
	}
	if text := cmd.String("key"); text != "" {
		id, err := uuid.Parse(text)
		if err != nil {
			// It may be a secret by mistake, and is not repeated.
			return params, misuse("--key: want the ID of a key, which 'agentrun key list' shows")
		}
		params.Key = gen.NewOptUUID(id)
	}
	if text := cmd.String("status"); text != "" {
		status := gen.Status(text)
		if err := status.Validate(); err != nil {
			return params, misuse(fmt.Sprintf("--status %q: want running, finished, technical_error or terminated", text))
		}
		params.Status = gen.NewOptStatus(status)
	}
	for flag, bound := range map[string]*gen.OptDateTime{"since": &params.Since, "until": &params.Until} {
		text := cmd.String(flag)
		if text == "" {
			continue
		}
		moment, err := momentOf(text, now)
		if err != nil {
			return params, misuse(fmt.Sprintf("--%s %q: want a duration such as 24h, a day or a moment", flag, text))
		}
		*bound = gen.NewOptDateTime(moment)
	}
	return params, nil
}

// momentOf reads a time: so long ago, the beginning of a day here, or exactly.
func momentOf(text string, now time.Time) (time.Time, error) {
	if ago, err := time.ParseDuration(text); err == nil {
		return now.Add(-ago), nil
	}
	if day, err := time.ParseInLocation(time.DateOnly, text, time.Local); err == nil {
		return day, nil
	}
	return time.Parse(time.RFC3339, text)
}
