package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-faster/errors"
)

// TestConfined is what a command is and has, at each level.
func TestConfined(t *testing.T) {
	everySetting(t, func(t *testing.T, s *setting) {
		for _, row := range []struct{ name, script, stdin, stdout, stderr string }{
			{name: "streams", script: "cat; echo fine; echo oops >&2", stdin: "in ", stdout: "in fine\n", stderr: "oops\n"},
			{name: "the workspace", script: "pwd; : > file; ls", stdout: s.workspace + "\nfile\n"},
			{name: "the environment", script: "env | sort | grep -v -e ^_= -e ^TMPDIR= -e ^PWD= -e ^SHLVL=",
				stdout: "HOME=" + s.workspace + "\nLANG=C.UTF-8\nPATH=" + Path + "\n"},
			{name: "files for a while", script: `f=$(mktemp) && echo x > "$f" && cat "$f"`, stdout: "x\n"},
			{name: "descriptors", script: "for f in 3 4 5 6 7 8 9; do (: <&$f) 2> /dev/null && echo $f; done; :"},
			{name: "rights", script: "id -u | grep -qx 0 && echo root; grep -E 'Cap(Prm|Eff|Bnd|Amb)' /proc/self/status 2> /dev/null | grep -v '0000000000000000$'; :"},
			{name: "root's files", script: "(cat /etc/shadow || ls /root || ls /home) 2> /dev/null; :"},
			{name: "system files", script: "(: > /usr/x || : > /etc/x || : > /x) 2> /dev/null; :"},
		} {
			t.Run(row.name, func(t *testing.T) {
				s := *s
				s.t = t
				o := s.script(row.script)
				o.Stdin = row.stdin
				r := s.run(o)
				if (r.Exit != Exit{}) || r.Err != "" || r.Stdout != row.stdout || r.Stderr != row.stderr {
					t.Errorf("got %+v, want %q and %q", r, row.stdout, row.stderr)
				}
			})
		}
	})
}

func TestConfinedEnds(t *testing.T) {
	everySetting(t, func(t *testing.T, s *setting) {
		for _, row := range []struct {
			name string
			args []string
			exit Exit
			err  string
		}{
			{name: "a code", args: []string{"sh", "-c", "exit 7"}, exit: Exit{Code: 7}},
			{name: "a signal", args: []string{"sh", "-c", "kill -9 $$"}, exit: Exit{Code: -1, Signal: "SIGKILL"}},
			{name: "no such program", args: []string{"no-such-program"}, err: "command not started"},
			{name: "no such path", args: []string{"./no-such-program"}, err: "command not started"},
			{name: "no program", args: []string{"/etc/ld.so.conf"}, err: "command not started"},
		} {
			r := s.run(s.order(row.args...))
			if r.Exit != row.exit || !strings.Contains(r.Err, row.err) || (r.Err != "") != (row.err != "") {
				t.Errorf("%s: %+v", row.name, r)
			}
		}
	})
}

// What a command leaves behind neither holds its turn nor outlives it.
func TestConfinedIsStopped(t *testing.T) {
	everySetting(t, func(t *testing.T, s *setting) {
		for name, script := range map[string]string{
			"by itself":              "sleep 600 & setsid sleep 600 & :",
			"asleep":                 "exec sleep 600",
			"it ignores SIGTERM":     "trap '' TERM; while :; do sleep 600; done",
			"it has another session": "setsid sh -c 'trap \"\" TERM; sleep 600' & sleep 600",
			"it is stopped":          "sh -c 'kill -STOP $$'",
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := newSetting(t, s.level, s.uid)
				o := s.script(script)
				if name != "by itself" {
					o.Stop = 300 * time.Millisecond
				}
				if r := s.run(o); r.Err != "" || r.Exit.Stopped != (o.Stop > 0) || r.Took > StopGrace+3*time.Second {
					t.Errorf("%+v", r)
				}
				if left := processesIn(t, s.workspace); len(left) > 0 {
					t.Errorf("alive are %v", left)
				}
			})
		}
	})
}

// processesIn are the processes that work in a directory, and the sandboxes
// that were made for it.
func processesIn(t *testing.T, dir string) []string {
	t.Helper()
	links, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && strings.HasPrefix(at, dir) {
			found = append(found, link)
		}
	}
	return found
}

// A kill -9 of the server ends whatever ran in its sandboxes.
func TestConfinedEndsWithTheServer(t *testing.T) {
	everySetting(t, func(t *testing.T, s *setting) {
		cmd := s.server(s.script("setsid sh -c ': > begun; trap \"\" TERM; sleep 600' & sleep 600"))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the command to begin", func() bool {
			_, err := os.Stat(filepath.Join(s.workspace, "begun"))
			return err == nil
		})
		if len(processesIn(t, s.workspace)) == 0 {
			t.Fatal("no process is seen to run")
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		eventually(t, "the end of its commands", func() bool { return len(processesIn(t, s.workspace)) == 0 })
	})
}

// eventually waits until done is true.
func eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for !done() {
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s in vain", what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func TestOpen(t *testing.T) {
	for _, level := range []Level{Auto, Full, Landlock, Off} {
		runner, err := Open(t.Context(), Options{Level: level})
		if err != nil {
			t.Fatal(err)
		}
		want := level
		if level == Auto {
			want = Full
		}
		if runner.Level() != string(want) || Refusal(runner) != nil {
			t.Errorf("%s: got %s, %v", level, runner.Level(), Refusal(runner))
		}
	}
	if _, err := Open(t.Context(), Options{Level: "none"}); err == nil {
		t.Error("a level that does not exist was opened")
	}
	no := refused{errors.Wrap(ErrNoSandbox, "test")}
	if _, err := no.Run(t.Context(), Command{Args: []string{"true"}}); !errors.Is(err, ErrNotStarted) || !strings.Contains(err.Error(), "doctor") {
		t.Errorf("refused: %v", err)
	}
	if Refusal(no) == nil {
		t.Error("it does not say that it refuses")
	}
}

func TestExamine(t *testing.T) {
	for _, c := range append(Examine(t.Context()), ExamineDisk(filepath.Join(t.TempDir(), "not", "made", "yet"))) {
		t.Logf("%s: %t, %s", c.Name, c.OK, c.Detail)
		if c.Detail == "" || !c.OK && c.Name != "cgroup v2" {
			t.Errorf("%+v", c)
		}
	}
}
