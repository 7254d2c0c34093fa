package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/go-faster/errors"
	"github.com/urfave/cli/v3"

	"agentrun/run/sandbox"
)

func doctorCommand() *cli.Command {
	return leaf(&cli.Command{
		Name:                      "doctor",
		Usage:                     "try what this machine enforces, and say what is missing",
		Description:               "Each layer of the sandbox is tried for real. Exit code 1 means that commands cannot be confined here.",
		DisableSliceFlagSeparator: true,
		Flags: []cli.Flag{
			dataFlag(), jsonFlag(), providerFlag(),
			&cli.BoolFlag{Name: "providers", Sources: env("providers"), Usage: "ask each configured provider for its models, too"},
		},
	}, nil, doctor)
}

// diagnosis is one line of the doctor's report.
type diagnosis struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`
}

func doctor(ctx context.Context, cmd *cli.Command, _ []string) error {
	var found []diagnosis
	t := table{head: []string{"WHAT", "OK", "DETAIL"}}
	checks := append(sandbox.Examine(ctx), sandbox.ExamineDisk(cmd.String("data")))
	if cmd.Bool("providers") {
		asked, err := askProviders(ctx, cmd.StringSlice("provider"))
		if err != nil {
			return err
		}
		checks = append(checks, asked...)
	}
	for _, c := range checks {
		found = append(found, diagnosis{c.Name, c.OK, c.Detail})
		t.rows = append(t.rows, []string{c.Name, yesNo(c.OK), c.Detail})
	}
	if err := show(cmd, found, t); err != nil {
		return err
	}
	runner, err := sandbox.Open(ctx, sandbox.Options{Level: sandbox.Auto})
	if err != nil {
		return err
	}
	if why := sandbox.Refusal(runner); why != nil {
		return errors.Errorf("commands will be refused: %w", why)
	}
	return nil
}

// mostShown is how many models of a provider the report names.
const mostShown = 8

// askProviders asks each configured provider once.
func askProviders(ctx context.Context, configured []string) ([]sandbox.Check, error) {
	providers, err := openProviders(configured)
	if err != nil {
		return nil, err
	}
	var checks []sandbox.Check
	for _, name := range providerNames(providers) {
		models, err := providers[name].Client.Models(ctx)
		c := sandbox.Check{Name: "provider " + name, OK: err == nil}
		switch {
		case err != nil:
			c.Detail = err.Error()
		case len(models) > mostShown:
			c.Detail = fmt.Sprintf("answers, with %d models: %s …", len(models), strings.Join(models[:mostShown], ", "))
		default:
			c.Detail = fmt.Sprintf("answers, with %d models: %s", len(models), strings.Join(models, ", "))
		}
		checks = append(checks, c)
	}
	return checks, nil
}
