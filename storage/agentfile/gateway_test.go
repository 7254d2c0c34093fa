package agentfile_test

import (
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentrun/storage/agentfile"
)

func TestGateway(t *testing.T) {
	file, err := agentfile.Parse("name: x\ncommand: [a]\ngateway: [openai, my.lab-2]\n" +
		"env: {OPENAI_MODEL: m, AIDER_MODEL: n}\nlimits: {steps: 3, tokens: 5, cost: 0.5}\n")
	if err != nil {
		t.Fatal(err)
	}
	want := agentfile.Definition{
		Name: "x", Command: []string{"a"}, Gateway: []string{"openai", "my.lab-2"},
		Env:    map[string]string{"OPENAI_MODEL": "m", "AIDER_MODEL": "n"},
		Limits: agentfile.Limits{Steps: 3, Tokens: 5, Cost: 500_000},
	}
	if diff := cmp.Diff(want, file.Definition); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestFaultsOfGateway(t *testing.T) {
	const command = "name: x\ncommand: [a]\ngateway:\n- ok\n"
	var cases []faultCase
	for _, name := range []string{"", "openai/gpt", "-a", ".", "a b", "a\n", "a%2f", "..", "é", "a?b"} {
		cases = append(cases, faultCase{name, command + "- " + strconv.Quote(name) + "\n", []string{
			"line 5: gateway[1]: want the name of a provider, as in front of the / in `model`, have " + strconv.Quote(name),
		}})
	}
	cases = append(cases,
		faultCase{"twice", command + "- ok\n", []string{"line 5: gateway[1]: ok is given twice, first in line 4"}},
		faultCase{"a text", "name: x\ncommand: [a]\ngateway: openai\n", []string{
			`line 3: gateway: want a list such as [openai, anthropic], have "openai"`,
		}},
		faultCase{"a number", "name: x\ncommand: [a]\ngateway: [5]\n", []string{"line 3: gateway[0]: want text, have 5"}},
		faultCase{"on a model", "name: x\nmodel: a/b\ngateway: [a]\n", []string{"line 3: gateway: goes only with `command`"}},
		faultCase{"its variables", command + "env:\n  OPENAI_API_KEY: a\n  ANTHROPIC_BASE_URL: b\nsecrets: [ANTHROPIC_AUTH_TOKEN]\n", []string{
			"line 6: env.OPENAI_API_KEY: is for `gateway` (line 3) to set",
			"line 7: env.ANTHROPIC_BASE_URL: is for `gateway` (line 3) to set",
			"line 8: secrets: ANTHROPIC_AUTH_TOKEN is for `gateway` (line 3) to set",
		}},
	)
	testFaults(t, cases)
}

// Without a gateway, a key for a program's own way to a model is a secret like
// any other.
func TestVariablesWithoutGateway(t *testing.T) {
	if _, err := agentfile.Parse("name: x\ncommand: [a]\nsecrets: [OPENAI_API_KEY]\nenv: {OPENAI_BASE_URL: b}\n"); err != nil {
		t.Error(err)
	}
}
