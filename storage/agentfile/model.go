package agentfile

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/go-faster/yaml"
)

var (
	modelName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*/[^\s[:cntrl:]]+$`)
	serverName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// Tools are the names of the tools that come with agentrun, sorted.
var Tools = []string{"edit_file", "fetch", "list_files", "read_file", "search", "shell", "write_file"}

func readModel(p *parser, at string, n *yaml.Node) {
	model, ok := p.text(at, n)
	if ok && !modelName.MatchString(model) {
		p.fault(n, at, "want provider/model, have %s", describe(n))
	}
	p.def.Model = model
}

func readTools(p *parser, at string, n *yaml.Node) {
	p.def.Tools = p.distinct(at, n, "[shell, read_file]", func(name string) (tool, problem string) {
		if !slices.Contains(Tools, name) {
			problem = fmt.Sprintf("no tool %s, there are %s", quote(name), strings.Join(Tools, ", "))
		}
		return name, problem
	})
}

func readToolServers(p *parser, at string, n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		p.fault(n, at, "want a list of tool servers, have %s", describe(n))
		return
	}
	if !p.enter(n) {
		return
	}
	seen := map[string]*yaml.Node{}
	for i, item := range n.Content {
		path := index(at, i)
		server, ok := p.toolServer(path, resolve(item))
		switch first := seen[server.Name]; {
		case !ok || server.Name == "":
		case first != nil:
			p.fault(item, join(path, "name"), "%s is given twice, first in line %d", server.Name, first.Line)
		default:
			seen[server.Name] = item
			p.def.MCP = append(p.def.MCP, server)
		}
	}
}

// toolServer reads a tool server; not ok when n has no fields at all.
func (p *parser) toolServer(path string, n *yaml.Node) (server ToolServer, ok bool) {
	seen := p.fields(path, n, map[string]field{
		"name": func(p *parser, at string, n *yaml.Node) {
			name, ok := p.text(at, n)
			switch {
			case ok && !serverName.MatchString(name):
				p.fault(n, at, "want a name of letters, digits, '.', '_' and '-', have %s", describe(n))
			case ok:
				server.Name = name
			}
		},
		"command": func(p *parser, at string, n *yaml.Node) { server.Command = p.command(at, n) },
		"url": func(p *parser, at string, n *yaml.Node) {
			text, ok := p.text(at, n)
			if ok && !isWebURL(text) {
				p.fault(n, at, "want an http or https URL, have %s", describe(n))
			}
			server.URL = text
		},
	})
	if n.Kind != yaml.MappingNode {
		return server, false
	}
	if seen["name"] == nil {
		p.fault(n, join(path, "name"), "missing")
	}
	if (seen["command"] == nil) == (seen["url"] == nil) {
		p.fault(n, path, "want exactly one of `command` and `url`")
	}
	return server, true
}

func isWebURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && u.Host != "" && (u.Scheme == "http" || u.Scheme == "https")
}
