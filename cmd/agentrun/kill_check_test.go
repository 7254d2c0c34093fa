package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// The names of the two agents of the kill test. A turn of killOnce must never
// be run twice, that of killAgain may be.
const (
	killOnce  = "once"
	killAgain = "again"
)

// Files in a run's workspace: two that are delivered, and the one in which the
// agent's program leaves a line each time that it is run.
const (
	killNote    = "note.txt"
	killData    = "data.bin"
	killEffects = "effects"
)

// settleLimit is how long a run of an earlier life may go on after the next
// server listens.
const settleLimit = 2 * time.Second

// errand is a run as a client asked for it, and what the test saw of it on the
// way. No two errands have the same input.
type errand struct {
	agent, input, note string
	data               []byte
	// id is the run's, empty while nobody was told it.
	id string
	// ended is the state in which a client first saw the run ended.
	ended string
	// settled is how long the run went on in a later life than its own, 0 when
	// a client saw its end.
	settled time.Duration
}

// delivered are the files that the run's workspace has to hold.
func (e *errand) delivered() map[string][]byte {
	return map[string][]byte{killNote: []byte(e.note + "\n"), killData: e.data}
}

// messages is the transcript of the run when its turn ended as it should.
func (e *errand) messages() []message {
	return []message{{"input_to_agent", e.input}, {"output_from_agent", e.input + ": " + e.note}}
}

// message is one of a transcript.
type message struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// finding is what there is of a run after the last restart.
type finding struct {
	status     int // of the answer to a GET
	state      string
	transcript []message
	reason     string // of a technical_error, as the operator sees it
	files      map[string][]byte
}

// effects are the lines that the run's turns left in its workspace.
func (f finding) effects() []string {
	if len(f.files[killEffects]) == 0 {
		return nil // Cut off between the opening of the file and the line.
	}
	return strings.Split(strings.TrimSuffix(string(f.files[killEffects]), "\n"), "\n")
}

// problems says what an acknowledged run lacks of what was promised.
func (e *errand) problems(f finding) []string {
	if f.status != 200 {
		return []string{fmt.Sprintf("%s is lost: GET answers %d", e, f.status)}
	}
	var found []string
	add := func(format string, args ...any) {
		found = append(found, fmt.Sprintf("%s: ", e)+fmt.Sprintf(format, args...))
	}
	switch {
	case f.state == "finished":
	case f.state == "technical_error" && e.agent == killOnce:
		if f.reason != "server stopped" {
			add("its reason is %q", f.reason)
		}
	default:
		add("it ended as %s", f.state)
	}
	if e.ended != "" && e.ended != f.state {
		add("it was %s before and is %s now", e.ended, f.state)
	}
	if e.settled > settleLimit {
		add("it went on for %v after the restart", e.settled)
	}
	if problem := e.transcriptProblem(f.state, f.transcript); problem != "" {
		add("%s", problem)
	}
	for _, problem := range append(e.fileProblems(f), e.effectProblems(f)...) {
		add("%s", problem)
	}
	return found
}

func (e *errand) String() string { return fmt.Sprintf("run %s (%s, %s)", e.id, e.agent, e.input) }

// transcriptProblem says what is wrong with a transcript beside its state. It
// has the input when the turn began, the output when it finished, and both
// only once.
func (e *errand) transcriptProblem(state string, transcript []message) string {
	lengths := map[string][]int{"running": {0, 1}, "technical_error": {1}, "finished": {2}}
	whole := e.messages()
	if !slices.Contains(lengths[state], len(transcript)) || !slices.Equal(transcript, whole[:len(transcript)]) {
		return fmt.Sprintf("it is %s with the transcript %q", state, transcript)
	}
	return ""
}

func (e *errand) fileProblems(f finding) []string {
	var found []string
	want := e.delivered()
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if content, ok := f.files[name]; !ok {
			found = append(found, name+" is lost")
		} else if !bytes.Equal(content, want[name]) {
			found = append(found, fmt.Sprintf("%s has other content: %d bytes, delivered were %d", name, len(content), len(want[name])))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		if want[name] == nil && name != killEffects {
			found = append(found, name+" is in its workspace, and nobody put it there")
		}
	}
	return found
}

// effectProblems counts the effects of the run's only turn.
func (e *errand) effectProblems(f finding) []string {
	var found []string
	lines := f.effects()
	for _, line := range lines {
		if line != e.id+" 1" {
			found = append(found, fmt.Sprintf("its workspace has the effect %q", line))
		}
	}
	if f.state == "finished" && len(lines) == 0 {
		found = append(found, "it finished without an effect")
	}
	if e.agent == killOnce && len(lines) > 1 {
		found = append(found, fmt.Sprintf("its turn had %d effects", len(lines)))
	}
	return found
}

// sharedIDs says which runs have the ID of another one.
func sharedIDs(errands []*errand) []string {
	var found []string
	owners := map[string]*errand{}
	for _, e := range errands {
		if other := owners[e.id]; other != nil {
			found = append(found, fmt.Sprintf("%s has the ID of %s", e, other))
		}
		owners[e.id] = e
	}
	return found
}

// TestKillChecker shows the checker of the kill test what must not be: it is
// no proof that it finds nothing unless it finds these.
func TestKillChecker(t *testing.T) {
	const line = "ID 1\n"
	for _, row := range []struct {
		name   string
		agent  string
		change func(*errand, *finding) // of a run that finished as it should
		want   string                  // a part of the only problem; empty when there is none
	}{
		{name: "a good run", change: func(*errand, *finding) {}},
		{name: "a turn cut off before its effect", change: func(_ *errand, f *finding) { cutOff(f); delete(f.files, killEffects) }},
		{name: "a turn cut off amid its effect", change: func(_ *errand, f *finding) { cutOff(f); f.files[killEffects] = nil }},
		{name: "a turn cut off after its effect", change: func(_ *errand, f *finding) { cutOff(f) }},
		{name: "a turn run again", agent: killAgain, change: effects(line + line)},
		{name: "settled in time", change: func(e *errand, _ *finding) { e.settled = settleLimit }},

		{name: "a lost run", want: "is lost: GET answers 404", change: func(_ *errand, f *finding) { *f = finding{status: 404} }},
		{name: "an unreadable run", want: "is lost: GET answers 502", change: func(_ *errand, f *finding) { *f = finding{status: 502} }},
		{name: "a stuck run", want: "ended as running", change: func(_ *errand, f *finding) {
			f.state, f.transcript = "running", f.transcript[:1]
		}},
		{name: "a late run", want: "it went on for 2.001s", change: func(e *errand, _ *finding) { e.settled = 2001 * time.Millisecond }},
		{name: "another outcome than before", want: "it was technical_error before", change: func(e *errand, _ *finding) { e.ended = "technical_error" }},
		{name: "a failure that has another reason", want: `its reason is "command exited`, change: func(_ *errand, f *finding) {
			cutOff(f)
			f.reason = "command exited with code 1"
		}},
		{name: "a failure that should run again", agent: killAgain, want: "ended as technical_error", change: func(_ *errand, f *finding) { cutOff(f) }},

		{name: "a lost file", want: "data.bin is lost", change: func(_ *errand, f *finding) { delete(f.files, killData) }},
		{name: "a shorter file", want: "data.bin has other content", change: func(_ *errand, f *finding) { f.files[killData] = f.files[killData][1:] }},
		{name: "a changed file", want: "note.txt has other content", change: func(_ *errand, f *finding) { f.files[killNote] = []byte("Note\n") }},
		{name: "somebody else's file", want: "nobody put it there", change: func(_ *errand, f *finding) { f.files["other"] = nil }},

		{name: "a doubled effect", want: "had 2 effects", change: effects(line + line)},
		{name: "a doubled effect of a cut-off turn", want: "had 2 effects", change: func(_ *errand, f *finding) {
			cutOff(f)
			f.files[killEffects] = []byte(line + line)
		}},
		{name: "no effect", want: "finished without an effect", change: effects("")},
		{name: "no effect of a turn run again", agent: killAgain, want: "finished without an effect", change: effects("")},
		{name: "another run's effect", want: `the effect "OTHER 1"`, change: effects("OTHER 1\n")},
		{name: "half an effect", want: `the effect "ID"`, change: effects("ID")},
		{name: "a second turn's effect", agent: killAgain, want: `the effect "ID 2"`, change: effects(line + "ID 2\n")},

		{name: "an input twice", agent: killAgain, want: "with the transcript", change: func(_ *errand, f *finding) {
			f.transcript = slices.Insert(f.transcript, 1, f.transcript[0])
		}},
		{name: "an output twice", agent: killAgain, want: "with the transcript", change: func(_ *errand, f *finding) {
			f.transcript = append(f.transcript, f.transcript[1])
		}},
		{name: "no output", want: "with the transcript", change: func(_ *errand, f *finding) { f.transcript = f.transcript[:1] }},
		{name: "a cut-off turn's output", want: "with the transcript", change: func(_ *errand, f *finding) {
			whole := f.transcript
			cutOff(f)
			f.transcript = whole
		}},
		{name: "another output", want: "with the transcript", change: func(_ *errand, f *finding) { f.transcript[1].Text = "task: no" }},
		{name: "another input", want: "with the transcript", change: func(_ *errand, f *finding) { f.transcript[0].Text = "no" }},
	} {
		t.Run(row.name, func(t *testing.T) {
			e := &errand{agent: killOnce, input: "task", note: "note", data: []byte("data"), id: "ID"}
			if row.agent != "" {
				e.agent = row.agent
			}
			f := finding{status: 200, state: "finished", transcript: e.messages(), files: e.delivered()}
			f.files[killEffects] = []byte(line)
			row.change(e, &f)
			found := e.problems(f)
			if row.want == "" && len(found) > 0 || row.want != "" && (len(found) != 1 || !strings.Contains(found[0], row.want)) {
				t.Errorf("found %q, want %q", found, row.want)
			}
		})
	}
	if found := sharedIDs([]*errand{{id: "A"}, {id: "B"}, {id: "A"}}); len(found) != 1 {
		t.Errorf("of an ID given twice it found %q", found)
	}
}

// cutOff makes of a finished run one whose turn was cut off.
func cutOff(f *finding) {
	f.state, f.reason, f.transcript = "technical_error", "server stopped", f.transcript[:1]
}

// effects replaces what a run's turns left in its workspace.
func effects(text string) func(*errand, *finding) {
	return func(_ *errand, f *finding) { f.files[killEffects] = []byte(text) }
}
