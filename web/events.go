package web

import (
	"context"

	"github.com/go-faster/jx"

	"agentrun/storage"
	"agentrun/web/gen"
)

// ListEvents implements listEvents.
func (m *Management) ListEvents(ctx context.Context, params gen.ListEventsParams) (*gen.EventPage, error) {
	var page gen.EventPage
	limit := params.Limit.Or(0)
	err := m.watch(ctx, storage.RunID{UUID: params.Run}, params.Wait, func() (done bool, err error) {
		state, events, err := m.store.StateAndEvents(ctx, storage.RunID{UUID: params.Run}, uint64(params.After.Or(0)), limit)
		page = gen.EventPage{
			Events: each(events, eventToAPI), Status: gen.Status(state),
			End: len(events) < limit && (state == storage.StateTerminated || m.offline || m.ending()),
		}
		return page.End || len(events) > 0, err
	})
	return &page, err
}

// ending says whether the server ends.
func (m *Management) ending() bool {
	select {
	case <-m.quit:
		return true
	default:
		return false
	}
}

func eventToAPI(e storage.Event) gen.Event {
	return gen.Event{Seq: int64(e.Seq), At: e.At, Turn: int(e.Turn), Kind: string(e.Kind), Data: jx.Raw(e.Data)}
}
