package workspace

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/go-faster/errors"

	"agentrun/internal/needs"
)

func TestWrap(t *testing.T) {
	run := mustID(t)
	if err := wrap(run, nil); err != nil {
		t.Fatalf("nil became %v", err)
	}
	for _, row := range []struct {
		errno syscall.Errno
		full  bool
	}{
		{syscall.ENOSPC, true},
		{syscall.EDQUOT, true},
		{syscall.EIO, false},
		{syscall.EFBIG, false},
	} {
		err := wrap(run, &fs.PathError{Op: "write", Path: "a", Err: row.errno})
		if errors.Is(err, ErrNoSpace) != row.full || !errors.Is(err, row.errno) {
			t.Errorf("%v became %v", row.errno, err)
		}
		if !strings.HasPrefix(err.Error(), "workspace "+run.String()+": ") {
			t.Errorf("%v does not name the run", err)
		}
	}
}

const (
	fullDiskDir = "WORKSPACE_FULL_DISK_DIR"
	fullDiskRan = "full disk seen"
)

// The disk of this test is a small tmpfs in a mount namespace of its own, which
// takes a process of its own and no privileges.
func TestFullDisk(t *testing.T) {
	if dir := os.Getenv(fullDiskDir); dir != "" {
		fillDisk(t, dir)
		return
	}
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestFullDisk$", "-test.v")
	cmd.Env = append(os.Environ(),
		fullDiskDir+"="+t.TempDir(),
		"GORACE=atexit_sleep_ms=0", // or the race detector holds the process for a second
	)
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		t.Fatalf("%v\n%s", err, out)
	case err != nil:
		needs.Lacking(t, fmt.Sprintf("a full disk: no user namespace here: %v", err))
	case !strings.Contains(string(out), fullDiskRan):
		needs.Lacking(t, fmt.Sprintf("a full disk: no mount here: %s", out))
	}
}

func fillDisk(t *testing.T, dir string) {
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=256k,nr_inodes=16"); err != nil {
		t.Logf("mount: %v", err) // The parent sees that the disk was never full.
		return
	}
	s, err := Open(dir + "/workspaces")
	must(t, err)
	t.Cleanup(func() { s.Close() })

	d := mustDeliver(t, s, mustID(t))
	mustAdd(t, d, "small", "small")
	_, err = d.Add("large", io.LimitReader(zeros{}, 1<<20))
	wantErr(t, "large file", err, ErrNoSpace)
	wantErr(t, "large file", err, syscall.ENOSPC)
	wantErr(t, "commit", d.Commit(), ErrNoSpace)
	must(t, d.Abort())
	wantNames(t, s.path)

	run := mustID(t)
	d = mustDeliver(t, s, run)
	mustAdd(t, d, "small", "small")
	must(t, d.Commit())
	wantErr(t, "write", s.WriteFile(run, "small", make([]byte, 1<<20), os.Geteuid()), ErrNoSpace)
	wantNames(t, s.Path(run), "small")
	wantContent(t, s.Path(run)+"/small", "small")

	d = mustDeliver(t, s, mustID(t))
	for err = nil; err == nil; {
		_, err = d.Add("no inode left", strings.NewReader("x"))
	}
	wantErr(t, "many files", err, ErrNoSpace)
	wantErr(t, "ensure", s.Ensure(mustID(t)), ErrNoSpace)
	_, err = s.Deliver(mustID(t))
	wantErr(t, "deliver", err, ErrNoSpace)
	must(t, s.Discard(run))
	must(t, d.Abort())
	wantNames(t, s.path)
	t.Log(fullDiskRan)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }
