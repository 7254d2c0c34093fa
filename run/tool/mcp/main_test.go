package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/go-faster/errors"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// modeVariable makes the test binary a tool server, of the kind that it names.
const modeVariable = "MCP_TEST_SERVER"

func TestMain(m *testing.M) {
	if mode := os.Getenv(modeVariable); mode != "" {
		serve(mode)
		os.Exit(0)
	}
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		removeBinary()
		os.Exit(code)
	}))
}

// serve is a tool server over standard input and output.
func serve(mode string) {
	switch mode {
	case "dies":
		fmt.Fprintln(os.Stderr, "no configuration found")
		os.Exit(3)
	case "hangs":
		fmt.Fprintln(os.Stderr, "I never answer")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "stubborn": // It ends neither at the end of its input nor at SIGTERM.
		signal.Ignore(syscall.SIGTERM)
		_ = newTestServer(context.Background(), mode).Run(context.Background(), &sdk.StdioTransport{})
		select {}
	case "garbage":
		fmt.Println("Server listening on port 8080")
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "giant":
		_, _ = os.Stdout.Write(bytes.Repeat([]byte("x"), maxMessage+1<<20))
		_, _ = io.Copy(io.Discard, os.Stdin)
	default:
		_ = newTestServer(context.Background(), mode).Run(context.Background(), &sdk.StdioTransport{})
	}
}

type handler = func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)

func textResult(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// newTestServer makes a server with tools that do well and tools that do not.
// Those that never end do when life ends.
func newTestServer(life context.Context, mode string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
	object := json.RawMessage(`{"type":"object"}`)
	add := func(name string, h handler) {
		s.AddTool(&sdk.Tool{Name: name, Description: "does " + name, InputSchema: object, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}}, h)
	}
	switch mode {
	case "many":
		for i := range maxTools + 2 {
			add(fmt.Sprintf("tool%03d", i), echo)
		}
		return s
	case "odd":
		add("a.b/c d", echo)
		add("a.b.c_d", echo)
		add(strings.Repeat("long", 30), echo)
		add(strings.Repeat("long", 30)+"er", echo)
		s.AddTool(&sdk.Tool{Name: "talker", Description: strings.Repeat("€", maxDescription), InputSchema: object}, echo)
		big := fmt.Sprintf(`{"type":"object","description":%q}`, strings.Repeat("x", maxSchema))
		s.AddTool(&sdk.Tool{Name: "big", InputSchema: json.RawMessage(big)}, echo)
		return s
	case "modern": // It knows nothing of the handshake of the usual version.
		s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
			return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
				if method == "initialize" { //nolint:misspell // the protocol's word
					return nil, &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no such method"}
				}
				return next(ctx, method, req)
			}
		})
	}
	s.AddTool(&sdk.Tool{
		Name: "echo", Description: "says the same", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true},
		InputSchema: json.RawMessage(`{"type":"object","properties":{"text":{"type":"string","description":"what to say"}},"required":["text"],"additionalProperties":false}`),
	}, echo)
	add("fail", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		r := textResult("no such city")
		r.IsError = true
		return r, nil
	})
	add("refuse", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: "these arguments never"}
	})
	addContent(add)
	addFaults(life, add)
	return s
}

func echo(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	var args struct {
		Text string `json:"text"`
	}
	if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
		return nil, err
	}
	return textResult(args.Text), nil
}

// addContent adds tools with results of all kinds.
func addContent(add func(string, handler)) {
	add("mixed", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "first"},
			&sdk.ImageContent{MIMEType: "image/png", Data: make([]byte, 1234)},
			&sdk.AudioContent{MIMEType: "audio/wav", Data: make([]byte, 5)},
			&sdk.ResourceLink{URI: "file:///a", Name: "a"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///b", MIMEType: "text/plain", Text: "inside"}},
			&sdk.TextContent{Text: "last"},
		}, StructuredContent: map[string]any{"not": "shown"}}, nil
	})
	add("structured", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{}, StructuredContent: map[string]any{"degrees": 21}}, nil
	})
	add("much", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return textResult(strings.Repeat("€", maxResult)), nil
	})
	add("silent failure", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{}, IsError: true}, nil
	})
	// It asks its client for what only a person, or a model, could give.
	add("ask", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var answers []string
		_, err := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 1, Messages: []*sdk.SamplingMessage{}}) //nolint:staticcheck // Servers still ask.
		answers = append(answers, fmt.Sprintf("sampling refused: %t", err != nil))
		_, err = r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "your password?"})
		answers = append(answers, fmt.Sprintf("elicitation refused: %t", err != nil))
		roots, err := r.Session.ListRoots(ctx, nil) //nolint:staticcheck // Servers still ask.
		answers = append(answers, fmt.Sprintf("roots: %t", err == nil && len(roots.Roots) > 0))
		_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: "x"})
		return textResult(strings.Join(answers, "; ")), nil
	})
}

// addFaults adds tools that end or upset their server.
func addFaults(life context.Context, add func(string, handler)) {
	add("die", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, strings.Repeat("noise ", keptStderr), "panic: out of luck")
		os.Exit(7)
		return nil, nil
	})
	// It tells at the pipe of its argument that it has begun, and never ends.
	add("hang", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var args struct {
			Pipe string `json:"pipe"`
		}
		_ = json.Unmarshal(r.Params.Arguments, &args)
		tell(args.Pipe, "begun")
		select {
		case <-ctx.Done():
		case <-life.Done():
		}
		tell(args.Pipe, "cancelled")
		return nil, errors.New("nothing came of it")
	})
	add("garbage", func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		fmt.Println("DEBUG: called")
		<-ctx.Done()
		return nil, ctx.Err()
	})
	add("giant", func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		_, _ = os.Stdout.Write(bytes.Repeat([]byte("x"), maxMessage+1<<20))
		<-ctx.Done()
		return nil, ctx.Err()
	})
	// All its calls wait for each other.
	var mu sync.Mutex
	waiting, all := 0, make(chan struct{})
	add("meet", func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		mu.Lock()
		if waiting++; waiting == together {
			close(all)
		}
		mu.Unlock()
		select {
		case <-all:
			return textResult("met"), nil
		case <-ctx.Done():
			return nil, errors.New("nobody came")
		}
	})
}

// tell writes a line to a pipe, unless nobody is there any more.
func tell(pipe, line string) {
	f, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	_, _ = io.WriteString(f, line+"\n")
}

// together is how many calls of meet wait for each other.
const together = 8
