package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"agentrun/web/gen"
)

const (
	// verifyWait is how many seconds stop and delete wait for a run's end.
	verifyWait = 30
	// followWait is how many seconds one request for more events lasts.
	followWait = 30
)

func runsInput(ctx context.Context, cmd *cli.Command, id uuid.UUID, args []string) error {
	text := args[0]
	if text == "-" {
		raw, err := io.ReadAll(os.Stdin)
		if err != nil {
			return errors.Wrap(err, "standard input")
		}
		text = string(raw)
	}
	if !utf8.ValidString(text) {
		return errors.New("the input is not UTF-8")
	}
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		run, err := c.GiveInput(ctx, &gen.GiveInputReq{Text: text}, gen.GiveInputParams{Run: id})
		if err != nil {
			return err
		}
		return show(cmd, run, runTable(*run))
	})
}

func runsStop(ctx context.Context, cmd *cli.Command, id uuid.UUID, _ []string) error {
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		run, err := c.StopRun(ctx, gen.StopRunParams{Run: id, Wait: gen.NewOptInt(verifyWait)})
		if err != nil {
			return err
		}
		if run.Status != gen.StatusTerminated {
			return errors.Errorf("run %s: stop requested, not verified yet; 'agentrun runs show' tells when it is", id)
		}
		return show(cmd, run, runTable(*run))
	})
}

func runsDelete(ctx context.Context, cmd *cli.Command, id uuid.UUID, _ []string) error {
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		run, err := c.DeleteRun(ctx, gen.DeleteRunParams{Run: id, Wait: gen.NewOptInt(verifyWait)})
		if err != nil {
			return err
		}
		if run.Status != gen.StatusTerminated || run.Erasing {
			return errors.Errorf("run %s: deletion requested, not verified yet; 'agentrun runs show' tells when it is", id)
		}
		return show(cmd, run, runTable(*run))
	})
}

// errNoServer ends a --follow before the run's end.
var errNoServer = errors.New("no server is at work, so nothing follows")

func runsEvents(ctx context.Context, cmd *cli.Command, id uuid.UUID, _ []string) error {
	params := gen.ListEventsParams{Run: id}
	follow := cmd.Bool("follow")
	if follow {
		params.Wait = gen.NewOptInt(followWait)
	}
	return withManagement(ctx, cmd, func(c *gen.Client) error {
		for {
			page, err := c.ListEvents(ctx, params)
			var problem *gen.ProblemStatusCode
			if err != nil && params.After.Set && !errors.As(err, &problem) {
				return errors.Wrapf(errNoServer, "run %s: %v", id, err) // It ended between two requests.
			}
			if err != nil {
				return err
			}
			if err := printEvents(cmd, page.Events); err != nil {
				return err
			}
			if n := len(page.Events); n > 0 {
				params.After = gen.NewOptInt64(page.Events[n-1].Seq)
			}
			switch {
			case follow && !page.End, !follow && len(page.Events) > 0:
				continue
			case follow && page.Status != gen.StatusTerminated:
				return errors.Wrapf(errNoServer, "run %s is %s", id, page.Status)
			}
			return nil
		}
	})
}

// printEvents prints one event a line.
func printEvents(cmd *cli.Command, events []gen.Event) error {
	out := cmd.Root().Writer
	for _, e := range events {
		var err error
		if cmd.Bool("json") {
			err = json.NewEncoder(out).Encode(&e)
		} else {
			line := fmt.Sprintf("%s  turn %d  %-16s  %s", at(e.At), e.Turn, e.Kind, printable(string(e.Data)))
			_, err = fmt.Fprintln(out, strings.TrimRight(line, " "))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
