package sandbox

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/go-faster/errors"
)

// Level is how far commands are confined.
type Level string

// The levels, and Auto, which stands for the highest that the host has.
const (
	Auto Level = "auto"
	// Full is namespaces, Landlock, seccomp and limits.
	Full Level = "full"
	// Landlock is what there is without namespaces: Landlock, seccomp and limits.
	Landlock Level = "landlock"
	// Off confines nothing.
	Off Level = "off"
)

// Levels are the values that a setting may have.
var Levels = []Level{Auto, Full, Landlock, Off}

// ErrNoSandbox says that the host does not allow the level that was asked for.
var ErrNoSandbox = errors.New("no sandbox on this host")

// commandUser is the user of the host that commands of a privileged server run
// as: one that nobody is, beyond what distributions, containers and their
// managers give out. Where that number does not exist, it is nobody's.
const (
	commandUser = 1_900_000_001
	nobody      = 65534
)

// Options of Open.
type Options struct {
	// Level is a level, or Auto.
	Level Level
	// Data is the absolute path of the data directory, which commands must not
	// see; empty when there is none.
	Data string
}

// Open returns what runs commands at the level asked for, once a command was
// run in it for real. With Auto it is the highest level that works, and, when
// none does, a runner that refuses every command. Errors: ErrNoSandbox, with
// what is missing.
func Open(ctx context.Context, o Options) (Runner, error) {
	switch o.Level {
	case Off:
		return Plain{}, nil
	case Full, Landlock:
		c := newConfined(o.Level, o.Data)
		if err := c.prepare(ctx, o.Data); err != nil {
			return nil, errors.Wrapf(ErrNoSandbox, "level %s: %v", o.Level, err)
		}
		return c, nil
	case Auto:
		var missing []string
		for _, level := range []Level{Full, Landlock} {
			c := newConfined(level, o.Data)
			err := c.prepare(ctx, o.Data)
			if err == nil {
				return c, nil
			}
			missing = append(missing, fmt.Sprintf("level %s: %v", level, err))
		}
		return refused{errors.Wrap(ErrNoSandbox, strings.Join(missing, "; "))}, nil
	default:
		return nil, errors.Errorf("no sandbox level %q", o.Level)
	}
}

func newConfined(level Level, data string) *Confined {
	c := &Confined{level: level, owner: os.Geteuid(), hide: data}
	if c.owner == 0 {
		c.owner = unprivileged()
	}
	return c
}

// unprivileged is the user that commands of a privileged server run as.
func unprivileged() int {
	for _, id := range []int{commandUser, nobody} {
		if mapped(id) {
			return id
		}
	}
	return 0 // There is no other user here, and this one has no rights outside.
}

// refused runs nothing.
type refused struct{ why error }

var _ Runner = refused{}

// Level returns "none".
func (refused) Level() string { return "none" }

// Owner returns the server's own user.
func (refused) Owner() int { return os.Geteuid() }

// Run refuses the command.
func (r refused) Run(context.Context, Command) (Exit, error) {
	return Exit{}, errors.Wrapf(ErrNotStarted, "%v; 'agentrun doctor' tells more", r.why)
}

// Refusal returns why a runner refuses every command, nil when it does not.
func Refusal(r Runner) error {
	if no, ok := r.(refused); ok {
		return no.why
	}
	return nil
}

// mapped says whether a user exists where this process runs, which may be a
// container with a few of them.
func mapped(id int) bool {
	text, err := os.ReadFile("/proc/self/uid_map")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(text)) {
		var inside, outside, count int
		if _, err := fmt.Sscan(line, &inside, &outside, &count); err == nil && id >= inside && id-inside < count {
			return true
		}
	}
	return false
}

// prepare makes the level ready for use, unless it does not work here.
func (c *Confined) prepare(ctx context.Context, data string) error {
	if err := c.try(ctx); err != nil {
		return err
	}
	if data != "" {
		c.groups, _ = openGroups(data) // Without, there are the limits of processes.
	}
	return c.openWay(data)
}

// try runs a command that looks for a file which it must not be able to read.
func (c *Confined) try(ctx context.Context) error {
	if abi := landlockABI(); c.level == Landlock && abi < minFallbackABI {
		return errors.Errorf("the kernel has version %d of Landlock, and %d is needed", abi, minFallbackABI)
	}
	dir, err := os.MkdirTemp("", "agentrun-try-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	work := filepath.Join(dir, "work")
	for _, err := range []error{
		os.Chmod(dir, 0o711), //nolint:gosec // Another user's command has to pass.
		os.WriteFile(filepath.Join(dir, "secret"), []byte("secret"), 0o644),
		os.Mkdir(work, 0o700),
		os.Chown(work, c.owner, -1),
	} {
		if err != nil {
			return err
		}
	}
	var out, problems strings.Builder
	exit, err := c.Run(ctx, Command{
		Args: []string{"sh", "-c", "if (read -r x < ../secret) 2> /dev/null; then echo open; else : > file && echo confined; fi"},
		Dir:  work, Env: []string{"PATH=" + Path, "HOME=" + work, "TMPDIR=/tmp"}, Stdout: &out, Stderr: &problems,
	})
	switch {
	case err != nil:
		return err
	case exit != Exit{} || out.String() != "confined\n":
		return errors.Errorf("a command that was tried in it said %q and %q and ended with %+v", out.String(), problems.String(), exit)
	}
	return nil
}

// openWay lets commands of a privileged server come to their workspaces at the
// level landlock, where they see the host's own paths: through the data
// directory, but not into it.
func (c *Confined) openWay(data string) error {
	if c.level != Landlock || os.Geteuid() != 0 || data == "" {
		return nil
	}
	for dir := filepath.Dir(data); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return errors.Errorf("user %d, which commands run as, cannot pass %s on its way to its workspace", c.owner, dir)
		}
		if dir == "/" {
			break
		}
	}
	for _, dir := range []string{data, filepath.Join(data, "workspaces")} {
		if err := os.Chown(dir, -1, c.owner); err != nil {
			return err
		}
		if err := os.Chmod(dir, 0o710); err != nil { //nolint:gosec // The group is the commands' own.
			return err
		}
	}
	return nil
}
