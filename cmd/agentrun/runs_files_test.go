package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/go-faster/errors"
	"golang.org/x/sys/unix"

	"agentrun/web/gen"
)

func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, content := range []string{"first", "", "second and longer"} {
		if err := replaceFile(path, strings.NewReader(content)); err != nil {
			t.Fatal(err)
		}
		wantFile(t, path, content)
	}
	broken := errors.New("broken off")
	if err := replaceFile(path, iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("third")))); !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("%v", err)
	}
	if err := replaceFile(filepath.Join(dir, "new"), iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("%v", err)
	}
	for name, target := range map[string]string{"link": path, "null": os.DevNull, "dangling": "absent"} {
		link := filepath.Join(dir, name)
		if err := os.Symlink(target, link); err != nil {
			t.Fatal(err)
		}
		if err := replaceFile(link, strings.NewReader("x")); err == nil {
			t.Errorf("%s was replaced", name)
		}
		if err := os.Remove(link); err != nil {
			t.Fatal(err)
		}
	}
	if err := replaceFile(dir, strings.NewReader("x")); err == nil {
		t.Error("a directory was replaced")
	}
	wantFile(t, path, "second and longer")
	wantAlone(t, path)
}

func wantFile(t *testing.T, path, content string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil || string(raw) != content {
		t.Errorf("%s has %q, want %q; %v", path, raw, content, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// wantAlone checks that nothing lies beside a file.
func wantAlone(t *testing.T, path string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil || len(entries) != 1 || entries[0].Name() != filepath.Base(path) {
		t.Errorf("%v, %v", entries, err)
	}
}

func TestNoteMissing(t *testing.T) {
	for _, c := range []struct {
		list  gen.FileList
		notes int
	}{{gen.FileList{}, 0}, {gen.FileList{More: true}, 1}, {gen.FileList{Skipped: 3}, 1}, {gen.FileList{More: true, Skipped: 3}, 2}} {
		var out bytes.Buffer
		if err := noteMissing(&out, &c.list); err != nil || strings.Count(out.String(), "\n") != c.notes {
			t.Errorf("%+v: %q, %v", c.list, &out, err)
		}
	}
}

// A terminal gets no bytes of a program, unless it is named.
func TestDownloadToTerminal(t *testing.T) {
	t.Parallel()
	p := startEcho(t)
	id := p.withFile("\x1b[31mred")
	show := func(flags ...string) (shown, said string) {
		t.Helper()
		screen := openTerminal(t, 80)
		cmd := exec.CommandContext(t.Context(), "agentrun", append([]string{"runs", "download", "--data", p.data, id, "file"}, flags...)...)
		var stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = screen.File, &stderr
		if err := cmd.Run(); (err != nil) != (cmd.ProcessState.ExitCode() == exitFailed) {
			t.Errorf("%q: %v", flags, err)
		}
		return screen.all(), stderr.String()
	}
	if shown, said := show(); shown != "" || !strings.Contains(said, "-o FILE") {
		t.Errorf("shown %q, said %q", shown, said)
	}
	if shown, said := show("-o", "-"); shown != "\x1b[31mred" || said != "" {
		t.Errorf("with -o -: shown %q, said %q", shown, said)
	}
}

// withFile returns a run with a file in its workspace.
func (p *process) withFile(content string) (run string) {
	p.t.Helper()
	status, body, err := p.post(10)
	run = runID(p.t, status, body, err)
	// The first turn makes the folder if it has not been made by then.
	if err := os.MkdirAll(filepath.Dir(p.file(run)), 0o700); err != nil {
		p.t.Fatal(err)
	}
	if err := os.WriteFile(p.file(run), []byte(content), 0o600); err != nil {
		p.t.Fatal(err)
	}
	return run
}

func (p *process) file(run string) string { return filepath.Join(p.data, workspacesName, run, "file") }

// A download that is interrupted leaves what was there before, and a broken one
// too, with a server and without.
func TestDownloadIsCutOff(t *testing.T) {
	t.Parallel()
	p := startEcho(t)
	run := p.withFile("")
	for _, server := range []bool{true, false} {
		for name, cut := range map[string]func(download *os.Process) error{
			"interrupted": func(download *os.Process) error { return download.Signal(os.Interrupt) },
			"shorter":     func(*os.Process) error { return os.Truncate(p.file(run), 1) },
		} {
			t.Run(fmt.Sprintf("%s, server %v", name, server), func(t *testing.T) {
				// The test is to be faster than the download.
				if err := os.Truncate(p.file(run), 8<<30); err != nil {
					t.Fatal(err)
				}
				target := filepath.Join(t.TempDir(), "target")
				if err := os.WriteFile(target, []byte("before"), 0o600); err != nil {
					t.Fatal(err)
				}
				cmd := exec.CommandContext(t.Context(), "agentrun", "runs", "download", "--data", p.data, run, "file", "-o", target)
				var stderr bytes.Buffer
				cmd.Stderr = &stderr
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				awaitDownload(t, filepath.Dir(target))
				if err := cut(cmd.Process); err != nil {
					t.Error(err)
				}
				if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitFailed || strings.Count(stderr.String(), "\n") != 1 {
					t.Errorf("%v, %s", err, &stderr)
				}
				wantFile(t, target, "before")
				wantAlone(t, target)
			})
		}
		if server {
			_ = p.cmd.Process.Signal(unix.SIGTERM)
			<-p.ended
		}
	}
}

// awaitDownload waits until some of a file has arrived beside its target.
func awaitDownload(t *testing.T, dir string) {
	t.Helper()
	deadline, tick := time.After(patience), time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for {
		parts, err := filepath.Glob(filepath.Join(dir, ".agentrun-download-*"))
		if err != nil {
			t.Fatal(err)
		}
		if len(parts) == 1 {
			if info, err := os.Stat(parts[0]); err == nil && info.Size() > 0 {
				return
			}
		}
		select {
		case <-tick.C:
		case <-deadline:
			t.Fatal("nothing arrives")
		}
	}
}
