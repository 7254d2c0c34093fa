package storage

import "sync"

// Watch is a subscription to commits. C receives after a commit that changed
// the watched run (or any run), at most one wake-up pending at a time: a
// watcher reads the rows after the last sequence number it knows, never the
// channel for data.
type Watch struct {
	// C carries the wake-ups. It is never closed.
	C <-chan struct{}

	c   chan struct{}
	run RunID
	in  *watchers
}

// Watch returns a subscription to the commits that change run, or any run when
// run is the zero ID. The caller ends it with Close. A commit never waits for
// a watcher.
func (s *Store) Watch(run RunID) *Watch {
	c := make(chan struct{}, 1)
	w := &Watch{C: c, c: c, run: run, in: &s.watchers}
	s.watchers.add(w)
	return w
}

// Close ends the subscription. Closing twice is allowed.
func (w *Watch) Close() { w.in.remove(w) }

// watchers holds the subscriptions by run; the zero ID stands for all runs.
type watchers struct {
	mu    sync.Mutex
	byRun map[RunID]map[*Watch]struct{}
}

func (ws *watchers) add(w *Watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.byRun == nil {
		ws.byRun = make(map[RunID]map[*Watch]struct{})
	}
	if ws.byRun[w.run] == nil {
		ws.byRun[w.run] = make(map[*Watch]struct{})
	}
	ws.byRun[w.run][w] = struct{}{}
}

func (ws *watchers) remove(w *Watch) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.byRun[w.run], w)
	if len(ws.byRun[w.run]) == 0 {
		delete(ws.byRun, w.run)
	}
}

func (ws *watchers) wake(changed []RunID) {
	if len(changed) == 0 {
		return
	}
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for _, run := range append(changed, RunID{}) {
		for w := range ws.byRun[run] {
			select {
			case w.c <- struct{}{}:
			default: // A wake-up is pending already; the watcher reads all rows anyway.
			}
		}
	}
}
