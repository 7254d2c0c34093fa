package main

// huntFile is the program below in the workspace of its run.
const huntFile = "hunt.py"

// huntProgram is an agent's program that looks for the secrets of its server. It
// knows where everything is and how everything works, only no secret. What it
// finds it leaves in its workspace as it is, by where it was:
//
//	loot/environment  its own variables
//	loot/processes    what /proc tells of processes, their files and folders
//	loot/memory       the memory of other processes
//	loot/descriptors  what it inherited
//	loot/files        files that were made since the test began
//	cores/            where a process of its own crashed
//
// It prints the first two and the descriptors on both streams, up to a length
// that only the hunt without a sandbox reaches. Then it waits until the test has
// looked at it from outside.
const huntProgram = `
import base64, fcntl, os, resource, signal, stat, struct, sys, termios, time

MOST = 1 << 20  # of a file, and of a part of memory

def told(name): return os.environ[name].split(":")

def keep(place, what, content):
    with open("loot/" + place, "ab") as f:
        f.write(b"== " + os.fsencode(what) + b"\n" + content + b"\n")

def read(path):
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    try:
        content = b""
        while len(content) < MOST:
            part = os.read(fd, MOST)
            if not part: break
            content += part
        return content
    finally:
        os.close(fd)

tried, refused = {}, {}

def attempt(place, what, look):
    tried[place] = tried.get(place, 0) + 1
    try:
        content = look()
        keep(place, what, content if isinstance(content, bytes) else os.fsencode(content))
    except (OSError, ValueError):
        refused[place] = refused.get(place, 0) + 1

def environment():
    keep("environment", "variables", b"\0".join(k + b"=" + v for k, v in os.environb.items()))

def numbers():
    own = os.getpid()
    if told("HUNT_CONTROL")[0]:
        return [os.getppid()]
    found = {1, own, os.getppid(), *map(int, told("HUNT_SERVER"))}
    found.update(range(max(1, own - 50), own + 50))
    try:
        found.update(int(n) for n in os.listdir("/proc") if n.isdigit())
    except OSError:
        pass
    return sorted(found)

def process(pid):
    base = "/proc/%d/" % pid
    names = ["environ", "cmdline", "comm", "status", "stat", "auxv", "limits", "io", "mountinfo", "maps", "syscall", "stack"]
    if pid == 1:
        try:
            names += [n for n in os.listdir(base) if n not in names and n not in ("mem", "pagemap", "smaps", "numa_maps")]
        except OSError:
            pass
    for name in names:
        attempt("processes", base + name, lambda: read(base + name))
    for name in "cwd", "root", "exe":
        attempt("processes", base + name, lambda: os.readlink(base + name))
    for name in "cwd/", "root/":
        attempt("processes", base + name, lambda: "\n".join(os.listdir(base + name)))
    fds = range(64)
    try:
        fds = map(int, os.listdir(base + "fd"))
    except OSError:
        pass
    for fd in fds:
        path = base + "fd/%d" % fd
        attempt("processes", path, lambda: os.readlink(path))
        try:
            if stat.S_ISREG(os.stat(path).st_mode):
                attempt("processes", path, lambda: read(path))
        except OSError:
            pass

def memory(pid):
    base = "/proc/%d/" % pid
    content = b""
    with open(base + "mem", "rb", 0) as mem, open(base + "maps") as maps:
        for line in maps:
            where, rights = line.split()[:2]
            begin, end = (int(n, 16) for n in where.split("-"))
            if rights.startswith("rw"):
                mem.seek(begin)
                content += mem.read(min(end - begin, MOST))
    return content

def processes():
    for pid in numbers():
        process(pid)
        if pid != os.getpid():
            attempt("memory", "%d" % pid, lambda: memory(pid))

def descriptors():
    os.open(told("HUNT_MARK")[0], os.O_RDONLY)  # What has to be found.
    for fd in range(1024):
        try:
            kind = os.fstat(fd).st_mode
        except OSError:
            continue
        keep("descriptors", "%d" % fd, b"mode %o" % kind)
        attempt("descriptors", "%d" % fd, lambda: os.readlink("/proc/self/fd/%d" % fd))
        if fd > 2:
            attempt("descriptors", "%d" % fd, lambda: os.pread(fd, MOST, 0))
            attempt("descriptors", "%d" % fd, lambda: os.listdir(fd).__repr__())

def files():
    begun = float(told("HUNT_SINCE")[0])
    folders, seen = told("HUNT_FOLDERS"), {os.path.realpath("loot"), "/proc", "/sys"}
    for path in told("HUNT_FILES"):
        attempt("files", path, lambda: read(path))
    for folder in folders:
        folder = os.path.realpath(folder)
        if folder in seen: continue
        if len(seen) > 20000: break
        seen.add(folder)
        try:
            entries = list(os.scandir(folder))
        except OSError:
            continue
        for entry in entries:
            path = os.path.join(folder, entry.name)
            try:
                info = entry.stat(follow_symlinks=False)
            except OSError:
                continue
            if stat.S_ISDIR(info.st_mode):
                folders.append(path)
            elif stat.S_ISREG(info.st_mode) and info.st_ctime >= begun:
                attempt("files", path, lambda: read(path))

def crash():
    os.mkdir("cores")
    for limit in resource.RLIM_INFINITY, resource.getrlimit(resource.RLIMIT_CORE)[1]:
        try:
            resource.setrlimit(resource.RLIMIT_CORE, (limit, limit))
            break
        except (OSError, ValueError):
            pass
    child = os.fork()
    if child == 0:
        os.chdir("cores")
        signal.signal(signal.SIGSEGV, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGSEGV)
    return os.WTERMSIG(os.waitpid(child, 0)[1])

def write(fd, text):
    while text:
        text = text[os.write(fd, text):]

def taken():
    # Only then the next write cannot arrive together with the last one.
    while struct.unpack("i", fcntl.ioctl(1, termios.FIONREAD, bytes(4)))[0]:
        time.sleep(0.001)

def tell():
    given = os.environb[b"GIVEN"]
    half = len(given) // 2
    write(1, b"input: " + sys.stdin.buffer.read() + b"\n")
    for fd in 1, 2:
        write(fd, b"plain: " + given + b"\nbase64: " + base64.b64encode(given) + b"\nhex: " + given.hex().encode() + b"\n")
    write(1, b"halves: " + given[:half])
    taken()
    write(1, given[half:] + b"\n")
    for place in "environment", "descriptors", "processes":
        for fd in 1, 2:
            write(fd, read("loot/" + place)[:MOST // 4])

os.mkdir("loot")
for step in environment, descriptors, files, processes, tell: step()
ended = crash()
os.mkfifo("go")
with open("told", "w") as f: f.write("tried %r, refused %r, crashed by %d" % (tried, refused, ended))
open("go").readline()
`
