package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxResult bounds the text of a result.
const maxResult = 1 << 20

// describe makes text of a result, and says whether the tool worked.
func describe(r *sdk.CallToolResult) (text string, worked bool) {
	if r.NeedsInput() {
		return "the tool asks for more input, which nobody can give here", false
	}
	var lines []string
	said := false
	for _, content := range r.Content {
		line := describeContent(content)
		_, isText := content.(*sdk.TextContent)
		said = said || isText && line != ""
		lines = append(lines, line)
	}
	if !said && r.StructuredContent != nil {
		if data, err := json.Marshal(r.StructuredContent); err == nil {
			lines = append(lines, string(data))
		}
	}
	text = strings.Join(lines, "\n")
	if text == "" && r.IsError {
		text = "the tool failed and said nothing"
	}
	return bounded(text), !r.IsError
}

// describeContent is the content where it is text, and a line about it where it
// is not.
func describeContent(content sdk.Content) string {
	switch c := content.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.ImageContent:
		return fmt.Sprintf("[image %s, %d bytes]", c.MIMEType, len(c.Data))
	case *sdk.AudioContent:
		return fmt.Sprintf("[audio %s, %d bytes]", c.MIMEType, len(c.Data))
	case *sdk.ResourceLink:
		return fmt.Sprintf("[link %s %s]", c.URI, c.Name)
	case *sdk.EmbeddedResource:
		if c.Resource == nil {
			return "[resource]"
		}
		size := len(c.Resource.Text) + len(c.Resource.Blob)
		line := fmt.Sprintf("[resource %s %s, %d bytes]", c.Resource.URI, c.Resource.MIMEType, size)
		if c.Resource.Text != "" {
			line += "\n" + c.Resource.Text
		}
		return line
	default:
		return "[content of another kind]"
	}
}

// bounded is a text within maxResult that says how much of it is left out.
func bounded(text string) string {
	const note = 40 // what the longest one needs
	if len(text) <= maxResult {
		return text
	}
	kept := cut(text, maxResult-note)
	return fmt.Sprintf("%s\n[%d bytes left out]", kept, len(text)-len(kept))
}

// cut is the beginning of a text, of so many bytes at most. It splits no
// character.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most]
}
