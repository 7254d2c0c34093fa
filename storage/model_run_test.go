package storage_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"
	"pgregory.net/rapid"

	"agentrun/storage"
	"agentrun/storage/agentfile"
	"agentrun/storage/kv/bolt"
	"agentrun/storage/kv/kvtest"
)

// TestModel drives the store and the plain model of it through random sequences
// of everything that can happen to runs, restarts included, and compares all
// that can be read after each step. More of them: -rapid.checks=10000.
func TestModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	done := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		done["sequence"]++
		m := &machine{path: filepath.Join(dir, fmt.Sprint(done["sequence"], ".db")), done: done, claims: map[storage.RunID]storage.Claim{}}
		m.open(t)
		defer func() {
			if err := m.store.Close(); err != nil {
				t.Error(err)
			}
			_ = os.Remove(m.path)
		}()
		m.newAgent(t)
		t.Repeat(map[string]func(*rapid.T){
			"":             m.check,
			"new agent":    m.newAgent,
			"create":       m.create,
			"create again": m.create, // the more runs there are, the more happens to them
			"input":        m.input,
			"claim":        m.claim,
			"claim more":   m.claim,
			"claim most":   m.claim,
			"input again":  m.input,
			"finish":       m.finish,
			"fail":         m.fail,
			"park":         m.park,
			"late write":   m.lateWrite,
			"stop":         m.stop,
			"delete":       m.delete,
			"erase":        m.erase,
			"stop idle":    m.stopIdle,
			"archive":      m.archive,
			"delete agent": m.deleteAgent,
			"kill":         m.kill,
		})
	})
	for _, step := range []string{
		"new agent", "create", "input", "input refused", "claim", "claim again", "finish", "fail", "park", "late write", "stop",
		"stop of a claimed run", "delete", "delete of a claimed run", "erase", "stop idle", "archive", "delete agent", "kill", "turn cut off",
	} {
		if done[step] == 0 {
			t.Errorf("%s: never happened", step)
		}
	}
	t.Logf("sequences and steps: %v", done)
}

// machine is a store beside its model.
type machine struct {
	plain
	path   string
	store  *storage.Store
	done   map[string]int
	claims map[storage.RunID]storage.Claim
	stale  []storage.Claim
}

func (m *machine) open(t *rapid.T) {
	db, err := bolt.Open(m.path, bolt.Options{InitialMmapSize: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if m.store, err = storage.Open(t.Context(), kvtest.Rerun(db), storage.Options{}); err != nil {
		t.Fatal(err)
	}
}

// same fails the test unless the store answered as the model did.
func (m *machine) same(t *rapid.T, step string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) || (got != nil) != (want != nil) {
		t.Fatalf("%s: the store says %v, the model %v", step, got, want)
	}
	m.done[step]++
	if want != nil {
		m.done[step+" refused"]++
	}
}

// anyRun draws a run; the step is skipped when there is none that fits.
func (m *machine) anyRun(t *rapid.T, fits func(*plainRun) bool) *plainRun {
	runs := slices.DeleteFunc(slices.Clone(m.runs), func(r *plainRun) bool { return !fits(r) })
	if len(runs) == 0 {
		t.Skip("no such run")
	}
	return rapid.SampledFrom(runs).Draw(t, "run")
}

func all(*plainRun) bool       { return true }
func claimed(r *plainRun) bool { return r.claimed }
func erasing(r *plainRun) bool { return r.erasing }

func text(t *rapid.T) string { return rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "text") }

func (m *machine) anyAgent(t *rapid.T) *plainAgent {
	return rapid.SampledFrom(m.agents).Draw(t, "agent")
}

func (m *machine) newAgent(t *rapid.T) {
	if len(m.agents) == 3 {
		t.Skip("enough agents")
	}
	a := &plainAgent{restart: rapid.Bool().Draw(t, "restart")}
	file, err := agentfile.Parse(fmt.Sprintf("name: agent-%d\ncommand: [cat]\nrestart: %t\n", len(m.agents), a.restart))
	if err != nil {
		t.Fatal(err)
	}
	agent, err := m.store.ApplyAgent(t.Context(), storage.DefaultOrg, file)
	if err != nil {
		t.Fatal(err)
	}
	_, secret, err := m.store.CreateKey(t.Context(), agent.ID.String(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	if a.caller, err = m.store.Authenticate(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	m.agents = append(m.agents, a)
	m.done["new agent"]++
}

func (m *machine) create(t *rapid.T) {
	a := m.anyAgent(t)
	id, err := storage.NewRunID()
	if err != nil {
		t.Fatal(err)
	}
	n := storage.NewRun{ID: id, Caller: a.caller, Template: a.caller.AgentID, Name: "run"}
	if rapid.Bool().Draw(t, "with input") {
		first := text(t)
		n.Input = &first
	}
	_, err = m.store.CreateRun(t.Context(), n)
	m.same(t, "create", err, m.plain.create(a, id, n.Input))
}

func (m *machine) input(t *rapid.T) {
	r, more := m.anyRun(t, all), text(t)
	_, err := m.store.GiveInput(t.Context(), r.id, more)
	m.same(t, "input", err, r.input(more))
}

func (m *machine) claim(t *rapid.T) {
	after := storage.AgentID{}
	if i := rapid.IntRange(-1, len(m.agents)-1).Draw(t, "after"); i >= 0 {
		after = m.agents[i].caller.AgentID
	}
	turn, err := m.store.ClaimNext(t.Context(), after, "none")
	if err != nil {
		t.Fatal(err)
	}
	want := m.next(after)
	if want == nil || turn == nil {
		if turn != nil || want != nil {
			t.Fatalf("claimed %+v, want %+v", turn, want)
		}
		return
	}
	input, again := want.claim()
	if turn.Run.ID != want.id || turn.Input != input || turn.Again != again || turn.Definition.Restart != want.agent.restart {
		t.Fatalf("claimed %+v, want run %s with %q, again %t", turn, want.id, input, again)
	}
	m.claims[want.id] = turn.Claim
	m.done["claim"]++
	if again {
		m.done["claim again"]++
	}
}

// release takes the claim of a run, which is stale from now on.
func (m *machine) release(r *plainRun) storage.Claim {
	c := m.claims[r.id]
	delete(m.claims, r.id)
	m.stale = append(m.stale, c)
	return c
}

func (m *machine) finish(t *rapid.T) {
	r, output := m.anyRun(t, claimed), text(t)
	m.same(t, "finish", m.store.FinishTurn(t.Context(), m.release(r), output), nil)
	r.finish(output)
}

func (m *machine) fail(t *rapid.T) {
	r := m.anyRun(t, claimed)
	m.same(t, "fail", m.store.FailTurn(t.Context(), m.release(r), "it failed"), nil)
	r.fail("it failed")
}

func (m *machine) park(t *rapid.T) {
	r := m.anyRun(t, claimed)
	m.same(t, "park", m.store.ParkTurn(t.Context(), m.release(r), "server stopped"), nil)
	r.park()
}

func (m *machine) lateWrite(t *rapid.T) {
	if len(m.stale) == 0 {
		t.Skip("no stale claim")
	}
	c := rapid.SampledFrom(m.stale).Draw(t, "claim")
	write := rapid.SampledFrom([]func(context.Context, storage.Claim, string, ...storage.Event) error{
		m.store.FinishTurn, m.store.FailTurn, m.store.ParkTurn,
	}).Draw(t, "write")
	m.same(t, "late write", write(t.Context(), c, "late"), storage.ErrStaleClaim)
}

func (m *machine) stop(t *rapid.T) {
	r := m.anyRun(t, all)
	if r.claimed {
		m.done["stop of a claimed run"]++
	}
	_, err := m.store.StopRun(t.Context(), r.id, "stopped")
	m.same(t, "stop", err, nil)
	r.stop("stopped")
}

func (m *machine) delete(t *rapid.T) {
	r := m.anyRun(t, all)
	if r.claimed {
		m.done["delete of a claimed run"]++
	}
	_, err := m.store.DeleteRun(t.Context(), r.id, "deleted")
	m.same(t, "delete", err, nil)
	r.delete("deleted")
}

func (m *machine) erase(t *rapid.T) {
	r := m.anyRun(t, erasing)
	m.same(t, "erase", m.store.WorkspaceErased(t.Context(), r.id), nil)
	r.erasing = false
}

func (m *machine) stopIdle(t *rapid.T) {
	if rapid.IntRange(0, 7).Draw(t, "seldom") > 0 {
		t.Skip("it would end most runs early")
	}
	_, err := m.store.StopIdle(t.Context(), time.Now(), "idle")
	m.same(t, "stop idle", err, nil)
	for _, r := range m.runs {
		if r.state == storage.StateFinished || r.state == storage.StateTechnicalError {
			r.stop("idle")
		}
	}
}

func (m *machine) archive(t *rapid.T) {
	a, archived := m.anyAgent(t), rapid.IntRange(0, 3).Draw(t, "archived") == 0
	_, err := m.store.SetArchived(t.Context(), a.caller.AgentID.String(), archived)
	if a.deleted {
		m.same(t, "archive", err, storage.ErrAgentNotFound)
		return
	}
	m.same(t, "archive", err, nil)
	a.archived = archived
}

func (m *machine) deleteAgent(t *rapid.T) {
	if rapid.IntRange(0, 7).Draw(t, "seldom") > 0 {
		t.Skip("an agent that is deleted ends much of what can happen")
	}
	a := m.anyAgent(t)
	_, err := m.store.DeleteAgent(t.Context(), a.caller.AgentID.String())
	if a.deleted {
		m.same(t, "delete agent", err, storage.ErrAgentNotFound)
		return
	}
	m.same(t, "delete agent", err, nil)
	m.plain.deleteAgent(a)
}

// kill ends the life of the store, claims and all, and begins the next one.
func (m *machine) kill(t *rapid.T) {
	if err := m.store.Close(); err != nil {
		t.Fatal(err)
	}
	m.open(t)
	m.done["turn cut off"] += len(m.claims)
	m.stale = slices.AppendSeq(m.stale, maps.Values(m.claims))
	clear(m.claims)
	_, err := m.store.Settle(t.Context(), "server stopped")
	m.same(t, "kill", err, nil)
	m.restart()
}

// check compares all that can be read of the store with the model.
func (m *machine) check(t *rapid.T) {
	waiting := 0
	for _, a := range m.agents {
		waiting += len(a.queue)
	}
	if n, err := m.store.Waiting(t.Context(), 0); err != nil || n != waiting {
		t.Fatalf("%d runs wait, %v, want %d", n, err, waiting)
	}
	var listed, left []storage.RunID
	for _, r := range m.runs {
		m.checkRun(t, r)
		if !r.deleted {
			listed = append([]storage.RunID{r.id}, listed...)
		}
		if r.erasing {
			left = append(left, r.id)
		}
	}
	runs, _, err := m.store.Runs(t.Context(), storage.RunFilter{})
	if err != nil {
		t.Fatal(err)
	}
	var ids []storage.RunID
	for _, r := range runs {
		ids = append(ids, r.ID)
	}
	if diff := cmp.Diff(listed, ids); diff != "" {
		t.Fatalf("the list of runs: %s", diff)
	}
	if erasures, err := m.store.Erasures(t.Context(), 0); err != nil || !slices.Equal(erasures, left) {
		t.Fatalf("workspaces to remove: %v, %v, want %v", erasures, err, left)
	}
	if _, err := m.store.Run(t.Context(), storage.RunID{UUID: uuid.New()}); !errors.Is(err, storage.ErrRunNotFound) {
		t.Fatalf("a run that does not exist: %v", err)
	}
}

func (m *machine) checkRun(t *rapid.T, r *plainRun) {
	t.Helper()
	row, err := m.store.Run(t.Context(), r.id)
	if err != nil {
		t.Fatal(err)
	}
	want := storage.Run{
		ID: r.id, OrgID: r.agent.caller.OrgID, AgentID: r.agent.caller.AgentID, KeyID: r.agent.caller.KeyID, Name: "run", Revision: 1,
		State: r.state, Reason: r.reason, Turn: r.turns, WaitingInputs: uint64(len(r.waiting)),
		Stopping: r.stopping != "", Deleted: r.deleted, Erasing: r.erasing, CreatedAt: row.CreatedAt, UpdatedAt: row.UpdatedAt,
	}
	if diff := cmp.Diff(want, row); diff != "" {
		t.Fatalf("run: %s", diff)
	}
	state, messages, err := m.store.StateAndTranscript(t.Context(), r.agent.caller, r.id)
	if err != nil || state != r.state {
		t.Fatalf("run %s: %s, %v, want %s", r.id, state, err, r.state)
	}
	var texts []string
	for _, msg := range messages {
		texts = append(texts, string(msg.Role)+": "+msg.Text)
	}
	if diff := cmp.Diff(r.transcript, texts); diff != "" {
		t.Fatalf("run %s: transcript: %s", r.id, diff)
	}
	_, events, err := m.store.StateAndEvents(t.Context(), r.id, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []storage.EventKind
	for i, e := range events {
		if e.Seq != uint64(i)+1 {
			t.Fatalf("run %s: event %d has number %d", r.id, i+1, e.Seq)
		}
		kinds = append(kinds, e.Kind)
	}
	if diff := cmp.Diff(r.events, kinds); diff != "" {
		t.Fatalf("run %s: events: %s", r.id, diff)
	}
	for _, a := range m.agents {
		_, _, err := m.store.StateAndTranscript(t.Context(), a.caller, r.id)
		if a != r.agent && !errors.Is(err, storage.ErrRunNotFound) {
			t.Fatalf("run %s for a key of another agent: %v", r.id, err)
		}
	}
}
