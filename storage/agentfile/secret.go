package agentfile

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/go-faster/yaml"
)

const (
	// maxSecretName keeps a name short enough for lists and messages: the value
	// is what may be long.
	maxSecretName = 64
	// linkerVariable begins the names of variables that make ld.so(8) load
	// other code into every program.
	linkerVariable = "LD_"
)

var (
	secretName = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)
	// baseVariables are those that every command gets from the server.
	baseVariables = []string{"PATH", "HOME", "TMPDIR", "LANG"}
	// proxyVariables are what tells programs the way to the hosts of `network`.
	// Programs read them in small letters too.
	proxyVariables = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"}
)

func readSecrets(p *parser, at string, n *yaml.Node) {
	p.def.Secrets = p.distinct(at, n, "[API_TOKEN]", checkSecret)
}

// checkSecret returns the name of a secret, or what is wrong with it.
func checkSecret(name string) (checked, problem string) {
	switch {
	case len(name) > maxSecretName || !secretName.MatchString(name):
		return "", fmt.Sprintf("want a name of capital letters, digits and '_', a letter first, "+
			"of at most %d characters, have %s", maxSecretName, quote(name))
	case strings.HasPrefix(name, ownVariable):
		return "", fmt.Sprintf("names that begin with %s are set by the server, have %s", ownVariable, quote(name))
	case strings.HasPrefix(name, linkerVariable):
		return "", fmt.Sprintf("names that begin with %s are the dynamic linker's, have %s", linkerVariable, quote(name))
	case slices.Contains(baseVariables, name), slices.Contains(proxyVariables, name):
		return "", fmt.Sprintf("%s is set by the server", name)
	}
	return name, ""
}
