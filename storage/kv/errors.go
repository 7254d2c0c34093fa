package kv

import "github.com/go-faster/errors"

var (
	// ErrConflict says that the transaction lost against a concurrent one too
	// often to go on. Nothing was written; the caller may try again.
	ErrConflict = errors.New("transaction conflict")

	// ErrUnavailable says that the store is closed or did not give a
	// transaction in time. Nothing was written.
	ErrUnavailable = errors.New("store unavailable")

	// ErrNoSpace says that the disk, or the quota on it, is full. Nothing was
	// written, and the store works again once there is space.
	ErrNoSpace = errors.New("no space left for the store")

	// ErrUnknown says that a commit was begun and its outcome is not known:
	// the writes may or may not be there after a restart. The store takes no
	// further writes; the process has to end and settle from what is on disk.
	ErrUnknown = errors.New("outcome of the commit unknown")

	// ErrDamaged says that the store's own structure could not be read.
	ErrDamaged = errors.New("store damaged")

	// ErrInUse says that another process holds the store.
	ErrInUse = errors.New("store in use by another process")
)
