package sandbox

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// orphanPatience bounds how long EndOrphans goes on.
const orphanPatience = 2 * time.Second

// EndOrphans ends the processes that have a variable in their environment with
// a value that is of ours, and returns how many it met. A sandbox ends with its
// server, so that there are none; what ran without one may be left of a server
// that was killed. It sees the processes that this one may look into.
func EndOrphans(variable string, ours func(value string) bool) int {
	met := 0
	over := time.After(orphanPatience)
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	for {
		found := withVariable(variable, ours)
		met = max(met, len(found))
		if len(found) == 0 {
			return met
		}
		for _, pid := range found {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		select {
		case <-over:
			return met
		case <-look.C:
		}
	}
}

// withVariable are the processes, other than this one, whose environment has
// the variable with such a value.
func withVariable(variable string, ours func(value string) bool) []int {
	paths, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil
	}
	var found []int
	for _, path := range paths {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		environ, err := os.ReadFile(path)
		if err != nil {
			continue // It is gone, or somebody else's.
		}
		for entry := range bytes.SplitSeq(environ, []byte{0}) {
			if value, ok := bytes.CutPrefix(entry, []byte(variable+"=")); ok && ours(string(value)) {
				found = append(found, pid)
				break
			}
		}
	}
	return found
}
