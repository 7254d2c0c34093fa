package storage_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-faster/errors"

	"agentrun/storage"
	"agentrun/storage/storagetest"
)

func TestTokens(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := storagetest.OpenFile(t, filepath.Join(t.TempDir(), "agentrun.db"), storage.Options{Now: func() time.Time { return now }})
	user := must(s.SetUp(t.Context(), "one@example.org", goodPassword))(t)
	must(s.CreateUser(t.Context(), storage.NewUser{Email: "two@example.org", Password: goodPassword, Role: storage.OperatorRole}))(t)
	session := must(s.UserActor(t.Context(), user.ID, user.Generation, ""))(t)
	ctx := storage.WithActor(t.Context(), session)
	create := func(life time.Duration, scopes ...storage.Scope) (storage.Token, string) {
		t.Helper()
		token, secret, err := s.CreateToken(ctx, "token", scopes, life)
		if err != nil {
			t.Fatal(err)
		}
		return token, secret
	}
	works := func(secret string) bool {
		t.Helper()
		err := errOf(s.TokenActor(t.Context(), secret, "192.0.2.1"))
		if err != nil && !errors.Is(err, storage.ErrInvalidToken) {
			t.Fatal(err)
		}
		return err == nil
	}
	token, secret := create(time.Hour, storage.ScopeRuns, storage.ScopeRead, storage.ScopeRuns)
	actor, err := s.TokenActor(t.Context(), secret, "192.0.2.1")
	if err != nil {
		t.Fatal(err)
	}
	if actor.Kind != storage.ActorToken || actor.ID != token.ID.UUID || actor.UserID != user.ID || actor.Role != user.Role ||
		actor.Name != "one@example.org (token)" || actor.From != "192.0.2.1" ||
		!slices.Equal(actor.Scopes, []storage.Scope{storage.ScopeRead, storage.ScopeRuns}) {
		t.Errorf("the actor: %+v", actor)
	}
	if len(secret) != 52 || !strings.HasPrefix(secret, "am_") || !strings.HasPrefix(secret, token.Prefix) {
		t.Errorf("a secret of %d characters, prefix %q", len(secret), token.Prefix)
	}
	for _, bad := range []string{"", "am_", secret[:51], "ak_" + secret[3:], strings.ToUpper(secret)} {
		if works(bad) {
			t.Errorf("%q is accepted", bad)
		}
	}
	now = now.Add(time.Hour - time.Nanosecond)
	if !works(secret) {
		t.Error("refused before its end")
	}
	now = now.Add(time.Nanosecond)
	if works(secret) {
		t.Error("accepted at its end")
	}

	_, secret = create(storage.MaxTokenLife, storage.ScopeAdmin)
	yes, no := true, false
	for _, disabled := range []*bool{&yes, &no} {
		if _, err := s.ChangeUser(t.Context(), user.Email, storage.UserChange{Disabled: disabled}); err != nil {
			t.Fatal(err)
		}
		if works(secret) == *disabled {
			t.Errorf("its user disabled: %v, accepted: %v", *disabled, works(secret))
		}
	}
	tokenCtx := storage.WithActor(t.Context(), must(s.TokenActor(t.Context(), secret, ""))(t))
	for name, c := range map[string]struct{ err, want error }{
		"no scope":         {tokenErr(s.CreateToken(ctx, "t", nil, time.Hour)), storage.ErrInvalidScope},
		"an unknown scope": {tokenErr(s.CreateToken(ctx, "t", []storage.Scope{"all"}, time.Hour)), storage.ErrInvalidScope},
		"no life":          {tokenErr(s.CreateToken(ctx, "t", actor.Scopes, 0)), storage.ErrInvalidExpiry},
		"too long a life":  {tokenErr(s.CreateToken(ctx, "t", actor.Scopes, storage.MaxTokenLife+1)), storage.ErrInvalidExpiry},
		"no name":          {tokenErr(s.CreateToken(ctx, "", actor.Scopes, time.Hour)), storage.ErrInvalidName},
		"more than its own": {
			tokenErr(s.CreateToken(tokenCtx, "t", []storage.Scope{storage.ScopeKeys}, time.Hour)), storage.ErrForbidden,
		},
	} {
		if !errors.Is(c.err, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.err, c.want)
		}
	}
	if tokens := must(s.Tokens(ctx))(t); len(tokens) != 2 {
		t.Errorf("%d tokens", len(tokens))
	}
	if _, err := s.DeleteUser(t.Context(), user.Email); err != nil {
		t.Fatal(err)
	}
	if tokens := must(s.Tokens(ctx))(t); works(secret) || len(tokens) != 0 {
		t.Errorf("its user deleted: accepted %v, %d tokens left", works(secret), len(tokens))
	}
}

func tokenErr(_ storage.Token, _ string, err error) error { return err }
