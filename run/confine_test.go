package run

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentrun/run/sandbox"
	"agentrun/run/secret"
	"agentrun/storage"
)

// full is the sandbox that servers have by default.
func full(t *testing.T) sandbox.Runner {
	t.Helper()
	runner, err := sandbox.Open(t.Context(), sandbox.Options{Level: sandbox.Full})
	if err != nil {
		t.Fatal(err)
	}
	return runner
}

func TestNetworkOfATurn(t *testing.T) {
	t.Parallel()
	reached := make(chan string, 10)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		reached <- r.URL.Path
		fmt.Fprint(w, "hello from outside")
	}))
	t.Cleanup(site.Close)
	_, port, err := net.SplitHostPort(site.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	const fetch = `/usr/bin/curl -s -o - -w ' %{http_code}' `
	for _, row := range []struct {
		name, script, fields string
		output               string // a part of it
		refused              string // a part of the events
	}{
		{name: "without a list", script: fetch + "http://127.0.0.1:" + port + "/b --noproxy ''; echo $HTTP_PROXY", output: "000"},
		{
			name: "another host", script: fetch + "http://example.org/ ; " + fetch + "http://example.org/", fields: "network: {allow: [127.0.0.1]}",
			output: "403", refused: `"host":"example.org"`,
		},
		{
			name: "directly", script: fetch + "--noproxy '*' http://127.0.0.1:" + port + "/c", fields: "network: {allow: [127.0.0.1]}", output: "000",
		},
	} {
		t.Run(row.name, func(t *testing.T) {
			h := newHouse(t)
			id := h.run(h.agent("one", row.script+"; :", row.fields), "x")
			h.start(&Server{workers: 1, sandbox: full(t)})
			h.await(id, storage.StateFinished)
			got := strings.Join(h.transcript(id), "\n")
			if !strings.Contains(got, row.output) {
				t.Errorf("got %q, want %q", got, row.output)
			}
			events := strings.Join(h.data(id, storage.EventNetworkRefused), "\n")
			if !strings.Contains(events, row.refused) || strings.Count(events, "\n") > 0 {
				t.Errorf("refused: %s, want %s", events, row.refused)
			}
		})
	}
	t.Run("through the way out", func(t *testing.T) {
		h := newHouse(t)
		// What is on the loopback is not sent through a proxy unless that is asked for.
		id := h.run(h.agent("one", "NO_PROXY= no_proxy= "+fetch+"http://127.0.0.1:"+port+"/d", "network: {allow: [127.0.0.1]}"), "x")
		h.start(&Server{workers: 1, sandbox: full(t)})
		h.await(id, storage.StateFinished)
		if got := h.transcript(id); len(got) != 2 || got[1] != "out: hello from outside 200" {
			t.Errorf("got %q", got)
		}
		if path := <-reached; path != "/d" {
			t.Errorf("reached was %s", path)
		}
	})
}

func TestSecretsOfATurn(t *testing.T) {
	t.Parallel()
	const value = "correct horse battery staple"
	source, err := secret.Open("", []string{"AGENTRUN_SECRET_TOKEN=" + value, "PATH=/bin"})
	if err != nil {
		t.Fatal(err)
	}
	h := newHouse(t)
	id := h.run(h.agent("one", `echo "$TOKEN"; echo "oops: $TOKEN" >&2; [ "$TOKEN" = "`+strings.ReplaceAll(value, " ", "' '")+`" ] && echo right; env | grep -c AGENTRUN_SECRET; exit 0`,
		"secrets: [TOKEN]"), "x")
	missing := h.run(h.agent("two", "echo ran", "secrets: [TOKEN, OTHER]"), "x")
	h.start(&Server{workers: 2, sandbox: full(t), secrets: source})
	h.await(id, storage.StateFinished)
	all := strings.Join(h.transcript(id), "\n")
	for _, e := range h.events(id) {
		all += "\n" + string(e.Data)
	}
	if strings.Contains(all, value) || !strings.Contains(all, "[secret TOKEN]") || !strings.Contains(all, "oops: [secret TOKEN]") {
		t.Errorf("got %q", all)
	}
	if run := h.await(missing, storage.StateTechnicalError); !strings.Contains(run.Reason, "OTHER") || strings.Contains(run.Reason, value) {
		t.Errorf("got %+v", run)
	}
}

func TestPathsToRead(t *testing.T) {
	t.Parallel()
	shared, err := os.MkdirTemp("", "shared-") //nolint:usetesting // its folders are closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(shared) })
	for _, err := range []error{os.Chmod(shared, 0o755), os.WriteFile(filepath.Join(shared, "tool"), []byte("a tool"), 0o644)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	h := newHouse(t)
	script := "cat " + shared + "/tool; (: > " + shared + "/x) 2> /dev/null || echo ' read only'"
	id := h.run(h.agent("one", script, "read: ["+shared+"]"), "x")
	other := h.run(h.agent("two", script, "read: [/var/lib]"), "x")
	without := h.run(h.agent("three", script+"; :"), "x")
	h.start(&Server{workers: 1, sandbox: full(t), allowRead: []string{shared}})
	h.await(id, storage.StateFinished)
	if got := h.transcript(id); len(got) != 2 || got[1] != "out: a tool read only" {
		t.Errorf("got %q", got)
	}
	if run := h.await(other, storage.StateTechnicalError); !strings.Contains(run.Reason, "/var/lib") || !strings.Contains(run.Reason, "--allow-read") {
		t.Errorf("got %+v", run)
	}
	h.await(without, storage.StateFinished)
	if got := h.transcript(without); len(got) != 2 || strings.Contains(got[1], "a tool") {
		t.Errorf("got %q", got)
	}
}

func TestWorkspaceThatGrows(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.run(h.agent("one", "mkdir -p a/b; head -c 3000000 /dev/urandom > a/b/c; exec sleep 600", "limits: {workspace: 2MB}"), "x")
	within := h.run(h.agent("two", "head -c 1000000 /dev/urandom > c; sleep 1.5", "limits: {workspace: 2MB}"), "x")
	h.start(&Server{workers: 2, sandbox: full(t)})
	if run := h.await(id, storage.StateTechnicalError); run.Reason != "the workspace's limit was reached (2000000 bytes)" {
		t.Errorf("got %+v", run)
	}
	h.await(within, storage.StateFinished)
}

func TestLimitsOfATurn(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.run(h.agent("one", "ulimit -d; ulimit -n; ulimit -f; ulimit -c",
		"limits: {memory: 256MiB, open_files: 100, file_size: 1MiB}"), "x")
	h.start(&Server{workers: 1, sandbox: full(t)})
	h.await(id, storage.StateFinished)
	// ulimit counts memory in KiB and files in blocks of 512 bytes.
	if got := h.transcript(id); len(got) != 2 || got[1] != "out: 262144\n100\n2048\n0" {
		t.Errorf("got %q", got)
	}
}

// A turn of a host without a sandbox fails with the reason; nothing runs.
func TestNoSandbox(t *testing.T) {
	t.Parallel()
	h := newHouse(t)
	id := h.run(h.agent("one", "echo ran"), "x")
	h.start(&Server{workers: 1, sandbox: noSandbox{}})
	if run := h.await(id, storage.StateTechnicalError); !strings.Contains(run.Reason, "no sandbox on this host") {
		t.Errorf("got %+v", run)
	}
}
