// Package kv is the seam between agentrun's rules and the store underneath
// them: an ordered, transactional key-value store with byte-string keys in
// named spaces. It is the shape that an embedded B+tree file and a relational
// server share, so that the rules in package storage are written once.
//
// The package knows no rule, no record format and no noun of agentrun, and it
// imports nothing of agentrun. Implementations live in sub-packages and are
// held equal by the suite in kvtest.
package kv

import "context"

// DB is an ordered, transactional key-value store. All methods may be called
// from any number of goroutines.
type DB interface {
	// View calls fn with one snapshot of the store. It returns what fn
	// returned, or ErrUnavailable when no snapshot was to be had in time or
	// the store is closed, or ErrDamaged when the store's own structure could
	// not be read, or the context's error when ctx ended before fn was called.
	View(ctx context.Context, fn func(Reader) error) error

	// Update calls fn with a transaction and commits what fn wrote when fn
	// returned nil. When Update returned nil, the writes are durable.
	//
	// fn may run more than once, and together with other callers' functions in
	// one commit: it must have no effect outside its transaction, do no I/O,
	// and assign its results afresh each time it runs. Its writes are kept
	// apart until it returned nil, so an error from fn undoes exactly fn's own
	// writes and comes back from Update as it is.
	//
	// Other errors: ErrConflict, ErrUnavailable, ErrNoSpace and ErrDamaged say
	// that nothing was written; ErrUnknown says that the outcome of the commit
	// is not known. A context that ends while the commit is under way does not
	// interrupt it: Update then still reports the commit's own outcome.
	Update(ctx context.Context, fn func(Tx) error) error

	// Close waits for the transactions under way, then releases the store.
	// Calls after Close return ErrUnavailable. Closing twice is allowed.
	Close() error
}

// Reader reads one snapshot. Every slice that it returns is valid only until
// the function that received the Reader returns, and must not be written to.
type Reader interface {
	// Get returns the value at key, or nil when there is none. A value of
	// length zero comes back as an empty slice that is not nil.
	Get(space string, key []byte) ([]byte, error)

	// Scan returns the pairs of a range in its order. A space that was never
	// written to is empty.
	Scan(r Range) ([]Pair, error)

	// Prefetch tells the store what the function is going to read. It is never
	// needed and changes no result; on a store behind a network it saves round
	// trips.
	Prefetch(ranges ...Range) error
}

// Tx is a Reader that sees its own writes. Keys and values handed to it are
// copied before the call returns.
type Tx interface {
	Reader

	// Put sets the value at key. The key must not be empty.
	Put(space string, key, value []byte) error

	// Delete removes key; a key that does not exist is no error.
	Delete(space string, key []byte) error
}

// Range names the keys of one space with From <= key < To, in byte order.
type Range struct {
	Space string
	// From is the first key of the range; nil means the first of the space.
	From []byte
	// To is the first key beyond the range; nil means to the end of the space.
	To []byte
	// Reverse yields the keys from the last to the first.
	Reverse bool
	// Limit is the most pairs to return; 0 means all of them.
	Limit int
}

// Pair is a key with its value.
type Pair struct {
	Key, Value []byte
}

// Prefix returns the range of all keys of space that begin with prefix.
func Prefix(space string, prefix []byte) Range {
	return Range{Space: space, From: prefix, To: After(prefix)}
}

// After returns the first key, in byte order, that is greater than every key
// beginning with prefix; nil when there is no such key.
func After(prefix []byte) []byte {
	for i := len(prefix) - 1; i >= 0; i-- {
		if prefix[i] < 0xff {
			next := make([]byte, i+1)
			copy(next, prefix)
			next[i]++
			return next
		}
	}
	return nil
}
