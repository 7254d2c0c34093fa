package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-faster/errors"
	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"agentrun/gen"
	"agentrun/internal/needs"
	"agentrun/poll"
)

// terminal is a pseudo terminal whose other side a program has.
type terminal struct {
	*os.File                 // the side of the program
	shown    strings.Builder // to be read once gone is closed
	gone     chan struct{}   // closed when nobody has the program's side open any more
}

func openTerminal(t *testing.T, columns uint16) *terminal {
	t.Helper()
	screen, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		needs.Lacking(t, "no pseudo terminals: "+err.Error())
	}
	t.Cleanup(func() { _ = screen.Close() })
	fd := int(screen.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: columns})
	}
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		needs.Lacking(t, "no pseudo terminals: "+err.Error())
	}
	p := &terminal{File: program, gone: make(chan struct{})}
	t.Cleanup(func() { _ = program.Close() })
	go p.follow(screen)
	return p
}

// follow keeps what is written to the terminal. Reading ends with an error once
// nobody has the program's side open any more.
func (p *terminal) follow(screen io.Reader) {
	defer close(p.gone)
	buf := make([]byte, 4096)
	for {
		n, err := screen.Read(buf)
		if err != nil {
			return
		}
		p.shown.Write(buf[:n])
	}
}

// all waits until the program's side is closed and returns everything shown.
func (p *terminal) all() string {
	_ = p.Close()
	<-p.gone
	return p.shown.String()
}

// wantOneLine checks that nothing but one line was drawn, again and again,
// within the columns, and that it is gone in the end.
func wantOneLine(t *testing.T, shown string, columns int) {
	t.Helper()
	if strings.Contains(shown, "\n") {
		t.Errorf("more than one line: %q", shown)
	}
	drawn, found := strings.CutSuffix(shown, clearLine)
	if !found {
		t.Errorf("the line stays: %q", shown)
	}
	for _, line := range strings.Split(drawn, clearRest) {
		text := strings.TrimPrefix(line, "\r")
		if n := len([]rune(text)); n >= columns || strings.ContainsFunc(text, steers) {
			t.Errorf("%d characters on %d columns: %q", n, columns, text)
		}
	}
}

// The line tells what is known, and is drawn anew as the time passes.
func TestLiveLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const columns = 60
		var out strings.Builder
		l := newLiveLine(&out, func() int { return columns })
		shown := 0
		want := func(text string) {
			t.Helper()
			synctest.Wait()
			l.mu.Lock()
			defer l.mu.Unlock()
			if got := out.String()[shown:]; got != "\r"+text+clearRest {
				t.Errorf("drawn %q, want %q", got, text)
			}
			shown = out.Len()
		}
		want("creating 0s")
		<-time.After(1100 * time.Millisecond)
		want("creating 1s")
		l.created(uuid.New())
		want("created 1s")
		running := &gen.PublicAgentStatusResponse{LoopStatus: gen.LoopStatusRunning}
		seen := poll.Progress{Last: running, Next: time.Second}
		l.saw(seen)
		want("running 1s: starting")
		running.Transcript = []gen.TranscriptMessage{{Role: gen.TranscriptMessageRoleInputToAgent, Text: "go"}}
		l.saw(seen)
		want("running 1s: input accepted")
		l.saw(poll.Progress{Last: running, Err: errors.New("two\nlines \x1b]0;"), Next: 4 * time.Second})
		want(`running 1s: no answer, next try in 4s: two; lines \x1b]0;`)
		<-time.After(time.Second)
		want(`running 2s: no answer, next try in 3s: two; lines \x1b]0;`)
		running.Transcript = append(running.Transcript, gen.TranscriptMessage{
			Role: gen.TranscriptMessageRoleOutputFromAgent, Text: "first\x1b[2J words\n\nof " + strings.Repeat("very ", 1000) + "many",
		})
		l.saw(seen)
		want(`running 2s: output: first\x1b[2J words of very very very v…`)
		l.saw(poll.Progress{Last: running})
		l.end()
		l.end()
		wantOneLine(t, out.String(), columns)
	})
}

// The whole command on terminals: the line on one, the output on another, and
// neither obeys what the server sends.
func TestRunOnTerminal(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	s := serveScript(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1) == 1 {
			reply(503, `{"detail":"\u001b[31mlater"}`)(w, r)
			return
		}
		reply(200, `{"agent_id":"01920000-0000-7000-8000-000000000000","loop_status":"terminated",`+
			`"transcript":[{"role":"output_from_agent","text":"a\tb\n\u001b]0;c"}]}`)(w, r)
	})
	const columns = 100
	progress, output, dumb := openTerminal(t, columns), openTerminal(t, columns), openTerminal(t, columns)
	cmd := s.command(t, "hello")
	cmd.Stdout, cmd.Stderr = output.File, progress.File
	// A terminal that obeys nothing gets lines, as a file does.
	refusing := serveScript(t, nil, reply(401, `{"detail":"Invalid API key"}`))
	plain := refusing.command(t, "hello")
	plain.Env, plain.Stderr = append(plain.Env, "TERM=dumb"), dumb.File
	for _, c := range []*exec.Cmd{cmd, plain} {
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
	}
	if err := plain.Wait(); plain.ProcessState.ExitCode() != exitFailed {
		t.Errorf("%v", err)
	}
	want := fmt.Sprintf("run %[1]s: created\r\nagentrun: run %[1]s: 401 Unauthorized: Invalid API key\r\n", refusing.run)
	if got := dumb.all(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != exitTerminated {
		t.Errorf("%v", err)
	}
	drawn, last, found := strings.Cut(progress.all(), clearLine+"agentrun: ")
	if want := fmt.Sprintf("run %s: terminated\r\n", s.run); !found || last != want {
		t.Errorf("at the end %q, want %q", last, want)
	}
	wantOneLine(t, drawn+clearLine, columns)
	for _, part := range []string{"\rcreating 0s", "\rcreated ", `no answer, next try in 1s: 503 Service Unavailable: \x1b[31mlater`} {
		if !strings.Contains(drawn, part) {
			t.Errorf("%q was not drawn: %q", part, drawn)
		}
	}
	// The terminal makes \r\n of a line's end and blanks of a tab.
	if got := strings.Join(strings.Fields(output.all()), " "); got != `a b \x1b]0;c` {
		t.Errorf("printed %q", got)
	}
}

func TestCut(t *testing.T) {
	for _, c := range []struct {
		text    string
		columns int
		want    string
	}{
		{"", 5, ""},
		{"abcde", 5, "abcde"},
		{"abcdef", 5, "abcd…"},
		{"abcdef", 1, "…"},
		{"abcdef", 0, "…"},
		{"äöüäö", 5, "äöüäö"},
		{"äöüäöü", 5, "äöüä…"},
		{"日本", 4, "日本"},
		{"日本語", 5, "日本…"},
		{"日本語", 4, "日…"},
		{"a…b", 3, "a…b"},
	} {
		if got := cut(c.text, c.columns); got != c.want {
			t.Errorf("cut(%q, %d) = %q, want %q", c.text, c.columns, got, c.want)
		}
	}
}
