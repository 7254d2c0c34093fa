package sandbox

import "slices"

// What the level landlock lacks: the reasons why a job may need the level full.
const (
	lacksSockets = "sockets are refused, for want of a network of its own"
	lacksTmp     = "/tmp is everybody's"
	lacksMemory  = "/dev/shm is everybody's, and POSIX semaphores lie there"
	lacksTty     = "the terminals of /dev/pts are everybody's"
	lacksProc    = "/proc tells of everybody's processes"
	lacksGit     = "git gives up when there is an /etc/gitconfig that it may not read"
	lacksName    = "there is no account of its own, and no machine's name"
)

// jobs are all the jobs, by what they are about.
func jobs() []job {
	return slices.Concat(shellJobs, fileJobs, processJobs, networkJobs, languageJobs)
}

var shellJobs = []job{
	{name: "here-documents", script: `
		name=world
		cat <<END
hello $name
END
		cat <<'END'
hello $name
END`, stdout: "hello world\nhello $name\n"},
	{name: "bash arrays", programs: []string{"bash"}, script: `bash -ec '
		declare -A ages=([ann]=31 [bob]=27); list=(c a b)
		echo "${#ages[@]} ${ages[ann]} ${list[@]:1} ${list[-1]}"
		cat <<< "a here-string"'`, stdout: "2 31 a b b\na here-string\n"},
	{name: "process substitution", programs: []string{"bash"}, script: `bash -ec '
		diff <(printf "a\nb\n") <(printf "a\nc\n") || :
		tee >(tr a-z A-Z > upper) <<< word > /dev/null; wait $!; cat upper'`,
		stdout: "2c2\n< b\n---\n> c\nWORD\n"},
	{name: "standard streams by name", script: `
		echo in | cat /dev/stdin
		echo out > /dev/stdout
		echo both | tee /dev/stderr
		echo third 3>&1 > /dev/fd/3`, stdout: "in\nout\nboth\nthird\n"},
	{name: "devices", script: `
		head -c 5 /dev/zero | od -An -tx1
		head -c 9 /dev/urandom | wc -c
		head -c 3 /dev/random | wc -c
		echo gone > /dev/null
		(echo x > /dev/full) 2> /dev/null || echo full`, stdout: " 00 00 00 00 00\n9\n3\nfull\n"},
	{name: "text tools", programs: []string{"awk"}, script: `
		printf 'b 2\na 1\nc 3\na 4\n' > in
		awk '{ sum[$1] += $2 } END { for (k in sum) print k, sum[k] }' in | sort | sed 's/^/= /'
		cut -d' ' -f1 in | sort | uniq -c | sort -rn | head -n 1 | tr -s ' '
		grep -c '^a' in
		paste -sd, in`, stdout: "= a 5\n= b 2\n= c 3\n 2 a\n2\nb 2,a 1,c 3,a 4\n"},
	{name: "a sort that does not fit into its memory", full: lacksTmp, script: `
		seq 60000 -1 1 | sort -n -S 100k --parallel=2 | head -n 2
		TMPDIR=/tmp sh -c 'seq 60000 -1 1 | sort -n -S 100k | tail -n 1'`, stdout: "1\n2\n60000\n"},
	{name: "find and xargs in parallel", script: `
		mkdir d; for i in 1 2 3 4 5 6 7 8; do echo $i > d/$i.txt; done
		find d -name '*.txt' -print0 | xargs -0 -P 4 -n 1 cat | sort | tr -d '\n'
		find d -type f -size -2 -name '[34].txt' -exec cat {} + | sort -r`, stdout: "123456784\n3\n"},
	{name: "diff and patch", script: `
		printf 'a\nb\n' > old; printf 'a\nc\n' > new
		diff -u --label o --label n old new > change || :
		cat change; cmp old old && sha256sum old | cut -c1-8`,
		stdout: "--- o\n+++ n\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n911169dd\n"},
	{name: "dates", script: `
		date -u -d @0 +%F
		TZ=CET-1CEST date -d @0 +%H%Z
		[ -n "$(date +%Z)" ] && echo zone`, stdout: "1970-01-01\n01CET\nzone\n"},
	{name: "names in UTF-8", script: `
		locale charmap
		echo x > 'größe 日本.txt'; ls
		printf 'ä' | wc -m`, stdout: "UTF-8\ngröße 日本.txt\n1\n"},
	{name: "who and where", full: lacksName, script: `
		id -un; id -gn; hostname; whoami
		getent passwd "$(id -u)" | cut -d: -f1
		[ "$(cd ~ && pwd)" = "$PWD" ] && echo home`, stdout: "agent\nagent\nagentrun\nagent\nagent\nhome\n"},
	{name: "local names", full: lacksSockets, script: `
		getent hosts localhost | grep -c localhost
		getent services https | tr -s ' '
		getent hosts no.such.name.example || echo unknown`, stdout: "1\nhttps 443/tcp\nunknown\n"},
}

var fileJobs = []job{
	{name: "a thousand small files", script: `
		mkdir many; cd many
		seq 1000 | sed 's/.*/echo x > &/' | sh
		ls | wc -l; cat * | wc -c; rm -r ../many; ls .. | wc -l`, stdout: "1000\n2000\n0\n"},
	{name: "a sparse file", script: `
		truncate -s 2G sparse; echo end >> sparse
		stat -c %s sparse; [ "$(du -k sparse | cut -f1)" -lt 1024 ] && echo small; tail -c 4 sparse`,
		stdout: "2147483652\nsmall\nend\n"},
	{name: "links", script: `
		echo x > a; ln a hard; ln -s a soft; ln -sf nowhere broken
		stat -c %h a; readlink soft; cat hard soft; [ -L broken ] && [ ! -e broken ] && echo broken
		realpath --relative-to=. soft`, stdout: "2\na\nx\nx\nbroken\na\n"},
	{name: "a move between folders", programs: []string{"python3"}, script: `
		mkdir -p one/deep two; echo x > one/deep/f
		python3 -c 'import os; os.rename("one/deep/f", "two/f"); os.rename("one/deep", "two/deep"); os.link("two/f", "one/g")'
		mv two/f one; ls one two; cat one/f`, stdout: "one:\nf\ng\n\ntwo:\ndeep\nx\n"},
	{name: "a program made on the spot", programs: []string{"python3"}, script: `
		printf '#!/bin/sh\necho "$0 $1"\n' > tool; printf '#!/usr/bin/env python3\nprint("python")\n' > tool.py
		chmod +x tool tool.py; ./tool arg; ./tool.py; cp /bin/true own; ./own
		umask 027; : > m; stat -c %a m`, stdout: "./tool arg\npython\n640\n"},
	{name: "programs in /tmp", full: lacksTmp, script: `
		d=$(mktemp -d /tmp/x.XXXXXX); printf '#!/bin/sh\necho ran\n' > "$d/tool"; chmod +x "$d/tool"; "$d/tool"
		cp "$d/tool" . && mv tool "$d/again" && rm -r "$d"; ls /tmp /var/tmp | grep -c '^x\.' || :`, stdout: "ran\n0\n"},
	{name: "files for a while", programs: []string{"python3"}, script: `python3 - <<'END'
import os, tempfile
with tempfile.NamedTemporaryFile("w+") as f, tempfile.TemporaryDirectory() as d, tempfile.TemporaryFile() as g:
    f.write("x"); f.flush(); g.write(b"y")
    print(os.path.getsize(f.name), os.path.isdir(d))
END`, stdout: "1 True\n"},
	{name: "archives", programs: []string{"tar", "gzip", "xz"}, script: `
		mkdir -p in/sub; echo x > in/a; echo y > in/sub/b; ln -s a in/l; chmod 755 in/a
		for z in gzip xz; do tar -c --$z -f t.$z in; mkdir out.$z; tar -xpf t.$z -C out.$z; diff -r in out.$z/in && stat -c %a out.$z/in/a; done
		gzip -k in/a && zcat in/a.gz`, stdout: "755\n755\nx\n"},
	{name: "zip archives", programs: []string{"python3"}, script: `
		mkdir in; echo x > in/a; python3 -m zipfile -c t.zip in; python3 -m zipfile -e t.zip out; cat out/in/a`, stdout: "x\n"},
	{name: "zip and unzip", programs: []string{"zip", "unzip"}, spare: true, script: `
		mkdir in; echo x > in/a; zip -qr t.zip in; unzip -q t.zip -d out; cat out/in/a`, stdout: "x\n"},
	{name: "copies", script: `
		mkdir d; echo x > d/f; touch -d @1000000000 d/f; chmod 640 d/f
		cp -a d e; stat -c '%Y %a' e/f; dd if=/dev/zero of=z bs=64k count=16 status=none; fallocate -l 1M room
		install -m 755 d/f tool; stat -c %a tool; sync z; stat -c %s z room`, stdout: "1000000000 640\n755\n1048576\n1048576\n"},
	{name: "locks", programs: []string{"python3", "flock"}, script: `
		flock lock sh -c 'flock -n lock true || echo held'
		python3 - <<'END'
import fcntl, os
f = open("other", "w"); fcntl.lockf(f, fcntl.LOCK_EX)
if os.fork() == 0:
    try: fcntl.lockf(open("other", "w"), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError: print("held too", flush=True)
    os._exit(0)
os.wait()
END`, stdout: "held\nheld too\n"},
	{name: "memory that is a file", programs: []string{"python3"}, script: `python3 - <<'END'
import mmap, os
open("f", "wb").write(bytes(8192))
with open("f", "r+b") as f, mmap.mmap(f.fileno(), 0) as m: m[4096:4099] = b"abc"; m.flush()
print(open("f", "rb").read()[4096:4099])
fd = os.memfd_create("x"); os.write(fd, b"mem"); print(os.pread(fd, 3, 0))
END`, stdout: "b'abc'\nb'mem'\n"},
	{name: "watched files", programs: []string{"python3"}, script: `python3 - <<'END'
import ctypes, os, struct
libc = ctypes.CDLL(None, use_errno=True)
fd = libc.inotify_init1(0); assert libc.inotify_add_watch(fd, b".", 0x100) > 0
open("new", "w").close()
event = os.read(fd, 4096); print(event[16:].rstrip(b"\0"))
END`, stdout: "b'new'\n"},
	{name: "a named pipe", script: `
		mkfifo p; echo through > p & cat p; wait`, stdout: "through\n"},
}
