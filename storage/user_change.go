package storage

import (
	"context"
	"strings"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// UserChange is what to change of a user; nil stays as it is.
type UserChange struct {
	Role *UserRole
	// Org is the ID or name of a member's organisation.
	Org      *string
	Disabled *bool
	Password *string
}

// ChangeUser changes the user with this ID or email address. A new password, and
// being disabled, ends all of the user's sessions. What is so already is no
// change. Errors: ErrForbidden, ErrUserNotFound, ErrOrgNotFound,
// ErrWeakPassword, ErrLastOperator.
func (s *Store) ChangeUser(ctx context.Context, ref string, c UserChange) (User, error) {
	if err := ActorOf(ctx).may(ScopeAdmin); err != nil {
		return User{}, err
	}
	var password *passwordHash
	if c.Password != nil {
		p, err := s.cost.newPassword(ctx, *c.Password)
		if err != nil {
			return User{}, err
		}
		password = &p
	}
	return s.changeUser(ctx, ref, func(tx *tx, rec *userRecord) error {
		if err := tx.may(ScopeAdmin); err != nil {
			return err
		}
		detail, err := tx.applyUserChange(rec, c, password)
		if err != nil || detail == "" {
			return err
		}
		return tx.audit("user.change", rec.Org, rec.subject(), detail)
	})
}

// applyUserChange changes the record and says in words what it changed; nothing
// when it is as it was.
func (tx *tx) applyUserChange(rec *userRecord, c UserChange, password *passwordHash) (string, error) {
	var changed []string
	if c.Role != nil || c.Org != nil {
		role, org := rec.Role, rec.Org.String()
		if c.Role != nil {
			role = *c.Role
		}
		if c.Org != nil {
			org = *c.Org
		} else if rec.Org == (OrgID{}) {
			org = DefaultOrg
		}
		owner, err := tx.orgOf(role, org)
		if err != nil {
			return "", err
		}
		if role != rec.Role || owner != rec.Org {
			changed = append(changed, string(role))
		}
		rec.Role, rec.Org = role, owner
	}
	if c.Disabled != nil && *c.Disabled != rec.Disabled {
		rec.Disabled = *c.Disabled
		rec.Generation++
		changed = append(changed, map[bool]string{true: "disabled", false: "enabled"}[*c.Disabled])
	}
	if password != nil {
		rec.Password = *password
		rec.Generation++
		changed = append(changed, "password")
	}
	return strings.Join(changed, ", "), nil
}

// ChangePassword changes the password of the user who asks, who has to know the
// current one. All of the user's sessions end. Errors: ErrUserNotFound for who
// is no user, ErrSignInRefused, ErrWeakPassword, ErrForbidden for a token.
func (s *Store) ChangePassword(ctx context.Context, current, password string) (User, error) {
	actor := ActorOf(ctx)
	if actor.Kind == ActorToken {
		return User{}, errors.Wrap(ErrForbidden, "a token changes no password")
	}
	user, rec, err := s.userRecord(ctx, actor.UserID)
	if err != nil {
		return user, err
	}
	ok, err := rec.Password.matches(ctx, current)
	if err != nil {
		return User{}, errors.Wrapf(err, "user %s", rec.ID)
	}
	if !ok {
		return User{}, errors.Wrapf(ErrSignInRefused, "user %s: the current password is another", rec.Email)
	}
	hash, err := s.cost.newPassword(ctx, password)
	if err != nil {
		return User{}, err
	}
	return s.changeUser(ctx, rec.ID.String(), func(tx *tx, now *userRecord) error {
		if err := tx.may(ScopeRead); err != nil {
			return err
		}
		if now.Generation != rec.Generation {
			return errors.Wrapf(ErrSignInRefused, "user %s: changed meanwhile", rec.Email)
		}
		now.Password = hash
		now.Generation++
		return tx.audit("user.change", now.Org, now.subject(), "own password")
	})
}

func (s *Store) userRecord(ctx context.Context, id UserID) (User, *userRecord, error) {
	var rec *userRecord
	err := s.db.View(ctx, func(r kv.Reader) (err error) {
		rec, err = findUser(r, id.String())
		return err
	})
	if err != nil {
		return User{}, nil, err
	}
	return rec.user(), rec, nil
}

// operates says whether the user can sign in as operator.
func (r userRecord) operates() bool { return r.Role == OperatorRole && !r.Disabled }

func (s *Store) changeUser(ctx context.Context, ref string, change func(*tx, *userRecord) error) (User, error) {
	var user User
	err := s.update(ctx, func(tx *tx) error {
		rec, err := findUser(tx, ref)
		if err != nil {
			return err
		}
		before := *rec
		if err := change(tx, rec); err != nil {
			return err
		}
		user = rec.user()
		if *rec == before {
			return nil
		}
		if err := put(tx, spaceUsers, rec.ID.UUID[:], *rec); err != nil {
			return err
		}
		if before.operates() && !rec.operates() {
			return tx.keepAnOperator()
		}
		return nil
	})
	return user, err
}

// DeleteUser removes a user with all sessions and tokens. Errors: ErrForbidden,
// ErrUserNotFound, ErrLastOperator.
func (s *Store) DeleteUser(ctx context.Context, ref string) (User, error) {
	var user User
	err := s.update(ctx, func(tx *tx) error {
		if err := tx.may(ScopeAdmin); err != nil {
			return err
		}
		rec, err := findUser(tx, ref)
		if err != nil {
			return err
		}
		user = rec.user()
		tokens, err := tokensOf(tx, rec.ID)
		if err != nil {
			return err
		}
		for _, token := range tokens {
			if err := tx.dropToken(token); err != nil {
				return err
			}
		}
		if err := tx.Delete(spaceUserEmails, []byte(rec.Email)); err != nil {
			return err
		}
		if err := tx.Delete(spaceUsers, rec.ID.UUID[:]); err != nil {
			return err
		}
		if rec.operates() {
			if err := tx.keepAnOperator(); err != nil {
				return err
			}
		}
		return tx.audit("user.delete", rec.Org, rec.subject(), "")
	})
	return user, err
}

// keepAnOperator refuses a transaction after which nobody is left who can sign
// in as operator: else the set-up would be open to anybody once more, or nobody
// could change anything.
func (tx *tx) keepAnOperator() error {
	operators := 0
	err := scan(tx, kv.Range{Space: spaceUsers}, func(_ []byte, rec userRecord) error {
		if rec.operates() {
			operators++
		}
		return nil
	})
	if err == nil && operators == 0 {
		err = ErrLastOperator
	}
	return err
}
