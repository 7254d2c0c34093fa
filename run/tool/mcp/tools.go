package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"agentrun/run/model"
)

// Bounds of what a server tells of its tools.
const (
	maxTools       = 128
	maxDescription = 4 << 10
	maxSchema      = 64 << 10
)

// maxName is how long a tool's name may be at the providers.
const maxName = 64

// listing is what came of asking a server for its tools, which have its own
// names.
type listing struct {
	tools    []model.Tool
	problems []string
}

func list(ctx context.Context, session *sdk.ClientSession) (listing, error) {
	var found listing
	if caps := session.InitializeResult().Capabilities; caps == nil || caps.Tools == nil {
		found.problems = append(found.problems, "it has no tools")
		return found, nil
	}
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return listing{}, err
		}
		if len(found.tools) == maxTools {
			found.problems = append(found.problems, fmt.Sprintf("it has more than %d tools, and the others are left out", maxTools))
			break
		}
		schema, problem := argumentSchema(tool)
		if problem != "" {
			found.problems = append(found.problems, problem)
			continue
		}
		description := tool.Description
		if description == "" {
			description = tool.Title
		}
		found.tools = append(found.tools, model.Tool{
			Name: tool.Name, Description: cut(description, maxDescription), Schema: schema,
		})
	}
	slices.SortStableFunc(found.tools, func(a, b model.Tool) int { return strings.Compare(a.Name, b.Name) })
	return found, nil
}

// argumentSchema is the schema of a tool's arguments, or why the tool is left
// out for it.
func argumentSchema(tool *sdk.Tool) (schema json.RawMessage, problem string) {
	said, _ := tool.InputSchema.(map[string]any)
	if said["type"] != "object" {
		return nil, fmt.Sprintf("the tool %q is left out: its arguments are no object", cut(tool.Name, maxName))
	}
	if said["properties"] == nil {
		said["properties"] = map[string]any{} // There are providers that refuse a schema without.
	}
	schema, err := json.Marshal(said)
	if err != nil || len(schema) > maxSchema {
		return nil, fmt.Sprintf("the tool %q is left out: the schema of its arguments has more than %d KiB", cut(tool.Name, maxName), maxSchema>>10)
	}
	return schema, ""
}

// uniqueName makes of a server's and a tool's name one that all providers take
// and that is not taken.
func uniqueName(server, tool string, taken func(string) bool) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9', r == '_', r == '-':
			return r
		default:
			return '_'
		}
	}, server+"__"+tool)
	unique := name[:min(len(name), maxName)]
	for i := 2; taken(unique); i++ {
		number := fmt.Sprintf("_%d", i)
		unique = name[:min(len(name), maxName-len(number))] + number
	}
	return unique
}
