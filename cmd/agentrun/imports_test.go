package main

import (
	"encoding/json"
	"io"
	"os/exec"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/go-faster/errors"
)

const module = "agentrun"

// room is what a package may import of agentrun in code that is not a test.
type room struct {
	imports []string
	// kit is true for packages that only tests may import.
	kit bool
	// generated packages carry no comment of ours.
	generated bool
}

// rooms are the packages of the module, by their folder, with the arrows
// between them. A new package is declared here first.
var rooms = map[string]room{
	".": {},

	"cmd/agentrun": {imports: []string{
		"gen", "poll", "handler", "web", "web/gen", "web/page", "web/asset", "web/reference", "run", "run/command", "run/sandbox", "run/secret",
		"run/model", "run/model/openai", "run/model/anthropic", "run/model/script",
		"storage", "storage/agentfile", "storage/kv", "storage/kv/bolt", "storage/workspace",
	}},
	"cmd/openapijson": {},

	"handler":               {imports: []string{"gen", "storage", "storage/workspace"}},
	"web":                   {imports: []string{"web/gen", "storage", "storage/workspace", "storage/agentfile"}},
	"web/page":              {imports: []string{"web/gen", "web/asset", "web/markup", "storage", "storage/agentfile"}},
	"web/asset":             {},
	"web/reference":         {imports: []string{"web/asset"}},
	"web/markup":            {},
	"web/markup/markuptest": {kit: true},
	"run": {imports: []string{
		"storage", "storage/agentfile", "storage/workspace", "run/command", "run/gateway", "run/sandbox", "run/secret",
		"run/model", "run/tool", "run/tool/mcp", "run/turn",
	}},

	"poll": {imports: []string{"gen"}},

	"gen":     {generated: true},
	"web/gen": {generated: true},

	"internal/needs":   {kit: true},
	"internal/browser": {kit: true, imports: []string{"internal/needs"}},

	"run/command":             {imports: []string{"run/sandbox"}},
	"run/model":               {},
	"run/model/wire":          {imports: []string{"run/model"}},
	"run/model/openai":        {imports: []string{"run/model", "run/model/wire"}},
	"run/model/anthropic":     {imports: []string{"run/model", "run/model/wire"}},
	"run/model/modeltest":     {kit: true, imports: []string{"run/model", "run/model/wire"}},
	"run/model/script":        {imports: []string{"run/model"}},
	"run/turn":                {imports: []string{"run/model"}},
	"run/sandbox":             {},
	"run/sandbox/sandboxtest": {imports: []string{"run/sandbox"}, kit: true},
	"run/gateway":             {imports: []string{"run/model"}},
	"run/tool/mcp":            {imports: []string{"run/model", "run/sandbox"}},
	"run/secret":              {},
	"run/tool":                {imports: []string{"run/model", "run/sandbox", "storage/workspace"}},

	"storage":           {imports: []string{"storage/kv", "storage/agentfile"}},
	"storage/agentfile": {},
	"storage/kv":        {},
	"storage/kv/bolt":   {imports: []string{"storage/kv"}},
	"storage/kv/kvtest": {imports: []string{"storage/kv"}, kit: true},
	"storage/workspace": {},
	"storage/storagetest": {kit: true, imports: []string{
		"storage", "storage/agentfile", "storage/kv", "storage/kv/bolt", "storage/kv/kvtest", "storage/workspace",
	}},
}

// restricted are packages from elsewhere that only some rooms may import,
// directly or any package below them.
var restricted = map[string][]string{
	"github.com/modelcontextprotocol/go-sdk": {"run/tool/mcp"},
	"github.com/alexedwards/scs/v2":          {"web/page"},
	"github.com/aymanbagabas/go-udiff":       {"web/page"},
	"github.com/yuin/goldmark":               {"web/markup"},
	"github.com/microcosm-cc/bluemonday":     {"web/markup"},
	"golang.org/x/crypto/argon2":             {"storage"},
	"html/template":                          {"web/page", "web/markup", "web/reference"},
	"go.etcd.io/bbolt":                       {"storage/kv/bolt"},
	"github.com/urfave/cli/v3":               {"cmd/agentrun"},
	"github.com/ogen-go/ogen":                {"handler", "gen", "poll", "web", "web/gen", "cmd/agentrun"},
	"github.com/santhosh-tekuri/jsonschema":  {"handler"},
	"github.com/google/jsonschema-go":        {"run/tool"},
	"github.com/go-faster/yaml":              {"storage/agentfile", "cmd/openapijson", "run/model/script"},
	"github.com/anthropics/anthropic-sdk-go": {"run/model/anthropic"},
	"github.com/sashabaranov/go-openai":      {"run/model/openai"},
	"net/http": {
		"cmd/agentrun", "handler", "gen", "poll", "run", "run/gateway", "run/tool/mcp", "web", "web/gen",
		"web/page", "web/asset", "web/reference", "run/model/wire", "run/model/openai", "run/model/anthropic", "run/model/modeltest", "run/tool",
	},
	"os/exec":             {"cmd/agentrun", "run/sandbox", "run/sandbox/sandboxtest", "internal/needs"},
	"github.com/chromedp": {"internal/browser"},
	"testing":             {"internal/needs", "internal/browser", "storage/storagetest", "storage/kv/kvtest", "run/sandbox/sandboxtest", "run/model/modeltest"},
}

// badNames say nothing about what a package is for.
var badNames = []string{"util", "utils", "common", "helpers", "manager", "service", "pkg", "models"}

// goPackage is what `go list` tells of a package. Imports are those of its
// code without tests.
type goPackage struct {
	ImportPath, Name, Doc string
	Imports               []string
}

// folder is the package's key in rooms.
func (p goPackage) folder() string { return folder(p.ImportPath) }

func folder(importPath string) string {
	if importPath == module {
		return "."
	}
	return strings.TrimPrefix(importPath, module+"/")
}

func listPackages(t *testing.T) []goPackage {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-json=ImportPath,Name,Doc,Imports", module+"/...")
	stdout, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		t.Fatalf("go list: %v\n%s", err, exit.Stderr)
	}
	if err != nil {
		t.Fatal(err)
	}
	var packages []goPackage
	for dec := json.NewDecoder(strings.NewReader(string(stdout))); ; {
		var p goPackage
		switch err := dec.Decode(&p); {
		case errors.Is(err, io.EOF):
			return packages
		case err != nil:
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
}

func TestImportsFollowTheArrows(t *testing.T) {
	found := map[string]bool{}
	for _, p := range listPackages(t) {
		room, declared := rooms[p.folder()]
		if found[p.folder()] = true; !declared {
			t.Errorf("%s is no declared room: give it a row in rooms, with what it may import", p.ImportPath)
			continue
		}
		for _, imported := range p.Imports {
			checkImport(t, p.folder(), room, imported)
		}
	}
	for name := range rooms {
		if !found[name] {
			t.Errorf("%s has a row in rooms and does not exist", name)
		}
	}
}

func checkImport(t *testing.T, importer string, r room, imported string) {
	t.Helper()
	if imported == module || strings.HasPrefix(imported, module+"/") {
		switch name := folder(imported); {
		case rooms[name].kit && !r.kit:
			t.Errorf("%s imports %s, which is for tests only", importer, name)
		case !slices.Contains(r.imports, name):
			t.Errorf("%s imports %s, and the table has no such arrow", importer, name)
		}
		return
	}
	for name, allowed := range restricted {
		if (imported == name || strings.HasPrefix(imported, name+"/")) && !slices.Contains(allowed, importer) {
			t.Errorf("%s imports %s, which only %s may", importer, imported, strings.Join(allowed, ", "))
		}
	}
}

// The table itself must keep the promises that are made about it in words.
func TestArrowsLeaveTheSidesApart(t *testing.T) {
	side := []string{"handler", "web", "run"}
	for name, r := range rooms {
		for _, imported := range r.imports {
			switch _, declared := rooms[imported]; {
			case !declared:
				t.Errorf("%s may import %s, which is no room", name, imported)
			case strings.HasPrefix(imported, "cmd/"):
				t.Errorf("%s may import a command", name)
			case slices.Contains(side, name) && slices.Contains(side, imported):
				t.Errorf("%s and %s stand side by side", name, imported)
			}
		}
	}
}

func TestPackagesSayWhatTheyAreFor(t *testing.T) {
	for _, p := range listPackages(t) {
		opening := "Package " + p.Name + " "
		if p.Name == "main" {
			opening = "Command " + path.Base(p.ImportPath) + " "
		}
		if !strings.HasPrefix(p.Doc, opening) && !rooms[p.folder()].generated {
			t.Errorf("%s: the package comment should begin with %q, have %q", p.ImportPath, opening, p.Doc)
		}
		for _, word := range append(strings.Split(p.folder(), "/"), p.Name) {
			if slices.Contains(badNames, word) {
				t.Errorf("%s: %q says nothing about what a package is for", p.ImportPath, word)
			}
		}
	}
}
