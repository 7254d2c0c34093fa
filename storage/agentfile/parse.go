package agentfile

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

var (
	envName   = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
	modelName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*/[^\s[:cntrl:]]+$`)
	toolName  = regexp.MustCompile(`^[a-z][a-z0-9_]*$`)
	plainName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

// ownVariable begins the names of environment variables that agentrun sets.
const ownVariable = "AGENTRUN_"

// Parse reads an agent file. The error is an *Error with all faults.
func Parse(source string) (File, error) {
	p := &parser{}
	if doc := p.document(source); doc != nil {
		p.file(doc)
	}
	if len(p.faults) > 0 {
		slices.SortStableFunc(p.faults, func(a, b Fault) int { return a.Line - b.Line })
		return File{}, &Error{Faults: p.faults}
	}
	return File{Source: source, Definition: p.def}, nil
}

// parser collects the definition and the faults of one file.
type parser struct {
	def    Definition
	faults []Fault
}

func (p *parser) fault(n *yaml.Node, field, format string, args ...any) {
	line := 0
	if n != nil {
		line = n.Line
	}
	p.faults = append(p.faults, Fault{Line: line, Field: field, Problem: fmt.Sprintf(format, args...)})
}

// yamlLine finds the line in the messages of the YAML library.
var yamlLine = regexp.MustCompile(`^yaml: line (\d+): (.*)$`)

// document returns the mapping at the root of the file, nil after a fault.
func (p *parser) document(source string) *yaml.Node {
	if len(source) > MaxSize {
		p.fault(nil, "", "the file is longer than %d bytes", MaxSize)
		return nil
	}
	dec := yaml.NewDecoder(strings.NewReader(source))
	var doc, next yaml.Node
	if err := dec.Decode(&doc); err != nil {
		switch m := yamlLine.FindStringSubmatch(err.Error()); {
		case err.Error() == "EOF":
			p.fault(nil, "", "the file is empty")
		case m != nil:
			line, _ := strconv.Atoi(m[1])
			p.fault(&yaml.Node{Line: line}, "", "%s", m[2])
		default:
			p.fault(nil, "", "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		}
		return nil
	}
	if dec.Decode(&next) == nil {
		p.fault(&next, "", "a second document begins here; a file has one agent")
		return nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		p.fault(root, "", "want fields such as `name:`, have %s", describe(root))
		return nil
	}
	return root
}

// field reads the value of one field.
type field func(p *parser, path string, n *yaml.Node)

// fields calls the reader of each field of a mapping and returns the nodes of
// the keys that were there.
func (p *parser) fields(path string, n *yaml.Node, known map[string]field) map[string]*yaml.Node {
	seen := map[string]*yaml.Node{}
	if n.Kind != yaml.MappingNode {
		p.fault(n, path, "want fields, have %s", describe(n))
		return seen
	}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := key.Value
		if path != "" {
			at = path + "." + key.Value
		}
		read, ok := known[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			p.fault(key, path, "a field's name must be plain text")
		case !ok:
			p.fault(key, at, "unknown field%s", suggest(key.Value, known))
		case seen[key.Value] != nil:
			p.fault(key, at, "given twice, first in line %d", seen[key.Value].Line)
		default:
			seen[key.Value] = key
			read(p, at, resolve(value))
		}
	}
	return seen
}

func (p *parser) file(root *yaml.Node) {
	seen := p.fields("", root, map[string]field{
		"name":         func(p *parser, at string, n *yaml.Node) { p.def.Name = p.text(at, n) },
		"command":      func(p *parser, at string, n *yaml.Node) { p.def.Command = p.command(at, n) },
		"env":          func(p *parser, at string, n *yaml.Node) { p.def.Env = p.env(at, n) },
		"restart":      func(p *parser, at string, n *yaml.Node) { p.def.Restart = p.boolean(at, n) },
		"model":        readModel,
		"instructions": func(p *parser, at string, n *yaml.Node) { p.def.Instructions = p.text(at, n) },
		"tools":        readTools,
		"mcp":          readToolServers,
		"limits":       readLimits,
	})
	if seen["name"] == nil {
		p.fault(nil, "name", "missing")
	}
	command, model := seen["command"], seen["model"]
	switch {
	case command != nil && model != nil:
		p.fault(model, "model", "stands beside `command` (line %d); an agent is one or the other", command.Line)
	case command == nil && model == nil:
		p.fault(nil, "", "want `command` (an agent that is a program) or `model`")
	case command != nil:
		p.onlyWith("model", seen, "instructions", "tools", "mcp")
	default:
		p.onlyWith("command", seen, "restart")
	}
}

// onlyWith refuses fields that say nothing without another one.
func (p *parser) onlyWith(other string, seen map[string]*yaml.Node, names ...string) {
	for _, name := range names {
		if n := seen[name]; n != nil {
			p.fault(n, name, "goes only with `%s`", other)
		}
	}
}

// command reads a program with its arguments, of which numbers and booleans
// mean their own text, as in [sleep, 5].
func (p *parser) command(at string, n *yaml.Node) []string {
	if n.Kind != yaml.SequenceNode {
		p.fault(n, at, "want a list such as [program, argument], have %s", describe(n))
		return nil
	}
	words := make([]string, 0, len(n.Content))
	for i, item := range n.Content {
		word := resolve(item)
		switch {
		case word.Kind != yaml.ScalarNode || word.Tag == "!!null":
			p.fault(item, fmt.Sprintf("%s[%d]", at, i), "want text, have %s", describe(word))
		case strings.ContainsRune(word.Value, 0):
			p.fault(item, fmt.Sprintf("%s[%d]", at, i), "holds a NUL character")
		}
		words = append(words, word.Value)
	}
	if len(words) == 0 || words[0] == "" {
		p.fault(n, at, "names no program")
	}
	return words
}

func (p *parser) env(at string, n *yaml.Node) map[string]string {
	env := map[string]string{}
	if n.Kind != yaml.MappingNode {
		p.fault(n, at, "want NAME: value pairs, have %s", describe(n))
		return env
	}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], resolve(n.Content[i+1])
		name := at + "." + key.Value
		switch _, twice := env[key.Value]; {
		case !envName.MatchString(key.Value):
			p.fault(key, name, "not the name of an environment variable")
		case strings.HasPrefix(key.Value, ownVariable):
			p.fault(key, name, "names that begin with %s are set by the server", ownVariable)
		case twice:
			p.fault(key, name, "given twice")
		case value.Kind != yaml.ScalarNode || value.Tag == "!!null":
			p.fault(value, name, "want text, have %s", describe(value))
		case strings.ContainsRune(value.Value, 0):
			p.fault(value, name, "holds a NUL character")
		default:
			// Numbers and booleans mean their own text here.
			env[key.Value] = value.Value
		}
	}
	return env
}

func readModel(p *parser, at string, n *yaml.Node) {
	p.def.Model = p.text(at, n)
	if n.Tag == "!!str" && !modelName.MatchString(p.def.Model) {
		p.fault(n, at, "want provider/model, have %q", p.def.Model)
	}
}

func readTools(p *parser, at string, n *yaml.Node) {
	p.def.Tools = p.texts(at, n)
	for i, name := range p.def.Tools {
		if !toolName.MatchString(name) {
			p.fault(n.Content[i], at, "%q is not the name of a tool", name)
		}
	}
}

func readToolServers(p *parser, at string, n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		p.fault(n, at, "want a list of tool servers, have %s", describe(n))
		return
	}
	for i, item := range n.Content {
		item = resolve(item)
		path := fmt.Sprintf("%s[%d]", at, i)
		var server ToolServer
		seen := p.fields(path, item, map[string]field{
			"name":    func(p *parser, at string, n *yaml.Node) { server.Name = p.text(at, n) },
			"command": func(p *parser, at string, n *yaml.Node) { server.Command = p.command(at, n) },
			"url":     func(p *parser, at string, n *yaml.Node) { server.URL = p.text(at, n) },
		})
		if item.Kind != yaml.MappingNode {
			continue
		}
		if !plainName.MatchString(server.Name) {
			p.fault(item, path+".name", "want a name of letters, digits, '.', '_' and '-'")
		}
		if (seen["command"] == nil) == (seen["url"] == nil) {
			p.fault(item, path, "want exactly one of `command` and `url`")
		}
		if u, err := url.Parse(server.URL); seen["url"] != nil && (err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https") {
			p.fault(seen["url"], path+".url", "want an http or https URL, have %q", server.URL)
		}
		p.def.MCP = append(p.def.MCP, server)
	}
}

func readLimits(p *parser, at string, n *yaml.Node) {
	p.fields(at, n, map[string]field{
		"turn":   func(p *parser, at string, n *yaml.Node) { p.def.Limits.Turn = p.duration(at, n) },
		"steps":  func(p *parser, at string, n *yaml.Node) { p.def.Limits.Steps = p.count(at, n) },
		"tokens": func(p *parser, at string, n *yaml.Node) { p.def.Limits.Tokens = p.count(at, n) },
	})
}

func (p *parser) duration(at string, n *yaml.Node) Duration {
	d, err := time.ParseDuration(n.Value)
	switch {
	case n.Kind != yaml.ScalarNode || err != nil:
		p.fault(n, at, "want a duration such as 90s, 10m or 2h, have %s", describe(n))
	case d <= 0 || d > MaxTurn:
		p.fault(n, at, "want more than 0 and at most %s, have %s", MaxTurn, d)
	}
	return Duration(d)
}
