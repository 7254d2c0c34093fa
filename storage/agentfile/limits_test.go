package agentfile_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"agentrun/storage/agentfile"
)

// wantSize begins the fault of a value that is no size.
const wantSize = "want a size such as 64KiB, 512MiB or 2GiB, or a number of bytes"

// effective are limits with their defaults.
type effective struct {
	turn                                time.Duration
	memory, fileSize, workspace, output int64
	processes, openFiles                int
}

func checkLimits(t *testing.T, l agentfile.Limits, want effective) {
	t.Helper()
	got := effective{
		turn: l.TurnTime(), memory: l.MemoryBytes(), fileSize: l.FileSizeBytes(), workspace: l.WorkspaceBytes(),
		output: l.OutputBytes(), processes: l.ProcessCount(), openFiles: l.OpenFileCount(),
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(effective{})); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestEffectiveLimits(t *testing.T) {
	checkLimits(t, agentfile.Limits{}, effective{
		turn: agentfile.DefaultTurn, memory: agentfile.DefaultMemory, fileSize: agentfile.DefaultFileSize,
		workspace: agentfile.DefaultWorkspace, output: agentfile.MaxOutput,
		processes: agentfile.DefaultProcesses, openFiles: agentfile.DefaultOpenFiles,
	})
	checkLimits(t, agentfile.Limits{
		Turn: agentfile.Duration(time.Second), Memory: 1, FileSize: 2, Workspace: 3, Output: 4, Processes: 5, OpenFiles: 6,
	}, effective{turn: time.Second, memory: 1, fileSize: 2, workspace: 3, output: 4, processes: 5, openFiles: 6})
}

func TestSizes(t *testing.T) {
	for text, want := range map[string]int64{
		"134217728": 128 << 20, "128MiB": 128 << 20, "131072KiB": 128 << 20, "2GiB": 2 << 30, "1TiB": 1 << 40, "1PiB": 1 << 50,
		"1000000KB": 1e9, "200MB": 200e6, "3GB": 3e9, "4TB": 4e12, "1PB": 1e15, `"512MiB"`: 512 << 20, `"134217728"`: 128 << 20,
		"1125899906842624": 1 << 50,
	} {
		file, err := agentfile.Parse("name: x\ncommand: [a]\nlimits: {memory: " + text + "}\n")
		if got := file.Definition.Limits.Memory; err != nil || got != want {
			t.Errorf("%s: %d, want %d; error %v", text, got, want, err)
		}
	}
}

func TestFaultsOfLimits(t *testing.T) {
	const command = "name: x\ncommand: [a]\nlimits:\n  turn: 1m\n"
	var cases []faultCase
	for value, have := range map[string]string{
		"-1": "-1", "+1GiB": `"+1GiB"`, "1.5GiB": `"1.5GiB"`, "1e9": "1e9", "2 GiB": `"2 GiB"`, "2G": `"2G"`, "2gib": `"2gib"`,
		"2GIB": `"2GIB"`, "GiB": `"GiB"`, "512B": `"512B"`, "0x8000000": "0x8000000", "01GiB": `"01GiB"`, "0200000000": "0200000000",
		"1_000_000_000": "1_000_000_000", "1EiB": `"1EiB"`, "''": `""`, "2GiB/s": `"2GiB/s"`, `"2GiB\n"`: `"2GiB\n"`, "２GiB": `"２GiB"`,
	} {
		cases = append(cases, faultCase{"memory " + value, command + "  memory: " + value + "\n", []string{
			"line 5: limits.memory: " + wantSize + ", have " + have,
		}})
	}
	for _, tt := range []struct{ field, value, fault string }{
		{"memory", "0", "want at least 128MiB and at most 1PiB, have 0"},
		{"memory", "134217727", "want at least 128MiB and at most 1PiB, have 134217727"},
		{"memory", "1MB", `want at least 128MiB and at most 1PiB, have "1MB"`},
		{"memory", "1125899906842625", "want at least 128MiB and at most 1PiB, have 1125899906842625"},
		{"memory", "2PiB", `want at least 128MiB and at most 1PiB, have "2PiB"`},
		// The product would fit an int64 again after it went round once.
		{"memory", "18014398509482000KiB", `want at least 128MiB and at most 1PiB, have "18014398509482000KiB"`},
		{"memory", "99999999999999999999", "want at least 128MiB and at most 1PiB, have 99999999999999999999"},
		{"memory", "99999999999999999999TB", `want at least 128MiB and at most 1PiB, have "99999999999999999999TB"`},
		{"file_size", "1023KiB", `want at least 1MiB and at most 1PiB, have "1023KiB"`},
		{"workspace", "1MB", `want at least 1MiB and at most 1PiB, have "1MB"`},
		{"output", "1023", "want at least 1KiB and at most 1MiB, have 1023"},
		{"output", "1048577", "want at least 1KiB and at most 1MiB, have 1048577"},
		{"processes", "15", "want a whole number from 16 to 32768, have 15"},
		{"processes", "32769", "want a whole number from 16 to 32768, have 32769"},
		{"processes", "-16", "want a whole number from 16 to 32768, have -16"},
		{"processes", "1KiB", `want a whole number from 16 to 32768, have "1KiB"`},
		{"open_files", "63", "want a whole number from 64 to 1048576, have 63"},
		{"open_files", "1048577", "want a whole number from 64 to 1048576, have 1048577"},
		{"open_files", "1e3", "want a whole number from 64 to 1048576, have 1e3"},
		{"open_file", "64", "unknown field (did you mean `open_files`?)"},
	} {
		cases = append(cases, faultCase{tt.field + " " + tt.value, command + "  " + tt.field + ": " + tt.value + "\n", []string{
			"line 5: limits." + tt.field + ": " + tt.fault,
		}})
	}
	testFaults(t, cases)
}
