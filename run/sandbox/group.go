package sandbox

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"time"

	"github.com/go-faster/errors"
	"golang.org/x/sys/unix"
)

const (
	// lookInterval is how often a group that is to end is looked at.
	lookInterval = 10 * time.Millisecond
	// killPatience bounds the wait for a group that got SIGKILL. What is not
	// gone by then hangs in the kernel, and never again runs its program.
	killPatience = time.Second
)

// group is a process group by its number, which is the process ID of the
// process that it began with, its leader. The number is the group's for sure
// only as long as the leader was not waited for.
type group int

// supervise returns once the leader has ended, and everything else of the
// group got SIGKILL; when ctx ends first it stops the group, and says so. The
// leader is left as a zombie, so that no signal can meet another group.
func (g group) supervise(ctx context.Context, grace time.Duration) (stopped bool, err error) {
	ended := make(chan struct{})
	result := make(chan bool, 1)
	go func() { result <- g.stopWith(ctx, ended, grace) }()
	err = g.awaitLeader()
	close(ended)
	stopped = <-result
	g.signal(unix.SIGKILL)
	return stopped, err
}

// stopWith stops the group when ctx ends before the leader does, and says
// whether it did.
func (g group) stopWith(ctx context.Context, ended <-chan struct{}, grace time.Duration) bool {
	select {
	case <-ended:
		return false
	case <-ctx.Done():
	}
	select {
	case <-ended:
		return false
	default:
	}
	g.signal(unix.SIGTERM)
	// A stopped process acts on a signal only once it goes on.
	g.signal(unix.SIGCONT)
	over := time.NewTimer(grace)
	defer over.Stop()
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	select {
	case <-ended:
	case <-over.C:
		g.signal(unix.SIGKILL)
		return true
	}
	// A shell ends at once, the program that it started may need its time.
	for g.alive() {
		select {
		case <-over.C:
			return true
		case <-look.C:
		}
	}
	return true
}

// awaitLeader waits until the leader is a zombie and leaves it one.
func (g group) awaitLeader() error {
	for {
		err := unix.Waitid(unix.P_PID, int(g), nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// awaitGone waits until nothing of a group that got SIGKILL is alive.
func (g group) awaitGone() {
	over := time.NewTimer(killPatience)
	defer over.Stop()
	look := time.NewTicker(lookInterval)
	defer look.Stop()
	for g.alive() {
		select {
		case <-over.C:
			return
		case <-look.C:
		}
	}
}

// signal signals the group; one that is gone is no error.
func (g group) signal(sig unix.Signal) { _ = unix.Kill(-int(g), sig) }

// alive says whether a process of the group may still run. Zombies do not:
// whoever inherited them may be slow to wait for them, or never do it.
func (g group) alive() bool {
	if errors.Is(unix.Kill(-int(g), 0), unix.ESRCH) {
		return false
	}
	proc, err := os.Open("/proc")
	if err != nil {
		return true
	}
	defer proc.Close()
	names, err := proc.Readdirnames(-1)
	if err != nil {
		return true
	}
	number := []byte(strconv.Itoa(int(g)))
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		stat, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // It is gone.
		}
		// "PID (NAME) STATE PARENT GROUP …", where NAME may hold anything.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) > 2 && bytes.Equal(fields[2], number) && fields[0][0] != 'Z' && fields[0][0] != 'X' {
			return true
		}
	}
	return false
}
