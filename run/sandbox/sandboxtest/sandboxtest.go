// Package sandboxtest lets tests meet the programs that they run: at named
// pipes, instead of after a sleep. It is for tests only, and imports nothing of
// agentrun.
package sandboxtest

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Patience is how long a test waits for what has to happen.
const Patience = 20 * time.Second

// Pipe is a named pipe between a test and its programs. Neither side waits for
// the other to open it.
type Pipe struct {
	// Path is where programs find the pipe.
	Path string

	t     *testing.T
	file  *os.File
	lines *bufio.Reader
}

// NewPipe makes a pipe that goes with the test.
func NewPipe(t *testing.T) *Pipe {
	t.Helper()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.OpenFile(path, os.O_RDWR|unix.O_NONBLOCK, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return &Pipe{Path: path, t: t, file: file, lines: bufio.NewReader(file)}
}

// Line waits for the next line that a program writes, as `echo hello > PATH`.
func (p *Pipe) Line() string {
	p.t.Helper()
	if err := p.file.SetReadDeadline(time.Now().Add(Patience)); err != nil {
		p.t.Fatal(err)
	}
	line, err := p.lines.ReadString('\n')
	if err != nil {
		p.t.Fatalf("no line from a program: %v", err)
	}
	return strings.TrimSuffix(line, "\n")
}

// PID waits for a line that holds a process ID, as `echo $$ > PATH`.
func (p *Pipe) PID() int {
	p.t.Helper()
	pid, err := strconv.Atoi(p.Line())
	if err != nil {
		p.t.Fatal(err)
	}
	return pid
}

// Release lets one program go on that waits with `read x < PATH`. A pipe is
// used in one direction only.
func (p *Pipe) Release() {
	p.t.Helper()
	p.Tell("")
}

// Tell gives a line to the one program that waits with `read x < PATH`.
func (p *Pipe) Tell(line string) {
	p.t.Helper()
	if _, err := p.file.WriteString(line + "\n"); err != nil {
		p.t.Fatal(err)
	}
}

// Alive says whether a process is there and no zombie.
func Alive(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	return len(fields) > 0 && fields[0][0] != 'Z' && fields[0][0] != 'X'
}

// Wait fails the test when done is not closed in time.
func Wait(t *testing.T, done <-chan struct{}, what string) {
	t.Helper()
	timer := time.NewTimer(Patience)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
		t.Fatalf("%s: not after %v", what, Patience)
	}
}
