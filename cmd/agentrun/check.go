package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/go-faster/errors"
	"github.com/urfave/cli/v3"
	"golang.org/x/sys/unix"

	"agentrun/storage"
	"agentrun/storage/kv"
	"agentrun/storage/kv/bolt"
)

const (
	// checkMemory is how much memory the check of a data file may take, in bytes,
	// and checkPart the part of the file's size that comes on top: what is
	// remembered of a page is less than that part of it. A bit that is wrong in the
	// file could make the check take everything.
	checkMemory = 128 << 20
	checkPart   = 8
	// checkDataName is the command that the check runs in a process of its own.
	checkDataName = "check-data"
)

func checkCommand() *cli.Command {
	return leaf(&cli.Command{
		Name: "check", Usage: "read everything in a data directory that no server has, and say what is damaged",
		Description: "Every record, the chain of the audit log and the structure of the file are read; nothing is changed. Exit code 1 means\n" +
			"that something is damaged.",
		Flags: []cli.Flag{dataFlag(), jsonFlag()},
	}, nil, check)
}

// checkReport is what the check prints.
type checkReport struct {
	Records      int      `json:"records"`
	AuditEntries uint64   `json:"audit_entries"`
	Damaged      []string `json:"damaged"`
}

func check(ctx context.Context, cmd *cli.Command, _ []string) error {
	file, err := filepath.Abs(filepath.Join(cmd.String("data"), databaseName))
	if err != nil {
		return err
	}
	// To open it would make it.
	if _, err := os.Stat(file); err != nil {
		return errors.Wrap(err, "data directory")
	}
	report, err := checkApart(ctx, file)
	if err != nil {
		return err
	}
	out := cmd.Root().Writer
	if cmd.Bool("json") {
		if err := show(cmd, report, table{}); err != nil {
			return err
		}
	} else {
		for _, line := range report.Damaged {
			if _, err := fmt.Fprintln(out, printable(line)); err != nil {
				return err
			}
		}
	}
	if n := len(report.Damaged); n > 0 {
		return errors.Errorf("%s: the data file is damaged (faults: %d); put a copy in its place that is whole", file, n)
	}
	if cmd.Bool("json") {
		return nil
	}
	_, err = fmt.Fprintf(out, "%s is whole: %d records, and %d entries in the audit log\n", file, report.Records, report.AuditEntries)
	return err
}

// checkApart checks a data file in a process of its own, which a damage to the
// structure of the file may end.
func checkApart(ctx context.Context, file string) (*checkReport, error) {
	child := exec.CommandContext(ctx, "/proc/self/exe", checkDataName, file)
	child.Args[0] = os.Args[0]
	var stdout, stderr bytes.Buffer
	child.Stdout, child.Stderr = &stdout, &stderr
	err := child.Run()
	var exit *exec.ExitError
	first, _, _ := strings.Cut(strings.TrimSpace(stderr.String()), "\n")
	switch {
	case err == nil:
		report := &checkReport{}
		return report, json.Unmarshal(stdout.Bytes(), report)
	case !errors.As(err, &exit):
		return nil, err
	case exit.ExitCode() == exitFailed:
		return nil, errors.New(strings.TrimPrefix(first, "agentrun: "))
	default:
		return nil, errors.Errorf("%s: the data file is damaged: reading it ended with %s (%s); put a copy in its place that is whole", file, exit, first)
	}
}

// checkDataCommand is what checkApart starts.
func checkDataCommand() *cli.Command {
	return leaf(&cli.Command{Name: checkDataName, Hidden: true}, []string{"FILE"}, checkData)
}

func checkData(ctx context.Context, cmd *cli.Command, args []string) error {
	file := args[0]
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	if err := limitMemory(checkMemory + uint64(max(0, info.Size()))/checkPart); err != nil {
		return err
	}
	db, err := bolt.Open(file, bolt.Options{})
	switch {
	case errors.Is(err, storage.ErrStoreDamaged):
		return errors.Errorf("%w; it was left as it is: put a copy in its place that is whole", err)
	case errors.Is(err, kv.ErrInUse):
		return errors.Errorf("%w; end it before the check", err)
	case err != nil:
		return err
	}
	store := storage.OpenAsIs(db)
	report, err := store.Check(ctx)
	if err != nil {
		return errors.Wrap(errors.Join(err, store.Close()), file)
	}
	faults, err := db.Check(ctx)
	if err := errors.Join(err, store.Close()); err != nil {
		return errors.Wrap(err, file)
	}
	return json.NewEncoder(cmd.Root().Writer).Encode(checkReport{
		Records: report.Records, AuditEntries: report.AuditEntries, Damaged: append(append([]string{}, report.Damaged...), faults...),
	})
}

// limitMemory bounds how much more memory of its own this process may take. What
// is mapped from a file does not count.
func limitMemory(more uint64) error {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err
	}
	_, rest, _ := strings.Cut(string(status), "\nVmData:")
	text, _, found := strings.Cut(rest, " kB")
	now, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
	if err != nil || !found {
		return errors.Errorf("VmData %q in /proc/self/status", text)
	}
	most := now<<10 + more
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: most})
}
