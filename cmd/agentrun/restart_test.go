package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// restartKills is how often TestModelTurnRestarts kills the server: at each of
// the first steps of its turn. Each step has one call of a tool. The last step
// is killed at nowhere: when the end of a server takes a call's effect away,
// the next call's effect tells that it is over.
const (
	restartKills = 60
	restartSteps = restartKills + 1
)

// restartPoints are the events at which the server ends, by turns: before a
// call, in the middle of it, when its effect is there and it is not over, for
// which there is no event, and after it.
var restartPoints = []string{"model_answered", "", "tool_returned"}

// TestModelTurnRestarts kills the server at each step of one turn of a model, and
// ends it with SIGTERM at some. The turn comes to its end, and no tool has its effect
// twice.
func TestModelTurnRestarts(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	data, scripts := filepath.Join(t.TempDir(), "data"), t.TempDir()
	var script strings.Builder
	script.WriteString("steps:\n")
	for k := 1; k <= restartSteps; k++ {
		fmt.Fprintf(&script, "- calls: [{tool: shell, arguments: {command: 'echo %d >> effects; sleep 0.1'}}]\n  tokens: {input: 1, output: 1}\n", k)
	}
	script.WriteString("- say: done\n  tokens: {input: 1, output: 1}\n")
	file := filepath.Join(t.TempDir(), "agent.yaml")
	for path, text := range map[string]string{
		filepath.Join(scripts, "long.yaml"): script.String(), file: "name: long\nmodel: script/long\ntools: [shell]\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var agent, key struct{ ID, Key string }
	manage(t, data, &agent, "agent", "apply", "-f", file)
	manage(t, data, &key, "key", "create", "long")

	var run string
	points := 0
	life := func(step, point int, end os.Signal) {
		points++
		p := startServe(t, data, "--provider", "script=script,"+scripts, "--drain", "0s")
		p.agent, p.key = agent.ID, key.Key
		if run == "" {
			status, body, err := p.post(1)
			run = runID(t, status, body, err)
		}
		if point %= len(restartPoints); restartPoints[point] == "" {
			p.awaitEffect(run, step)
		} else {
			p.awaitEvent(run, restartPoints[point], fmt.Sprintf(`"step%d_call1"`, step))
		}
		_ = p.cmd.Process.Signal(end)
		<-p.ended
	}
	for step := 1; step <= restartKills; step++ {
		if step%5 == 0 {
			life(step, step+1, syscall.SIGTERM)
		}
		life(step, step, syscall.SIGKILL)
	}
	p := startServe(t, data, "--provider", "script=script,"+scripts)
	begun := time.Now()
	p.awaitEvent(run, "turn_finished", "")
	effects, err := os.ReadFile(filepath.Join(data, "workspaces", run, "effects"))
	if err != nil {
		t.Fatal(err)
	}
	events := p.events(run)
	told := checkEffects(t, strings.Fields(string(effects)), events)
	var shown struct {
		Status string
		Spent  struct{ Calls int }
	}
	manage(t, data, &shown, "runs", "show", run)
	if shown.Status != "finished" || shown.Spent.Calls != restartSteps+1 {
		t.Errorf("the run is %s, with %d answers recorded, want %d", shown.Status, shown.Spent.Calls, restartSteps+1)
	}
	again := 0
	for _, e := range events {
		if e.Kind == "turn_started" && strings.Contains(string(e.Data), `"again":true`) {
			again++
		}
	}
	if again < restartKills/2 {
		t.Errorf("the turn was begun again only %d times: the server mostly ended elsewhere", again)
	}
	t.Logf("%d kill -9 and %d SIGTERM injected, %d survived; %d effects of %d calls, none twice; the model was told of %d interruptions; the last end took %s",
		restartKills, points-restartKills, points, len(strings.Fields(string(effects))), restartSteps, told, time.Since(begun).Round(time.Millisecond))
}

// restartEvent is an event as it is printed.
type restartEvent struct {
	Kind string
	Data json.RawMessage
}

// events are all events of a run.
func (p *process) events(run string) []restartEvent {
	p.t.Helper()
	out, err := exec.CommandContext(p.t.Context(), "agentrun", "runs", "events", run, "--json", "--data", p.data).Output()
	if err != nil {
		p.t.Fatal(err)
	}
	var events []restartEvent
	for line := range strings.Lines(string(out)) {
		var e restartEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			p.t.Fatal(err)
		}
		events = append(events, e)
	}
	return events
}

// awaitEvent returns when a run has an event of a kind with a text in its data.
func (p *process) awaitEvent(run, kind, text string) {
	p.t.Helper()
	follow := exec.CommandContext(p.t.Context(), "agentrun", "runs", "events", run, "--follow", "--json", "--data", p.data)
	stdout, err := follow.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	if err := follow.Start(); err != nil {
		p.t.Fatal(err)
	}
	defer func() {
		_ = follow.Process.Kill()
		_ = follow.Wait()
	}()
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e restartEvent
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			p.t.Fatal(err)
		}
		if e.Kind == kind && strings.Contains(string(e.Data), text) {
			return
		}
		if e.Kind == "turn_failed" {
			p.t.Fatalf("the turn failed: %s", e.Data)
		}
	}
	p.t.Fatalf("no event %s with %s", kind, text)
}

// awaitEffect returns when a step's call has had its effect, or is over.
func (p *process) awaitEffect(run string, step int) {
	p.t.Helper()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	late := time.After(time.Minute)
	for {
		effects, _ := os.ReadFile(filepath.Join(p.data, "workspaces", run, "effects")) // There is none at first.
		fields := strings.Fields(string(effects))
		if len(fields) > 0 {
			if last, err := strconv.Atoi(fields[len(fields)-1]); err == nil && last >= step {
				return
			}
		}
		select {
		case <-look.C:
		case <-late:
			p.t.Fatalf("step %d has no effect", step)
		}
	}
}

// checkEffects looks whether each call had its effect once, or at most once
// where the model was told that nobody knows, and returns how often it was.
func checkEffects(t *testing.T, effects []string, events []restartEvent) (told int) {
	t.Helper()
	for k := 1; k <= restartSteps; k++ {
		call := fmt.Sprintf("step%d_call1", k)
		times := 0
		for _, e := range effects {
			if e == fmt.Sprint(k) {
				times++
			}
		}
		i := slices.IndexFunc(events, func(e restartEvent) bool {
			return e.Kind == "tool_returned" && strings.Contains(string(e.Data), `"`+call+`"`)
		})
		switch {
		case i < 0:
			t.Errorf("%s has no result", call)
		case times > 1:
			t.Errorf("%s had its effect %d times", call, times)
		case strings.Contains(string(events[i].Data), "It may have been done"):
			told++
		case times != 1:
			t.Errorf("%s returned, and had no effect", call)
		}
	}
	return told
}
