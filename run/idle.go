package run

import (
	"context"
	"fmt"
	"time"

	"go.uber.org/zap"
)

// stopIdle stops the runs that have been idle for the time that the policy
// allows, until ctx ends. It reads the store only when a run may be due: none
// that becomes idle from now on is due before the whole time has passed again.
func (s *Server) stopIdle(ctx context.Context) {
	reason := fmt.Sprintf("idle for %s", s.idleStop)
	for {
		wait := s.idleStop
		since, err := s.store.LongestIdle(ctx)
		if err == nil && !since.IsZero() {
			wait = time.Until(since.Add(s.idleStop))
		}
		if err == nil && wait <= 0 {
			wait = 0
			_, err = s.store.StopIdle(ctx, time.Now().Add(-s.idleStop), reason)
		}
		if err != nil && ctx.Err() == nil {
			s.log.Error("stop idle runs", zap.Error(err))
			wait = s.look
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}
