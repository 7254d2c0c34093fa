package handler

import (
	"context"

	"github.com/ogen-go/ogen/ogenerrors"

	"agentrun/gen"
	"agentrun/storage"
)

type callerKey struct{}

// callerOf returns whom the request of an authenticated operation speaks for.
func callerOf(ctx context.Context) storage.Caller {
	caller, _ := ctx.Value(callerKey{}).(storage.Caller)
	return caller
}

// HandleBearerKey authenticates by the Authorization header, which counts first.
func (h *Handler) HandleBearerKey(ctx context.Context, _ gen.OperationName, t gen.BearerKey) (context.Context, error) {
	return h.authenticate(ctx, t.Token)
}

// HandleHeaderKey authenticates by the X-API-Key header. It is called also when
// a Bearer credential was accepted, and then has nothing to say.
func (h *Handler) HandleHeaderKey(ctx context.Context, _ gen.OperationName, t gen.HeaderKey) (context.Context, error) {
	if _, ok := ctx.Value(callerKey{}).(storage.Caller); ok {
		return nil, ogenerrors.ErrSkipServerSecurity
	}
	return h.authenticate(ctx, t.APIKey)
}

func (h *Handler) authenticate(ctx context.Context, key string) (context.Context, error) {
	caller, err := h.store.Authenticate(ctx, key)
	if err != nil {
		return nil, err
	}
	return context.WithValue(ctx, callerKey{}, caller), nil
}
