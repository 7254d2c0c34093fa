package handler

import (
	"context"

	"github.com/ogen-go/ogen/ogenerrors"

	"agentrun/gen"
	"agentrun/storage"
)

type callerKey struct{}

// callerSlot is where the context of a request has the place for its caller,
// which the error handler reads: it does not get the context of the operation.
type callerSlot struct{}

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
	if slot, ok := ctx.Value(callerSlot{}).(*storage.Caller); ok {
		*slot = caller
	}
	return context.WithValue(ctx, callerKey{}, caller), nil
}
