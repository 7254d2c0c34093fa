package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"agentrun/internal/needs"
)

// TestReadmeQuickStart types the quick start of the README and what follows it
// about the client, but for the build and the server's port, and compares with the answers that stand there.
func TestReadmeQuickStart(t *testing.T) {
	needs.Program(t, "curl")
	blocks := readmeBlocks(t, "## Quick start")
	if len(blocks) != 7 {
		t.Fatalf("%d blocks in the quick start", len(blocks))
	}
	dir := t.TempDir()
	var vars []string
	url := ""
	sh := func(script string) string {
		t.Helper()
		script = strings.ReplaceAll(script, "./agentrun ", "agentrun ")
		script = strings.ReplaceAll(script, "http://127.0.0.1:8080", url)
		cmd := exec.CommandContext(t.Context(), "sh", "-ec", script)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), vars...)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s\n%s: %v", script, out, err)
		}
		return string(out)
	}
	find := func(pattern, in string) string {
		t.Helper()
		found := regexp.MustCompile(pattern).FindString(in)
		if found == "" {
			t.Fatalf("no %s in:\n%s", pattern, in)
		}
		return found
	}
	const uuidPattern = `[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}`

	prepare := strings.Replace(blocks[0], "go build ./cmd/agentrun\n", "", 1)
	prepare = strings.Replace(prepare, "./agentrun serve &\n", "", 1)
	if len(blocks[0])-len(prepare) < 30 {
		t.Fatalf("build and serve are not in the first block:\n%s", blocks[0])
	}
	sh(prepare)
	url = startServe(t, filepath.Join(dir, "agentrun-data")).url
	made := sh(blocks[1])
	vars = []string{"TEMPLATE=" + find(uuidPattern, made), "KEY=" + find(`ak_[0-9A-Za-z]{49}`, made)}
	vars = append(vars, "RUN="+find(uuidPattern, sh(blocks[2])))
	poll := func() string {
		t.Helper()
		for deadline := time.Now().Add(30 * time.Second); ; {
			got := sh(blocks[3])
			switch {
			case !strings.Contains(got, `"running"`):
				return got
			case time.Now().After(deadline):
				t.Fatalf("still running: %s", got)
			}
		}
	}
	got := poll()
	got = regexp.MustCompile(uuidPattern).ReplaceAllString(got, "…")
	if compact(t, got) != compact(t, blocks[4]) {
		t.Errorf("got %s, the README has %s", got, blocks[4])
	}

	find(`(?m)^[0-9-]+ [0-9:]+  turn 1  turn_finished`, sh(blocks[5]))
	find("You asked: And what did you say", poll())
	find(`(?m)^STATUS +terminated$`, sh(blocks[6]))

	client := readmeBlocks(t, "## From the command line")
	if len(client) != 1 {
		t.Fatalf("%d blocks of the client", len(client))
	}
	if got := sh(client[0]); got != "You asked: How long is notes.txt?\n3 notes.txt\n" {
		t.Errorf("the client printed %q", got)
	}
}

// readmeBlocks returns the fenced blocks below a heading of the README.
func readmeBlocks(t *testing.T, heading string) []string {
	t.Helper()
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(text), "\n"+heading+"\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var blocks []string
	for _, m := range regexp.MustCompile("(?ms)^```[a-z]*\n(.*?)^```$").FindAllStringSubmatch(section, -1) {
		blocks = append(blocks, m[1])
	}
	return blocks
}

func compact(t *testing.T, text string) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, []byte(text)); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out.String()
}
