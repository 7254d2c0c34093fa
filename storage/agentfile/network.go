package agentfile

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"

	"github.com/go-faster/yaml"
)

// Network is what the agent's programs may reach. Zero means nothing.
type Network struct {
	// Allow are the hosts that may be reached over HTTP and HTTPS. Each is a host
	// name in lower case, such a name behind "*.", which stands for every name
	// below it and not for itself, or an IP address as netip writes it. None
	// stands twice.
	Allow []string `json:"allow,omitempty"`
}

const (
	// maxHost and maxLabel are the longest name of a host and the longest of its
	// labels, the parts between dots: RFC 1035, section 2.3.4. The name is
	// without the length in front and the root at the end.
	maxHost  = 253
	maxLabel = 63
	// anyBelow begins the name of a domain and stands for all names in it.
	anyBelow = "*."
)

// broadcast is every machine of the network (RFC 919, section 7).
var broadcast = netip.AddrFrom4([4]byte{255, 255, 255, 255})

func readNetwork(p *parser, at string, n *yaml.Node) {
	p.fields(at, n, map[string]field{
		"allow": func(p *parser, at string, n *yaml.Node) {
			p.def.Network.Allow = p.distinct(at, n, `[api.example.org, "*.example.com"]`, checkHost)
		},
	})
}

// checkHost returns a host as it stands in the definition, or what is wrong
// with it.
func checkHost(text string) (host, problem string) {
	if strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf }) {
		// Checked first: the lower case of a few such characters is in ASCII.
		return "", fmt.Sprintf("want ASCII, other letters in their punycode form (xn--…), have %s", quote(text))
	}
	host = strings.ToLower(text)
	if addr, err := netip.ParseAddr(host); err == nil && addr.Zone() == "" {
		if addr = addr.Unmap(); addr.IsUnspecified() || addr.IsMulticast() || addr == broadcast {
			return "", fmt.Sprintf("want the address of one machine, have %s", quote(text))
		}
		return addr.String(), ""
	}
	name, wild := strings.CutPrefix(host, anyBelow)
	inside, bracket := strings.CutPrefix(host, "[")
	switch _, err := netip.ParseAddr(strings.TrimSuffix(inside, "]")); {
	case host == "*":
		problem = `want the hosts that are needed, or all of a domain as in "*.example.org", have %s`
	case bracket && err == nil:
		problem = "want an IP address without brackets, have %s"
	case len(host) > maxHost:
		problem = fmt.Sprintf("want a host name of at most %d characters, have %%s", maxHost)
	case !isHostName(name):
		problem = "want a host name, without scheme, port or path, have %s"
	case wild && !strings.Contains(name, "."):
		problem = `want at least two labels behind "*.", as in "*.example.org", have %s`
	default:
		return host, ""
	}
	return "", fmt.Sprintf(problem, quote(text))
}

// isHostName says whether a name in lower case has the preferred syntax of RFC
// 1035, section 2.3.1, with the digits in front that RFC 1123, section 2.1,
// allows. The last label is no number, as that section says of top-level
// domains: programs take 127.1 and 0x7f.1 for addresses.
func isHostName(name string) bool {
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if label == "" || len(label) > maxLabel || label[0] == '-' || label[len(label)-1] == '-' ||
			strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" {
			return false
		}
		last = label
	}
	digits, isHex := strings.CutPrefix(last, "0x")
	return strings.Trim(digits, "0123456789") != "" && (!isHex || strings.Trim(digits, "0123456789abcdef") != "")
}
