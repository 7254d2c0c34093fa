package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/go-faster/errors"
	"go.uber.org/zap"

	"agentrun/handler"
	"agentrun/run"
	"agentrun/run/sandbox"
	"agentrun/run/secret"
)

// Bounds of the HTTP server.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 2 * time.Minute
	maxHeaderBytes    = 16 << 10
	// socketDrain is long for a management request.
	socketDrain = 5 * time.Second
)

// serverConfig is what a server is started with.
type serverConfig struct {
	data     string
	listen   string
	workers  int
	drain    time.Duration
	idleStop time.Duration
	maxBody  int64
	sandbox  sandbox.Level
	// allowRead are paths that agent files may ask to read.
	allowRead []string
	// secrets is the directory of the secrets, empty for none.
	secrets   string
	providers map[string]run.Provider
	// baseURL is the address that people reach the server at; empty means any of
	// its addresses. hosts are further names of the server.
	baseURL string
	hosts   []string
	// admin is the first user, made when there is none; nil means that somebody
	// with the link that the server prints makes it.
	admin *firstUser
	log   *zap.Logger
}

// firstUser is the operator whom the environment names.
type firstUser struct{ email, password string }

// server is one running agentrun: the public API, the application with the
// management API, and the probes on a TCP address, the management API on a
// socket, and the execution of runs.
type server struct {
	cfg    serverConfig
	data   *dataDir
	public net.Listener
	socket net.Listener
	failed chan error

	publicHTTP *http.Server
	socketHTTP *http.Server
	// management is the management API for this process itself.
	management http.Handler
	// setupToken lets whoever has it make the first user; empty when there is one.
	setupToken string
	endFlushes func()
	ready      atomic.Bool
	stopRuns   context.CancelFunc
	runsEnded  chan struct{}
	endErasing func()
	sandbox    sandbox.Runner
	// quit is closed when no request should wait for a run any more.
	quit chan struct{}
}

// startServer opens the data directory and serves it. The caller ends the
// server with stop.
func startServer(ctx context.Context, cfg serverConfig) (_ *server, err error) {
	s := &server{cfg: cfg, failed: make(chan error, 2), runsEnded: make(chan struct{}), quit: make(chan struct{})}
	if s.data, err = openData(ctx, cfg.data, cfg.log); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.release()
		}
	}()
	if s.public, err = new(net.ListenConfig).Listen(ctx, "tcp", cfg.listen); err != nil {
		return nil, errors.Errorf("%w; choose another address with --listen", err)
	}
	if s.socket, err = listenSocket(s.data.path); err != nil {
		return nil, err
	}
	public, err := handler.New(handler.Config{
		Store: s.data.store, Workspaces: s.data.spaces, MaxBody: cfg.maxBody, Providers: providerNames(cfg.providers), Log: cfg.log,
	})
	if err != nil {
		return nil, err
	}
	application, err := s.application(ctx, public)
	if err != nil {
		return nil, err
	}
	runner, err := sandbox.Open(ctx, sandbox.Options{Level: cfg.sandbox, Data: s.data.path})
	if err != nil {
		return nil, errors.Errorf("%w; 'agentrun doctor' tells more", err)
	}
	secrets, err := secret.Open(cfg.secrets, os.Environ())
	if err != nil {
		return nil, err
	}
	s.execute(ctx, runner, secrets)
	s.endFlushes = s.flushUses()
	s.publicHTTP = s.serve(s.public, application)
	s.socketHTTP = s.serve(s.socket, s.management)
	s.ready.Store(true)
	return s, nil
}

// execute starts the execution of runs.
func (s *server) execute(ctx context.Context, runner sandbox.Runner, secrets *secret.Source) {
	s.sandbox = runner
	runs := run.New(run.Config{
		Store: s.data.store, Workspaces: s.data.spaces, Sandbox: runner,
		Workers: s.cfg.workers, Drain: s.cfg.drain, IdleStop: s.cfg.idleStop,
		AllowRead: s.cfg.allowRead, Secrets: secrets, Providers: s.cfg.providers, Log: s.cfg.log,
	})
	runCtx, cancel := context.WithCancel(ctx)
	s.stopRuns = cancel
	s.endErasing = s.data.erase(s.cfg.log)
	go func() {
		defer close(s.runsEnded)
		runs.Run(runCtx)
	}()
}

func (s *server) serve(l net.Listener, h http.Handler) *http.Server {
	srv := &http.Server{
		Handler:           h,
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		ErrorLog:          zap.NewStdLog(s.cfg.log),
	}
	go func() {
		if err := srv.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			s.failed <- errors.Wrapf(err, "listener %s", l.Addr())
		}
	}()
	return srv
}

// url is the address of the public API.
func (s *server) url() string { return "http://" + s.public.Addr().String() }

// errStoreFailed says that nothing can be recorded any more.
var errStoreFailed = errors.New("a commit failed and its outcome is unknown; start again to settle from what is on disk")

// wait returns when ctx ends, with nil, or when the server cannot go on.
func (s *server) wait(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return nil
	case err := <-s.failed:
		return err
	case <-s.data.store.Failed():
		return errStoreFailed
	}
}

// stop drains the server: it accepts nothing more (the listener closes first,
// so that a new request is refused rather than half done), lets the requests
// and turns under way end within the drain time, and releases everything. The
// operator sees to the end what it waits for.
func (s *server) stop() {
	s.ready.Store(false)
	s.stopRuns()
	shutDown(s.publicHTTP, s.cfg.drain)
	<-s.runsEnded
	close(s.quit)
	shutDown(s.socketHTTP, socketDrain)
	s.endFlushes()
	s.endErasing()
	s.release()
}

func shutDown(srv *http.Server, drain time.Duration) {
	ctx, cancel := context.WithTimeout(context.Background(), drain)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		_ = srv.Close()
	}
}

// release gives back what startServer took, as far as it came.
func (s *server) release() {
	for _, l := range []net.Listener{s.public, s.socket} {
		if l != nil {
			_ = l.Close()
		}
	}
	if s.socket != nil {
		_ = os.Remove(filepath.Join(s.data.path, socketName))
	}
	if err := s.data.close(); err != nil {
		s.cfg.log.Error("close the data directory", zap.Error(err))
	}
}
