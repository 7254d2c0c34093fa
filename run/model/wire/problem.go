package wire

import (
	"encoding/json"
	"net/http"
	"strings"

	"agentrun/run/model"
)

// problem is what a provider says is wrong, whichever way it says so.
type problem struct {
	text   string
	code   string // its codes and types, in lower case
	status int    // as it says itself; 0 when it does not
}

// body has the forms that errors come in:
//
//	{"error": {"message", "type", "code", "status", "metadata": {"raw"}}}   most
//	{"error": "text"}                                      Ollama
//	{"object": "error", "message", "type", "code"}         vLLM
//	{"detail": "text" or anything}                         servers made with FastAPI
//	[{"error": …}]                                         Gemini
type body struct {
	Error   json.RawMessage `json:"error"`
	Object  string          `json:"object"`
	Message string          `json:"message"`
	Detail  json.RawMessage `json:"detail"`
}

// none are the values of a field that says that nothing is wrong.
var none = map[string]bool{"": true, "null": true, `""`: true, "{}": true, "false": true}

type details struct {
	Message  json.RawMessage `json:"message"`
	Type     json.RawMessage `json:"type"`
	Code     json.RawMessage `json:"code"`
	Status   json.RawMessage `json:"status"`
	Metadata struct {
		Raw json.RawMessage `json:"raw"`
	} `json:"metadata"`
}

// readProblem reads JSON; false means that it is no error.
func readProblem(text []byte) (problem, bool) {
	var list []json.RawMessage
	if json.Unmarshal(text, &list) == nil && len(list) > 0 {
		text = list[0]
	}
	var b body
	if json.Unmarshal(text, &b) != nil {
		return problem{}, false
	}
	switch {
	case !none[string(b.Error)]:
		return readDetails(b.Error), true
	case b.Object == "error" || b.Message != "":
		return readDetails(text), true
	case len(b.Detail) > 0:
		return problem{text: plain(b.Detail)}, true
	}
	return problem{}, false
}

func readDetails(text json.RawMessage) problem {
	var d details
	if json.Unmarshal(text, &d) != nil {
		return problem{text: plain(text)}
	}
	p := problem{text: plain(d.Message)}
	if p.text == "" {
		p.text = string(text)
	}
	if raw := plain(d.Metadata.Raw); raw != "" {
		p.text += ": " + raw // OpenRouter: what the provider behind it said
	}
	var number int
	if json.Unmarshal(d.Code, &number) == nil && number >= 400 && number < 600 {
		p.status = number
	}
	p.code = strings.ToLower(plain(d.Type) + " " + plain(d.Code) + " " + plain(d.Status))
	for name, status := range statuses {
		if p.status == 0 && strings.Contains(p.code, name) {
			p.status = status
		}
	}
	return p
}

// plain is the text of a JSON string, or JSON of another kind as it is.
func plain(value json.RawMessage) string {
	var text string
	if json.Unmarshal(value, &text) == nil {
		return text
	}
	return string(value)
}

// statuses are those of the errors that come inside of a stream by their name.
// No name is a part of another.
var statuses = map[string]int{
	"invalid_request_error": http.StatusBadRequest,
	"authentication_error":  http.StatusUnauthorized,
	"billing_error":         http.StatusPaymentRequired,
	"permission_error":      http.StatusForbidden,
	"not_found_error":       http.StatusNotFound,
	"request_too_large":     http.StatusRequestEntityTooLarge,
	"rate_limit":            http.StatusTooManyRequests,
}

// tooLong are the codes and the words for a request that is too long. What
// matches only one provider names it.
var tooLong = []string{
	"context_length_exceeded",          // OpenAI, vLLM
	"exceed_context_size",              // llama.cpp
	"exceeds the available context",    // llama.cpp, older
	"context size has been exceeded",   // LM Studio
	"maximum context length",           // OpenAI, vLLM, OpenRouter, Mistral
	"max context length",               // Ollama's cloud
	"context window",                   // OpenAI, Anthropic
	"exceed context limit",             // Anthropic, with max_tokens
	"prompt is too long",               // Anthropic
	"maximum number of tokens allowed", // Gemini
	"request_too_large",                // Anthropic
}

// kind says what the problem means, for an answer of a status.
func (p problem) kind(status int) error {
	words := p.code + " " + strings.ToLower(p.text)
	switch {
	case status == http.StatusTooManyRequests && strings.Contains(words, "insufficient_quota"):
		// OpenAI: an account without money, which waiting does not change.
		return model.ErrRefused
	case status == http.StatusRequestEntityTooLarge:
		return model.ErrTooLong
	case status == 0, status == http.StatusBadRequest, status == http.StatusUnprocessableEntity, status == http.StatusInternalServerError:
		for _, known := range tooLong {
			if strings.Contains(words, known) {
				return model.ErrTooLong
			}
		}
	}
	switch {
	case status >= 500, status < 300:
		return model.ErrUnavailable
	case status == http.StatusRequestTimeout, status == http.StatusConflict, status == http.StatusTooManyRequests:
		return model.ErrUnavailable
	}
	return model.ErrRefused
}
