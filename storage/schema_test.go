package storage

import (
	"context"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"

	"agentrun/storage/agentfile"
	"agentrun/storage/kv"
	"agentrun/storage/kv/bolt"
)

// openDB opens a real bbolt file.
func openDB(t *testing.T, path string) kv.DB {
	t.Helper()
	db, err := bolt.Open(path, bolt.Options{InitialMmapSize: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

// spaceLog is a store that notes the spaces that are written to.
type spaceLog struct {
	kv.DB
	mu     sync.Mutex
	spaces map[string]bool
}

type spaceLogTx struct {
	kv.Tx
	log *spaceLog
}

func (l *spaceLog) Update(ctx context.Context, fn func(kv.Tx) error) error {
	return l.DB.Update(ctx, func(tx kv.Tx) error { return fn(spaceLogTx{tx, l}) })
}

func (tx spaceLogTx) Put(space string, key, value []byte) error {
	tx.log.mu.Lock()
	tx.log.spaces[space] = true
	tx.log.mu.Unlock()
	return tx.Tx.Put(space, key, value)
}

// TestSchemaIsDrawn fills a store and compares the spaces that it came to have
// with the drawing in the package comment.
func TestSchemaIsDrawn(t *testing.T) {
	log := &spaceLog{DB: openDB(t, filepath.Join(t.TempDir(), "agentrun.db")), spaces: map[string]bool{}}
	s, err := Open(t.Context(), log, Options{})
	if err != nil {
		t.Fatal(err)
	}
	agent := applyEcho(t, s)
	caller := callerOf(t, s, agent)
	input := "hello"
	id, err := NewRunID()
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.CreateRun(t.Context(), NewRun{ID: id, Caller: caller, Template: agent.ID, Name: "run", Input: &input})
	if err != nil {
		t.Fatal(err)
	}
	turn, err := s.ClaimNext(t.Context(), AgentID{}, "none")
	if err != nil {
		t.Fatal(err)
	}
	if err := s.RecordStep(t.Context(), turn.Claim, Spent{Calls: 1}); err != nil {
		t.Fatal(err)
	}
	if err := s.FinishTurn(t.Context(), turn.Claim, "hello"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeleteRun(t.Context(), id, "test"); err != nil {
		t.Fatal(err)
	}
	fillPeople(t, s, caller)
	var used []string
	for space := range log.spaces {
		used = append(used, space)
	}
	slices.Sort(used)
	drawn := drawnSpaces(t)
	slices.Sort(drawn)
	if diff := cmp.Diff(drawn, used); diff != "" {
		t.Errorf("drawn (-) and used (+) spaces differ:\n%s", diff)
	}
}

// fillPeople makes what belongs to people: a user, a session, a token.
func fillPeople(t *testing.T, s *Store, caller Caller) {
	t.Helper()
	user, err := s.SetUp(t.Context(), "one@example.org", "a long password")
	if err != nil {
		t.Fatal(err)
	}
	actor, err := s.UserActor(t.Context(), user.ID, user.Generation, "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.CreateToken(WithActor(t.Context(), actor), "one", []Scope{ScopeRead}, time.Hour); err != nil {
		t.Fatal(err)
	}
	s.NoteRefused(caller.KeyID, 409)
	if err := errors.Join(s.FlushUses(t.Context()), s.PutSession(t.Context(), "token", nil, time.Now().Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
}

func drawnSpaces(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "storage.go", nil, parser.ParseComments|parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	var spaces []string
	for _, m := range regexp.MustCompile(`(?m)^\t([a-z_]+)\n\t[├└]`).FindAllStringSubmatch(file.Doc.Text(), -1) {
		spaces = append(spaces, m[1])
	}
	return spaces
}

// migrationTests has a test for each migration, by its version.
var migrationTests = []func(t *testing.T, s *Store){
	func(t *testing.T, s *Store) {
		orgs, err := s.Orgs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(orgs) != 1 || orgs[0].Name != DefaultOrg || !slices.Equal(orgs[0].Models, []string{AnyModel}) {
			t.Errorf("organisations after the first migration: %+v", orgs)
		}
	},
	testIndexOfIdleRuns,
	testIndexOfOwnedRuns,
}

// testIndexOfOwnedRuns takes a store back to the version before its third
// migration.
func testIndexOfOwnedRuns(t *testing.T, s *Store) {
	caller := callerOf(t, s, applyEcho(t, s))
	run := createRun(t, s, caller, "hello")
	err := s.update(t.Context(), func(tx *tx) error {
		return errors.Join(
			tx.Delete(spaceOrgRuns, join(caller.OrgID.UUID[:], run.ID.UUID[:])),
			tx.Delete(spaceKeyRuns, join(caller.KeyID.UUID[:], run.ID.UUID[:])),
			put(tx, spaceMeta, keySchema, schemaRecord{Version: 2}),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	find := func(f RunFilter) []RunID {
		t.Helper()
		runs, _, err := s.Runs(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		var ids []RunID
		for _, found := range runs {
			if found.ID == run.ID {
				ids = append(ids, found.ID)
			}
		}
		return ids
	}
	for _, f := range []RunFilter{{Org: &caller.OrgID}, {Key: &caller.KeyID}} {
		if got := find(f); len(got) != 0 {
			t.Fatalf("before: %v", got)
		}
	}
	if err := s.migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, f := range []RunFilter{{Org: &caller.OrgID}, {Key: &caller.KeyID}} {
		if got := find(f); len(got) != 1 {
			t.Errorf("after: %v", got)
		}
	}
}

// testIndexOfIdleRuns takes a store back to the version before its second
// migration, with an idle run, one that waits, and one that cannot be read.
func testIndexOfIdleRuns(t *testing.T, s *Store) {
	caller := callerOf(t, s, applyEcho(t, s))
	idle, damaged, waiting := createIdle(t, s, caller), createIdle(t, s, caller), createRun(t, s, caller, "hello")
	old := func(id RunID) *runRecord {
		var rec *runRecord
		err := s.update(t.Context(), func(tx *tx) (err error) {
			if rec, err = runByID(tx, id); err != nil {
				return err
			}
			if err := tx.Delete(spaceIdle, idleKey(rec)); err != nil {
				return err
			}
			rec.IdleSince = time.Time{}
			return errors.Join(put(tx, spaceRuns, id.UUID[:], *rec), put(tx, spaceMeta, keySchema, schemaRecord{Version: 1}))
		})
		if err != nil {
			t.Fatal(err)
		}
		return rec
	}
	want := old(idle.ID)
	old(damaged.ID)
	damage(t, s, spaceRuns, damaged.ID.UUID[:])
	if since, err := s.LongestIdle(t.Context()); err != nil || !since.IsZero() {
		t.Fatalf("before: %v, %v", since, err)
	}
	if err := s.migrate(t.Context()); err != nil {
		t.Fatal(err)
	}
	if since, err := s.LongestIdle(t.Context()); err != nil || !since.Equal(want.UpdatedAt) {
		t.Errorf("idle since %v, %v, want %v", since, err, want.UpdatedAt)
	}
	stopped, err := s.StopIdle(t.Context(), time.Now(), "test")
	if err != nil || !slices.Equal(stopped, []RunID{idle.ID}) {
		t.Errorf("stopped: %v, %v, want %s, not %s", stopped, err, idle.ID, waiting.ID)
	}
}

func TestMigrations(t *testing.T) {
	if len(migrationTests) != len(migrations) {
		t.Fatalf("%d migrations have %d tests", len(migrations), len(migrationTests))
	}
	s, err := Open(t.Context(), openDB(t, filepath.Join(t.TempDir(), "agentrun.db")), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range migrationTests {
		test(t, s)
	}
}

func TestOpenTwiceKeepsTheDataAndRaisesTheEpoch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agentrun.db")
	first, err := Open(t.Context(), openDB(t, path), Options{})
	if err != nil {
		t.Fatal(err)
	}
	agent := applyEcho(t, first)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := Open(t.Context(), openDB(t, path), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if second.epoch != first.epoch+1 {
		t.Errorf("epoch %d after %d", second.epoch, first.epoch)
	}
	found, err := second.FindAgent(t.Context(), "echo")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(agent, found); diff != "" {
		t.Error(diff)
	}
}

func TestNewerSchemaIsRefusedUntouched(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agentrun.db")
	s, err := Open(t.Context(), openDB(t, path), Options{})
	if err != nil {
		t.Fatal(err)
	}
	newer := len(migrations) + 1
	err = s.update(t.Context(), func(tx *tx) error {
		return put(tx, spaceMeta, keySchema, schemaRecord{Version: newer})
	})
	if err != nil {
		t.Fatal(err)
	}
	epoch := s.epoch
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), openDB(t, path), Options{}); !errors.Is(err, ErrNewerSchema) {
		t.Fatalf("got %v, want ErrNewerSchema", err)
	}
	err = openDB(t, path).View(t.Context(), func(r kv.Reader) error {
		rec, err := get[epochRecord](r, spaceMeta, keyEpoch)
		if err == nil && rec.Epoch != epoch {
			t.Errorf("the epoch went from %d to %d", epoch, rec.Epoch)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func applyEcho(t *testing.T, s *Store) Agent {
	t.Helper()
	file, err := agentfile.Parse("name: echo\ncommand: [cat]\n")
	if err != nil {
		t.Fatal(err)
	}
	agent, err := s.ApplyAgent(t.Context(), DefaultOrg, file)
	if err != nil {
		t.Fatal(err)
	}
	return agent
}

func callerOf(t *testing.T, s *Store, agent Agent) Caller {
	t.Helper()
	_, secret, err := s.CreateKey(t.Context(), agent.ID.String(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	caller, err := s.Authenticate(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	return caller
}
