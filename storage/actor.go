package storage

import (
	"context"
	"slices"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
)

// Actor is who a request of the management API, or a page, is made for. What an
// actor may not see does not exist for it; what it may see and not change is
// refused. Storage itself looks, in the transaction, so that no caller can
// forget to, and writes the actor's name into the audit log.
type Actor struct {
	Kind ActorKind
	// ID is the user's, or the token's; zero for the other kinds.
	ID uuid.UUID
	// UserID is the user, also of a token; zero for the other kinds.
	UserID UserID
	// Name is for people: the email address, with the name of a token behind it.
	Name string
	// From is the address that the request came from; empty on the machine itself.
	From string
	Role UserRole
	// Org is the organisation of a member.
	Org OrgID
	// Scopes bound what a token may do; nil means no bound.
	Scopes []Scope
}

// ActorKind says what an Actor is.
type ActorKind string

// The kinds of actors. They are in the audit log: never renamed.
const (
	// ActorServer is agentrun itself: what happens by a rule or at a start.
	ActorServer ActorKind = "server"
	// ActorOperator is whoever owns the data directory, on the machine itself.
	ActorOperator ActorKind = "operator"
	// ActorUser is somebody who signed in.
	ActorUser ActorKind = "user"
	// ActorToken is a program with a personal access token.
	ActorToken ActorKind = "token"
)

// UserRole says what a user may do.
type UserRole string

// The roles of users. The values are those of the management API.
const (
	// OperatorRole may do everything.
	OperatorRole UserRole = "operator"
	// MemberRole may do everything inside one organisation but change its
	// allowlist.
	MemberRole UserRole = "member"
)

// Scope is a part of what a user may do.
type Scope string

// The scopes of tokens. Each includes ScopeRead. The values are those of the
// management API.
const (
	ScopeRead   Scope = "read"
	ScopeRuns   Scope = "runs"
	ScopeAgents Scope = "agents"
	ScopeKeys   Scope = "keys"
	// ScopeAdmin is for organisations, users, tokens and allowlists.
	ScopeAdmin Scope = "admin"
)

var scopes = []Scope{ScopeRead, ScopeRuns, ScopeAgents, ScopeKeys, ScopeAdmin}

// LocalOperator is whoever can reach the data directory.
var LocalOperator = Actor{Kind: ActorOperator, Name: "operator", Role: OperatorRole}

type actorKey struct{}

// WithActor returns a context for what is done for an actor.
func WithActor(ctx context.Context, a Actor) context.Context {
	return context.WithValue(ctx, actorKey{}, a)
}

// HasActor says whether it is known for whom the context is.
func HasActor(ctx context.Context) bool {
	_, ok := ctx.Value(actorKey{}).(Actor)
	return ok
}

// ActorOf returns for whom the context is. Without one it is the server itself,
// which may do everything: the execution of runs and the public API, which has
// rules of its own, say no actor. Whoever lets people in gives them one first.
func ActorOf(ctx context.Context) Actor {
	if a, ok := ctx.Value(actorKey{}).(Actor); ok {
		return a
	}
	return Actor{Kind: ActorServer, Name: "server", Role: OperatorRole}
}

// sees says whether what belongs to an organisation exists for the actor.
func (a Actor) sees(org OrgID) bool {
	return a.Role == OperatorRole || a.Org == org && org != (OrgID{})
}

// has refuses what the actor's token is not for.
func (a Actor) has(scope Scope) error {
	if a.Scopes != nil && scope != ScopeRead && !slices.Contains(a.Scopes, scope) {
		return errors.Wrapf(ErrForbidden, "the token has no scope %q", scope)
	}
	return nil
}

// may refuses what the actor's token is not for, or what only operators do.
func (a Actor) may(scope Scope) error {
	if err := a.has(scope); err != nil {
		return err
	}
	if scope == ScopeAdmin && a.Role != OperatorRole {
		return errors.Wrap(ErrForbidden, "only operators may")
	}
	return nil
}

// may refuses what the actor may not do, or may no more.
func (tx *tx) may(scope Scope) error {
	if err := tx.actorIsGood(); err != nil {
		return err
	}
	return tx.actor.may(scope)
}

// actorIsGood refuses a user who was disabled, deleted or given another role,
// and a token that was deleted, since the request was let in: nothing is done
// for them after that.
func (tx *tx) actorIsGood() error {
	a := tx.actor
	if a.UserID == (UserID{}) {
		return nil
	}
	rec, err := get[userRecord](tx, spaceUsers, a.UserID.UUID[:])
	if err != nil {
		return err
	}
	if rec == nil || rec.Disabled || rec.Role != a.Role || rec.Org != a.Org {
		return errors.Wrapf(ErrForbidden, "user %s was changed meanwhile", a.UserID)
	}
	if a.Kind != ActorToken {
		return nil
	}
	token, err := get[tokenRecord](tx, spaceTokens, a.ID[:])
	if err == nil && token == nil {
		err = errors.Wrapf(ErrForbidden, "token %s was deleted meanwhile", a.ID)
	}
	return err
}
