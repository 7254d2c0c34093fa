package anthropic

import (
	"encoding/json"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"agentrun/run/model"
	"agentrun/run/model/wire"
)

// Kinds of blocks.
const (
	kindText     = "text"
	kindCall     = "tool_use"
	kindThinking = "thinking"
	kindRedacted = "redacted_thinking"
)

// assembly is an answer that comes in pieces. The library's own makes `{}` of
// arguments that are no JSON.
type assembly struct {
	exchange *wire.Exchange
	blocks   []*block
	stop     sdk.StopReason

	input, cached, created, output int64
}

// block is a part of the answer.
type block struct {
	kind      string
	raw       json.RawMessage // as it began
	id, name  string
	text      strings.Builder // or thinking, or arguments
	signature strings.Builder
}

// add takes an event in.
func (a *assembly) add(event sdk.MessageStreamEventUnion) error {
	switch event.Type {
	case "message_start":
		u := event.Message.Usage
		a.count(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens)
	case "message_delta":
		if event.Delta.StopReason != "" {
			a.stop = event.Delta.StopReason
		}
		u := event.Usage
		a.count(u.InputTokens, u.CacheReadInputTokens, u.CacheCreationInputTokens, u.OutputTokens)
	case "content_block_start":
		return a.begin(event)
	case "content_block_delta":
		if event.Index < 0 || event.Index >= int64(len(a.blocks)) {
			return wire.Broken("the answer goes on with block %d, which never began", event.Index)
		}
		return a.exchange.Take(a.blocks[event.Index].add(event.Delta))
	}
	return nil
}

// count notes counts, which are those of the whole answer so far; what an event
// leaves out is 0 and was counted before.
func (a *assembly) count(input, cached, created, output int64) {
	a.input, a.cached = max(a.input, input), max(a.cached, cached)
	a.created, a.output = max(a.created, created), max(a.output, output)
}

func (a *assembly) begin(event sdk.MessageStreamEventUnion) error {
	if event.Index != int64(len(a.blocks)) {
		return wire.Broken("the answer begins block %d after %d blocks", event.Index, len(a.blocks))
	}
	start := event.ContentBlock
	b := &block{kind: start.Type, raw: json.RawMessage(start.RawJSON()), id: start.ID, name: start.Name}
	switch start.Type {
	case kindText:
		b.text.WriteString(start.Text)
	case kindThinking:
		b.text.WriteString(start.Thinking)
		b.signature.WriteString(start.Signature)
	}
	a.blocks = append(a.blocks, b)
	return a.exchange.Take(len(b.raw))
}

// add takes a piece of a block in, and returns its size.
func (b *block) add(delta sdk.MessageStreamEventUnionDelta) int {
	switch delta.Type {
	case "text_delta":
		b.text.WriteString(delta.Text)
	case "input_json_delta":
		b.text.WriteString(delta.PartialJSON)
	case "thinking_delta":
		b.text.WriteString(delta.Thinking)
	case "signature_delta":
		b.signature.WriteString(delta.Signature)
	}
	return len(delta.Text) + len(delta.PartialJSON) + len(delta.Thinking) + len(delta.Signature)
}

// complete says whether the answer is.
func (a *assembly) complete() error {
	if a.stop == "" {
		return wire.ErrIncomplete()
	}
	return nil
}

func (a *assembly) usage() model.Usage {
	return model.Usage{Input: a.input + a.cached + a.created, Cached: a.cached, Output: a.output}
}

// answer returns what came.
func (a *assembly) answer(past []model.Message) model.Answer {
	message := model.Message{Role: model.RoleModel}
	for _, b := range a.blocks {
		switch b.kind {
		case kindText:
			message.Text += b.text.String()
		case kindCall:
			message.Calls = append(message.Calls, model.ToolCall{ID: b.id, Name: b.name, Arguments: b.arguments()})
		}
	}
	model.FillIDs(past, message.Calls)
	message.Opaque = a.opaque(message.Calls)
	return model.Answer{Message: message, Stop: a.reason(len(message.Calls) > 0), Usage: a.usage()}
}

// arguments are what the model wrote; for a call without any the stream has no
// piece, and the block began with an empty object.
func (b *block) arguments() string {
	if b.text.Len() == 0 {
		return "{}"
	}
	return b.text.String()
}

func (a *assembly) reason(calls bool) model.Stop {
	switch {
	case a.stop == sdk.StopReasonRefusal:
		return model.StopRefused
	case a.stop == sdk.StopReasonMaxTokens, a.stop == sdk.StopReasonModelContextWindowExceeded:
		return model.StopLength
	case calls:
		return model.StopCalls
	}
	return model.StopEnd
}

// opaque is the form of model.Message.Opaque. The name keeps apart what other
// packages put there.
type opaque struct {
	Blocks []json.RawMessage `json:"anthropic"`
}

// opaque keeps an answer that has thinking in it. The API wants such blocks back
// as they were, and in their place, so all blocks are kept.
func (a *assembly) opaque(calls []model.ToolCall) json.RawMessage {
	var kept opaque
	thinks := false
	for _, b := range a.blocks {
		switch b.kind {
		case kindText:
			if !blank(b.text.String()) {
				kept.Blocks = append(kept.Blocks, encode(sdk.NewTextBlock(b.text.String())))
			}
		case kindCall:
			kept.Blocks = append(kept.Blocks, encode(sdk.NewToolUseBlock(calls[0].ID, calls[0].Input(), calls[0].Name)))
			calls = calls[1:]
		case kindThinking:
			thinks = true
			kept.Blocks = append(kept.Blocks, encode(sdk.NewThinkingBlock(b.signature.String(), b.text.String())))
		case kindRedacted:
			thinks = true
			kept.Blocks = append(kept.Blocks, b.raw)
		}
	}
	if !thinks {
		return nil
	}
	return encode(kept)
}

// encode is for values that are made of strings and of JSON that was checked.
func encode(value any) json.RawMessage {
	raw, _ := json.Marshal(value)
	return raw
}

func readOpaque(raw json.RawMessage) ([]sdk.ContentBlockParamUnion, bool) {
	var kept opaque
	if len(raw) == 0 || json.Unmarshal(raw, &kept) != nil || len(kept.Blocks) == 0 {
		return nil, false
	}
	var list []sdk.ContentBlockParamUnion
	for _, b := range kept.Blocks {
		list = append(list, param.Override[sdk.ContentBlockParamUnion](b))
	}
	return list, true
}
