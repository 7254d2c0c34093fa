package agentfile

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/go-faster/yaml"
)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// ownVariable begins the names of environment variables that agentrun sets.
const ownVariable = "AGENTRUN_"

// command reads a program with its arguments.
func (p *parser) command(at string, n *yaml.Node) []string {
	if n.Kind != yaml.SequenceNode {
		p.fault(n, at, "want a list such as [program, argument], have %s", describe(n))
		return nil
	}
	if !p.enter(n) {
		return nil
	}
	words := make([]string, 0, len(n.Content))
	for i, item := range n.Content {
		text, problem := word(item)
		if problem != "" {
			p.fault(item, index(at, i), "%s", problem)
		}
		words = append(words, text)
	}
	if len(words) == 0 || resolve(n.Content[0]).Kind == yaml.ScalarNode && words[0] == "" {
		p.fault(n, at, "names no program")
	}
	return words
}

// word reads what a process gets as an argument or in its environment: there
// numbers and booleans mean their own text, as in [sleep, 5].
func word(n *yaml.Node) (text, problem string) {
	switch n = resolve(n); {
	case n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null":
		return "", "want text, have " + describe(n)
	case strings.ContainsRune(n.Value, 0):
		return "", "holds a NUL character"
	default:
		return n.Value, ""
	}
}

func readEnv(p *parser, at string, n *yaml.Node) {
	if n.Kind != yaml.MappingNode {
		p.fault(n, at, "want NAME: value pairs, have %s", describe(n))
		return
	}
	if !p.enter(n) {
		return
	}
	env, seen := map[string]string{}, map[string]*yaml.Node{}
	for i := 0; i < len(n.Content); i += 2 {
		key, path := n.Content[i], join(at, n.Content[i].Value)
		switch {
		case key.Kind != yaml.ScalarNode:
			p.fault(key, at, "a variable's name must be plain text")
		case !envName.MatchString(key.Value):
			p.fault(key, path, "not the name of an environment variable")
		case strings.HasPrefix(key.Value, ownVariable):
			p.fault(key, path, "names that begin with %s are set by the server", ownVariable)
		case seen[key.Value] != nil:
			p.fault(key, path, "given twice, first in line %d", seen[key.Value].Line)
		default:
			seen[key.Value] = key
			value, problem := word(n.Content[i+1])
			if problem != "" {
				p.fault(n.Content[i+1], path, "%s", problem)
			}
			env[key.Value] = value
		}
	}
	if len(env) > 0 {
		p.def.Env = env
	}
	p.env = seen
}

// envBeside refuses the variables of `env` that other fields, whose keys it is
// given, set too: one of the two values would be lost without a word.
func (p *parser) envBeside(network, secrets *yaml.Node) {
	if network != nil {
		// Sorted, so that the same file has the same faults in the same order.
		for _, name := range slices.Sorted(maps.Keys(p.env)) {
			if slices.Contains(proxyVariables, strings.ToUpper(name)) {
				p.fault(p.env[name], join("env", name), "is set by the server, since there is `network` (line %d)", network.Line)
			}
		}
	}
	for _, name := range p.def.Secrets {
		if key := p.env[name]; key != nil {
			p.fault(key, join("env", name), "stands in `secrets` (line %d) too", secrets.Line)
		}
	}
}
