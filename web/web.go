// Package web is for the people who operate agentrun: the management API
// (contract in openapi.yaml, generated code in gen) and the probes. It turns
// requests into calls of storage and rows into answers. It holds no rule of
// its own, runs nothing, and never imports the public API's handler or run.
package web

import (
	"net/http"

	"github.com/go-faster/errors"
	"go.uber.org/zap"

	"agentrun/storage"
	"agentrun/storage/workspace"
	"agentrun/web/gen"
)

// Config of the management API.
type Config struct {
	// Store and Workspaces are required.
	Store      *storage.Store
	Workspaces *workspace.Store
	// Providers are the names of the model providers that are configured.
	Providers []string
	// Quit is closed when the server ends and requests should no longer wait for
	// a run. Nil means never.
	Quit <-chan struct{}
	// Offline says that no turn is executed, and so that a run's history grows by
	// requests only.
	Offline bool
	// Log receives the causes of internal errors; nil means nothing is logged.
	Log *zap.Logger
}

// Management implements the operations of the management contract. Whoever
// reaches it may do everything: access to the socket that it is served on, or
// to the data directory, is the authorisation.
type Management struct {
	store     *storage.Store
	spaces    *workspace.Store
	providers []string
	quit      <-chan struct{}
	offline   bool
	log       *zap.Logger
}

var (
	_ gen.Handler    = (*Management)(nil)
	_ gen.RawHandler = (*Management)(nil)
)

// NewManagement returns the management API as an HTTP handler.
func NewManagement(cfg Config) (http.Handler, error) {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	m := &Management{
		store: cfg.Store, spaces: cfg.Workspaces, providers: cfg.Providers, quit: cfg.Quit, offline: cfg.Offline, log: cfg.Log,
	}
	server, err := gen.NewServer(m, m,
		gen.WithErrorHandler(m.refused),
		gen.WithNotFound(notFound),
		gen.WithMethodNotAllowed(methodNotAllowed),
	)
	if err != nil {
		return nil, errors.Wrap(err, "management API")
	}
	return http.MaxBytesHandler(server, maxRequest), nil
}

// maxRequest bounds a request body; an agent file is the largest part of one.
const maxRequest = 8 << 20
