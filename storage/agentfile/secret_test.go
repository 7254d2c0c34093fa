package agentfile_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agentrun/storage/agentfile"
)

func TestSecrets(t *testing.T) {
	names := []string{
		"A", "API_TOKEN", "A1", "X_", "PATHS", "HOME2", "LD", "LDX", "AGENTRUN", "AGENTRUNX", "FTP_PROXY", "PROXY", strings.Repeat("A", 64),
	}
	file, err := agentfile.Parse("name: x\ncommand: [a]\nenv: {a: b, API: c}\nsecrets: [" + strings.Join(names, ", ") + "]\n")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(names, file.Definition.Secrets); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestFaultsOfSecrets(t *testing.T) {
	const command = "name: x\ncommand: [a]\nenv: {TOKEN: t}\nsecrets:\n- OK\n"
	var cases []faultCase
	add := func(name, fault string) {
		cases = append(cases, faultCase{name, command + "- " + strconv.Quote(name) + "\n", []string{"line 6: secrets[1]: " + fault}})
	}
	for _, name := range []string{
		"", "token", "Token", "1A", "_A", "A-B", "A B", "A=B", "A\n", "A\x00", "É", "http_proxy", "ld_preload",
	} {
		add(name, "want a name of capital letters, digits and '_', a letter first, of at most 64 characters, have "+strconv.Quote(name))
	}
	add(strings.Repeat("A", 65), "want a name of capital letters, digits and '_', a letter first, of at most 64 characters, have \""+
		strings.Repeat("A", 40)+"…\"")
	for _, name := range []string{"AGENTRUN_", "AGENTRUN_RUN_ID"} {
		add(name, `names that begin with AGENTRUN_ are set by the server, have "`+name+`"`)
	}
	for _, name := range []string{"LD_", "LD_PRELOAD", "LD_LIBRARY_PATH"} {
		add(name, `names that begin with LD_ are the dynamic linker's, have "`+name+`"`)
	}
	for _, name := range []string{"PATH", "HOME", "TMPDIR", "LANG", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"} {
		add(name, name+" is set by the server")
	}
	add("OK", "OK is given twice, first in line 5")
	cases = append(cases,
		faultCase{"a variable too", command + "- TOKEN\n", []string{"line 3: env.TOKEN: stands in `secrets` (line 4) too"}},
		faultCase{"variables too, the secrets first", "name: x\nmodel: a/b\nsecrets: [B, A]\nenv:\n  A: a\n  B: b\n", []string{
			"line 5: env.A: stands in `secrets` (line 3) too", "line 6: env.B: stands in `secrets` (line 3) too",
		}},
		faultCase{"a text", "name: x\nmodel: a/b\nsecrets: TOKEN\n", []string{
			`line 3: secrets: want a list such as [API_TOKEN], have "TOKEN"`,
		}},
	)
	testFaults(t, cases)
}
