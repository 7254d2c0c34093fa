package storage

import (
	"context"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/storage/kv"
)

// maxEmail is the longest address that can be delivered to (RFC 5321, section
// 4.5.3.1.3, less its angle brackets), in bytes.
const maxEmail = 254

// User is a person who can sign in.
type User struct {
	ID    UserID
	Email string
	Role  UserRole
	// Org is the organisation of a member; zero for operators.
	Org OrgID
	// Disabled refuses the user and the user's tokens.
	Disabled bool
	// Generation rises when all sessions of the user are to end.
	Generation uint64
	CreatedAt  time.Time
	// SignedInAt is when the user last signed in; zero when never.
	SignedInAt time.Time
}

type userRecord struct {
	ID         UserID       `json:"id"`
	Email      string       `json:"email"`
	Role       UserRole     `json:"role"`
	Org        OrgID        `json:"org,omitzero"`
	Disabled   bool         `json:"disabled,omitempty"`
	Password   passwordHash `json:"password"`
	Generation uint64       `json:"generation"`
	CreatedAt  time.Time    `json:"created_at"`
	SignedInAt time.Time    `json:"signed_in_at,omitzero"`
}

func (r userRecord) user() User {
	return User{
		ID: r.ID, Email: r.Email, Role: r.Role, Org: r.Org, Disabled: r.Disabled, Generation: r.Generation,
		CreatedAt: r.CreatedAt, SignedInAt: r.SignedInAt,
	}
}

func (r userRecord) subject() Subject { return Subject{Kind: "user", ID: r.ID.UUID, Name: r.Email} }

// HasUsers says whether there is a user.
func (s *Store) HasUsers(ctx context.Context) (bool, error) {
	var has bool
	err := s.db.View(ctx, func(r kv.Reader) (err error) {
		has, err = hasUsers(r)
		return err
	})
	return has, err
}

func hasUsers(r kv.Reader) (bool, error) {
	pairs, err := r.Scan(kv.Range{Space: spaceUsers, Limit: 1})
	return len(pairs) > 0, err
}

// NewUser is what a user is made from.
type NewUser struct {
	Email, Password string
	Role            UserRole
	// Org is the ID or name of a member's organisation.
	Org string
}

// SetUp makes the first user, an operator. Errors: ErrAlreadySetUp,
// ErrInvalidEmail, ErrWeakPassword.
func (s *Store) SetUp(ctx context.Context, email, password string) (User, error) {
	// Before the password costs its time; the transaction looks again.
	if has, err := s.HasUsers(ctx); err != nil || has {
		if err == nil {
			err = ErrAlreadySetUp
		}
		return User{}, err
	}
	return s.newUser(ctx, NewUser{Email: email, Password: password, Role: OperatorRole}, func(tx *tx) error {
		has, err := hasUsers(tx)
		if err == nil && has {
			err = ErrAlreadySetUp
		}
		return err
	})
}

// CreateUser makes a user. Errors: ErrForbidden, ErrInvalidEmail,
// ErrWeakPassword, ErrOrgNotFound, ErrNameTaken.
func (s *Store) CreateUser(ctx context.Context, n NewUser) (User, error) {
	if err := ActorOf(ctx).may(ScopeAdmin); err != nil {
		return User{}, err
	}
	return s.newUser(ctx, n, func(tx *tx) error { return tx.may(ScopeAdmin) })
}

func (s *Store) newUser(ctx context.Context, n NewUser, allowed func(*tx) error) (User, error) {
	email, err := cleanEmail(n.Email)
	if err != nil {
		return User{}, err
	}
	password, err := s.cost.newPassword(ctx, n.Password)
	if err != nil {
		return User{}, err
	}
	id, err := newUUID()
	if err != nil {
		return User{}, err
	}
	rec := userRecord{ID: UserID{id}, Email: email, Role: n.Role, Password: password, Generation: 1}
	err = s.update(ctx, func(tx *tx) error {
		if err := allowed(tx); err != nil {
			return err
		}
		taken, err := get[ref[UserID]](tx, spaceUserEmails, []byte(email))
		if err != nil {
			return err
		}
		if taken != nil {
			return errors.Wrapf(ErrNameTaken, "user %q", email)
		}
		if rec.Org, err = tx.orgOf(n.Role, n.Org); err != nil {
			return err
		}
		rec.CreatedAt = tx.now
		if err := put(tx, spaceUserEmails, []byte(email), ref[UserID]{rec.ID}); err != nil {
			return err
		}
		if err := put(tx, spaceUsers, rec.ID.UUID[:], rec); err != nil {
			return err
		}
		return tx.audit("user.create", rec.Org, rec.subject(), string(rec.Role))
	})
	return rec.user(), err
}

// orgOf returns the organisation that a user of a role belongs to.
func (tx *tx) orgOf(role UserRole, name string) (OrgID, error) {
	switch role {
	case OperatorRole:
		return OrgID{}, nil
	case MemberRole:
		org, err := findOrg(tx, tx.actor, name)
		if err != nil {
			return OrgID{}, err
		}
		return org.ID, nil
	default:
		return OrgID{}, errors.Errorf("role %q", role)
	}
}

// Users returns all users, oldest first; ErrForbidden.
func (s *Store) Users(ctx context.Context) ([]User, error) {
	var users []User
	if err := ActorOf(ctx).may(ScopeAdmin); err != nil {
		return nil, err
	}
	err := s.db.View(ctx, func(r kv.Reader) error {
		users = []User{}
		return scan(r, kv.Range{Space: spaceUsers}, func(_ []byte, rec userRecord) error {
			users = append(users, rec.user())
			return nil
		})
	})
	return users, err
}

// FindUser returns the user with this ID or email address. Whoever is no
// operator finds only itself. Errors: ErrUserNotFound.
func (s *Store) FindUser(ctx context.Context, ref string) (User, error) {
	var user User
	actor := ActorOf(ctx)
	err := s.db.View(ctx, func(r kv.Reader) error {
		rec, err := findUser(r, ref)
		if err != nil {
			return err
		}
		if actor.Role != OperatorRole && actor.UserID != rec.ID {
			return errors.Wrapf(ErrUserNotFound, "%q", ref)
		}
		user = rec.user()
		return nil
	})
	return user, err
}

func findUser(r kv.Reader, name string) (*userRecord, error) {
	id, err := uuid.Parse(name)
	if err != nil {
		return userOfEmail(r, name)
	}
	rec, err := get[userRecord](r, spaceUsers, id[:])
	if err == nil && rec == nil {
		err = errors.Wrapf(ErrUserNotFound, "%q", name)
	}
	return rec, err
}

func userOfEmail(r kv.Reader, email string) (*userRecord, error) {
	index, err := get[ref[UserID]](r, spaceUserEmails, []byte(foldEmail(email)))
	if err != nil {
		return nil, err
	}
	if index == nil {
		return nil, errors.Wrapf(ErrUserNotFound, "%q", email)
	}
	rec, err := get[userRecord](r, spaceUsers, index.ID.UUID[:])
	if err == nil && rec == nil {
		err = errors.Wrapf(ErrDamagedRecord, "user %s: missing", index.ID)
	}
	return rec, err
}

// foldEmail is the form in which addresses are compared.
func foldEmail(email string) string { return strings.ToLower(strings.TrimSpace(email)) }

// cleanEmail returns the form in which an address is kept. Nothing is ever sent
// to it, so only what makes it readable and unique matters; ErrInvalidEmail.
func cleanEmail(email string) (string, error) {
	valid := utf8.ValidString(email) // Folding makes text of everything.
	email = foldEmail(email)
	local, domain, found := strings.Cut(email, "@")
	switch {
	case !valid, len(email) > maxEmail, !found, local == "", domain == "", strings.Contains(domain, "@"),
		strings.ContainsFunc(email, func(r rune) bool { return r == ' ' || !unicode.IsPrint(r) }):
		return "", errors.Wrapf(ErrInvalidEmail, "%q", email)
	}
	return email, nil
}
