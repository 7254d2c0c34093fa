package bolt

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"agentrun/storage/kv"
)

func fill(b *testing.B, db *DB) {
	b.Helper()
	err := db.Update(b.Context(), func(tx kv.Tx) error {
		for i := range 10_000 {
			if err := tx.Put("s", fmt.Appendf(nil, "%08d", i), make([]byte, 300)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		b.Fatal(err)
	}
}

func BenchmarkView(b *testing.B) {
	for _, writers := range []int{0, 8} {
		b.Run(fmt.Sprintf("writers=%d", writers), func(b *testing.B) {
			db := openTest(b, Options{})
			fill(b, db)
			var stop atomic.Bool
			var wg sync.WaitGroup
			for w := range writers {
				wg.Go(func() {
					for i := 0; !stop.Load(); i++ {
						if err := putOne(b, db, fmt.Sprintf("%d-%08d", w, i), 1000); err != nil {
							b.Error(err)
						}
					}
				})
			}
			b.ResetTimer()
			b.RunParallel(func(loop *testing.PB) {
				for loop.Next() {
					err := db.View(b.Context(), func(r kv.Reader) error {
						_, err := r.Get("s", []byte("00005000"))
						return err
					})
					if err != nil {
						b.Error(err)
					}
				}
			})
			b.StopTimer()
			stop.Store(true)
			wg.Wait()
		})
	}
}

func BenchmarkUpdate(b *testing.B) {
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			benchUpdate(b, callers, func(db *DB, key string) error { return putOne(b, db, key, 1000) })
		})
	}
}

// BenchmarkUpdateSlowSync has every commit take 2 ms more, as two slow syncs do.
func BenchmarkUpdateSlowSync(b *testing.B) {
	for _, callers := range []int{1, 64, 256} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			sync := &slowSync{takes: 2 * time.Millisecond}
			benchUpdate(b, callers, func(db *DB, key string) error { return putSlowly(b, db, sync, key) })
		})
	}
}

// benchUpdate has callers make one update after the other, each with a key of
// its own.
func benchUpdate(b *testing.B, callers int, put func(db *DB, key string) error) {
	db := openTest(b, Options{})
	fill(b, db)
	var next atomic.Int64
	var wg sync.WaitGroup
	commits := db.Commits()
	b.ResetTimer()
	for range callers {
		wg.Go(func() {
			for i := next.Add(1); i <= int64(b.N); i = next.Add(1) {
				if err := put(db, fmt.Sprintf("%08d", i)); err != nil {
					b.Error(err)
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/float64(db.Commits()-commits), "ops/commit")
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "ops/s")
}
