package model

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
)

// Input returns the arguments as a JSON object, which is what providers take
// when a call goes back to them as part of a conversation. Arguments that are
// none are put into one, so that the model sees what it wrote: some providers
// refuse the whole conversation for them, in every turn to come.
func (c ToolCall) Input() json.RawMessage {
	text := bytes.TrimSpace([]byte(c.Arguments))
	switch {
	case len(text) == 0:
		return json.RawMessage("{}")
	case text[0] == '{' && json.Valid(text):
		return text
	}
	// A map of two strings can always be encoded.
	wrapped, _ := json.Marshal(map[string]string{"INVALID_JSON": c.Arguments})
	return wrapped
}

// FillIDs gives an ID to every call that has none or one that is taken: some
// providers name no calls, some begin anew with every answer.
func FillIDs(past []Message, calls []ToolCall) {
	taken := map[string]bool{"": true}
	for _, message := range past {
		for _, call := range message.Calls {
			taken[call.ID] = true
		}
	}
	for i := range calls {
		if taken[calls[i].ID] {
			calls[i].ID = "call_" + rand.Text()
		}
		taken[calls[i].ID] = true
	}
}
