package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"text/tabwriter"

	"agentrun/internal/needs"
	"agentrun/run/sandbox"
)

// The places where a secret may come to light.
const (
	inEnvironment = "the command's environment"
	inProcesses   = "what the command sees in /proc"
	inReach       = "files that the command can read"
	inDescriptors = "descriptors that the command inherits"
	inArguments   = "arguments of processes, from outside"
	inFirst       = "environments of the sandbox, from outside"
	inTranscript  = "the transcript"
	inEvents      = "what the operator is shown"
	inLog         = "the server's log"
	inDataFile    = "the data file"
	inWorkspaces  = "other files of the data directory"
	inCores       = "core dumps"
	inFolders     = "other folders of the host"
)

var secretPlaces = []string{
	inEnvironment, inProcesses, inReach, inDescriptors, inArguments, inFirst, inTranscript, inEvents, inLog,
	inDataFile, inWorkspaces, inCores, inFolders,
}

// nobodyUser is a user without rights of its own.
const nobodyUser = 65534

// elsewhere are the places where nothing can be put to be found, or not at each
// level. What the hunt finds there without a sandbox stands for that.
var elsewhere = map[string]bool{inProcesses: true, inCores: true}

// secretsSetting is how a server runs.
type secretsSetting struct {
	level sandbox.Level
	uid   int
}

func (s secretsSetting) String() string { return fmt.Sprintf("%s as %d", s.level, s.uid) }

// secretsFound is what was found at a place.
type secretsFound struct {
	texts, bytes, hits int
	// control is true when the search found what was put there for it.
	control bool
}

// secretsTable is what was found, by setting and place.
type secretsTable struct {
	settings []secretsSetting
	cells    map[secretsSetting]map[string]secretsFound
	// uncontrolled are the places that have no control on this machine, which
	// was reported.
	uncontrolled map[string]bool
}

// TestSecrets lets an agent's program hunt for what belongs to its server, to
// other agents and to other runs, and looks for the same in all that a run
// leaves behind. Without a sandbox the same hunt finds them.
func TestSecrets(t *testing.T) {
	needsPython(t)
	// With the race detector each management command would wait a second at its
	// end.
	t.Setenv("GORACE", "atexit_sleep_ms=0")
	table := secretsTable{cells: map[secretsSetting]map[string]secretsFound{}, uncontrolled: map[string]bool{}}
	users := []int{0, nobodyUser}
	if os.Geteuid() != 0 {
		users = []int{os.Geteuid()}
		t.Run("as another user", func(t *testing.T) { needs.Lacking(t, "root, to be more than one user") })
	}
	for _, uid := range users {
		for _, level := range []sandbox.Level{sandbox.Off, sandbox.Full, sandbox.Landlock} {
			s := secretsSetting{level, uid}
			t.Run(s.String(), func(t *testing.T) { table.fill(t, s) })
		}
	}
	table.report(t)
}

// needsPython ends the test unless python is where every user can run it.
func needsPython(t *testing.T) {
	t.Helper()
	for _, folder := range filepath.SplitList(sandbox.Path) {
		if _, err := exec.LookPath(filepath.Join(folder, "python3")); err == nil {
			return
		}
	}
	needs.Lacking(t, "python3 is missing where every user can reach it: install it")
}

// fill hunts in one setting.
func (table *secretsTable) fill(t *testing.T, s secretsSetting) {
	h := newSecretsHouse(t, s.level, s.uid)
	h.serve()
	h.hunt()
	seen := sights{}
	h.lookAtProcesses(seen)
	h.release()
	h.mistakes()
	h.lookAtRun(seen)
	h.end()
	h.lookAtLoot(seen)
	h.lookAtFiles(seen)
	h.lookAtFolders(seen)

	table.settings = append(table.settings, s)
	table.cells[s] = map[string]secretsFound{}
	for _, place := range secretPlaces {
		hits := search(place, seen[place], h.tokens())
		f := secretsFound{texts: len(seen[place]), hits: len(hits), control: h.control(place, seen)}
		for _, text := range seen[place] {
			f.bytes += len(text)
		}
		table.cells[s][place] = f
		if s.level != sandbox.Off && len(hits) > 0 {
			t.Errorf("%d hits:\n%s", len(hits), strings.Join(hits, "\n"))
		}
	}
	h.checkMasked(seen)
	h.checkKeys(seen)
	if s.level == sandbox.Off {
		h.checkExposed(seen)
		table.checkCores(t, s)
	}
}

// control says whether the search finds at a place what was put there for it.
func (h *secretsHouse) control(place string, seen sights) bool {
	if place == inFirst {
		// Nothing can be put there. The same look at the server finds what is in
		// its environment.
		found := search("", map[string][]byte{"the server": h.environ}, h.environment)
		return len(found) == len(h.environment) && (h.level == sandbox.Off || len(seen[inFirst]) > 0)
	}
	return len(search("", seen[place], []*token{h.mark})) > 0
}

// checkMasked looks whether the secret that the program has is masked in
// whatever pieces and encodings the program told it.
func (h *secretsHouse) checkMasked(seen sights) {
	h.t.Helper()
	for _, told := range []struct {
		place, where string
		ways         []string
	}{
		{inTranscript, apiAnswer, []string{"plain", "base64", "hex", "halves"}},
		{inEvents, eventsAnswer, []string{"plain", "base64", "hex"}},
	} {
		for _, way := range told.ways {
			if !bytes.Contains(seen[told.place][told.where], []byte(way+": [secret GIVEN]")) {
				h.t.Errorf("%s: no masked secret (%s)", told.place, way)
			}
		}
	}
}

// checkKeys looks whether the data file has the keys by their hashes.
func (h *secretsHouse) checkKeys(seen sights) {
	h.t.Helper()
	for _, key := range []string{h.key, h.otherKey} {
		hash := sha256.Sum256([]byte(key))
		if !bytes.Contains(seen[inDataFile][databaseName], hash[:]) {
			h.t.Error("the data file does not have the hash of a key")
		}
	}
}

// checkExposed looks whether the hunt is a good one: without a sandbox it has to
// find the secrets, and they have to get to where they are looked for.
func (h *secretsHouse) checkExposed(seen sights) {
	h.t.Helper()
	expose := func(place string, tokens ...*token) {
		for _, k := range tokens {
			if len(search("", seen[place], []*token{k})) == 0 {
				h.t.Errorf("without a sandbox %s is not found in %s", k.name, place)
			}
		}
	}
	for _, place := range []string{inProcesses, inTranscript, inEvents, inDataFile} {
		expose(place, h.environment...)
	}
	expose(inProcesses, h.inherited)
	expose(inReach, h.given, h.file, h.inherited, h.note, h.task)
	// What the program may tell is masked all the same.
	for _, place := range []string{inTranscript, inEvents, inLog, inDataFile} {
		for _, hit := range search(place, seen[place], []*token{h.given}) {
			h.t.Error(hit)
		}
	}
}

// checkCores asks for a machine on which a crash without a sandbox leaves a core
// dump where it is looked for.
func (table *secretsTable) checkCores(t *testing.T, s secretsSetting) {
	t.Helper()
	if table.cells[s][inCores].control {
		return
	}
	table.uncontrolled[inCores] = true
	t.Run("core dumps", func(t *testing.T) {
		needs.Lacking(t, "core dumps in the folder of a program (sysctl kernel.core_pattern, ulimit -Hc)")
	})
}

// report prints the table, and looks whether each place has its control.
func (table *secretsTable) report(t *testing.T) {
	t.Helper()
	var text strings.Builder
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "hits (texts, KiB)")
	for _, s := range table.settings {
		fmt.Fprintf(w, "\t%s", s)
	}
	var searched, hits, controls int
	for _, place := range secretPlaces {
		fmt.Fprintf(w, "\n%s", place)
		for _, s := range table.settings {
			f := table.cells[s][place]
			off, controlled := table.cells[secretsSetting{sandbox.Off, s.uid}][place]
			fmt.Fprintf(w, "\t%d (%d, %d)", f.hits, f.texts, (f.bytes+1023)>>10)
			if s.level == sandbox.Off {
				continue
			}
			searched++
			hits += f.hits
			switch {
			case f.control, elsewhere[place] && off.control:
				controls++
			case controlled && !table.uncontrolled[place]: // Or it was not asked for, by -run.
				t.Errorf("%s: the search does not find in %s what was put there", s, place)
			}
		}
	}
	_ = w.Flush()
	t.Logf("\n%s", &text)
	t.Logf("%d places searched in %d settings, %d hits, %d of %d controls found", len(secretPlaces), searched/len(secretPlaces), hits, controls, searched)
}
