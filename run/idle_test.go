package run

import (
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"agentrun/storage"
	"agentrun/storage/storagetest"
)

// Each run is stopped when it has been idle for the time, whatever happened to
// others, and one that got input in time is not. In the bubble of synctest,
// hours pass in no time.
func TestIdlePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := newFaultyHouse(t)
		caller := h.apply(storagetest.EchoFile)
		h.start(&Server{workers: 1, sandbox: instantRunner{}, idleStop: 10 * time.Hour, look: lookInterval})
		states := func(when string, want map[storage.RunID]storage.State) {
			t.Helper()
			synctest.Wait()
			for id, state := range want {
				if run := h.mustRun(id); run.State != state || state == storage.StateTerminated && run.Reason != "idle for 10h0m0s" {
					t.Errorf("%s: %+v, want %s", when, run, state)
				}
			}
		}
		const finished, terminated = storage.StateFinished, storage.StateTerminated
		never := storagetest.MustRun(t, h.store, caller).ID // got no input, ever
		once := h.run(caller, "x")
		more := h.run(caller, "x")
		<-time.After(6 * time.Hour)
		states("after 6 h", map[storage.RunID]storage.State{never: finished, once: finished, more: finished})
		late := storagetest.MustRun(t, h.store, caller).ID
		if _, err := h.store.GiveInput(t.Context(), more, "y"); err != nil {
			t.Fatal(err)
		}
		<-time.After(4*time.Hour - time.Minute)
		states("just before 10 h", map[storage.RunID]storage.State{never: finished, once: finished, more: finished, late: finished})
		<-time.After(2 * time.Minute)
		states("after 10 h", map[storage.RunID]storage.State{never: terminated, once: terminated, more: finished, late: finished})
		<-time.After(6 * time.Hour)
		states("after 16 h", map[storage.RunID]storage.State{more: terminated, late: terminated})

		// With none left, the time has to pass once more for the next ones.
		<-time.After(100 * time.Hour)
		next := storagetest.MustRun(t, h.store, caller).ID
		<-time.After(20 * time.Hour)
		states("at the end", map[storage.RunID]storage.State{next: terminated})
	})
}

// A run that works is not idle, however long that takes.
func TestIdlePolicySparesWhatWorks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, _ := newFaultyHouse(t)
		runner := heldRunner{began: make(chan struct{}), end: make(chan struct{})}
		h.start(&Server{workers: 1, sandbox: runner, idleStop: time.Minute, look: lookInterval})
		file := storagetest.EchoFile + "limits: {turn: 100h}\n"
		id := h.run(h.apply(file), "x")
		<-runner.began
		<-time.After(10 * time.Hour)
		if run := h.mustRun(id); run.State != storage.StateRunning {
			t.Errorf("in its turn: %+v", run)
		}
		close(runner.end)
		h.await(id, storage.StateFinished)
		<-time.After(time.Minute + time.Second)
		h.await(id, storage.StateTerminated)
	})
}

// A store that fails is asked again at the next look, and not before.
func TestIdlePolicyOverAFailingStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, db := newFaultyHouse(t)
		id := storagetest.MustRun(t, h.store, h.apply(storagetest.EchoFile)).ID
		core, logs := observer.New(zap.ErrorLevel)
		db.refusing(storage.ErrNoSpace, 3)
		h.start(&Server{workers: 1, sandbox: instantRunner{}, idleStop: time.Minute, look: lookInterval, log: zap.New(core)})
		<-time.After(time.Minute + 2*lookInterval + time.Second)
		if db.refusals() != 3 || logs.Len() != 3 {
			t.Errorf("asked %d times, logged %v", db.refusals(), logs.All())
		}
		h.await(id, storage.StateTerminated)
	})
}
