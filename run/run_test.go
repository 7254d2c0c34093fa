package run

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"agentrun/run/sandbox/sandboxtest"
	"agentrun/storage"
	"agentrun/storage/kv"
	"agentrun/storage/storagetest"
)

func TestWorkersAreTheMostAtOnce(t *testing.T) {
	t.Parallel()
	const workers, runs = 2, 6
	h := newHouse(t)
	meet, goOn, env := pipes(t)
	// Begin and end of a turn stand in the pipe in the order in which they
	// happened, so one turn too many would show at any time.
	caller := h.agent("one", "echo begin > $MEET; read x < $GO; echo end > $MEET", env)
	var ids []storage.RunID
	for i := range runs {
		ids = append(ids, h.run(caller, fmt.Sprint(i)))
	}
	h.serve(workers)
	atOnce, most := 0, 0
	for range workers { // as many as there are workers have to meet
		if line := meet.Line(); line != "begin" {
			t.Fatalf("%q before all workers met", line)
		}
		atOnce++
	}
	for range runs {
		goOn.Release()
	}
	for range 2*runs - workers {
		if meet.Line() == "begin" {
			atOnce++
		} else {
			atOnce--
		}
		most = max(most, atOnce)
	}
	if most > workers || atOnce != 0 {
		t.Errorf("%d turns at once, and %d at the end", most, atOnce)
	}
	for _, id := range ids {
		h.await(id, storage.StateFinished)
	}
}

func TestAgentsTakeTurns(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	meet, _, env := pipes(t)
	a, b := h.agent("a", "cat > $MEET", env), h.agent("b", "cat > $MEET", env)
	for _, input := range []string{"a1", "a2", "a3", "a4"} {
		h.run(a, input+"\n")
	}
	for _, input := range []string{"b1", "b2"} {
		h.run(b, input+"\n")
	}
	h.serve(1)
	var order []string
	for range 6 {
		order = append(order, meet.Line())
	}
	if diff := cmp.Diff([]string{"a1", "b1", "a2", "b2", "a3", "a4"}, order); diff != "" {
		t.Error(diff)
	}
}

// Workers that are free at the same time do not all serve the same agent.
func TestAgentsShareFreeWorkers(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	meet, goOn, env := pipes(t)
	const script = "cat > $MEET; read x < $GO"
	a, b, c := h.agent("a", script, env), h.agent("b", script, env), h.agent("c", script, env)
	for range 6 {
		h.run(a, "a\n")
	}
	h.run(b, "b\n")
	h.run(c, "c\n")
	h.serve(3)
	seen := map[string]int{}
	for range 3 {
		seen[meet.Line()]++
	}
	if diff := cmp.Diff(map[string]int{"a": 1, "b": 1, "c": 1}, seen); diff != "" {
		t.Error(diff)
	}
	for range 8 {
		goOn.Release()
	}
}

// A run that comes while the server is in the middle of something wakes it all
// the same: it never has to wait for the look that nothing woke.
func TestRunThatComesAtAnyMomentIsExecuted(t *testing.T) {
	for _, workers := range []int{1, 2} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, db := newFaultyHouse(t)
				caller := h.apply(storagetest.EchoFile)
				h.start(&Server{workers: workers, sandbox: instantRunner{}})
				moments := 0
				for ; ; moments++ {
					// While the server executes one run, another one comes between
					// a thing that it asks its store and the answer: the first
					// thing in the first round, and so on. What else of the server
					// can go on then does so before the answer.
					other := make(chan storage.RunID, 1)
					db.answering(moments, func() {
						other <- h.run(caller, "other")
						synctest.Wait()
					})
					one := h.run(caller, "one")
					<-time.After(time.Second) // passes once nothing moves any more
					if run := h.mustRun(one); run.State != storage.StateFinished {
						t.Fatalf("moment %d: the run is %+v", moments, run)
					}
					if len(other) == 0 {
						break
					}
					if run := h.mustRun(<-other); run.State != storage.StateFinished {
						t.Fatalf("moment %d: the run that came then is %+v", moments, run)
					}
				}
				if moments < 6 {
					t.Errorf("only %d things were asked", moments)
				}
			})
		})
	}
}

func TestDrainLetsTurnsEnd(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	meet, goOn, env := pipes(t)
	caller := h.agent("one", "echo > $MEET; read x < $GO; echo done", env)
	running := h.run(caller, "first")
	server := h.start(&Server{workers: 1, drain: time.Hour})
	meet.Line()
	waiting := h.run(caller, "second")
	server.end()
	goOn.Release()
	server.stop()
	if run := h.mustRun(running); run.State != storage.StateFinished {
		t.Errorf("got %+v", run)
	}
	if diff := cmp.Diff([]string{"in: first", "out: done"}, h.transcript(running)); diff != "" {
		t.Error(diff)
	}
	if run := h.mustRun(waiting); run.State != storage.StateRunning || run.Turn != 0 {
		t.Errorf("the run that waits is %+v", run)
	}
	h.serve(1)
	meet.Line()
	goOn.Release()
	h.await(waiting, storage.StateFinished)
}

func TestDrainCutsTurnsOff(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	meet, _, env := pipes(t)
	id := h.run(h.agent("one", "echo $$ > $MEET; exec sleep 600", env), "x")
	server := h.start(&Server{workers: 1, drain: time.Millisecond})
	pid := meet.PID()
	server.stop()
	if sandboxtest.Alive(pid) {
		t.Error("the server has ended, and the program is alive")
	}
	if run := h.mustRun(id); run.State != storage.StateTechnicalError || run.Reason != "server stopped" {
		t.Errorf("got %+v", run)
	}
	if diff := cmp.Diff([]string{"in: x"}, h.transcript(id)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(append(begun[:3:3], storage.EventCommandExited, storage.EventTurnFailed), h.kinds(id)); diff != "" {
		t.Error(diff)
	}
}

// A program that may be run again waits for the next server, and begins anew
// with the same input in what is left of its workspace.
func TestDrainParksWhatMayBeRunAgain(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	meet, _, env := pipes(t)
	const script = `if [ -e first ]; then cat; echo " again as $AGENTRUN_TURN"; else : > first; echo > $MEET; exec sleep 600; fi`
	id := h.run(h.agent("one", script, env, "restart: true"), "hello")
	server := h.start(&Server{workers: 1})
	meet.Line()
	server.stop()
	if run := h.mustRun(id); run.State != storage.StateRunning || run.Turn != 1 {
		t.Errorf("got %+v", run)
	}
	h.reopen()
	h.settle()
	h.serve(1)
	if run := h.await(id, storage.StateFinished); run.Turn != 1 {
		t.Errorf("got %+v", run)
	}
	if diff := cmp.Diff([]string{"in: hello", "out: hello again as 1"}, h.transcript(id)); diff != "" {
		t.Error(diff)
	}
	want := append(begun[:3:3], storage.EventCommandExited, storage.EventTurnParked,
		storage.EventTurnStarted, storage.EventCommandExited, storage.EventTurnFinished)
	if diff := cmp.Diff(want, h.kinds(id)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`{"sandbox":"off"}`, `{"again":true,"sandbox":"off"}`}, h.data(id, storage.EventTurnStarted)); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{`{"reason":"server stopped"}`}, h.data(id, storage.EventTurnParked)); diff != "" {
		t.Error(diff)
	}
}

// What a program did itself counts also while the server is going down.
func TestDrainDoesNotParkAFailure(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	meet, goOn, env := pipes(t)
	id := h.run(h.agent("one", "echo > $MEET; read x < $GO; exit 4", env, "restart: true"), "x")
	server := h.start(&Server{workers: 1, drain: time.Hour})
	meet.Line()
	server.end()
	goOn.Release()
	server.stop()
	if run := h.mustRun(id); run.State != storage.StateTechnicalError || !strings.Contains(run.Reason, "code 4") {
		t.Errorf("got %+v", run)
	}
}

// A turn of a deleted agent is over for good, whatever else ends it.
func TestDrainOfADeletedAgent(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	meet, _, env := pipes(t)
	caller := h.agent("one", "echo > $MEET; exec sleep 600", env, "restart: true")
	id := h.run(caller, "x")
	server := h.start(&Server{workers: 1})
	meet.Line()
	if _, err := h.store.DeleteAgent(t.Context(), caller.AgentID.String()); err != nil {
		t.Fatal(err)
	}
	server.stop()
	if run := h.mustRun(id); run.State != storage.StateTerminated || run.Reason != "agent deleted" {
		t.Errorf("got %+v", run)
	}
}

// A store that fails is not asked again and again, and once it works again what
// waited is executed. In the bubble of synctest, hours pass in no time.
func TestFailingStoreIsAskedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, db := newFaultyHouse(t)
		id := h.run(h.apply(storagetest.EchoFile), "x")
		core, logs := observer.New(zap.ErrorLevel)
		db.refusing(storage.ErrNoSpace, 0)
		h.start(&Server{workers: 3, sandbox: instantRunner{}, look: lookInterval, log: zap.New(core)})
		<-time.After(10*lookInterval + time.Second)
		if got := db.refusals(); got != 11 || logs.Len() != got {
			t.Errorf("asked %d times and logged %d, want 11", got, logs.Len())
		}
		db.refusing(nil, 0)
		<-time.After(lookInterval)
		h.await(id, storage.StateFinished)
	})
}

// A damaged run keeps nobody else's from being executed.
func TestDamagedRunIsSetAside(t *testing.T) {
	t.Parallel()
	h, db := newFaultyHouse(t)
	caller := h.apply(storagetest.EchoFile)
	damaged, sound := h.run(caller, "first"), h.run(caller, "second")
	err := db.Update(t.Context(), func(tx kv.Tx) error {
		return tx.Put("runs", damaged.UUID[:], []byte("nonsense"))
	})
	if err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.ErrorLevel)
	h.start(&Server{workers: 1, sandbox: instantRunner{}, log: zap.New(core)})
	h.await(sound, storage.StateFinished)
	if logs.Len() != 1 || logs.All()[0].Message != "run set aside" {
		t.Errorf("logged: %v", logs.All())
	}
}
