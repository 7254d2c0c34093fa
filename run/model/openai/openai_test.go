package openai

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentrun/run/model"
	"agentrun/run/model/modeltest"
	"agentrun/run/model/wire"
)

func provider(t *testing.T) modeltest.Provider {
	return modeltest.Provider{
		New:          func(cfg wire.Config) (model.Client, error) { return New(cfg) },
		Good:         recorded(t, "openai_text"),
		Said:         "Grüße aus Köln 🌍.",
		BadArguments: recorded(t, "openai_bad_arguments"),
		Arguments:    "{\"path\": 'a.txt',\n  oops",
		Overloaded:   recorded(t, "openai_broken"),
		Why:          "The server had an error while processing your request.",
		BadJSON:      "data: {\"id\":\"x\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"Hel\n\ndata: [DONE]\n\n",
		LongLine:     `data: {"choices":[{"index":0,"delta":{"content":"`,
		Piece: func(text string) string {
			return `data: {"choices":[{"index":0,"delta":{"content":"` + text + "\"}}]}\n\n"
		},
		WrongKey: `{"error":{"message":"Incorrect API key provided: ` + modeltest.Key + `. You can find your API key at https://platform.openai.com/account/api-keys.",` +
			`"type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`,
		NoModel: `{"error":{"message":"The model ` + "`some-model`" + ` does not exist or you do not have access to it.","type":"invalid_request_error","param":null,"code":"model_not_found"}}`,
		TooLong: `{"error":{"message":"This model's maximum context length is 128000 tokens. However, your messages resulted in 140012 tokens. Please reduce the length of the messages.",` +
			`"type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
	}
}

func TestFaults(t *testing.T)  { modeltest.Faults(t, provider(t)) }
func TestCancels(t *testing.T) { modeltest.Cancels(t, provider(t)) }
func TestNoKeys(t *testing.T)  { modeltest.NoKeys(t, "testdata") }
func TestClock(t *testing.T)   { modeltest.Clock(t, provider(t)) }

// made stands for an ID that was made up.
const made = "made up"

func TestRecorded(t *testing.T) {
	call := func(id, name, arguments string) model.ToolCall {
		return model.ToolCall{ID: id, Name: name, Arguments: arguments}
	}
	for name, want := range map[string]model.Answer{
		"openai_text": {Stop: model.StopEnd, Usage: model.Usage{Input: 1187, Cached: 1024, Output: 9}, Message: model.Message{Text: "Grüße aus Köln 🌍."}},
		"openai_calls": {Stop: model.StopCalls, Usage: model.Usage{Input: 311, Output: 48}, Message: model.Message{Calls: []model.ToolCall{
			call("call_Yb3kV0fR6n2wTqLs8JxMzA1c", "read_file", `{"path": "a.txt"}`),
			call("call_u7PqN5dG1hXcE9oBvI4rKf2m", "read_file", `{"path": "b.txt"}`),
			call("call_0aWs2Zx4Ed6Cr8Fv1Tg3By5H", "list_files", `{}`),
		}}},
		"openai_refusal":  {Stop: model.StopRefused, Usage: model.Usage{Input: 81, Output: 11}, Message: model.Message{Text: "I'm sorry, I can't help with that."}},
		"openai_filtered": {Stop: model.StopRefused, Usage: model.Usage{Input: 66, Output: 3}, Message: model.Message{Text: "The first step"}},
		"openai_length":   {Stop: model.StopLength, Usage: model.Usage{Input: 14, Output: 3}, Message: model.Message{Text: "Once upon a"}},
		// These two are as llama.cpp's server sent them, to a small model.
		"llamacpp_text": {Stop: model.StopEnd, Usage: model.Usage{Input: 16, Output: 8}, Message: model.Message{Text: "The capital of France is Paris."}},
		"llamacpp_calls": {Stop: model.StopCalls, Usage: model.Usage{Input: 220, Cached: 1, Output: 33}, Message: model.Message{Calls: []model.ToolCall{
			call("vtNuFrkJmPdgisn2lB2McxOSba9kuTVu", "read_file", `{"path": "notes.txt"}`),
		}}},
		"ollama_text": {Stop: model.StopEnd, Usage: model.Usage{Input: 31, Output: 8}, Message: model.Message{Text: "2 + 2 = 4."}},
		"ollama_calls": {Stop: model.StopCalls, Usage: model.Usage{Input: 178, Output: 37}, Message: model.Message{Calls: []model.ToolCall{
			call("call_k3x9d0qa", "get_weather", `{"city":"Oslo"}`), call("call_7hw2m4ze", "get_weather", `{"city":"Rome"}`),
		}}},
		"gemini_text": {Stop: model.StopEnd, Usage: model.Usage{Input: 8, Output: 63}, Message: model.Message{
			Text: "Paris is the capital.", Opaque: json.RawMessage(`{"openai":{"extra_content":{"google":{"thought_signature":"EpQBCpEBAXLI2nw="}}}}`),
		}},
		"gemini_calls": {Stop: model.StopCalls, Usage: model.Usage{Input: 67, Output: 147}, Message: model.Message{
			Calls:  []model.ToolCall{call(made, "get_weather", `{"city":"Oslo"}`), call(made, "get_weather", `{"city":"Rome"}`)},
			Opaque: json.RawMessage(`{"openai":{"calls":[{"google":{"thought_signature":"CrICAdHtim827fQ="}},null]}}`),
		}},
		"openrouter_text": {Stop: model.StopEnd, Usage: model.Usage{Input: 1420, Cached: 1408, Output: 3}, Message: model.Message{Text: "Done."}},
		"vllm_text":       {Stop: model.StopEnd, Usage: model.Usage{Input: 18, Output: 3}, Message: model.Message{Text: "Yes."}},
		"vllm_calls": {Stop: model.StopCalls, Usage: model.Usage{Input: 204, Output: 35}, Message: model.Message{Calls: []model.ToolCall{
			call("chatcmpl-tool-5d2c8a1e", "read_file", `{"path": "a.txt"}`), call(made, "now", `{}`),
		}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := modeltest.Play(t, provider(t), recorded(t, name), modeltest.Request())
			want.Message.Role, want.Attempts = model.RoleModel, 1
			ids := map[string]bool{"": true}
			for i, c := range want.Message.Calls {
				if id := got.Message.Calls[i].ID; ids[id] {
					t.Errorf("the ID %q is not one", id)
				} else if ids[id] = true; c.ID == made {
					want.Message.Calls[i].ID = id
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Errors inside of a stream, in the forms that other providers than OpenAI have.
func TestErrorsInStreams(t *testing.T) {
	for name, want := range map[string]struct {
		kind error
		says string
	}{
		"llamacpp_error":   {model.ErrTooLong, "context size exceeded"},
		"openrouter_error": {model.ErrUnavailable, "Provider returned error: upstream worker died"},
	} {
		t.Run(name, func(t *testing.T) { modeltest.Fails(t, provider(t), recorded(t, name), want.kind, want.says) })
	}
}

// conversation has every kind of message in it.
func conversation() model.Request {
	return model.Request{
		Model: "gpt-4.1-mini", Instructions: "Be brief.", MaxTokens: 100,
		Tools: []model.Tool{{Name: "now", Description: "The time.", Schema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)}},
		Messages: []model.Message{
			{Role: model.RoleUser, Text: "What time is it?"},
			{Role: model.RoleModel, Text: "I'll look.", Calls: []model.ToolCall{
				{ID: "a", Name: "now", Arguments: `{"zone": "UTC"}`}, {ID: "b", Name: "now", Arguments: ``}, {ID: "c", Name: "now", Arguments: `{"zone`},
			}, Opaque: json.RawMessage(`{"openai":{"reasoning_content":"Hm.","extra_content":{"m":1},"calls":[null,{"c":2},null]}}`)},
			{Role: model.RoleTool, Result: &model.ToolResult{CallID: "a", Text: "noon"}},
			{Role: model.RoleTool, Result: &model.ToolResult{CallID: "b"}},
			{Role: model.RoleTool, Result: &model.ToolResult{CallID: "c", Text: "no JSON", Failed: true}},
			{Role: model.RoleModel},
			{Role: model.RoleUser, Text: "And now?", Opaque: json.RawMessage(`{"openai":{"extra_content":{"m":1}}}`)},
		},
	}
}

func TestRequest(t *testing.T) {
	_, server := modeltest.Play(t, provider(t), recorded(t, "openai_text"), conversation())
	path, header, body := server.Last()
	if path != "/chat/completions" || header.Get("Authorization") != "Bearer "+modeltest.Key || header.Get("User-Agent") != "agentrun" {
		t.Errorf("got %s with %v", path, header)
	}
	modeltest.FewHeaders(t, header)
	var got, want any
	if err := json.Unmarshal([]byte(body), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(recordedRequest), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

const recordedRequest = `{
	"model": "gpt-4.1-mini", "max_tokens": 100, "stream": true, "stream_options": {"include_usage": true},
	"tools": [{"type": "function", "function": {"name": "now", "description": "The time.", "parameters": {"type": "object", "properties": {}, "additionalProperties": false}}}],
	"messages": [
		{"role": "system", "content": "Be brief."},
		{"role": "user", "content": "What time is it?"},
		{"role": "assistant", "content": "I'll look.", "reasoning_content": "Hm.", "extra_content": {"m": 1}, "tool_calls": [
			{"id": "a", "type": "function", "function": {"name": "now", "arguments": "{\"zone\": \"UTC\"}"}},
			{"id": "b", "type": "function", "function": {"name": "now", "arguments": "{}"}, "extra_content": {"c": 2}},
			{"id": "c", "type": "function", "function": {"name": "now", "arguments": "{\"INVALID_JSON\":\"{\\\"zone\"}"}}
		]},
		{"role": "tool", "tool_call_id": "a", "content": "noon"},
		{"role": "tool", "tool_call_id": "b", "content": "(empty)"},
		{"role": "tool", "tool_call_id": "c", "content": "no JSON"},
		{"role": "user", "content": "And now?"}
	]
}`

// A request with additions is encoded once more: nothing else may change by it.
func TestAdditionsChangeNothingElse(t *testing.T) {
	plain := `{"max_tokens":10000000000000001,"messages":[{"role":"user","content":"<&>\u2028"},{"role":"assistant","tool_calls":[{"id":"x"}]}]}`
	got, err := additions{1: {Calls: []json.RawMessage{json.RawMessage(`{"a":1.0}`)}}}.addTo([]byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`10000000000000001`, `"content":"`, `"extra_content":{"a":1.0}`, `"id":"x"`} {
		if !strings.Contains(string(got), part) {
			t.Errorf("%s is not in %s", part, got)
		}
	}
}

func TestBoundByName(t *testing.T) {
	for _, row := range []struct {
		base, model string
		new         bool
	}{
		{"", "gpt-4.1", true}, {"https://api.openai.com/v1/", "x", true}, {"http://localhost:4000", "gpt-5-mini", true}, {"http://localhost:4000", "o3", true},
		{"http://localhost:11434/v1", "llama3.2", false}, {"https://api.openai.com.evil.test/v1", "x", false},
	} {
		c, err := New(Config{BaseURL: row.base})
		if err != nil {
			t.Fatal(err)
		}
		request, _ := c.request(model.Request{Model: row.model, MaxTokens: 7})
		text, err := json.Marshal(request)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), `"max_completion_tokens":7`) != row.new || strings.Contains(string(text), `"max_tokens":7`) == row.new {
			t.Errorf("%v: %s", row, text)
		}
	}
}

// What the library itself will not send is no reason to try again.
func TestLibraryRefuses(t *testing.T) {
	req := conversation()
	req.Model = "gpt-6-astra"
	modeltest.Refuses(t, provider(t), req, "tool calling")
}
