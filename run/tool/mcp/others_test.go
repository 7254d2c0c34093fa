package mcp

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"agentrun/internal/needs"
	"agentrun/run/sandbox"
)

// othersVariable names the node_modules that .ci/mcp/check installs.
const othersVariable = "AGENTRUN_MCP_SERVERS"

// Servers that other people wrote work in the sandbox.
func TestServersOfOthers(t *testing.T) {
	modules := os.Getenv(othersVariable)
	if modules == "" {
		needs.Lacking(t, othersVariable+" is not set: tool servers that other people wrote; .ci/mcp/check installs them")
	}
	nodes, err := filepath.Glob(filepath.Join(modules, "node-linux-*/bin/node"))
	if err != nil || len(nodes) != 1 {
		t.Fatalf("Node.js in %s: %v, %v", modules, nodes, err)
	}
	for _, row := range []struct {
		name string
		host func(*testing.T) host
	}{{"off", plainHost}, {"full", confinedHost}} {
		t.Run(row.name, func(t *testing.T) {
			h := row.host(t)
			h.read, h.limits = []string{modules}, sandbox.Limits{Memory: 2 << 30, Processes: 256, OpenFiles: 1024, FileSize: 1 << 30}
			cfg := h.config()
			server := func(name string, args ...string) {
				main := filepath.Join(modules, "@modelcontextprotocol/server-"+name, "dist/index.js")
				cfg.Servers = append(cfg.Servers, Server{Name: name, Command: append([]string{nodes[0], main}, args...)})
			}
			server("everything")
			server("filesystem", h.dir)
			cfg.Patience = 30 * time.Second
			s := mustOpen(t, cfg)

			works(t, s, "everything__echo", `{"message":"hello"}`, "Echo: hello")
			fails(t, s, "everything__echo", `{"message":7}`, "")
			path, err := json.Marshal(filepath.Join(h.dir, "note.txt"))
			if err != nil {
				t.Fatal(err)
			}
			if r := call(t, s, "filesystem__write_file", `{"path":`+string(path)+`,"content":"from a tool\n"}`); r.Failed {
				t.Errorf("got %+v", r)
			}
			works(t, s, "filesystem__read_text_file", `{"path":`+string(path)+`}`, "from a tool\n")
			fails(t, s, "filesystem__read_text_file", `{"path":"/etc/shadow"}`, "Access denied")
			written, err := os.ReadFile(filepath.Join(h.dir, "note.txt"))
			if err != nil || string(written) != "from a tool\n" {
				t.Errorf("the file: %q, %v", written, err)
			}
			for _, tool := range s.Tools() {
				if !strings.Contains(string(tool.Schema), `"type":"object"`) || tool.Description == "" {
					t.Errorf("%+v", tool)
				}
			}
			t.Logf("%d tools", len(s.Tools()))
			s.Close()
			if left := processesIn(t, h.dir); len(left) > 0 {
				t.Errorf("alive are %v", left)
			}
		})
	}
}
