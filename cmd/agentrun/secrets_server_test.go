package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"agentrun/internal/needs"
	"agentrun/run/sandbox"
)

// secretsHouse is a server with secrets of every kind, and whoever they belong
// to.
type secretsHouse struct {
	t     *testing.T
	uid   int
	level sandbox.Level
	begun time.Time
	// base is the folder that holds all of it; data, secrets, tmp and home are
	// the server's own folders, cwd is where it works.
	base, data, secrets, tmp, home, cwd string
	// before are the names in the machine's folders for files of everybody.
	before map[string]bool

	*process
	// stderr is the server's log from its first line on; to be read once ended
	// is closed.
	stderr bytes.Buffer
	// other is a run of another agent, and otherKey a key of that one.
	other, otherKey string
	// run is the run of the program that hunts, environ what the server's
	// environment looks like from outside.
	run     string
	environ []byte

	// mark is no secret: it is put where each search has to find it.
	mark *token
	// given is the secret that the program gets.
	given *token
	// environment are the secrets in the server's environment.
	environment []*token
	// file is a secret in the directory that this agent does not list, inherited
	// what lies behind a descriptor that the server inherited, and note and
	// task what the other run was given.
	file, inherited, note, task *token
	// keys are those of this agent and of the other one.
	keys []*token
}

// providerKey is the variable of a secret that belongs to the server alone.
const providerKey = "AGENTRUN_PROVIDER_LOCAL_KEY"

func newSecretsHouse(t *testing.T, level sandbox.Level, uid int) *secretsHouse {
	t.Helper()
	h := &secretsHouse{
		t: t, uid: uid, level: level, begun: time.Now(),
		mark: randomToken("the mark"), given: randomToken("the given secret", inEnvironment, inProcesses),
		file: randomToken("a secret of another agent"), inherited: randomToken("an inherited file"),
		// The store holds them for the run that they belong to.
		note: randomToken("another run's file", inWorkspaces), task: randomToken("another run's input", inDataFile),
	}
	for _, name := range []string{providerKey, "OPENAI_API_KEY", "DATABASE_URL", "AGENTRUN_SECRET_OTHER"} {
		h.environment = append(h.environment, randomToken(name))
	}
	// Not below t.TempDir, whose folders are closed to other users.
	base, err := os.MkdirTemp("", "secrets-test-") //nolint:usetesting // its folders are closed to other users
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	h.base = base
	// The log names the data directory.
	h.data = filepath.Join(base, "data-"+h.mark.value)
	h.secrets, h.tmp, h.home, h.cwd = filepath.Join(base, "secrets"), filepath.Join(base, "tmp"), filepath.Join(base, "home"), filepath.Join(base, "cwd")
	h.must(os.Chmod(base, 0o711))
	for _, folder := range []string{h.data, h.secrets, h.tmp, h.home, h.cwd} {
		h.must(os.Mkdir(folder, 0o700), os.Chown(folder, uid, uid))
	}
	for name, k := range map[string]*token{"secrets/GIVEN": h.given, "secrets/ELSE": h.file, "inherited": h.inherited, "tmp/mark": h.mark} {
		path := filepath.Join(base, name)
		h.must(os.WriteFile(path, []byte(k.value), 0o600), os.Chown(path, uid, uid))
	}
	h.before = everybodysNames()
	return h
}

func (h *secretsHouse) must(errs ...error) {
	h.t.Helper()
	for _, err := range errs {
		if err != nil {
			h.t.Fatal(err)
		}
	}
}

// tokens are all that have to stay secret.
func (h *secretsHouse) tokens() []*token {
	all := append([]*token{h.given, h.file, h.inherited, h.note, h.task}, h.environment...)
	return append(all, h.keys...)
}

// serve starts the server. A level that this machine does not have ends the
// test.
func (h *secretsHouse) serve() {
	h.t.Helper()
	p := &process{t: h.t, data: h.data, ended: make(chan struct{})}
	h.process = p
	// Other users cannot reach where agentrun lies, but can run what this is.
	p.cmd = exec.CommandContext(h.t.Context(), "/proc/self/exe", "serve", "--data", h.data, "--listen", "127.0.0.1:0",
		"--sandbox", string(h.level), "--secrets", h.secrets)
	p.cmd.Args[0] = "agentrun"
	p.cmd.Dir = h.cwd
	p.cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0", "TMPDIR="+h.tmp, "HOME="+h.home)
	for _, k := range h.environment {
		p.cmd.Env = append(p.cmd.Env, k.name+"="+k.value)
	}
	if h.uid != os.Geteuid() {
		p.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(h.uid), Gid: uint32(h.uid)}}
	}
	inherited, err := os.Open(filepath.Join(h.base, "inherited"))
	h.must(err)
	defer inherited.Close()
	// Twice, since something else may come to be where the first one was.
	p.cmd.ExtraFiles = []*os.File{inherited, inherited}
	stderr, err := p.cmd.StderrPipe()
	h.must(err, p.cmd.Start())
	lines := bufio.NewScanner(io.TeeReader(stderr, &h.stderr))
	for p.url == "" && lines.Scan() {
		if url, found := strings.CutPrefix(lines.Text(), listening); found {
			p.url = url
		}
	}
	if p.url == "" {
		_ = p.cmd.Wait()
		if text := h.stderr.String(); strings.Contains(text, sandbox.ErrNoSandbox.Error()) {
			needs.Lacking(h.t, text)
		}
		h.t.Fatalf("serve ended: %v\n%s", p.cmd.ProcessState, &h.stderr)
	}
	go func() {
		defer close(p.ended)
		for lines.Scan() {
			continue // The reader keeps them.
		}
		_ = p.cmd.Wait()
	}()
	h.t.Cleanup(func() {
		_ = p.cmd.Process.Kill()
		<-p.ended
	})
}

// apply applies an agent file and returns the agent's ID with a key of it.
func (h *secretsHouse) apply(name, fields string) (id, key string) {
	h.t.Helper()
	path := filepath.Join(h.t.TempDir(), "agent.yaml")
	h.must(os.WriteFile(path, []byte("name: "+name+"\n"+fields), 0o600))
	var agent, made struct{ ID, Key string }
	manage(h.t, h.data, &agent, "agent", "apply", "-f", path)
	manage(h.t, h.data, &made, "key", "create", name)
	// The key's beginning is shown to tell keys apart, its end is a checksum.
	const begin, end = 8, 6
	h.keys = append(h.keys, newToken("the key of "+name, made.Key[begin:len(made.Key)-end]))
	return agent.ID, made.Key
}

// create starts a run with a file and returns its ID.
func (h *secretsHouse) create(input, file string, content []byte) string {
	h.t.Helper()
	type delivered struct {
		Filename string `json:"filename"`
		Content  []byte `json:"content_base64"`
	}
	body, err := json.Marshal(map[string]any{
		"name": "run", "template_id": h.agent, "input_text": input,
		"files": []delivered{{file, content}, {"mark", []byte(h.mark.value)}},
	})
	h.must(err)
	status, answer, err := h.send(http.MethodPost, "/v1/agents", bytes.NewReader(body))
	return runID(h.t, status, answer, err)
}

// finished waits for a run's end and returns what the API tells of it.
func (h *secretsHouse) finished(run string) string {
	h.t.Helper()
	var body string
	h.await("the end of "+run, func() bool {
		var err error
		_, body, err = h.send(http.MethodGet, "/v1/agents/"+run, nil)
		h.must(err)
		return !strings.Contains(body, `"loop_status":"running"`)
	})
	if !strings.Contains(body, `"loop_status":"finished"`) {
		var events json.RawMessage
		manage(h.t, h.data, &events, "runs", "show", run)
		h.end()
		h.t.Fatalf("%s\n%s", events, &h.stderr)
	}
	return body
}

// await waits until done is true.
func (h *secretsHouse) await(what string, done func() bool) {
	h.t.Helper()
	deadline := time.After(patience)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !done() {
		select {
		case <-tick.C:
		case <-h.ended:
			h.t.Fatalf("the server ended before %s:\n%s", what, &h.stderr)
		case <-deadline:
			h.t.Fatalf("waited for %s in vain", what)
		}
	}
}

// hunt starts the other agent's run, and once that is over the one of the
// program that hunts. It returns when the program has done so.
func (h *secretsHouse) hunt() {
	h.t.Helper()
	h.agent, h.key = h.apply("other", "command: [cat]\n")
	h.otherKey = h.key
	h.other = h.create(h.task.value, "note", []byte(h.note.value))
	h.finished(h.other)

	workspaces := filepath.Join(h.data, workspacesName)
	variables := map[string]string{
		"MARK": h.mark.value, "HUNT_MARK": "mark", "HUNT_CONTROL": "", "HUNT_SERVER": strconv.Itoa(h.cmd.Process.Pid),
		"HUNT_SINCE":   strconv.FormatInt(h.begun.Unix()-1, 10),
		"HUNT_FOLDERS": strings.Join([]string{".", "..", h.data, workspaces, h.secrets, h.tmp, h.home, h.cwd, h.base}, ":"),
		"HUNT_FILES": strings.Join([]string{
			filepath.Join(h.data, databaseName), filepath.Join(h.secrets, "ELSE"), filepath.Join(h.base, "inherited"),
			filepath.Join(workspaces, h.other, "note"),
		}, ":"),
	}
	// The control looks at nobody else's processes and files.
	if h.level == sandbox.Off {
		variables["HUNT_CONTROL"] = "yes"
	} else {
		variables["HUNT_FOLDERS"] += ":" + strings.Join(everybodysFolders, ":") + ":/root:/home"
	}
	env, err := json.Marshal(variables)
	h.must(err)
	// YAML takes JSON.
	h.agent, h.key = h.apply("hunter", fmt.Sprintf("command: [python3, %s, %s]\nenv: %s\nsecrets: [GIVEN]\n", huntFile, h.mark.value, env))
	h.run = h.create(h.mark.value, huntFile, []byte(huntProgram))
	h.await("the hunt", func() bool {
		_, err := os.Stat(h.workspace("told"))
		return err == nil || h.over()
	})
	if h.over() {
		h.finished(h.run)
		h.t.Fatal("the hunt was over too early")
	}
}

// over says whether the hunt's run has ended.
func (h *secretsHouse) over() bool {
	_, body, err := h.send(http.MethodGet, "/v1/agents/"+h.run, nil)
	h.must(err)
	return !strings.Contains(body, `"loop_status":"running"`)
}

// workspace returns a path in the workspace of the hunt.
func (h *secretsHouse) workspace(name string) string {
	return filepath.Join(h.data, workspacesName, h.run, name)
}

// release lets the program end.
func (h *secretsHouse) release() {
	h.t.Helper()
	// Open for both, it does not wait for the program.
	pipe, err := os.OpenFile(h.workspace("go"), os.O_RDWR, 0)
	h.must(err)
	defer pipe.Close()
	_, err = pipe.WriteString("\n")
	h.must(err)
	h.finished(h.run)
}

// mistakes makes requests that a server may want to log, with a key in each.
func (h *secretsHouse) mistakes() {
	h.t.Helper()
	path := "/v1/agents/" + h.run
	for _, request := range []string{
		"GET " + path + "?key=" + h.key + " HTTP/1.1\r\nHost: x\r\n",
		"GET /v1/" + h.key + " HTTP/1.1\r\nHost: x\r\nX-API-Key: " + h.key + "\r\n",
		"GET " + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: Basic " + h.key + "\r\n",
		"GET " + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + h.otherKey + "\r\n",
		"GET " + path + " HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + h.key + "x\r\n",
		"POST /v1/agents HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + h.key + "\r\nContent-Type: application/json\r\nContent-Length: 9\r\n\r\n{\"name\":1",
		"BAD " + h.key + "\r\n",
		"GET /readyz HTTP/1.1\r\nHost: x\r\n" + h.key + "\r\n",
	} {
		conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
		h.must(err)
		_, err = conn.Write([]byte(request + "\r\n"))
		h.must(err, conn.SetReadDeadline(time.Now().Add(patience)))
		line, err := bufio.NewReader(conn).ReadString('\n')
		_ = conn.Close()
		if !strings.HasPrefix(line, "HTTP/1.1 4") {
			h.t.Errorf("the answer to a mistake: %q, %v", line, err)
		}
	}
}

// end drains the server, whose log is complete then.
func (h *secretsHouse) end() {
	h.t.Helper()
	h.must(h.cmd.Process.Signal(syscall.SIGTERM))
	select {
	case <-h.ended:
	case <-time.After(patience):
		h.t.Fatal("the server does not end")
	}
	if code := h.cmd.ProcessState.ExitCode(); code != exitDone {
		h.t.Errorf("the server ended with %d:\n%s", code, &h.stderr)
	}
}
