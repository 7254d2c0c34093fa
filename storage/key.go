package storage

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"hash/crc32"
	"math/big"
	"strings"
	"time"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// The form of an API key, and of a personal access token: its prefix, keyRandom
// characters of base62 (256 bits of randomness), keyCheck characters of base62
// with the CRC-32 (IEEE) of all that stands before them. The checksum turns a mistyped key away before the
// store is asked, and lets scanners of leaked secrets recognise a key.
const (
	keyPrefix   = "ak_"
	tokenPrefix = "am_"

	keyRandom = 43
	keyCheck  = 6
	// keyShown is how much of a key is kept readable, to tell keys apart.
	keyShown = len(keyPrefix) + 5

	base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
)

// Key is an API key of one agent, without its secret.
type Key struct {
	ID      KeyID
	AgentID AgentID
	OrgID   OrgID
	Name    string
	// Prefix is the readable beginning of the secret.
	Prefix    string
	Disabled  bool
	CreatedAt time.Time
	// CreatedBy names who made it; empty when that is not known.
	CreatedBy string
	// ExpiresAt is when the key ends; zero means never.
	ExpiresAt time.Time
	// LastUsedAt is when it was last used, to the minute or so; zero when never.
	LastUsedAt time.Time
}

// Caller is who a valid API key speaks for.
type Caller struct {
	KeyID   KeyID
	AgentID AgentID
	OrgID   OrgID
}

type keyRecord struct {
	ID        KeyID     `json:"id"`
	AgentID   AgentID   `json:"agent_id"`
	OrgID     OrgID     `json:"org_id"`
	Name      string    `json:"name"`
	Prefix    string    `json:"prefix"`
	Hash      []byte    `json:"hash"`
	Disabled  bool      `json:"disabled"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	CreatedBy string    `json:"created_by,omitempty"`

	LastUsedAt time.Time `json:"last_used_at,omitzero"`
	// Life is how long the key was to be good for, zero for ever, when a rotation
	// has cut that short; nil when none has.
	Life *time.Duration `json:"life,omitempty"`
}

// life is how long the key was made to be good for; zero means for ever.
func (r keyRecord) life() time.Duration {
	switch {
	case r.Life != nil:
		return *r.Life
	case r.ExpiresAt.IsZero():
		return 0
	}
	return r.ExpiresAt.Sub(r.CreatedAt)
}

// shown is what the audit log says of a key's secret.
func (r keyRecord) shown() string { return r.Prefix + "…" }

func (r keyRecord) subject() Subject { return Subject{Kind: "key", ID: r.ID.UUID, Name: r.Name} }

func (r keyRecord) key() Key {
	return Key{
		ID: r.ID, AgentID: r.AgentID, OrgID: r.OrgID, Name: r.Name, Prefix: r.Prefix,
		Disabled: r.Disabled, CreatedAt: r.CreatedAt, CreatedBy: r.CreatedBy, ExpiresAt: r.ExpiresAt, LastUsedAt: r.LastUsedAt,
	}
}

func (r keyRecord) usable(now time.Time) bool {
	return !r.Disabled && (r.ExpiresAt.IsZero() || now.Before(r.ExpiresAt))
}

// CreateKey makes an API key for the agent with this ID or name and returns it
// with its secret, which is kept nowhere. A life of zero means no expiry. An
// empty name becomes "default". Errors: those of FindAgent, ErrForbidden,
// ErrInvalidName, ErrInvalidExpiry.
func (s *Store) CreateKey(ctx context.Context, agent, name string, life time.Duration) (Key, string, error) {
	if name == "" {
		name = "default"
	}
	if err := checkName(name); err != nil {
		return Key{}, "", err
	}
	if life < 0 {
		return Key{}, "", errors.Wrapf(ErrInvalidExpiry, "%s", life)
	}
	secret, err := newSecret(keyPrefix)
	if err != nil {
		return Key{}, "", err
	}
	var key Key
	err = s.update(ctx, func(tx *tx) error {
		owner, err := findAgent(tx, tx.actor, agent)
		if err != nil {
			return err
		}
		if err := tx.may(ScopeKeys); err != nil {
			return err
		}
		rec := keyRecord{AgentID: owner.ID, OrgID: owner.OrgID, Name: name}
		if life > 0 {
			rec.ExpiresAt = tx.now.Add(life)
		}
		if err := tx.addKey(&rec, secret); err != nil {
			return err
		}
		key = rec.key()
		return tx.audit("key.create", rec.OrgID, rec.subject(), rec.shown())
	})
	return key, secret, err
}

// addKey writes a new key with its secret.
func (tx *tx) addKey(rec *keyRecord, secret string) error {
	id, err := newUUID()
	if err != nil {
		return err
	}
	hash := sha256.Sum256([]byte(secret))
	rec.ID, rec.Prefix, rec.Hash, rec.CreatedAt, rec.CreatedBy = KeyID{id}, secret[:keyShown], hash[:], tx.now, tx.actor.Name
	if err := put(tx, spaceKeyHashes, rec.Hash, ref[KeyID]{rec.ID}); err != nil {
		return err
	}
	if err := put(tx, spaceAgentKeys, join(rec.AgentID.UUID[:], rec.ID.UUID[:]), present{}); err != nil {
		return err
	}
	return put(tx, spaceKeys, rec.ID.UUID[:], *rec)
}

// RotateKey makes another key of the same agent and name, and has the old one
// end after an overlap, or before if it does so anyway. A key that expires is
// followed by one with as long a life. Errors: ErrKeyNotFound, ErrForbidden,
// ErrInvalidExpiry.
func (s *Store) RotateKey(ctx context.Context, id KeyID, overlap time.Duration) (Key, string, error) {
	if overlap < 0 {
		return Key{}, "", errors.Wrapf(ErrInvalidExpiry, "%s", overlap)
	}
	secret, err := newSecret(keyPrefix)
	if err != nil {
		return Key{}, "", err
	}
	var key Key
	_, err = s.changeKey(ctx, id, func(tx *tx, old *keyRecord) error {
		rec, life := keyRecord{AgentID: old.AgentID, OrgID: old.OrgID, Name: old.Name}, old.life()
		if life > 0 {
			rec.ExpiresAt = tx.now.Add(life)
		}
		if err := tx.addKey(&rec, secret); err != nil {
			return err
		}
		key = rec.key()
		if end := tx.now.Add(overlap); old.ExpiresAt.IsZero() || end.Before(old.ExpiresAt) {
			old.ExpiresAt, old.Life = end, &life
		}
		if err := put(tx, spaceKeys, old.ID.UUID[:], *old); err != nil {
			return err
		}
		return tx.audit("key.rotate", old.OrgID, old.subject(), old.shown()+" → "+rec.shown())
	})
	return key, secret, err
}

// Keys returns the keys of the agent with this ID or name, oldest first.
// Errors: those of FindAgent.
func (s *Store) Keys(ctx context.Context, agent string) ([]Key, error) {
	var keys []Key
	err := s.db.View(ctx, func(r kv.Reader) error {
		keys = []Key{}
		owner, err := findAgent(r, ActorOf(ctx), agent)
		if err != nil {
			return err
		}
		return scan(r, kv.Prefix(spaceAgentKeys, owner.ID.UUID[:]), func(k []byte, _ present) error {
			rec, err := get[keyRecord](r, spaceKeys, k[len(owner.ID.UUID):])
			if err != nil {
				return err
			}
			if rec == nil {
				return errors.Wrapf(ErrDamagedRecord, "agent %s: key %x missing", owner.ID, k[len(owner.ID.UUID):])
			}
			key := rec.key()
			key.LastUsedAt = s.uses.latest(key.ID.UUID, key.LastUsedAt)
			keys = append(keys, key)
			return nil
		})
	})
	return keys, err
}

// FindKey returns a key that the actor sees; ErrKeyNotFound.
func (s *Store) FindKey(ctx context.Context, id KeyID) (Key, error) {
	var key Key
	err := s.db.View(ctx, func(r kv.Reader) error {
		rec, err := findKey(r, ActorOf(ctx), id)
		if err != nil {
			return err
		}
		key = rec.key()
		key.LastUsedAt = s.uses.latest(key.ID.UUID, key.LastUsedAt)
		return nil
	})
	return key, err
}

// SetKeyDisabled disables or enables a key. Errors: ErrKeyNotFound, ErrForbidden.
func (s *Store) SetKeyDisabled(ctx context.Context, id KeyID, disabled bool) (Key, error) {
	action := Action("key.enable")
	if disabled {
		action = "key.disable"
	}
	return s.changeKey(ctx, id, func(tx *tx, rec *keyRecord) error {
		if rec.Disabled == disabled {
			return nil
		}
		rec.Disabled = disabled
		if err := put(tx, spaceKeys, rec.ID.UUID[:], *rec); err != nil {
			return err
		}
		return tx.audit(action, rec.OrgID, rec.subject(), rec.shown())
	})
}

// DeleteKey removes a key for good. Errors: ErrKeyNotFound, ErrForbidden.
func (s *Store) DeleteKey(ctx context.Context, id KeyID) (Key, error) {
	return s.changeKey(ctx, id, func(tx *tx, rec *keyRecord) error {
		if err := tx.Delete(spaceKeyRefusals, rec.ID.UUID[:]); err != nil {
			return err
		}
		if err := tx.Delete(spaceKeyHashes, rec.Hash); err != nil {
			return err
		}
		if err := tx.Delete(spaceAgentKeys, join(rec.AgentID.UUID[:], rec.ID.UUID[:])); err != nil {
			return err
		}
		if err := tx.Delete(spaceKeys, rec.ID.UUID[:]); err != nil {
			return err
		}
		return tx.audit("key.delete", rec.OrgID, rec.subject(), rec.shown())
	})
}

// changeKey has change write and audit what the actor does to one key.
func (s *Store) changeKey(ctx context.Context, id KeyID, change func(*tx, *keyRecord) error) (Key, error) {
	var key Key
	err := s.update(ctx, func(tx *tx) error {
		rec, err := findKey(tx, tx.actor, id)
		if err != nil {
			return err
		}
		if err := tx.may(ScopeKeys); err != nil {
			return err
		}
		if err := change(tx, rec); err != nil {
			return err
		}
		key = rec.key()
		return nil
	})
	return key, err
}

// findKey returns a key that the actor sees; ErrKeyNotFound.
func findKey(r kv.Reader, actor Actor, id KeyID) (*keyRecord, error) {
	rec, err := get[keyRecord](r, spaceKeys, id.UUID[:])
	if err == nil && (rec == nil || !actor.sees(rec.OrgID)) {
		err = errors.Wrapf(ErrKeyNotFound, "%s", id)
	}
	return rec, err
}

// Authenticate returns who the secret speaks for. A key of a deleted agent
// still authenticates. Errors: ErrInvalidKey for a secret that is malformed
// (the store is not asked then), unknown, disabled or expired.
func (s *Store) Authenticate(ctx context.Context, secret string) (Caller, error) {
	if !wellFormed(keyPrefix, secret) {
		return Caller{}, ErrInvalidKey
	}
	hash := sha256.Sum256([]byte(secret))
	var caller Caller
	err := s.db.View(ctx, func(r kv.Reader) error {
		index, err := get[ref[KeyID]](r, spaceKeyHashes, hash[:])
		if err != nil {
			return err
		}
		if index == nil {
			if err := decoy.lookUp(r); err != nil {
				return err
			}
			return ErrInvalidKey
		}
		caller, err = usableKey(r, index.ID, s.now())
		return err
	})
	if err == nil {
		s.uses.note(caller.KeyID.UUID, s.now())
	}
	return caller, err
}

// usableKey returns whom a key speaks for; ErrInvalidKey when it is not usable
// at that time, or no more.
func usableKey(r kv.Reader, id KeyID, now time.Time) (Caller, error) {
	rec, err := get[keyRecord](r, spaceKeys, id.UUID[:])
	if err != nil {
		return Caller{}, err
	}
	if rec == nil || !rec.usable(now) {
		return Caller{}, ErrInvalidKey
	}
	return Caller{KeyID: rec.ID, AgentID: rec.AgentID, OrgID: rec.OrgID}, nil
}

func newSecret(prefix string) (string, error) {
	random := make([]byte, keyRandom)
	for i := range random {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(base62))))
		if err != nil {
			return "", errors.Wrap(err, "new key")
		}
		random[i] = base62[n.Int64()]
	}
	body := prefix + string(random)
	return body + keyChecksum(body), nil
}

func keyChecksum(body string) string {
	sum := crc32.ChecksumIEEE([]byte(body))
	var check [keyCheck]byte
	for i := len(check) - 1; i >= 0; i-- {
		check[i] = base62[sum%uint32(len(base62))]
		sum /= uint32(len(base62))
	}
	return string(check[:])
}

func wellFormed(prefix, secret string) bool {
	if len(secret) != len(prefix)+keyRandom+keyCheck || !strings.HasPrefix(secret, prefix) {
		return false
	}
	body, check := secret[:len(secret)-keyCheck], secret[len(secret)-keyCheck:]
	for i := len(prefix); i < len(body); i++ {
		if strings.IndexByte(base62, body[i]) < 0 {
			return false
		}
	}
	return keyChecksum(body) == check
}
