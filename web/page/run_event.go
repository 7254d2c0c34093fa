package page

import (
	"encoding/json"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"agentrun/storage"
	"agentrun/web/gen"
	"agentrun/web/markup"
)

// maxEventText bounds each text of an event that the timeline shows, in bytes;
// the event's own page has all of it.
const maxEventText = 8 << 10

// eventView is an event as people read it.
type eventView struct {
	Run  uuid.UUID
	Seq  int64
	At   time.Time
	Turn int
	Kind string
	// Title says in words what happened.
	Title string
	// Tone is turn, good, bad or quiet; empty for what is none of them.
	Tone string
	// Facts are short, such as "1.2 s".
	Facts []string
	Texts []eventText
	// Folded says that the texts are shown on demand.
	Folded bool
}

// eventText is a text that belongs to an event.
type eventText struct {
	Label, Text string
	// Left is how many bytes of it are not shown here.
	Left int
}

// Cut says whether the event has more than is shown of it.
func (v eventView) Cut() bool {
	for _, t := range v.Texts {
		if t.Left > 0 {
			return true
		}
	}
	return false
}

// fact adds a short fact, unless it is empty.
func (v *eventView) fact(texts ...string) {
	for _, text := range texts {
		if text != "" {
			v.Facts = append(v.Facts, text)
		}
	}
}

// text adds a text, unless it is empty, and says how long the rest is when it
// is cut.
func (v *eventView) text(label, text string) {
	if text == "" {
		return
	}
	shown := firstBytes(text, maxEventText)
	v.Texts = append(v.Texts, eventText{Label: label, Text: markup.Terminal(shown), Left: len(text) - len(shown)})
}

// firstBytes returns at most that many bytes of a text, without half a character.
func firstBytes(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}

// eventReader makes the events of a run readable, when they pass in their order.
type eventReader struct {
	run uuid.UUID
	// calls are the last calls that the model asked for, by their IDs: what a
	// call was given is told once, in the model's answer.
	calls map[string]storage.ToolCall
}

func newEventReader(run uuid.UUID) *eventReader {
	return &eventReader{run: run, calls: map[string]storage.ToolCall{}}
}

// read returns what people see of an event. It is a function of the events so
// far and of nothing else, so that replayed events look as they did live.
func (r *eventReader) read(e gen.Event) eventView {
	v := eventView{Run: r.run, Seq: e.Seq, At: e.At, Turn: e.Turn, Kind: e.Kind, Title: e.Kind}
	tell, known := eventKinds[storage.EventKind(e.Kind)]
	if known && tell(r, &v, e.Data) == nil {
		return v
	}
	v.Folded = true
	v.text("Data", string(e.Data))
	return v
}

// readAll is read for each of events.
func (r *eventReader) readAll(events []gen.Event) []eventView {
	views := make([]eventView, len(events))
	for i, e := range events {
		views[i] = r.read(e)
	}
	return views
}

// teller fills in what an event of one kind says. An error means that the data
// is not what the kind has.
type teller func(r *eventReader, v *eventView, data []byte) error

// plainly tells of an event by its kind alone.
func plainly(title, tone string) teller {
	return func(_ *eventReader, v *eventView, _ []byte) error {
		v.Title, v.Tone = title, tone
		return nil
	}
}

// telling tells of an event by its data.
func telling[D any](tell func(v *eventView, d D)) teller {
	return knowing(func(_ *eventReader, v *eventView, d D) { tell(v, d) })
}

// knowing tells of an event by its data and the events before it.
func knowing[D any](tell func(r *eventReader, v *eventView, d D)) teller {
	return func(r *eventReader, v *eventView, data []byte) error {
		var d D
		if err := json.Unmarshal(data, &d); err != nil {
			return err
		}
		tell(r, v, d)
		return nil
	}
}

// because tells of an event that has a reason.
func because(title, tone string) teller {
	return telling(func(v *eventView, d storage.Reason) {
		v.Title, v.Tone = title, tone
		v.text("", d.Reason)
	})
}
