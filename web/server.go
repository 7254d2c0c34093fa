package web

import (
	"context"

	"agentrun/web/gen"
)

// GetServer implements getServer.
func (m *Management) GetServer(context.Context) (*gen.ServerInfo, error) {
	return &gen.ServerInfo{Version: m.version, Providers: each(m.providers, providerToAPI)}, nil
}

func providerToAPI(p Provider) gen.Provider {
	return gen.Provider{Name: p.Name, Dialect: p.Dialect, BaseURL: optString(p.BaseURL)}
}
