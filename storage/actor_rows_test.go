package storage_test

import (
	"context"
	"slices"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/storage"
	"agentrun/storage/agentfile"
)

// access is one method of the store that people come to.
type access struct {
	method string
	// scope is what a token needs; ScopeRead for what changes nothing.
	scope storage.Scope
	// anew makes something of organisation A to do it to, and is asked again when
	// it was done; nil when it is done to nothing.
	anew func() string
	// do does it to what has this ID.
	do func(ctx context.Context, ref string) error
	// unseen is the error when it is another organisation's, or unknown.
	unseen error
	// want is what somebody comes to, when it does not follow from the others.
	want func(who) error
}

func (row access) expected(w *world, somebody who) error {
	switch {
	case row.want != nil:
		return row.want(somebody)
	case row.unseen != nil && !somebody.seesA(w):
		return row.unseen
	case !somebody.has(row.scope), row.scope == storage.ScopeAdmin && somebody.actor.Role != storage.OperatorRole:
		return storage.ErrForbidden
	}
	return nil
}

func the(id string) func() string { return func() string { return id } }

func runID(ref string) storage.RunID { return storage.RunID{UUID: uuid.MustParse(ref)} }
func keyID(ref string) storage.KeyID { return storage.KeyID{UUID: uuid.MustParse(ref)} }
func orgID(ref string) *storage.OrgID {
	return &storage.OrgID{UUID: uuid.MustParse(ref)}
}

// errOf drops what a call came to beside its error.
func errOf[V any](_ V, err error) error { return err }

func (w *world) accesses() []access {
	return slices.Concat(w.readsOfOrgs(), w.readsOfRuns(), w.changes(), w.usersAndTokens())
}

func (w *world) readsOfOrgs() []access {
	s, org, agent, key := w.s, the(w.a.ID.String()), the(w.agent.ID.String()), the(w.key.ID.String())
	return []access{
		{method: "FindOrg", scope: storage.ScopeRead, anew: org, unseen: storage.ErrOrgNotFound,
			do: func(ctx context.Context, ref string) error { return errOf(s.FindOrg(ctx, ref)) }},
		{method: "FindOrg", scope: storage.ScopeRead, anew: the("A"), unseen: storage.ErrOrgNotFound,
			do: func(ctx context.Context, ref string) error { return errOf(s.FindOrg(ctx, ref)) }},
		{method: "SpentByDay", scope: storage.ScopeRead, anew: org, unseen: storage.ErrOrgNotFound,
			do: func(ctx context.Context, ref string) error { return errOf(s.SpentByDay(ctx, ref, 2)) }},
		{method: "AuditLog", scope: storage.ScopeRead, anew: org, unseen: storage.ErrOrgNotFound,
			do: func(ctx context.Context, ref string) error {
				_, _, err := s.AuditLog(ctx, storage.AuditFilter{Org: orgID(ref), Limit: 5})
				return err
			}},
		{method: "FindAgent", scope: storage.ScopeRead, anew: agent, unseen: storage.ErrAgentNotFound,
			do: func(ctx context.Context, ref string) error { return errOf(s.FindAgent(ctx, ref)) }},
		{method: "FindAgent", scope: storage.ScopeRead, anew: the("echo"), unseen: storage.ErrAgentNotFound,
			do: func(ctx context.Context, ref string) error { return errOf(s.FindAgent(ctx, ref)) }},
		{method: "AgentFile", scope: storage.ScopeRead, anew: agent, unseen: storage.ErrAgentNotFound,
			do: func(ctx context.Context, ref string) error { return errOf(s.AgentFile(ctx, ref)) }},
		{method: "Revisions", scope: storage.ScopeRead, anew: agent, unseen: storage.ErrAgentNotFound,
			do: func(ctx context.Context, ref string) error { return errOf(s.Revisions(ctx, ref)) }},
		{method: "RevisionFile", scope: storage.ScopeRead, anew: agent, unseen: storage.ErrAgentNotFound,
			do: func(ctx context.Context, ref string) error {
				_, _, err := s.RevisionFile(ctx, ref, 1)
				return err
			}},
		{method: "Keys", scope: storage.ScopeRead, anew: agent, unseen: storage.ErrAgentNotFound,
			do: func(ctx context.Context, ref string) error { return errOf(s.Keys(ctx, ref)) }},
		{method: "FindKey", scope: storage.ScopeRead, anew: key, unseen: storage.ErrKeyNotFound,
			do: func(ctx context.Context, ref string) error { return errOf(s.FindKey(ctx, keyID(ref))) }},
		{method: "KeyRequests", scope: storage.ScopeRead, anew: key, unseen: storage.ErrKeyNotFound,
			do: func(ctx context.Context, ref string) error {
				return errOf(s.KeyRequests(ctx, keyID(ref), time.Time{}, 5))
			}},
	}
}

func (w *world) readsOfRuns() []access {
	s, run := w.s, the(w.run.ID.String())
	return []access{
		{method: "Runs", scope: storage.ScopeRead, anew: the(w.a.ID.String()), unseen: storage.ErrOrgNotFound,
			do: func(ctx context.Context, ref string) error {
				_, _, err := s.Runs(ctx, storage.RunFilter{Org: orgID(ref), Limit: 5})
				return err
			}},
		{method: "Run", scope: storage.ScopeRead, anew: run, unseen: storage.ErrRunNotFound,
			do: func(ctx context.Context, ref string) error { return errOf(s.Run(ctx, runID(ref))) }},
		{method: "RunWithTranscript", scope: storage.ScopeRead, anew: run, unseen: storage.ErrRunNotFound,
			do: func(ctx context.Context, ref string) error {
				_, _, err := s.RunWithTranscript(ctx, runID(ref))
				return err
			}},
		{method: "StateAndEvents", scope: storage.ScopeRead, anew: run, unseen: storage.ErrRunNotFound,
			do: func(ctx context.Context, ref string) error {
				_, _, err := s.StateAndEvents(ctx, runID(ref), 0, 0)
				return err
			}},
	}
}

func (w *world) changes() []access {
	s := w.s
	return []access{
		{method: "CreateOrg", scope: storage.ScopeAdmin,
			do: func(ctx context.Context, _ string) error { return errOf(s.CreateOrg(ctx, w.next("org"))) }},
		{method: "SetModels", scope: storage.ScopeAdmin, anew: the(w.a.ID.String()), unseen: storage.ErrOrgNotFound,
			do: func(ctx context.Context, ref string) error {
				return errOf(s.SetModels(ctx, ref, []string{w.next("model")}))
			}},
		{method: "ApplyAgent", scope: storage.ScopeAgents, anew: the(w.a.ID.String()), unseen: storage.ErrOrgNotFound,
			do: func(ctx context.Context, ref string) error {
				file, err := agentfile.Parse("name: " + w.next("applied") + "\ncommand: [cat]\n")
				return errors.Join(err, errOf(s.ApplyAgent(ctx, ref, file)))
			}},
		{method: "SetArchived", scope: storage.ScopeAgents, anew: w.newAgent, unseen: storage.ErrAgentNotFound,
			do: func(ctx context.Context, ref string) error { return errOf(s.SetArchived(ctx, ref, true)) }},
		{method: "DeleteAgent", scope: storage.ScopeAgents, anew: w.newAgent, unseen: storage.ErrAgentNotFound,
			do: func(ctx context.Context, ref string) error { return errOf(s.DeleteAgent(ctx, ref)) }},
		{method: "CreateKey", scope: storage.ScopeKeys, anew: the(w.agent.ID.String()), unseen: storage.ErrAgentNotFound,
			do: func(ctx context.Context, ref string) error {
				_, _, err := s.CreateKey(ctx, ref, "", 0)
				return err
			}},
		{method: "SetKeyDisabled", scope: storage.ScopeKeys, anew: w.newKey, unseen: storage.ErrKeyNotFound,
			do: func(ctx context.Context, ref string) error { return errOf(s.SetKeyDisabled(ctx, keyID(ref), true)) }},
		{method: "RotateKey", scope: storage.ScopeKeys, anew: w.newKey, unseen: storage.ErrKeyNotFound,
			do: func(ctx context.Context, ref string) error {
				_, _, err := s.RotateKey(ctx, keyID(ref), time.Hour)
				return err
			}},
		{method: "DeleteKey", scope: storage.ScopeKeys, anew: w.newKey, unseen: storage.ErrKeyNotFound,
			do: func(ctx context.Context, ref string) error { return errOf(s.DeleteKey(ctx, keyID(ref))) }},
		{method: "GiveInput", scope: storage.ScopeRuns, anew: w.newRun, unseen: storage.ErrRunNotFound,
			do: func(ctx context.Context, ref string) error { return errOf(s.GiveInput(ctx, runID(ref), "more")) }},
		{method: "StopRun", scope: storage.ScopeRuns, anew: w.newRun, unseen: storage.ErrRunNotFound,
			do: func(ctx context.Context, ref string) error { return errOf(s.StopRun(ctx, runID(ref), "test")) }},
		{method: "DeleteRun", scope: storage.ScopeRuns, anew: w.newRun, unseen: storage.ErrRunNotFound,
			do: func(ctx context.Context, ref string) error { return errOf(s.DeleteRun(ctx, runID(ref), "test")) }},
	}
}

func (w *world) usersAndTokens() []access {
	s := w.s
	return []access{
		{method: "Users", scope: storage.ScopeAdmin,
			do: func(ctx context.Context, _ string) error { return errOf(s.Users(ctx)) }},
		{method: "FindUser", anew: the(w.victim.Email), unseen: storage.ErrUserNotFound,
			do: func(ctx context.Context, ref string) error { return errOf(s.FindUser(ctx, ref)) },
			want: func(somebody who) error {
				if somebody.actor.Role == storage.OperatorRole {
					return nil
				}
				return storage.ErrUserNotFound
			}},
		{method: "CreateUser", scope: storage.ScopeAdmin,
			do: func(ctx context.Context, _ string) error {
				user, err := s.CreateUser(ctx, storage.NewUser{
					Email: w.next("user") + "@example.org", Password: goodPassword, Role: storage.MemberRole, Org: "B",
				})
				if err == nil {
					w.spare = append(w.spare, user.ID.String())
				}
				return err
			}},
		{method: "ChangeUser", scope: storage.ScopeAdmin, anew: the(w.victim.ID.String()),
			do: func(ctx context.Context, ref string) error {
				user, err := s.FindUser(w.t.Context(), ref)
				disabled := !user.Disabled
				return errors.Join(err, errOf(s.ChangeUser(ctx, ref, storage.UserChange{Disabled: &disabled})))
			}},
		{method: "DeleteUser", scope: storage.ScopeAdmin,
			anew: w.someUser,
			do:   func(ctx context.Context, ref string) error { return errOf(s.DeleteUser(ctx, ref)) }},
		{method: "ChangePassword",
			do: func(ctx context.Context, _ string) error {
				return errOf(s.ChangePassword(ctx, "not the password", goodPassword))
			},
			want: func(somebody who) error {
				switch somebody.actor.Kind {
				case storage.ActorUser:
					return storage.ErrSignInRefused
				case storage.ActorToken:
					return storage.ErrForbidden
				}
				return storage.ErrUserNotFound
			}},
		{method: "CreateToken",
			do: func(ctx context.Context, _ string) error {
				_, _, err := s.CreateToken(ctx, "more", []storage.Scope{storage.ScopeRead}, time.Hour)
				return err
			},
			want: func(somebody who) error {
				if somebody.actor.Kind == storage.ActorOperator || !somebody.has(storage.ScopeAdmin) {
					return storage.ErrForbidden
				}
				return nil
			}},
		{method: "DeleteToken", anew: w.newTokenOfA, unseen: storage.ErrTokenNotFound,
			do: func(ctx context.Context, ref string) error {
				return errOf(s.DeleteToken(ctx, storage.TokenID{UUID: uuid.MustParse(ref)}))
			},
			want: func(somebody who) error {
				switch {
				case somebody.actor.UserID != w.memberA.ID:
					return storage.ErrTokenNotFound
				case !somebody.has(storage.ScopeAdmin):
					return storage.ErrForbidden
				}
				return nil
			}},
	}
}
