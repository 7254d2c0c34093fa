package storage

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// MaxTokenLife is the longest that a personal access token is good for.
const MaxTokenLife = 366 * 24 * time.Hour

// Token is a personal access token of a user, without its secret.
type Token struct {
	ID     TokenID
	UserID UserID
	Name   string
	// Prefix is the readable beginning of the secret.
	Prefix    string
	Scopes    []Scope
	CreatedAt time.Time
	ExpiresAt time.Time
	// LastUsedAt is when it was last used, to the minute or so; zero when never.
	LastUsedAt time.Time
}

type tokenRecord struct {
	ID         TokenID   `json:"id"`
	UserID     UserID    `json:"user_id"`
	Name       string    `json:"name"`
	Prefix     string    `json:"prefix"`
	Hash       []byte    `json:"hash"`
	Scopes     []Scope   `json:"scopes"`
	CreatedAt  time.Time `json:"created_at"`
	ExpiresAt  time.Time `json:"expires_at"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
}

func (r tokenRecord) token() Token {
	return Token{
		ID: r.ID, UserID: r.UserID, Name: r.Name, Prefix: r.Prefix, Scopes: r.Scopes,
		CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt, LastUsedAt: r.LastUsedAt,
	}
}

func (r tokenRecord) subject() Subject { return Subject{Kind: "token", ID: r.ID.UUID, Name: r.Name} }

// CreateToken makes a personal access token of the user who asks, and returns it
// with its secret, which is kept nowhere. A token makes one only with ScopeAdmin,
// and none that may do more than itself. Errors: ErrForbidden (also for an actor
// who is no user),
// ErrInvalidName, ErrInvalidExpiry, ErrInvalidScope.
func (s *Store) CreateToken(ctx context.Context, name string, may []Scope, life time.Duration) (Token, string, error) {
	actor := ActorOf(ctx)
	if err := checkNewToken(actor, name, may, life); err != nil {
		return Token{}, "", err
	}
	secret, err := newSecret(tokenPrefix)
	if err != nil {
		return Token{}, "", err
	}
	id, err := newUUID()
	if err != nil {
		return Token{}, "", err
	}
	hash := sha256.Sum256([]byte(secret))
	rec := tokenRecord{
		ID: TokenID{id}, UserID: actor.UserID, Name: name, Prefix: secret[:keyShown], Hash: hash[:],
		Scopes: slices.Compact(slices.Sorted(slices.Values(may))),
	}
	err = s.update(ctx, func(tx *tx) error {
		if err := tx.actorIsGood(); err != nil {
			return err
		}
		rec.CreatedAt, rec.ExpiresAt = tx.now, tx.now.Add(life)
		if err := put(tx, spaceTokenHashes, rec.Hash, ref[TokenID]{rec.ID}); err != nil {
			return err
		}
		if err := put(tx, spaceUserTokens, join(rec.UserID.UUID[:], rec.ID.UUID[:]), present{}); err != nil {
			return err
		}
		if err := put(tx, spaceTokens, rec.ID.UUID[:], rec); err != nil {
			return err
		}
		return tx.audit("token.create", actor.Org, rec.subject(), "")
	})
	return rec.token(), secret, err
}

func checkNewToken(actor Actor, name string, may []Scope, life time.Duration) error {
	switch {
	case actor.UserID == (UserID{}):
		return errors.Wrap(ErrForbidden, "only users have tokens: make a user first")
	case actor.has(ScopeAdmin) != nil:
		return actor.has(ScopeAdmin)
	case life <= 0 || life > MaxTokenLife:
		return errors.Wrapf(ErrInvalidExpiry, "%s", life)
	case len(may) == 0:
		return errors.Wrap(ErrInvalidScope, "there is none")
	}
	for _, scope := range may {
		if !slices.Contains(scopes, scope) {
			return errors.Wrapf(ErrInvalidScope, "%q", scope)
		}
		if err := actor.has(scope); err != nil {
			return err
		}
	}
	return checkName(name)
}

// Tokens returns the tokens of the user who asks, oldest first.
func (s *Store) Tokens(ctx context.Context) ([]Token, error) {
	var tokens []Token
	err := s.db.View(ctx, func(r kv.Reader) error {
		recs, err := tokensOf(r, ActorOf(ctx).UserID)
		tokens = []Token{}
		for _, rec := range recs {
			token := rec.token()
			token.LastUsedAt = s.uses.latest(rec.ID.UUID, token.LastUsedAt)
			tokens = append(tokens, token)
		}
		return err
	})
	return tokens, err
}

func tokensOf(r kv.Reader, user UserID) ([]*tokenRecord, error) {
	var recs []*tokenRecord
	err := scan(r, kv.Prefix(spaceUserTokens, user.UUID[:]), func(key []byte, _ present) error {
		rec, err := get[tokenRecord](r, spaceTokens, key[len(user.UUID):])
		if err == nil && rec == nil {
			err = errors.Wrapf(ErrDamagedRecord, "user %s: token %x missing", user, key[len(user.UUID):])
		}
		if err != nil {
			return err
		}
		recs = append(recs, rec)
		return nil
	})
	return recs, err
}

// DeleteToken removes a token of the user who asks; a token does so only with
// ScopeAdmin. Errors: ErrTokenNotFound, ErrForbidden.
func (s *Store) DeleteToken(ctx context.Context, id TokenID) (Token, error) {
	var token Token
	err := s.update(ctx, func(tx *tx) error {
		rec, err := get[tokenRecord](tx, spaceTokens, id.UUID[:])
		if err != nil {
			return err
		}
		if rec == nil || rec.UserID != tx.actor.UserID {
			return errors.Wrapf(ErrTokenNotFound, "%s", id)
		}
		if err := errors.Join(tx.actorIsGood(), tx.actor.has(ScopeAdmin)); err != nil {
			return err
		}
		token = rec.token()
		if err := tx.dropToken(rec); err != nil {
			return err
		}
		return tx.audit("token.delete", tx.actor.Org, rec.subject(), "")
	})
	return token, err
}

func (tx *tx) dropToken(rec *tokenRecord) error {
	if err := tx.Delete(spaceTokenHashes, rec.Hash); err != nil {
		return err
	}
	if err := tx.Delete(spaceUserTokens, join(rec.UserID.UUID[:], rec.ID.UUID[:])); err != nil {
		return err
	}
	return tx.Delete(spaceTokens, rec.ID.UUID[:])
}

// TokenActor returns the actor that the secret of a token speaks for. Errors:
// ErrInvalidToken for a secret that is malformed (the store is not asked then),
// unknown or expired, and for one of a user who is disabled.
func (s *Store) TokenActor(ctx context.Context, secret, from string) (Actor, error) {
	if !wellFormed(tokenPrefix, secret) {
		return Actor{}, ErrInvalidToken
	}
	hash := sha256.Sum256([]byte(secret))
	var actor Actor
	err := s.db.View(ctx, func(r kv.Reader) error {
		index, err := get[ref[TokenID]](r, spaceTokenHashes, hash[:])
		if err != nil {
			return err
		}
		if index == nil {
			return ErrInvalidToken
		}
		rec, err := get[tokenRecord](r, spaceTokens, index.ID.UUID[:])
		if err != nil {
			return err
		}
		if rec == nil || !s.now().Before(rec.ExpiresAt) {
			return ErrInvalidToken
		}
		owner, err := get[userRecord](r, spaceUsers, rec.UserID.UUID[:])
		if err != nil {
			return err
		}
		if owner == nil || owner.Disabled {
			return ErrInvalidToken
		}
		actor = owner.actor(from)
		// Never nil, which would mean no bound.
		actor.Kind, actor.ID, actor.Scopes = ActorToken, rec.ID.UUID, append([]Scope{}, rec.Scopes...)
		actor.Name = owner.Email + " (" + rec.Name + ")"
		return nil
	})
	if err == nil {
		s.uses.note(actor.ID, s.now())
	}
	return actor, err
}
