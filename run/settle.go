package run

import (
	"context"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"agentrun/storage"
	"agentrun/storage/workspace"
)

// Settle puts in order what an earlier life of the server left behind, before
// anything is served: claims that nobody holds, folders that nobody owns. It
// starts no turn.
func Settle(ctx context.Context, store *storage.Store, spaces *workspace.Store, log *zap.Logger) error {
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

func logRuns(log *zap.Logger, what string, runs []storage.RunID) {
	for _, id := range runs {
		log.Warn(what, zap.Stringer("run", id))
	}
}
