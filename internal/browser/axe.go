package browser

import (
	"os"
	"strings"
	"testing"

	"agentrun/internal/needs"
)

// axeVariable names the axe.min.js of the npm package axe-core, which looks for
// what keeps people with disabilities from using a page.
const axeVariable = "AGENTRUN_AXE"

// NeedAxe ends the test where there is no axe-core, before it began.
func NeedAxe(t testing.TB) {
	t.Helper()
	if os.Getenv(axeVariable) == "" {
		needs.Lacking(t, axeVariable+" names no axe.min.js: see .ci/axe")
	}
}

// Axe returns what axe-core finds to be of serious or critical impact on the
// page as it is, a line each.
func (b *Tab) Axe() []string {
	b.t.Helper()
	NeedAxe(b.t)
	source, err := os.ReadFile(os.Getenv(axeVariable))
	if err != nil {
		b.t.Fatal(err)
	}
	// The protocol evaluates it outside of the page's Content Security Policy.
	Evaluate[bool](b, string(source)+";true")
	found := Evaluate[string](b, `axe.run(document, {resultTypes: ["violations"]}).then(r => r.violations
		.filter(v => v.impact === "serious" || v.impact === "critical")
		.flatMap(v => v.nodes.map(n => v.id + " (" + v.impact + "): " + n.target.join(" ") + ": " + n.failureSummary.replaceAll("\n", " ")))
		.join("\n"))`)
	if found == "" {
		return nil
	}
	return strings.Split(found, "\n")
}
