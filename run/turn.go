package run

import (
	"context"
	"fmt"
	"time"

	"github.com/go-faster/errors"
	"go.uber.org/zap"

	"agentrun/storage"
)

// outcome is what came of a turn: an output, or the reason why there is none.
type outcome struct {
	output  string
	failure string
	// stopped is true when the turn did not end by itself.
	stopped bool
	events  []storage.Event
}

// execute runs a claimed turn to its end and records what came of it. ctx ends
// when the server cuts its turns off.
func (s *Server) execute(ctx context.Context, turn *storage.Turn) {
	log := s.log.With(zap.Stringer("run", turn.Run.ID), zap.Uint64("turn", turn.Run.Turn))
	turnCtx, cancel := context.WithTimeoutCause(ctx, turn.Definition.Limits.TurnTime(), errTurnLimit)
	defer cancel()
	turnCtx, stop := context.WithCancelCause(turnCtx)
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		s.watchStop(turnCtx, turn.Claim, stop, log)
	}()
	measured := make(chan struct{})
	go func() {
		defer close(measured)
		s.watchWorkspace(turnCtx, turn, stop, log)
	}()
	execute := s.runCommand
	if turn.Definition.Model != "" {
		execute = s.runModel
	}
	out, err := execute(turnCtx, turn)
	var cause error
	if out.stopped {
		cause = context.Cause(turnCtx)
	}
	stop(nil)
	<-watched
	<-measured
	if err != nil {
		log.Error("turn", zap.Error(err))
		out = outcome{failure: "internal error"}
	}
	s.record(ctx, turn, out, cause, log)
}

// watchStop ends the turn when someone asked for the run to be stopped.
func (s *Server) watchStop(ctx context.Context, claim storage.Claim, stop context.CancelCauseFunc, log *zap.Logger) {
	watch := s.store.Watch(claim.Run)
	defer watch.Close()
	look := time.NewTicker(s.look)
	defer look.Stop()
	for {
		reason, err := s.store.StopRequested(ctx, claim)
		switch {
		case err != nil && ctx.Err() == nil:
			log.Error("look whether the run is to stop", zap.Error(err))
		case err == nil && reason != "":
			stop(errStopRequested)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-watch.C:
		case <-look.C:
		}
	}
}

// watchWorkspace ends the turn when its workspace has grown beyond its limit.
func (s *Server) watchWorkspace(ctx context.Context, turn *storage.Turn, stop context.CancelCauseFunc, log *zap.Logger) {
	tick := time.NewTicker(measureInterval)
	defer tick.Stop()
	limit := turn.Definition.Limits.WorkspaceBytes()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		within, err := s.workspaces.Within(ctx, turn.Run.ID.UUID, limit)
		switch {
		case err != nil && ctx.Err() == nil:
			log.Error("measure the workspace", zap.Error(err))
		case err == nil && !within:
			stop(errWorkspaceFull)
			return
		}
	}
}

// record ends the turn in storage, also while the server is going down. A claim
// that is left all the same is settled by the next start.
func (s *Server) record(ctx context.Context, turn *storage.Turn, out outcome, cause error, log *zap.Logger) {
	_ = s.insist(ctx, log, "record the end of the turn", func() error {
		return s.endTurn(context.WithoutCancel(ctx), turn, out, cause)
	})
}

// insist writes what is known nowhere else: while the store only has no space
// or gives no answer, it tries again, until ctx ends. Failures are logged.
func (s *Server) insist(ctx context.Context, log *zap.Logger, what string, write func() error) error {
	look := time.NewTicker(s.look)
	defer look.Stop()
	for {
		err := write()
		if err == nil {
			return nil
		}
		log.Error(what, zap.Error(err))
		if !errors.Is(err, storage.ErrNoSpace) && !errors.Is(err, storage.ErrUnavailable) {
			return err
		}
		select {
		case <-ctx.Done():
			return err
		case <-look.C:
		}
	}
}

// endTurn ends the turn in storage. cause is why the turn was stopped; nil when
// it ended by itself.
func (s *Server) endTurn(ctx context.Context, turn *storage.Turn, out outcome, cause error) error {
	switch {
	case out.failure == "":
		return s.store.FinishTurn(ctx, turn.Claim, out.output, out.events...)
	case errors.Is(cause, errServerStopped) && turn.Definition.Resumes():
		return s.store.ParkTurn(ctx, turn.Claim, cause.Error(), out.events...)
	case errors.Is(cause, errWorkspaceFull):
		reason := fmt.Sprintf("%v (%d bytes)", cause, turn.Definition.Limits.WorkspaceBytes())
		return s.store.FailTurn(ctx, turn.Claim, reason, out.events...)
	case errors.Is(cause, errTurnLimit):
		limit := turn.Definition.Limits.TurnTime()
		return s.store.FailTurn(ctx, turn.Claim, fmt.Sprintf("%v (%s)", cause, limit), out.events...)
	case cause != nil:
		return s.store.FailTurn(ctx, turn.Claim, cause.Error(), out.events...)
	default:
		return s.store.FailTurn(ctx, turn.Claim, out.failure, out.events...)
	}
}
