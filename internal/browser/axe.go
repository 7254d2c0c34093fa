package browser

import (
	"os"
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
// page, a line each: everything in the light colours, and the contrast in the
// dark ones, which differ in nothing else.
func (b *Tab) Axe() []string {
	b.t.Helper()
	NeedAxe(b.t)
	source, err := os.ReadFile(os.Getenv(axeVariable))
	if err != nil {
		b.t.Fatal(err)
	}
	// The protocol evaluates it outside of the page's Content Security Policy.
	Evaluate[bool](b, string(source)+";true")
	b.Look("light", 1280, 900)
	found := b.axe("light", "")
	b.Look("dark", 1280, 900)
	found = append(found, b.axe("dark", `, runOnly: "color-contrast"`)...) //nolint:misspell // Its name.
	b.Look("light", 1280, 900)
	return found
}

func (b *Tab) axe(scheme, options string) []string {
	b.t.Helper()
	return Evaluate[[]string](b, `axe.run(document, {resultTypes: ["violations"]`+options+`}).then(r => r.violations
		.filter(v => v.impact === "serious" || v.impact === "critical")
		.flatMap(v => v.nodes.map(n => "`+scheme+`: " + v.id + " (" + v.impact + "): " + n.target.join(" ") + ": " + n.failureSummary.replaceAll("\n", " "))))`)
}
