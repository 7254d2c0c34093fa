package page

import (
	"embed"
	"strings"

	"agentrun/web/gen"
)

// startFiles are agent files to begin with.
//
//go:embed start
var startFiles embed.FS

// start is an agent file to begin with.
type start struct{ ID, Name string }

var starts = []start{{"shell", "Shell one-liner"}, {"program", "Program"}, {"model", "Model"}}

// startFile is the agent file to begin with, the first for an ID that there is
// not. A model is one of the first provider that the server has.
func startFile(id string, providers []gen.Provider) (start, string) {
	chosen := starts[0]
	for _, s := range starts {
		if s.ID == id {
			chosen = s
		}
	}
	text, err := startFiles.ReadFile("start/" + chosen.ID + ".yaml")
	if err != nil {
		panic(err) // The file is part of the binary.
	}
	model := "openai/gpt-4o-mini"
	if len(providers) > 0 && providers[0].Name != "openai" {
		model = providers[0].Name + "/MODEL"
	}
	return chosen, strings.ReplaceAll(string(text), "{{model}}", model)
}
