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

// The form of an API key: keyPrefix, keyRandom characters of base62 (256 bits
// of randomness), keyCheck characters of base62 with the CRC-32 (IEEE) of all
// that stands before them. The checksum turns a mistyped key away before the
// store is asked, and lets scanners of leaked secrets recognise a key.
const (
	keyPrefix = "ak_"
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
	// ExpiresAt is when the key ends; zero means never.
	ExpiresAt time.Time
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
}

func (r keyRecord) key() Key {
	return Key{
		ID: r.ID, AgentID: r.AgentID, OrgID: r.OrgID, Name: r.Name, Prefix: r.Prefix,
		Disabled: r.Disabled, CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt,
	}
}

func (r keyRecord) usable(now time.Time) bool {
	return !r.Disabled && (r.ExpiresAt.IsZero() || now.Before(r.ExpiresAt))
}

// CreateKey makes an API key for the agent with this ID or name and returns it
// with its secret, which is kept nowhere. A life of zero means no expiry. An
// empty name becomes "default". Errors: those of FindAgent, ErrInvalidName,
// ErrInvalidExpiry.
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
	secret, err := newSecret()
	if err != nil {
		return Key{}, "", err
	}
	var key Key
	err = s.update(ctx, func(tx *tx) error {
		owner, err := findAgent(tx, agent)
		if err != nil {
			return err
		}
		id, err := newUUID()
		if err != nil {
			return err
		}
		hash := sha256.Sum256([]byte(secret))
		rec := keyRecord{
			ID: KeyID{id}, AgentID: owner.ID, OrgID: owner.OrgID, Name: name,
			Prefix: secret[:keyShown], Hash: hash[:], CreatedAt: tx.now,
		}
		if life > 0 {
			rec.ExpiresAt = tx.now.Add(life)
		}
		key = rec.key()
		if err := put(tx, spaceKeyHashes, rec.Hash, ref[KeyID]{rec.ID}); err != nil {
			return err
		}
		if err := put(tx, spaceAgentKeys, join(owner.ID.UUID[:], rec.ID.UUID[:]), present{}); err != nil {
			return err
		}
		return put(tx, spaceKeys, rec.ID.UUID[:], rec)
	})
	return key, secret, err
}

// Keys returns the keys of the agent with this ID or name, oldest first.
// Errors: those of FindAgent.
func (s *Store) Keys(ctx context.Context, agent string) ([]Key, error) {
	var keys []Key
	err := s.db.View(ctx, func(r kv.Reader) error {
		keys = []Key{}
		owner, err := findAgent(r, agent)
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
			keys = append(keys, rec.key())
			return nil
		})
	})
	return keys, err
}

// SetKeyDisabled disables or enables a key; ErrKeyNotFound.
func (s *Store) SetKeyDisabled(ctx context.Context, id KeyID, disabled bool) (Key, error) {
	return s.changeKey(ctx, id, func(tx *tx, rec *keyRecord) error {
		rec.Disabled = disabled
		return put(tx, spaceKeys, rec.ID.UUID[:], *rec)
	})
}

// DeleteKey removes a key for good; ErrKeyNotFound.
func (s *Store) DeleteKey(ctx context.Context, id KeyID) (Key, error) {
	return s.changeKey(ctx, id, func(tx *tx, rec *keyRecord) error {
		if err := tx.Delete(spaceKeyHashes, rec.Hash); err != nil {
			return err
		}
		if err := tx.Delete(spaceAgentKeys, join(rec.AgentID.UUID[:], rec.ID.UUID[:])); err != nil {
			return err
		}
		return tx.Delete(spaceKeys, rec.ID.UUID[:])
	})
}

func (s *Store) changeKey(ctx context.Context, id KeyID, change func(*tx, *keyRecord) error) (Key, error) {
	var key Key
	err := s.update(ctx, func(tx *tx) error {
		rec, err := get[keyRecord](tx, spaceKeys, id.UUID[:])
		if err != nil {
			return err
		}
		if rec == nil {
			return errors.Wrapf(ErrKeyNotFound, "%s", id)
		}
		if err := change(tx, rec); err != nil {
			return err
		}
		key = rec.key()
		return nil
	})
	return key, err
}

// Authenticate returns who the secret speaks for. A key of a deleted agent
// still authenticates. Errors: ErrInvalidKey for a secret that is malformed
// (the store is not asked then), unknown, disabled or expired.
func (s *Store) Authenticate(ctx context.Context, secret string) (Caller, error) {
	if !wellFormedKey(secret) {
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
			return ErrInvalidKey
		}
		caller, err = usableKey(r, index.ID, s.now())
		return err
	})
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

func newSecret() (string, error) {
	random := make([]byte, keyRandom)
	for i := range random {
		n, err := rand.Int(rand.Reader, big.NewInt(int64(len(base62))))
		if err != nil {
			return "", errors.Wrap(err, "new key")
		}
		random[i] = base62[n.Int64()]
	}
	body := keyPrefix + string(random)
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

func wellFormedKey(secret string) bool {
	if len(secret) != len(keyPrefix)+keyRandom+keyCheck || !strings.HasPrefix(secret, keyPrefix) {
		return false
	}
	body, check := secret[:len(secret)-keyCheck], secret[len(secret)-keyCheck:]
	for i := len(keyPrefix); i < len(body); i++ {
		if strings.IndexByte(base62, body[i]) < 0 {
			return false
		}
	}
	return keyChecksum(body) == check
}
