package sandbox

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"
)

// plainName is the argument with which the test binary only starts a program.
const plainName = "sandbox-test-plain"

func init() {
	if len(os.Args) != 2 || os.Args[1] != plainName {
		return
	}
	_, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2}})
	if err == nil {
		_, err = syscall.Wait4(-1, nil, 0, nil)
	}
	if err != nil {
		exitNow(1)
	}
	exitNow(0)
}

// BenchmarkCommand is what a command costs at each level, and without any: its
// program ends at once. What a sandbox costs is to be compared with a run that
// confines nothing, but starts the program in the same way, by this binary that
// is started once more: the last figure is how many times of that a command
// takes at the level full.
func BenchmarkCommand(b *testing.B) {
	self, err := os.Executable()
	if err != nil {
		b.Fatal(err)
	}
	plain := command(b, Plain{}, frugal, self, plainName)
	for _, way := range []struct {
		name string
		run  func(*testing.B)
	}{
		{"plain", plain},
		{"off", command(b, Plain{}, nil, "true")},
		{"landlock", command(b, newConfined(Landlock, ""), nil, "true")},
		{"full", command(b, newConfined(Full, ""), nil, "true")},
	} {
		b.Run(way.name, func(b *testing.B) {
			var took []time.Duration
			for b.Loop() {
				took = append(took, stopwatch(b, way.run))
			}
			b.ReportMetric(milliseconds(median(took)), "p50-ms")
		})
	}
	// By turns, so that both see the same machine.
	b.Run("full by plain", func(b *testing.B) {
		full := command(b, newConfined(Full, ""), nil, "true")
		var most, least []time.Duration
		for b.Loop() {
			most, least = append(most, stopwatch(b, full)), append(least, stopwatch(b, plain))
		}
		b.ReportMetric(float64(median(most))/float64(median(least)), "times")
	})
}

// command returns what runs a command that ends at once.
func command(b *testing.B, runner Runner, env []string, args ...string) func(*testing.B) {
	b.Helper()
	// Not below b.TempDir, whose folders are closed to other users.
	base, err := os.MkdirTemp("", "sandbox-bench-") //nolint:usetesting // its folders are closed to other users
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = os.RemoveAll(base) })
	workspace := filepath.Join(base, "run")
	for _, err := range []error{
		os.Chmod(base, 0o711), os.Mkdir(workspace, 0o700), os.Chown(workspace, runner.Owner(), -1),
	} {
		if err != nil {
			b.Fatal(err)
		}
	}
	return func(b *testing.B) {
		exit, err := runner.Run(b.Context(), Command{
			Args: args, Dir: workspace, Env: append(env, "PATH="+Path), Stdout: io.Discard, Stderr: io.Discard,
		})
		if err != nil || (exit != Exit{}) {
			b.Fatalf("%+v, %v", exit, err)
		}
	}
}

func stopwatch(b *testing.B, run func(*testing.B)) time.Duration {
	begun := time.Now()
	run(b)
	return time.Since(begun)
}

func median(of []time.Duration) time.Duration {
	slices.Sort(of)
	return of[len(of)/2]
}

func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
