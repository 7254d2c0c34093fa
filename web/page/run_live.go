package page

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"

	"agentrun/storage"
	"agentrun/web/gen"
)

const (
	// beatEvery is how often a stream with nothing to tell shows that it is alive.
	beatEvery = 20 * time.Second
	// waitLong is how long one wait for an event lasts, in seconds, and how long a
	// session whose time is over can go on with a stream. At rest a stream reads
	// nothing in between.
	waitLong = 3600
)

// live is the stream of what happens to a run, to one reader. It reads the same
// rows in the same way whether they are old or new, and holds up nobody: a
// commit wakes it and goes on.
type live struct {
	app    *App
	run    uuid.UUID
	reader *eventReader
	stream *eventStream
	// after is the number of the last event that was sent.
	after int64
	plain bool
	// access is what the store's AccessChanges were when it was last seen who the
	// reader is, and what that actor may.
	access uint64
}

// runLive answers with a run's events from a number on, each as HTML for the
// run's page, and goes on with those that happen, until the run is terminated.
func (a *App) runLive(w http.ResponseWriter, r *http.Request, _ *view) error {
	id, err := pathID(r, "run")
	if err != nil {
		return err
	}
	after := max(0, numberOr0(r.URL.Query().Get("after")), numberOr0(r.Header.Get("Last-Event-ID")))
	access := a.cfg.Store.AccessChanges()
	// Before the answer begins, so that whoever may not see the run is told so.
	reader, err := a.readerAt(r.Context(), id, after)
	if err != nil {
		return err
	}
	if _, err := a.events(r.Context(), id, after, 1, 0); err != nil {
		return err
	}
	ctx, cancel := a.untilQuit(r.Context())
	defer cancel()
	l := &live{
		app: a, run: id, reader: reader, stream: newEventStream(w), after: after, plain: r.URL.Query().Get("plain") == "1",
		access: access,
	}
	l.stream.beat() // So that the answer's head is sent at once.
	if err := l.tell(ctx, r); err != nil && ctx.Err() == nil {
		// The answer has begun: its reader comes back and is told then. The table of
		// problems logs what is our own.
		a.problem(r, err)
	}
	return nil
}

// numberOr0 reads a number that comes from elsewhere; one that is none is 0.
func numberOr0(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// untilQuit is a context that ends with the server too.
func (a *App) untilQuit(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	go func() {
		select {
		case <-a.cfg.Quit:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// tell sends events until there is an end, of the run, the reader, the reader's
// session or the server.
func (l *live) tell(ctx context.Context, r *http.Request) error {
	for l.stream.flush() {
		page, err := l.next(ctx, r)
		if errors.Is(err, storage.ErrSignInRefused) {
			l.stream.end()
			break
		}
		if err != nil {
			return err
		}
		if err := l.add(ctx, page); err != nil {
			return err
		}
		if !page.End {
			continue
		}
		// A server that ends says End too. Its reader comes back when there is
		// another one.
		if page.Status == gen.StatusTerminated {
			l.stream.end()
		}
		break
	}
	l.stream.flush()
	return nil
}

// next waits for events. Meanwhile it shows that the stream is alive, and looks
// whether its reader may still see it: ErrSignInRefused when not.
func (l *live) next(ctx context.Context, r *http.Request) (*gen.EventPage, error) {
	type answer struct {
		page *gen.EventPage
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	answers := make(chan answer, 1)
	go func() {
		page, err := l.app.events(ctx, l.run, l.after, eventBatch, waitLong)
		answers <- answer{page, err}
	}()
	beat := time.NewTicker(l.app.beat)
	defer beat.Stop()
	for {
		select {
		case got := <-answers:
			cancel()
			if got.err == nil {
				got.err = l.look(r)
			}
			return got.page, got.err
		case <-beat.C:
		}
		err := l.look(r)
		l.stream.beat()
		if err == nil && !l.stream.flush() {
			err = context.Canceled // The reader has gone.
		}
		if err != nil {
			cancel()
			<-answers
			return nil, err
		}
	}
}

// look finds out who the reader is now, when somebody may have lost what they
// could see since it was last done. ErrSignInRefused when the reader is nobody
// any more, or somebody else.
func (l *live) look(r *http.Request) error {
	access := l.app.cfg.Store.AccessChanges()
	if access == l.access {
		return nil
	}
	actor, err := l.app.actor(r)
	if err != nil {
		return err
	}
	before := storage.ActorOf(r.Context())
	if actor.UserID != before.UserID || actor.Role != before.Role || actor.Org != before.Org {
		return storage.ErrSignInRefused
	}
	l.access = access
	return nil
}

// add puts a part of the history into the stream: a message for each event, and
// one with what else changed on the page.
func (l *live) add(ctx context.Context, page *gen.EventPage) error {
	if len(page.Events) == 0 && !page.End {
		return nil
	}
	heading := page.End
	for _, e := range page.Events {
		heading = heading || changesHead[storage.EventKind(e.Kind)]
	}
	var head runHead
	if heading {
		var err error
		if head, err = l.app.runHead(ctx, l.run); err != nil {
			return err
		}
	}
	for _, e := range page.Events {
		html, err := l.app.liveEvent(l.reader.read(e), messageOf(e, head.Transcript, l.plain))
		if err != nil {
			return err
		}
		l.stream.html(e.Seq, html)
		l.after = e.Seq
	}
	if !heading {
		return nil
	}
	html, err := l.app.rendered("live-head", head)
	if err != nil {
		return err
	}
	l.stream.html(0, html)
	return nil
}

// changesHead are the kinds of events after which a page shows something else
// besides its timeline.
var changesHead = map[storage.EventKind]bool{
	storage.EventInputGiven: true, storage.EventInputDropped: true, storage.EventTurnStarted: true,
	storage.EventTurnFinished: true, storage.EventTurnFailed: true, storage.EventTurnParked: true,
	storage.EventModelAnswered: true, storage.EventModelCalled: true, storage.EventContextCompacted: true,
	storage.EventStopRequested: true, storage.EventRunTerminated: true,
}

// messageOf returns the message that entered the transcript with an event, nil
// when none did.
func messageOf(e gen.Event, transcript []gen.Message, plain bool) *messageView {
	var role gen.MessageRole
	switch storage.EventKind(e.Kind) {
	case storage.EventTurnStarted:
		// A turn that goes on after it was cut off has its input already.
		if again(e) {
			return nil
		}
		role = gen.MessageRoleInputToAgent
	case storage.EventTurnFinished:
		role = gen.MessageRoleOutputFromAgent
	default:
		return nil
	}
	for _, m := range transcript {
		if m.Turn == e.Turn && m.Role == role {
			return &messageView{Message: m, Formatted: !plain && role == gen.MessageRoleOutputFromAgent}
		}
	}
	return nil
}

// liveEvent is what a page is sent for an event: its entry in the timeline, and
// the message for the transcript if there is one.
func (a *App) liveEvent(event eventView, message *messageView) ([]byte, error) {
	return a.rendered("live-event", struct {
		Event   eventView
		Message *messageView
	}{event, message})
}

// rendered is a block of the run's page.
func (a *App) rendered(block string, data any) ([]byte, error) {
	var html bytes.Buffer
	err := a.templates["run_show"].ExecuteTemplate(&html, block, data)
	return html.Bytes(), err
}
