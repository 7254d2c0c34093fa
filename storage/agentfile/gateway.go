package agentfile

import (
	"fmt"
	"maps"
	"slices"

	"github.com/go-faster/yaml"
)

// gatewayVariables are what tells programs where models are.
var gatewayVariables = []string{
	"OPENAI_BASE_URL", "OPENAI_API_BASE", "OPENAI_API_KEY", "ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN",
}

func readGateway(p *parser, at string, n *yaml.Node) {
	p.def.Gateway = p.distinct(at, n, "[openai, anthropic]", func(name string) (provider, problem string) {
		if !serverName.MatchString(name) {
			problem = fmt.Sprintf("want the name of a provider, as in front of the / in `model`, have %s", quote(name))
		}
		return name, problem
	})
}

// gatewayBeside refuses the variables of the gateway, whose key in the file it
// is given, where other fields set them too: a program would go past it.
func (p *parser) gatewayBeside(gateway, secrets *yaml.Node) {
	if gateway == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(p.env)) {
		if slices.Contains(gatewayVariables, name) {
			p.fault(p.env[name], join("env", name), "is for `gateway` (line %d) to set", gateway.Line)
		}
	}
	for _, name := range p.def.Secrets {
		if slices.Contains(gatewayVariables, name) {
			p.fault(secrets, "secrets", "%s is for `gateway` (line %d) to set", name, gateway.Line)
		}
	}
}
