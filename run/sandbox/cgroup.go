package sandbox

import (
	"bytes"
	"fmt"
	"hash/fnv"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/go-faster/errors"
	"golang.org/x/sys/unix"
)

// Limits of processes count for each process, and a command may have many. A
// control group (cgroup v2) counts for the command as a whole, and ends all of
// it at once. A server has such groups where its own can be written to, which
// most systems have to be asked for.

// serverGroup is where a server moves to: a group with limits for its children
// has no processes itself.
const serverGroup = "agentrun-server"

// groups makes the control groups of commands.
type groups struct {
	dir string // the server's own group, at first
	// name is what the groups of this data directory's commands begin with.
	name string
	// controllers are those that count for the groups: memory, pids, or none.
	controllers []string
	last        atomic.Uint64
}

// openGroups returns what makes control groups, and ends what is in those that
// an earlier server of the same data directory left behind. Without a right to
// make any, it returns an error that says what is missing.
func openGroups(data string) (*groups, error) {
	dir, err := ownGroup()
	if err != nil {
		return nil, err
	}
	hash := fnv.New64a()
	_, _ = hash.Write([]byte(data))
	g := &groups{dir: dir, name: fmt.Sprintf("agentrun-%016x-", hash.Sum64())}
	left, _ := filepath.Glob(filepath.Join(dir, g.name+"*"))
	for _, path := range left {
		if err := endGroup(path); err != nil {
			return nil, err
		}
	}
	if err := g.try(); err != nil {
		return nil, err
	}
	g.controllers, err = g.enable()
	return g, err
}

// try makes a group and starts a process in it, which takes a system call that
// some containers do not permit.
func (g *groups) try() error {
	path := filepath.Join(g.dir, g.name+"0")
	if err := os.Mkdir(path, 0o750); err != nil {
		return errors.Wrap(err, "no right to make a group (systemd: Delegate=yes)")
	}
	dir, err := os.Open(path)
	if err == nil {
		trial := &commandGroup{path, dir}
		probe := &exec.Cmd{Path: "/proc/self/exe", Args: []string{probeName}, Env: []string{}, SysProcAttr: &syscall.SysProcAttr{}}
		trial.take(probe.SysProcAttr)
		err = probe.Run()
		_ = dir.Close()
	}
	if endErr := endGroup(path); err == nil {
		err = endErr
	}
	return err
}

// ownGroup returns the path of the group that this process was started in.
func ownGroup() (string, error) {
	root := "/sys/fs/cgroup"
	var st unix.Statfs_t
	if err := unix.Statfs(root, &st); err != nil {
		return "", err
	}
	if st.Type != unix.CGROUP2_SUPER_MAGIC {
		root = filepath.Join(root, "unified") // beside those of version 1
		if err := unix.Statfs(root, &st); err != nil || st.Type != unix.CGROUP2_SUPER_MAGIC {
			return "", errors.New("not mounted at /sys/fs/cgroup")
		}
	}
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(text)) {
		if path, ok := strings.CutPrefix(line, "0::"); ok {
			path = strings.TrimSuffix(strings.TrimSuffix(path, "\n"), "/"+serverGroup)
			return filepath.Join(root, path), nil
		}
	}
	return "", errors.New("this process is in none")
}

// enable gives the groups as many controllers as there are for them.
func (g *groups) enable() ([]string, error) {
	offered, err := g.list("cgroup.controllers")
	if err != nil {
		return nil, err
	}
	wanted := ofUse(offered)
	if len(wanted) == 0 {
		return nil, nil
	}
	control := filepath.Join(g.dir, "cgroup.subtree_control")
	order := []byte("+" + strings.Join(wanted, " +"))
	err = os.WriteFile(control, order, 0)
	if errors.Is(err, unix.EBUSY) {
		// It has processes: this one, if nothing else.
		if err := g.moveServer(); err != nil {
			return nil, err
		}
		err = os.WriteFile(control, order, 0)
	}
	if errors.Is(err, unix.EBUSY) {
		return nil, nil // Others are there, who did not ask for it.
	}
	return wanted, err
}

// ofUse are the controllers that limits are set with.
func ofUse(offered []string) []string {
	return slices.DeleteFunc([]string{"memory", "pids"}, func(name string) bool { return !slices.Contains(offered, name) })
}

func (g *groups) list(file string) ([]string, error) {
	text, err := os.ReadFile(filepath.Join(g.dir, file))
	return strings.Fields(string(text)), err
}

// moveServer moves this process into a group of its own.
func (g *groups) moveServer() error {
	own := filepath.Join(g.dir, serverGroup)
	if err := os.Mkdir(own, 0o750); err != nil && !os.IsExist(err) {
		return err
	}
	return os.WriteFile(filepath.Join(own, "cgroup.procs"), []byte("0"), 0)
}

// commandGroup is the group of one command.
type commandGroup struct {
	path string
	dir  *os.File
}

// open makes a group for a command, nil where there can be none.
func (g *groups) open(l Limits) (*commandGroup, error) {
	if g == nil {
		return nil, nil //nolint:nilnil // No group is as good as one to its methods.
	}
	path := filepath.Join(g.dir, g.name+strconv.FormatUint(g.last.Add(1), 10))
	if err := os.Mkdir(path, 0o750); err != nil {
		return nil, err
	}
	err := g.limit(path, l)
	var dir *os.File
	if err == nil {
		dir, err = os.Open(path)
	}
	if err != nil {
		_ = os.Remove(path)
		return nil, err
	}
	return &commandGroup{path, dir}, nil
}

func (g *groups) limit(path string, l Limits) error {
	settings := map[string]string{}
	if slices.Contains(g.controllers, "memory") && l.Memory > 0 {
		settings["memory.max"] = strconv.FormatUint(l.Memory, 10)
		settings["memory.swap.max"] = "0"
		// All of it or nothing: half a command is of no use to anybody.
		settings["memory.oom.group"] = "1"
	}
	if slices.Contains(g.controllers, "pids") && l.Processes > 0 {
		settings["pids.max"] = strconv.FormatUint(l.Processes+ownThreads, 10)
	}
	for file, value := range settings {
		err := os.WriteFile(filepath.Join(path, file), []byte(value), 0)
		if err != nil && (file != "memory.swap.max" || !os.IsNotExist(err)) { // A kernel can do without.
			return err
		}
	}
	return nil
}

// take lets the process that is to be started begin in the group.
func (c *commandGroup) take(attr *syscall.SysProcAttr) {
	if c != nil {
		attr.UseCgroupFD, attr.CgroupFD = true, int(c.dir.Fd())
	}
}

// close ends whatever is left in the group, removes it, and adds to the exit
// which limit of the group the command reached.
func (c *commandGroup) close(exit *Exit) error {
	if c == nil {
		return nil
	}
	_ = c.dir.Close()
	events, _ := os.ReadFile(filepath.Join(c.path, "memory.events")) // There is none without a limit.
	for line := range bytes.Lines(events) {
		if fields := bytes.Fields(line); len(fields) == 2 && string(fields[0]) == "oom_group_kill" && string(fields[1]) != "0" {
			exit.Reached = MemoryLimit
		}
	}
	return endGroup(c.path)
}

// endGroup ends all processes of a group and removes it. Errors: they are still
// there after killPatience.
func endGroup(path string) error {
	err := os.Remove(path)
	if err == nil || os.IsNotExist(err) {
		return nil // Most are empty by now.
	}
	if err := os.WriteFile(filepath.Join(path, "cgroup.kill"), []byte("1"), 0); err != nil {
		return errors.Wrap(err, "end a control group")
	}
	over := time.After(killPatience)
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	for {
		select {
		case <-over:
			return errors.Wrap(err, "end a control group")
		case <-look.C:
		}
		if err = os.Remove(path); err == nil {
			return nil
		}
	}
}
