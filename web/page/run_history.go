package page

import (
	"bytes"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/google/uuid"

	"agentrun/storage"
	"agentrun/web/gen"
	"agentrun/web/markup"
)

// events asks for events of a run, waiting up to so many seconds for the first.
func (a *App) events(ctx context.Context, run uuid.UUID, after int64, limit, wait int) (*gen.EventPage, error) {
	return a.api.ListEvents(ctx, gen.ListEventsParams{
		Run: run, After: gen.NewOptInt64(after), Limit: gen.NewOptInt(limit), Wait: gen.NewOptInt(wait),
	})
}

// lastEvent returns the number of a run's last event, 0 when it has none. There
// are no gaps, so that asking whether there is one behind a number is enough.
func (a *App) lastEvent(ctx context.Context, run uuid.UUID) (int64, error) {
	var failed error
	isBehind := func(n int64) bool {
		page, err := a.events(ctx, run, n, 1, 0)
		if err != nil {
			failed = err
			return false
		}
		return len(page.Events) > 0
	}
	low, high := int64(0), int64(newestEvents) // The last one is at low or behind it, and not behind high in the end.
	for isBehind(high) {
		low, high = high, high*2
	}
	for low < high && failed == nil {
		if middle := low + (high-low)/2; isBehind(middle) {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, failed
}

// history is the end of a run's history.
type history struct {
	events []gen.Event
	views  []eventView
	// older is how many events come before these.
	older int64
	// running is whether a turn may be under way behind them, ended whether
	// nothing can follow.
	running, ended bool
}

// newest reads the newest events of a run, or as many as a page can have.
func (a *App) newest(ctx context.Context, run uuid.UUID, all bool) (history, error) {
	end, err := a.lastEvent(ctx, run)
	if err != nil {
		return history{}, err
	}
	most := int64(newestEvents)
	if all {
		most = mostEvents
	}
	h := history{older: max(0, end-most)}
	reader, err := a.readerAt(ctx, run, h.older)
	if err != nil {
		return history{}, err
	}
	for after := h.older; ; {
		page, err := a.events(ctx, run, after, eventBatch, 0)
		if err != nil {
			return history{}, err
		}
		h.events = append(h.events, page.Events...)
		h.running = page.Status == gen.StatusRunning || len(page.Events) == eventBatch
		h.ended = page.Status == gen.StatusTerminated && len(page.Events) < eventBatch
		// What happens while this is read, the live page tells.
		if after += int64(len(page.Events)); len(page.Events) < eventBatch || after >= end {
			break
		}
	}
	h.views = reader.readAll(h.events)
	return h, nil
}

// last is the number of the last event that was read.
func (h history) last() int64 { return h.older + int64(len(h.events)) }

// told returns the messages that the events tell of. A turn's input enters the
// transcript with the event turn_started, its output with turn_finished.
func (h history) told(messages []gen.Message) []gen.Message {
	turn, finished := 0, !h.running
	if len(h.events) > 0 {
		turn = h.events[len(h.events)-1].Turn
	}
	for _, e := range h.events {
		finished = finished || e.Turn == turn && e.Kind == string(storage.EventTurnFinished)
	}
	return slices.DeleteFunc(slices.Clone(messages), func(m gen.Message) bool {
		return m.Turn > turn || m.Turn == turn && m.Role == gen.MessageRoleOutputFromAgent && !finished
	})
}

// readerAt returns a reader for the events after a number, which knows the calls
// of those shortly before.
func (a *App) readerAt(ctx context.Context, run uuid.UUID, after int64) (*eventReader, error) {
	reader := newEventReader(run)
	from := max(0, after-callsBefore)
	if from == after {
		return reader, nil
	}
	page, err := a.events(ctx, run, from, int(after-from), 0)
	if err != nil {
		return nil, err
	}
	reader.readAll(page.Events)
	return reader, nil
}

// wholeEvent is an event with nothing left out.
type wholeEvent struct {
	gen.Event
	// JSON is the event's data, indented.
	JSON string
	// Texts are the texts in it, as a command or a model wrote them.
	Texts []eventText
}

func wholeEventOf(e gen.Event) wholeEvent {
	whole := wholeEvent{Event: e}
	if len(e.Data) == 0 {
		return whole
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(e.Data, &fields) == nil {
		for _, name := range []string{"text", "summary", "reason"} {
			var text string
			if json.Unmarshal(fields[name], &text) == nil && text != "" {
				whole.Texts = append(whole.Texts, eventText{Label: strings.ToUpper(name[:1]) + name[1:], Text: markup.Terminal(text)})
			}
		}
	}
	var indented bytes.Buffer
	if json.Indent(&indented, e.Data, "", "  ") != nil {
		indented.Reset()
		indented.Write(e.Data)
	}
	whole.JSON = markup.Terminal(indented.String())
	return whole
}
