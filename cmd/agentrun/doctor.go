package main

import (
	"context"

	"github.com/go-faster/errors"
	"github.com/urfave/cli/v3"

	"agentrun/run/sandbox"
)

func doctorCommand() *cli.Command {
	return leaf(&cli.Command{
		Name:        "doctor",
		Usage:       "try what this machine enforces, and say what is missing",
		Description: "Each layer of the sandbox is tried for real. Exit code 1 means that commands cannot be confined here.",
		Flags:       []cli.Flag{dataFlag(), jsonFlag()},
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
	for _, c := range append(sandbox.Examine(ctx), sandbox.ExamineDisk(cmd.String("data"))) {
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
