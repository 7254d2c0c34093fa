// Package usage is what the author of a client writes against the generated
// code. It is compiled and vetted, and never run.
package usage

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/oapi-codegen/runtime/types"

	"contract/client"
)

func connect(server, key string) (*client.ClientWithResponses, error) {
	return client.NewClientWithResponses(server, client.WithRequestEditorFn(
		func(_ context.Context, req *http.Request) error {
			req.Header.Set("Authorization", "Bearer "+key)
			return nil
		}))
}

// Start starts a run with a file and no input.
func Start(ctx context.Context, server, key string, template types.UUID) (types.UUID, error) {
	c, err := connect(server, key)
	if err != nil {
		return types.UUID{}, err
	}
	res, err := c.CreateAgentWithResponse(ctx, client.PublicCreateAgentRequest{
		Name:       "Nightly word count",
		TemplateId: template,
		InputText:  nil,
		Files:      &[]client.PublicAgentFileInput{{Filename: "notes.txt", ContentBase64: []byte("one two three\n")}},
	})
	switch {
	case err != nil:
		return types.UUID{}, err
	case res.JSON201 != nil:
		return res.JSON201.AgentId, nil
	case res.JSON422 != nil:
		return types.UUID{}, reason(res.JSON422)
	default:
		return types.UUID{}, errors.New(res.Status())
	}
}

// Poll returns the outputs of a run and whether it is done.
func Poll(ctx context.Context, server, key string, run types.UUID) (outputs []string, done bool, err error) {
	c, err := connect(server, key)
	if err != nil {
		return nil, false, err
	}
	res, err := c.GetAgentWithResponse(ctx, run)
	if err != nil {
		return nil, false, err
	}
	if res.JSON200 == nil {
		return nil, false, errors.New(res.Status())
	}
	for _, message := range res.JSON200.Transcript {
		if message.Role == client.OutputFromAgent {
			outputs = append(outputs, message.Text)
		}
	}
	switch res.JSON200.LoopStatus {
	case client.Running:
		return outputs, false, nil
	case client.Finished:
		return outputs, true, nil
	case client.TechnicalError, client.Terminated:
		return outputs, true, errors.New(string(res.JSON200.LoopStatus))
	default:
		return nil, false, fmt.Errorf("unknown status %q", res.JSON200.LoopStatus)
	}
}

// reason tells the two bodies of a 422 apart: only one of them has a string in detail.
func reason(refusal *client.CreateAgent422JSONResponseBody) error {
	if plain, err := refusal.AsPublicErrorResponse(); err == nil {
		return errors.New(plain.Detail)
	}
	invalid, err := refusal.AsHTTPValidationError()
	if err != nil {
		return err
	}
	var all error
	for _, issue := range invalid.Detail {
		all = errors.Join(all, fmt.Errorf("%v: %s (%s)", issue.Loc, issue.Msg, issue.Type))
	}
	return all
}
