// Package anthropic is the client of Anthropic's Messages API, and of others that
// offer the same. It turns a conversation into its words and an answer's stream
// into a message; attempts, bounds and errors are those of package wire. It
// decides nothing about runs, and calls no tool.
package anthropic

import (
	"context"
	"net/http"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"agentrun/run/model"
	"agentrun/run/model/wire"
)

const address = "https://api.anthropic.com"

// Config is how to reach a provider; /v1/messages follows the base URL, which may
// have the /v1 too.
type Config = wire.Config

// Client speaks to one provider.
type Client struct {
	wire     *wire.Client
	key      string
	messages sdk.MessageService
}

var _ model.Client = (*Client)(nil)

// New returns a client; no connection is made. Errors: wire.ErrConfig.
func New(cfg Config) (*Client, error) {
	cfg.BaseURL = strings.TrimSuffix(strings.TrimRight(cfg.BaseURL, "/"), "/v1")
	w, err := wire.New(cfg, address)
	if err != nil {
		return nil, err
	}
	// The library's own client would read keys and addresses from the environment.
	options := []option.RequestOption{option.WithBaseURL(w.BaseURL), option.WithMaxRetries(0)}
	if cfg.Key != "" {
		options = append(options, option.WithAPIKey(cfg.Key))
	}
	return &Client{wire: w, key: cfg.Key, messages: sdk.NewMessageService(options...)}, nil
}

// Models returns the names of the provider's models. Errors: *model.Error.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	header := http.Header{"Anthropic-Version": {"2023-06-01"}}
	if c.key != "" {
		header.Set("X-Api-Key", c.key)
	}
	return c.wire.Models(ctx, "/v1/models", header)
}

// Call implements model.Client.
func (c *Client) Call(ctx context.Context, req model.Request) (model.Answer, error) {
	params := request(req)
	return c.wire.Call(ctx, func(ctx context.Context, x *wire.Exchange) (model.Answer, error) {
		stream := c.messages.NewStreaming(ctx, params, option.WithHTTPClient(x))
		defer stream.Close()
		a := assembly{exchange: x}
		for stream.Next() {
			if err := a.add(stream.Current()); err != nil {
				return model.Answer{Usage: a.usage()}, err
			}
		}
		err := stream.Err()
		if err == nil {
			err = a.complete()
		}
		if err != nil {
			return model.Answer{Usage: a.usage()}, err
		}
		return a.answer(req.Messages), nil
	})
}
