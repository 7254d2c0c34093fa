package bolt

import (
	"runtime/debug"

	"github.com/go-faster/errors"

	"agentrun/storage/kv"
)

// protect calls into bbolt. A panic or a memory fault there is what a file
// with a broken structure does to it, and becomes kv.ErrDamaged.
func protect(path string, call func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if cause := recover(); cause != nil {
			err = damaged(path, cause)
		}
	}()
	return call()
}

// protectCaller calls a function that was handed to View or Update. What it
// reads is mapped from the file, so that a page that cannot be read is a memory
// fault, which becomes kv.ErrDamaged. Every other panic is the function's own.
func protectCaller(path string, fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		// A fault has an address, and a nil pointer's is not given as one.
		if _, fault := cause.(interface{ Addr() uintptr }); !fault {
			panic(cause)
		}
		err = damaged(path, cause)
	}()
	return fn()
}

func damaged(what string, cause any) error {
	return errors.Wrapf(kv.ErrDamaged, "%s: %v", what, cause)
}

// breakDown marks the store as one in which a lock of bbolt's is held for ever
// because bbolt panicked under it. Whoever waits then stops waiting.
func (db *DB) breakDown(cause error) {
	db.breaking.Do(func() {
		db.brokenErr = cause
		close(db.broken)
	})
}
