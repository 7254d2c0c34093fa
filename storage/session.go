package storage

import (
	"context"
	"crypto/sha256"
	"slices"
	"time"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// sessionRecord is a session of the application, kept under the hash of its
// token. What is in it is the application's own business.
type sessionRecord struct {
	Data      []byte    `json:"data"`
	ExpiresAt time.Time `json:"expires_at"`
}

func sessionID(token string) []byte {
	sum := sha256.Sum256([]byte(token))
	return sum[:]
}

// sessionsLooked is how many sessions each new one looks at for those to forget.
// The place of a session is random, and so is where its look begins: however
// many there are, about one in so many is expired.
const sessionsLooked = 32

// FindSession returns what a session holds; not found when it has expired, and
// when it cannot be read: its user signs in once more.
func (s *Store) FindSession(ctx context.Context, token string) (data []byte, found bool, err error) {
	err = s.db.View(ctx, func(r kv.Reader) error {
		rec, err := get[sessionRecord](r, spaceSessions, sessionID(token))
		if errors.Is(err, ErrDamagedRecord) {
			rec, err = nil, nil
		}
		if err != nil || rec == nil || !s.now().Before(rec.ExpiresAt) {
			data, found = nil, false
			return err
		}
		data, found = rec.Data, true
		return nil
	})
	return data, found, err
}

// PutSession keeps a session until it expires, and forgets some of those that
// have, or that cannot be read.
func (s *Store) PutSession(ctx context.Context, token string, data []byte, expiry time.Time) error {
	return s.update(ctx, func(tx *tx) error {
		if err := tx.forgetSessions(sessionID(token)); err != nil {
			return err
		}
		return put(tx, spaceSessions, sessionID(token), sessionRecord{Data: data, ExpiresAt: expiry.UTC()})
	})
}

// forgetSessions looks at the next sessions from a place on, and goes on at the
// first one behind the last.
func (tx *tx) forgetSessions(from []byte) error {
	pairs, err := tx.Scan(kv.Range{Space: spaceSessions, From: from, Limit: sessionsLooked})
	if err != nil {
		return err
	}
	if more := sessionsLooked - len(pairs); more > 0 {
		first, err := tx.Scan(kv.Range{Space: spaceSessions, To: from, Limit: more})
		if err != nil {
			return err
		}
		pairs = slices.Concat(pairs, first)
	}
	for _, p := range pairs {
		var rec sessionRecord
		if err := decodeRecord(spaceSessions, p.Key, p.Value, &rec); err == nil && tx.now.Before(rec.ExpiresAt) {
			continue
		}
		if err := tx.Delete(spaceSessions, p.Key); err != nil {
			return err
		}
	}
	return nil
}

// DeleteSession forgets a session; it need not exist.
func (s *Store) DeleteSession(ctx context.Context, token string) error {
	return s.update(ctx, func(tx *tx) error { return tx.Delete(spaceSessions, sessionID(token)) })
}
