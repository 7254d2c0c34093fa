package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"

	"agentrun/run/model"
)

const (
	// maxCounted is how much of an answer that is no stream is kept to be counted,
	// and how long a line of one that is may be.
	maxCounted = 8 << 20
	// bytesPerToken is less than what a token has in most texts: an estimate is
	// rather too high.
	bytesPerToken = 3
)

// estimate is about how many tokens so many bytes are.
func estimate(length int) int64 { return (int64(length) + bytesPerToken - 1) / bytesPerToken }

// counter counts what an answer says that was used, as it passes.
type counter struct {
	stream bool
	// held is the beginning of a line, or of a document.
	held []byte
	// skipping is true when held grew too long to be read.
	skipping bool
	usage    model.Usage
	found    bool
	// over is true when a stream said that nothing more comes.
	over bool
	// said counts the bytes of words, for when there is nothing better.
	said int
}

// counts are the ways in which providers count. What is not there is nil.
type counts struct {
	PromptTokens     *int64 `json:"prompt_tokens"`
	CompletionTokens *int64 `json:"completion_tokens"`
	TotalTokens      *int64 `json:"total_tokens"`
	InputTokens      *int64 `json:"input_tokens"`
	OutputTokens     *int64 `json:"output_tokens"`
	CacheCreation    *int64 `json:"cache_creation_input_tokens"`
	CacheRead        *int64 `json:"cache_read_input_tokens"`
	PromptDetails    struct {
		Cached *int64 `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	InputDetails struct {
		Cached *int64 `json:"cached_tokens"`
	} `json:"input_tokens_details"`
}

// envelope is where counts stand: by themselves, in the message that a stream
// of Anthropic begins with, or in the response that one of OpenAI ends with.
type envelope struct {
	Type    string  `json:"type"`
	Usage   *counts `json:"usage"`
	Message struct {
		Usage *counts `json:"usage"`
	} `json:"message"`
	Response struct {
		Usage *counts `json:"usage"`
	} `json:"response"`
}

// take looks at the next piece of an answer.
func (c *counter) take(piece []byte) {
	if !c.stream {
		c.said += len(piece)
		c.hold(piece)
		return
	}
	for len(piece) > 0 {
		line, rest, whole := bytes.Cut(piece, []byte("\n"))
		c.hold(line)
		if piece = rest; !whole {
			return
		}
		if !c.skipping {
			c.line(c.held)
		}
		c.held, c.skipping = c.held[:0], false
	}
}

func (c *counter) hold(piece []byte) {
	if c.skipping = c.skipping || len(c.held)+len(piece) > maxCounted; c.skipping {
		c.held = nil
		return
	}
	c.held = append(c.held, piece...)
}

// line reads a line of a stream of events.
func (c *counter) line(line []byte) {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok {
		return
	}
	if data = bytes.TrimSpace(data); string(data) == "[DONE]" {
		c.over = true
		return
	}
	c.document(data)
	c.said += words(data)
}

// document reads an answer, or the data of an event.
func (c *counter) document(data []byte) {
	var e envelope
	// What does not fit is left out, and the rest read: an error of the provider,
	// or an event of another kind.
	_ = json.Unmarshal(data, &e)
	for _, u := range []*counts{e.Usage, e.Message.Usage, e.Response.Usage} {
		if u != nil {
			c.add(u)
		}
	}
	switch e.Type {
	case "message_stop", "response.completed", "response.incomplete", "response.failed":
		c.over = true
	}
}

// add takes counts, which are sums so far: later ones stand for earlier ones, a
// number that is not there for the earlier one.
func (c *counter) add(u *counts) {
	cached := c.usage.Cached
	for _, n := range []*int64{u.PromptDetails.Cached, u.InputDetails.Cached, u.CacheRead} {
		if n != nil {
			cached = *n
		}
	}
	switch {
	case u.PromptTokens != nil:
		c.usage.Input = *u.PromptTokens
	case u.InputTokens != nil:
		// Anthropic counts what came from its cache, or went there, apart.
		c.usage.Input = *u.InputTokens + value(u.CacheCreation) + value(u.CacheRead)
	}
	switch {
	case u.CompletionTokens != nil:
		c.usage.Output = *u.CompletionTokens
	case u.OutputTokens != nil:
		c.usage.Output = *u.OutputTokens
	}
	if u.PromptTokens != nil {
		// Some have what the model thought in the total only.
		c.usage.Output = max(c.usage.Output, value(u.TotalTokens)-c.usage.Input)
	}
	c.usage.Input, c.usage.Output = max(c.usage.Input, 0), max(c.usage.Output, 0)
	c.usage.Cached = min(max(cached, 0), c.usage.Input)
	c.found = c.found || u.CompletionTokens != nil || u.OutputTokens != nil || u.PromptTokens != nil
}

func value(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// result is what was used by a request of about so many tokens. What a stream
// counts before its end is not all: the words since then are added.
func (c *counter) result(input int64, whole bool) (used model.Usage, estimated bool) {
	if !c.stream && !c.skipping {
		c.document(c.held)
	}
	if c.found && (whole || !c.stream) {
		return c.usage, false
	}
	return model.Usage{
		Input: cmp.Or(c.usage.Input, input), Cached: c.usage.Cached, Output: max(c.usage.Output, estimate(c.said)),
	}, true
}

// spoken are the names of what models say in the events of a stream.
var spoken = map[string]bool{
	"content": true, "reasoning_content": true, "reasoning": true, "text": true, "thinking": true,
	"partial_json": true, "arguments": true, "delta": true, "data": true,
}

// words counts the bytes that a model says in an event.
func words(data []byte) int {
	var event any
	if json.Unmarshal(data, &event) != nil {
		return len(data)
	}
	return wordsOf(event)
}

func wordsOf(value any) int {
	total := 0
	switch v := value.(type) {
	case map[string]any:
		for name, inner := range v {
			if text, ok := inner.(string); ok && spoken[name] {
				total += len(text)
			}
			total += wordsOf(inner)
		}
	case []any:
		for _, inner := range v {
			total += wordsOf(inner)
		}
	}
	return total
}
