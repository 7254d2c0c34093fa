// Package storage holds the nouns of agentrun, their rules and their
// transitions. Every rule that must hold across rows is checked inside the
// transaction that writes them, here and nowhere else. It speaks no HTTP, runs
// nothing, reads no clock but the one it was given, and knows the store
// underneath only as package kv. What people may see and do is decided here too:
// see Actor.
//
// # The schema
//
// Spaces, with keys on the left and records on the right. ‖ joins the parts of
// a key; ORG, AGENT, KEY, RUN, USER, TOKEN and TICKET are 16 bytes of a UUID, SEQ and SINCE
// are big-endian 64-bit numbers, REV is one of 32 bits. Every value is a checksummed
// record (see record.go).
//
//	meta
//	├── "schema"             version of this drawing
//	├── "epoch"              raised each time the store is opened
//	└── "audit"              number and sum of the last entry of the audit log
//	orgs
//	└── ORG                  an organisation with its model allowlist
//	org_names
//	└── NAME                 → ORG
//	agents
//	└── AGENT                an agent; a deleted one stays as a tombstone
//	agent_names
//	└── ORG‖NAME             → AGENT, of agents that are not deleted
//	agent_revisions
//	└── AGENT‖REV            an agent file as it was applied, never changed
//	keys
//	└── KEY                  an API key without its secret
//	key_hashes
//	└── SHA-256 of a secret  → KEY
//	agent_keys
//	└── AGENT‖KEY            the keys of an agent
//	runs
//	└── RUN                  a run's state, counters and claim
//	agent_runs
//	└── AGENT‖RUN            the runs of an agent
//	waiting
//	└── AGENT‖TICKET‖RUN     a run that waits for a worker
//	claims
//	└── AGENT‖RUN            a run that a server holds
//	inputs
//	└── RUN‖SEQ              an input that no turn has accepted yet
//	messages
//	└── RUN‖SEQ              a message of the transcript
//	events
//	└── RUN‖SEQ              an event of the history
//	idle
//	└── SINCE‖RUN            an idle run, by the nanosecond in which it became so
//	erasures
//	└── RUN                  a deleted run whose workspace is still there
//	spent
//	└── KIND‖ID              what models took for an organisation, agent or key
//	spent_daily
//	└── ORG‖DAY              what models took for an organisation on a day (YYYYMMDD)
//	org_runs
//	└── ORG‖RUN              the runs of an organisation
//	key_runs
//	└── KEY‖RUN              the runs that a key made
//	key_refusals
//	└── KEY                  the last requests of a key that made no run
//	users
//	└── USER                 a person who can sign in
//	user_emails
//	└── EMAIL                → USER
//	sessions
//	└── SHA-256 of a token   a session of the application
//	tokens
//	└── TOKEN                a personal access token without its secret
//	token_hashes
//	└── SHA-256 of a secret  → TOKEN
//	user_tokens
//	└── USER‖TOKEN           the tokens of a user
//	audit
//	└── SEQ                  an entry of the audit log
//	org_audit
//	└── ORG‖SEQ              the entries of an organisation
package storage

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// Options of a Store.
type Options struct {
	// Now is the clock; nil means time.Now. It orders nothing.
	Now func() time.Time
	// PasswordCost is that of new passwords; zero means what is recommended.
	PasswordCost PasswordCost
}

// Store is the data of one agentrun: nouns in, nouns out, each method one
// transaction. All methods may be called from any number of goroutines.
type Store struct {
	db       kv.DB
	now      func() time.Time
	cost     PasswordCost
	epoch    uint64
	watchers watchers
	access   atomic.Uint64
	uses     uses

	failOnce sync.Once
	failed   chan struct{}
}

// Open takes over db, which must be open exclusively: it brings the schema up
// to date and raises the epoch, so that every claim of an earlier life is
// stale. Data of a newer agentrun is refused untouched with ErrNewerSchema.
// The Store owns db from then on, also when Open fails.
func Open(ctx context.Context, db kv.DB, opts Options) (*Store, error) {
	s := &Store{db: db, now: opts.Now, cost: opts.PasswordCost, failed: make(chan struct{})}
	if s.cost == (PasswordCost{}) {
		s.cost = usualCost
	}
	if s.now == nil {
		s.now = time.Now
	}
	err := s.migrate(ctx)
	if err == nil {
		err = s.raiseEpoch(ctx)
	}
	if err != nil {
		_ = db.Close()
		return nil, err
	}
	return s, nil
}

// Close waits for the transactions under way and releases the store.
func (s *Store) Close() error { return s.db.Close() }

// Failed is closed once a commit's outcome is unknown. Nothing can be written
// from then on; the process has to end with an error and be started again.
func (s *Store) Failed() <-chan struct{} { return s.failed }

// Ping reads the store once: nil when it answers.
func (s *Store) Ping(ctx context.Context) error {
	return s.db.View(ctx, func(r kv.Reader) error {
		_, err := schemaVersion(r)
		return err
	})
}

// tx is one run of an update function: the store's transaction, the time that
// all of its rows carry, for whom it is, and the runs that it changed.
type tx struct {
	kv.Tx
	now     time.Time
	epoch   uint64
	actor   Actor
	changed []RunID
	// access is true when somebody may have lost what they could see.
	access bool
}

// update runs fn in a transaction and, once that is durable, wakes the
// watchers of the runs that fn changed.
func (s *Store) update(ctx context.Context, fn func(*tx) error) error {
	var last *tx
	actor := ActorOf(ctx)
	err := s.db.Update(ctx, func(raw kv.Tx) error {
		last = &tx{Tx: raw, now: s.now().UTC(), epoch: s.epoch, actor: actor}
		return fn(last)
	})
	if errors.Is(err, kv.ErrUnknown) {
		s.failOnce.Do(func() { close(s.failed) })
	}
	if err != nil {
		return err
	}
	if last.access {
		s.access.Add(1)
	}
	s.watchers.wake(last.changed)
	return nil
}

// Put implements kv.Tx.
func (tx *tx) Put(space string, key, value []byte) error {
	tx.access = tx.access || space == spaceUsers
	return tx.Tx.Put(space, key, value)
}

// Delete implements kv.Tx.
func (tx *tx) Delete(space string, key []byte) error {
	tx.access = tx.access || space == spaceUsers || space == spaceSessions
	return tx.Tx.Delete(space, key)
}

// AccessChanges counts the commits after which somebody may see less than
// before: a user was changed or deleted, or a session ended otherwise than by its
// time. Whoever shows things for long looks at it, and asks UserActor again only
// when it has risen.
func (s *Store) AccessChanges() uint64 { return s.access.Load() }
