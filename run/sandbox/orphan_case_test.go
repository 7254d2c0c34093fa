package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// orphan is a run that may leave some.
type orphan struct {
	shape
	ending
	cmd *exec.Cmd
	dir string
	// mark is the cgroup namespace that the server was put into. Everything that
	// it starts is in it for good: a command can shed its name, its environment,
	// its descriptors, its session and its parents, but may not change that.
	mark   string
	stdout *bufio.Reader
}

// result is what came of it.
type result struct {
	err  error
	took time.Duration // from the end's cause to the end
	gone time.Duration // from then until nothing was alive
	left int           // how many were, without a sandbox
}

// orphans runs a case in a workspace of this name. It may be called by any
// goroutine.
func (s *setting) orphans(sh shape, end ending, name string) (r result) {
	workspace, err := s.anotherWorkspace(name)
	if err != nil {
		return result{err: err}
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	at := *s
	at.workspace = workspace
	order := at.script(sh.script + "\nmkfifo go; : > begun; read x < go; exit 0")
	order.Grace, order.Linger, order.Stop = 100*time.Millisecond, end.stays, end.limit
	o := &orphan{shape: sh, ending: end, dir: workspace, cmd: at.serverIn(ctx, order)}
	if o.cmd.SysProcAttr == nil {
		o.cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	o.cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWCGROUP
	stdin, err := o.cmd.StdinPipe()
	if err != nil {
		return result{err: err}
	}
	stdout, err := o.cmd.StdoutPipe()
	if err != nil {
		return result{err: err}
	}
	o.stdout = bufio.NewReader(stdout)
	if err := o.cmd.Start(); err != nil {
		return result{err: err}
	}
	begun := time.Now()
	namespace := fmt.Sprintf("/proc/%d/ns/cgroup", o.cmd.Process.Pid)
	// As long as it is open no other gets its number.
	held, err := os.Open(namespace)
	if err != nil {
		return result{err: err}
	}
	defer held.Close()
	defer func() {
		_ = stdin.Close() // A server that stays, stays no longer.
		_ = o.cmd.Wait()
		if err := o.clean(); r.err == nil && s.level != Off {
			r.err = err
		}
	}()
	if o.mark, err = os.Readlink(namespace); err != nil {
		return result{err: err}
	}
	patience := 30 * time.Second
	if end.limit > 0 {
		patience = time.Until(begun.Add(end.limit))
	}
	if err := o.awaitInjected(patience); err != nil {
		return result{err: err}
	}
	cause := time.Now()
	if err := end.by(o); err != nil {
		return result{err: err}
	}
	if end.limit > 0 {
		cause = begun.Add(end.limit)
	}
	if err := o.awaitEnd(); err != nil {
		return result{err: err}
	}
	r.took = time.Since(cause)
	if s.level == Off {
		r.left = len(o.alive())
		return r
	}
	if left := len(o.alive()); end.stays && left > 0 {
		return result{err: fmt.Errorf("Run returned while %d processes were alive", left)}
	}
	r.gone, r.err = o.awaitGone()
	return r
}

func until(limit time.Duration, done func() bool) bool {
	for deadline := time.Now().Add(limit); !done(); <-time.After(2 * time.Millisecond) {
		if time.Now().After(deadline) {
			return false
		}
	}
	return true
}

var errNeverBegan = errors.New("it never began")

// awaitInjected waits until the processes are there that are to be ended: those
// of the shape, the command, and, in a sandbox, its first process.
func (o *orphan) awaitInjected(patience time.Duration) error {
	alive := 0
	if until(patience, func() bool {
		alive = len(o.alive())
		_, err := os.Stat(filepath.Join(o.dir, "begun"))
		return err == nil && alive >= o.least+1 && (!o.hops || o.beats() > 0)
	}) {
		return nil
	}
	return fmt.Errorf("%w: %d processes are alive", errNeverBegan, alive)
}

// goOn lets the command end.
func (o *orphan) goOn() error {
	pipe, err := os.OpenFile(filepath.Join(o.dir, "go"), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer pipe.Close()
	if _, err := pipe.WriteString("\n"); err != nil {
		return err
	}
	// What was written goes with the last descriptor of the pipe.
	if !until(10*time.Second, func() bool { n, err := unix.IoctlGetInt(int(pipe.Fd()), unix.TIOCINQ); return err != nil || n == 0 }) {
		return fmt.Errorf("the command does not read")
	}
	return nil
}

// awaitEnd waits until the run is over, for a server that stays, or the server.
func (o *orphan) awaitEnd() error {
	line, err := o.stdout.ReadBytes('\n')
	if o.name() == "kill -9" {
		return nil
	}
	var r outcome
	if err == nil {
		err = json.Unmarshal(line, &r)
	}
	if err == nil && r.Err != "" {
		err = fmt.Errorf("the run: %s", r.Err)
	}
	if err == nil && !o.stays {
		_, _ = o.stdout.ReadBytes('\n') // to the end
	}
	return err
}

func (o *orphan) name() string { return o.ending.name }

// alive are the processes that the server started and that are there, zombies
// left out: those are in no namespace any more.
func (o *orphan) alive() []int {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []int
	for _, n := range names {
		pid, err := strconv.Atoi(n.Name())
		if err != nil || pid == o.cmd.Process.Pid {
			continue
		}
		if mark, err := os.Readlink("/proc/" + n.Name() + "/ns/cgroup"); err == nil && mark == o.mark {
			found = append(found, pid)
		}
	}
	return found
}

// beats is how often its processes made themselves heard.
func (o *orphan) beats() int64 {
	info, err := os.Stat(filepath.Join(o.dir, "beat"))
	if err != nil {
		return 0
	}
	return info.Size()
}

// awaitGone waits until nothing is alive, and says how long that took.
func (o *orphan) awaitGone() (time.Duration, error) {
	begun := time.Now()
	last := begun
	var left []int
	ok := until(o.soon, func() bool {
		if left = o.alive(); len(left) == 0 {
			return true
		}
		last = time.Now()
		return false
	})
	if ok && o.hops {
		// It may be hiding from every list, but not in silence.
		before := o.beats()
		if until(50*time.Millisecond, func() bool { return o.beats() > before }) {
			return 0, fmt.Errorf("it goes on, unseen")
		}
	}
	if !ok {
		var what []string
		for _, pid := range left {
			stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
			what = append(what, strings.TrimSpace(string(stat[:min(len(stat), 60)])))
		}
		return 0, fmt.Errorf("alive after %s: %q", o.soon, what)
	}
	return last.Sub(begun), nil
}

// clean ends whatever is left, which then was nobody else's doing.
func (o *orphan) clean() error {
	if until(40*time.Second, func() bool {
		left := o.alive()
		for _, pid := range left {
			o.kill(pid)
		}
		return len(left) == 0
	}) {
		return nil
	}
	return fmt.Errorf("it cannot be cleaned up")
}

// kill ends a process if it is still one of these: after a storm its number can
// be anybody's.
func (o *orphan) kill(pid int) {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	if mark, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/cgroup", pid)); err == nil && mark == o.mark {
		_ = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
}

// anotherWorkspace makes a workspace beside the setting's own.
func (s *setting) anotherWorkspace(name string) (string, error) {
	path := filepath.Join(filepath.Dir(s.workspace), name)
	owner := s.uid
	if s.uid == 0 && s.level != Off {
		owner = commandUser
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		return "", err
	}
	return path, os.Chown(path, owner, owner)
}
