package anthropic

import (
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"agentrun/run/model"
)

// defaultMaxTokens is the bound of an answer that has none; the API demands one.
// It leaves room for a tool call that writes a file, and every model in service
// can do as much.
const defaultMaxTokens = 16 << 10

// nothing stands where a text has to be and there is none.
const nothing = "(empty)"

// request is what is sent.
func request(req model.Request) sdk.MessageNewParams {
	params := sdk.MessageNewParams{Model: req.Model, MaxTokens: int64(req.MaxTokens)}
	if req.MaxTokens == 0 {
		params.MaxTokens = defaultMaxTokens
	}
	if !blank(req.Instructions) {
		params.System = []sdk.TextBlockParam{{Text: req.Instructions}}
	}
	for _, tool := range req.Tools {
		one := sdk.ToolParam{Name: tool.Name, InputSchema: param.Override[sdk.ToolInputSchemaParam](tool.Schema)}
		if tool.Description != "" {
			one.Description = sdk.String(tool.Description)
		}
		params.Tools = append(params.Tools, sdk.ToolUnionParam{OfTool: &one})
	}
	for _, message := range req.Messages {
		params.Messages = join(params.Messages, role(message), blocks(message))
	}
	return params
}

// join adds blocks to the conversation. All results of a message's calls have to
// be in the one message that follows it, so neighbours of the same role are one.
func join(all []sdk.MessageParam, by sdk.MessageParamRole, list []sdk.ContentBlockParamUnion) []sdk.MessageParam {
	if len(list) == 0 {
		return all // The model said nothing, and the API refuses to hear so.
	}
	if last := len(all) - 1; last >= 0 && all[last].Role == by {
		all[last].Content = append(all[last].Content, list...)
		return all
	}
	return append(all, sdk.MessageParam{Role: by, Content: list})
}

func role(message model.Message) sdk.MessageParamRole {
	if message.Role == model.RoleModel {
		return sdk.MessageParamRoleAssistant
	}
	return sdk.MessageParamRoleUser
}

// blocks is a message in the API's words.
func blocks(message model.Message) []sdk.ContentBlockParamUnion {
	switch message.Role {
	case model.RoleTool:
		result := sdk.ToolResultBlockParam{ToolUseID: message.Result.CallID}
		if message.Result.Failed {
			result.IsError = sdk.Bool(true)
		}
		if !blank(message.Result.Text) {
			result.Content = []sdk.ToolResultBlockParamContentUnion{{OfText: &sdk.TextBlockParam{Text: message.Result.Text}}}
		}
		return []sdk.ContentBlockParamUnion{{OfToolResult: &result}}
	case model.RoleModel:
		if kept, ok := readOpaque(message.Opaque); ok {
			return kept
		}
		var list []sdk.ContentBlockParamUnion
		if !blank(message.Text) {
			list = append(list, sdk.NewTextBlock(message.Text))
		}
		for _, call := range message.Calls {
			list = append(list, sdk.NewToolUseBlock(call.ID, call.Input(), call.Name))
		}
		return list
	default:
		if blank(message.Text) {
			return []sdk.ContentBlockParamUnion{sdk.NewTextBlock(nothing)}
		}
		return []sdk.ContentBlockParamUnion{sdk.NewTextBlock(message.Text)}
	}
}

// blank says whether the API would refuse a text for having nothing in it.
func blank(text string) bool { return strings.TrimSpace(text) == "" }
