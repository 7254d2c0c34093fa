package agentfile_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"

	"agentrun/storage/agentfile"
)

func FuzzParse(f *testing.F) {
	for _, tt := range definitions {
		f.Add(tt.source)
	}
	f.Add("name: x\ncommand: [a]\n---\n{{{")
	f.Add("\tname: &a x\n*a : [<<, !!bool y]\n")
	f.Add("\ufeff%YAML 1.1\n--- |\n \xff")
	const head = "name: x\ncommand: [a]\n"
	f.Add(head + "limits: {memory: 99999999999GiB, processes: 0x20, open_files: -1, file_size: 1.5GB, output: 2MiB}\n")
	f.Add(head + "network: {allow: ['*', '*.com', '[::1]', 'fe80::1%e', '::ffff:1.2.3.4', 'a.:80', bücher, 0x7f.1]}\n")
	f.Add(head + "env: {A: b, https_proxy: c}\nnetwork: {}\nsecrets: [A, PATH, LD_PRELOAD, AGENTRUN_X, b]\n")
	f.Add(head + "read: [/, /../a, //b, /proc/1, /devel, \"/a\\0\", /opt, /opt]\n")
	f.Fuzz(func(t *testing.T, source string) {
		file, err := agentfile.Parse(source)
		if err != nil {
			checkError(t, err)
			return
		}
		d := file.Definition
		if (len(d.Command) > 0) == (d.Model != "") {
			t.Errorf("command %q and model %q", d.Command, d.Model)
		}
		if d.Name == "" || file.Source != source {
			t.Errorf("name %q, source %q", d.Name, file.Source)
		}
		checkConfinement(t, d)
		raw, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var again agentfile.Definition
		if err := json.Unmarshal(raw, &again); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(d, again); diff != "" {
			t.Errorf("JSON changes the definition (-want +got)\n%s", diff)
		}
	})
}

// checkConfinement checks what a sandbox may rely on.
func checkConfinement(t *testing.T, d agentfile.Definition) {
	t.Helper()
	for _, host := range d.Network.Allow {
		if host == "" || host != strings.ToLower(host) || strings.ContainsAny(host, "/[]%@ ") || len(host) > 253 {
			t.Errorf("host %q", host)
		}
	}
	for _, name := range d.Secrets {
		if _, twice := d.Env[name]; twice || name == "" || len(name) > 64 || strings.HasPrefix(name, "AGENTRUN_") {
			t.Errorf("secret %q, env %q", name, d.Env)
		}
	}
	for _, path := range d.Read {
		if !filepath.IsAbs(path) || filepath.Clean(path) != path || path == "/" || strings.ContainsAny(path, "\x00\n") {
			t.Errorf("path %q", path)
		}
	}
	l := d.Limits
	for _, size := range []int64{l.MemoryBytes(), l.FileSizeBytes(), l.WorkspaceBytes()} {
		if size < agentfile.MinFileSize || size > agentfile.MaxBytes {
			t.Errorf("limits %+v", l)
		}
	}
	if l.OutputBytes() < agentfile.MinOutput || l.OutputBytes() > agentfile.MaxOutput ||
		l.ProcessCount() < agentfile.MinProcesses || l.ProcessCount() > agentfile.MaxProcesses ||
		l.OpenFileCount() < agentfile.MinOpenFiles || l.OpenFileCount() > agentfile.MaxOpenFiles {
		t.Errorf("limits %+v", l)
	}
}

// checkError checks what holds for every refusal.
func checkError(t *testing.T, err error) {
	t.Helper()
	var invalid *agentfile.Error
	if !errors.As(err, &invalid) || len(invalid.Faults) == 0 {
		t.Fatalf("not an *Error with faults: %v", err)
	}
	if strings.ContainsAny(err.Error(), "\r\n") {
		t.Errorf("more than one line: %q", err)
	}
	line := 0
	for _, f := range invalid.Faults {
		if f.Line < line || f.Problem == "" {
			t.Errorf("fault %+v after line %d", f, line)
		}
		line = f.Line
	}
}
