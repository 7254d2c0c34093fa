package openai

import (
	"encoding/json"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"agentrun/run/model"
	"agentrun/run/model/wire"
)

// assembly is an answer that comes in pieces.
type assembly struct {
	exchange  *wire.Exchange
	text      strings.Builder
	refusal   strings.Builder
	reasoning strings.Builder
	calls     []*call
	finish    openai.FinishReason
	extra     json.RawMessage // of the message
	usage     model.Usage
}

// chunk is an event of the stream. The library's own type drops what it does not
// know, and takes offence at fields that nobody needs.
type chunk struct {
	Choices []struct {
		Index        int                 `json:"index"`
		FinishReason openai.FinishReason `json:"finish_reason"`
		Delta        struct {
			Content   string          `json:"content"`
			Refusal   string          `json:"refusal"`
			Reasoning string          `json:"reasoning_content"`
			ToolCalls []piece         `json:"tool_calls"`
			Extra     json.RawMessage `json:"extra_content"`
		} `json:"delta"`
	} `json:"choices"`
	Usage *openai.Usage `json:"usage"`
}

type piece struct {
	openai.ToolCall
	Extra json.RawMessage `json:"extra_content"`
}

// call is a call that comes in pieces.
type call struct {
	index     *int
	id, name  string
	arguments strings.Builder
	extra     json.RawMessage
}

// add takes a chunk in. Of several choices, which nobody asked for, the first
// one counts.
func (a *assembly) add(c chunk) error {
	if c.Usage != nil {
		a.usage = usage(c.Usage)
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		if choice.FinishReason != "" {
			a.finish = choice.FinishReason
		}
		delta := choice.Delta
		size := len(delta.Content) + len(delta.Refusal) + len(delta.Reasoning) + len(delta.Extra)
		a.text.WriteString(delta.Content)
		a.refusal.WriteString(delta.Refusal)
		a.reasoning.WriteString(delta.Reasoning)
		if len(delta.Extra) > 0 {
			a.extra = delta.Extra
		}
		for _, p := range delta.ToolCalls {
			size += len(p.ID) + len(p.Function.Name) + len(p.Function.Arguments) + len(p.Extra)
			a.call(p).add(p)
		}
		if err := a.exchange.Take(size); err != nil {
			return err
		}
	}
	return nil
}

// call returns the call that a piece belongs to, a new one if to none. The index
// says which, but some providers leave it out, and some give all calls the same.
func (a *assembly) call(p piece) *call {
	for i := len(a.calls) - 1; i >= 0; i-- {
		c := a.calls[i]
		switch {
		case p.Index != nil && c.index != nil && *p.Index != *c.index:
		case p.ID != "" && c.id != "" && p.ID != c.id:
		case p.ID == "" && p.Function.Name != "" && c.name != "" && json.Valid([]byte(c.arguments.String())):
			// A name after complete arguments begins another call.
		default:
			return c
		}
	}
	c := &call{index: p.Index}
	a.calls = append(a.calls, c)
	return c
}

func (c *call) add(p piece) {
	if c.id == "" {
		c.id = p.ID
	}
	if c.name == "" {
		c.name = p.Function.Name
	}
	if len(p.Extra) > 0 {
		c.extra = p.Extra
	}
	c.arguments.WriteString(p.Function.Arguments)
}

// complete says whether the answer is.
func (a *assembly) complete() error {
	said := a.text.Len() > 0 || a.refusal.Len() > 0 || len(a.calls) > 0
	if a.finish == "" && (!a.exchange.Done() || !said) {
		return wire.ErrIncomplete()
	}
	return nil
}

// answer returns what came.
func (a *assembly) answer(past []model.Message) model.Answer {
	message := model.Message{Role: model.RoleModel, Text: a.text.String()}
	for _, c := range a.calls {
		message.Calls = append(message.Calls, model.ToolCall{ID: c.id, Name: c.name, Arguments: c.arguments.String()})
	}
	model.FillIDs(past, message.Calls)
	if a.refusal.Len() > 0 && message.Text == "" {
		message.Text = a.refusal.String()
	}
	message.Opaque = a.opaque()
	return model.Answer{Message: message, Stop: a.stop(), Usage: a.usage}
}

// stop is why the answer ended. Some providers say "stop" after calls too.
func (a *assembly) stop() model.Stop {
	switch {
	case a.finish == openai.FinishReasonContentFilter || a.refusal.Len() > 0:
		return model.StopRefused
	case a.finish == openai.FinishReasonLength:
		return model.StopLength
	case len(a.calls) > 0:
		return model.StopCalls
	}
	return model.StopEnd
}

func usage(u *openai.Usage) model.Usage {
	counted := model.Usage{Input: int64(u.PromptTokens), Output: int64(u.CompletionTokens)}
	// Gemini has what the model thought in the total only.
	counted.Output = max(counted.Output, int64(u.TotalTokens)-counted.Input)
	if u.PromptTokensDetails != nil {
		counted.Cached = int64(u.PromptTokensDetails.CachedTokens)
	}
	return counted
}
