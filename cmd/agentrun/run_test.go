package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/uuid"
)

const secretKey = "ak_not_to_be_seen"

// apiScript is a server that answers as a test wants, and notes what it was
// asked. Without an answer of the test's own a POST creates the run.
type apiScript struct {
	run, template uuid.UUID
	url           string

	mu    sync.Mutex
	asked []string // method and path
}

func serveScript(t *testing.T, post, get http.HandlerFunc) *apiScript {
	s := &apiScript{run: uuid.New(), template: uuid.New()}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, r.Method+" "+r.URL.Path)
		s.mu.Unlock()
		if r.Header.Get("Authorization") != "Bearer "+secretKey {
			t.Errorf("%s %s without the key", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.Method == http.MethodGet:
			get(w, r)
		case post == nil:
			w.WriteHeader(http.StatusCreated)
			fmt.Fprintf(w, `{"agent_id":%q}`, s.run)
		default:
			post(w, r)
		}
	}))
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

func (s *apiScript) requests() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.ReplaceAll(strings.Join(s.asked, ", "), s.run.String(), "RUN")
}

// command is agentrun run against the server.
func (s *apiScript) command(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), "agentrun", append([]string{"run"}, args...)...)
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "TERM=xterm",
		"AGENTRUN_URL="+s.url, "AGENTRUN_KEY="+secretKey, "AGENTRUN_TEMPLATE="+s.template.String())
	return cmd
}

// finish runs the command to its end.
func finish(t *testing.T, cmd *exec.Cmd) (stdout, stderr string, code int) {
	t.Helper()
	var out, progress bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &progress
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if strings.Contains(out.String()+progress.String(), secretKey) {
		t.Errorf("the key was printed: %s%s", out.String(), progress.String())
	}
	return out.String(), progress.String(), cmd.ProcessState.ExitCode()
}

func reply(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// breakOff sends some bytes and hangs up.
func breakOff(begin string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			panic(err)
		}
		_, _ = io.WriteString(conn, begin)
		_ = conn.Close()
	}
}

func redirect(status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "/v1/elsewhere", status) }
}

// Whatever comes back, the POST is sent once, and the line says whether the run
// may exist.
func TestRunPostsOnce(t *testing.T) {
	const mayExist = "; the run may exist all the same: look with 'agentrun runs list' on the server before you start another"
	big := filepath.Join(t.TempDir(), "big")
	if err := os.WriteFile(big, make([]byte, 3<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		post http.HandlerFunc
		want string
	}{
		{"hang-up", breakOff(""), "EOF" + mayExist},
		{"hang-up, big", breakOff(""), "EOF" + mayExist},
		{"half a header", breakOff("HTTP/1.1 201 Crea"), "unexpected EOF" + mayExist},
		{"half a body", breakOff("HTTP/1.1 201 Created\r\nContent-Length: 60\r\n\r\n{"), "the answer broke off: unexpected EOF" + mayExist},
		{"no body that counts", reply(201, `{}`), "invalid: agent_id (field required)" + mayExist},
		{"another 2xx", reply(200, `{}`), "unexpected status code: 200" + mayExist},
		{"301", redirect(301), "301 Moved Permanently; check --url, nothing is sent twice"},
		{"307", redirect(307), "307 Temporary Redirect; check --url, nothing is sent twice"},
		{"308", redirect(308), "308 Permanent Redirect; check --url, nothing is sent twice"},
		{"307, big", redirect(307), "307 Temporary Redirect; check --url, nothing is sent twice"},
		{"401, big", reply(401, `{"detail":"Invalid API key"}`), "401 Unauthorized: Invalid API key"},
		{"401", reply(401, `{"detail":"Invalid API key"}`), "401 Unauthorized: Invalid API key"},
		{"409", reply(409, `{"detail":"it is\narchived"}`), "409 Conflict: it is archived"},
		{"413 of a proxy", reply(413, `<html>`), "413 Request Entity Too Large"},
		{
			"422", reply(422, `{"detail":[{"loc":["body","files",0,"filename"],"msg":"too long","type":"x","input":"y"},{"loc":["body","name"],"msg":"\u001b[31mred","type":"z"}]}`),
			`422 Unprocessable Entity: body.files.0.filename: too long; body.name: \x1b[31mred`,
		},
		{"429", reply(429, ``), "429 Too Many Requests"},
		{"500", reply(500, `{"detail":"internal error"}`), "500 Internal Server Error: internal error" + mayExist},
		{"502", reply(502, `<html>`), "502 Bad Gateway" + mayExist},
		{"503", reply(503, `{"detail":"later"}`), "503 Service Unavailable: later" + mayExist},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := serveScript(t, c.post, http.NotFound)
			args := []string{"hello"}
			if strings.Contains(c.name, "big") {
				args = append(args, "--file", big)
			}
			stdout, stderr, code := finish(t, s.command(t, args...))
			if code != exitFailed || stdout != "" {
				t.Errorf("exit %d, output %q", code, stdout)
			}
			if !strings.HasPrefix(stderr, "agentrun: create run: ") || !strings.HasSuffix(stderr, c.want+"\n") || strings.Count(stderr, "\n") != 1 {
				t.Errorf("%q\nwant %q", stderr, c.want)
			}
			if got := s.requests(); got != "POST /v1/agents" {
				t.Errorf("asked %s", got)
			}
		})
	}
}

// What a GET may answer for a while, and what ends the wait. The commands wait
// all at the same time.
func TestRunPolls(t *testing.T) {
	t.Parallel()
	// As it came: blanks, the order of the fields and unknown ones stay.
	const last = `{"transcript": [{"text":"a\u000ab","role":"output_from_agent"}],  "loop_status":"finished", "agent_id":"01920000-0000-7000-8000-000000000000", "new":1}`
	const gets = ", GET /v1/agents/RUN"
	cases := []struct {
		name   string
		gets   []http.HandlerFunc
		args   []string
		code   int
		stdout string
		stderr string // after the first line
		asked  string
	}{
		{
			"for a while", []http.HandlerFunc{reply(502, `<html>`), reply(200, last)}, []string{"hello", "--json"},
			exitDone, last + "\n", "run RUN: no answer, next try in 1s: 502 Bad Gateway\nrun RUN: finished\n", gets + gets,
		},
		{
			"404", []http.HandlerFunc{reply(404, `{"detail":"Agent not found"}`)}, []string{"hello"}, exitFailed, "",
			"agentrun: run RUN: 404 Not Found: Agent not found (a 404 usually means that the key does not belong to the run's agent)\n", gets,
		},
		{"a redirect", []http.HandlerFunc{redirect(302)}, []string{"hello"}, exitFailed, "", "agentrun: run RUN: 302 Found\n", gets},
	}
	type started struct {
		script         *apiScript
		cmd            *exec.Cmd
		stdout, stderr bytes.Buffer
	}
	all := make([]started, len(cases))
	for i, c := range cases {
		var n atomic.Int32
		s := &all[i]
		s.script = serveScript(t, nil, func(w http.ResponseWriter, r *http.Request) {
			c.gets[min(int(n.Add(1)), len(c.gets))-1](w, r)
		})
		s.cmd = s.script.command(t, c.args...)
		s.cmd.Stdout, s.cmd.Stderr = &s.stdout, &s.stderr
		if err := s.cmd.Start(); err != nil {
			t.Fatal(err)
		}
	}
	for i, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := &all[i]
			_ = s.cmd.Wait()
			if code := s.cmd.ProcessState.ExitCode(); code != c.code || s.stdout.String() != c.stdout {
				t.Errorf("exit %d, output %q", code, s.stdout.String())
			}
			want := strings.ReplaceAll("run RUN: created\n"+c.stderr, "RUN", s.script.run.String())
			if got := s.stderr.String(); got != want {
				t.Errorf("%s\nwant\n%s", got, want)
			}
			if got := s.script.requests(); got != "POST /v1/agents"+c.asked {
				t.Errorf("asked %s", got)
			}
		})
	}
}

// A signal ends the command, and the line says what becomes of the run.
func TestRunInterrupted(t *testing.T) {
	t.Parallel()
	t.Run("while it polls", func(t *testing.T) {
		t.Parallel()
		s := serveScript(t, nil, http.NotFound)
		cmd := s.command(t, "hello")
		lines := interrupt(t, cmd, "created")
		want := fmt.Sprintf("agentrun: interrupted: run %s was not stopped and goes on\n", s.run)
		if cmd.ProcessState.ExitCode() != exitFailed || lines != want {
			t.Errorf("exit %d, %q, want %q", cmd.ProcessState.ExitCode(), lines, want)
		}
	})
	t.Run("while it creates", func(t *testing.T) {
		t.Parallel()
		asked, ended := make(chan struct{}), make(chan struct{})
		s := serveScript(t, func(_ http.ResponseWriter, r *http.Request) {
			close(asked)
			_, _ = io.Copy(io.Discard, r.Body)
			<-ended
		}, http.NotFound)
		defer close(ended)
		cmd := s.command(t, "hello")
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		<-asked
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
		if text := stderr.String(); cmd.ProcessState.ExitCode() != exitFailed || !strings.HasPrefix(text, "agentrun: create run: interrupted; the run may exist all the same") {
			t.Errorf("exit %d, %q", cmd.ProcessState.ExitCode(), text)
		}
	})
}

// interrupt runs the command, sends it SIGINT after a line that ends so, and
// returns the lines that follow.
func interrupt(t *testing.T, cmd *exec.Cmd, after string) string {
	t.Helper()
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(stderr)
	for line := ""; !strings.HasSuffix(line, after+"\n"); {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatalf("no line %q: %v", after, err)
		}
	}
	_ = cmd.Process.Signal(os.Interrupt)
	rest, err := io.ReadAll(lines)
	if err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	return string(rest)
}
