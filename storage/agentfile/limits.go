package agentfile

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strconv"
	"time"

	"github.com/go-faster/yaml"
)

// Bounds and defaults of the time and the output of a turn.
const (
	// DefaultSteps lets a model work on what takes some patience, and ends one that
	// goes round in circles.
	DefaultSteps = 100
	// MaxCost bounds the cost of a run, in US dollars.
	MaxCost = 1_000_000
	// DefaultTurn is the wall time of a turn whose file says nothing.
	DefaultTurn = 30 * time.Minute
	// MaxTurn bounds the wall time of a turn.
	MaxTurn = 7 * 24 * time.Hour
	// MaxOutput bounds the output that is kept, and is the default: every poll
	// of the run's status carries it once more.
	MaxOutput = 1 << 20
	// MinOutput leaves room for the note of what was left out, and for some text
	// on either side of it.
	MinOutput = 1 << 10
)

// Bounds and defaults of what the processes of a run may use.
const (
	// MaxBytes bounds every size: no one machine has more, and sums of sizes
	// stay far from the end of an int64.
	MaxBytes = 1 << 50

	// DefaultMemory suits compilers, browsers and tables of some million rows;
	// one process that runs wild leaves the rest of a machine of 8GiB alone.
	DefaultMemory = 4 << 30
	// MinMemory is enough to start Python and Node.js, found by trying; a Java
	// machine needs more.
	MinMemory = 128 << 20

	// DefaultProcesses suits a parallel build or a browser, and ends a fork bomb
	// while the machine still answers.
	DefaultProcesses = 512
	// MinProcesses suits a pipeline of the shell, or one program whose language
	// starts some threads by itself.
	MinProcesses = 16
	// MaxProcesses is how many Linux has as a whole by default: kernel.pid_max
	// in proc_sys_kernel(5).
	MaxProcesses = 1 << 15

	// DefaultOpenFiles is the most that Linux itself gives a process:
	// INR_OPEN_MAX in its linux/fs.h.
	DefaultOpenFiles = 1 << 12
	// MinOpenFiles suits a program with its libraries and pipes.
	MinOpenFiles = 1 << 6
	// MaxOpenFiles is what Linux grants at most by default: fs.nr_open in
	// proc_sys_fs(5).
	MaxOpenFiles = 1 << 20

	// DefaultFileSize is below half of DefaultWorkspace: one file that grows
	// without end does not fill the workspace.
	DefaultFileSize = 4 << 30
	// MinFileSize suits what a program writes besides its results, such as a
	// log or a lock.
	MinFileSize = 1 << 20

	// DefaultWorkspace suits a source tree with what it depends on and what is
	// built from it, a few times over.
	DefaultWorkspace = 10 << 30
	// MinWorkspace suits an agent that keeps notes and nothing else.
	MinWorkspace = 1 << 20
)

// Limits bound a turn, the processes of a run and its workspace. Zero means the
// default, which the methods return.
type Limits struct {
	// Turn is the wall time of a turn, at most MaxTurn.
	Turn Duration `json:"turn,omitzero"`
	// Steps is the most answers of models in a turn.
	Steps int `json:"steps,omitempty"`
	// Tokens is the most tokens of a turn, those of requests and those of answers;
	// zero means no limit.
	Tokens int `json:"tokens,omitempty"`
	// Cost is the most that the models of a run may cost, in millionths of a US
	// dollar; zero means no limit.
	Cost int64 `json:"cost,omitempty"`
	// Memory is the data memory of one process in bytes, from MinMemory to
	// MaxBytes.
	Memory int64 `json:"memory,omitempty"`
	// Processes is the most processes of a run at once, from MinProcesses to
	// MaxProcesses. A thread counts as a process, as it does for Linux.
	Processes int `json:"processes,omitempty"`
	// OpenFiles is the most files that one process has open, from MinOpenFiles
	// to MaxOpenFiles.
	OpenFiles int `json:"open_files,omitempty"`
	// FileSize is the size of one file in bytes, from MinFileSize to MaxBytes.
	FileSize int64 `json:"file_size,omitempty"`
	// Workspace is the size of the run's whole workspace in bytes, from
	// MinWorkspace to MaxBytes.
	Workspace int64 `json:"workspace,omitempty"`
	// Output is how many bytes of a turn's standard output are kept, from
	// MinOutput to MaxOutput.
	Output int64 `json:"output,omitempty"`
}

// TurnTime returns the wall time of a turn, the default included.
func (l Limits) TurnTime() time.Duration { return cmp.Or(time.Duration(l.Turn), DefaultTurn) }

// StepCount returns the most answers of a turn, the default included.
func (l Limits) StepCount() int { return cmp.Or(l.Steps, DefaultSteps) }

// MemoryBytes returns the data memory of one process, the default included.
func (l Limits) MemoryBytes() int64 { return cmp.Or(l.Memory, DefaultMemory) }

// ProcessCount returns the most processes of a run, the default included.
func (l Limits) ProcessCount() int { return cmp.Or(l.Processes, DefaultProcesses) }

// OpenFileCount returns the most open files of a process, the default included.
func (l Limits) OpenFileCount() int { return cmp.Or(l.OpenFiles, DefaultOpenFiles) }

// FileSizeBytes returns the size of one file, the default included.
func (l Limits) FileSizeBytes() int64 { return cmp.Or(l.FileSize, DefaultFileSize) }

// WorkspaceBytes returns the size of the workspace, the default included.
func (l Limits) WorkspaceBytes() int64 { return cmp.Or(l.Workspace, DefaultWorkspace) }

// OutputBytes returns how much output is kept, the default included.
func (l Limits) OutputBytes() int64 { return cmp.Or(l.Output, MaxOutput) }

// Duration is a time.Duration that is written as in "10m".
type Duration time.Duration

// MarshalJSON writes the duration as a string.
func (d Duration) MarshalJSON() ([]byte, error) { return json.Marshal(time.Duration(d).String()) }

// UnmarshalJSON reads what MarshalJSON wrote.
func (d *Duration) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	parsed, err := time.ParseDuration(text)
	*d = Duration(parsed)
	return err
}

func readLimits(p *parser, at string, n *yaml.Node) {
	l := &p.def.Limits
	p.limits = p.fields(at, n, map[string]field{
		"turn":   func(p *parser, at string, n *yaml.Node) { l.Turn = p.duration(at, n) },
		"steps":  func(p *parser, at string, n *yaml.Node) { l.Steps = p.count(at, n) },
		"tokens": func(p *parser, at string, n *yaml.Node) { l.Tokens = p.count(at, n) },
		"cost":   func(p *parser, at string, n *yaml.Node) { l.Cost = p.dollars(at, n) },
		"memory": func(p *parser, at string, n *yaml.Node) { l.Memory = p.size(at, n, MinMemory, MaxBytes) },
		"processes": func(p *parser, at string, n *yaml.Node) {
			l.Processes = p.countWithin(at, n, MinProcesses, MaxProcesses)
		},
		"open_files": func(p *parser, at string, n *yaml.Node) {
			l.OpenFiles = p.countWithin(at, n, MinOpenFiles, MaxOpenFiles)
		},
		"file_size": func(p *parser, at string, n *yaml.Node) { l.FileSize = p.size(at, n, MinFileSize, MaxBytes) },
		"workspace": func(p *parser, at string, n *yaml.Node) { l.Workspace = p.size(at, n, MinWorkspace, MaxBytes) },
		"output":    func(p *parser, at string, n *yaml.Node) { l.Output = p.size(at, n, MinOutput, MaxOutput) },
	})
}

// sizeUnits are what may stand behind the number of a size, the binary ones
// from the largest on.
var sizeUnits = []struct {
	name  string
	bytes int64
}{
	{"PiB", 1 << 50}, {"TiB", 1 << 40}, {"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"", 1},
	{"PB", 1e15}, {"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3},
}

// sizeText takes no zeros in front, since to YAML they make a number octal.
var sizeText = regexp.MustCompile(`^(0|[1-9][0-9]*)([KMGTP]i?B)?$`)

// size reads a number of bytes, with or without a unit.
func (p *parser) size(at string, n *yaml.Node, least, most int64) int64 {
	parts := sizeText.FindStringSubmatch(n.Value)
	if n.Kind != yaml.ScalarNode || parts == nil {
		p.fault(n, at, "want a size such as 64KiB, 512MiB or 2GiB, or a number of bytes, have %s", describe(n))
		return 0
	}
	var unit int64
	for _, u := range sizeUnits {
		if u.name == parts[2] {
			unit = u.bytes
		}
	}
	number, err := strconv.ParseInt(parts[1], 10, 64)
	// Divided, because the product may not fit.
	if err != nil || number > most/unit || number*unit < least {
		p.fault(n, at, "want at least %s and at most %s, have %s", formatSize(least), formatSize(most), describe(n))
		return 0
	}
	return number * unit
}

// formatSize writes a size in the largest binary unit that leaves it whole.
func formatSize(bytes int64) string {
	for _, u := range sizeUnits {
		if bytes%u.bytes == 0 {
			return strconv.FormatInt(bytes/u.bytes, 10) + u.name
		}
	}
	return "" // Never: every size is a whole number of bytes.
}
