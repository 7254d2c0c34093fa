package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentrun/internal/needs"
)

// startDemo starts the demonstration with a folder of its own for temporary
// files.
func startDemo(t *testing.T, flags ...string) (cmd *exec.Cmd, stdout io.Reader, temporary string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	temporary = t.TempDir()
	cmd = exec.CommandContext(ctx, "agentrun", append([]string{"demo"}, flags...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+temporary)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, stdout, temporary
}

// checkNothingLeft fails the test when a demonstration left files behind.
func checkNothingLeft(t *testing.T, temporary string) {
	t.Helper()
	left, err := os.ReadDir(temporary)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestDemo(t *testing.T) {
	t.Parallel()
	cmd, stdout, temporary := startDemo(t)
	text, err := io.ReadAll(stdout)
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, want := range []string{
		`-d '{"name":"demo","template_id":"`, `"input_text":"` + demoInput + `","files":[{"filename":"notes.txt","content_base64":"`,
		`"loop_status":"finished"`, `You asked: ` + demoInput + `\n19 notes.txt`, "agentrun demo --stay",
		`the model calls read_file {"path":"notes.txt"}`, "shell says: 19", "wrote the number to words.txt",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s\nwant it to say %q", text, want)
		}
	}
	checkNothingLeft(t, temporary)
}

// An exchange is a line that the demonstration printed for people to type, with
// the answer that it promised.
type exchange struct{ command, answer string }

// TestDemoStays types what the demonstration printed and gets what it printed.
func TestDemoStays(t *testing.T) {
	t.Parallel()
	needs.Program(t, "curl")
	cmd, stdout, temporary := startDemo(t, "--stay")
	exchanges := readDemo(t, bufio.NewScanner(stdout))
	if len(exchanges) != 6 {
		t.Errorf("%d lines to type, want 6", len(exchanges))
	}
	for _, e := range exchanges {
		out, err := exec.CommandContext(t.Context(), "sh", "-c", e.command).CombinedOutput()
		if err != nil {
			t.Fatalf("%s\n%v\n%s", e.command, err, out)
		}
		got, want := strings.TrimRight(string(out), "\n"), e.answer
		if strings.Contains(e.command, " -d ") { // It creates another run.
			got, want = withoutIDs(got), withoutIDs(want)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s\n(-printed +typed)\n%s", e.command, diff)
		}
	}
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	checkNothingLeft(t, temporary)
}

// readDemo reads what the demonstration prints until it stays.
func readDemo(t *testing.T, lines *bufio.Scanner) []exchange {
	t.Helper()
	var exchanges []exchange
	answering := false
	for lines.Scan() {
		line := lines.Text()
		switch command, typed := strings.CutPrefix(line, "$ "); {
		case strings.HasPrefix(line, "The server stays at http://127.0.0.1:"):
			return exchanges
		case typed:
			exchanges = append(exchanges, exchange{command: command})
			answering = true
		case line == "":
			answering = false
		case answering:
			last := &exchanges[len(exchanges)-1]
			last.answer = strings.TrimPrefix(last.answer+"\n"+line, "\n")
		}
	}
	t.Fatal("the demonstration did not stay")
	return nil
}

var uuidPattern = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

func withoutIDs(text string) string { return uuidPattern.ReplaceAllString(text, "UUID") }
