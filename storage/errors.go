package storage

import (
	"fmt"
	"strings"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// What the store underneath can answer. They are the kv sentinels themselves,
// named here so that the rooms above need not know kv.
var (
	// ErrUnavailable says that the store is closed, is shutting down or gave
	// no transaction in time. Nothing was written.
	ErrUnavailable = kv.ErrUnavailable

	// ErrNoSpace says that the disk is full. Nothing was written.
	ErrNoSpace = kv.ErrNoSpace

	// ErrCommitUnknown says that a commit failed in a way that leaves open
	// whether its writes are on disk. The process has to end; see Store.Failed.
	ErrCommitUnknown = kv.ErrUnknown

	// ErrStoreDamaged says that the structure of the data file is unreadable.
	ErrStoreDamaged = kv.ErrDamaged
)

var (
	// ErrDamagedRecord says that a record's checksum or form is wrong.
	ErrDamagedRecord = errors.New("damaged record")

	// ErrNewerSchema says that the data was written by a newer agentrun.
	ErrNewerSchema = errors.New("data of a newer version")

	// ErrInvalidKey says that an API key is malformed, unknown, disabled or
	// expired; which of them is not said.
	ErrInvalidKey = errors.New("invalid API key")

	// ErrTemplateMismatch says that a create request names another agent than
	// the key's.
	ErrTemplateMismatch = errors.New("template is not the key's agent")

	// ErrAgentDeleted says that the key's agent was deleted.
	ErrAgentDeleted = errors.New("agent was deleted")

	// ErrAgentArchived says that the agent takes no new run and no new input.
	// It always comes inside an *ArchivedError.
	ErrAgentArchived = errors.New("agent is archived")

	// ErrModelUnusable says that the agent's model is not configured or not
	// allowed. It always comes inside a *ModelError.
	ErrModelUnusable = errors.New("model cannot be used")

	// ErrRunNotFound says that there is no such run, or none that the caller
	// may see.
	ErrRunNotFound = errors.New("no such run")

	// ErrRunTerminated says that a run is at its end, or is being brought to it,
	// and takes no input.
	ErrRunTerminated = errors.New("the run is terminated and takes no input")

	// ErrOrgNotFound says that no organisation has this ID or name.
	ErrOrgNotFound = errors.New("no such organisation")

	// ErrAgentNotFound says that no agent has this ID or name.
	ErrAgentNotFound = errors.New("no such agent")

	// ErrKeyNotFound says that no API key has this ID.
	ErrKeyNotFound = errors.New("no such key")

	// ErrForbidden says that the actor may see something and not do that to it.
	ErrForbidden = errors.New("not allowed")

	// ErrUserNotFound says that no user has this ID or email address, or none
	// that the actor may see.
	ErrUserNotFound = errors.New("no such user")

	// ErrTokenNotFound says that no token of the user's has this ID.
	ErrTokenNotFound = errors.New("no such token")

	// ErrInvalidToken says that a personal access token is malformed, unknown,
	// expired, or of a user who is disabled; which of them is not said.
	ErrInvalidToken = errors.New("invalid personal access token")

	// ErrInvalidScope says that a token is to have no scope, or one that does not
	// exist.
	ErrInvalidScope = errors.New("invalid scope")

	// ErrSignInRefused says that the address, the password or the session is not
	// good; which of them is not said.
	ErrSignInRefused = errors.New("the email address or the password is wrong")

	// ErrAlreadySetUp says that there is a user already.
	ErrAlreadySetUp = errors.New("this server is set up already")

	// ErrLastOperator says that nobody would be left who can sign in as operator.
	ErrLastOperator = errors.New("the last operator has to stay one who can sign in")

	// ErrInvalidEmail says that an email address cannot be one.
	ErrInvalidEmail = errors.New("invalid email address")

	// ErrWeakPassword says that a password is too short or too long; the text
	// says which.
	ErrWeakPassword = errors.New("invalid password")

	// ErrRevisionNotFound says that an agent has no revision of this number.
	ErrRevisionNotFound = errors.New("no such revision")

	// ErrNameTaken says that a name is in use where it has to be unique.
	ErrNameTaken = errors.New("name is taken")

	// ErrAmbiguousName says that a name fits more than one object.
	ErrAmbiguousName = errors.New("name fits more than one")

	// ErrInvalidName says that a name cannot be used; the text says why.
	ErrInvalidName = errors.New("invalid name")

	// ErrInvalidPattern says that a pattern of a model allowlist is malformed.
	ErrInvalidPattern = errors.New("invalid model pattern")

	// ErrInvalidExpiry says that a key's life is not longer than zero.
	ErrInvalidExpiry = errors.New("expiry must lie in the future")

	// ErrStaleClaim says that a write names a claim that no longer holds its
	// run. The turn that wrote it has to end without a further write.
	ErrStaleClaim = errors.New("stale claim")
)

// ArchivedError refuses a run or an input of an archived agent.
type ArchivedError struct {
	// Name is the agent's name.
	Name string
}

func (e *ArchivedError) Error() string {
	return fmt.Sprintf("agent %q is archived and takes no new runs and no new input", e.Name)
}

// Unwrap returns ErrAgentArchived.
func (e *ArchivedError) Unwrap() error { return ErrAgentArchived }

// ModelError refuses a run whose agent's model cannot be used.
type ModelError struct {
	// Model is the agent's model, as provider/model.
	Model string
	// Provider is set when the model's provider is not configured here.
	Provider string
	// Allowed are the organisation's patterns, of which none fits the model.
	Allowed []string
}

func (e *ModelError) Error() string {
	switch {
	case e.Provider != "":
		return fmt.Sprintf("model '%s' cannot be used: no provider '%s' is configured on this server", e.Model, e.Provider)
	case len(e.Allowed) == 0:
		return fmt.Sprintf("model '%s' cannot be used: the organization's model allowlist allows no model", e.Model)
	default:
		return fmt.Sprintf("model '%s' is not on the organization's model allowlist, which allows: %s", e.Model, strings.Join(e.Allowed, ", "))
	}
}

// Unwrap returns ErrModelUnusable.
func (e *ModelError) Unwrap() error { return ErrModelUnusable }
