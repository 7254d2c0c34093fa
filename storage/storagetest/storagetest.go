// Package storagetest gives tests a real store in a temporary folder, and the
// rows that most tests begin with. It is for tests only.
package storagetest

import (
	"path/filepath"
	"testing"
	"time"

	"agentrun/storage"
	"agentrun/storage/agentfile"
	"agentrun/storage/kv"
	"agentrun/storage/kv/bolt"
	"agentrun/storage/kv/kvtest"
	"agentrun/storage/workspace"
)

// Open returns a new store over a bbolt file that goes with the test.
func Open(t *testing.T) *storage.Store {
	t.Helper()
	return OpenFile(t, filepath.Join(t.TempDir(), "agentrun.db"), storage.Options{})
}

// OpenFile opens the store in the file at path, as a server's start does; it is
// closed with the test at the latest. Passwords cost next to nothing unless opts
// says otherwise.
func OpenFile(t *testing.T, path string, opts storage.Options) *storage.Store {
	t.Helper()
	return OpenWrapped(t, path, opts, func(db kv.DB) kv.DB { return db })
}

// OpenWrapped is OpenFile with something between the store and its file.
func OpenWrapped(t *testing.T, path string, opts storage.Options, wrap func(kv.DB) kv.DB) *storage.Store {
	t.Helper()
	db, err := bolt.Open(path, bolt.Options{InitialMmapSize: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	if opts.PasswordCost == (storage.PasswordCost{}) {
		opts.PasswordCost = storage.PasswordCost{Passes: 1, Memory: 64}
	}
	// Every rule has to bear that its function runs more than once.
	store, err := storage.Open(t.Context(), kvtest.Rerun(wrap(db)), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

// Workspaces returns a new folder of workspaces that goes with the test.
func Workspaces(t *testing.T) *workspace.Store {
	t.Helper()
	spaces, err := workspace.Open(filepath.Join(t.TempDir(), "workspaces"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := spaces.Close(); err != nil {
			t.Error(err)
		}
	})
	return spaces
}

// EchoFile is the agent file of a program that repeats its input.
const EchoFile = "name: echo\ncommand: [cat]\n"

// MustApply applies an agent file in the organisation with this name.
func MustApply(t *testing.T, store *storage.Store, org, source string) storage.Agent {
	t.Helper()
	file, err := agentfile.Parse(source)
	if err != nil {
		t.Fatal(err)
	}
	agent, err := store.ApplyAgent(t.Context(), org, file)
	if err != nil {
		t.Fatal(err)
	}
	return agent
}

// MustKey makes a key of the agent that never ends and returns its secret.
func MustKey(t *testing.T, store *storage.Store, agent storage.Agent) (storage.Key, string) {
	t.Helper()
	return MustExpiringKey(t, store, agent, 0)
}

// MustExpiringKey is MustKey with a life.
func MustExpiringKey(t *testing.T, store *storage.Store, agent storage.Agent, life time.Duration) (storage.Key, string) {
	t.Helper()
	key, secret, err := store.CreateKey(t.Context(), agent.ID.String(), "test", life)
	if err != nil {
		t.Fatal(err)
	}
	return key, secret
}

// MustCaller returns whom a new key of the agent speaks for.
func MustCaller(t *testing.T, store *storage.Store, agent storage.Agent) storage.Caller {
	t.Helper()
	_, secret := MustKey(t, store, agent)
	caller, err := store.Authenticate(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	return caller
}

// MustRun creates a run of the caller's agent with these inputs, of which there
// may be one or none.
func MustRun(t *testing.T, store *storage.Store, caller storage.Caller, input ...string) storage.Run {
	t.Helper()
	id, err := storage.NewRunID()
	if err != nil {
		t.Fatal(err)
	}
	n := storage.NewRun{ID: id, Caller: caller, Template: caller.AgentID, Name: "test", Providers: []string{"script"}}
	if len(input) > 0 {
		n.Input = &input[0]
	}
	run, err := store.CreateRun(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return run
}
