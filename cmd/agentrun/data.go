package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/go-faster/errors"
	"go.uber.org/zap"

	"agentrun/run"
	"agentrun/storage"
	"agentrun/storage/kv/bolt"
	"agentrun/storage/workspace"
)

// The names in the data directory.
const (
	databaseName   = "agentrun.db"
	workspacesName = "workspaces"
	socketName     = "agentrun.sock"
)

// dataDir is an open data directory. Only one process has it open at a time.
type dataDir struct {
	path   string
	store  *storage.Store
	spaces *workspace.Store
}

// openData opens the data directory, making it when it does not exist, and puts
// in order what an earlier life left behind. It starts nothing.
func openData(ctx context.Context, path string, log *zap.Logger) (*dataDir, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, errors.Wrap(err, "data directory")
	}
	file := filepath.Join(path, databaseName)
	db, err := bolt.Open(file, bolt.Options{})
	switch {
	case errors.Is(err, storage.ErrStoreDamaged):
		return nil, errors.Errorf("%v; it was left as it is: put a copy in its place that is whole", err)
	case err != nil:
		return nil, err
	}
	store, err := storage.Open(ctx, db, storage.Options{})
	switch {
	case errors.Is(err, storage.ErrNewerSchema):
		return nil, errors.Wrapf(err, "%s: use a newer agentrun", file)
	case err != nil:
		return nil, errors.Wrap(err, file)
	}
	spaces, err := workspace.Open(filepath.Join(path, workspacesName))
	if err != nil {
		_ = store.Close()
		return nil, err
	}
	d := &dataDir{path: path, store: store, spaces: spaces}
	if err := run.Settle(ctx, store, spaces, log); err != nil {
		_ = d.close()
		return nil, err
	}
	return d, nil
}

// erase removes the workspaces of deleted runs in the background, until the
// function that it returns is called; that returns when the last one is done.
func (d *dataDir) erase(log *zap.Logger) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run.Erase(ctx, d.store, d.spaces, log)
	}()
	return func() {
		cancel()
		<-done
	}
}

func (d *dataDir) close() error {
	return errors.Join(d.spaces.Close(), d.store.Close())
}
