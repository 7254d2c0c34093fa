// Package openai is the client of providers that speak Chat Completions: OpenAI,
// and Ollama, vLLM, llama.cpp, Gemini, OpenRouter and others that offer the same.
// It turns a conversation into their words and an answer's stream into a message;
// attempts, bounds and errors are those of package wire. It decides nothing about
// runs, and calls no tool.
package openai

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"

	"github.com/go-faster/errors"
	openai "github.com/sashabaranov/go-openai"

	"agentrun/run/model"
	"agentrun/run/model/wire"
)

const address = "https://api.openai.com/v1"

// Config is how to reach a provider; the base URL ends where /chat/completions
// follows.
type Config = wire.Config

// Client speaks to one provider.
type Client struct {
	wire *wire.Client
	key  string
}

var _ model.Client = (*Client)(nil)

// New returns a client; no connection is made. Errors: wire.ErrConfig.
func New(cfg Config) (*Client, error) {
	w, err := wire.New(cfg, address)
	if err != nil {
		return nil, err
	}
	return &Client{wire: w, key: cfg.Key}, nil
}

// Call implements model.Client.
func (c *Client) Call(ctx context.Context, req model.Request) (model.Answer, error) {
	request, kept := c.request(req)
	return c.wire.Call(ctx, func(ctx context.Context, x *wire.Exchange) (model.Answer, error) {
		config := openai.DefaultConfig(c.key)
		config.BaseURL = c.wire.BaseURL
		config.HTTPClient = sender{x, kept}
		// A provider may keep a long silence alive with any number of empty lines.
		config.EmptyMessagesLimit = math.MaxInt
		stream, err := openai.NewClientWithConfig(config).CreateChatCompletionStream(ctx, request)
		if err != nil {
			return model.Answer{}, err
		}
		defer stream.Close()
		a := assembly{exchange: x}
		if err := a.read(stream); err != nil {
			return model.Answer{Usage: a.usage}, err
		}
		return a.answer(req.Messages), nil
	})
}

// Models returns the names of the provider's models. Errors: *model.Error.
func (c *Client) Models(ctx context.Context) ([]string, error) {
	header := http.Header{}
	if c.key != "" {
		header.Set("Authorization", "Bearer "+c.key)
	}
	return c.wire.Models(ctx, "/models", header)
}

// read takes the whole stream in.
func (a *assembly) read(stream *openai.ChatCompletionStream) error {
	for {
		line, err := stream.RecvRaw()
		if errors.Is(err, io.EOF) {
			return a.complete()
		}
		if err != nil {
			return err
		}
		var c chunk
		if err := json.Unmarshal(line, &c); err != nil {
			return err
		}
		if err := a.add(c); err != nil {
			return err
		}
	}
}
