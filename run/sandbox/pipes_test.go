package sandbox

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"agentrun/run/sandbox/sandboxtest"
)

func TestStreamsAreApart(t *testing.T) {
	r := runIn(t.Context(), Plain{}, t.TempDir(), Command{
		Args: []string{"sh", "-c", "cat; echo out; echo err >&2"}, Stdin: strings.NewReader("in\n"),
	})
	if diff := cmp.Diff(ran{stdout: "in\nout\n", stderr: "err\n"}, r, cmp.AllowUnexported(ran{})); diff != "" {
		t.Error(diff)
	}
}

func TestNoInputIsAnEmptyOne(t *testing.T) {
	if r := mustRun(t, "cat"); r.stdout != "" || r.exit != (Exit{}) {
		t.Errorf("got %+v", r)
	}
}

// The program gets its three streams and none of the server's files, and they
// wait as programs expect it.
func TestStreamsAreAllThatIsOpen(t *testing.T) {
	inherited, err := unix.Dup(2) // has no close-on-exec, as what a shell passes on
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(inherited)
	if got := mustRun(t, "ls", "/proc/self/fd").stdout; got != "0\n1\n2\n3\n" { // 3 is what ls reads
		t.Errorf("open files: %q", got)
	}
	flags := mustRun(t, "grep", "-h", "flags:", "/proc/self/fdinfo/0", "/proc/self/fdinfo/1", "/proc/self/fdinfo/2").stdout
	if diff := cmp.Diff("flags:\t00\nflags:\t01\nflags:\t01\n", flags); diff != "" {
		t.Errorf("O_NONBLOCK would be 04000: %s", diff)
	}
}

// lateWriter takes nothing before the program is gone for long.
type lateWriter struct {
	gone <-chan struct{}
	got  int
}

func (w *lateWriter) Write(p []byte) (int, error) {
	<-w.gone
	w.got += len(p)
	return len(p), nil
}

// A server that is too busy to read in time still reads what the program wrote
// before its end.
func TestLateReaderLosesNothing(t *testing.T) {
	streams, err := openPipes()
	if err != nil {
		t.Fatal(err)
	}
	const size = 60 << 10 // fits in the pipe
	if _, err := streams.theirs[1].Write(make([]byte, size)); err != nil {
		t.Fatal(err)
	}
	gone := make(chan struct{})
	out, none := &lateWriter{gone: gone}, &lateWriter{gone: gone}
	streams.copy(Command{Stdout: out, Stderr: none})
	// The other ends stay open, as a process that left the group would hold
	// them; the deadline has passed when the first Write returns.
	for _, f := range streams.ours[1:] {
		if err := f.SetReadDeadline(time.Unix(1, 0)); err != nil {
			t.Fatal(err)
		}
	}
	close(gone)
	streams.finish(0)
	streams.closeTheirs()
	if out.got != size || none.got != 0 {
		t.Errorf("got %d bytes of %d, and %d of 0", out.got, size, none.got)
	}
}

func TestProcessThatLeftTheGroupHoldsNothing(t *testing.T) {
	for _, row := range []struct{ name, script string }{
		{name: "a silent one", script: `setsid sh -c 'echo $$ > $MEET; exec sleep 600' & read x < $GO; echo out`},
		{name: "one that never stops writing", script: `setsid sh -c 'echo $$ > $MEET; while :; do echo on; done' & read x < $GO; echo out`},
	} {
		t.Run(row.name, func(t *testing.T) {
			r, meet, goOn := start(t, Plain{}, row.script)
			pid := meet.PID()
			defer func() { _ = unix.Kill(pid, unix.SIGKILL) }()
			goOn.Release()
			got := r.wait()
			if !strings.Contains(got.stdout, "out\n") || got.exit != (Exit{}) {
				t.Errorf("got %d bytes and %+v, want the output", len(got.stdout), got.exit)
			}
		})
	}
}

func TestStopDoesNotWaitForAProcessThatLeftTheGroup(t *testing.T) {
	r, meet, _ := start(t, Plain{}, `setsid sh -c 'echo $$ > $MEET; exec sleep 600' & wait`)
	pid := meet.PID()
	defer func() { _ = unix.Kill(pid, unix.SIGKILL) }()
	r.cancel()
	if got := r.wait(); !got.exit.Stopped {
		t.Errorf("got %+v", got.exit)
	}
	if !sandboxtest.Alive(pid) {
		t.Error("it was ended; the comment of Plain says that it is not")
	}
}

func TestProgramNeedNotReadItsInput(t *testing.T) {
	r := runIn(t.Context(), Plain{}, t.TempDir(), Command{
		Args: []string{"echo", "done"}, Stdin: strings.NewReader(strings.Repeat("x", 4<<20)),
	})
	if r.err != nil || r.stdout != "done\n" || r.exit != (Exit{}) {
		t.Errorf("got %+v", r)
	}
}
