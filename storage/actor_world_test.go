package storage_test

import (
	"context"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"agentrun/storage"
	"agentrun/storage/kv"
	"agentrun/storage/kv/bolt"
	"agentrun/storage/kv/kvtest"
	"agentrun/storage/storagetest"
)

// counted is a store that counts the updates that were made and wrote something.
type counted struct {
	kv.DB
	writes atomic.Int64
	// refuse makes updates fail instead.
	refuse atomic.Bool
}

type countedTx struct {
	kv.Tx
	wrote *bool
}

func (c *counted) Update(ctx context.Context, fn func(kv.Tx) error) error {
	if c.refuse.Load() {
		return kv.ErrNoSpace
	}
	var wrote bool
	err := c.DB.Update(ctx, func(tx kv.Tx) error {
		wrote = false
		return fn(countedTx{tx, &wrote})
	})
	if err == nil && wrote {
		c.writes.Add(1)
	}
	return err
}

func (tx countedTx) Put(space string, key, value []byte) error {
	*tx.wrote = true
	return tx.Tx.Put(space, key, value)
}

func (tx countedTx) Delete(space string, key []byte) error {
	*tx.wrote = true
	return tx.Tx.Delete(space, key)
}

func openCounted(t *testing.T, opts storage.Options) (*storage.Store, *counted) {
	t.Helper()
	db, err := bolt.Open(filepath.Join(t.TempDir(), "agentrun.db"), bolt.Options{InitialMmapSize: 16 << 20})
	if err != nil {
		t.Fatal(err)
	}
	c := &counted{DB: kvtest.Rerun(db)}
	s, err := storage.Open(t.Context(), c, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, c
}

const goodPassword = "a long password"

// who is somebody for whom something is tried.
type who struct {
	name     string
	actor    storage.Actor
	password string
}

// seesA says whether what belongs to organisation A is there for somebody.
func (w who) seesA(world *world) bool {
	return w.actor.Role == storage.OperatorRole || w.actor.Org == world.a.ID
}

// has says whether somebody is not held back by the scopes of a token.
func (w who) has(scope storage.Scope) bool {
	if w.actor.Scopes == nil || scope == storage.ScopeRead {
		return true
	}
	for _, s := range w.actor.Scopes {
		if s == scope {
			return true
		}
	}
	return false
}

// world has two organisations, in A an agent, a key and a run, and everybody.
type world struct {
	t      *testing.T
	s      *storage.Store
	db     *counted
	a, b   storage.Org
	agent  storage.Agent
	key    storage.Key
	caller storage.Caller
	run    storage.Run

	operator, memberA, memberB, victim storage.User

	everybody []who
	made      int
	// spare are users that nobody needs any more.
	spare []string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t}
	w.s, w.db = openCounted(t, storage.Options{})
	w.a, w.b = must(w.s.CreateOrg(t.Context(), "A"))(t), must(w.s.CreateOrg(t.Context(), "B"))(t)
	w.agent = storagetest.MustApply(t, w.s, "A", storagetest.EchoFile)
	storagetest.MustApply(t, w.s, "B", "name: other\ncommand: [cat]\n")
	w.key, _ = storagetest.MustKey(t, w.s, w.agent)
	w.caller = storage.Caller{KeyID: w.key.ID, AgentID: w.agent.ID, OrgID: w.a.ID}
	w.run = storagetest.MustRun(t, w.s, w.caller, "hello")
	w.operator = must(w.s.SetUp(t.Context(), "operator@example.org", goodPassword))(t)
	w.memberA = w.newUser("member-a@example.org", storage.MemberRole, "A")
	w.memberB = w.newUser("member-b@example.org", storage.MemberRole, "B")
	w.victim = w.newUser("victim@example.org", storage.MemberRole, "A")

	w.everybody = append(w.everybody, who{name: "local operator", actor: storage.LocalOperator})
	for _, user := range []storage.User{w.operator, w.memberA, w.memberB} {
		session := w.session(user)
		w.everybody = append(w.everybody, who{name: user.Email, actor: session, password: goodPassword})
		for _, scope := range []storage.Scope{
			storage.ScopeRead, storage.ScopeRuns, storage.ScopeAgents, storage.ScopeKeys, storage.ScopeAdmin,
		} {
			w.everybody = append(w.everybody, who{name: user.Email + " with a token for " + string(scope), actor: w.token(session, scope)})
		}
	}
	return w
}

func (w *world) newUser(email string, role storage.UserRole, org string) storage.User {
	w.t.Helper()
	return must(w.s.CreateUser(w.t.Context(), storage.NewUser{Email: email, Password: goodPassword, Role: role, Org: org}))(w.t)
}

func (w *world) session(user storage.User) storage.Actor {
	w.t.Helper()
	return must(w.s.UserActor(w.t.Context(), user.ID, user.Generation, "192.0.2.7"))(w.t)
}

func (w *world) token(owner storage.Actor, scopes ...storage.Scope) storage.Actor {
	w.t.Helper()
	_, secret, err := w.s.CreateToken(storage.WithActor(w.t.Context(), owner), "token", scopes, time.Hour)
	if err != nil {
		w.t.Fatal(err)
	}
	return must(w.s.TokenActor(w.t.Context(), secret, "192.0.2.8"))(w.t)
}

// next returns a name that was not used before.
func (w *world) next(what string) string {
	w.made++
	return what + "-" + strconv.Itoa(w.made)
}

// These make something in organisation A that a test may change or take away.

func (w *world) newAgent() string {
	w.t.Helper()
	return storagetest.MustApply(w.t, w.s, "A", "name: "+w.next("agent")+"\ncommand: [cat]\n").ID.String()
}

func (w *world) newKey() string {
	w.t.Helper()
	key, _ := storagetest.MustKey(w.t, w.s, w.agent)
	return key.ID.String()
}

func (w *world) newRun() string {
	w.t.Helper()
	return storagetest.MustRun(w.t, w.s, w.caller).ID.String()
}

// someUser returns a user that was made before, if there is one: a password
// takes its time.
func (w *world) someUser() string {
	w.t.Helper()
	if len(w.spare) == 0 {
		return w.newUser(w.next("gone")+"@example.org", storage.MemberRole, "A").ID.String()
	}
	user := w.spare[0]
	w.spare = w.spare[1:]
	return user
}

func (w *world) newTokenOfA() string {
	w.t.Helper()
	ctx := storage.WithActor(w.t.Context(), w.session(w.memberA))
	token, _, err := w.s.CreateToken(ctx, "token", []storage.Scope{storage.ScopeRead}, time.Hour)
	if err != nil {
		w.t.Fatal(err)
	}
	return token.ID.String()
}

// must returns what a call came to, and ends the test when it failed.
func must[V any](v V, err error) func(*testing.T) V {
	return func(t *testing.T) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}
