package storage

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"strings"
	"unicode/utf8"

	"github.com/go-faster/errors"
	"golang.org/x/crypto/argon2"
)

// PasswordCost is how hard a password is to guess from its hash. It is kept with
// the hash, so that it can be raised later.
type PasswordCost struct {
	// Passes of argon2id over the memory.
	Passes uint32
	// Memory is in KiB.
	Memory uint32
}

// usualCost is the second recommended option of RFC 9106, section 4, for where
// memory is scarce: 64 MiB, 3 passes, 4 lanes.
var usualCost = PasswordCost{Passes: 3, Memory: 64 << 10}

const (
	argonThreads = 4
	argonSalt    = 16
	argonLength  = 32

	// minPassword and maxPassword bound a password, in code points and bytes.
	minPassword = 10
	maxPassword = 1024
)

// passwordHash is a password as it is kept.
type passwordHash struct {
	Time    uint32 `json:"time"`
	Memory  uint32 `json:"memory"`
	Threads uint8  `json:"threads"`
	Salt    string `json:"salt"`
	Hash    string `json:"hash"`
}

// hashing bounds the hashes under way, each of which takes its cost in memory.
var hashing = make(chan struct{}, 4)

func (p passwordHash) of(ctx context.Context, password string) ([]byte, error) {
	salt, err := base64.StdEncoding.DecodeString(p.Salt)
	if err != nil || p.Time == 0 || p.Threads == 0 {
		return nil, errors.Wrap(ErrDamagedRecord, "password")
	}
	select {
	case hashing <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-hashing }()
	return argon2.IDKey([]byte(password), salt, p.Time, p.Memory, p.Threads, argonLength), nil
}

// matches says whether it is the hash of that password.
func (p passwordHash) matches(ctx context.Context, password string) (bool, error) {
	got, err := p.of(ctx, password)
	if err != nil {
		return false, err
	}
	want, err := base64.StdEncoding.DecodeString(p.Hash)
	if err != nil {
		return false, errors.Wrap(ErrDamagedRecord, "password")
	}
	return subtle.ConstantTimeCompare(got, want) == 1, nil
}

// newPassword returns the hash of a password that is good enough;
// ErrWeakPassword.
func (c PasswordCost) newPassword(ctx context.Context, password string) (passwordHash, error) {
	switch {
	case !utf8.ValidString(password) || strings.ContainsRune(password, 0):
		return passwordHash{}, errors.Wrap(ErrWeakPassword, "it is not text")
	case utf8.RuneCountInString(password) < minPassword:
		return passwordHash{}, errors.Wrapf(ErrWeakPassword, "it needs at least %d characters", minPassword)
	case len(password) > maxPassword:
		return passwordHash{}, errors.Wrapf(ErrWeakPassword, "it has more than %d bytes", maxPassword)
	}
	salt := make([]byte, argonSalt)
	if _, err := rand.Read(salt); err != nil {
		return passwordHash{}, errors.Wrap(err, "new password")
	}
	p := passwordHash{
		Time: c.Passes, Memory: c.Memory, Threads: argonThreads, Salt: base64.StdEncoding.EncodeToString(salt),
	}
	hash, err := p.of(ctx, password)
	p.Hash = base64.StdEncoding.EncodeToString(hash)
	return p, err
}

// nobody is what a password is compared with when there is no such user, so
// that the answer takes as long as for a wrong password.
func (c PasswordCost) nobody() passwordHash {
	return passwordHash{
		Time: c.Passes, Memory: c.Memory, Threads: argonThreads,
		Salt: base64.StdEncoding.EncodeToString(make([]byte, argonSalt)), Hash: base64.StdEncoding.EncodeToString(make([]byte, argonLength)),
	}
}
