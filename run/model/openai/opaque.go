package openai

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"

	"github.com/go-faster/errors"

	"agentrun/run/model/wire"
)

// extraContent is the field where Gemini has its signatures. It refuses a
// conversation whose calls come back without them.
const extraContent = "extra_content"

// opaque is the form of model.Message.Opaque. The name keeps apart what other
// packages put there.
type opaque struct {
	Kept *addition `json:"openai,omitempty"`
}

// addition is what goes back with a message beside what the library has fields
// for.
type addition struct {
	// Reasoning is DeepSeek's, which wants it back with the calls that it led to,
	// and only there.
	Reasoning string          `json:"reasoning_content,omitempty"`
	Extra     json.RawMessage `json:"extra_content,omitempty"`
	// Calls are the extra contents of the message's calls, in their order.
	Calls []json.RawMessage `json:"calls,omitempty"`
}

// additions are those of the messages at these places of a request.
type additions map[int]*addition

func readOpaque(raw json.RawMessage) (*addition, bool) {
	var o opaque
	if len(raw) == 0 || json.Unmarshal(raw, &o) != nil {
		return nil, false
	}
	return o.Kept, o.Kept != nil
}

func (a *assembly) opaque() json.RawMessage {
	kept := addition{Extra: a.extra}
	if len(a.calls) > 0 {
		kept.Reasoning = a.reasoning.String()
	}
	found := kept.Reasoning != "" || len(kept.Extra) > 0
	for _, c := range a.calls {
		found = found || len(c.extra) > 0
		kept.Calls = append(kept.Calls, orNull(c.extra))
	}
	if !found {
		return nil
	}
	// These are strings, and JSON that was decoded before.
	raw, _ := json.Marshal(opaque{Kept: &kept})
	return raw
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

// sender sends requests with their additions.
type sender struct {
	*wire.Exchange
	kept additions
}

// Do implements the library's HTTPDoer.
func (s sender) Do(req *http.Request) (*http.Response, error) {
	if len(s.kept) == 0 {
		return s.Exchange.Do(req)
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	if body, err = s.kept.addTo(body); err != nil {
		return nil, err
	}
	req.Body, req.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return s.Exchange.Do(req)
}

func (all additions) addTo(body []byte) ([]byte, error) {
	var request map[string]json.RawMessage
	var messages []map[string]json.RawMessage
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, errors.Wrap(err, "request")
	}
	if err := json.Unmarshal(request["messages"], &messages); err != nil {
		return nil, errors.Wrap(err, "messages")
	}
	for i, one := range all {
		if err := one.addTo(messages[i]); err != nil {
			return nil, errors.Wrapf(err, "message %d", i)
		}
	}
	var err error
	if request["messages"], err = json.Marshal(messages); err != nil {
		return nil, err
	}
	return json.Marshal(request)
}

func (one *addition) addTo(message map[string]json.RawMessage) error {
	if one.Reasoning != "" {
		// A string can always be encoded.
		message["reasoning_content"], _ = json.Marshal(one.Reasoning)
	}
	if len(one.Extra) > 0 {
		message[extraContent] = one.Extra
	}
	if len(message["tool_calls"]) == 0 {
		return nil
	}
	var calls []map[string]json.RawMessage
	if err := json.Unmarshal(message["tool_calls"], &calls); err != nil {
		return err
	}
	for i, extra := range one.Calls {
		if i < len(calls) && string(extra) != "null" {
			calls[i][extraContent] = extra
		}
	}
	var err error
	message["tool_calls"], err = json.Marshal(calls)
	return err
}
