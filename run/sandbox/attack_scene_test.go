package sandbox

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"agentrun/internal/needs"
)

// scene is what lies around a sandbox and must not be reached from it. All of
// it is open to the command's user by its own permissions: only the sandbox is
// in the way.
type scene struct {
	// Only are the attacks to try, in a process that is not the first.
	Only  []string
	Level Level
	// Token is what every secret holds.
	Token string
	// Dir is the attacker's workspace, Data the data directory, Other another
	// run's workspace, and Public a folder that is everybody's. Owned lies in
	// it and belongs to the command's user.
	Dir, Data, Other, Public, Owned string
	// Secrets are files that hold the token.
	Secrets []string
	// Server is the server's process, and Victim another of the same user as
	// the command. Address is where its memory holds the token.
	Server, Victim int
	Address        uintptr
	// Where the host listens.
	TCP, TCP6, UDP, Stream, Datagram, Abstract string
	// Key is that of the host's System V queues, semaphores and memory; Shared
	// the latter's number, Queue the name of a POSIX queue.
	Key, Shared int
	Queue       string
	// Disk is a block device of the host, if there is one.
	Disk string
	// Preload is a library that prints the first secret when it is loaded.
	Preload string
	// Loader is the host's dynamic loader.
	Loader string

	s       *setting
	victim  *victim
	packets *net.UDPConn
	before  map[string]string
}

func (s *scene) text() string {
	text, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return string(text)
}

// owner is the user of the host that commands of a setting run as.
func (s *setting) owner() int {
	if s.uid == 0 && s.level != Off {
		return commandUser
	}
	return s.uid
}

var scenes atomic.Int32

func newScene(s *setting) *scene {
	s.t.Helper()
	base := filepath.Dir(s.data)
	sc := &scene{
		Level: s.level, Token: fmt.Sprintf("token-%d-%d", os.Getpid(), scenes.Add(1)), s: s,
		Dir: s.workspace, Data: s.data, Other: filepath.Join(filepath.Dir(s.workspace), "other"), Public: filepath.Join(base, "public"),
	}
	sc.Owned = filepath.Join(sc.Public, "owned")
	sc.plantFiles()
	sc.plantPrograms()
	sc.listen()
	sc.shareMemory()
	for _, pattern := range []string{"/dev/vd?", "/dev/sd?", "/dev/nvme?n?", "/dev/loop0"} {
		if found, _ := filepath.Glob(pattern); len(found) > 0 && sc.Disk == "" {
			sc.Disk = found[0]
		}
	}
	sc.before = sc.contents()
	sc.victim = startVictim(s.t, sc)
	sc.Victim, sc.Address = sc.victim.cmd.Process.Pid, sc.victim.address
	return sc
}

func (s *setting) must(errs ...error) {
	s.t.Helper()
	for _, err := range errs {
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// plantFiles makes what must not be read or changed.
func (s *scene) plantFiles() {
	secret := func(path string) error {
		s.Secrets = append(s.Secrets, path)
		return os.WriteFile(path, []byte(s.Token), 0o644)
	}
	owner := s.s.owner()
	s.s.must(
		os.Mkdir(s.Other, 0o755), os.Mkdir(s.Public, 0o755), os.Chmod(s.Other, 0o777), os.Chmod(s.Public, 0o777),
		secret(filepath.Join(s.Other, "secret")), secret(filepath.Join(s.Data, "agentrun.db")), secret(filepath.Join(s.Public, "secret")),
		secret("/dev/shm/"+s.Token), secret("/var/tmp/"+s.Token), secret("/run/"+s.Token),
		os.WriteFile(filepath.Join(s.Public, "writable"), []byte("as it was"), 0o644),
		os.Chmod(filepath.Join(s.Public, "writable"), 0o666),
		os.WriteFile(s.Owned, []byte("as it was"), 0o644),
		os.Symlink("secret", filepath.Join(s.Public, "link")),
		os.Mkdir(filepath.Join(s.Public, "empty"), 0o777),
		os.Mkdir(filepath.Join(s.Public, "doomed-folder"), 0o777), os.WriteFile(filepath.Join(s.Public, "doomed"), nil, 0o644),
		unix.Mkfifo(filepath.Join(s.Public, "fifo"), 0o666), os.Chmod(filepath.Join(s.Public, "fifo"), 0o666),
		os.Chown(s.Other, owner, owner), os.Chown(s.Owned, owner, owner), os.Chown(filepath.Join(s.Public, "empty"), owner, owner),
		os.Chown(filepath.Join(s.Public, "writable"), owner, owner), os.Chown(filepath.Join(s.Public, "secret"), owner, owner),
		unix.Mkfifo(filepath.Join(s.Dir, "server"), 0o666), os.Chmod(filepath.Join(s.Dir, "server"), 0o666),
	)
	s.s.t.Cleanup(func() {
		for _, path := range s.Secrets {
			_ = os.Remove(path)
		}
	})
}

// plantPrograms puts the attacker into its workspace, and again as programs
// with rights of their own.
func (s *scene) plantPrograms() {
	program, err := os.ReadFile("/proc/self/exe")
	s.s.must(err)
	owner := s.s.owner()
	attacker, powerful := filepath.Join(s.Dir, "attacker"), filepath.Join(s.Dir, "capable")
	s.s.must(os.WriteFile(attacker, program, 0o755), os.Chown(attacker, owner, owner))
	s.s.must(os.WriteFile(powerful, program, 0o755), os.WriteFile(filepath.Join(s.Public, "program"), program, 0o755))
	// Version 2, effective; permitted are the lowest eight, such as to read any file.
	rights := []byte{1, 0, 0, 2, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}
	setuid := filepath.Join(s.Dir, "setuid")
	s.s.must(
		unix.Setxattr(powerful, "security.capability", rights, 0),
		os.WriteFile(setuid, program, 0o755), os.Chmod(setuid, 0o755|os.ModeSetuid|os.ModeSetgid),
	)
	if loaders, _ := filepath.Glob("/lib*/ld-linux-*.so.?"); len(loaders) > 0 {
		s.Loader = loaders[0]
	}
	gcc, err := exec.LookPath("gcc")
	if err != nil {
		return
	}
	source, library := filepath.Join(s.Public, "preload.c"), filepath.Join(s.Dir, "preload.so")
	s.s.must(os.WriteFile(source, []byte(preloadSource), 0o644))
	if out, err := exec.Command(gcc, "-shared", "-fPIC", "-o", library, source).CombinedOutput(); err != nil {
		s.s.t.Fatalf("gcc: %v\n%s", err, out)
	}
	s.Preload = library
}

const preloadSource = `#include <stdio.h>
#include <stdlib.h>
__attribute__((constructor)) static void begin(void) {
	char text[256] = "";
	FILE *f = fopen(getenv("SECRET"), "r");
	if (f && fgets(text, sizeof text, f)) puts(text); else puts("refused");
}`

// listen is the host's side of every way to talk to it.
func (s *scene) listen() {
	t := s.s.t
	keep := func(l io.Closer, err error) {
		s.s.must(err)
		t.Cleanup(func() { _ = l.Close() })
	}
	tcp, err := net.Listen("tcp4", "127.0.0.1:0")
	keep(tcp, err)
	s.TCP = tcp.Addr().String()
	if tcp6, err := net.Listen("tcp6", "[::1]:0"); err == nil {
		keep(tcp6, nil)
		s.TCP6 = tcp6.Addr().String()
	}
	s.packets, err = net.ListenUDP("udp4", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)})
	keep(s.packets, err)
	s.UDP = s.packets.LocalAddr().String()
	s.Stream, s.Datagram, s.Abstract = filepath.Join(s.Public, "stream"), filepath.Join(s.Public, "datagram"), s.Token
	stream, err := net.Listen("unix", s.Stream)
	keep(stream, err)
	datagram, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: s.Datagram})
	keep(datagram, err)
	abstract, err := net.Listen("unix", "@"+s.Abstract)
	keep(abstract, err)
	abstractDatagram, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: "@" + s.Abstract + "-datagram"})
	keep(abstractDatagram, err)
	s.s.must(os.Chmod(s.Stream, 0o777), os.Chmod(s.Datagram, 0o777))
}

// shareMemory makes what programs of the host share by a number or a name.
func (s *scene) shareMemory() {
	s.Key = os.Getpid()<<8 | int(scenes.Load())&0xff
	id := func(number uintptr, args ...uintptr) int {
		var a [4]uintptr
		copy(a[:], args)
		n, _, errno := unix.Syscall6(number, a[0], a[1], a[2], a[3], 0, 0)
		if errno != 0 {
			needs.Lacking(s.s.t, "System V IPC: "+errno.Error())
		}
		return int(n)
	}
	const make = unix.IPC_CREAT | 0o666
	memory := id(unix.SYS_SHMGET, uintptr(s.Key), 4096, make)
	semaphore := id(unix.SYS_SEMGET, uintptr(s.Key), 1, make)
	queue := id(unix.SYS_MSGGET, uintptr(s.Key), make)
	s.Shared = memory
	s.Queue = s.Token
	name := append([]byte(s.Queue), 0)
	fd, _, errno := unix.Syscall6(unix.SYS_MQ_OPEN, uintptr(unsafe.Pointer(&name[0])), unix.O_CREAT|unix.O_RDWR, 0o666, 0, 0, 0)
	if errno != 0 {
		needs.Lacking(s.s.t, "POSIX queues: "+errno.Error())
	}
	s.s.must(unix.Fchmod(int(fd), 0o666), unix.Close(int(fd)))
	s.s.t.Cleanup(func() {
		_, _, _ = unix.Syscall(unix.SYS_SHMCTL, uintptr(memory), unix.IPC_RMID, 0)
		_, _, _ = unix.Syscall(unix.SYS_SEMCTL, uintptr(semaphore), 0, unix.IPC_RMID)
		_, _, _ = unix.Syscall(unix.SYS_MSGCTL, uintptr(queue), unix.IPC_RMID, 0)
		_, _, _ = unix.Syscall(unix.SYS_MQ_UNLINK, uintptr(unsafe.Pointer(&name[0])), 0, 0)
	})
}

// runOrder runs an order to its end and tells the attacker its server's number.
func (s *scene) runOrder(o order) outcome {
	s.s.t.Helper()
	fifo, err := os.OpenFile(filepath.Join(s.Dir, "server"), os.O_RDWR, 0)
	s.s.must(err)
	defer fifo.Close()
	cmd := s.s.server(o)
	// With the race detector the server would wait a second at its end.
	cmd.Env = append(cmd.Env, "GORACE=atexit_sleep_ms=0")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	s.s.must(cmd.Start())
	_, err = fmt.Fprintln(fifo, cmd.Process.Pid)
	s.s.must(err)
	waitErr := cmd.Wait()
	var r outcome
	if err := json.Unmarshal(stdout.Bytes(), &r); err != nil || waitErr != nil {
		s.s.t.Fatalf("the server: %v, %v\n%s%s", err, waitErr, &stdout, &stderr)
	}
	return r
}

// meetServer learns the server's number, in the attacker.
func (s *scene) meetServer() {
	if s.Server != 0 {
		return
	}
	f, err := os.Open("server")
	if err != nil {
		panic(err)
	}
	defer f.Close()
	line, err := bufio.NewReader(f).ReadString('\n')
	if err != nil {
		panic(err)
	}
	s.Server, err = strconv.Atoi(strings.TrimSpace(line))
	if err != nil {
		panic(err)
	}
}

// judge sees from outside what the attacker could not.
func (s *scene) judge(results map[string]attackResult) {
	hits := s.victim.end()
	for _, a := range attacks() {
		if r, ok := results[a.name]; ok && a.signal != 0 && bytes.Contains(hits, fmt.Appendf(nil, "hit %d\n", a.signal)) {
			r.Got = true
			results[a.name] = r
		}
	}
	s.judgePackets(results)
	if s.Level != Off {
		s.unchanged()
	}
	if text, err := os.ReadFile(filepath.Join(s.Public, "secret")); err != nil || string(text) != s.Token {
		s.s.t.Errorf("the host's file is not what it was: %q, %v", text, err)
	}
}

// contents are the files around the workspace, with their content.
func (s *scene) contents() map[string]string {
	found := map[string]string{}
	err := filepath.WalkDir(filepath.Dir(s.Data), func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == s.Dir:
			return filepath.SkipDir
		}
		found[path] = d.Type().String()
		if d.Type().IsRegular() {
			text, err := os.ReadFile(path)
			found[path] += string(text)
			return err
		}
		return nil
	})
	s.s.must(err)
	return found
}

// unchanged looks whether the host's files are what they were.
func (s *scene) unchanged() {
	now := s.contents()
	for path := range now {
		if _, ok := s.before[path]; !ok {
			s.s.t.Errorf("%s was made", path)
		}
	}
	for path, was := range s.before {
		if now[path] != was {
			s.s.t.Errorf("%s was changed", path)
		}
	}
}
