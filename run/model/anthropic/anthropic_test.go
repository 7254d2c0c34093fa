package anthropic

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentrun/run/model"
	"agentrun/run/model/modeltest"
	"agentrun/run/model/wire"
)

func provider(t *testing.T) modeltest.Provider {
	return modeltest.Provider{
		New:          func(cfg wire.Config) (model.Client, error) { return New(cfg) },
		Good:         recorded(t, "text"),
		Said:         "Grüße aus Köln 🌍.",
		BadArguments: recorded(t, "bad_arguments"),
		Arguments:    "{\"path\": 'a.txt',\n  oops",
		Overloaded:   recorded(t, "overloaded"),
		Why:          "Overloaded",
		BadJSON:      "event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\n\n",
		LongLine:     "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"",
		Begin:        "event: content_block_start\n" + `data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}` + "\n\n",
		Piece: func(text string) string {
			return "event: content_block_delta\n" + `data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + text + "\"}}\n\n"
		},
		WrongKey: `{"type":"error","error":{"type":"authentication_error","message":"invalid API key ` + modeltest.Key + `"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fy"}`,
		NoModel:  `{"type":"error","error":{"type":"not_found_error","message":"model: some-model"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Fz"}`,
		TooLong:  `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 213462 tokens > 200000 maximum"},"request_id":"req_011CSHoEeqs5C35K2UUqR7Ga"}`,
	}
}

func TestFaults(t *testing.T)  { modeltest.Faults(t, provider(t)) }
func TestCancels(t *testing.T) { modeltest.Cancels(t, provider(t)) }
func TestNoKeys(t *testing.T)  { modeltest.NoKeys(t, "testdata") }
func TestClock(t *testing.T)   { modeltest.Clock(t, provider(t)) }

func TestRecorded(t *testing.T) {
	call := func(id, name, arguments string) model.ToolCall {
		return model.ToolCall{ID: id, Name: name, Arguments: arguments}
	}
	for name, want := range map[string]model.Answer{
		"text": {Stop: model.StopEnd, Usage: model.Usage{Input: 2125, Cached: 1800, Output: 15}, Message: model.Message{Text: "Grüße aus Köln 🌍."}},
		"calls": {Stop: model.StopCalls, Usage: model.Usage{Input: 472, Output: 89}, Message: model.Message{
			Text: "I'll look at both.",
			Calls: []model.ToolCall{
				call("toolu_01T1x1fJ34qAmk2tNTrN7Up6", "read_file", `{"path": "a.txt"}`),
				call("toolu_01Vb6kR8sQw3nXy5ZpLd9HcE", "read_file", `{"path": "b.txt"}`),
				call("toolu_01Aq2Ws3Ed4Rf5Tg6Yh7Uj8K", "now", `{}`),
			},
		}},
		"thinking": {Stop: model.StopCalls, Usage: model.Usage{Input: 310, Output: 120}, Message: model.Message{
			Text: "Reading.", Calls: []model.ToolCall{call("toolu_01Th1nk1nGxYz", "read_file", `{"path": "a.txt"}`)}, Opaque: json.RawMessage(thought),
		}},
		"refusal":       {Stop: model.StopRefused, Usage: model.Usage{Input: 58, Output: 4}, Message: model.Message{Text: "I can't "}},
		"max_tokens":    {Stop: model.StopLength, Usage: model.Usage{Input: 14, Output: 3}, Message: model.Message{Text: "Once upon a"}},
		"bad_arguments": {Stop: model.StopLength, Usage: model.Usage{Input: 90, Output: 12}, Message: model.Message{Calls: []model.ToolCall{call("toolu_01Bad", "write_file", "{\"path\": 'a.txt',\n  oops")}}},
	} {
		t.Run(name, func(t *testing.T) {
			got, _ := modeltest.Play(t, provider(t), recorded(t, name), modeltest.Request())
			want.Message.Role, want.Attempts = model.RoleModel, 1
			if diff := cmp.Diff(want, got, cmp.Transformer("JSON", decoded)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func decoded(raw json.RawMessage) (value any) {
	if json.Unmarshal(raw, &value) != nil {
		return string(raw)
	}
	return value
}

const thought = `{"anthropic": [
	{"type": "thinking", "thinking": "The user wants <a.txt>; read it.", "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3h/+=="},
	{"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3rAFBa8cr3qpP"},
	{"type": "text", "text": "Reading."},
	{"type": "tool_use", "id": "toolu_01Th1nk1nGxYz", "name": "read_file", "input": {"path": "a.txt"}}
]}`

// What was counted before a stream broke is in the error, for all attempts.
func TestLostUsage(t *testing.T) {
	failed := modeltest.Fails(t, provider(t), recorded(t, "overloaded"), model.ErrUnavailable, "Overloaded")
	if want := (model.Usage{Input: 5 * 25, Output: 5}); failed.Usage != want {
		t.Errorf("got %+v", failed.Usage)
	}
}

func conversation() model.Request {
	return model.Request{
		Model: "claude-sonnet-4-5", Instructions: "Be brief.",
		Tools: []model.Tool{{Name: "now", Description: "The time.", Schema: json.RawMessage(`{"type":"object","properties":{},"additionalProperties":false}`)}},
		Messages: []model.Message{
			{Role: model.RoleUser, Text: "What time is it?"},
			{Role: model.RoleModel, Text: "I'll look.", Calls: []model.ToolCall{
				{ID: "a", Name: "now", Arguments: `{"zone": "UTC"}`}, {ID: "b", Name: "now", Arguments: ``}, {ID: "c", Name: "now", Arguments: `{"zone`},
			}, Opaque: json.RawMessage(`{"openai":{"extra_content":{"m":1}}}`)},
			{Role: model.RoleTool, Result: &model.ToolResult{CallID: "a", Text: "noon"}},
			{Role: model.RoleTool, Result: &model.ToolResult{CallID: "b"}},
			{Role: model.RoleTool, Result: &model.ToolResult{CallID: "c", Text: "no JSON", Failed: true}},
			{Role: model.RoleUser, Text: "And now?"},
			{Role: model.RoleModel},
			{Role: model.RoleUser, Text: " "},
			{Role: model.RoleModel, Text: "Reading.", Opaque: json.RawMessage(thought)},
			{Role: model.RoleTool, Result: &model.ToolResult{CallID: "toolu_01Th1nk1nGxYz", Text: "text"}},
		},
	}
}

func TestRequest(t *testing.T) {
	_, server := modeltest.Play(t, provider(t), recorded(t, "text"), conversation())
	path, header, body := server.Last()
	if path != "/v1/messages" || header.Get("X-Api-Key") != modeltest.Key || header.Get("Anthropic-Version") != "2023-06-01" || header.Get("User-Agent") != "agentrun" {
		t.Errorf("got %s with %v", path, header)
	}
	modeltest.FewHeaders(t, header)
	if diff := cmp.Diff(decoded(json.RawMessage(recordedRequest)), decoded(json.RawMessage(body))); diff != "" {
		t.Error(diff)
	}
}

const recordedRequest = `{
	"model": "claude-sonnet-4-5", "max_tokens": 16384, "stream": true,
	"system": [{"type": "text", "text": "Be brief."}],
	"tools": [{"name": "now", "description": "The time.", "input_schema": {"type": "object", "properties": {}, "additionalProperties": false}}],
	"messages": [
		{"role": "user", "content": [{"type": "text", "text": "What time is it?"}]},
		{"role": "assistant", "content": [
			{"type": "text", "text": "I'll look."},
			{"type": "tool_use", "id": "a", "name": "now", "input": {"zone": "UTC"}},
			{"type": "tool_use", "id": "b", "name": "now", "input": {}},
			{"type": "tool_use", "id": "c", "name": "now", "input": {"INVALID_JSON": "{\"zone"}}
		]},
		{"role": "user", "content": [
			{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "text", "text": "noon"}]},
			{"type": "tool_result", "tool_use_id": "b"},
			{"type": "tool_result", "tool_use_id": "c", "is_error": true, "content": [{"type": "text", "text": "no JSON"}]},
			{"type": "text", "text": "And now?"},
			{"type": "text", "text": "(empty)"}
		]},
		{"role": "assistant", "content": [
			{"type": "thinking", "thinking": "The user wants <a.txt>; read it.", "signature": "EqQBCgIYAhIM1gbcDa9GJwZA2b3h/+=="},
			{"type": "redacted_thinking", "data": "EmwKAhgBEgy3va3pzix/LafPsn4aDFIT2Xlxh0L5L8rLVyIwxtE3rAFBa8cr3qpP"},
			{"type": "text", "text": "Reading."},
			{"type": "tool_use", "id": "toolu_01Th1nk1nGxYz", "name": "read_file", "input": {"path": "a.txt"}}
		]},
		{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "toolu_01Th1nk1nGxYz", "content": [{"type": "text", "text": "text"}]}]}
	]
}`

// The library's own client would take these; whoever runs a server for agents
// has them set for something else, perhaps.
func TestEnvironmentDoesNotCount(t *testing.T) {
	t.Setenv("ANTHROPIC_API_KEY", "sk-ant-from-the-environment")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "from-the-environment")
	t.Setenv("ANTHROPIC_BASE_URL", "http://192.0.2.1")
	t.Setenv("ANTHROPIC_CUSTOM_HEADERS", "X-From: environment")
	p := provider(t)
	keyed := p.New
	p.New = func(cfg wire.Config) (model.Client, error) {
		cfg.Key, cfg.BaseURL = "", cfg.BaseURL+"/v1/"
		return keyed(cfg)
	}
	_, server := modeltest.Play(t, p, p.Good, modeltest.Request())
	path, header, _ := server.Last()
	if path != "/v1/messages" || header.Get("X-Api-Key")+header.Get("Authorization")+header.Get("X-From") != "" {
		t.Errorf("got %s with %v", path, header)
	}
}
