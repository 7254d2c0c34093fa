package poll_test

import (
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"

	"agentrun/gen"
	"agentrun/poll"
)

// TestWaitOverHTTP waits on a real server in real time.
func TestWaitOverHTTP(t *testing.T) {
	t.Parallel()
	run := uuid.New()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer ak_test" || r.URL.Path != "/v1/agents/"+run.String() {
			t.Errorf("%s %s with %v", r.Method, r.URL, r.Header)
		}
		if asked.Add(1) == 1 {
			http.Error(w, "the machine behind is away", http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"agent_id":"` + run.String() + `","loop_status":"finished","transcript":[` +
			`{"role":"input_to_agent","text":"go"},{"role":"output_from_agent","text":"gone"}]}`))
	}))
	t.Cleanup(server.Close)
	client, err := gen.NewClient(server.URL, poll.Key("ak_test"), gen.WithClient(poll.KeepStatus(server.Client())))
	if err != nil {
		t.Fatal(err)
	}
	status, err := poll.Wait(t.Context(), client, run, poll.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(status.Transcript); n != 2 || status.Transcript[1].Text != "gone" || asked.Load() != 2 {
		t.Errorf("%+v after %d requests", status, asked.Load())
	}
}
