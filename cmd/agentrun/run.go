package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"github.com/urfave/cli/v3"

	"agentrun/gen"
	"agentrun/poll"
)

func runCommand() *cli.Command {
	return leaf(&cli.Command{
		Name:  "run",
		Usage: "start a run over the public API, wait for it and print its output",
		Description: "INPUT is the agent's first input; - reads it from standard input, and without it the run is created and\n" +
			"does nothing yet. Put -- before an INPUT that begins with a dash.\n\n" +
			"Exit codes: 0 the run is finished, 3 it ended with technical_error, 4 it was terminated, 1 anything else.\n" +
			"Ctrl-C ends the waiting, not the run.",
		// A comma may be part of a file's name, and "help" may be an input.
		DisableSliceFlagSeparator: true,
		HideHelpCommand:           true,
		Flags: []cli.Flag{
			&cli.StringFlag{Name: "url", Sources: env("url"), Usage: "where the API is, such as http://127.0.0.1:8080", Validator: notEmpty},
			&cli.StringFlag{Name: "key", Sources: env("key"), Usage: "the agent's API key; others can see it in the list of processes", Validator: notEmpty},
			&cli.StringFlag{
				Name: "key-file", Sources: env("key-file"), Usage: "a file with the agent's API key, instead of --key", TakesFile: true,
				Validator: notEmpty,
			},
			&cli.StringFlag{Name: "template", Sources: env("template"), Usage: "the agent's ID", Validator: notEmpty},
			&cli.StringFlag{Name: "name", Value: "agentrun run", Sources: env("name"), Usage: "what the run is called", Validator: notEmpty},
			&cli.StringSliceFlag{
				Name: "file", Sources: env("file"), Usage: "a file for the run's workspace, up to 10 and 10 MiB together; the variable names one", TakesFile: true,
			},
			&cli.BoolFlag{Name: "no-wait", Sources: env("no-wait"), Usage: "print the run's ID and leave"},
			&cli.BoolFlag{Name: "json", Sources: env("json"), Usage: "print the last answer of the API as it came"},
		},
	}, []string{"[INPUT | -]"}, startRun)
}

func startRun(ctx context.Context, cmd *cli.Command, args []string) error {
	api, err := apiOf(cmd)
	if err != nil {
		return err
	}
	request, err := createRequest(cmd, api.template, args)
	if err != nil {
		return err
	}
	// Only now: until here nothing was sent, and a signal may just end it.
	ctx, cancel := untilSignal(ctx)
	defer cancel()
	report := newProgress(os.Stderr)
	defer report.end()
	run, answer, err := api.create(ctx, request)
	if err != nil {
		return err
	}
	if cmd.Bool("no-wait") {
		report.end()
		if cmd.Bool("json") {
			return printRaw(cmd, answer)
		}
		_, err := fmt.Fprintln(cmd.Root().Writer, run)
		return err
	}
	report.created(run)
	status, answer, err := api.wait(ctx, run, report.saw)
	report.end()
	switch {
	case err != nil && ctx.Err() != nil:
		return errors.Errorf("interrupted: run %s was not stopped and goes on", run)
	case err != nil:
		return err
	case cmd.Bool("json"):
		err = printRaw(cmd, answer)
	default:
		err = printOutput(cmd, status.Transcript)
	}
	if err != nil {
		return errors.Wrapf(err, "run %s is %s; its output", run, status.LoopStatus)
	}
	return endingOf(run, status.LoopStatus)
}

// endingOf is what the command ends with for a run that ended so.
func endingOf(run uuid.UUID, state gen.LoopStatus) error {
	switch state {
	case gen.LoopStatusTechnicalError:
		return &ending{exitTechnicalError, fmt.Sprintf("run %s: %s; its operator sees why with 'agentrun runs show'", run, state)}
	case gen.LoopStatusTerminated:
		return &ending{exitTerminated, fmt.Sprintf("run %s: %s", run, state)}
	default:
		return nil
	}
}

// printRaw prints a JSON document as it came.
func printRaw(cmd *cli.Command, body []byte) error {
	if !bytes.HasSuffix(body, []byte("\n")) {
		body = append(body, '\n')
	}
	_, err := cmd.Root().Writer.Write(body)
	return err
}

// printOutput prints the last output, if that is what the transcript ends with:
// byte for byte, but on a terminal without what would steer it.
func printOutput(cmd *cli.Command, transcript []gen.TranscriptMessage) error {
	if len(transcript) == 0 {
		return nil
	}
	last := transcript[len(transcript)-1]
	if last.Role != gen.TranscriptMessageRoleOutputFromAgent {
		return nil
	}
	text := last.Text
	if isTerminal(os.Stdout) {
		text = printableText(strings.ToValidUTF8(text, "\ufffd"))
	}
	_, err := fmt.Fprintln(cmd.Root().Writer, text)
	return err
}

// wait polls the run until it is no longer running. answer is the last status
// as it came.
func (a *api) wait(ctx context.Context, run uuid.UUID, observe func(poll.Progress)) (
	status *gen.PublicAgentStatusResponse, answer []byte, err error,
) {
	client, kept, err := a.client(newTransport())
	if err != nil {
		return nil, nil, err
	}
	status, err = poll.Wait(ctx, client, run, poll.Options{Observe: observe})
	return status, kept.body, err
}
