package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentrun/internal/needs"
	"agentrun/run/sandbox/sandboxtest"
)

// A command is confined as far as was asked for, or it does not run.

// ranScript says that it ran, and that it is open when it can read what no
// command may.
const (
	ranScript = "echo RAN; (read -r x < ../../secret) 2> /dev/null && echo OPEN; :"
	ranSafe   = "RAN\n"
	ranOpen   = "RAN\nOPEN\n"
)

// lacks says for a host which levels it has none of, and the words that name
// what is missing at each.
var lacks = map[string]map[Level]string{
	sandboxtest.NoUserns:       {Full: "user namespaces"},
	sandboxtest.NoUsernsLeft:   {Full: "user namespaces"},
	sandboxtest.NoMounts:       {Full: "mount"},
	sandboxtest.NoLandlock:     {Full: "landlock", Landlock: "landlock"},
	sandboxtest.NoneOfBoth:     {Full: "user namespaces", Landlock: "landlock"},
	sandboxtest.NoSeccomp:      {Full: "seccomp", Landlock: "seccomp"},
	sandboxtest.RefusedSeccomp: {Full: "seccomp", Landlock: "seccomp"},
}

// everyUser runs a test as root and as nobody.
func everyUser(t *testing.T, test func(t *testing.T, uid int)) {
	t.Helper()
	if os.Geteuid() != 0 {
		needs.Lacking(t, "root, to be more than one user")
	}
	for _, uid := range []int{0, nobody} {
		t.Run(fmt.Sprintf("as %d", uid), func(t *testing.T) { test(t, uid) })
	}
}

// onHost is newSetting on a host that lacks something, with a secret that lies
// open to every user.
func onHost(t *testing.T, host string, level Level, uid int) *setting {
	t.Helper()
	s := newSetting(t, level, uid)
	s.host = host
	secret := filepath.Join(s.data, "secret")
	if err := os.WriteFile(secret, []byte("secret\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(secret, 0o644); err != nil {
		t.Fatal(err)
	}
	return s
}

// expected is the level at which a setting confines on a host, empty when it
// has to refuse, and what the refusal has to say.
func expected(host string, asked Level) (level Level, words []string) {
	levels := []Level{asked}
	if asked == Auto {
		levels = []Level{Full, Landlock}
	}
	for _, l := range levels {
		word, missing := lacks[host][l]
		if !missing {
			return l, nil
		}
		words = append(words, word)
	}
	return "", words
}

// A server that starts on a host confines as far as its setting says and its
// host can, or runs nothing and says what is missing.
func TestOpenFailsClosed(t *testing.T) {
	var c closed
	everyUser(t, func(t *testing.T, uid int) {
		for _, host := range sandboxtest.Hosts {
			for _, asked := range []Level{Auto, Full, Landlock} {
				s := onHost(t, host, asked, uid)
				o := s.script(ranScript)
				o.Open = true
				r := s.run(o)
				level, words := expected(host, asked)
				what := fmt.Sprintf("without %q, asked for %s", host, asked)
				c.check(t, what, r, level, append(words, ErrNoSandbox.Error()))
			}
		}
	})
	c.report(t)
}

// check checks that a command ran at a level, or, when that is empty,
// that it did not run and that the error says these words.
func (c *closed) check(t *testing.T, what string, r outcome, level Level, words []string) {
	t.Helper()
	c.injected++
	if level != "" {
		if r.Err != "" || r.Stdout != ranSafe || r.Level != string(level) {
			t.Errorf("%s: got %+v, want level %s", what, r, level)
			return
		}
		c.survived++
		return
	}
	c.refused++
	if r.Err == "" || strings.Contains(r.Stdout, "RAN") {
		t.Errorf("%s: it ran: %+v", what, r)
		return
	}
	for _, w := range words {
		if !strings.Contains(strings.ToLower(r.Err), strings.ToLower(w)) {
			t.Errorf("%s: %q does not say %q", what, r.Err, w)
			return
		}
	}
	c.survived++
}

// closed counts faults and what came of them.
type closed struct{ injected, survived, refused int }

func (c *closed) report(t *testing.T) {
	t.Helper()
	if c.refused == 0 {
		t.Error("nothing was refused")
	}
	t.Logf("%d injected, %d survived, %d of them by refusal", c.injected, c.survived, c.refused)
}

// A host can lose what it had while a server runs: every command notices.
func TestRunFailsClosed(t *testing.T) {
	var c closed
	everyUser(t, func(t *testing.T, uid int) {
		for _, host := range sandboxtest.Hosts {
			for _, asked := range []Level{Full, Landlock} {
				s := onHost(t, host, asked, uid)
				r := s.run(s.script(ranScript))
				level, words := expected(host, asked)
				c.check(t, fmt.Sprintf("without %q, level %s", host, asked), r, level, words)
				if level == "" && strings.Contains(r.Err, ErrNotStarted.Error()) {
					t.Errorf("without %q the fault is said to be the agent's: %s", host, r.Err)
				}
			}
		}
	})
	c.report(t)
}

// Without the sandbox the same command runs on every one of these hosts, and
// reads what it must not; on a host that lacks nothing it is confined at every
// level. The tests above would prove nothing otherwise.
func TestClosedControl(t *testing.T) {
	everyUser(t, func(t *testing.T, uid int) {
		for asked, level := range map[Level]Level{Auto: Full, Full: Full, Landlock: Landlock} {
			s := onHost(t, "", asked, uid)
			o := s.script(ranScript)
			o.Open = true
			if r := s.run(o); r.Err != "" || r.Stdout != ranSafe || r.Level != string(level) {
				t.Errorf("%s: %+v", asked, r)
			}
		}
		for _, host := range sandboxtest.Hosts {
			s := onHost(t, host, Off, uid)
			o := s.script(ranScript)
			o.Open = true
			if r := s.run(o); r.Err != "" || r.Stdout != ranOpen || r.Level != string(Off) {
				t.Errorf("without %q: %+v", host, r)
			}
		}
	})
}

// What a server stands on can be taken away under its feet.
func TestTakenAway(t *testing.T) {
	var c closed
	everyUser(t, func(t *testing.T, uid int) {
		for _, asked := range []Level{Auto, Full, Landlock} {
			for name, row := range map[string]struct {
				before string // with the paths of the workspace and of the binary
				words  []string
			}{
				"the workspace":               {"rm -r %[1]s; : %[2]s", []string{"workspace"}},
				"a file for a workspace":      {"rm -r %[1]s && : > %[1]s; : %[2]s", []string{"directory"}},
				"a link for a workspace":      {"rm -r %[1]s && mkdir -m 777 %[2]s.d && ln -s %[2]s.d %[1]s", []string{"workspace"}},
				"the binary":                  {before: "rm %[2]s; : %[1]s"},
				"another binary in its place": {before: `printf '#!/bin/sh\necho RAN; echo OPEN\n' > %[2]s.new && chmod 755 %[2]s.new && mv %[2]s.new %[2]s; : %[1]s`},
			} {
				s := onHost(t, "", asked, uid)
				s.binary = copyBinary(t, s)
				o := s.script(ranScript)
				o.Open, o.Before = true, fmt.Sprintf(row.before, s.workspace, s.binary)
				r := s.run(o)
				level := asked
				if level == Auto {
					level = Full
				}
				if row.words != nil {
					level = ""
				}
				c.check(t, fmt.Sprintf("%s taken away, asked for %s", name, asked), r, level, row.words)
			}
		}
	})
	c.report(t)
}

// copyBinary gives a server a binary of its own, in a folder that is its own.
func copyBinary(t *testing.T, s *setting) string {
	t.Helper()
	dir := filepath.Join(filepath.Dir(s.data), "bin")
	path := filepath.Join(dir, "server")
	content, err := os.ReadFile("/proc/self/exe")
	for _, err := range []error{
		err, os.Mkdir(dir, 0o755), os.Chown(dir, s.uid, s.uid), os.WriteFile(path, content, 0o755), os.Chmod(path, 0o755),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// Examine says what is missing in the row of it, and which levels do not work.
func TestExamineNamesWhatIsMissing(t *testing.T) {
	rows := map[string][]string{
		sandboxtest.NoUserns: {"user namespaces"}, sandboxtest.NoUsernsLeft: {"user namespaces"},
		sandboxtest.NoLandlock: {"Landlock"}, sandboxtest.NoneOfBoth: {"user namespaces", "Landlock"},
		sandboxtest.NoSeccomp: {"seccomp"},
	}
	everyUser(t, func(t *testing.T, uid int) {
		for _, host := range sandboxtest.Hosts {
			details := map[string]string{} // of what fails
			for _, c := range onHost(t, host, Auto, uid).run(order{Examine: true}).Checks {
				if c.Detail == "" {
					t.Errorf("without %q: no word about %s", host, c.Name)
				}
				if !c.OK {
					details[c.Name] = c.Detail
				}
			}
			for _, row := range rows[host] {
				if details[row] == "" {
					t.Errorf("without %q: %s is said to be there", host, row)
				}
			}
			for _, level := range []Level{Full, Landlock} {
				word := strings.ToLower(lacks[host][level])
				detail, failed := details["level "+string(level)]
				if failed != (word != "") || !strings.Contains(strings.ToLower(detail), word) {
					t.Errorf("without %q: level %s: %q, want %q", host, level, detail, word)
				}
			}
		}
	})
}
