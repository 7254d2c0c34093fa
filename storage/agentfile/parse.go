package agentfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/go-faster/yaml"
)

// maxFaults is how many faults of one file are told in full.
const maxFaults = 100

// Parse reads an agent file. The error is an *Error with all faults.
func Parse(source string) (File, error) {
	p := &parser{}
	if doc := p.document(source); doc != nil {
		p.file(doc)
	}
	if len(p.faults) > 0 {
		slices.SortStableFunc(p.faults, func(a, b Fault) int { return a.Line - b.Line })
		if p.untold > 0 {
			p.faults = append(p.faults, Fault{
				Line: p.faults[len(p.faults)-1].Line, Problem: fmt.Sprintf("and %d more faults", p.untold),
			})
		}
		return File{}, &Error{Faults: p.faults}
	}
	return File{Source: source, Definition: p.def}, nil
}

// parser collects the definition and the faults of one file.
type parser struct {
	def    Definition
	faults []Fault
	// untold counts the faults beyond maxFaults.
	untold int
	// nodes counts what was read, see enter.
	nodes int
	// limits and env are the keys that were there in `limits` and `env`.
	limits, env map[string]*yaml.Node
}

func (p *parser) fault(n *yaml.Node, field, format string, args ...any) {
	p.faultAt(n.Line, field, format, args...)
}

func (p *parser) faultAt(line int, field, format string, args ...any) {
	if len(p.faults) == maxFaults {
		p.untold++
		return
	}
	p.faults = append(p.faults, Fault{Line: line, Field: field, Problem: fmt.Sprintf(format, args...)})
}

// enter says whether the items of a list or mapping may be read. A file has
// fewer of them than bytes, unless its aliases stand for the same ones again
// and again: a few bytes can stand for more than fits in memory.
func (p *parser) enter(n *yaml.Node) bool {
	before := p.nodes
	p.nodes += len(n.Content)
	if before <= MaxSize && p.nodes > MaxSize {
		p.fault(n, "", "the file's aliases stand for too much; write out what is meant")
	}
	return p.nodes <= MaxSize
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
	if !p.enter(n) {
		return seen
	}
	for i := 0; i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := join(path, key.Value)
		read, ok := known[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			p.fault(key, path, "a field's name must be plain text")
		case !ok:
			p.fault(key, at, "unknown field%s", p.suggest(key.Value, known))
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
		"name":         readName,
		"command":      func(p *parser, at string, n *yaml.Node) { p.def.Command = p.command(at, n) },
		"env":          readEnv,
		"restart":      func(p *parser, at string, n *yaml.Node) { p.def.Restart = p.boolean(at, n) },
		"model":        readModel,
		"instructions": func(p *parser, at string, n *yaml.Node) { p.def.Instructions, _ = p.text(at, n) },
		"tools":        readTools,
		"mcp":          readToolServers,
		"gateway":      readGateway,
		"network":      readNetwork,
		"secrets":      readSecrets,
		"read":         readPaths,
		"limits":       readLimits,
	})
	if seen["name"] == nil {
		p.faultAt(0, "name", "missing")
	}
	command, model := seen["command"], seen["model"]
	switch {
	case command != nil && model != nil:
		p.fault(model, "model", "stands beside `command` (line %d); an agent is one or the other", command.Line)
	case command == nil && model == nil:
		p.faultAt(0, "", "want `command` (an agent that is a program) or `model`")
	case command != nil:
		p.onlyWith("model", "", seen, "instructions", "tools", "mcp")
		if seen["gateway"] == nil {
			p.onlyWith("model` or `gateway", "limits", p.limits, "steps", "tokens", "cost")
		}
	default:
		p.onlyWith("command", "", seen, "restart", "gateway")
	}
	p.envBeside(seen["network"], seen["secrets"])
	p.gatewayBeside(seen["gateway"], seen["secrets"])
}

// onlyWith refuses fields that say nothing without another one.
func (p *parser) onlyWith(other, path string, seen map[string]*yaml.Node, names ...string) {
	for _, name := range names {
		if n := seen[name]; n != nil {
			p.fault(n, join(path, name), "goes only with `%s`", other)
		}
	}
}

func readName(p *parser, at string, n *yaml.Node) {
	name, ok := p.text(at, n)
	if ok && strings.TrimSpace(name) == "" {
		p.fault(n, at, "is empty")
	}
	p.def.Name = name
}
