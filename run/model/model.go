// Package model is the seam to models: what a model is asked and what it
// answers, whoever provides it. The providers are the packages below it; each
// speaks one dialect. The package knows nothing of runs, turns, tools' work or
// storage, and imports nothing of agentrun.
package model

import (
	"context"
	"encoding/json"
)

// Client speaks to one provider. It may be used by many goroutines.
type Client interface {
	// Call sends the request and waits for the whole answer. It makes further
	// attempts where that can help, and returns within a second after ctx ended.
	// Errors: ctx's; *Error; nothing else.
	Call(ctx context.Context, req Request) (Answer, error)

	// Models returns the names of the provider's models, asked for once. Errors:
	// ctx's; *Error.
	Models(ctx context.Context) ([]string, error)
}

// Request is what a model is asked.
type Request struct {
	// Model is the model's name as its provider knows it.
	Model string
	// Instructions are the system prompt; empty means none.
	Instructions string
	// Messages are the conversation so far. The first one is the user's, and the
	// last one is not the model's.
	Messages []Message
	// Tools are what the model may call.
	Tools []Tool
	// MaxTokens bounds the answer; 0 leaves that to the provider.
	MaxTokens int
	// Summary says that a summary of a conversation is wanted. Models read that in
	// the instructions.
	Summary bool
}

// Role says whose message it is.
type Role string

// The roles. Results of tools are messages of their own, which follow the
// model's message that has the calls.
const (
	RoleUser  Role = "user"
	RoleModel Role = "model"
	RoleTool  Role = "tool"
)

// Message is one entry of a conversation. Its JSON form is kept on disk: fields
// may be added, never renamed.
type Message struct {
	Role Role `json:"role"`
	// Text is what was said; a model's message with calls may have none.
	Text string `json:"text,omitempty"`
	// Calls are what a model wants to be done; other roles have none.
	Calls []ToolCall `json:"calls,omitempty"`
	// Result is what came of one call; RoleTool has it, and no text.
	Result *ToolResult `json:"result,omitempty"`
	// Opaque is what the provider wants back with this message as it is, such as
	// signed reasoning; nobody else reads it.
	Opaque json.RawMessage `json:"opaque,omitempty"`
}

// ToolCall is a model's wish to have a tool do something.
type ToolCall struct {
	// ID names the call within its conversation. It is never empty.
	ID   string `json:"id"`
	Name string `json:"name"`
	// Arguments are what the model wrote, which should be a JSON object, and need
	// not be.
	Arguments string `json:"arguments"`
}

// ToolResult is what came of a call.
type ToolResult struct {
	CallID string `json:"call_id"`
	Text   string `json:"text"`
	// Failed is true when Text says why nothing, or not everything, was done.
	Failed bool `json:"failed,omitempty"`
}

// Tool is what a model is told of a tool.
type Tool struct {
	Name        string
	Description string
	// Schema is the JSON Schema of the arguments, an object.
	Schema json.RawMessage
}

// Stop says why an answer ended.
type Stop string

// The reasons.
const (
	// StopEnd means that the model has said all.
	StopEnd Stop = "end"
	// StopCalls means that it waits for the results of its calls.
	StopCalls Stop = "calls"
	// StopLength means that the answer was cut at its bound of tokens.
	StopLength Stop = "length"
	// StopRefused means that the provider kept the answer back.
	StopRefused Stop = "refused"
)

// Answer is what a model said.
type Answer struct {
	// Message has RoleModel.
	Message Message
	Stop    Stop
	Usage   Usage
	// Attempts counts how often the provider was asked, at least 1.
	Attempts int
	// Lost is what was counted for attempts that came to nothing, beside Usage.
	Lost Usage
}

// Usage counts tokens. Its JSON form is kept on disk.
type Usage struct {
	// Input are all tokens of the request, those read from a cache included.
	Input int64 `json:"input"`
	// Cached are those of Input that the provider had in a cache.
	Cached int64 `json:"cached,omitempty"`
	Output int64 `json:"output"`
}

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{Input: u.Input + v.Input, Cached: u.Cached + v.Cached, Output: u.Output + v.Output}
}

// Total returns the tokens of request and answer.
func (u Usage) Total() int64 { return u.Input + u.Output }
