package page

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentrun/storage"
	"agentrun/storage/kv"
)

// readCount is a store that counts the transactions that read it.
type readCount struct {
	kv.DB
	reads atomic.Int64
}

func (c *readCount) View(ctx context.Context, fn func(kv.Reader) error) error {
	c.reads.Add(1)
	return c.DB.View(ctx, fn)
}

// TestAThousandLivePages: pages that wait read nothing, however often they show
// that they are alive, and a commit wakes the pages of its run alone.
func TestAThousandLivePages(t *testing.T) {
	const pages = 1000
	var count *readCount
	s := newSiteOver(t, func(db kv.DB) kv.DB {
		count = &readCount{DB: db}
		return count
	}, atWork(t, nil))
	s.app.beat = 20 * time.Millisecond
	b := s.operator()
	_, caller := s.mustAgent("name: echo\ncommand: [cat]\n")
	runs := make([]storage.Run, pages)
	s.inParallel(pages, func(i int) { runs[i] = s.mustRun(caller, "the run") })
	readers := make([]*watching, pages)
	s.inParallel(pages, func(i int) {
		readers[i] = b.watch("/runs/"+runs[i].ID.String()+"/live", "")
		if m, ok := readers[i].next(); !ok || m.ID != 1 {
			t.Errorf("page %d: %+v", i, m)
		}
	})
	s.inParallel(pages, func(i int) { readers[i].beats(2) }) // The first waits are under way now.

	count.reads.Store(0)
	s.inParallel(pages, func(i int) { readers[i].beats(10) })
	if reads := count.reads.Load(); reads != 0 {
		t.Errorf("%d pages at rest read the store %d times", pages, reads)
	}

	if _, err := s.store.GiveInput(t.Context(), runs[7].ID, "more"); err != nil {
		t.Fatal(err)
	}
	if m, ok := readers[7].next(); !ok || m.ID != 2 {
		t.Errorf("the page of the run is sent %+v", m)
	}
	s.inParallel(pages, func(i int) { readers[i].beats(2) })
	if reads := count.reads.Load(); reads == 0 || reads > 8 {
		t.Errorf("a commit that concerns one page of %d caused %d reads", pages, reads)
	}
	t.Logf("%d live pages: no read at rest, %d reads for a commit", pages, count.reads.Load())
}

// inParallel calls do for each number below n, sixteen at a time.
func (s *site) inParallel(n int, do func(i int)) {
	var all sync.WaitGroup
	next := make(chan int)
	for range 16 {
		all.Go(func() {
			for i := range next {
				do(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	all.Wait()
}

// beats returns after so many signs of life without a message between.
func (w *watching) beats(n int) {
	w.t.Helper()
	for n > 0 && w.lines.Scan() {
		if w.lines.Text() == ": " {
			n--
		}
	}
	if n > 0 {
		w.t.Errorf("the stream ended: %v", w.lines.Err())
	}
}
