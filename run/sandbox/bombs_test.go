package sandbox

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"agentrun/internal/needs"
)

// bomb is a command that takes all that it gets of something. It is bounded all
// the same, so that it does not matter where nothing else bounds it.
type bomb struct {
	name   string
	script string
	limits Limits
	// limited is what it says and how it ends with the limits, free what it says
	// without them.
	limited string
	exit    Exit
	free    string
}

var bombs = []bomb{
	{name: "processes", limits: Limits{Processes: 100}, limited: "Resource temporarily unavailable\n", free: "all\n", script: python(`
import os, signal
try:
    for i in range(400):
        if os.fork() == 0: signal.pause()
    print("all")
except OSError as e: print(e.strerror)`)},
	{name: "memory", limits: Limits{Memory: 256 << 20}, limited: "Cannot allocate memory\n", free: "all\n", script: python(`
import mmap
try:  # private, backed by nothing, and never touched
    all = mmap.mmap(-1, 3 << 30, flags=0x4022); print("all")
except OSError as e: print(e.strerror)`)},
	{name: "memory by and by", limits: Limits{Memory: 256 << 20}, limited: "MemoryError\n", free: "all\n", script: python(`
try:
    all = [bytearray(1 << 20) for i in range(300)]; print("all")
except MemoryError: print("MemoryError")`)},
	{name: "a long file", limits: Limits{FileSize: 1 << 20}, limited: "1048576\n", exit: Exit{Code: 153}, free: "8388608\n",
		script: `(exec head -c 8M /dev/zero > f); code=$?; stat -c %s f; exit $code`},
	{name: "open files", limits: Limits{OpenFiles: 64}, limited: "Too many open files\n", free: "all\n", script: python(`
import os
try:
    for i in range(200): os.open("/dev/null", os.O_RDONLY)
    print("all")
except OSError as e: print(e.strerror)`)},
	// Its path gets longer than any system call takes.
	{name: "folders in folders", limited: "all\n", free: "all\n", script: python(`
import os
for i in range(50): os.mkdir("d" * 200); os.chdir("d" * 200)
print("all")`)},
}

func python(program string) string { return "exec python3 - <<'END'\n" + program + "\nEND" }

// A command that takes too much meets its limit, which it sees as an error of
// its own; without the limit it takes more.
func TestBombs(t *testing.T) {
	needs.Program(t, "python3")
	eitherSetting(t, func(t *testing.T, s *setting) {
		injected, survived := 0, 0
		for _, b := range bombs {
			if b.limits.Memory > 0 && s.level == Full && raceDetector() {
				t.Logf("%s: left out, since the first process of a sandbox has the limit too, and does not live within it", b.name)
				continue
			}
			injected++
			o := s.script(b.script)
			o.Stop = jobPatience
			o.Limits = b.limits
			r := s.run(o)
			if r.Err != "" || r.Exit != b.exit || r.Stdout != b.limited {
				r.Stderr = r.Stderr[:min(len(r.Stderr), mostShown)]
				t.Errorf("%s: got %+v, want %+v and %q", b.name, r, b.exit, b.limited)
				continue
			}
			s.nothingIsLeft(t, b.name)
			if err := os.RemoveAll(filepath.Join(s.workspace, strings.Repeat("d", 200))); err != nil {
				t.Error(b.name, err)
			}
			o.Limits = Limits{}
			if r := s.run(o); r.Err != "" || (r.Exit != Exit{}) || r.Stdout != b.free {
				t.Errorf("%s: without the limit: %+v, want %q", b.name, r, b.free)
			}
			s.nothingIsLeft(t, b.name)
			survived++
		}
		t.Logf("%d injected, %d survived", injected, survived)
	})
}

// raceDetector says whether this binary has the race detector in it, which takes
// far more memory and time.
func raceDetector() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

func (s *setting) nothingIsLeft(t *testing.T, after string) {
	t.Helper()
	if left := processesIn(t, s.workspace); len(left) > 0 {
		t.Errorf("%s: alive are %v", after, left)
	}
}

// stopped are bombs that only their end in time bounds.
var stopped = map[string]order{
	"a fork bomb":     {Args: []string{"bash", "-c", ": > begun; bomb() { bomb | bomb & }; bomb; wait; exec sleep 600"}, Limits: Limits{Processes: 100}},
	"four that spin":  {Args: []string{"sh", "-c", "for i in 1 2 3 4; do while :; do :; done & done; : > begun; wait"}},
	"countless files": {Args: []string{"sh", "-c", `i=0; while :; do : > f$i; i=$((i+1)); : > begun; done`}},
}

// A command that only its end in time bounds is stopped, with all that came of
// it; and meanwhile others get what they need to run.
func TestBombsAreStopped(t *testing.T) {
	needs.Program(t, "bash")
	eitherSetting(t, func(t *testing.T, s *setting) {
		for name, b := range stopped {
			o := s.order(b.Args...)
			o.Limits, o.Stop, o.Grace = b.Limits, 700*time.Millisecond, 200*time.Millisecond
			begun := filepath.Join(s.workspace, "begun")
			_ = os.Remove(begun)
			done := make(chan outcome, 1)
			go func() { done <- s.run(o) }()
			eventually(t, name+" to begin", func() bool {
				_, err := os.Stat(begun)
				return err == nil
			})
			other := newSetting(t, s.level, s.uid)
			during := other.run(other.order("true"))
			r := <-done
			if r.Err != "" || !r.Exit.Stopped || r.Took > o.Stop+10*time.Second {
				t.Errorf("%s: %+v", name, r)
			}
			// Of two processors that four others spin on, with whatever else runs.
			if during.Err != "" || (during.Exit != Exit{}) || during.Took > 5*time.Second {
				t.Errorf("%s: another command meanwhile: %+v", name, during)
			}
			t.Logf("%s: another command took %v meanwhile", name, during.Took)
			s.nothingIsLeft(t, name)
		}
	})
}

// What a command keeps in memory as files is bounded, at the level that gives it
// a place for that. The other one gives it none.
func TestBombsOfFilesInMemory(t *testing.T) {
	needs.Program(t, "python3")
	everySetting(t, func(t *testing.T, s *setting) {
		r := s.run(s.script(python(`
import os
def attempt(what):
    try: what(); print("all")
    except OSError as e: print(e.strerror)
def files(dir, count):
    for i in range(count): os.close(os.open(dir + "/" + str(i), os.O_CREAT | os.O_WRONLY))
for dir in "/tmp", "/dev/shm":
    attempt(lambda: os.posix_fallocate(os.open(dir + "/long", os.O_CREAT | os.O_RDWR), 0, 3 << 30))
    v = os.statvfs(dir)
    if v.f_blocks * v.f_frsize <= 1 << 30 and v.f_files <= 200 * 1024: print("bounded")
attempt(lambda: files("/dev/shm", 30000))
attempt(lambda: files("/", 1))`)))
		const none = "No space left on device\n"
		want := none + "bounded\n" + none + "bounded\n" + none + "Read-only file system\n"
		if s.level == Landlock {
			want = strings.Repeat("Permission denied\n", 4)
			r.Stdout = strings.ReplaceAll(r.Stdout, "bounded\n", "") // as the host's own may be
		}
		if r.Err != "" || (r.Exit != Exit{}) || r.Stdout != want {
			t.Errorf("got %+v, want %q", r, want)
		}
		s.nothingIsLeft(t, "files in memory")
	})
}

// counter counts what is written to it.
type counter struct{ bytes int64 }

func (c *counter) Write(p []byte) (int, error) {
	c.bytes += int64(len(p))
	return len(p), nil
}

// Output of any length passes through the server without staying there. Here the
// server is this process, whose memory can then be looked at.
func TestBombOfOutput(t *testing.T) {
	if os.Geteuid() != 0 {
		needs.Lacking(t, "root, to be more than one user")
	}
	const most = 64 << 20
	long := int64(2 << 30)
	if raceDetector() {
		long = 256 << 20
	}
	for _, level := range []Level{Full, Landlock} {
		s := newSetting(t, level, 0)
		var out counter
		if grown := s.growth(&out, long); grown > most || out.bytes != long {
			t.Errorf("%s: after %d bytes of output the server is %d MiB larger", level, out.bytes, grown>>20)
		}
		var kept bytes.Buffer
		if grown := s.growth(&kept, 128<<20); grown < most {
			t.Errorf("%s: the server keeps %d bytes, and is only %d MiB larger", level, kept.Len(), grown>>20)
		}
	}
}

// growth is by how much this process is larger, at most, while a command writes
// so many bytes.
func (s *setting) growth(out io.Writer, count int64) int64 {
	s.t.Helper()
	before := resident(s.t, "VmRSS:")
	// It makes the most so far what is now.
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		s.t.Fatal(err)
	}
	exit, err := newConfined(s.level, s.data).Run(s.t.Context(), Command{
		Args: []string{"head", "-c", strconv.FormatInt(count, 10), "/dev/zero"}, Dir: s.workspace, Env: []string{"TMPDIR=/tmp"}, Stdout: out, Stderr: io.Discard,
	})
	if err != nil || (exit != Exit{}) {
		s.t.Fatal(exit, err)
	}
	return resident(s.t, "VmHWM:") - before
}

// resident reads a figure of this process's memory, in bytes.
func resident(t *testing.T, name string) int64 {
	t.Helper()
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), name)
	fields := strings.Fields(rest)
	if len(fields) == 0 {
		t.Fatal("no " + name)
	}
	kilobytes, err := strconv.ParseInt(fields[0], 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}

// The least memory that an agent file can give a command is enough for what the
// sandbox itself does while the command is there.
func TestLeastMemory(t *testing.T) {
	if raceDetector() {
		t.Log("left out: a process with the race detector needs more")
		return
	}
	everySetting(t, func(t *testing.T, s *setting) {
		for range 5 {
			o := s.script("sleep 0.01 & wait; exec true")
			o.Limits = Limits{Memory: 128 << 20}
			if r := s.run(o); r.Err != "" || (r.Exit != Exit{}) {
				t.Fatalf("got %+v %s", r.Err, r.Stderr[:min(len(r.Stderr), 8000)])
			}
		}
	})
}
