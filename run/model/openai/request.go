package openai

import (
	"net/url"
	"strings"

	openai "github.com/sashabaranov/go-openai"

	"agentrun/run/model"
)

// nothing stands where a message has no text: the field may not be missing.
const nothing = "(empty)"

// newStyle are the beginnings of the names of models that know their bound by
// its new name only.
var newStyle = []string{"o1", "o3", "o4", "gpt-5", "gpt-6"}

// request returns what is sent, and what goes with it that the library has no
// fields for.
func (c *Client) request(req model.Request) (openai.ChatCompletionRequest, additions) {
	request := openai.ChatCompletionRequest{
		Model:         req.Model,
		StreamOptions: &openai.StreamOptions{IncludeUsage: true},
	}
	if c.newBound(req.Model) {
		request.MaxCompletionTokens = req.MaxTokens
	} else {
		request.MaxTokens = req.MaxTokens //nolint:staticcheck // Only OpenAI has given it up.
	}
	for _, tool := range req.Tools {
		request.Tools = append(request.Tools, openai.Tool{
			Type:     openai.ToolTypeFunction,
			Function: &openai.FunctionDefinition{Name: tool.Name, Description: tool.Description, Parameters: tool.Schema},
		})
	}
	if req.Instructions != "" {
		request.Messages = append(request.Messages, openai.ChatCompletionMessage{
			Role: openai.ChatMessageRoleSystem, Content: req.Instructions,
		})
	}
	kept := additions{}
	for _, message := range req.Messages {
		if message.Role == model.RoleModel && message.Text == "" && len(message.Calls) == 0 {
			continue // The model said nothing, and providers refuse to hear so.
		}
		if extra, ok := readOpaque(message.Opaque); ok && message.Role == model.RoleModel {
			kept[len(request.Messages)] = extra
		}
		request.Messages = append(request.Messages, words(message))
	}
	return request, kept
}

// newBound says whether the bound of tokens goes by its new name, which OpenAI
// demands for some models, and others do not know.
func (c *Client) newBound(name string) bool {
	if u, err := url.Parse(c.wire.BaseURL); err == nil && u.Hostname() == "api.openai.com" {
		return true
	}
	for _, beginning := range newStyle {
		if strings.HasPrefix(name, beginning) {
			return true
		}
	}
	return false
}

// words is a message in the provider's words. That a tool failed is in its text.
func words(message model.Message) openai.ChatCompletionMessage {
	switch message.Role {
	case model.RoleTool:
		return openai.ChatCompletionMessage{
			Role: openai.ChatMessageRoleTool, ToolCallID: message.Result.CallID, Content: filled(message.Result.Text),
		}
	case model.RoleModel:
		said := openai.ChatCompletionMessage{Role: openai.ChatMessageRoleAssistant, Content: message.Text}
		for _, call := range message.Calls {
			said.ToolCalls = append(said.ToolCalls, openai.ToolCall{
				ID: call.ID, Type: openai.ToolTypeFunction,
				Function: openai.FunctionCall{Name: call.Name, Arguments: string(call.Input())},
			})
		}
		return said
	default:
		return openai.ChatCompletionMessage{Role: openai.ChatMessageRoleUser, Content: filled(message.Text)}
	}
}

func filled(text string) string {
	if text == "" {
		return nothing
	}
	return text
}
