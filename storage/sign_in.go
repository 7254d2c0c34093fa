package storage

import (
	"context"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// SignIn returns the user with this email address and password, and records in
// the audit log that, and from where, the user signed in. Errors:
// ErrSignInRefused for an unknown address, a wrong password and a user who is
// disabled, alike in text and time.
func (s *Store) SignIn(ctx context.Context, email, password, from string) (User, error) {
	var rec *userRecord
	err := s.db.View(ctx, func(r kv.Reader) (err error) {
		rec, err = userOfEmail(r, email)
		if errors.Is(err, ErrUserNotFound) {
			rec, err = nil, nil
		}
		return err
	})
	if err != nil {
		return User{}, err
	}
	hash := s.cost.nobody()
	if rec != nil {
		hash = rec.Password
	}
	ok, err := hash.matches(ctx, password)
	if err != nil {
		return User{}, err
	}
	if !ok || rec == nil || rec.Disabled {
		return User{}, ErrSignInRefused
	}
	ctx = WithActor(ctx, rec.actor(from))
	user, err := s.changeUser(ctx, rec.ID.String(), func(tx *tx, now *userRecord) error {
		if now.Generation != rec.Generation || now.Disabled {
			return ErrSignInRefused
		}
		now.SignedInAt = tx.now
		return tx.audit("session.create", now.Org, now.subject(), "")
	})
	if errors.Is(err, ErrUserNotFound) {
		return User{}, ErrSignInRefused // deleted meanwhile
	}
	return user, err
}

// SignOut records in the audit log that the actor signed out.
func (s *Store) SignOut(ctx context.Context) error {
	return s.update(ctx, func(tx *tx) error {
		return tx.audit("session.delete", tx.actor.Org, Subject{Kind: "user", ID: tx.actor.UserID.UUID, Name: tx.actor.Name}, "")
	})
}

func (r userRecord) actor(from string) Actor {
	return Actor{Kind: ActorUser, ID: r.ID.UUID, UserID: r.ID, Name: r.Email, From: from, Role: r.Role, Org: r.Org}
}

// UserActor returns the actor that a session is of, which began in a generation
// of the user. Errors: ErrSignInRefused when the user was deleted, disabled or
// has another generation since.
func (s *Store) UserActor(ctx context.Context, id UserID, generation uint64, from string) (Actor, error) {
	var actor Actor
	err := s.db.View(ctx, func(r kv.Reader) error {
		rec, err := get[userRecord](r, spaceUsers, id.UUID[:])
		if err != nil {
			return err
		}
		if rec == nil || rec.Disabled || rec.Generation != generation {
			return ErrSignInRefused
		}
		actor = rec.actor(from)
		return nil
	})
	return actor, err
}
