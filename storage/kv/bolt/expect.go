package bolt

import "time"

const (
	// patienceShare is the part of a commit's time that the next may spend
	// waiting. In vain that costs an eighth of what sharing saves; and nearly
	// all of 64 callers in this process are back by then (BenchmarkUpdate).
	patienceShare = 8

	// maxPatience bounds the wait after a commit that took long because the
	// disk stalled, or views kept the file from being mapped anew: callers come
	// back no later for that. It is an eighth of the 16 ms of two disk syncs on
	// a disk that turns 120 times a second; there is hardly a slower one.
	maxPatience = 2 * time.Millisecond
)

// expected says how many updates a commit may wait for, and how long. Callers
// that make one update after the other all come back when a commit has answered
// them, but not at the same moment. A commit that took only those that are
// there already would leave the rest to the next one, and from then on the two
// halves would take turns, at twice the commits.
type expected struct {
	updates  int
	patience time.Duration
}

// expect says what to expect after a commit that is about to answer its members
// while other updates wait already. It took this long without its functions:
// their time is not saved by sharing. After a commit of one nothing is expected:
// a lone caller must never wait for others.
func expect(answered, waiting int, took time.Duration) expected {
	if answered <= 1 {
		return expected{}
	}
	return expected{
		updates:  answered + waiting,
		patience: min(took/patienceShare, maxPatience),
	}
}

// next returns the next update for the commit under way, which has this many
// already, or nil when it should have no more. It spends the patience only on
// time in which no update is there to be run.
func (db *DB) next(have int) *update {
	for {
		select {
		case u := <-db.updates: // or nil, when the store is closed
			return u
		case <-db.broken:
			return nil
		default:
		}
		if have >= db.expected.updates || db.expected.patience <= 0 {
			return nil
		}
		start := time.Now()
		db.yield()
		db.expected.patience -= time.Since(start)
	}
}
