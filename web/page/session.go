package page

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/alexedwards/scs/v2"
	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/storage"
)

// sessionTime is how long somebody stays signed in. Nothing prolongs it: that
// would be a write of a page that is only looked at.
const sessionTime = 7 * 24 * time.Hour

// What a session holds.
const (
	sessionUser       = "user"
	sessionGeneration = "generation"
)

// newSessions are the sessions in the store. A session is loaded and committed
// by the functions of this file only, not around every request.
func newSessions(store *storage.Store, secure bool) *scs.SessionManager {
	// scs.New would begin with a store in memory, and a goroutine that tidies it.
	sessions := &scs.SessionManager{
		Store: sessionStore{store}, Codec: scs.GobCodec{}, Lifetime: sessionTime,
		Cookie: scs.SessionCookie{Name: "agentrun", HttpOnly: true, SameSite: http.SameSiteLaxMode, Path: "/", Persist: true},
	}
	if secure {
		// Browsers take a cookie of such a name only from this very host, over https.
		sessions.Cookie.Name = "__Host-agentrun"
		sessions.Cookie.Secure = true
	}
	return sessions
}

// secure says whether people reach the server over https, and so whether
// cookies are for that only.
func (a *App) secure() bool { return strings.HasPrefix(strings.ToLower(a.cfg.BaseURL), "https://") }

// actor is who sent the request. Errors: storage.ErrSignInRefused for who is
// not signed in, or not any more.
func (a *App) actor(r *http.Request) (storage.Actor, error) {
	token := a.sessionToken(r)
	if token == "" {
		return storage.Actor{}, storage.ErrSignInRefused
	}
	ctx, err := a.sessions.Load(r.Context(), token)
	if err != nil {
		return storage.Actor{}, errors.Wrap(err, "session")
	}
	id, err := uuid.FromBytes(a.sessions.GetBytes(ctx, sessionUser))
	if err != nil {
		return storage.Actor{}, storage.ErrSignInRefused
	}
	generation, _ := a.sessions.Get(ctx, sessionGeneration).(uint64)
	return a.cfg.Store.UserActor(r.Context(), storage.UserID{UUID: id}, generation, clientAddress(r))
}

// beginSession signs the user in at this browser. The token of the session is
// always a new one: nobody can have planted it.
func (a *App) beginSession(w http.ResponseWriter, r *http.Request, user storage.User) error {
	if err := a.destroySession(r); err != nil {
		return err
	}
	ctx, err := a.sessions.Load(r.Context(), "")
	if err != nil {
		return errors.Wrap(err, "session")
	}
	a.sessions.Put(ctx, sessionUser, user.ID.UUID[:])
	a.sessions.Put(ctx, sessionGeneration, user.Generation)
	token, expiry, err := a.sessions.Commit(ctx)
	if err != nil {
		return errors.Wrap(err, "session")
	}
	a.sessions.WriteSessionCookie(ctx, w, token, expiry)
	return nil
}

// endSession signs out at this browser.
func (a *App) endSession(w http.ResponseWriter, r *http.Request) error {
	if err := a.destroySession(r); err != nil {
		return err
	}
	a.sessions.WriteSessionCookie(r.Context(), w, "", time.Time{})
	return nil
}

// destroySession deletes the session that the request came with, if any.
func (a *App) destroySession(r *http.Request) error {
	token := a.sessionToken(r)
	if token == "" {
		return nil
	}
	ctx, err := a.sessions.Load(r.Context(), token)
	if err == nil {
		err = a.sessions.Destroy(ctx)
	}
	if err != nil {
		return errors.Wrap(err, "session")
	}
	return nil
}

// sessionToken is the token that the request came with; empty without one.
func (a *App) sessionToken(r *http.Request) string {
	cookie, err := r.Cookie(a.sessions.Cookie.Name)
	if err != nil {
		return ""
	}
	return cookie.Value
}

// clientAddress is the address that the request came from, without the port.
func clientAddress(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// sessionStore lets scs keep sessions in storage. Storage knows a session's
// token only as its hash, and ends a session that has expired.
type sessionStore struct{ store *storage.Store }

var _ scs.CtxStore = sessionStore{}

func (s sessionStore) FindCtx(ctx context.Context, token string) ([]byte, bool, error) {
	return s.store.FindSession(ctx, token)
}

func (s sessionStore) CommitCtx(ctx context.Context, token string, data []byte, expiry time.Time) error {
	return s.store.PutSession(ctx, token, data, expiry)
}

func (s sessionStore) DeleteCtx(ctx context.Context, token string) error {
	return s.store.DeleteSession(ctx, token)
}

// The functions without a context are part of the interface; scs does not call
// them when there are those above.

func (s sessionStore) Find(token string) ([]byte, bool, error) {
	return s.FindCtx(context.Background(), token)
}

func (s sessionStore) Commit(token string, data []byte, expiry time.Time) error {
	return s.CommitCtx(context.Background(), token, data, expiry)
}

func (s sessionStore) Delete(token string) error { return s.DeleteCtx(context.Background(), token) }
