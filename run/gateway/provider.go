package gateway

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"github.com/go-faster/errors"

	"agentrun/run/model"
)

// Dialect is what a provider of models speaks.
type Dialect string

// The dialects.
const (
	OpenAI    Dialect = "openai"
	Anthropic Dialect = "anthropic"
)

// Provider is a provider of models that programs reach as /NAME/ of the
// gateway itself.
type Provider struct {
	// Name is what its models are called by: NAME/MODEL.
	Name    string
	Dialect Dialect
	// BaseURL is where its API begins, as the clients of its dialect have it:
	// with the version at its end for OpenAI, without it for Anthropic. It may be
	// an address that Allow could not have, since it is the operator's.
	BaseURL string
	// Key is what programs never see; empty sends none.
	Key string
}

// Models are the providers of a gateway, and what their use is subject to. The
// functions are called by several goroutines at once.
type Models struct {
	Providers []Provider
	// Permit says whether a model, NAME/MODEL, may be used. What a *Denied says
	// is told the program, any other error is one of ours. nil permits all.
	Permit func(ctx context.Context, model string) error
	// Reserve is called before a model is asked for what costs tokens, with about
	// as many as the request has, and as many as it lets the answer have, 0 when it
	// does not say. What it returns is called once, with what came
	// of it, before the end of the answer is passed on; an error of it cuts the
	// answer off. Its own error is as that of Permit. nil counts nothing.
	Reserve func(ctx context.Context, model string, most model.Usage) (settle func(Call) error, err error)
}

// Call is what came of a request to a model.
type Call struct {
	// Model is NAME/MODEL.
	Model string
	// Status is the provider's, 0 when there was no answer.
	Status int
	Usage  model.Usage
	// Estimated says that the provider did not count, or was not heard out, and
	// that Usage is made of what was seen.
	Estimated bool
}

// Answered says whether the provider gave an answer of the model.
func (c Call) Answered() bool { return c.Status/100 == 2 }

// Denied is why a program may not use a model. It is the program's to read.
type Denied struct {
	// Code says it for programs, such as model_not_allowed.
	Code string
	Why  string
}

func (d *Denied) Error() string { return d.Why }

// endpoint is a part of an API that programs may use.
type endpoint struct {
	method, path string
	// free is one that costs no tokens.
	free bool
}

// endpoints are what stands behind the base URL. Whatever is not exactly one of
// them, byte by byte, does not exist: nothing is left to be read another way
// upstream.
var endpoints = map[Dialect][]endpoint{
	OpenAI: {
		{method: http.MethodPost, path: "/chat/completions"},
		{method: http.MethodPost, path: "/completions"},
		{method: http.MethodPost, path: "/responses"},
		{method: http.MethodPost, path: "/embeddings"},
		{method: http.MethodGet, path: "/models", free: true},
	},
	Anthropic: {
		{method: http.MethodPost, path: "/v1/messages"},
		{method: http.MethodPost, path: "/v1/messages/count_tokens", free: true},
		{method: http.MethodGet, path: "/v1/models", free: true},
	},
}

// endpointOf finds the endpoint of a path, which is as it was sent. Clients of
// OpenAI have the version in their base URL, as our own base URL has it.
func (p *Provider) endpointOf(method, path string) (endpoint, bool) {
	if p.Dialect == OpenAI {
		path = strings.TrimPrefix(path, "/v1")
	}
	for _, e := range endpoints[p.Dialect] {
		if e.method == method && e.path == path {
			return e, true
		}
	}
	return endpoint{}, false
}

// checkModels prepares providers by their names.
func checkModels(list []Provider) (map[string]*Provider, error) {
	all := map[string]*Provider{}
	for _, p := range list {
		// The URL itself may hold a secret in a wrong place.
		base, err := url.Parse(p.BaseURL)
		switch {
		case endpoints[p.Dialect] == nil:
			return nil, errors.Wrapf(ErrProvider, "%s: no dialect %q", p.Name, p.Dialect)
		case err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" ||
			base.User != nil || base.RawQuery != "" || base.Fragment != "":
			return nil, errors.Wrapf(ErrProvider, "%s: its base URL is none", p.Name)
		case p.Name == "" || strings.ContainsAny(p.Name, "/?#%") || all[p.Name] != nil:
			return nil, errors.Wrapf(ErrProvider, "%q: no name, or one given twice", p.Name)
		}
		p.BaseURL = strings.TrimRight(p.BaseURL, "/")
		all[p.Name] = &p
	}
	return all, nil
}
