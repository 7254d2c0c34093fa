// Package bolt is the store of a single server: a kv.DB in one bbolt file.
//
// It is the only package that may import bbolt, and no exported name of it has
// a bbolt type. It knows no rule and no record format of agentrun: spaces are
// top-level buckets, made on the first Put, and hold what they are given.
//
// Updates that wait at the same time share one commit, and with it the two
// disk syncs that a commit costs; see commit. For those that are just coming
// back from the last one it waits a moment; see expect. A file that bbolt cannot
// read safely is refused before bbolt touches it, see checkFile, and damage that
// shows only later comes back as kv.ErrDamaged instead of ending the process.
//
// A function given to View or Update must not call Update, nor Close: the
// inner call could wait for the outer one.
package bolt

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-faster/errors"
	"go.etcd.io/bbolt"

	"agentrun/storage/kv"
)

const (
	defaultReadWait        = 5 * time.Second
	defaultInitialMmapSize = 1 << 30
)

var _ kv.DB = (*DB)(nil)

// Options are the settings of a store that may differ between servers.
type Options struct {
	// ReadWait is how long View waits for a read transaction before it returns
	// kv.ErrUnavailable. Zero means 5 seconds.
	ReadWait time.Duration

	// InitialMmapSize is how many bytes of address space the file is mapped
	// with at first. Growing beyond it makes a commit wait for all the views
	// under way, and new views wait for that commit. Zero means 1 GiB; it
	// costs no memory.
	InitialMmapSize int
}

// DB is a store in one bbolt file, held exclusively by this process.
type DB struct {
	path     string
	readWait time.Duration
	bolt     *bbolt.DB
	file     *os.File // bolt's file

	mu       sync.Mutex // guards closed, and running's way up from zero
	closed   bool
	running  sync.WaitGroup // the calls of View and Update under way
	closing  sync.Once
	closeErr error // of the first Close

	gate       sync.RWMutex // guards committing, and is held in bbolt's Begin
	committing bool         // whether a commit may be waiting for the views

	begins  chan struct{} // held by the one goroutine that may wait in Begin
	updates chan *update  // the updates that wait for the writer
	ran     chan struct{} // the update that has the turn is through with it
	written chan struct{} // closed when the writer has ended
	refusal error         // what every update gets from now on; the writer's own
	commits atomic.Uint64

	expected expected // of the callers of the last commit; the writer's own
	yield    func()   // runtime.Gosched, except in tests

	broken    chan struct{} // closed once a lock of bbolt's is held for ever
	breaking  sync.Once
	brokenErr error // why; to be read once broken is closed
}

// Open opens the store at path, and makes it when there is no file. The folder
// has to exist. It returns kv.ErrInUse when another process holds the file for
// longer than a second, and kv.ErrDamaged, with the file left as it is, when
// it is not a whole bbolt file.
func Open(path string, opts Options) (*DB, error) {
	db, err := open(path, opts)
	if err != nil {
		return nil, err
	}
	go db.write()
	return db, nil
}

// open opens the store without its writer.
func open(path string, opts Options) (*DB, error) {
	if opts.ReadWait == 0 {
		opts.ReadWait = defaultReadWait
	}
	if opts.InitialMmapSize == 0 {
		opts.InitialMmapSize = defaultInitialMmapSize
	}
	if err := create(path); err != nil {
		return nil, err
	}
	file, err := openLocked(path, os.O_RDWR)
	if err != nil {
		return nil, err
	}
	bolt, err := openBolt(file, opts.InitialMmapSize)
	if err != nil {
		release(file)
		return nil, err
	}
	return &DB{
		path:     path,
		readWait: opts.ReadWait,
		bolt:     bolt,
		file:     file,
		begins:   make(chan struct{}, 1),
		updates:  make(chan *update, maxMembers),
		ran:      make(chan struct{}),
		written:  make(chan struct{}),
		broken:   make(chan struct{}),
		yield:    runtime.Gosched,
	}, nil
}

// Commits returns how many commits have been made since the store was opened.
// It is less than the number of updates where updates shared a commit.
func (db *DB) Commits() uint64 {
	return db.commits.Load()
}

// Close waits for the views and updates under way and releases the file. Calls
// after it return kv.ErrUnavailable, and closing again returns the same again.
func (db *DB) Close() error {
	db.closing.Do(func() { db.closeErr = db.close() })
	return db.closeErr
}

func (db *DB) close() error {
	db.mu.Lock()
	db.closed = true
	db.mu.Unlock()

	idle := make(chan struct{})
	go func() {
		db.running.Wait()
		close(idle)
	}()
	select {
	case <-idle:
	case <-db.broken:
	}
	select {
	case <-db.broken:
		release(db.file) // bbolt's own Close would wait for ever
		return db.brokenErr
	default:
	}
	close(db.updates)
	<-db.written
	if err := db.bolt.Close(); err != nil {
		return errors.Wrap(err, db.path)
	}
	return nil
}

// enter counts a call in, unless the store is closed or broken; the caller has
// to call running.Done when it is through.
func (db *DB) enter() error {
	db.mu.Lock()
	defer db.mu.Unlock()
	if db.closed {
		return errors.Wrapf(kv.ErrUnavailable, "%s: closed", db.path)
	}
	select {
	case <-db.broken:
		return db.brokenErr
	default:
		db.running.Add(1)
		return nil
	}
}
