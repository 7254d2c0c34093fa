package run

import (
	"strings"

	"agentrun/run/model"
	"agentrun/storage"
)

// Provider is where models are.
type Provider struct {
	Client model.Client
	// Upstream is where programs' requests go through the gateway; nil where
	// programs cannot use the provider.
	Upstream *Upstream
	// Window is how many tokens its models can read and write at once; 0 means
	// that this is not known, and shows when a request is too long.
	Window int64
	// Prices are those of its models. The first that fits counts; without one a
	// model is free.
	Prices []ModelPrice
}

// Upstream is how a provider is reached over HTTP.
type Upstream struct {
	// Dialect is openai or anthropic.
	Dialect string
	BaseURL string
	Key     string
}

// ModelPrice is the price of the models that fit a glob.
type ModelPrice struct {
	Models string
	Price  model.Price
}

func (p Provider) price(name string) model.Price {
	for _, m := range p.Prices {
		if storage.MatchModel(m.Models, name) {
			return m.Price
		}
	}
	return model.Price{}
}

// provider returns the provider of a model, and its name for the model.
func (s *Server) provider(provided string) (p Provider, name string, known bool) {
	provider, name, _ := strings.Cut(provided, "/")
	p, known = s.providers[provider]
	return p, name, known
}
