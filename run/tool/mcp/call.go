package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/go-faster/errors"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentrun/run/model"
)

// Call calls a tool. Whatever the model, the server or the way to it does wrong
// is a result that failed; the only error is that of ctx, and comes at once when
// it ends.
func (s *Servers) Call(ctx context.Context, call model.ToolCall) (model.ToolResult, error) {
	failed := func(format string, args ...any) (model.ToolResult, error) {
		return model.ToolResult{CallID: call.ID, Text: bounded(fmt.Sprintf(format, args...)), Failed: true}, nil
	}
	to, ok := s.behind[call.Name]
	if !ok {
		return failed("there is no tool %q", cut(call.Name, maxName))
	}
	arguments := strings.TrimSpace(call.Arguments)
	if arguments == "" {
		arguments = "{}"
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal([]byte(arguments), &object); err != nil || object == nil {
		return failed("the arguments are no JSON object")
	}
	inner, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.life, func() { cancel(errClosed) })()
	text, worked, err := to.server.call(inner, &sdk.CallToolParams{Name: to.tool, Arguments: json.RawMessage(arguments)})
	switch {
	case err != nil && ctx.Err() != nil:
		return model.ToolResult{}, ctx.Err()
	case err != nil:
		return failed("the tool server %s: %v", to.server.Name, err)
	default:
		return model.ToolResult{CallID: call.ID, Text: text, Failed: !worked}, nil
	}
}

// call calls a tool, once, and says whether it worked. A connection that turns
// out to be closed before anything was sent is made anew.
func (s *server) call(ctx context.Context, params *sdk.CallToolParams) (text string, worked bool, err error) {
	for {
		l, err := s.use(ctx)
		if err != nil {
			return "", false, err
		}
		text, worked, err = s.callOver(ctx, l, params)
		// It is what sending says, so the server has not seen the call.
		if !errors.Is(err, sdk.ErrConnectionClosed) {
			return text, worked, err
		}
		s.drop(ctx, l)
	}
}

func (s *server) callOver(ctx context.Context, l *link, params *sdk.CallToolParams) (text string, worked bool, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.CallLimit, errors.Errorf("no answer within %v", s.cfg.CallLimit))
	defer cancel()
	copied := *params // The SDK writes into it.
	result, err := l.session.CallTool(ctx, &copied)
	switch {
	case err == nil:
		text, worked = describe(result)
		return text, worked, nil
	case errors.Is(err, sdk.ErrConnectionClosed):
		return "", false, err
	default:
		return "", false, l.why(ctx, err)
	}
}
