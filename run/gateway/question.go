package gateway

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/go-faster/errors"

	"agentrun/run/model"
)

// Bounds of a request to a model.
const (
	// MaxBody is how long its body may be.
	MaxBody = 32 << 20
	// BodyLimit is how long the body may take, which comes from the same machine.
	BodyLimit = 30 * time.Second
	// largeBody is how long a body is that only maxLarge requests have at once.
	largeBody = 1 << 20
	maxLarge  = 4
	// maxModel is how long the name of a model may be.
	maxModel = 256
	// maxAnswer and maxAnswers keep what a request asks for within numbers.
	maxAnswer, maxAnswers = 1 << 40, 1 << 10
)

// question is what a program wants of a model.
type question struct {
	provider *Provider
	endpoint endpoint
	query    string
	// model is NAME/MODEL; empty when the endpoint has none.
	model string
	body  []byte
	// answer is how many tokens the answer may have, as the request says; 0 when
	// it does not.
	answer int64
}

// most is about how many tokens request and answer have, as far as that is
// known.
func (a *question) most() model.Usage {
	return model.Usage{Input: estimate(len(a.body)), Output: a.answer}
}

// bounds are the fields with which a request says how long its answers may be,
// in tokens.
var bounds = []string{"max_tokens", "max_completion_tokens", "max_output_tokens"}

// bound returns how many tokens all answers together may have. A number that is
// none is left to the provider.
func bound(fields map[string]json.RawMessage) int64 {
	var most, answers int64
	for _, name := range bounds {
		var n int64
		if json.Unmarshal(fields[name], &n) == nil {
			most = max(most, min(n, maxAnswer))
		}
	}
	if json.Unmarshal(fields["n"], &answers) == nil && answers > 1 {
		most *= min(answers, maxAnswers)
	}
	return most
}

// asked finds out which endpoint of which provider a request is for.
func (g *Gateway) asked(r *http.Request) (*question, *denial) {
	path, query, _ := strings.Cut(r.RequestURI, "?")
	name, rest, _ := strings.Cut(path[1:], "/")
	p := g.models[name]
	if p == nil {
		return &question{provider: &Provider{}}, deny(http.StatusNotFound, "not_found", "no provider of the agent file (gateway) has this name")
	}
	a := &question{provider: p, query: query}
	var ok bool
	if a.endpoint, ok = p.endpointOf(r.Method, "/"+rest); !ok {
		return a, deny(http.StatusNotFound, "not_found", "the gateway passes on requests to models only, and this is no endpoint for them")
	}
	return a, nil
}

// read reads the body of a request and what matters of it.
func (a *question) read(w http.ResponseWriter, r *http.Request, g *Gateway) (done func(), refused *denial) {
	done = func() {}
	if a.endpoint.method == http.MethodGet {
		return done, nil
	}
	if coding := r.Header.Get("Content-Encoding"); coding != "" && coding != "identity" {
		return done, deny(http.StatusUnsupportedMediaType, "unsupported_encoding", "the gateway reads no compressed requests")
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(g.bodyLimit))
	body, err := io.ReadAll(io.LimitReader(r.Body, largeBody))
	if err == nil && len(body) == largeBody {
		select {
		case g.large <- struct{}{}:
			done = func() { <-g.large }
		case <-r.Context().Done():
			return done, deny(http.StatusBadRequest, "body_incomplete", "the request was given up")
		}
		var more []byte
		more, err = io.ReadAll(io.LimitReader(r.Body, MaxBody+1-largeBody))
		body = append(body, more...)
	}
	if err != nil {
		// With the deadline as it is: net/http would wait for the rest.
		return done, deny(http.StatusRequestTimeout, "body_incomplete", "the request did not come in whole, or not in time")
	}
	// From here on net/http waits for the client's end by itself.
	_ = control.SetReadDeadline(time.Time{})
	if len(body) > MaxBody {
		return done, deny(http.StatusRequestEntityTooLarge, "body_too_large", "the request is longer than 32 MiB")
	}
	return done, a.understand(body)
}

// understand reads a body, and writes it anew: a name that stands twice could
// be a second model to someone else, and so could MODEL.
func (a *question) understand(body []byte) *denial {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(body, &fields); err != nil || fields == nil {
		return deny(http.StatusBadRequest, "invalid_json", "the request is no JSON object")
	}
	var name string
	if err := json.Unmarshal(fields["model"], &name); err != nil || !plainName(name) {
		return deny(http.StatusBadRequest, "model_missing", "the request names no model")
	}
	for field := range fields {
		if field != "model" && strings.EqualFold(field, "model") || strings.EqualFold(field, "models") {
			return deny(http.StatusBadRequest, "model_ambiguous", "only the field model may name a model")
		}
	}
	if string(fields["background"]) == "true" {
		return deny(http.StatusBadRequest, "background", "the gateway passes on no requests whose answers come later")
	}
	a.model, a.answer = a.provider.Name+"/"+name, bound(fields)
	if err := a.wantUsage(fields); err != nil {
		return deny(http.StatusBadRequest, "invalid_json", "stream_options is no JSON object")
	}
	var err error
	if a.body, err = plainJSON(fields); err != nil {
		return deny(http.StatusBadRequest, "invalid_json", "the request is no JSON object")
	}
	return nil
}

// plainName says whether a model can be called so: the name goes into histories
// and messages.
func plainName(name string) bool {
	return name != "" && len(name) <= maxModel && !strings.ContainsFunc(name, func(r rune) bool {
		return unicode.IsControl(r) || unicode.IsSpace(r) || r == utf8.RuneError
	})
}

// wantUsage asks for the count of tokens, which a stream of OpenAI has only when
// the client wants it.
func (a *question) wantUsage(fields map[string]json.RawMessage) error {
	if a.provider.Dialect != OpenAI || !strings.HasSuffix(a.endpoint.path, "/completions") || string(fields["stream"]) != "true" {
		return nil
	}
	options := map[string]json.RawMessage{}
	if raw := fields["stream_options"]; raw != nil {
		if err := json.Unmarshal(raw, &options); err != nil {
			return err
		}
	}
	if options == nil {
		options = map[string]json.RawMessage{} // It was null.
	}
	options["include_usage"] = json.RawMessage("true")
	var err error
	fields["stream_options"], err = plainJSON(options)
	return err
}

// plainJSON writes fields without changing a letter of their texts.
func plainJSON(fields map[string]json.RawMessage) (json.RawMessage, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(fields); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}

// denial is why a request to a model gets no answer of one.
type denial struct {
	status    int
	code, why string
}

func deny(status int, code, why string) *denial { return &denial{status, code, why} }

// denialOf makes of an error of Permit or Reserve what the program is told.
func denialOf(err error) (refused *denial, ours bool) {
	var denied *Denied
	if errors.As(err, &denied) {
		return deny(http.StatusForbidden, denied.Code, denied.Why), false
	}
	return deny(http.StatusInternalServerError, "internal_error", "internal error"), true
}

// write answers in the provider's own form, so that its clients show the
// reason, and says that the same request would not do better.
func (d *denial) write(w http.ResponseWriter, dialect Dialect) {
	kind := "invalid_request_error"
	switch {
	case d.status == http.StatusForbidden:
		kind = "permission_error"
	case d.status == http.StatusNotFound:
		kind = "not_found_error"
	case d.status >= http.StatusInternalServerError:
		kind = "api_error"
	}
	why := "agentrun: " + d.why
	var body any = map[string]any{"error": map[string]any{"message": why, "type": kind, "param": nil, "code": d.code}}
	if dialect == Anthropic {
		body = map[string]any{"type": "error", "error": map[string]any{"type": kind, "message": why}}
	}
	text, err := json.Marshal(body)
	if err != nil {
		text = nil // Never: there are texts in it only.
	}
	w.Header().Set("Content-Type", "application/json")
	if d.status < http.StatusInternalServerError {
		w.Header().Set("X-Should-Retry", "false")
	}
	w.WriteHeader(d.status)
	_, _ = w.Write(text) // The client may have left.
}
