// Package run executes runs. It is the only room that knows both storage and
// the turn: it claims what waits, executes the turn, records what came of it,
// and ends what is to be stopped. Data comes and goes as rows; wake-ups come
// from storage.Watch. It speaks no HTTP, and nobody calls it back.
package run

import (
	"context"
	"sync"
	"time"

	"github.com/go-faster/errors"
	"go.uber.org/zap"

	"agentrun/run/sandbox"
	"agentrun/run/secret"
	"agentrun/storage"
	"agentrun/storage/workspace"
)

// lookInterval is how often a server looks at the store without having been
// woken: when the store failed the last time, or another process wrote to it.
const lookInterval = 5 * time.Second

// measureInterval is how often the size of a workspace is looked at during a
// turn.
const measureInterval = time.Second

// Why a turn's context ends. The texts end up as reasons in the history.
var (
	errServerStopped = errors.New("server stopped")
	errTurnLimit     = errors.New("the turn's time limit was reached")
	errStopRequested = errors.New("stop requested")
	errWorkspaceFull = errors.New("the workspace's limit was reached")
)

// Config of a Server. Required are Store, Workspaces, Sandbox and Workers.
type Config struct {
	Store      *storage.Store
	Workspaces *workspace.Store
	Sandbox    sandbox.Runner
	// Workers is the most turns at once, at least 1.
	Workers int
	// Drain is how long turns may go on after Run's context ended, until they
	// are cut off.
	Drain time.Duration
	// AllowRead are the paths of the host that agent files may ask to read, with
	// what lies below them.
	AllowRead []string
	// Secrets is where the secrets of agent files are; nil means that there are
	// none.
	Secrets *secret.Source
	// Providers are the providers of models, by their names.
	Providers map[string]Provider
	// IdleStop is how long a run may be idle before it is stopped; 0 means for
	// ever.
	IdleStop time.Duration
	// Log receives what concerns the operator; nil means nothing is logged.
	Log *zap.Logger
}

// Server executes the runs of one store.
type Server struct {
	store      *storage.Store
	workspaces *workspace.Store
	sandbox    sandbox.Runner
	workers    int
	drain      time.Duration
	allowRead  []string
	secrets    *secret.Source
	providers  map[string]Provider
	idleStop   time.Duration
	look       time.Duration
	log        *zap.Logger
}

// New returns a Server; Run starts it.
func New(cfg Config) *Server {
	if cfg.Log == nil {
		cfg.Log = zap.NewNop()
	}
	if cfg.Secrets == nil {
		cfg.Secrets = new(secret.Source)
	}
	return &Server{
		store: cfg.Store, workspaces: cfg.Workspaces, sandbox: cfg.Sandbox,
		workers: cfg.Workers, drain: cfg.Drain, allowRead: cfg.AllowRead, secrets: cfg.Secrets,
		providers: cfg.Providers, idleStop: cfg.IdleStop, look: lookInterval, log: cfg.Log,
	}
}

// Run executes what waits until ctx ends, then lets the turns under way go on
// for the drain time, cuts off those that are left, records that, and returns.
// It is called once.
func (s *Server) Run(ctx context.Context) {
	turns, cutOff := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cutOff(nil)
	var workers sync.WaitGroup
	if s.idleStop > 0 {
		workers.Go(func() { s.stopIdle(ctx) })
	}
	s.distribute(ctx, func(turn *storage.Turn, done func()) {
		workers.Go(func() {
			defer done()
			s.execute(turns, turn)
		})
	})
	timer := time.AfterFunc(s.drain, func() { cutOff(errServerStopped) })
	defer timer.Stop()
	workers.Wait()
}

// distribute claims turns until ctx ends and starts each of them, never more
// than there are workers: start returns at once, and calls done when the turn
// is over. Claims are made one after the other, so that each one knows which
// agent the one before served.
func (s *Server) distribute(ctx context.Context, start func(turn *storage.Turn, done func())) {
	// The watch begins before the first look. So a run is either seen by a look
	// or wakes the next one, whatever happens in between.
	watch := s.store.Watch(storage.RunID{})
	defer watch.Close()
	look := time.NewTicker(s.look)
	defer look.Stop()
	busy := make(chan struct{}, s.workers)
	var last storage.AgentID
	for {
		select {
		case <-ctx.Done():
			return
		case busy <- struct{}{}:
		}
		if turn := s.claim(ctx, last); turn != nil {
			last = turn.Run.AgentID
			start(turn, func() { <-busy })
			continue
		}
		<-busy
		select {
		case <-ctx.Done():
			return
		case <-watch.C:
		case <-look.C:
		}
	}
}

// claim claims the next turn of an agent behind last. It returns nil when none
// waits, and when the store fails: then only the next look tries again.
func (s *Server) claim(ctx context.Context, last storage.AgentID) *storage.Turn {
	for {
		// Most wake-ups come from commits that left nothing to claim. To read
		// tells that without waiting for those who write.
		waiting, err := s.store.Waiting(ctx, 1)
		if err == nil && waiting == 0 {
			return nil
		}
		var turn *storage.Turn
		if err == nil {
			turn, err = s.store.ClaimNext(ctx, last, s.sandbox.Level())
		}
		switch {
		case err == nil:
			return turn
		case errors.Is(err, storage.ErrDamagedRecord):
			s.log.Error("run set aside", zap.Error(err))
		case ctx.Err() == nil:
			s.log.Error("claim a run", zap.Error(err))
			return nil
		default:
			return nil
		}
	}
}
