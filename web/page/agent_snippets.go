package page

import (
	"embed"
	"encoding/json"
	"strings"
)

// snippetFiles are programs in which {{url}}, {{template}} and {{key}} stand for
// the values, each quoted as its language does.
//
//go:embed snippet
var snippetFiles embed.FS

// Snippet is a whole program that starts a run over the public API and waits
// for its end.
type Snippet struct {
	// ID tells the snippets of a page apart: curl, python or typescript.
	ID string
	// Language names the program for its readers.
	Language string
	// Text is the program.
	Text string
}

// Snippets returns ready-made programs for the agent whose template_id is given,
// at the server with this base URL and with this key, or what stands for one.
func Snippets(baseURL, templateID, key string) []Snippet {
	snippets := []Snippet{
		{"curl", "curl", snippet("curl.sh", shellQuote(baseURL), templateID, shellQuote(key))},
		{"python", "Python", snippet("python.py", jsonQuote(baseURL), jsonQuote(templateID), jsonQuote(key))},
		{"typescript", "TypeScript", snippet("typescript.ts", jsonQuote(baseURL), jsonQuote(templateID), jsonQuote(key))},
	}
	return snippets
}

func snippet(file, url, template, key string) string {
	text, err := snippetFiles.ReadFile("snippet/" + file)
	if err != nil {
		panic(err) // The file is part of the binary.
	}
	return strings.NewReplacer("{{url}}", url, "{{template}}", template, "{{key}}", key).Replace(string(text))
}

func shellQuote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// jsonQuote writes a text as Python and TypeScript read it too.
func jsonQuote(text string) string {
	var quoted strings.Builder
	encoder := json.NewEncoder(&quoted)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(text); err != nil {
		panic(err) // Every text has a JSON form.
	}
	return strings.TrimSuffix(quoted.String(), "\n")
}
