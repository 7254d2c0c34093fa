package main

import (
	"context"
	"crypto/rand"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/go-faster/errors"
	"go.uber.org/zap"

	"agentrun/handler"
	"agentrun/storage"
	"agentrun/web"
	"agentrun/web/asset"
	"agentrun/web/page"
	"agentrun/web/reference"
)

// flushEvery is how long the last use of a key is remembered before it is
// written down.
const flushEvery = time.Minute

// application makes what is served on the TCP address: the public API, the
// management API, the pages, and the probes. It also makes the management API
// for the socket, and the first user.
func (s *server) application(ctx context.Context, public http.Handler) (http.Handler, error) {
	management := web.NewManagement(web.Config{
		Store: s.data.store, Workspaces: s.data.spaces, Providers: shownProviders(s.cfg.providers), Version: buildVersion(),
		Quit: s.quit, Log: s.cfg.log,
	})
	var err error
	if s.management, err = management.Local(); err != nil {
		return nil, err
	}
	remote, err := management.HTTP()
	if err != nil {
		return nil, err
	}
	if err := s.setUp(ctx); err != nil {
		return nil, err
	}
	pages, err := page.New(page.Config{
		API: management, Store: s.data.store, BaseURL: s.cfg.baseURL, Hosts: s.cfg.hosts, SetupToken: s.setupToken,
		Quit: s.quit, Log: s.cfg.log,
	}, public)
	if err != nil {
		return nil, err
	}
	return s.route(public, remote, pages), nil
}

// route sends each request to whom it is for. What nobody knows goes through
// the pages to the public API, whose answer to an unknown path is the one that
// clients expect.
func (s *server) route(public, management, pages http.Handler) http.Handler {
	health := web.Health(s.data.store, s.ready.Load)
	docs := reference.New(handler.Contract(), web.Contract)
	static := asset.Handler()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		path := r.URL.Path
		switch {
		case strings.HasPrefix(path, "/v1/"):
			public.ServeHTTP(w, r)
		case strings.HasPrefix(path, "/api/"):
			management.ServeHTTP(w, r.WithContext(web.WithClientAddress(r.Context(), r.RemoteAddr)))
		case path == "/healthz", path == "/readyz":
			health.ServeHTTP(w, r)
		case strings.HasPrefix(path, "/static/"):
			static.ServeHTTP(w, r)
		case path == "/docs/api", strings.HasPrefix(path, "/docs/api/"):
			docs.ServeHTTP(w, r)
		default:
			pages.ServeHTTP(w, r)
		}
	})
}

// setUp makes the first user when the environment names one, or else the token
// of the link by which somebody makes it. It does nothing once there is a user.
func (s *server) setUp(ctx context.Context) error {
	has, err := s.data.store.HasUsers(ctx)
	if err != nil || has {
		return err
	}
	if s.cfg.admin == nil {
		s.setupToken = rand.Text()
		return nil
	}
	_, err = s.data.store.SetUp(storage.WithActor(ctx, storage.LocalOperator), s.cfg.admin.email, s.cfg.admin.password)
	if err != nil {
		return errors.Wrap(err, "AGENTRUN_ADMIN_EMAIL and AGENTRUN_ADMIN_PASSWORD")
	}
	return nil
}

// setupLink is where the first user is made; empty when there is one.
func (s *server) setupLink() string {
	if s.setupToken == "" {
		return ""
	}
	base := s.cfg.baseURL
	if base == "" {
		base = s.url()
	}
	return strings.TrimSuffix(base, "/") + "/setup?token=" + url.QueryEscape(s.setupToken)
}

// flushUses writes down from time to time when keys were last used, until the
// function that it returns is called, which does so for the last time.
func (s *server) flushUses() (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	flush := func() {
		if err := s.data.store.FlushUses(context.Background()); err != nil {
			s.cfg.log.Warn("last uses of keys", zap.Error(err))
		}
	}
	go func() {
		defer close(done)
		every := time.NewTicker(flushEvery)
		defer every.Stop()
		for {
			select {
			case <-every.C:
				flush()
			case <-ctx.Done():
				flush()
				return
			}
		}
	}()
	return func() {
		cancel()
		<-done
	}
}
