package sandbox

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// BenchmarkCommand is what a command costs at each level, and without any: its
// program ends at once. The least that a sandbox can cost is to start this
// binary a second time, since that is how its first process comes to life; so
// the last figure is how many times that a command in the level full takes.
func BenchmarkCommand(b *testing.B) {
	again := func(b *testing.B) {
		cmd := &exec.Cmd{Path: "/proc/self/exe", Args: []string{probeName}, Env: []string{}}
		if err := cmd.Run(); err != nil {
			b.Fatal(err)
		}
	}
	for _, way := range []struct {
		name string
		run  func(*testing.B)
	}{
		{"this binary again", again},
		{"off", command(b, Plain{})},
		{"landlock", command(b, newConfined(Landlock, ""))},
		{"full", command(b, newConfined(Full, ""))},
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
	b.Run("full by this binary again", func(b *testing.B) {
		full := command(b, newConfined(Full, ""))
		var most, least []time.Duration
		for b.Loop() {
			most, least = append(most, stopwatch(b, full)), append(least, stopwatch(b, again))
		}
		b.ReportMetric(float64(median(most))/float64(median(least)), "times")
	})
}

// command returns what runs a command that ends at once.
func command(b *testing.B, runner Runner) func(*testing.B) {
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
			Args: []string{"true"}, Dir: workspace, Env: []string{"PATH=" + Path}, Stdout: io.Discard, Stderr: io.Discard,
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
