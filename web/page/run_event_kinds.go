package page

import (
	"encoding/json"
	"strconv"
	"strings"

	"agentrun/storage"
	"agentrun/web/gen"
)

// The tones of events, which are class names too.
const (
	toneTurn  = "turn"
	toneGood  = "good"
	toneBad   = "bad"
	toneQuiet = "quiet"
)

// eventKinds says how each kind of event is told. A kind that is missing here,
// as one of a newer server would be, is shown with its data as JSON.
var eventKinds = map[storage.EventKind]teller{
	storage.EventRunCreated:       plainly("Run created", toneQuiet),
	storage.EventFileDelivered:    telling(tellFileDelivered),
	storage.EventInputGiven:       telling(tellInput("Input %d waits for its turn", toneQuiet)),
	storage.EventInputDropped:     telling(tellInput("Input %d was dropped: no turn will accept it", toneBad)),
	storage.EventTurnStarted:      telling(tellTurnStarted),
	storage.EventCommandStderr:    telling(tellCommandText("Standard error")),
	storage.EventCommandStdout:    telling(tellCommandText("Output of the failed command")),
	storage.EventCommandExited:    telling(tellCommandExited),
	storage.EventModelAnswered:    knowing(tellModelAnswered),
	storage.EventModelCalled:      telling(tellModelCalled),
	storage.EventToolCalled:       knowing(tellToolCalled),
	storage.EventToolReturned:     knowing(tellToolReturned),
	storage.EventContextCompacted: telling(tellContextCompacted),
	storage.EventToolServerFailed: telling(tellToolServerFailed),
	storage.EventNetworkRefused:   telling(tellNetworkRefused),
	storage.EventOutputShortened:  telling(tellOutputShortened),
	storage.EventOutputNotUTF8:    plainly("Bytes of the output that are not UTF-8 were replaced by \uFFFD", toneQuiet),
	storage.EventTurnFinished:     plainly("Turn finished", toneGood),
	storage.EventTurnFailed:       because("Turn failed", toneBad),
	storage.EventTurnParked:       because("Turn cut off, to go on later", toneQuiet),
	storage.EventStopRequested:    because("Stop requested", toneTurn),
	storage.EventRunTerminated:    because("Run terminated: nothing of it is alive", toneTurn),
}

func tellFileDelivered(v *eventView, d storage.FileDelivered) {
	v.Title, v.Tone = "File delivered: "+d.Name, toneQuiet
	v.fact(bytesText(d.Size))
	if d.GivenName != "" {
		v.fact("given as " + d.GivenName)
	}
}

func tellInput(title, tone string) func(*eventView, storage.InputGiven) {
	return func(v *eventView, d storage.InputGiven) {
		v.Title, v.Tone = strings.Replace(title, "%d", strconv.FormatUint(d.Input, 10), 1), tone
	}
}

func tellTurnStarted(v *eventView, d storage.TurnStarted) {
	v.Title, v.Tone = "Turn "+strconv.Itoa(v.Turn)+" started", toneTurn
	if d.Again {
		v.Title = "Turn " + strconv.Itoa(v.Turn) + " goes on where it was cut off"
	}
	if d.Sandbox != "" {
		v.fact("sandbox: " + d.Sandbox)
	}
}

// again says whether a turn_started is of a turn that had begun before.
func again(e gen.Event) bool {
	var d storage.TurnStarted
	return json.Unmarshal(e.Data, &d) == nil && d.Again
}

func tellCommandText(title string) func(*eventView, storage.CommandText) {
	return func(v *eventView, d storage.CommandText) {
		v.Title = title
		if d.LeftOut > 0 {
			v.fact(bytesText(d.LeftOut) + " missing in the middle")
		}
		v.text("", d.Text)
	}
}

func tellCommandExited(v *eventView, d storage.CommandExited) {
	switch {
	case d.Signal != "":
		v.Title, v.Tone = "Command ended by signal "+d.Signal, toneBad
	case d.Code != 0:
		v.Title, v.Tone = "Command failed with exit code "+strconv.Itoa(d.Code), toneBad
	default:
		v.Title = "Command done"
	}
	v.fact(secondsText(d.Seconds))
}

// stops says in words why a model's answer ended, where that is worth a word.
var stops = map[string]string{"length": "cut off at its longest length", "refused": "the model refused"}

func tellModelAnswered(r *eventReader, v *eventView, d storage.ModelAnswered) {
	v.Title = "Model answered"
	v.fact(d.Model, spentText(d.Spent), secondsText(d.Seconds))
	if d.Attempts > 1 {
		v.fact(strconv.Itoa(d.Attempts) + " attempts")
	}
	if why, ok := stops[d.Stop]; ok {
		v.fact(why)
		v.Tone = toneBad
	}
	v.text("", d.Text)
	for _, call := range d.Calls {
		r.calls[call.ID] = call
		v.fact("calls " + call.Tool)
	}
}

func tellModelCalled(v *eventView, d storage.ModelCalled) {
	v.Title = "Program called a model"
	v.fact(d.Model, spentText(d.Spent))
	if d.Estimated {
		v.fact("tokens estimated: the provider did not count")
	}
	v.fact(secondsText(d.Seconds))
	switch {
	case d.Status == 0:
		v.Tone = toneBad
		v.fact("no answer")
	case d.Status != 200:
		v.Tone = toneBad
		v.fact("HTTP " + strconv.Itoa(d.Status))
	}
}

func tellToolCalled(r *eventReader, v *eventView, d storage.ToolCalled) {
	v.Title, v.Tone, v.Folded = d.Tool+" begins", toneQuiet, true
	v.text("Arguments", r.arguments(d.Call, d.Tool))
}

func tellToolReturned(r *eventReader, v *eventView, d storage.ToolReturned) {
	v.Title, v.Folded = d.Tool+" returned", true
	if d.Failed {
		v.Title, v.Tone = d.Tool+" failed", toneBad
	}
	v.fact(secondsText(d.Seconds))
	v.text("Arguments", r.arguments(d.Call, d.Tool))
	v.text("Result", d.Text)
}

// arguments are what a call was given, as the model wrote them; empty when its
// answer lies too far back.
func (r *eventReader) arguments(call, tool string) string {
	if c := r.calls[call]; c.Tool == tool {
		return c.Arguments
	}
	return ""
}

func tellContextCompacted(v *eventView, d storage.ContextCompacted) {
	v.Title, v.Folded = "A summary stands for the conversation so far", true
	v.fact(countText(int64(d.Messages), "message", "messages"), spentText(d.Spent))
	v.text("Summary", d.Summary)
}

func tellToolServerFailed(v *eventView, d storage.ToolServerFailed) {
	v.Title, v.Tone = "Tool server "+d.Server+" failed: its tools are missing in this turn", toneBad
	v.text("", d.Reason)
}

func tellNetworkRefused(v *eventView, d storage.NetworkRefused) {
	host := d.Host
	if d.Port != 0 {
		host += ":" + strconv.Itoa(int(d.Port))
	}
	v.Title, v.Tone = "Connection refused: "+host, toneBad
	v.text("", d.Reason)
}

func tellOutputShortened(v *eventView, d storage.OutputShortened) {
	v.Title, v.Tone = "Output was too long", toneBad
	v.fact(bytesText(d.LeftOut) + " left out")
}
