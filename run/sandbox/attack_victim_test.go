package sandbox

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// victimVariable makes the test binary a process that is there to be attacked.
// Its value is the token.
const victimVariable = "SANDBOX_TEST_VICTIM"

// victim is such a process.
type victim struct {
	cmd     *exec.Cmd
	address uintptr
	stdin   io.Closer
	rest    func() []byte
}

// beVictim holds the token in memory, tells where, and tells of the signals
// that arrive, until standard input ends.
func beVictim(token string) {
	signals := make(chan os.Signal, 100)
	signal.Notify(signals, signalToAll, signalByFile, signalLast)
	memory, err := unix.Mmap(-1, 0, unix.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		panic(err)
	}
	copy(memory, token)
	fmt.Println(uintptr(unsafe.Pointer(&memory[0])))
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		// The highest number comes last of all that are there.
		_ = unix.Kill(os.Getpid(), signalLast)
	}()
	for sig := range signals {
		if sig == signalLast {
			exitNow(0)
		}
		fmt.Printf("hit %d\n", sig)
	}
}

func startVictim(t *testing.T, s *scene) *victim {
	t.Helper()
	owner := uint32(s.s.owner())
	v := &victim{cmd: exec.Command("/proc/self/exe", s.Token)}
	v.cmd.Env = []string{victimVariable + "=" + s.Token}
	v.cmd.Dir = s.Public
	v.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: owner, Gid: owner}, Setsid: true}
	secret, err := os.Open(s.Secrets[0])
	s.s.must(err)
	defer secret.Close()
	v.cmd.ExtraFiles = []*os.File{secret}
	v.cmd.Stderr = os.Stderr
	v.stdin, err = v.cmd.StdinPipe()
	s.s.must(err)
	stdout, err := v.cmd.StdoutPipe()
	s.s.must(err, v.cmd.Start())
	t.Cleanup(func() {
		_ = v.cmd.Process.Kill()
		_ = v.cmd.Wait()
	})
	lines := bufio.NewReader(stdout)
	if _, err := fmt.Fscanln(lines, &v.address); err != nil {
		t.Fatal("the victim: ", err)
	}
	v.rest = func() []byte {
		text, _ := io.ReadAll(lines)
		return text
	}
	return v
}

// end lets the victim end and returns what it told of. A signal that was sent
// before the end of its input has arrived by then.
func (v *victim) end() []byte {
	_ = v.stdin.Close()
	return v.rest()
}
