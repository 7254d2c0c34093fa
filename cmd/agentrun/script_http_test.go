package main

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdHTTP sends a request to the server and checks the status of the answer,
// whose body is the standard output for the commands that follow. The key is
// $KEY; variables in a body are filled in.
func cmdHTTP(ts *testscript.TestScript, neg bool, args []string) {
	takes(ts, "http STATUS METHOD PATH [BODY-FILE]", neg, args, 3, 4)
	body := ""
	if len(args) == 4 {
		body = os.Expand(ts.ReadFile(args[3]), ts.Getenv)
	}
	status, answer := request(ts, args[1], args[2], body)
	_, err := io.WriteString(ts.Stdout(), answer)
	ts.Check(err)
	if strconv.Itoa(status) != args[0] {
		ts.Fatalf("status %d, want %s", status, args[0])
	}
}

// cmdPoll polls a run until it is no longer running, checks what it has become,
// and prints the last answer.
func cmdPoll(ts *testscript.TestScript, neg bool, args []string) {
	takes(ts, "poll LOOP-STATUS RUN", neg, args, 2, 2)
	var run struct {
		LoopStatus string `json:"loop_status"`
	}
	var last string
	awaitThat(ts, "the end of the run", func() bool {
		status, answer := request(ts, http.MethodGet, "/v1/agents/"+args[1], "")
		if status != http.StatusOK {
			ts.Fatalf("status %d: %s", status, answer)
		}
		ts.Check(json.Unmarshal([]byte(answer), &run))
		last = answer
		return run.LoopStatus != "running"
	})
	_, err := io.WriteString(ts.Stdout(), last)
	ts.Check(err)
	if run.LoopStatus != args[0] {
		ts.Fatalf("the run is %s, want %s", run.LoopStatus, args[0])
	}
}

// cmdUnreachable waits until the server accepts no connections.
func cmdUnreachable(ts *testscript.TestScript, neg bool, args []string) {
	takes(ts, "unreachable", neg, args, 0, 0)
	awaitThat(ts, "the server to close its address", func() bool {
		conn, err := net.Dial("tcp", ts.Getenv("HOST"))
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
}

func request(ts *testscript.TestScript, method, path, body string) (status int, answer string) {
	req, err := http.NewRequest(method, ts.Getenv("URL")+path, strings.NewReader(body))
	ts.Check(err)
	if key := ts.Getenv("KEY"); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	if body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	// A connection that stays open could be one to a server that is gone.
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	ts.Check(err)
	return resp.StatusCode, string(raw)
}
