package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-faster/errors"
)

// pollEvery is how often the test looks at a run that goes on.
const pollEvery = 5 * time.Millisecond

// life is a server from its start until it is killed.
type life struct {
	*process
	listened time.Time
	http     *http.Client
	// first holds something once a run was acknowledged.
	first chan struct{}
	// killed is set before the signal is sent: until then no client may be
	// left without an answer.
	killed atomic.Bool
	// broken counts the POSTs whose connection broke under them.
	broken atomic.Int64
}

// witness is what the clients of all lives have seen.
type witness struct {
	seed uint64

	mu sync.Mutex
	// made counts the errands, to give each its own input.
	made int
	// acknowledged are the runs of which a client has the ID; unanswered are
	// the POSTs that may or may not have become a run.
	acknowledged, unanswered []*errand
	problems                 []string
}

func (w *witness) problem(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.problems = append(w.problems, fmt.Sprintf(format, args...))
}

// errand makes up the next run to ask for.
func (w *witness) errand() *errand {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made++
	random := rand.New(rand.NewPCG(w.seed, uint64(w.made)))
	e := &errand{
		agent: []string{killOnce, killAgain}[random.IntN(2)],
		input: fmt.Sprintf("task %d", w.made), note: fmt.Sprintf("note %x", random.Uint64()),
		data: make([]byte, 1+random.IntN(16<<10)),
	}
	for i := range e.data {
		e.data[i] = byte(random.Uint32())
	}
	return e
}

// keep keeps an errand that a client got an answer to, or none.
func (w *witness) keep(list *[]*errand, e *errand) {
	w.mu.Lock()
	defer w.mu.Unlock()
	*list = append(*list, e)
}

// answer is what the API says of a run.
type answer struct {
	AgentID    string    `json:"agent_id"`
	LoopStatus string    `json:"loop_status"`
	Transcript []message `json:"transcript"`
}

// post asks for a run and says whether it was acknowledged.
func (w *witness) post(l *life, agents map[string]killAgent, e *errand) bool {
	type file struct {
		Filename string `json:"filename"`
		Content  []byte `json:"content_base64"`
	}
	body := struct {
		Name       string `json:"name"`
		TemplateID string `json:"template_id"`
		InputText  string `json:"input_text"`
		Files      []file `json:"files"`
	}{Name: e.input, TemplateID: agents[e.agent].ID, InputText: e.input}
	for name, content := range e.delivered() {
		body.Files = append(body.Files, file{name, content})
	}
	text, err := json.Marshal(body)
	if err != nil {
		w.problem("POST of %q: %v", e.input, err)
		return false
	}
	created, status, err := l.request(http.MethodPost, "/v1/agents", agents[e.agent].Key, text)
	switch {
	case err != nil && !l.killed.Load():
		w.problem("POST of %q to a server that lives: %v", e.input, err)
	case errors.Is(err, syscall.ECONNREFUSED):
		// It came too late to reach anybody.
	case err != nil:
		l.broken.Add(1)
		w.keep(&w.unanswered, e)
	case status != http.StatusCreated || created.AgentID == "":
		w.problem("POST of %q: %d %+v", e.input, status, created)
	default:
		e.id = created.AgentID
		w.keep(&w.acknowledged, e)
		select {
		case l.first <- struct{}{}:
		default:
		}
		return true
	}
	return false
}

// look polls an acknowledged run once. over is true when it has ended, err is
// an error when there was no answer because the server was killed.
func (w *witness) look(l *life, agents map[string]killAgent, e *errand) (over bool, err error) {
	seen, status, err := l.request(http.MethodGet, "/v1/agents/"+e.id, agents[e.agent].Key, nil)
	switch {
	case err != nil && !l.killed.Load():
		w.problem("GET of %s from a server that lives: %v", e, err)
		return false, err
	case err != nil:
		return false, err
	case status != http.StatusOK:
		w.problem("GET of %s: %d", e, status)
		return true, nil
	}
	if problem := e.transcriptProblem(seen.LoopStatus, seen.Transcript); problem != "" {
		w.problem("%s: %s", e, problem)
	}
	if seen.LoopStatus == "running" {
		return false, nil
	}
	e.ended = seen.LoopStatus
	return true, nil
}

// client asks for one run after the other, each when the one before has ended,
// until the server is killed. It begins with the run that it had in the life
// before, which may be nil, and returns the one that it has at the end. So there
// are never more unfinished runs than clients, besides those that nobody was
// told of, however fast the kills come.
func (w *witness) client(l *life, agents map[string]killAgent, own *errand) *errand {
	for {
		for over := own == nil; !over; {
			var err error
			if over, err = w.look(l, agents, own); err != nil {
				return own
			}
			if !over {
				l.pause()
			}
		}
		if own = w.errand(); !w.post(l, agents, own) {
			return nil
		}
	}
}

// pause waits until it is time to look again, or the server has ended.
func (l *life) pause() {
	select {
	case <-l.ended:
	case <-time.After(pollEvery):
	}
}

// request makes a request and reads the answer to its end.
func (l *life) request(method, path, key string, body []byte) (answer, int, error) {
	var a answer
	req, err := http.NewRequestWithContext(l.t.Context(), method, l.url+path, bytes.NewReader(body))
	if err != nil {
		return a, 0, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	res, err := l.http.Do(req)
	if err != nil {
		return a, 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err == nil && json.Unmarshal(text, &a) != nil {
		a = answer{LoopStatus: string(text)} // Whoever complains can quote it.
	}
	return a, res.StatusCode, err
}
