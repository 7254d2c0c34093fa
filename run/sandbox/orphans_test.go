package sandbox

import (
	"errors"
	"fmt"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentrun/internal/needs"
	"agentrun/run/sandbox/sandboxtest"
)

// shape is a way in which processes try to outlive their run.
type shape struct {
	name, script string
	// least is how many processes it has, times how often it is tried when
	// everything is tested.
	least, times int
	// hops is true when its processes come and go too fast to be listed. They
	// write to the file "beat" as they go.
	hops bool
}

// perl is a background process with a session of its own, which every program
// that means to stay would make first.
func perl(script string) string {
	return `perl -MPOSIX -e 'POSIX::setsid(); ` + script + `; select undef, undef, undef, 600' &`
}

var shapes = []shape{
	{name: "daemon", times: 3, least: 2, script: `(setsid sh -c 'cd /; sleep 600 & sleep 600 &' > /dev/null 2>&1 < /dev/null &)`},
	{name: "holds stdout", times: 3, least: 1, script: `(setsid sh -c 'trap "" PIPE TERM; while :; do echo x; sleep 0.05; done' &)`},
	{name: "ignores SIGTERM", times: 3, least: 2, script: `trap "" TERM; (setsid sh -c 'trap "" TERM INT HUP; while :; do sleep 600; done' &)`},
	{name: "stopped", times: 3, least: 1, script: `(setsid sh -c 'trap "" TERM; kill -STOP $$; sleep 600' &)`},
	// Two processes which go on as their own children, each in a session of its
	// own, and leave one behind now and then. They stop by themselves should
	// nobody stop them.
	{name: "fork storm", times: 3, least: 2, hops: true, script: `perl -MPOSIX -e '$SIG{TERM} = "IGNORE"; $end = time + 30; open B, ">>", "beat"; fork;
		while (time < $end) { $p = fork; next unless defined $p; if ($p) { sleep 30 if rand() < .01; POSIX::_exit(0) }
		POSIX::setsid(); syswrite B, "x" }' &`},
	{name: "other name", least: 1, script: "env -i " + perl(`$0 = "[kworker/0:1]"; chdir "/usr"; exec {"/bin/sleep"} "init", "600"`)},
	{name: "no descriptors", least: 1, script: perl(`POSIX::close($_) for 0 .. 255`)},
	{name: "no signals", least: 1, script: perl(`$s = POSIX::SigSet->new; $s->fillset; POSIX::sigprocmask(SIG_BLOCK, $s)`)},
	{name: "parent of zombies", least: 1, script: perl(`for (1 .. 20) { fork or POSIX::_exit(0) }`)},
	// A command may not limit what the processes around it may take: the one that
	// watches it would be ended by the kernel, of its own work.
	{name: "limits its watcher", least: 2, hops: true, script: `prlimit --pid $PPID --cpu=0:1; prlimit --pid $PPID --nofile=0:0; prlimit --pid $PPID --nproc=0:0;
		perl -MPOSIX -e '$end = time + 30; open B, ">>", "beat"; fork;
		while (time < $end) { $p = fork; next unless defined $p; POSIX::_exit(0) if $p; POSIX::setsid(); syswrite B, "x" }' &`},
}

// ending is a way in which a run ends.
type ending struct {
	name string
	// stays is true when the server is still there afterwards.
	stays bool
	limit time.Duration
	by    func(o *orphan) error
	// soon is when nothing may be alive any more.
	soon time.Duration
}

var endings = []ending{
	{name: "by itself", stays: true, soon: time.Second, by: func(o *orphan) error { return o.goOn() }},
	{name: "time limit", stays: true, soon: time.Second, limit: time.Second, by: func(*orphan) error { return nil }},
	{name: "cancel", stays: true, soon: time.Second, by: func(o *orphan) error { return o.cmd.Process.Signal(unix.SIGINT) }},
	{name: "the server ends", soon: time.Second, by: func(o *orphan) error { return o.cmd.Process.Signal(unix.SIGTERM) }},
	{name: "kill -9", soon: 2 * time.Second, by: func(o *orphan) error { return o.cmd.Process.Kill() }},
}

// tally counts cases and keeps the slowest.
type tally struct {
	mu                 sync.Mutex
	injected, survived int
	took, gone         map[string]time.Duration // by the way of the end
}

func (y *tally) add(t *testing.T, what string, sh shape, end ending, r result) {
	y.mu.Lock()
	defer y.mu.Unlock()
	y.injected++
	if r.err != nil {
		t.Errorf("%s, %s, %s: %v", what, sh.name, end.name, r.err)
		return
	}
	y.survived++
	y.took[end.name], y.gone[end.name] = max(y.took[end.name], r.took), max(y.gone[end.name], r.gone)
}

// TestOrphans lets processes of many shapes try to outlive their run, which
// ends in many ways.
func TestOrphans(t *testing.T) {
	needs.Program(t, "perl")
	const atOnce = 4
	y := &tally{took: map[string]time.Duration{}, gone: map[string]time.Duration{}}
	eitherSetting(t, func(t *testing.T, s *setting) {
		var cases sync.WaitGroup
		free := make(chan struct{}, atOnce)
		for n := range 3 * len(shapes) * len(endings) {
			sh, end := shapes[n/len(endings)%len(shapes)], endings[n%len(endings)]
			if round := n / len(endings) / len(shapes); round > 0 && (!longTests() || round >= sh.times) {
				continue
			}
			name := fmt.Sprint(n)
			free <- struct{}{}
			cases.Go(func() {
				defer func() { <-free }()
				r := s.orphans(sh, end, name)
				// On a machine that has more to do it can take its time to begin.
				for i := 0; i < 5 && end.limit > 0 && errors.Is(r.err, errNeverBegan); i++ {
					end.limit *= 2
					r = s.orphans(sh, end, fmt.Sprint(name, "-", i))
				}
				y.add(t, fmt.Sprintf("%s as %d", s.level, s.uid), sh, end, r)
			})
		}
		cases.Wait()
	})
	for _, end := range endings {
		t.Logf("%s: at most %s to the end, then %s until nothing was alive", end.name, y.took[end.name].Round(time.Millisecond), y.gone[end.name].Round(time.Millisecond))
	}
	if y.injected == 0 {
		t.Error("nothing was injected")
	}
	t.Logf("%d injected, %d survived", y.injected, y.survived)
}

// Without a sandbox the same processes are still alive when their run is over.
func TestOrphansControl(t *testing.T) {
	needs.Program(t, "perl")
	everyUser(t, func(t *testing.T, uid int) {
		s := newSetting(t, Off, uid)
		left := 0
		for n, sh := range shapes {
			if sh.hops {
				continue // They are too many for a machine that has more to do.
			}
			r := s.orphans(sh, endings[0], fmt.Sprint(n))
			if r.err != nil {
				t.Errorf("%s: %v", sh.name, r.err)
			}
			left += r.left
		}
		if t.Logf("%d processes were left behind", left); left < 5 {
			t.Errorf("only %d are left: nothing was tested", left)
		}
	})
}

// The end of a run is the end of nothing else, though others are the same user.
func TestOrphansEndAlone(t *testing.T) {
	everySetting(t, func(t *testing.T, s *setting) {
		user := s.uid
		if user == 0 {
			user = commandUser
		}
		bystander := exec.CommandContext(t.Context(), "sleep", "600")
		bystander.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(user), Gid: uint32(user)}}
		if err := bystander.Start(); err != nil {
			t.Fatal(err)
		}
		defer bystander.Wait()
		defer bystander.Process.Kill()
		for n, end := range endings {
			if r := s.orphans(shapes[0], end, fmt.Sprint(n)); r.err != nil {
				t.Errorf("%s: %v", end.name, r.err)
			}
			if !sandboxtest.Alive(bystander.Process.Pid) {
				t.Fatalf("%s: the end of a run ended another process", end.name)
			}
		}
	})
}
