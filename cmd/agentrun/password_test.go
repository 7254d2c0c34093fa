package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"agentrun/internal/needs"
)

// keyboard is a terminal at which the test types.
type keyboard struct {
	t       *testing.T
	screen  *os.File // the side of the person
	program *os.File
	shown   *bufio.Reader
}

func openKeyboard(t *testing.T) *keyboard {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		needs.Lacking(t, "no pseudo terminals: "+err.Error())
	}
	t.Cleanup(func() { _ = screen.Close() })
	number, err := unix.IoctlGetInt(int(screen.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(screen.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		needs.Lacking(t, "no pseudo terminals: "+err.Error())
	}
	t.Cleanup(func() { _ = program.Close() })
	return &keyboard{t, screen, program, bufio.NewReader(screen)}
}

// await reads what is shown up to a text, and returns it.
func (k *keyboard) await(text string) string {
	k.t.Helper()
	var all strings.Builder
	for !strings.HasSuffix(all.String(), text) {
		b, err := k.shown.ReadByte()
		if err != nil {
			k.t.Fatalf("%q, then %v; waited for %q", all.String(), err, text)
		}
		all.WriteByte(b)
	}
	return all.String()
}

func (k *keyboard) types(text string) {
	k.t.Helper()
	if _, err := k.screen.WriteString(text); err != nil {
		k.t.Fatal(err)
	}
}

func (k *keyboard) echoes() bool {
	k.t.Helper()
	state, err := unix.IoctlGetTermios(int(k.program.Fd()), unix.TCGETS)
	if err != nil {
		k.t.Fatal(err)
	}
	return state.Lflag&unix.ECHO != 0
}

// At a terminal the password is typed twice and not shown, and the terminal is
// as it was after it.
func TestPasswordAtATerminal(t *testing.T) {
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	data := filepath.Join(t.TempDir(), "data")
	for _, c := range []struct {
		name   string
		again  string
		signal os.Signal
		code   int
		says   string
	}{
		{name: "the same", again: "correct horse battery\n", code: exitDone, says: "person@example.org"},
		{name: "another", again: "correct horse batterie\n", code: exitFailed, says: "the two passwords differ, and nothing was done"},
		{name: "interrupted", signal: syscall.SIGINT, code: exitFailed, says: "interrupted, and nothing was done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			k := openKeyboard(t)
			cmd := exec.CommandContext(t.Context(), "agentrun", "user", "create", "person@example.org", "--data", data)
			cmd.Stdin, cmd.Stdout, cmd.Stderr = k.program, k.program, k.program
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			shown := k.await("Password for person@example.org: ")
			if k.echoes() {
				t.Error("what is typed is shown")
			}
			k.types("correct horse battery\n")
			shown += k.await("The same again: ")
			if c.signal != nil {
				if err := cmd.Process.Signal(c.signal); err != nil {
					t.Fatal(err)
				}
			}
			k.types(c.again)
			shown += k.await(c.says)
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != c.code || strings.Contains(shown, "horse") || !k.echoes() {
				t.Errorf("exit code %d, echo %v, shown %q", code, k.echoes(), shown)
			}
		})
	}
}
