package storage

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-faster/errors"

	"agentrun/internal/needs"
	"agentrun/storage/kv/bolt"
)

// slowDiskVar tells the test that its disk is slow already.
const slowDiskVar = "AGENTRUN_STORAGE_TEST_SLOW_DISK"

// TestCommitsPerCreate is the price of a run where a disk sync takes a
// millisecond, and a commit two of them, while many callers create one run
// after the other. A process of its own under strace is what makes the real
// store's syncs slow: nothing in the store is there for the test.
func TestCommitsPerCreate(t *testing.T) {
	if os.Getenv(slowDiskVar) == "" {
		runOnSlowDisk(t)
		return
	}
	const callers, each, share = 64, 16, 16
	db, err := bolt.Open(filepath.Join(t.TempDir(), "agentrun.db"), bolt.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), db, Options{})
	if err != nil {
		t.Fatal(err)
	}
	agent := applyEcho(t, s)
	caller, input := callerOf(t, s, agent), "hello"
	create := func() error {
		id, err := NewRunID()
		if err != nil {
			return err
		}
		_, err = s.CreateRun(t.Context(), NewRun{ID: id, Caller: caller, Template: agent.ID, Name: "run", Input: &input})
		return err
	}
	before := db.Commits()
	errs := make(chan error, callers)
	for range callers {
		go func() {
			var err error
			for range each {
				err = errors.Join(err, create())
			}
			errs <- err
		}()
	}
	for range callers {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	commits := db.Commits() - before
	fmt.Printf("%d creates by %d callers took %d commits\n", callers*each, callers, commits)
	if commits > callers*each/share {
		t.Errorf("%d creates took %d commits, want at most one for %d", callers*each, commits, share)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// runOnSlowDisk runs the test once more, where the disk is slow.
func runOnSlowDisk(t *testing.T) {
	t.Helper()
	needs.Program(t, "strace")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command("strace", "-f", "--seccomp-bpf", "-qq", "-o", trace, "-e", "trace=fdatasync",
		"-e", "inject=fdatasync:delay_exit=1000", // microseconds
		self, "-test.run=^"+t.Name()+"$", "-test.v")
	// The child of a race-tested binary would sleep for a second before it exits.
	cmd.Env = append(os.Environ(), slowDiskVar+"=1", "GORACE=atexit_sleep_ms=0")
	out, childErr := cmd.CombinedOutput()
	calls, err := os.ReadFile(trace)
	if err != nil || !strings.Contains(string(calls), "fdatasync") {
		needs.Lacking(t, fmt.Sprintf("a slow disk: strace does not work: %v: %s", childErr, out))
	}
	if n := strings.Count(string(calls), "(DELAYED)"); n == 0 {
		t.Errorf("no sync was slow:\n%s", calls)
	}
	t.Logf("%s", out)
	if childErr != nil {
		t.Error(childErr)
	}
}
