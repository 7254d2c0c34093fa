// Package needs tells what a test needs of the machine and does not find. A
// person sees the test skipped with the reason; in CI, where everything has to
// be there, the test fails. It is for tests only, and imports nothing of
// agentrun.
package needs

import (
	"os"
	"os/exec"
	"testing"
)

// Program ends the test unless a program of that name is in the PATH.
func Program(t testing.TB, name string) {
	t.Helper()
	if _, err := exec.LookPath(name); err != nil {
		Lacking(t, name+" is missing: install it")
	}
}

// Lacking ends the test for want of something that the machine should have.
func Lacking(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal("NOT TESTED: " + what)
	}
	t.Skip("NOT TESTED: " + what)
}
