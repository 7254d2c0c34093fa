package web

import (
	"context"
	"time"

	"github.com/go-faster/errors"

	"agentrun/storage"
	"agentrun/web/gen"
)

// ListKeys implements listKeys.
func (m *Management) ListKeys(ctx context.Context, params gen.ListKeysParams) ([]gen.Key, error) {
	keys, err := m.store.Keys(ctx, params.Agent)
	return each(keys, keyToAPI), err
}

// GetKey implements getKey.
func (m *Management) GetKey(ctx context.Context, params gen.GetKeyParams) (*gen.Key, error) {
	return one(keyToAPI)(m.store.FindKey(ctx, storage.KeyID{UUID: params.Key}))
}

// CreateKey implements createKey.
func (m *Management) CreateKey(ctx context.Context, req *gen.CreateKeyReq, params gen.CreateKeyParams) (*gen.CreatedKey, error) {
	life := time.Duration(req.ExpiresIn.Or(0)) * time.Second
	key, secret, err := m.store.CreateKey(ctx, params.Agent, string(req.Name.Or("")), life)
	if err != nil {
		return nil, err
	}
	return createdKeyToAPI(key, secret), nil
}

// RotateKey implements rotateKey.
func (m *Management) RotateKey(ctx context.Context, req *gen.RotateKeyReq, params gen.RotateKeyParams) (*gen.CreatedKey, error) {
	overlap := time.Duration(req.Overlap.Or(0)) * time.Second
	key, secret, err := m.store.RotateKey(ctx, storage.KeyID{UUID: params.Key}, overlap)
	if err != nil {
		return nil, err
	}
	return createdKeyToAPI(key, secret), nil
}

// ListKeyRequests implements listKeyRequests.
func (m *Management) ListKeyRequests(ctx context.Context, params gen.ListKeyRequestsParams) (*gen.KeyRequestPage, error) {
	var before time.Time
	if text, ok := params.Before.Get(); ok {
		var err error
		if before, err = time.Parse(time.RFC3339Nano, text); err != nil {
			return nil, errors.Wrapf(errNoMoment, "before %q", text)
		}
	}
	limit := params.Limit.Or(defaultPage)
	requests, err := m.store.KeyRequests(ctx, storage.KeyID{UUID: params.Key}, before, limit)
	if err != nil {
		return nil, err
	}
	page := &gen.KeyRequestPage{Requests: each(requests, keyRequestToAPI)}
	if len(requests) == limit {
		// A date of the contract has whole seconds, which two requests can share.
		page.Next = gen.NewOptString(requests[limit-1].At.Format(time.RFC3339Nano))
	}
	return page, nil
}

// errNoMoment says that a text is no moment in time.
var errNoMoment = errors.New("want a moment such as 2026-01-02T15:04:05.123Z")

func keyRequestToAPI(k storage.KeyRequest) gen.KeyRequest {
	request := gen.KeyRequest{At: k.At, Status: k.Status, Name: optString(k.Name)}
	if k.Run != (storage.RunID{}) {
		request.Run = gen.NewOptUUID(k.Run.UUID)
	}
	return request
}

func createdKeyToAPI(key storage.Key, secret string) *gen.CreatedKey {
	k := keyToAPI(key)
	return &gen.CreatedKey{
		ID: k.ID, Key: secret, AgentID: k.AgentID, Name: k.Name, Prefix: k.Prefix,
		Disabled: k.Disabled, CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt,
	}
}

// DisableKey implements disableKey.
func (m *Management) DisableKey(ctx context.Context, params gen.DisableKeyParams) (*gen.Key, error) {
	return one(keyToAPI)(m.store.SetKeyDisabled(ctx, storage.KeyID{UUID: params.Key}, true))
}

// EnableKey implements enableKey.
func (m *Management) EnableKey(ctx context.Context, params gen.EnableKeyParams) (*gen.Key, error) {
	return one(keyToAPI)(m.store.SetKeyDisabled(ctx, storage.KeyID{UUID: params.Key}, false))
}

// DeleteKey implements deleteKey.
func (m *Management) DeleteKey(ctx context.Context, params gen.DeleteKeyParams) (*gen.Key, error) {
	return one(keyToAPI)(m.store.DeleteKey(ctx, storage.KeyID{UUID: params.Key}))
}

func keyToAPI(k storage.Key) gen.Key {
	return gen.Key{
		ID: k.ID.UUID, Name: k.Name, AgentID: k.AgentID.UUID, Prefix: k.Prefix,
		Disabled: k.Disabled, CreatedAt: k.CreatedAt, CreatedBy: optString(k.CreatedBy),
		ExpiresAt: optTime(k.ExpiresAt), LastUsedAt: optTime(k.LastUsedAt),
	}
}
