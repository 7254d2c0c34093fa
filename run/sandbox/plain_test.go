package sandbox

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/go-faster/errors"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"agentrun/run/sandbox/sandboxtest"
)

func TestPlainWorkingDirectory(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	r := runIn(t.Context(), Plain{}, dir, Command{Args: []string{"/bin/pwd"}})
	if r.err != nil || r.stdout != dir+"\n" {
		t.Errorf("got %+v, want %s", r, dir)
	}
}

func TestPlainEnvironmentIsWhatWasGiven(t *testing.T) {
	t.Setenv("SANDBOX_TEST_CANARY", "the server's own")
	for _, row := range []struct {
		name string
		env  []string
		want string
	}{
		{name: "nothing", env: nil, want: ""},
		{name: "an empty list", env: []string{}, want: ""},
		{name: "some", env: []string{"A=1", "B=two words", "C="}, want: "A=1\nB=two words\nC=\n"},
		{name: "the later one wins", env: []string{"A=1", "B=2", "A=3"}, want: "B=2\nA=3\n"},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := runIn(t.Context(), Plain{}, t.TempDir(), Command{Args: []string{"env"}, Env: row.env})
			if diff := cmp.Diff(ran{stdout: row.want}, r, cmp.AllowUnexported(ran{})); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPlainFindsPrograms(t *testing.T) {
	elsewhere := t.TempDir()
	plant(t, elsewhere, "only-the-server-finds-me", "#!/bin/sh\n", 0o700)
	t.Setenv("PATH", elsewhere+":"+os.Getenv("PATH"))
	dir := t.TempDir()
	plant(t, dir, "here", "#!/bin/sh\necho here $1\n", 0o700)
	plant(t, dir, "data", "no program\n", 0o600)
	plant(t, dir, "nonsense", "\x00\x01\x02", 0o700)
	plant(t, dir, "orphan", "#!/no/such/interpreter\n", 0o700)
	plant(t, dir, "bin/script", "#!/bin/sh\necho bin/script $1\n", 0o700)

	for _, row := range []struct {
		name    string
		program string
		stdout  string
		err     string // empty when it starts
	}{
		{name: "by its name", program: "echo", stdout: "hello\n"},
		{name: "by its path", program: "/bin/echo", stdout: "hello\n"},
		{name: "in the workspace", program: "./here", stdout: "here hello\n"},
		{name: "below the workspace", program: "bin/script", stdout: "bin/script hello\n"},
		{name: "absolute in the workspace", program: filepath.Join(dir, "here"), stdout: "here hello\n"},
		{name: "a name is not looked for in the workspace", program: "here", err: "here: no such program in " + Path},
		{name: "nor in the server's PATH", program: "only-the-server-finds-me", err: "only-the-server-finds-me: no such program in " + Path},
		{name: "unknown", program: "no-such-program", err: "no-such-program: no such program in " + Path},
		{name: "unknown path", program: "./missing", err: "./missing: no such file or directory"},
		{name: "not executable", program: "./data", err: "./data: permission denied"},
		{name: "a directory", program: "./bin", err: "./bin: permission denied"},
		{name: "a directory by its name", program: "..", err: "..: no such program in " + Path},
		{name: "no program's format", program: "./nonsense", err: "./nonsense: exec format error"},
		{name: "no interpreter", program: "./orphan", err: "./orphan: no such file or directory"},
		{name: "an argument that no system takes", program: "echo\x00", err: "echo\x00: no such program in " + Path},
	} {
		t.Run(row.name, func(t *testing.T) {
			r := runIn(t.Context(), Plain{}, dir, Command{Args: []string{row.program, "hello"}})
			if row.err == "" {
				if r.err != nil || r.stdout != row.stdout || r.exit != (Exit{}) {
					t.Errorf("got %+v, want the output %q", r, row.stdout)
				}
				return
			}
			if !errors.Is(r.err, ErrNotStarted) || r.err.Error() != row.err+": command not started" {
				t.Errorf("got %+v, want ErrNotStarted: %s", r, row.err)
			}
			if r.exit != (Exit{}) || r.stdout != "" {
				t.Errorf("got %+v of a program that was not started", r)
			}
		})
	}
}

func TestPlainNotStartedOrFault(t *testing.T) {
	for _, row := range []struct {
		err   error
		agent bool // the agent's mistake
		text  string
	}{
		{err: &os.PathError{Op: "fork/exec", Path: "/bin/x", Err: unix.E2BIG}, agent: true, text: "x: argument list too long: command not started"},
		{err: errors.New("exec: NUL"), agent: true, text: "x: exec: NUL: command not started"},
		{err: &os.PathError{Op: "fork/exec", Path: "/bin/x", Err: unix.EAGAIN}, text: "x: fork/exec /bin/x: resource temporarily unavailable"},
		{err: &os.PathError{Op: "fork/exec", Path: "/bin/x", Err: unix.ENOMEM}, text: "x: fork/exec /bin/x: cannot allocate memory"},
		{err: &os.PathError{Op: "fork/exec", Path: "/bin/x", Err: unix.EMFILE}, text: "x: fork/exec /bin/x: too many open files"},
	} {
		err := notStarted("x", row.err)
		if errors.Is(err, ErrNotStarted) != row.agent || err.Error() != row.text {
			t.Errorf("%v became %v", row.err, err)
		}
	}
}

func TestPlainExit(t *testing.T) {
	for _, row := range []struct {
		script string
		want   Exit
	}{
		{script: "exit 0", want: Exit{}},
		{script: "exit 3", want: Exit{Code: 3}},
		{script: "exit 255", want: Exit{Code: 255}},
		{script: "kill -TERM $$", want: Exit{Code: -1, Signal: "SIGTERM"}},
		{script: "kill -KILL $$", want: Exit{Code: -1, Signal: "SIGKILL"}},
		{script: "kill -40 $$", want: Exit{Code: -1, Signal: "40"}},
	} {
		if r := mustRun(t, "sh", "-c", row.script); r.exit != row.want {
			t.Errorf("%s: got %+v, want %+v", row.script, r.exit, row.want)
		}
	}
}

func TestPlainArgumentsArriveAsTheyAre(t *testing.T) {
	args := []string{"sh", "-c", `tr '\0' '\n' < /proc/$$/cmdline`, "", "a b", "$HOME", "*", "ä\xff"}
	if got := mustRun(t, args...).stdout; got != strings.Join(args, "\n")+"\n" {
		t.Errorf("got %q", got)
	}
}

// A server's end must not leave the program behind, whatever ended the server.
func TestPlainProgramEndsWithTheServer(t *testing.T) {
	meet, held := sandboxtest.NewPipe(t), filepath.Join(t.TempDir(), "held")
	if err := unix.Mkfifo(held, 0o600); err != nil {
		t.Fatal(err)
	}
	reader, err := os.OpenFile(held, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	server := exec.Command(os.Args[0])
	server.Env = []string{serverVariable + "=" + fmt.Sprintf("exec 3> %s; echo $$ > %s; exec sleep 600", held, meet.Path)}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	pid := meet.PID()
	if !sandboxtest.Alive(pid) {
		t.Error("the program is not alive while its server is")
	}
	if err := server.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = server.Wait() // says that it was killed
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = reader.Read(make([]byte, 1)) // the end of file: nobody writes any more
	}()
	sandboxtest.Wait(t, ended, "the end of the program whose server was killed")
}

func TestPlainManyAtOnce(t *testing.T) {
	var all sync.WaitGroup
	for i := range 24 {
		all.Go(func() {
			text := strings.Repeat(fmt.Sprintf("run %d\n", i), 20000) // more than a pipe holds
			r := runIn(t.Context(), Plain{}, t.TempDir(), Command{Args: []string{"cat"}, Stdin: strings.NewReader(text)})
			if r.err != nil || r.stdout != text || r.stderr != "" {
				t.Errorf("run %d: %d bytes of %d, %q, %v", i, len(r.stdout), len(text), r.stderr, r.err)
			}
		})
	}
	all.Wait()
}

func TestPlainLeaksNothing(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	runAll := func() {
		mustRun(t, "sh", "-c", "cat; exit 1")
		mustRun(t, "sh", "-c", "sleep 600 &")
		for _, program := range []string{"no-such-program", "/"} {
			if r := runIn(t.Context(), Plain{}, t.TempDir(), Command{Args: []string{program}}); !errors.Is(r.err, ErrNotStarted) {
				t.Errorf("%s: %+v", program, r)
			}
		}
		input := bytes.NewReader(make([]byte, 1<<20)) // nobody reads it
		if r := runIn(t.Context(), Plain{}, t.TempDir(), Command{Args: []string{"true"}, Stdin: input}); r.err != nil {
			t.Error(r.err)
		}
		if r := runIn(ended, Plain{}, t.TempDir(), Command{Args: []string{"sleep", "600"}}); !r.exit.Stopped {
			t.Errorf("%+v", r)
		}
	}
	runAll() // opens what the runtime keeps open, such as its poller
	before := openFiles(t)
	for range 3 {
		runAll()
	}
	if after := openFiles(t); after != before {
		t.Errorf("%d files are open, %d were before", after, before)
	}
	goleak.VerifyNone(t)
}

// openFiles counts this process's open files.
func openFiles(t *testing.T) int {
	t.Helper()
	files, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// plant makes a file with its folders.
func plant(t *testing.T, dir, name, content string, mode os.FileMode) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
}
