package sandbox

var processJobs = []job{
	{name: "background jobs", script: `
		(exit 3) & first=$!; (sleep 0.01; exit 4) & second=$!
		wait $first || echo $?; wait $second || echo $?
		nohup sh -c 'echo free' 2> /dev/null`, stdout: "3\n4\nfree\n"},
	{name: "traps", script: `
		sh -c 'trap "echo caught; exit 5" TERM; kill -TERM $$; :' || echo $?
		sh -c 'trap "echo bye" EXIT'
		sh -c 'kill -KILL $$' 2> /dev/null || echo $?`, stdout: "caught\n5\nbye\n137\n"},
	{name: "timeout", script: `
		timeout 0.05 sleep 60 || echo $?; timeout 60 echo in time`, stdout: "124\nin time\n"},
	{name: "sessions and niceness", script: `
		setsid -w echo led; nice -n 5 nice; ulimit -c; ionice -c 3 true; taskset -c 0 echo bound`, stdout: "led\n5\n0\nbound\n"},
	{name: "information on processes", full: lacksProc, script: `
		sh -c 'tr "\0" " " < /proc/$$/cmdline' name | cut -c1-5
		readlink /proc/self/exe | grep -c readlink; [ "$(nproc)" -gt 0 ] && grep -c '^MemTotal' /proc/meminfo
		ls /proc/self/fd > /dev/null && echo descriptors; cat /proc/sys/kernel/ostype`, stdout: "sh -c\n1\n1\ndescriptors\nLinux\n"},
	{name: "a terminal by script", programs: []string{"script"}, full: lacksTty, script: `
		script -qec 'test -t 0 && test -t 1 && stty size > /dev/null && tty' /dev/null | tr -d '\r'`, stdout: "/dev/pts/0\n"},
	{name: "a terminal by python", programs: []string{"python3"}, full: lacksTty, script: `python3 - <<'END' | tr -d '\r'
import os, pty
status = pty.spawn(["sh", "-c", "test -t 1 && echo terminal > /dev/tty; exit 7"])
print(os.waitstatus_to_exitcode(status))
END`, stdout: "terminal\n7\n"},
}

var networkJobs = []job{
	{name: "Unix sockets", programs: []string{"python3"}, full: lacksSockets, script: `python3 - <<'END'
import socket, threading
for path in "sock", "/tmp/sock", "\0abstract":
    l = socket.socket(socket.AF_UNIX); l.bind(path); l.listen()
    threading.Thread(target=lambda: l.accept()[0].sendall(path.encode())).start()
    c = socket.socket(socket.AF_UNIX); c.connect(path); print(c.recv(99))
a, b = socket.socketpair(); a.send(b"pair"); print(b.recv(9))
END`, stdout: "b'sock'\nb'/tmp/sock'\nb'\\x00abstract'\nb'pair'\n"},
	{name: "TCP and UDP with itself", programs: []string{"python3"}, full: lacksSockets, script: `python3 - <<'END'
import os, socket, threading
for family, host in (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"):
    if family == socket.AF_INET6 and not os.path.exists("/proc/net/if_inet6"):
        print("b'" + host + "'"); continue  # a kernel without IPv6
    l = socket.create_server((host, 0), family=family)
    threading.Thread(target=lambda: l.accept()[0].sendall(host.encode())).start()
    print(socket.create_connection((host, l.getsockname()[1])).recv(99))
u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 0)); u.sendto(b"udp", u.getsockname()); print(u.recv(9))
END`, stdout: "b'127.0.0.1'\nb'::1'\nb'udp'\n"},
	{name: "an HTTP server of python", programs: []string{"python3", "curl"}, full: lacksSockets, script: `
		echo page > index.html
		mkfifo log; python3 -u -m http.server --bind 127.0.0.1 8000 > log 2> errors & read line < log
		python3 -c 'import urllib.request as r; print(r.urlopen("http://127.0.0.1:8000/").read())'
		curl -s http://localhost:8000/index.html; kill $!`, stdout: "b'page\\n'\npage\n"},
	{name: "an HTTP server of node", programs: []string{"node"}, full: lacksSockets, script: `node -e '
const http = require("http");
const s = http.createServer((q, a) => a.end("hello " + q.url)).listen(0, "localhost", () =>
  http.get({host: "localhost", port: s.address().port, path: "/x"}, r => { r.on("data", d => console.log(String(d))); r.on("end", () => s.close()); }));'`,
		stdout: "hello /x\n"},
	{name: "bash's own sockets", programs: []string{"bash", "python3"}, full: lacksSockets, script: `
		mkfifo ports; python3 -u -c 'import socket; l = socket.create_server(("127.0.0.1", 0)); print(l.getsockname()[1]); l.accept()[0].sendall(b"bash\n")' > ports &
		read port < ports
		bash -c "exec 3<>/dev/tcp/127.0.0.1/$port; cat <&3"`, stdout: "bash\n"},
	{name: "no network at all", programs: []string{"curl"}, script: `
		curl -s --max-time 20 http://192.0.2.1/ || [ $? != 28 ] && echo at once
		curl -s --max-time 20 http://no.such.name.example/ || [ $? != 28 ] && echo at once
		curl --version | head -n 1 | cut -d' ' -f1`, stdout: "at once\nat once\ncurl\n"},
	{name: "certificates", programs: []string{"python3"}, script: `python3 - <<'END'
import ssl
c = ssl.create_default_context()
print(c.cert_store_stats()["x509_ca"] > 10 or "none")
END`, stdout: "True\n"},
	{name: "openssl", programs: []string{"openssl"}, spare: true, script: `
		printf x | openssl dgst -sha256 -r | cut -c1-8
		openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout k -out c -subj /CN=localhost 2> /dev/null
		openssl x509 -in c -noout -subject | tr -d ' '`, stdout: "2d711642\nsubject=CN=localhost\n"},
}

var languageJobs = []job{
	{name: "git", programs: []string{"git"}, full: lacksGit, script: gitUser + `
		git init -q -b main r; cd r; echo one > f; git add f; git commit -qm first
		echo two >> f; git diff --stat | tail -n 1; git stash -q; git status --short; git stash pop -q
		git checkout -qb side; git commit -qam second; git checkout -q main; git merge -q side; git log --format=%s
		git gc -q; git fsck 2>&1 | grep -c error || :`, stdout: " 1 file changed, 1 insertion(+)\nsecond\nfirst\n0\n"},
	{name: "git clone", programs: []string{"git"}, full: lacksGit, script: gitUser + `
		git init -q -b main r; echo one > r/f; git -C r add f; git -C r commit -qm first
		git clone -q r linked; git clone -q "file://$PWD/r" sent; cat linked/f sent/f
		git -C sent worktree add -q ../tree; git -C tree log --format=%s
		printf '#!/bin/sh\necho hook\n' > sent/.git/hooks/pre-commit; chmod +x sent/.git/hooks/pre-commit
		cd sent; git commit -q --allow-empty -m second 2>&1; git push -q origin HEAD:other; git -C ../r branch | tr -d ' '`,
		stdout: "one\none\nfirst\nhook\n*main\nother\n"},
	{name: "python", programs: []string{"python3"}, script: `python3 - <<'END'
import asyncio, ctypes, getpass, json, locale, os, random, subprocess, uuid, zlib
print("hello", subprocess.run(["echo", "child"], capture_output=True, text=True).stdout.strip())
random.seed(); uuid.uuid4(); os.sched_getaffinity(0)
call = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int)(lambda x: x + 1); print(call(1))
END`, stdout: "hello child\n2\n"},
	{name: "python's event loop", programs: []string{"python3"}, script: `python3 - <<'END'
import asyncio
async def main():
    p = await asyncio.create_subprocess_exec("cat", stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    print((await p.communicate(b"async"))[0], p.returncode)
asyncio.run(main())
END`, stdout: "b'async' 0\n"},
	{name: "python's processes", programs: []string{"python3"}, full: lacksMemory, script: `python3 - <<'END'
import multiprocessing as mp
def square(x): return x * x
with mp.Pool(3) as pool: print(pool.map(square, range(5)))
END`, stdout: "[0, 1, 4, 9, 16]\n"},
	{name: "python's shared memory", programs: []string{"python3"}, full: lacksMemory, script: `python3 - <<'END'
from multiprocessing import shared_memory, Process
m = shared_memory.SharedMemory(create=True, size=1 << 20)
def write(name): o = shared_memory.SharedMemory(name=name); o.buf[0] = 42; o.close()
p = Process(target=write, args=(m.name,)); p.start(); p.join(); print(m.buf[0]); m.close(); m.unlink()
END`, stdout: "42\n"},
	{name: "python's threads", programs: []string{"python3"}, script: `python3 - <<'END'
from concurrent.futures import ThreadPoolExecutor
import queue, threading
q = queue.Queue(); ts = [threading.Thread(target=q.put, args=(i,)) for i in range(50)]
[t.start() for t in ts]; [t.join() for t in ts]
with ThreadPoolExecutor(8) as pool: print(q.qsize(), sum(pool.map(lambda x: x, range(10))))
END`, stdout: "50 45\n"},
	{name: "a virtual environment", programs: []string{"python3"}, script: `
		python3 -m venv --without-pip env
		. env/bin/activate; python -c 'import sys; print(sys.prefix != sys.base_prefix)'`, stdout: "True\n"},
	{name: "a virtual environment with pip", programs: []string{"python3"}, long: true, script: `
		python3 -m venv env; env/bin/pip --version | cut -d' ' -f1`, stdout: "pip\n"},
	{name: "sqlite", programs: []string{"python3"}, script: `python3 - <<'END'
import sqlite3
db = sqlite3.connect("x.db"); print(db.execute("pragma journal_mode=wal").fetchone())
db.execute("create table t (a)"); db.executemany("insert into t values (?)", [(i,) for i in range(100)]); db.commit()
print(sqlite3.connect("x.db").execute("select sum(a) from t").fetchone())
END`, stdout: "('wal',)\n(4950,)\n"},
	{name: "node", programs: []string{"node"}, script: `node -e '
const fs = require("fs"), os = require("os"), path = require("path");
fs.mkdirSync("a/b", {recursive: true}); fs.writeFileSync("a/b/f", "hello");
fs.copyFileSync("a/b/f", "g"); fs.renameSync("a/b/f", "h"); fs.rmSync("a", {recursive: true});
console.log(fs.readdirSync(".").filter(n => n[0] != ".").join(), fs.readFileSync("g", "utf8"), os.cpus().length > 0, require("crypto").createHash("md5").update("x").digest("hex").slice(0, 4));
console.log(require("child_process").execSync("echo child").toString().trim());
fs.promises.readFile("g").then(b => console.log(b.length));'`, stdout: "g,h hello true 9dd4\nchild\n5\n"},
	{name: "node's threads", programs: []string{"node"}, script: `node -e '
const {Worker} = require("worker_threads");
const w = new Worker("const {parentPort: p} = require(\"worker_threads\"); p.on(\"message\", x => { p.postMessage(x * 2); p.close(); });", {eval: true});
w.on("message", x => console.log(x)); w.postMessage(21);'`, stdout: "42\n"},
	{name: "C", programs: []string{"gcc"}, script: `
		printf '#include <stdio.h>\n#include <pthread.h>\nstatic void *f(void *p){return p;}\nint main(void){pthread_t t;void*r;pthread_create(&t,0,f,"thread");pthread_join(t,&r);puts(r);return 0;}\n' > a.c
		gcc -Wall -O1 -pthread -o a a.c; ./a; gcc -shared -fPIC -o liba.so a.c; ls liba.so`, stdout: "thread\nliba.so\n"},
	{name: "C++", programs: []string{"g++"}, script: `
		printf '#include <cstdio>\n#include <stdexcept>\nint main(){try{throw std::runtime_error("caught");}catch(std::exception&e){std::puts(e.what());}}\n' > a.cc
		g++ -o a a.cc; ./a`, stdout: "caught\n"},
	{name: "make", programs: []string{"make"}, script: `
		printf 'all: a b\n\t@cat a b\na b:\n\t@echo made $@ > $@\n' > Makefile; make -s -j2; make -q a b && echo done`,
		stdout: "made a\nmade b\ndone\n"},
	{name: "a Go library", programs: []string{"go"}, script: goSettings + `
		go build ./... && go vet ./lib && go list ./... && gofmt -l .`, stdout: "hello\nhello/lib\n"},
	{name: "a Go program", programs: []string{"go"}, long: true, script: goSettings + `
		mkdir cmd; printf 'package main\n\nimport (\n\t"fmt"\n\t"hello/lib"\n)\n\nfunc main() { fmt.Println(lib.Three) }\n' > cmd/main.go
		go build -o prog ./cmd && ./prog && go run ./cmd`, stdout: "3\n3\n"},
	{name: "perl", programs: []string{"perl"}, script: `
		perl -MFile::Temp=tempfile -MPOSIX=strftime -e '
			my ($fh, $n) = tempfile(); print $fh "x"; close $fh; print -s $n, "\n";
			my %h = (a => 1, b => 2); print join(",", map {"$_=$h{$_}"} sort keys %h), strftime(" %Y", gmtime(0)), "\n"'`, stdout: "1\na=1,b=2 1970\n"},
	{name: "jq", programs: []string{"jq"}, spare: true, script: `echo '{"a":[1,2]}' | jq -c '.a|add'`, stdout: "3\n"},
	{name: "sqlite's shell", programs: []string{"sqlite3"}, spare: true, script: `sqlite3 x.db 'create table t(a); insert into t values (7); select a from t'`, stdout: "7\n"},
	{name: "java", programs: []string{"java", "javac"}, spare: true, script: `
		printf 'class A { public static void main(String[] a) throws Exception { Thread t = new Thread(() -> System.out.println("thread")); t.start(); t.join(); } }\n' > A.java
		java A.java`, stdout: "thread\n"},
	{name: "rust", programs: []string{"rustc"}, spare: true, script: `
		printf 'fn main() { println!("rust"); }\n' > a.rs; rustc a.rs; ./a`, stdout: "rust\n"},
}

const gitUser = `export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.org GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.org
`

// goSettings make a module that imports nothing: the standard library would
// have to be built anew, for want of a cache.
const goSettings = `export GOCACHE="$PWD/.cache" GOPATH="$PWD/.go" GOFLAGS=-mod=mod GOPROXY=off GOTOOLCHAIN=local GOTELEMETRY=off
		printf 'module hello\n\ngo 1.21\n' > go.mod; mkdir lib
		printf 'package lib\n\nconst Three = 3\n' > lib/lib.go; printf 'package hello\n\nimport "hello/lib"\n\nvar N = lib.Three\n' > a.go
`
