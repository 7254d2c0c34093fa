package storage_test

import (
	"testing"

	"agentrun/storage"
	"agentrun/storage/storagetest"
)

// woken says whether a wake-up is pending. Update wakes before it returns, so
// nothing has to be waited for.
func woken(w *storage.Watch) bool {
	select {
	case <-w.C:
		return true
	default:
		return false
	}
}

func TestWatch(t *testing.T) {
	s := storagetest.Open(t)
	caller := storagetest.MustCaller(t, s, storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile))
	one := storagetest.MustRun(t, s, caller, "1")
	all, mine := s.Watch(storage.RunID{}), s.Watch(one.ID)
	defer all.Close()
	defer mine.Close()
	if woken(all) || woken(mine) {
		t.Error("woken by what happened before")
	}

	storagetest.MustRun(t, s, caller, "2")
	storagetest.MustRun(t, s, caller, "3")
	if !woken(all) || woken(all) {
		t.Error("two commits leave exactly one wake-up")
	}
	if woken(mine) {
		t.Error("woken by another run")
	}

	turn := mustClaim(t, s)
	if !woken(mine) || !woken(all) {
		t.Error("not woken by the claim")
	}
	if err := s.FinishTurn(t.Context(), turn.Claim, "done"); err != nil {
		t.Fatal(err)
	}
	if !woken(mine) {
		t.Error("not woken by the end of the turn")
	}
	if err := s.FinishTurn(t.Context(), turn.Claim, "again"); err == nil {
		t.Fatal("the second end was accepted")
	}
	if woken(mine) {
		t.Error("woken by a refused write")
	}

	mine.Close()
	mine.Close()
	storagetest.MustRun(t, s, caller, "4")
	if woken(mine) {
		t.Error("woken after Close")
	}
}
