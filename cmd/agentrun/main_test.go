package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"agentrun/run/sandbox/sandboxtest"
)

// TestMain makes the test binary serve as agentrun: tests and scripts find it
// in their PATH under that name.
func TestMain(m *testing.M) {
	sandboxtest.OnHost()
	testscript.Main(m, map[string]func(){"agentrun": main})
}
