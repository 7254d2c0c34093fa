package page

import (
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
	// newestEvents is how many events the page of a run begins with.
	newestEvents = 500
	// mostEvents is how many it shows when all are asked for.
	mostEvents = 10000
	// eventBatch is how many events are read at once.
	eventBatch = 200
	// callsBefore is how many events are looked through for the calls that later
	// ones are about.
	callsBefore = 200
)

// runShow is the page of a run.
type runShow struct {
	runHead
	// Plain shows outputs as they are, not as Markdown.
	Plain bool
	// AllEvents and AllMessages show more than the newest.
	AllEvents, AllMessages bool
	Messages               []messageView
	// OlderMessages is how many messages are not shown.
	OlderMessages int
	Events        []eventView
	// OlderEvents is how many events are not shown.
	OlderEvents int64
	// Last is the number of the last event that is shown.
	Last int64
	// Live says whether more can follow.
	Live bool
}

// Self is the address of this page with other choices.
func (s runShow) Self(plain, events, messages bool) string {
	address, sign := "/runs/"+s.ID.String(), "?"
	for _, choice := range []struct {
		chosen bool
		query  string
	}{{plain, "plain=1"}, {events, "events=all"}, {messages, "messages=all"}} {
		if choice.chosen {
			address += sign + choice.query
			sign = "&"
		}
	}
	return address
}

// Stream is the address of what happens after the page was made.
func (s runShow) Stream() string {
	address := "/runs/" + s.ID.String() + "/live?after=" + strconv.FormatInt(s.Last, 10)
	if s.Plain {
		address += "&plain=1"
	}
	return address
}

// runHead is what is known of a run besides its transcript and its history.
type runHead struct {
	gen.RunDetail
	// Agent is nil when it was deleted.
	Agent *gen.Agent
	// Key is nil when it was deleted.
	Key *gen.Key
}

// TakesInput says whether the run can be given more input.
func (h runHead) TakesInput() bool {
	return h.Status != gen.StatusTerminated && !h.Stopping && !h.Deleted && h.Agent != nil && !h.Agent.Archived
}

// WhyNoInput says why not, for people.
func (h runHead) WhyNoInput() string {
	switch {
	case h.Deleted, h.Status == gen.StatusTerminated:
		return "The run is terminated and takes no input."
	case h.Stopping:
		return "The run is being stopped and takes no input."
	case h.Agent == nil:
		return "The agent was deleted: the run takes no input."
	default:
		return "The agent is archived: the run takes no input until it is unarchived."
	}
}

// Took is how long the run has gone on: to its last change, or until now while
// it is running.
func (h runHead) Took() time.Duration {
	return took(h.Status, h.CreatedAt, h.UpdatedAt)
}

// runPage answers with a run: its transcript and its history so far.
func (a *App) runPage(w http.ResponseWriter, r *http.Request, v *view) error {
	id, err := pathID(r, "run")
	if err != nil {
		return err
	}
	ctx, query := r.Context(), r.URL.Query()
	show := runShow{
		Plain: query.Get("plain") == "1", AllEvents: query.Get("events") == "all", AllMessages: query.Get("messages") == "all",
	}
	// The history is read first: what the transcript has more of by then is shown
	// when its event comes.
	events, err := a.newest(ctx, id, show.AllEvents)
	if err != nil {
		return err
	}
	if show.runHead, err = a.runHead(ctx, id); err != nil {
		return err
	}
	show.Events, show.OlderEvents, show.Last, show.Live = events.views, events.older, events.last(), !events.ended
	known := show.Transcript
	if show.Live {
		known = events.told(known)
	}
	show.Messages, show.OlderMessages = messageViews(known, show.Plain, show.AllMessages)
	v.enter(show.OrgID)
	v.Section, v.Title = "runs", show.Name
	v.Data = show
	return a.show(w, r, http.StatusOK, "run_show", v)
}

// runHead gathers what is known of a run.
func (a *App) runHead(ctx context.Context, id uuid.UUID) (runHead, error) {
	run, err := a.api.GetRun(ctx, gen.GetRunParams{Run: id})
	if err != nil {
		return runHead{}, err
	}
	head := runHead{RunDetail: *run}
	head.Agent, err = a.api.GetAgent(ctx, gen.GetAgentParams{Agent: run.AgentID.String()})
	if errors.Is(err, storage.ErrAgentNotFound) || errors.Is(err, storage.ErrAgentDeleted) {
		head.Agent = nil
		return head, nil
	}
	if err != nil {
		return runHead{}, err
	}
	keys, err := a.api.ListKeys(ctx, gen.ListKeysParams{Agent: run.AgentID.String()})
	if err != nil {
		return runHead{}, err
	}
	for i := range keys {
		if keys[i].ID == run.KeyID {
			head.Key = &keys[i]
		}
	}
	return head, nil
}

const noSuchEvent = "The run has no such event."

// runEvent answers with everything that is known of one event.
func (a *App) runEvent(w http.ResponseWriter, r *http.Request, v *view) error {
	id, err := pathID(r, "run")
	if err != nil {
		return err
	}
	seq, err := strconv.ParseInt(r.PathValue("seq"), 10, 64)
	if err != nil || seq < 1 {
		return refuse(http.StatusNotFound, noSuchEvent)
	}
	events, err := a.events(r.Context(), id, seq-1, 1, 0)
	if err != nil {
		return err
	}
	if len(events.Events) == 0 {
		return refuse(http.StatusNotFound, noSuchEvent)
	}
	head, err := a.runHead(r.Context(), id)
	if err != nil {
		return err
	}
	v.enter(head.OrgID)
	v.Section, v.Title = "runs", "Event "+strconv.FormatInt(seq, 10)
	v.Data = struct {
		runHead
		Event wholeEvent
	}{head, wholeEventOf(events.Events[0])}
	return a.show(w, r, http.StatusOK, "run_event", v)
}
