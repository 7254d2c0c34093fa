package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"agentrun/storage/kv"
	"agentrun/storage/kv/bolt"
)

// The scripts in testdata drive the binary as a person does. Each runs in a
// folder of its own, so that the default data directory is its own too. Those
// named manage_* run twice: through the socket of a running server, which the
// line `[server] serve` starts, and on the data directory itself.

func TestScripts(t *testing.T) { runScripts(t, "testdata/*.txtar", false) }

func TestScriptsThroughSocket(t *testing.T) { runScripts(t, "testdata/manage_*.txtar", true) }

func runScripts(t *testing.T, pattern string, server bool) {
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	testscript.Run(t, testscript.Params{
		Files: files,
		Setup: func(env *testscript.Env) error {
			env.Values[backgroundKey{}] = &background{}
			// A binary with the race detector would wait a second at its end.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			return nil
		},
		Condition: func(name string) (bool, error) {
			if name != "server" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return server, nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serve":        cmdServe,
			"signal":       cmdSignal,
			"ended":        cmdEnded,
			"logged":       cmdLogged,
			"http":         cmdHTTP,
			"poll":         cmdPoll,
			"unreachable":  cmdUnreachable,
			"field":        cmdField,
			"fails":        cmdFails,
			"mode":         cmdMode,
			"await":        cmdAwait,
			"gone":         cmdGone,
			"newer-schema": cmdNewerSchema,
			"token":        cmdToken,
			"flip":         cmdFlip,
			"overflow":     cmdOverflow,
		},
		RequireUniqueNames: true,
	})
}

// patience bounds every wait of the scripts. Only a failing test waits so long.
const patience = time.Minute

// awaitThat waits until done is true.
func awaitThat(ts *testscript.TestScript, what string, done func() bool) {
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-deadline:
			ts.Fatalf("waited for %s in vain", what)
		}
	}
}

// takes ends the script unless a command was given as it has to be.
func takes(ts *testscript.TestScript, usage string, neg bool, args []string, least, most int) {
	if neg || len(args) < least || len(args) > most {
		ts.Fatalf("usage: %s", usage)
	}
}

// cmdFails runs a program that has to end with an exit code, and with one line
// on standard error that says why.
func cmdFails(ts *testscript.TestScript, neg bool, args []string) {
	takes(ts, "fails CODE PROGRAM [ARGUMENT...]", neg, args, 2, 100)
	code, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != code {
		ts.Fatalf("%v, want exit code %d", err, code)
	}
	if text := ts.ReadFile("stderr"); strings.Count(text, "\n") != 1 || !strings.HasSuffix(text, "\n") {
		ts.Fatalf("want one line on standard error, have %q", text)
	}
	if text := ts.ReadFile("stdout"); text != "" {
		ts.Fatalf("a failure wrote %q to standard output", text)
	}
}

// cmdField sets a variable to a field of the JSON document that the last
// command printed.
func cmdField(ts *testscript.TestScript, neg bool, args []string) {
	takes(ts, "field VARIABLE PATH, as in 0.name", neg, args, 2, 2)
	var value any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile("stdout")), &value))
	for _, step := range strings.Split(args[1], ".") {
		switch v := value.(type) {
		case map[string]any:
			value = v[step]
		case []any:
			i, err := strconv.Atoi(step)
			ts.Check(err)
			if i >= len(v) {
				ts.Fatalf("no item %d of %d", i, len(v))
			}
			value = v[i]
		}
	}
	if value == nil {
		ts.Fatalf("no field %s", args[1])
	}
	ts.Setenv(args[0], fmt.Sprint(value))
}

// cmdMode checks the permissions of a file.
func cmdMode(ts *testscript.TestScript, neg bool, args []string) {
	takes(ts, "mode PERMISSIONS FILE", neg, args, 2, 2)
	want, err := strconv.ParseUint(args[0], 8, 32)
	ts.Check(err)
	info, err := os.Stat(ts.MkAbs(args[1]))
	ts.Check(err)
	if got := info.Mode().Perm(); got != os.FileMode(want) {
		ts.Fatalf("%s has mode %04o, want %04o", args[1], got, want)
	}
}

// cmdAwait waits until a file exists.
func cmdAwait(ts *testscript.TestScript, neg bool, args []string) {
	takes(ts, "await FILE", neg, args, 1, 1)
	awaitThat(ts, args[0], func() bool {
		_, err := os.Stat(ts.MkAbs(args[0]))
		return err == nil
	})
}

// cmdGone waits until no process of a run is there any more. Whatever an agent
// starts has the run's ID in its environment, and a server's end may take its
// processes along a moment later.
func cmdGone(ts *testscript.TestScript, neg bool, args []string) {
	takes(ts, "gone RUN", neg, args, 1, 1)
	awaitThat(ts, "the end of the run's processes", func() bool {
		environments, err := filepath.Glob("/proc/[0-9]*/environ")
		ts.Check(err)
		for _, path := range environments {
			// A process may end meanwhile, or be somebody else's.
			if raw, err := os.ReadFile(path); err == nil && strings.Contains(string(raw), "AGENTRUN_RUN_ID="+args[0]) {
				return false
			}
		}
		return true
	})
}

// cmdNewerSchema makes a data file look as if a later agentrun had written it.
func cmdNewerSchema(ts *testscript.TestScript, neg bool, args []string) {
	takes(ts, "newer-schema FILE VERSION", neg, args, 2, 2)
	db, err := bolt.Open(ts.MkAbs(args[0]), bolt.Options{})
	ts.Check(err)
	const space, key = "meta", "schema"
	record := schemaRecord(space, key, args[1])
	ts.Check(db.Update(context.Background(), func(tx kv.Tx) error { return tx.Put(space, []byte(key), record) }))
	ts.Check(db.Close())
}

// schemaRecord is a record as package storage keeps it: its version, a
// CRC-32C of everything that identifies it, and JSON.
func schemaRecord(space, key, version string) []byte {
	record := append([]byte{1, 0, 0, 0, 0}, `{"version":`+version+`}`...)
	summed := []byte{1}
	summed = binary.BigEndian.AppendUint16(summed, uint16(len(space)))
	summed = binary.BigEndian.AppendUint16(summed, uint16(len(key)))
	summed = append(append(append(summed, space...), key...), record[5:]...)
	binary.BigEndian.PutUint32(record[1:], crc32.Checksum(summed, crc32.MakeTable(crc32.Castagnoli)))
	return record
}
