package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"agentrun/run/sandbox"
)

// TestMain makes the test binary serve as agentrun: tests and scripts find it
// in their PATH under that name.
func TestMain(m *testing.M) {
	sandbox.Main()
	testscript.Main(m, map[string]func(){"agentrun": main})
}
