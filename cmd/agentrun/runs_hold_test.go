package main

import (
	"fmt"
	"net/http"
	"os/exec"
	"testing"

	"github.com/go-faster/errors"
)

// A process that outlives SIGKILL for half a minute cannot be had for a test.
// So what stands in here for the server is one that always answers that the
// run's end is not verified yet.
func TestEndThatIsNotVerified(t *testing.T) {
	const run = "01970000-0000-7000-8000-000000000000"
	dir := t.TempDir()
	l, err := listenSocket(dir)
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan string, 2)
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked <- r.Method + " " + r.URL.RequestURI()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id": %[1]q, "name": "", "agent_id": %[1]q, "org_id": %[1]q, "key_id": %[1]q, "status": "running", "stopping": true, "deleted": false,
			"erasing": false, "revision": 1, "turns": 1, "waiting_inputs": 0, "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"}`, run)
	})}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })

	for verb, want := range map[string]struct{ request, text string }{
		"stop": {
			"POST /api/v1/runs/" + run + "/stop?wait=30",
			"agentrun: run " + run + ": stop requested, not verified yet; 'agentrun runs show' tells when it is\n",
		},
		"delete": {
			"DELETE /api/v1/runs/" + run + "?wait=30",
			"agentrun: run " + run + ": deletion requested, not verified yet; 'agentrun runs show' tells when it is\n",
		},
	} {
		_, err := exec.CommandContext(t.Context(), "agentrun", "runs", verb, run, "--data", dir).Output()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitFailed || string(exit.Stderr) != want.text {
			t.Errorf("%s: %v", verb, err)
			if exit != nil {
				t.Errorf("standard error: %s", exit.Stderr)
			}
		}
		if got := <-asked; got != want.request {
			t.Errorf("%s asked for %s, want %s", verb, got, want.request)
		}
	}
}
