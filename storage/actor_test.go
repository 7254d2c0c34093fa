package storage_test

import (
	"context"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/storage"
)

// lists are the methods that return what somebody sees of many; each returns
// the IDs that it lists, with something of organisation A among all.
func (w *world) lists() map[string]struct {
	of   string // organisation A
	mine func(who) bool
	all  func(ctx context.Context) ([]string, error)
} {
	type list = struct {
		of   string
		mine func(who) bool
		all  func(ctx context.Context) ([]string, error)
	}
	sees := func(somebody who) bool { return somebody.seesA(w) }
	runs := func(f storage.RunFilter) func(context.Context) ([]string, error) {
		return func(ctx context.Context) ([]string, error) {
			found, _, err := w.s.Runs(ctx, f)
			return ids(found, func(r storage.Run) uuid.UUID { return r.ID.UUID }), err
		}
	}
	run := w.run.ID.String()
	return map[string]list{
		"Orgs": {w.a.ID.String(), sees, func(ctx context.Context) ([]string, error) {
			all, err := w.s.Orgs(ctx)
			return ids(all, func(o storage.Org) uuid.UUID { return o.ID.UUID }), err
		}},
		"Agents": {w.agent.ID.String(), sees, func(ctx context.Context) ([]string, error) {
			all, err := w.s.Agents(ctx, nil)
			return ids(all, func(a storage.Agent) uuid.UUID { return a.ID.UUID }), err
		}},
		"Agents of A": {w.agent.ID.String(), sees, func(ctx context.Context) ([]string, error) {
			all, err := w.s.Agents(ctx, &w.a.ID)
			return ids(all, func(a storage.Agent) uuid.UUID { return a.ID.UUID }), err
		}},
		"Runs":              {run, sees, runs(storage.RunFilter{})},
		"Runs of the agent": {run, sees, runs(storage.RunFilter{Agent: &w.agent.ID, Limit: 50})},
		"Runs of the key":   {run, sees, runs(storage.RunFilter{Key: &w.key.ID, Limit: 50})},
		"Runs by their ID":  {run, sees, runs(storage.RunFilter{Text: run, Limit: 50})},
		"Spenders": {w.a.ID.String(), sees, func(ctx context.Context) ([]string, error) {
			all, err := w.s.Spenders(ctx)
			return ids(all, func(s storage.Spender) uuid.UUID { return s.ID }), err
		}},
		"Spenders, the key": {w.key.ID.String(), sees, func(ctx context.Context) ([]string, error) {
			all, err := w.s.Spenders(ctx)
			return ids(all, func(s storage.Spender) uuid.UUID { return s.ID }), err
		}},
		"AuditLog": {w.agent.ID.String(), sees, func(ctx context.Context) ([]string, error) {
			all, _, err := w.s.AuditLog(ctx, storage.AuditFilter{Limit: 1000})
			return ids(all, func(a storage.Audit) uuid.UUID { return a.Subject.ID }), err
		}},
		"Tokens": {w.newTokenOfA(), func(somebody who) bool { return somebody.actor.UserID == w.memberA.ID },
			func(ctx context.Context) ([]string, error) {
				all, err := w.s.Tokens(ctx)
				return ids(all, func(t storage.Token) uuid.UUID { return t.ID.UUID }), err
			}},
	}
}

func ids[V any](all []V, id func(V) uuid.UUID) []string {
	found := make([]string, len(all))
	for i, v := range all {
		found[i] = id(v).String()
	}
	return found
}

// TestActors tries out who sees and may do what. The world is made once: its
// passwords take their time.
func TestActors(t *testing.T) {
	w := newWorld(t)
	t.Run("every method has its row", w.everyMethodHasItsRow)
	t.Run("runs of another organisation", w.hiddenRuns)
	t.Run("what is in lists", w.whoSeesWhat)
	t.Run("who may what", w.whoMayWhat)
	t.Run("who was somebody before", w.actorOfAnotherTime)
	t.Run("every deed is in the audit log", w.everyDeedIsInTheAuditLog)
}

// whoMayWhat has everybody come to everything that is organisation A's.
func (w *world) whoMayWhat(t *testing.T) {
	tried := map[string]int{}
	for _, row := range w.accesses() {
		ref := ""
		if row.anew != nil {
			ref = row.anew()
		}
		for _, somebody := range w.everybody {
			ctx, want, before := storage.WithActor(t.Context(), somebody.actor), row.expected(w, somebody), w.db.writes.Load()
			err := row.do(ctx, ref)
			if !errors.Is(err, want) || want == nil && err != nil {
				t.Errorf("%s by %s: got %v, want %v", row.method, somebody.name, err, want)
			}
			wrote := w.db.writes.Load() - before
			switch {
			case want != nil && wrote != 0, want == nil && row.scope == storage.ScopeRead && wrote != 0:
				t.Errorf("%s by %s: %v, and wrote %d times", row.method, somebody.name, err, wrote)
			case want == nil && err == nil && row.anew != nil:
				ref = row.anew()
			case want != nil && want == row.unseen:
				w.sameAsUnknown(t, row, somebody, ref, err)
			}
			tried[map[bool]string{true: "allowed", false: "refused"}[want == nil]]++
		}
	}
	t.Logf("tried: %v", tried)
	if tried["allowed"] == 0 || tried["refused"] == 0 {
		t.Error("the table proves nothing")
	}
}

// sameAsUnknown compares an error about what somebody does not see with that
// about what there is not.
func (w *world) sameAsUnknown(t *testing.T, row access, somebody who, ref string, hidden error) {
	t.Helper()
	none := w.next("nothing")
	if id, err := uuid.Parse(ref); err == nil {
		id[15] ^= 1
		none = id.String()
	}
	unknown := row.do(storage.WithActor(t.Context(), somebody.actor), none)
	if unknown == nil || strings.ReplaceAll(unknown.Error(), none, "X") != strings.ReplaceAll(hidden.Error(), ref, "X") {
		t.Errorf("%s by %s: %q of what is hidden, %v of what is not there", row.method, somebody.name, hidden, unknown)
	}
}

func (w *world) whoSeesWhat(t *testing.T) {
	turn, err := w.s.ClaimNext(t.Context(), storage.AgentID{}, "none")
	if err != nil {
		t.Fatal(err)
	}
	if err := w.s.RecordStep(t.Context(), turn.Claim, storage.Spent{Calls: 1, Input: 10}); err != nil {
		t.Fatal(err)
	}
	for name, list := range w.lists() {
		for _, somebody := range w.everybody {
			found, err := list.all(storage.WithActor(t.Context(), somebody.actor))
			if err != nil || slices.Contains(found, list.of) != list.mine(somebody) {
				t.Errorf("%s for %s: %v, %v: %s is to be there: %v", name, somebody.name, found, err, list.of, list.mine(somebody))
			}
		}
	}
}

// notForPeople are the methods in which nobody asks for something that belongs
// to somebody: those of the server itself, of the public API, whose callers come
// with a key, and of what comes before there is an actor.
var notForPeople = []string{
	"Authenticate", "Check", "CheckAudit", "CheckCreate", "ClaimNext", "Close", "CreateRun", "DeleteSession", "Erasures", "FailTurn",
	"AccessChanges", "Failed", "FindSession", "FinishTurn", "FlushUses", "HasRun", "HasUsers", "LongestIdle", "ModelAllowed", "NoteRefused",
	"ParkTurn", "Ping", "PutSession", "RecordStep", "SetUp", "Settle", "SignIn", "SignOut", "StateAndTranscript", "StopIdle",
	"StopRequested", "TokenActor", "UserActor", "Waiting", "Watch", "WorkspaceErased",
}

// everyMethodHasItsRow fails for a new method of which it is not known who may
// use it.
func (w *world) everyMethodHasItsRow(t *testing.T) {
	known := slices.Clone(notForPeople)
	for _, row := range w.accesses() {
		known = append(known, row.method)
	}
	for name := range w.lists() {
		method, _, _ := strings.Cut(name, " ")
		known = append(known, strings.TrimSuffix(method, ","))
	}
	var methods []string
	for method := range reflect.TypeFor[*storage.Store]().Methods() {
		methods = append(methods, method.Name)
		if !slices.Contains(known, method.Name) {
			t.Errorf("Store.%s has no row that says who may use it", method.Name)
		}
	}
	for _, name := range known {
		if !slices.Contains(methods, name) {
			t.Errorf("Store.%s does not exist", name)
		}
	}
}

// actorOfAnotherTime has a request that was let in come to the store after its
// user was changed.
func (w *world) actorOfAnotherTime(t *testing.T) {
	yes, no, operator, member := true, false, storage.OperatorRole, storage.MemberRole
	session, token := w.session(w.memberA), w.token(w.session(w.memberA), storage.ScopeRuns, storage.ScopeAdmin)
	try := func(a storage.Actor) error {
		_, err := w.s.GiveInput(storage.WithActor(t.Context(), a), w.run.ID, "more")
		return err
	}
	for _, c := range []storage.UserChange{{Disabled: &yes}, {Role: &operator}, {Org: &w.b.Name}} {
		if err := errors.Join(try(session), try(token)); err != nil {
			t.Fatalf("before: %v", err)
		}
		before, err := w.s.ChangeUser(t.Context(), w.memberA.Email, c)
		if err != nil {
			t.Fatal(err)
		}
		if err := try(session); !errors.Is(err, storage.ErrForbidden) {
			t.Errorf("session, after %+v: got %v, want ErrForbidden", before, err)
		}
		if err := try(token); !errors.Is(err, storage.ErrForbidden) {
			t.Errorf("token, after %+v: got %v, want ErrForbidden", before, err)
		}
		_, _, err = w.s.CreateToken(storage.WithActor(t.Context(), session), "more", []storage.Scope{storage.ScopeRead}, time.Hour)
		if !errors.Is(err, storage.ErrForbidden) {
			t.Errorf("a new token, after %+v: got %v, want ErrForbidden", before, err)
		}
		if _, err := w.s.ChangeUser(t.Context(), w.memberA.Email, storage.UserChange{Disabled: &no, Role: &member, Org: &w.a.Name}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.s.DeleteToken(storage.WithActor(t.Context(), session), storage.TokenID{UUID: token.ID}); err != nil {
		t.Fatal(err)
	}
	if err := try(token); !errors.Is(err, storage.ErrForbidden) {
		t.Errorf("a token that was deleted: got %v, want ErrForbidden", err)
	}
	if _, err := w.s.DeleteUser(t.Context(), w.memberA.Email); err != nil {
		t.Fatal(err)
	}
	if err := try(session); !errors.Is(err, storage.ErrForbidden) {
		t.Errorf("a user who was deleted: got %v, want ErrForbidden", err)
	}
}

// hiddenRuns has a member go through the runs of an agent of another
// organisation: there are none, and none to go on before.
func (w *world) hiddenRuns(t *testing.T) {
	ctx := storage.WithActor(t.Context(), w.session(w.memberB))
	for name, f := range map[string]storage.RunFilter{
		"the agent's": {Agent: &w.agent.ID, Limit: 1}, "the key's": {Key: &w.key.ID, Limit: 1}, "all": {Limit: 1},
		"behind it": {Before: w.run.ID, Limit: 1},
	} {
		runs, next, err := w.s.Runs(ctx, f)
		if err != nil || len(runs) != 0 || next != (storage.RunID{}) {
			t.Errorf("%s: %+v, next %s, %v", name, runs, next, err)
		}
	}
}
