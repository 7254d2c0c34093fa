package web

import (
	"context"
	"net"
	"net/http"

	"github.com/go-faster/errors"
	"github.com/ogen-go/ogen/middleware"

	"agentrun/storage"
	"agentrun/web/gen"
)

// errNoActor says that a request came without a token where it needs one.
var errNoActor = errors.New("a personal access token is needed: Authorization: Bearer am_…")

// HandlePersonalToken finds out for whom a request with a token is made. On the
// socket that is known already.
func (m *Management) HandlePersonalToken(ctx context.Context, _ gen.OperationName, t gen.PersonalToken) (context.Context, error) {
	if storage.HasActor(ctx) {
		return ctx, nil
	}
	actor, err := m.store.TokenActor(ctx, t.Token, clientAddress(ctx))
	if err != nil {
		return nil, err
	}
	return storage.WithActor(ctx, actor), nil
}

// known refuses a request of nobody. The contract makes the token optional,
// because the socket needs none; this is where HTTP needs it.
func known(req middleware.Request, next middleware.Next) (middleware.Response, error) {
	if !storage.HasActor(req.Context) {
		return middleware.Response{}, errNoActor
	}
	return next(req)
}

// challenge says how to authenticate in each answer with 401, as RFC 9110,
// section 11.6.1, wants.
type challenge struct{ http.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (c challenge) WriteHeader(status int) {
	if status == http.StatusUnauthorized {
		c.Header().Set("WWW-Authenticate", "Bearer")
	}
	c.ResponseWriter.WriteHeader(status)
}

// Unwrap is for http.ResponseController.
func (c challenge) Unwrap() http.ResponseWriter { return c.ResponseWriter }

type addressKey struct{}

// WithClientAddress returns a context that knows from which address a request
// came, as host:port, for the audit log.
func WithClientAddress(ctx context.Context, address string) context.Context {
	if host, _, err := net.SplitHostPort(address); err == nil {
		address = host
	}
	return context.WithValue(ctx, addressKey{}, address)
}

func clientAddress(ctx context.Context) string {
	address, _ := ctx.Value(addressKey{}).(string)
	return address
}
