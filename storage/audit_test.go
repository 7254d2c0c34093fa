package storage_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"
	"github.com/google/uuid"

	"agentrun/storage"
	"agentrun/storage/agentfile"
	"agentrun/storage/storagetest"
)

// deed is something that an operator does, and what the log has of it.
type deed struct {
	method string
	// do returns to what it was done, and where.
	do     func(ctx context.Context) (id uuid.UUID, name string, org storage.OrgID, err error)
	action storage.Action // empty when the log has nothing of it
	kind   string
	detail string
}

// did makes a deed's result of what a method returned.
func did[V any](v V, err error) func(func(V) (uuid.UUID, string, storage.OrgID)) (uuid.UUID, string, storage.OrgID, error) {
	return func(of func(V) (uuid.UUID, string, storage.OrgID)) (uuid.UUID, string, storage.OrgID, error) {
		id, name, org := of(v)
		return id, name, org, err
	}
}

func ofOrg(o storage.Org) (uuid.UUID, string, storage.OrgID)     { return o.ID.UUID, o.Name, o.ID }
func ofAgent(a storage.Agent) (uuid.UUID, string, storage.OrgID) { return a.ID.UUID, a.Name, a.OrgID }
func ofKey(k storage.Key) (uuid.UUID, string, storage.OrgID)     { return k.ID.UUID, k.Name, k.OrgID }
func ofRun(r storage.Run) (uuid.UUID, string, storage.OrgID)     { return r.ID.UUID, r.Name, r.OrgID }
func ofUser(u storage.User) (uuid.UUID, string, storage.OrgID)   { return u.ID.UUID, u.Email, u.Org }
func ofToken(t storage.Token) (uuid.UUID, string, storage.OrgID) {
	return t.ID.UUID, t.Name, storage.OrgID{}
}

// deeds are all that people can do, in an order in which they can.
func (w *world) deeds() []deed {
	return slices.Concat(w.deedsToAgents(), w.deedsToKeysAndRuns(), w.deedsToUsers())
}

type result = func(ctx context.Context) (uuid.UUID, string, storage.OrgID, error)

func (w *world) deedsToAgents() []deed {
	s := w.s
	models := func(patterns ...string) result {
		return func(ctx context.Context) (uuid.UUID, string, storage.OrgID, error) {
			return did(s.SetModels(ctx, "new", patterns))(ofOrg)
		}
	}
	apply := func(source string) result {
		return func(ctx context.Context) (uuid.UUID, string, storage.OrgID, error) {
			file, err := agentfile.Parse(source)
			if err != nil {
				return uuid.Nil, "", storage.OrgID{}, err
			}
			return did(s.ApplyAgent(ctx, "new", file))(ofAgent)
		}
	}
	archive := func(archived bool) result {
		return func(ctx context.Context) (uuid.UUID, string, storage.OrgID, error) {
			return did(s.SetArchived(ctx, "a1", archived))(ofAgent)
		}
	}
	const first, second = "name: a1\ncommand: [cat]\n", "name: a1\ncommand: [cat, -]\n"
	return []deed{
		{"CreateOrg", func(ctx context.Context) (uuid.UUID, string, storage.OrgID, error) {
			return did(s.CreateOrg(ctx, "new"))(ofOrg)
		}, "organisation.create", "organisation", ""},
		{"SetModels", models("a/*", "b/*"), "organisation.models", "organisation", "a/* b/*"},
		{"SetModels", models("a/*", "b/*"), "", "", ""},
		{"ApplyAgent", apply(first), "agent.apply", "agent", "revision 1"},
		{"ApplyAgent", apply(first), "", "", ""},
		{"ApplyAgent", apply(second), "agent.apply", "agent", "revision 2"},
		{"SetArchived", archive(true), "agent.archive", "agent", ""},
		{"SetArchived", archive(true), "", "", ""},
		{"SetArchived", archive(false), "agent.unarchive", "agent", ""},
		{"SetArchived", archive(false), "", "", ""},
		{"DeleteAgent", func(ctx context.Context) (uuid.UUID, string, storage.OrgID, error) {
			return did(s.DeleteAgent(ctx, "a1"))(ofAgent)
		}, "agent.delete", "agent", ""},
	}
}

func (w *world) deedsToKeysAndRuns() []deed {
	s := w.s
	var key, second storage.Key
	disable := func(disabled bool) result {
		return func(ctx context.Context) (uuid.UUID, string, storage.OrgID, error) {
			return did(s.SetKeyDisabled(ctx, key.ID, disabled))(ofKey)
		}
	}
	onRun := func(do func(context.Context) (storage.Run, error)) result {
		return func(ctx context.Context) (uuid.UUID, string, storage.OrgID, error) { return did(do(ctx))(ofRun) }
	}
	stop := onRun(func(ctx context.Context) (storage.Run, error) { return s.StopRun(ctx, w.run.ID, "test") })
	remove := onRun(func(ctx context.Context) (storage.Run, error) { return s.DeleteRun(ctx, w.run.ID, "test") })
	return []deed{
		{"CreateKey", func(ctx context.Context) (uuid.UUID, string, storage.OrgID, error) {
			var err error
			key, _, err = s.CreateKey(ctx, w.agent.ID.String(), "k", time.Hour)
			return did(key, err)(ofKey)
		}, "key.create", "key", "PREFIX"},
		{"SetKeyDisabled", disable(true), "key.disable", "key", "PREFIX"},
		{"SetKeyDisabled", disable(true), "", "", ""},
		{"SetKeyDisabled", disable(false), "key.enable", "key", "PREFIX"},
		{"SetKeyDisabled", disable(false), "", "", ""},
		{"RotateKey", func(ctx context.Context) (uuid.UUID, string, storage.OrgID, error) {
			var err error
			second, _, err = s.RotateKey(ctx, key.ID, time.Minute)
			return did(key, err)(ofKey)
		}, "key.rotate", "key", "PREFIX"},
		{"DeleteKey", func(ctx context.Context) (uuid.UUID, string, storage.OrgID, error) {
			return did(s.DeleteKey(ctx, second.ID))(ofKey)
		}, "key.delete", "key", "PREFIX"},
		{"GiveInput", onRun(func(ctx context.Context) (storage.Run, error) { return s.GiveInput(ctx, w.run.ID, "more") }),
			"run.input", "run", ""},
		{"StopRun", stop, "run.stop", "run", ""},
		{"StopRun", stop, "", "", ""},
		{"DeleteRun", remove, "run.delete", "run", ""},
		{"DeleteRun", remove, "", "", ""},
	}
}

func (w *world) deedsToUsers() []deed {
	s := w.s
	var token storage.Token
	yes, member, other := true, storage.MemberRole, "another password"
	change := func(c storage.UserChange) result {
		return func(ctx context.Context) (uuid.UUID, string, storage.OrgID, error) {
			return did(s.ChangeUser(ctx, "new@example.org", c))(ofUser)
		}
	}
	return []deed{
		{"CreateUser", func(ctx context.Context) (uuid.UUID, string, storage.OrgID, error) {
			return did(s.CreateUser(ctx, storage.NewUser{
				Email: "new@example.org", Password: goodPassword, Role: storage.MemberRole, Org: "A",
			}))(ofUser)
		}, "user.create", "user", "member"},
		{"ChangeUser", change(storage.UserChange{Disabled: &yes}), "user.change", "user", "disabled"},
		{"ChangeUser", change(storage.UserChange{Disabled: &yes, Role: &member, Org: &w.a.Name}), "", "", ""},
		{"ChangeUser", change(storage.UserChange{Org: &w.b.Name}), "user.change", "user", "member"},
		{"ChangeUser", change(storage.UserChange{}), "", "", ""},
		{"DeleteUser", func(ctx context.Context) (uuid.UUID, string, storage.OrgID, error) {
			return did(s.DeleteUser(ctx, "new@example.org"))(ofUser)
		}, "user.delete", "user", ""},
		{"CreateToken", func(ctx context.Context) (uuid.UUID, string, storage.OrgID, error) {
			var err error
			token, _, err = s.CreateToken(ctx, "t", []storage.Scope{storage.ScopeRead}, time.Hour)
			return did(token, err)(ofToken)
		}, "token.create", "token", ""},
		{"DeleteToken", func(ctx context.Context) (uuid.UUID, string, storage.OrgID, error) {
			return did(s.DeleteToken(ctx, token.ID))(ofToken)
		}, "token.delete", "token", ""},
		{"ChangePassword", func(ctx context.Context) (uuid.UUID, string, storage.OrgID, error) {
			return did(s.ChangePassword(ctx, goodPassword, other))(ofUser)
		}, "user.change", "user", "own password"},
		{"SignOut", func(ctx context.Context) (uuid.UUID, string, storage.OrgID, error) {
			return did(w.operator, s.SignOut(ctx))(ofUser)
		}, "session.delete", "user", ""},
		{"SignIn", func(ctx context.Context) (uuid.UUID, string, storage.OrgID, error) {
			return did(s.SignIn(ctx, w.operator.Email, other, "192.0.2.7"))(ofUser)
		}, "session.create", "user", ""},
	}
}

// everyDeedIsInTheAuditLog does everything once, and some of it once more when
// that changes nothing.
func (w *world) everyDeedIsInTheAuditLog(t *testing.T) {
	actor := w.session(w.operator)
	ctx := storage.WithActor(t.Context(), actor)
	want := storage.Actor{Kind: storage.ActorUser, ID: w.operator.ID.UUID, Name: w.operator.Email, From: "192.0.2.7"}
	last := newestAudit(t, w.s).Seq
	var done []string
	for i, deed := range w.deeds() {
		done = append(done, deed.method)
		id, name, org, err := deed.do(ctx)
		if err != nil {
			t.Fatalf("%d, %s: %v", i, deed.method, err)
		}
		entry := newestAudit(t, w.s)
		if deed.action == "" {
			if entry.Seq != last {
				t.Errorf("%d, %s changed nothing, and the log has %+v", i, deed.method, entry)
			}
			continue
		}
		if last++; entry.Seq != last {
			t.Fatalf("%d, %s: the log is at entry %d, want %d", i, deed.method, entry.Seq, last)
		}
		expected := storage.Audit{
			Seq: last, At: entry.At, Actor: want, Action: deed.action, Org: org,
			Subject: storage.Subject{Kind: deed.kind, ID: id, Name: name}, Detail: deed.detail,
		}
		if deed.detail == "PREFIX" && len(entry.Detail) >= len("ak_12345…") {
			expected.Detail = entry.Detail // with the beginnings of secrets
		}
		if diff := cmp.Diff(expected, entry); diff != "" {
			t.Errorf("%d, %s:\n%s", i, deed.method, diff)
		}
	}
	for _, row := range w.accesses() {
		reads := row.scope == storage.ScopeRead || row.method == "Users" || row.method == "FindUser"
		if !reads && !slices.Contains(done, row.method) {
			t.Errorf("%s is not tried", row.method)
		}
	}
	if n, err := w.s.CheckAudit(t.Context()); err != nil || n != last {
		t.Errorf("CheckAudit: %d, %v, want %d", n, err, last)
	}
}

func newestAudit(t *testing.T, s *storage.Store) storage.Audit {
	t.Helper()
	log, _, err := s.AuditLog(t.Context(), storage.AuditFilter{Limit: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(log) == 0 {
		return storage.Audit{}
	}
	return log[0]
}

// TestFailedDeedsAreNotInTheAuditLog: what was refused for whom it was is in
// TestActors; this is what cannot be done by anybody.
func TestFailedDeedsAreNotInTheAuditLog(t *testing.T) {
	s, db := openCounted(t, storage.Options{})
	agent := storagetest.MustApply(t, s, storage.DefaultOrg, storagetest.EchoFile)
	caller := storagetest.MustCaller(t, s, agent)
	run := storagetest.MustRun(t, s, caller, "hello")
	if _, err := s.StopRun(t.Context(), run.ID, "test"); err != nil {
		t.Fatal(err)
	}
	ctx, before, wrote := t.Context(), newestAudit(t, s), db.writes.Load()
	nobody := uuid.UUID{9}
	for name, c := range map[string]struct{ err, want error }{
		"CreateOrg":      {errOf(s.CreateOrg(ctx, storage.DefaultOrg)), storage.ErrNameTaken},
		"SetModels":      {errOf(s.SetModels(ctx, storage.DefaultOrg, []string{"a b"})), storage.ErrInvalidPattern},
		"SetModels utf8": {errOf(s.SetModels(ctx, storage.DefaultOrg, []string{"a\xff"})), storage.ErrInvalidPattern},
		"ApplyAgent":     {errOf(s.ApplyAgent(ctx, "none", agentfile.File{Definition: agentfile.Definition{Name: "x"}})), storage.ErrOrgNotFound},
		"DeleteAgent":    {errOf(s.DeleteAgent(ctx, "none")), storage.ErrAgentNotFound},
		"SetKeyDisabled": {errOf(s.SetKeyDisabled(ctx, storage.KeyID{UUID: nobody}, true)), storage.ErrKeyNotFound},
		"GiveInput":      {errOf(s.GiveInput(ctx, run.ID, "more")), storage.ErrRunTerminated},
		"DeleteUser":     {errOf(s.DeleteUser(ctx, "none@example.org")), storage.ErrUserNotFound},
		"SignIn":         {errOf(s.SignIn(ctx, "none@example.org", goodPassword, "")), storage.ErrSignInRefused},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.err, c.want)
		}
	}
	if after := newestAudit(t, s); after.Seq != before.Seq || db.writes.Load() != wrote {
		t.Errorf("the log has %+v, and there were %d writes", after, db.writes.Load()-wrote)
	}
}

// TestAuditIsGaplessUnderWriters has many append at once.
func TestAuditIsGaplessUnderWriters(t *testing.T) {
	const writers, each = 16, 8
	s := storagetest.Open(t)
	orgs := make([]storage.Org, 2)
	for i, name := range []string{"A", "B"} {
		orgs[i] = must(s.CreateOrg(t.Context(), name))(t)
	}
	first := newestAudit(t, s).Seq
	var group sync.WaitGroup
	for i := range writers {
		group.Go(func() {
			for k := range each {
				org := orgs[(i+k)%2].Name
				pattern := string(rune('a'+i)) + "/" + string(rune('a'+k))
				if _, err := s.SetModels(t.Context(), org, []string{pattern}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if n, err := s.CheckAudit(t.Context()); err != nil || n != first+writers*each {
		t.Errorf("CheckAudit: %d, %v, want %d", n, err, first+writers*each)
	}
	all := auditPages(t, s, nil, 7)
	for i, entry := range all {
		if want := first + writers*each - uint64(i); entry.Seq != want {
			t.Fatalf("entry %d in place of %d", entry.Seq, want)
		}
	}
	if len(all) != int(first)+writers*each {
		t.Errorf("%d entries", len(all))
	}
	for _, org := range orgs {
		var want []storage.Audit
		for _, entry := range all {
			if entry.Org == org.ID {
				want = append(want, entry)
			}
		}
		for _, limit := range []int{1, 7, len(want), 1000} {
			if diff := cmp.Diff(want, auditPages(t, s, &org.ID, limit)); diff != "" {
				t.Errorf("organisation %s, %d a page:\n%s", org.Name, limit, diff)
			}
		}
	}
}

// auditPages reads the whole log, and asks for no page behind the last.
func auditPages(t *testing.T, s *storage.Store, org *storage.OrgID, limit int) []storage.Audit {
	t.Helper()
	var all []storage.Audit
	f := storage.AuditFilter{Org: org, Limit: limit}
	for {
		page, next, err := s.AuditLog(t.Context(), f)
		if err != nil {
			t.Fatal(err)
		}
		if len(page) == 0 || len(page) > limit || next != 0 && next != page[len(page)-1].Seq {
			t.Fatalf("a page of %d with next %d", len(page), next)
		}
		all = append(all, page...)
		if next == 0 {
			return all
		}
		f.Before = next
	}
}
