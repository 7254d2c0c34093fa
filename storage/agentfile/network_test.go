package agentfile_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentrun/storage/agentfile"
)

// label63 is as long as a label may be.
var label63 = strings.Repeat("a", 63)

func TestHosts(t *testing.T) {
	longest := label63 + "." + label63 + "." + label63 + "." + strings.Repeat("b", 61)
	for text, want := range map[string]string{
		"localhost": "localhost", "a": "a", "API.Example.ORG": "api.example.org", "3com.example": "3com.example", "a-b.c--d": "a-b.c--d",
		"1.2.3.4.example": "1.2.3.4.example", "xn--BCHER-kva.example": "xn--bcher-kva.example", longest: longest,
		"*.example.org": "*.example.org", "*.A.b.C": "*.a.b.c", "1.2.0xg": "1.2.0xg",
		"127.0.0.1": "127.0.0.1", "::1": "::1", "2001:DB8:0:0::1": "2001:db8::1", "::ffff:10.0.0.1": "10.0.0.1",
	} {
		file, err := agentfile.Parse("name: x\ncommand: [a]\nnetwork: {allow: [" + strconv.Quote(text) + "]}\n")
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if diff := cmp.Diff([]string{want}, file.Definition.Network.Allow); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", text, diff)
		}
	}
}

func TestFaultsOfNetwork(t *testing.T) {
	const (
		command = "name: x\ncommand: [a]\nnetwork:\n  allow:\n  - ok.example\n"
		name    = "want a host name, without scheme, port or path"
		domain  = `want at least two labels behind "*.", as in "*.example.org"`
		ascii   = "want ASCII, other letters in their punycode form (xn--…)"
		bracket = "want an IP address without brackets"
		machine = "want the address of one machine"
	)
	var cases []faultCase
	for host, want := range map[string]string{
		"": name, " ": name, "a b": name, "https://example.org": name, "example.org:443": name, "example.org/": name, "example.org/v1": name,
		"user@example.org": name, "example.org.": name, ".example.org": name, "a..b": name, "-a.b": name, "a-.b": name, "a_b.c": name,
		"example.org\n": name, "a\x00b": name, "a%2eb": name, "a*.example.org": name, "a.*.org": name, "*.*.org": name, "**.a.b": name,
		"*example.org": name, "*.": name, "*.example.org:443": name,
		"127.1": name, "256.0.0.1": name, "010.0.0.1": name, "0x7f.1": name, "0x7f000001": name, "0xcafe": name, "2130706433": name, "10.0.0.0/8": name,
		"10.0.0.1:80": name, "*.10.0.0.1": name, "fe80::1%eth0": name, "[::1]:80": name, "[::1": bracket, "[::1]": bracket,
		"[10.0.0.1]": bracket, "[example.org]": name, "1:2": name,
		"*":       `want the hosts that are needed, or all of a domain as in "*.example.org"`,
		"0.0.0.0": machine, "::": machine, "::ffff:0.0.0.0": machine, "224.0.0.1": machine, "ff02::1": machine, "255.255.255.255": machine,
		"*.com": domain, "*.localhost": domain,
		"bücher.example": ascii, "https://bücher.example/": ascii, "example。org": ascii, "\u212aelvin.example": ascii,
	} {
		cases = append(cases, faultCase{host, command + "  - " + strconv.Quote(host) + "\n", []string{
			"line 6: network.allow[1]: " + want + ", have " + strconv.Quote(host),
		}})
	}
	longLabel := label63 + "a.b"
	long := strings.Repeat(label63+".", 3) + strings.Repeat("b", 62)
	cases = append(cases,
		faultCase{"a label of 64 characters", command + "  - " + longLabel + "\n", []string{
			"line 6: network.allow[1]: " + name + `, have "` + longLabel[:40] + `…"`,
		}},
		faultCase{"254 characters", command + "  - " + long + "\n", []string{
			`line 6: network.allow[1]: want a host name of at most 253 characters, have "` + long[:40] + `…"`,
		}},
		faultCase{"a host twice", command + "  - a.b\n  - OK.Example\n", []string{
			"line 7: network.allow[2]: ok.example is given twice, first in line 5",
		}},
		faultCase{"an address twice", command + "  - 10.0.0.1\n  - ::ffff:10.0.0.1\n", []string{
			"line 7: network.allow[2]: 10.0.0.1 is given twice, first in line 6",
		}},
		faultCase{"an unknown field", command + "  deny: [a]\n", []string{"line 6: network.deny: unknown field"}},
		faultCase{"a list", "name: x\nmodel: a/b\nnetwork: [a.b]\n", []string{"line 3: network: want fields, have a list"}},
	)
	testFaults(t, cases)
}

// The server sets the variables of the proxy, whichever way they are written.
func TestProxyVariablesBesideNetwork(t *testing.T) {
	testFaults(t, []faultCase{
		{"env first", "name: x\ncommand: [a]\nenv: {no_proxy: a, Https_Proxy: b, HTTP_PROXY: c, ALL_PROXY: d, PROXY: e}\n" +
			"network: {allow: [a.b]}\n", []string{
			"line 3: env.ALL_PROXY: is set by the server, since there is `network` (line 4)",
			"line 3: env.HTTP_PROXY: is set by the server, since there is `network` (line 4)",
			"line 3: env.Https_Proxy: is set by the server, since there is `network` (line 4)",
			"line 3: env.no_proxy: is set by the server, since there is `network` (line 4)",
		}},
		{"network first", "name: x\nmodel: a/b\nnetwork: {allow: [a.b]}\nenv:\n  A: b\n  http_proxy: c\n", []string{
			"line 6: env.http_proxy: is set by the server, since there is `network` (line 3)",
		}},
		{"a network without hosts", "name: x\nmodel: a/b\nnetwork: {}\nenv: {http_proxy: c}\n", []string{
			"line 4: env.http_proxy: is set by the server, since there is `network` (line 3)",
		}},
	})
}
