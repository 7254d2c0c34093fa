package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"agentrun/internal/needs"
)

// The attacks on a sandbox. A copy of this test binary is the command: it finds
// a scene in its environment, tries every attack on what the scene has outside
// the sandbox, and prints what came of each. The same attacks without a sandbox
// are the controls: an attack that does not work there proves nothing here.

// attackVariable makes the test binary an attacker; its value is the scene.
const attackVariable = "SANDBOX_TEST_ATTACK"

// leastControls is how many attacks have to work as root without a sandbox. It
// is no more since kernels differ in what they are built with.
const leastControls = 60

// attack is something that a command must not be able to do.
type attack struct {
	name string
	// do returns nil if the attack worked, otherwise what refused it.
	do func(s *scene) error
	// errno and fallbackErrno are, if not 0, how exactly the levels full and
	// landlock refuse it. The second stands for the first if it is 0.
	errno, fallbackErrno unix.Errno
	// metadata says why the level landlock may let it through.
	metadata string
	// harmful attacks are not tried without a sandbox.
	harmful bool
	// signal, if not 0, tells by its arrival at the victim that the attack
	// worked, which the attacker cannot see.
	signal unix.Signal
}

// attackResult is what came of an attack.
type attackResult struct {
	Name  string
	Got   bool
	Errno unix.Errno
	Text  string
	Hung  bool
}

// attacks returns all of them, each under its own name.
func attacks() []attack {
	var all []attack
	for _, group := range [][]attack{
		descriptorAttacks(), deniedCallAttacks(), callAttacks(), namespaceAttacks(), familyAttacks(), abiAttacks(),
		hiddenFileAttacks(), hostFileAttacks(), deviceAttacks(), pathAttacks(), changeAttacks(), metadataAttacks(),
		processAttacks(), signalAttacks(),
		networkAttacks(), ipcAttacks(), limitAttacks(), rightAttacks(), programAttacks(),
	} {
		all = append(all, group...)
	}
	return all
}

// The attacker comes to life before anything of the test does, like the first
// process of a sandbox; it is called by another name, so it cannot be that.
func init() {
	if text := os.Getenv(victimVariable); text != "" {
		beVictim(text)
	}
	text := os.Getenv(attackVariable)
	if text == "" {
		return
	}
	var s scene
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		panic(err)
	}
	changeShape()
	// What the attacks send to everyone also comes to their sender.
	signal.Ignore(signalToAll, signalByFile)
	s.meetServer()
	out := json.NewEncoder(os.Stdout)
	for _, a := range attacks() {
		switch {
		case len(s.Only) > 0 && !slices.Contains(s.Only, a.name), a.harmful && s.Level == Off:
		default:
			_ = out.Encode(a.try(&s))
		}
	}
	exitNow(0) // With the race detector a Go program waits a second at its end.
}

// try tries an attack in a thread of its own, which does not outlive it: some
// of what an attack can change is a thread's.
func (a attack) try(s *scene) attackResult {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		done <- a.do(s)
	}()
	r := attackResult{Name: a.name}
	timer := time.NewTimer(10 * time.Second)
	defer timer.Stop()
	select {
	case err := <-done:
		r.Got = err == nil
		if err != nil {
			r.Text = err.Error()
			_ = errors.As(err, &r.Errno)
		}
	case <-timer.C:
		r.Hung, r.Text = true, "no answer"
	}
	return r
}

// again tries an attack in another process: by is what becomes the attacker, or
// starts it.
func (s *scene) again(name string, by ...string) error {
	return s.against([]string{name}, by...)[name]
}

// against tries attacks of these names in one other process.
func (s *scene) against(names []string, by ...string) map[string]error {
	inner := *s
	inner.Only = names
	cmd := exec.Command(by[0], by[1:]...)
	cmd.Env = append(os.Environ(), attackVariable+"="+inner.text())
	out, err := cmd.Output()
	errs := map[string]error{}
	for _, name := range names {
		errs[name] = fmt.Errorf("by %v: %w: %q, %v", by, errNoAnswer, out, err)
	}
	for line := range strings.Lines(string(out)) {
		var r attackResult
		if json.Unmarshal([]byte(line), &r) != nil || r.Name == "" {
			continue
		}
		switch {
		case r.Got:
			errs[r.Name] = nil
		case r.Errno != 0:
			errs[r.Name] = r.Errno
		default:
			errs[r.Name] = errors.New(r.Text)
		}
	}
	return errs
}

// errNoAnswer says that the process of an attack ended before it answered.
var errNoAnswer = errors.New("no answer")

// tried are the results of all attacks at a setting.
func (s *setting) tried() map[string]attackResult {
	s.t.Helper()
	sc := newScene(s)
	o := s.order("./attacker")
	o.Env = append(o.Env, attackVariable+"="+sc.text())
	if s.level != Off {
		o.Limits = attackLimits
	}
	r := sc.runOrder(o)
	if r.Err != "" || r.Exit != (Exit{}) {
		s.t.Fatalf("the attacker ended: %+v", r)
	}
	results := map[string]attackResult{}
	lines := bufio.NewScanner(strings.NewReader(r.Stdout))
	for lines.Scan() {
		var one attackResult
		if err := json.Unmarshal(lines.Bytes(), &one); err != nil {
			s.t.Fatalf("the attacker said %q", lines.Text())
		}
		results[one.Name] = one
	}
	sc.judge(results)
	return results
}

// TestAttacks tries every attack at every level, as every user, and without a
// sandbox.
func TestAttacks(t *testing.T) {
	if os.Geteuid() != 0 {
		needs.Lacking(t, "root, to be more than one user")
	}
	controls, asRoot := map[string]bool{}, 0
	for _, uid := range []int{0, nobody} {
		t.Run(fmt.Sprintf("control as %d", uid), func(t *testing.T) {
			var not []string
			for name, r := range newSetting(t, Off, uid).tried() {
				if !r.Got {
					if r.Hung {
						name += " (hung)"
					}
					not = append(not, name)
					continue
				}
				controls[name] = true
				if uid == 0 {
					asRoot++
				}
			}
			slices.Sort(not)
			t.Logf("%d work without a sandbox; not possible here: %s", len(controls), strings.Join(not, "; "))
		})
	}
	if asRoot < leastControls {
		t.Errorf("%d attacks work as root without a sandbox, %d have to", asRoot, leastControls)
	}
	everySetting(t, func(t *testing.T, s *setting) {
		t.Parallel()
		s.check(s.tried(), len(controls))
	})
}

// check compares the results with what the level allows.
func (s *setting) check(results map[string]attackResult, controls int) {
	s.t.Helper()
	var allowed []string
	all := attacks()
	seen := map[string]bool{}
	refused := 0
	for _, a := range all {
		r, ok := results[a.name]
		errno := a.errno
		if s.level == Landlock && a.fallbackErrno != 0 {
			errno = a.fallbackErrno
		}
		switch {
		case seen[a.name]:
			s.t.Errorf("two attacks have the name %q", a.name)
		case !ok:
			s.t.Errorf("%s: was not tried", a.name)
		case r.Hung:
			s.t.Errorf("%s: hung", a.name)
		case r.Got && a.metadata != "" && s.level == Landlock:
			allowed = append(allowed, a.name)
		case r.Got:
			s.t.Errorf("%s: IT WORKED", a.name)
		case errno != 0 && r.Errno != errno:
			s.t.Errorf("%s: refused with %q, want %v", a.name, r.Text, errno)
		default:
			refused++
		}
		seen[a.name] = true
	}
	s.t.Logf("%d attacks, %d refused, %d allowed (%s), controls: %d succeed",
		len(all), refused, len(allowed), strings.Join(allowed, "; "), controls)
}
