package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/web/gen"
)

// kills is how often TestKill kills the server.
func kills() int {
	if os.Getenv("AGENTRUN_TEST") == "full" {
		return 200
	}
	return 20
}

const (
	killClients = 16
	// killWorkers are fewer than the clients, so that a kill also meets runs
	// that wait.
	killWorkers = 8
)

// killProgram is the program of both agents. The effect comes first and then a
// moment in which the turn can be cut off. The output is written before that
// moment, because what waits has taken the shell's place: a process of its own
// would outlive the server.
const killProgram = `echo "$AGENTRUN_RUN_ID $AGENTRUN_TURN" >> effects
IFS= read -r task
IFS= read -r note < note.txt
echo "$task: $note"
exec sleep 0.05`

// killAgent is an agent with a key of it.
type killAgent struct{ ID, Key string }

// killTest is one data directory and the servers that live on it, one after
// the other.
type killTest struct {
	witness
	t      *testing.T
	data   string
	agents map[string]killAgent
	random *rand.Rand
	// operator speaks through the socket to the server of the day.
	operator *gen.Client

	// own is the run of each client, nil when it has none.
	own [killClients]*errand
	// settled is how many of the acknowledged runs were seen to end.
	settled int
	// What the kills met, and what came of it.
	brokenKills, deliveries, became, cutOff, again, mostTimes int
	worstSettle, worstStart                                   time.Duration
}

// TestKill kills the server amid the work of many clients, again and again, and
// looks for what was promised: what was acknowledged is there and comes to its
// right end, soon after the restart, and no turn is run twice unless its agent
// allows it. KILL_SEED repeats the moments of the kills of another test.
//
// It runs alone in its package, since it measures time.
func TestKill(t *testing.T) {
	// With the race detector each management command would wait a second at its
	// end.
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	k := newKillTest(t)
	kills := kills()
	for n := range kills {
		l := k.begin()
		// In every third life the clients do not wait for what the life before
		// left. Then a kill also meets turns that are run again.
		if n%3 != 2 {
			k.settle(l)
		}
		// In every other life the time until the kill begins with the first run,
		// so that kills meet turns on a slow machine too.
		k.load(l, n%2 == 1)
		if len(k.problems) > 0 {
			k.fail(fmt.Sprintf("kill %d, the server's log:\n%s", n+1, &l.log))
		}
	}
	last := k.begin()
	k.settle(last)
	k.check(last)
	k.fail("at the end")
	if k.brokenKills == 0 || k.deliveries == 0 || k.cutOff == 0 || k.again == 0 {
		t.Error("the kills met too little: want some of each")
	}
	t.Logf("%d kills broke a POST's connection and %d deliveries were cut off; a turn was begun up to %d times; the slowest start took %v",
		k.brokenKills, k.deliveries, k.mostTimes, k.worstStart)
	t.Logf("%d injected, %d survived; %d acknowledged, %d turns cut off for good, %d run again, %d POSTs without an answer (%d became runs), settled after %v at the most",
		kills, kills, len(k.acknowledged), k.cutOff, k.again, len(k.unanswered), k.became, k.worstSettle)
}

func newKillTest(t *testing.T) *killTest {
	seed := rand.Uint64()
	if text := os.Getenv("KILL_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("KILL_SEED=%d", seed)
	k := &killTest{
		witness: witness{seed: seed}, t: t, data: filepath.Join(t.TempDir(), "data"),
		agents: map[string]killAgent{}, random: rand.New(rand.NewPCG(seed, 0)),
	}
	command := "command:\n- sh\n- -c\n- |\n  " + strings.ReplaceAll(killProgram, "\n", "\n  ") + "\n"
	var err error
	if k.operator, err = gen.NewClient("http://agentrun", noToken{}, gen.WithClient(&http.Client{Transport: &http.Transport{
		// A connection would be the last server's.
		DisableKeepAlives: true,
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return dialSocket(ctx, k.data) },
	}})); err != nil {
		t.Fatal(err)
	}
	for name, more := range map[string]string{killOnce: "", killAgain: "restart: true\n"} {
		file := filepath.Join(t.TempDir(), "agent.yaml")
		if err := os.WriteFile(file, []byte("name: "+name+"\n"+more+command), 0o600); err != nil {
			t.Fatal(err)
		}
		var agent, key killAgent
		manage(t, k.data, &agent, "agent", "apply", "-f", file)
		manage(t, k.data, &key, "key", "create", name)
		k.agents[name] = killAgent{ID: agent.ID, Key: key.Key}
	}
	return k
}

// begin starts the next life.
func (k *killTest) begin() *life {
	k.t.Helper()
	started := time.Now()
	p := startServe(k.t, k.data, "--workers", strconv.Itoa(killWorkers))
	l := &life{process: p, listened: time.Now(), first: make(chan struct{}, 1)}
	k.worstStart = max(k.worstStart, l.listened.Sub(started))
	l.http = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: killClients}, Timeout: patience}
	return l
}

// load lets clients work and kills the server amid that, a moment after they
// began, or after they have the first run.
func (k *killTest) load(l *life, afterFirst bool) {
	k.t.Helper()
	var clients sync.WaitGroup
	for n := range k.own {
		clients.Go(func() { k.own[n] = k.client(l, k.agents, k.own[n]) })
	}
	if afterFirst {
		select {
		case <-l.first:
		case <-l.ended:
		case <-time.After(patience):
		}
	}
	<-time.After(20*time.Millisecond + time.Duration(k.random.Int64N(int64(280*time.Millisecond))))
	l.killed.Store(true)
	if err := l.cmd.Process.Kill(); err != nil {
		<-l.ended
		k.t.Fatalf("the server ended by itself (%v):\n%s", l.cmd.ProcessState, &l.log)
	}
	<-l.ended
	clients.Wait()
	l.http.CloseIdleConnections()
	if l.broken.Load() > 0 {
		k.brokenKills++
	}
	unfinished, err := filepath.Glob(filepath.Join(k.data, "workspaces", "*.new"))
	if err != nil {
		k.t.Fatal(err)
	}
	k.deliveries += len(unfinished)
}

// settle waits until what earlier lives left has ended, and looks then whether
// each run says so itself.
func (k *killTest) settle(l *life) {
	k.t.Helper()
	passed, ok := k.awaitNoneRunning(l)
	if !ok {
		return
	}
	left := k.acknowledged[k.settled:]
	k.settled = len(k.acknowledged)
	for _, e := range left {
		if e.ended != "" {
			continue // A client saw its end.
		}
		e.settled = passed
		over, err := k.look(l, k.agents, e)
		if err != nil {
			return // It is among the problems.
		}
		if !over {
			k.problem("%s still runs, and no list has it among those that run", e)
		}
	}
}

// awaitNoneRunning waits until no run is left that runs, also none of which no
// client knows, and returns how long after the start that was.
func (k *killTest) awaitNoneRunning(l *life) (passed time.Duration, ok bool) {
	k.t.Helper()
	for {
		page, err := k.operator.ListRuns(k.t.Context(), gen.ListRunsParams{Status: gen.NewOptStatus(gen.StatusRunning)})
		if err != nil {
			k.t.Fatal(err)
		}
		passed = time.Since(l.listened)
		k.worstSettle = max(k.worstSettle, passed)
		if len(page.Runs) == 0 {
			return passed, true
		}
		if passed > settleLimit {
			k.problem("%v after the restart there still run %+v", passed, page.Runs)
			return passed, false
		}
		l.pause()
	}
}

// check looks at every run once all kills are over.
func (k *killTest) check(l *life) {
	k.t.Helper()
	k.problems = append(k.problems, sharedIDs(k.acknowledged)...)
	k.identify(l)
	for _, e := range slices.Concat(k.acknowledged, k.unanswered) {
		if e.id == "" {
			continue // It never became a run.
		}
		f := k.find(l, e)
		k.problems = append(k.problems, e.problems(f)...)
		switch {
		case e.agent == killOnce && f.state == "technical_error":
			k.cutOff++
		case e.agent == killAgain && len(f.effects()) > 1:
			k.again++
			k.mostTimes = max(k.mostTimes, len(f.effects()))
		}
	}
	var running []struct{ ID string }
	manage(k.t, k.data, &running, "runs", "list", "--status", "running", "--limit", "1000")
	if len(running) > 0 {
		k.problem("at the end there run %v", running)
	}
}

// identify gives the unanswered POSTs the runs that came of them. Each run has
// a workspace, since each POST had files.
func (k *killTest) identify(l *life) {
	k.t.Helper()
	known, asked := map[string]bool{}, map[string]*errand{}
	for _, e := range k.acknowledged {
		known[e.id] = true
	}
	for _, e := range k.unanswered {
		asked[e.input] = e
	}
	entries, err := os.ReadDir(filepath.Join(k.data, "workspaces"))
	if err != nil {
		k.t.Fatal(err)
	}
	for _, entry := range entries {
		id := entry.Name()
		if id == ".orphans" || known[id] {
			continue
		}
		if _, err := uuid.Parse(id); err != nil {
			k.problem("%s is no workspace", id)
			continue
		}
		var run struct{ Name string }
		manage(k.t, k.data, &run, "runs", "show", id)
		if e := asked[run.Name]; e != nil {
			e.id = id
			delete(asked, run.Name)
			k.became++
		} else {
			k.problem("run %s (%s) is another one than those asked for", id, run.Name)
		}
	}
	k.checkOrphans()
}

// checkOrphans looks at the folders of which the server said that they have no
// run: no program may have been there.
func (k *killTest) checkOrphans() {
	k.t.Helper()
	touched, err := filepath.Glob(filepath.Join(k.data, "workspaces", ".orphans", "*", killEffects))
	if err != nil {
		k.t.Fatal(err)
	}
	if len(touched) > 0 {
		k.problem("programs ran in folders without a run: %v", touched)
	}
	orphans, err := filepath.Glob(filepath.Join(k.data, "workspaces", ".orphans", "*"))
	if err != nil {
		k.t.Fatal(err)
	}
	k.deliveries += len(orphans)
}

// find collects what there is of a run.
func (k *killTest) find(l *life, e *errand) finding {
	k.t.Helper()
	seen, status, err := l.request(http.MethodGet, "/v1/agents/"+e.id, k.agents[e.agent].Key, nil)
	if err != nil {
		k.t.Fatal(err)
	}
	f := finding{status: status, state: seen.LoopStatus, transcript: seen.Transcript, files: map[string][]byte{}}
	if f.state == "technical_error" {
		var run struct{ Reason string }
		manage(k.t, k.data, &run, "runs", "show", e.id)
		f.reason = run.Reason
	}
	folder := filepath.Join(k.data, "workspaces", e.id)
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		k.t.Fatal(err)
	}
	for _, entry := range entries {
		content, err := os.ReadFile(filepath.Join(folder, entry.Name()))
		if err != nil {
			k.t.Fatal(err)
		}
		f.files[entry.Name()] = content
	}
	return f
}

// fail ends the test when there were problems.
func (k *killTest) fail(where string) {
	k.t.Helper()
	if len(k.problems) == 0 {
		return
	}
	const shown = 20
	for _, problem := range k.problems[:min(shown, len(k.problems))] {
		k.t.Error(problem)
	}
	k.t.Fatalf("%d problems; %s", len(k.problems), where)
}
