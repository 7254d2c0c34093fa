package agentfile

import (
	"fmt"
	"path"
	"strings"
	"unicode"

	"github.com/go-faster/yaml"
)

// hiddenFolders are the machine's view of itself: processes, devices, the
// kernel's settings, and the sockets of its services, which a command could
// talk to by no more than seeing them. An agent gets its own of them, or none.
var hiddenFolders = []string{"/proc", "/sys", "/dev", "/run", "/var/run"}

func readPaths(p *parser, at string, n *yaml.Node) {
	p.def.Read = p.distinct(at, n, "[/opt/tools]", checkPath)
}

// checkPath returns a path that commands may read, or what is wrong with it.
func checkPath(text string) (checked, problem string) {
	clean := path.Clean(text)
	switch {
	case !path.IsAbs(text):
		return "", fmt.Sprintf("want an absolute path such as /opt/tools, have %s", quote(text))
	case strings.ContainsFunc(text, unicode.IsControl):
		return "", fmt.Sprintf("want a path without control characters, have %s", quote(text))
	case clean == "/":
		return "", fmt.Sprintf("want the folders that are needed, not all of them, have %s", quote(text))
	case isHidden(clean):
		return "", fmt.Sprintf("the machine's %s stay hidden, have %s", strings.Join(hiddenFolders, ", "), quote(text))
	case clean != text:
		return "", fmt.Sprintf("want it written as %s, have %s", quote(clean), quote(text))
	}
	return text, ""
}

func isHidden(clean string) bool {
	for _, folder := range hiddenFolders {
		if clean == folder || strings.HasPrefix(clean, folder+"/") {
			return true
		}
	}
	return false
}
