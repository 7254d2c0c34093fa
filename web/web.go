// Package web is for the people who operate agentrun: the management API
// (contract in openapi.yaml, generated code in gen) and the probes; the pages are
// in page. It turns requests into calls of storage and rows into answers. It
// holds no rule of its own, runs nothing, and never imports the public API's
// handler or run.
package web

import (
	"net/http"

	"github.com/go-faster/errors"
	"go.uber.org/zap"

	"agentrun/storage"
	"agentrun/storage/workspace"
	"agentrun/web/gen"
)

// Provider is a provider of models, as it is configured.
type Provider struct {
	Name, Dialect string
	// BaseURL is where it is, without any secret; empty for one inside.
	BaseURL string
}

// Config of the management API.
type Config struct {
	// Store and Workspaces are required.
	Store      *storage.Store
	Workspaces *workspace.Store
	// Providers are the model providers that are configured.
	Providers []Provider
	// Version is that of this agentrun.
	Version string
	// Quit is closed when the server ends and requests should no longer wait for
	// a run. Nil means never.
	Quit <-chan struct{}
	// Offline says that no turn is executed, and so that a run's history grows by
	// requests only.
	Offline bool
	// Log receives the causes of internal errors; nil means nothing is logged.
	Log *zap.Logger
}

// Management implements the operations of the management contract, each for
// the storage.Actor of its context. What that actor may see and do is decided
// by storage.
type Management struct {
	store     *storage.Store
	spaces    *workspace.Store
	providers []Provider
	version   string
	quit      <-chan struct{}
	offline   bool
	log       *zap.Logger
}

var (
	_ gen.Handler         = (*Management)(nil)
	_ gen.RawHandler      = (*Management)(nil)
	_ gen.SecurityHandler = (*Management)(nil)
)

// NewManagement returns the operations of the management API, for callers in
// this process.
func NewManagement(cfg Config) *Management {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	return &Management{
		store: cfg.Store, spaces: cfg.Workspaces, providers: cfg.Providers, version: cfg.Version,
		quit: cfg.Quit, offline: cfg.Offline, log: cfg.Log,
	}
}

// HTTP returns the management API for those who have a personal access token.
func (m *Management) HTTP() (http.Handler, error) {
	server, err := gen.NewServer(m, m, m,
		gen.WithErrorHandler(m.refused),
		gen.WithNotFound(notFound),
		gen.WithMethodNotAllowed(methodNotAllowed),
		gen.WithMiddleware(known),
	)
	if err != nil {
		return nil, errors.Wrap(err, "management API")
	}
	return http.MaxBytesHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.ServeHTTP(challenge{w}, r)
	}), maxRequest), nil
}

// Local returns the management API for those whose way to it is the
// authorisation: the socket in the data directory, or that directory itself.
func (m *Management) Local() (http.Handler, error) {
	server, err := m.HTTP()
	if err != nil {
		return nil, err
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		server.ServeHTTP(w, r.WithContext(storage.WithActor(r.Context(), storage.LocalOperator)))
	}), nil
}

// maxRequest bounds a request body; an agent file is the largest part of one.
const maxRequest = 8 << 20
