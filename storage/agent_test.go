package storage_test

import (
	"testing"

	"github.com/go-faster/errors"

	"agentrun/storage"
	"agentrun/storage/storagetest"
)

func TestApplyAgent(t *testing.T) {
	s := storagetest.Open(t)
	first := storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile)
	if first.Revision != 1 || first.Archived || first.Name != "echo" {
		t.Errorf("first: %+v", first)
	}
	same := storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile)
	if same.Revision != 1 || same.ID != first.ID {
		t.Errorf("the same file again: %+v", same)
	}
	changed := storagetest.MustApply(t, s, storage.DefaultOrg, "name: echo\ncommand: [cat, -]\n")
	if changed.Revision != 2 || changed.ID != first.ID {
		t.Errorf("another file: %+v", changed)
	}
	file, err := s.AgentFile(t.Context(), "echo")
	if err != nil || file.Source != "name: echo\ncommand: [cat, -]\n" {
		t.Errorf("AgentFile: %q, %v", file.Source, err)
	}
}

func TestFindAgentByName(t *testing.T) {
	s := storagetest.Open(t)
	if _, err := s.CreateOrg(t.Context(), "acme"); err != nil {
		t.Fatal(err)
	}
	ours := storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile)
	if found, err := s.FindAgent(t.Context(), "echo"); err != nil || found.ID != ours.ID {
		t.Errorf("one of the name: %+v, %v", found, err)
	}
	theirs := storagetest.MustApply(t, s, "acme", storagetest.EchoFile)
	if _, err := s.FindAgent(t.Context(), "echo"); !errors.Is(err, storage.ErrAmbiguousName) {
		t.Errorf("two of the name: got %v, want ErrAmbiguousName", err)
	}
	if found, err := s.FindAgent(t.Context(), theirs.ID.String()); err != nil || found.OrgID == ours.OrgID {
		t.Errorf("by ID: %+v, %v", found, err)
	}
	if _, err := s.FindAgent(t.Context(), "nobody"); !errors.Is(err, storage.ErrAgentNotFound) {
		t.Errorf("unknown: got %v, want ErrAgentNotFound", err)
	}
}

func TestArchivedAgentTakesNoRuns(t *testing.T) {
	s := storagetest.Open(t)
	agent := storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile)
	caller := storagetest.MustCaller(t, s, agent)
	if _, err := s.SetArchived(t.Context(), "echo", true); err != nil {
		t.Fatal(err)
	}
	var archived *storage.ArchivedError
	if err := s.CheckCreate(t.Context(), caller, agent.ID); !errors.As(err, &archived) || archived.Name != "echo" {
		t.Errorf("archived: got %v", err)
	}
	if _, err := s.SetArchived(t.Context(), "echo", false); err != nil {
		t.Fatal(err)
	}
	if err := s.CheckCreate(t.Context(), caller, agent.ID); err != nil {
		t.Errorf("unarchived: got %v", err)
	}
}

func TestDeletedAgent(t *testing.T) {
	s := storagetest.Open(t)
	agent := storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile)
	_, secret := storagetest.MustKey(t, s, agent)
	caller := storagetest.MustCaller(t, s, agent)
	idle := storagetest.MustRun(t, s, caller)
	claimed := storagetest.MustRun(t, s, caller, "claimed")
	turn, err := s.ClaimNext(t.Context(), storage.AgentID{}, "none")
	if err != nil {
		t.Fatal(err)
	}
	waiting := storagetest.MustRun(t, s, caller, "waiting")
	if _, err := s.DeleteAgent(t.Context(), "echo"); err != nil {
		t.Fatal(err)
	}

	if _, err := s.Authenticate(t.Context(), secret); err != nil {
		t.Errorf("its keys still authenticate: got %v", err)
	}
	if err := s.CheckCreate(t.Context(), caller, agent.ID); !errors.Is(err, storage.ErrAgentDeleted) {
		t.Errorf("a new run: got %v, want ErrAgentDeleted", err)
	}
	if _, err := s.FindAgent(t.Context(), "echo"); !errors.Is(err, storage.ErrAgentNotFound) {
		t.Errorf("by name: got %v", err)
	}
	for run, want := range map[storage.Run]storage.State{
		idle: storage.StateFinished, waiting: storage.StateTerminated, claimed: storage.StateRunning,
	} {
		if state, _, err := s.StateAndTranscript(t.Context(), caller, run.ID); err != nil || state != want {
			t.Errorf("run %s: %s, %v, want %s", run.ID, state, err, want)
		}
	}
	if reason, err := s.StopRequested(t.Context(), turn.Claim); err != nil || reason == "" {
		t.Errorf("the claimed run is to end: %q, %v", reason, err)
	}
	if err := s.FailTurn(t.Context(), turn.Claim, "stop requested"); err != nil {
		t.Fatal(err)
	}
	if state, _, err := s.StateAndTranscript(t.Context(), caller, claimed.ID); err != nil || state != storage.StateTerminated {
		t.Errorf("once its turn ended: %s, %v", state, err)
	}

	again := storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile)
	if again.ID == agent.ID {
		t.Error("the name is free, but the deleted agent came back")
	}
}
