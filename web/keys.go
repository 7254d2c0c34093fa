package web

import (
	"context"
	"time"

	"agentrun/storage"
	"agentrun/web/gen"
)

// ListKeys implements listKeys.
func (m *Management) ListKeys(ctx context.Context, params gen.ListKeysParams) ([]gen.Key, error) {
	keys, err := m.store.Keys(ctx, params.Agent)
	return each(keys, keyToAPI), err
}

// CreateKey implements createKey.
func (m *Management) CreateKey(ctx context.Context, req *gen.CreateKeyReq, params gen.CreateKeyParams) (*gen.CreatedKey, error) {
	life := time.Duration(req.ExpiresIn.Or(0)) * time.Second
	key, secret, err := m.store.CreateKey(ctx, params.Agent, string(req.Name.Or("")), life)
	if err != nil {
		return nil, err
	}
	k := keyToAPI(key)
	return &gen.CreatedKey{
		ID: k.ID, Key: secret, AgentID: k.AgentID, Name: k.Name, Prefix: k.Prefix,
		Disabled: k.Disabled, CreatedAt: k.CreatedAt, ExpiresAt: k.ExpiresAt,
	}, nil
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
	key := gen.Key{
		ID: k.ID.UUID, Name: k.Name, AgentID: k.AgentID.UUID, Prefix: k.Prefix,
		Disabled: k.Disabled, CreatedAt: k.CreatedAt,
	}
	if !k.ExpiresAt.IsZero() {
		key.ExpiresAt = gen.NewOptDateTime(k.ExpiresAt)
	}
	return key
}
