package run

import (
	"context"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"agentrun/run/sandbox"
	"agentrun/storage"
	"agentrun/storage/workspace"
)

// Settle puts in order what an earlier life of the server left behind, before
// anything is served: claims that nobody holds, folders that nobody owns. It
// starts no turn.
func Settle(ctx context.Context, store *storage.Store, spaces *workspace.Store, log *zap.Logger) error {
	// First of all: a run must not be said to have ended while something of it
	// is alive.
	if n := sandbox.EndOrphans(runVariable, func(value string) bool { return ours(ctx, store, value) }); n > 0 {
		log.Warn("processes of an earlier life ended", zap.Int("processes", n))
	}
	settled, err := store.Settle(ctx, errServerStopped.Error())
	logRuns(log, "run failed: its turn was cut off", settled.Failed)
	logRuns(log, "run waits again: its turn was cut off", settled.Parked)
	logRuns(log, "run terminated: its stop was asked for", settled.Terminated)
	logRuns(log, "run left alone: its records are damaged", settled.Damaged)
	if err != nil {
		return err
	}

	recovered, err := spaces.Recover(func(id uuid.UUID) (bool, error) { return store.HasRun(ctx, id) })
	for _, id := range recovered.Removed {
		log.Info("unfinished workspace removed", zap.Stringer("run", id))
	}
	for _, o := range recovered.Orphaned {
		log.Warn("workspace without a run set aside", zap.Stringer("run", o.Run), zap.String("orphan", o.Name))
	}
	for _, name := range recovered.Foreign {
		log.Warn("file among the workspaces that is no workspace", zap.String("name", name))
	}
	return err
}

// ours says whether a run of this store has this ID.
func ours(ctx context.Context, store *storage.Store, value string) bool {
	id, err := uuid.Parse(value)
	if err != nil {
		return false
	}
	has, err := store.HasRun(ctx, id)
	return has && err == nil
}

func logRuns(log *zap.Logger, what string, runs []storage.RunID) {
	for _, id := range runs {
		log.Warn(what, zap.Stringer("run", id))
	}
}
