package bolt

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"agentrun/internal/needs"
)

func TestFileLimit(t *testing.T) {
	t.Parallel()
	cmd, err := child("file limit", []string{filepath.Join(t.TempDir(), "test.db")})
	if err != nil {
		t.Fatal(err)
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	cmd, err := child("full disk", []string{t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	if err == nil {
		return
	}
	if len(out) == 0 || strings.Contains(string(out), noMount) {
		needs.Lacking(t, fmt.Sprintf("a full disk: no disk can be mounted here: %v: %s", err, out))
	}
	t.Errorf("%v: %s", err, out)
}

// TestSyncFails has one of the syncs of a commit fail: the third of a process
// is that of the second commit's pages, the fourth that of its meta page.
func TestSyncFails(t *testing.T) {
	needs.Program(t, "strace")
	tests := []struct {
		sync  int
		errno string
		want  string
	}{
		{3, "EIO", "unknown"},
		{4, "EIO", "unknown"},
		{3, "ENOSPC", "no space"},
		{3, "EDQUOT", "no space"},
		{4, "ENOSPC", "unknown"}, // the commit is in, as far as anyone can see
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s at sync %d", test.errno, test.sync), func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), "test.db")
			db, err := Open(path, Options{}) // the child's syncs are its commits' only
			if err != nil {
				t.Fatal(err)
			}
			if err := db.Close(); err != nil {
				t.Fatal(err)
			}
			trace := path + ".trace"
			cmd, err := child("sync fails", []string{path, test.want},
				"strace", "-f", "-qq", "-o", trace, "-e", "trace=fdatasync",
				"-e", fmt.Sprintf("inject=fdatasync:error=%s:when=%d", test.errno, test.sync))
			if err != nil {
				t.Fatal(err)
			}
			out, childErr := cmd.CombinedOutput()
			calls, err := os.ReadFile(trace)
			if err != nil || !strings.Contains(string(calls), "fdatasync") {
				needs.Lacking(t, fmt.Sprintf("a disk sync that fails: strace does not work: %v: %s", childErr, out))
			}
			if n := strings.Count(string(calls), "(INJECTED)"); n != 1 {
				t.Errorf("%d syncs were made to fail, want 1:\n%s", n, calls)
			}
			if childErr != nil {
				t.Errorf("%v: %s", childErr, out)
			}
		})
	}
}
