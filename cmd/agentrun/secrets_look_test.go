package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// sights are what was collected, by place and by where exactly it was.
type sights map[string]map[string][]byte

func (s sights) add(place, where string, text []byte) {
	if s[place] == nil {
		s[place] = map[string][]byte{}
	}
	s[place][where] = text
}

// What the mask is looked for in.
const (
	apiAnswer    = "GET"
	eventsAnswer = "runs events"
)

// lookAtProcesses looks at the server and at what it started, from outside.
func (h *secretsHouse) lookAtProcesses(seen sights) {
	h.t.Helper()
	server := h.cmd.Process.Pid
	h.environ = ofProcess(h.t, server, "environ")
	seen.add(inArguments, "the server", ofProcess(h.t, server, "cmdline"))
	for _, pid := range descendants(h.t, server) {
		where := fmt.Sprintf("process %d", pid)
		seen.add(inArguments, where, ofProcess(h.t, pid, "cmdline"))
		environ := ofProcess(h.t, pid, "environ")
		if bytes.Contains(environ, []byte("AGENTRUN_RUN_ID="+h.run)) {
			seen.add(inEnvironment, where, environ)
		} else {
			seen.add(inFirst, where, environ)
		}
	}
}

// ofProcess reads a file of a process that goes on. Of another user's, or of one
// that no debugger may look at, only root sees everything.
func ofProcess(t *testing.T, pid int, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
	if err != nil && (os.Geteuid() == 0 || !errors.Is(err, fs.ErrPermission)) {
		t.Fatal(err)
	}
	return text
}

// descendants are all processes that come of one.
func descendants(t *testing.T, pid int) []int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		t.Fatal(err)
	}
	children := map[int][]int{}
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // It has ended since.
		}
		// The name, in brackets, may hold anything; after it come state and parent.
		fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
		child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		parent, err := strconv.Atoi(fields[1])
		if err != nil {
			t.Fatal(err)
		}
		children[parent] = append(children[parent], child)
	}
	all := children[pid]
	for i := 0; i < len(all); i++ {
		all = append(all, children[all[i]]...)
	}
	return all
}

// lookAtRun looks at what clients and the operator are shown.
func (h *secretsHouse) lookAtRun(seen sights) {
	h.t.Helper()
	_, body, err := h.send(http.MethodGet, "/v1/agents/"+h.run, nil)
	h.must(err)
	seen.add(inTranscript, apiAnswer, []byte(body))
	for _, args := range [][]string{
		{"runs", "events", h.run}, {"runs", "show", h.run, "--json"}, {"key", "list", "hunter"}, {"agent", "export", "hunter"},
	} {
		out, err := exec.CommandContext(h.t.Context(), "agentrun", append(args, "--data", h.data)...).CombinedOutput()
		if err != nil {
			h.t.Fatalf("%q: %v\n%s", args, err, out)
		}
		seen.add(inEvents, strings.Join(args[:2], " "), out)
	}
}

// lookAtLoot looks at what the hunt found.
func (h *secretsHouse) lookAtLoot(seen sights) {
	h.t.Helper()
	told, err := os.ReadFile(h.workspace("told"))
	h.must(err)
	h.t.Logf("%s", told)
	for name, place := range map[string]string{
		"environment": inEnvironment, "processes": inProcesses, "memory": inProcesses, "descriptors": inDescriptors, "files": inReach,
	} {
		text, err := os.ReadFile(h.workspace("loot/" + name))
		if name == "memory" && errors.Is(err, fs.ErrNotExist) {
			continue // There was nobody whose memory it could read.
		}
		h.must(err)
		seen.add(place, "loot/"+name, text)
	}
}

// lookAtFiles looks at the server's log and its data directory, once it has
// ended.
func (h *secretsHouse) lookAtFiles(seen sights) {
	h.t.Helper()
	seen.add(inLog, "standard error", h.stderr.Bytes())
	place := func(path string) string {
		switch {
		case path == filepath.Join(h.data, databaseName):
			return inDataFile
		case filepath.Dir(path) == h.workspace("cores"):
			return inCores
		default:
			return inWorkspaces
		}
	}
	collect(h.data, func(path string, text []byte) {
		name, err := filepath.Rel(h.data, path)
		h.must(err)
		seen.add(place(path), name, text)
	}, h.workspace("loot"))
}

// everybodysFolders are where programs leave files without being told to.
var everybodysFolders = []string{"/", "/tmp", "/var/tmp", "/dev/shm", "/run", "/var/crash", "/var/lib/systemd/coredump"}

// everybodysNames are what there is in them.
func everybodysNames() map[string]bool {
	names := map[string]bool{}
	for _, folder := range everybodysFolders {
		entries, _ := os.ReadDir(folder) // Not every machine has all of them.
		for _, entry := range entries {
			names[filepath.Join(folder, entry.Name())] = true
		}
	}
	return names
}

// lookAtFolders looks at what is new outside the data directory.
func (h *secretsHouse) lookAtFolders(seen sights) {
	h.t.Helper()
	add := func(path string, text []byte) { seen.add(inFolders, path, text) }
	for _, folder := range []string{h.tmp, h.home, h.cwd} {
		collect(folder, add)
	}
	for path := range everybodysNames() {
		info, err := os.Lstat(path)
		switch {
		case err != nil || path == h.base:
		case !h.before[path], info.Mode().IsRegular() && info.ModTime().After(h.begun):
			collect(path, add)
		}
	}
}

// mostCollected bounds the files of others that are looked at, in bytes.
const mostCollected = 64 << 20

// collect reads the files at and below a path, but for those below skip. Files
// of others may go meanwhile.
func collect(root string, add func(path string, text []byte), skip ...string) {
	_ = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // It has gone, or belongs to somebody else.
		}
		for _, folder := range skip {
			if path == folder {
				return filepath.SkipDir
			}
		}
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() && info.Size() <= mostCollected {
			if text, err := os.ReadFile(path); err == nil {
				add(path, text)
			}
		}
		return nil
	})
}
