package run

import (
	"context"
	"time"

	"go.uber.org/zap"

	"agentrun/storage"
	"agentrun/storage/workspace"
)

// Erase removes the workspaces of deleted runs, those that an earlier life left
// first, until ctx ends. A workspace that resists is tried again at the next
// look.
func Erase(ctx context.Context, store *storage.Store, spaces *workspace.Store, log *zap.Logger) {
	erase(ctx, store, spaces, log, lookInterval)
}

func erase(ctx context.Context, store *storage.Store, spaces *workspace.Store, log *zap.Logger, interval time.Duration) {
	watch := store.Watch(storage.RunID{})
	defer watch.Close()
	look := time.NewTicker(interval)
	defer look.Stop()
	for {
		if err := eraseAll(ctx, store, spaces, log); err != nil && ctx.Err() == nil {
			log.Error("look for workspaces to remove", zap.Error(err))
		}
		select {
		case <-ctx.Done():
			return
		case <-watch.C:
		case <-look.C:
		}
	}
}

// eraseAll removes the workspaces that are to go now. The error is the store's;
// those of single workspaces are logged.
func eraseAll(ctx context.Context, store *storage.Store, spaces *workspace.Store, log *zap.Logger) error {
	runs, err := store.Erasures(ctx, 0)
	if err != nil {
		return err
	}
	for _, id := range runs {
		if err := ctx.Err(); err != nil {
			return err
		}
		err := spaces.Discard(id.UUID)
		if err == nil {
			err = store.WorkspaceErased(ctx, id)
		}
		if err != nil {
			log.Error("remove the workspace of a deleted run", zap.Stringer("run", id), zap.Error(err))
		}
	}
	return nil
}
