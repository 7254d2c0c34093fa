package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"agentrun/gen"
	"agentrun/poll"
)

// progress tells how a run is getting on.
type progress interface {
	created(run uuid.UUID)
	saw(p poll.Progress)
	// end takes away what is not to stay. It may be called twice.
	end()
}

// newProgress writes to out: to a terminal one line that changes, else a line
// for each event.
func newProgress(out *os.File) progress {
	if isTerminal(out) && os.Getenv("TERM") != "dumb" {
		return newLiveLine(out, func() int { return columns(out) })
	}
	return &eventLines{out: out}
}

// eventLines is for a log: nothing is taken back.
type eventLines struct {
	out   io.Writer
	run   uuid.UUID
	state gen.LoopStatus
}

func (e *eventLines) created(run uuid.UUID) {
	e.run = run
	fmt.Fprintf(e.out, "run %s: created\n", run)
}

func (e *eventLines) saw(p poll.Progress) {
	switch {
	case p.Next == 0 && (p.Err != nil || p.Last.LoopStatus != gen.LoopStatusFinished):
		// The command's last line says it.
	case p.Err != nil:
		fmt.Fprintf(e.out, "run %s: %s\n", e.run, noAnswer(p.Err, p.Next))
	case p.Last.LoopStatus != e.state:
		e.state = p.Last.LoopStatus
		fmt.Fprintf(e.out, "run %s: %s\n", e.run, e.state)
	}
}

func (*eventLines) end() {}

// noAnswer puts first what fits into a line that is cut.
func noAnswer(err error, next time.Duration) string {
	return fmt.Sprintf("no answer, next try in %s: %s", next.Round(time.Second), oneLine(cause(err)))
}

// liveLine is one line of a terminal, redrawn every second.
type liveLine struct {
	out     io.Writer
	columns func() int // of the terminal, as it is now
	ended   func()

	mu     sync.Mutex
	begun  time.Time
	state  string
	event  string
	failed error     // why there was no answer the last time
	retry  time.Time // when the next request follows one without an answer
}

func newLiveLine(out io.Writer, columns func() int) *liveLine {
	l := &liveLine{out: out, columns: columns, begun: time.Now(), state: "creating"}
	stop, stopped := make(chan struct{}), make(chan struct{})
	l.ended = sync.OnceFunc(func() {
		close(stop)
		<-stopped
		fmt.Fprint(out, clearLine)
	})
	l.draw()
	go func() {
		defer close(stopped)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				l.draw()
			case <-stop:
				return
			}
		}
	}()
	return l
}

func (l *liveLine) created(uuid.UUID) {
	l.mu.Lock()
	l.state = "created"
	l.mu.Unlock()
	l.draw()
}

func (l *liveLine) saw(p poll.Progress) {
	if p.Next == 0 {
		return // The line is about to go.
	}
	l.mu.Lock()
	l.failed = p.Err
	if p.Err != nil {
		l.retry = time.Now().Add(p.Next)
	} else {
		l.state, l.event = string(p.Last.LoopStatus), lastEvent(p.Last.Transcript)
	}
	l.mu.Unlock()
	l.draw()
}

func (l *liveLine) end() { l.ended() }

// draw writes the line as it is now.
func (l *liveLine) draw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	event := l.event
	if l.failed != nil {
		event = noAnswer(l.failed, max(0, time.Until(l.retry)))
	}
	text := fmt.Sprintf("%s %s", l.state, time.Since(l.begun).Truncate(time.Second))
	if event != "" {
		text += ": " + event
	}
	// A character in the last column would make some terminals begin a new line.
	fmt.Fprint(l.out, "\r"+cut(printable(text), l.columns()-1)+clearRest)
}

// lastEvent is the last thing that a transcript tells, on one line.
func lastEvent(transcript []gen.TranscriptMessage) string {
	if len(transcript) == 0 {
		return "starting"
	}
	last := transcript[len(transcript)-1]
	if last.Role == gen.TranscriptMessageRoleInputToAgent {
		return "input accepted"
	}
	const enough = 2000 // bytes: no terminal is so wide
	text := strings.ToValidUTF8(last.Text[:min(len(last.Text), enough)], "")
	return "output: " + strings.Join(strings.Fields(text), " ")
}
