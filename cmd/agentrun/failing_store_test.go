package main

import (
	"bufio"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentrun/internal/needs"
)

// TestFullDisk takes the space away from a running server and gives it back. A
// limit on the size of its files stands for the disk: the kernel refuses the
// same writes.
func TestFullDisk(t *testing.T) {
	p := startEcho(t)
	status, body, err := p.post(10)
	before := runID(t, status, body, err)

	var had unix.Rlimit
	none := unix.Rlimit{Cur: 4096}
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, nil, &had); err != nil {
		t.Fatal(err)
	}
	none.Max = had.Max
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &none, nil); err != nil {
		t.Fatal(err)
	}
	const tries = 5
	survived := 0
	for range tries {
		if status, body, err := p.post(100_000); err == nil && status == 500 && body == `{"detail":"internal error"}` {
			survived++
		} else {
			t.Errorf("POST without space: %d %s %v", status, body, err)
		}
	}
	if status, body, err := p.send(http.MethodGet, "/v1/agents/"+before, nil); err != nil || status != 200 {
		t.Errorf("GET without space: %d %s %v", status, body, err)
	}
	if err := unix.Prlimit(p.cmd.Process.Pid, unix.RLIMIT_FSIZE, &had, nil); err != nil {
		t.Fatal(err)
	}
	status, body, err = p.post(100_000)
	runID(t, status, body, err)
	t.Logf("%d injected, %d survived", tries, survived)
}

// TestUnknownCommit makes the disk sync of a commit fail: the client gets no
// answer, the process ends with exit code 1, and the next start works.
func TestUnknownCommit(t *testing.T) {
	p := startEcho(t)
	status, body, err := p.post(10)
	runID(t, status, body, err) // what fails below works without the fault
	injected := failSyncs(t, p.cmd.Process.Pid)

	status, body, err = p.post(10)
	if err == nil {
		t.Errorf("POST was answered: %d %s", status, body)
	}
	select {
	case <-p.ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the server goes on")
	}
	if code := p.cmd.ProcessState.ExitCode(); code != exitFailed {
		t.Errorf("exit code %d, want %d; log:\n%s", code, exitFailed, p.log.String())
	}
	if n := injected(); n == 0 {
		t.Error("no fault was injected")
	}
	if out, err := exec.CommandContext(t.Context(), "agentrun", "runs", "list", "--data", p.data).CombinedOutput(); err != nil {
		t.Errorf("the next start: %v\n%s", err, out)
	} else if !t.Failed() {
		t.Log("1 injected, 1 survived")
	}
}

// failSyncs makes every fdatasync of a process fail with EIO from when it
// returns, and returns a function that counts the failures afterwards.
func failSyncs(t *testing.T, pid int) (injected func() int) {
	t.Helper()
	needs.Program(t, "strace")
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.CommandContext(t.Context(), "strace", "-f", "-p", strconv.Itoa(pid),
		"-o", trace, "-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO")
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stderr)
	for attached := false; !attached; attached = strings.Contains(lines.Text(), "attached") {
		if !lines.Scan() {
			_ = cmd.Wait()
			needs.Lacking(t, "strace may not attach to a process here (ptrace_scope)")
		}
	}
	go func() {
		for lines.Scan() { // Threads that appear later are announced too.
			continue
		}
	}()
	return func() int {
		_ = cmd.Wait() // strace ends with the process.
		text, err := os.ReadFile(trace)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Count(string(text), "(INJECTED)")
	}
}
