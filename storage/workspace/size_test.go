package workspace

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/internal/needs"
)

func TestWithin(t *testing.T) {
	spaces, err := Open(filepath.Join(t.TempDir(), "workspaces"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = spaces.Close() })
	run := uuid.New()
	within := func(bytes int64) bool {
		t.Helper()
		ok, err := spaces.Within(t.Context(), run, bytes)
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if !within(0) {
		t.Error("a run without a folder takes something")
	}
	if err := spaces.Ensure(run); err != nil {
		t.Fatal(err)
	}
	dir := spaces.Path(run)
	sub := filepath.Join(dir, "a", "b")
	for _, err := range []error{
		os.MkdirAll(sub, 0o700),
		os.WriteFile(filepath.Join(sub, "file"), make([]byte, 1<<20), 0o600),
		// What is elsewhere does not count, and neither do holes nor a FIFO's opening.
		os.Symlink("/usr", filepath.Join(dir, "link")),
		os.WriteFile(filepath.Join(dir, "sparse"), nil, 0o600),
		os.Truncate(filepath.Join(dir, "sparse"), 1<<40),
		syscall.Mkfifo(filepath.Join(dir, "fifo"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	if within(1<<20-1) || !within(2<<20) {
		t.Error("a file of a MiB is measured as something else")
	}
	deep := filepath.Join(dir, strings.Repeat("d/", maxMeasuredDepth+2))
	if err := os.MkdirAll(deep, 0o700); err != nil {
		t.Fatal(err)
	}
	if within(1 << 40) {
		t.Error("a folder that is too deep is within the limit")
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := spaces.Within(ended, run, 1); !errors.Is(err, context.Canceled) {
		t.Errorf("an ended context: %v", err)
	}
}

func TestOwn(t *testing.T) {
	if os.Geteuid() != 0 {
		needs.Lacking(t, "root, to give files away")
	}
	spaces, err := Open(filepath.Join(t.TempDir(), "workspaces"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = spaces.Close() })
	run := uuid.New()
	if err := spaces.Ensure(run); err != nil {
		t.Fatal(err)
	}
	dir, outside := spaces.Path(run), filepath.Join(t.TempDir(), "outside")
	for _, err := range []error{
		os.WriteFile(filepath.Join(dir, "file"), nil, 0o600),
		os.WriteFile(outside, nil, 0o600),
		os.Symlink(outside, filepath.Join(dir, "link")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	owner := func(path string) int {
		t.Helper()
		info, err := os.Lstat(path)
		if err != nil {
			t.Fatal(err)
		}
		return int(info.Sys().(*syscall.Stat_t).Uid)
	}
	const user = 12345
	for range 2 {
		if err := spaces.Own(run, user); err != nil {
			t.Fatal(err)
		}
		for path, want := range map[string]int{dir: user, filepath.Join(dir, "file"): user, filepath.Join(dir, "link"): user, outside: 0} {
			if got := owner(path); got != want {
				t.Errorf("%s belongs to %d, want %d", path, got, want)
			}
		}
	}
	// A folder that is the user's is not walked again: its content is its own.
	if err := os.WriteFile(filepath.Join(dir, "later"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := spaces.Own(run, user); err != nil || owner(filepath.Join(dir, "later")) != 0 {
		t.Errorf("own: %v", err)
	}
	if err := spaces.Own(uuid.New(), user); !os.IsNotExist(errors.Unwrap(err)) && !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a run without a folder: %v", err)
	}
}
