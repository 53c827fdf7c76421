# SPDX-License-Identifier: MIT
"""kymo latency on real loads: what they do is known, and other sources of the kernel tell the same."""

import collections
import contextlib
import csv
import io
import json
import os
import signal
import subprocess
import sys
import time

import pytest

pytestmark = pytest.mark.usefixtures("needs_bpf")


@pytest.fixture(scope="module")
def needs_bpf():
    if os.geteuid() != 0:
        pytest.skip("needs root: loads BPF programs")
    if not os.path.exists("/sys/kernel/btf/vmlinux"):
        pytest.skip("needs a kernel with BTF")


class Measured:
    """A running `kymo latency --once`, which ends by SIGINT."""

    def __init__(self, kymo_bin, *args):
        self.process = subprocess.Popen([kymo_bin, "latency", "--once", "--every", "1h", "--json", *map(str, args)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        assert line.startswith("kymo: measuring"), line + self.process.stderr.read()

    def end(self):
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate()
        assert self.process.returncode == 0, err
        return json.loads(out)


@pytest.fixture
def measure(kymo_bin):
    with contextlib.ExitStack() as stack:
        def begin(*args):
            measured = Measured(kymo_bin, *args)
            stack.callback(lambda: (measured.process.poll() is None and measured.process.kill(),
                                    measured.process.wait()))
            return measured
        yield begin


class Load:
    """A Python program that has started, and does its work after go()."""

    def __init__(self, code, *args):
        text = "import sys\nprint('ready', flush=True)\nsys.stdin.readline()\n" + code
        self.process = subprocess.Popen([sys.executable, "-c", text, *map(str, args)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        assert self.process.stdout.readline() == "ready\n"

    def go(self):
        out, _ = self.process.communicate("\n")
        assert self.process.returncode == 0
        return out


def series(result, layer, name=None):
    return [one for one in result["series"] if one["layer"] == layer and name in (None, one["name"])]


def now(result, layer, name):
    found = series(result, layer, name)
    assert len(found) == 1, (layer, name, [(one["layer"], one["name"]) for one in result["series"]])
    return found[0]["windows"]["now"]


def check(histogram):
    """What must hold of every histogram."""
    buckets = histogram["buckets"]
    assert histogram["count"] == sum(n for _, _, n in buckets)
    assert all(begin < end for begin, end, _ in buckets)
    assert sum(begin * n for begin, _, n in buckets) <= histogram["sum_ns"]
    assert sum(end * n for _, end, n in buckets) >= histogram["sum_ns"]
    parts = [histogram[f"{part}_ns"] for part in ("p50", "p90", "p99", "p99.9", "max")]
    assert parts == sorted(parts)
    if buckets:
        assert buckets[-1][0] <= histogram["max_ns"] < buckets[-1][1]


FSYNCS = """
import os, time
fd, longest = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT), 0
for i in range(40):
    os.pwrite(fd, b'x' * 4096, i * 4096)
    begin = time.monotonic_ns()
    os.fsync(fd)
    longest = max(longest, time.monotonic_ns() - begin)
print(longest)
"""


def test_fsync_loop(measure, tmp_path):
    load = Load(FSYNCS, tmp_path / "file")
    measured = measure("--pid", load.pid, "--syscalls", "fsync,pwrite64")
    longest_ns = int(load.go())
    result = measured.end()
    fsync = now(result, "syscall", "fsync")
    assert fsync["count"] == 40
    assert fsync["max_ns"] <= longest_ns
    assert now(result, "syscall", "pwrite64")["count"] == 40
    assert not series(result, "syscall", "sync")
    for one in result["series"]:
        for window in one["windows"].values():
            check(window)
        # All of it is in the last period, and so in the longer ones.
        assert one["windows"]["now"]["buckets"] == one["windows"]["15m"]["buckets"]


SLEEPS = "import time\nfor _ in range(100): time.sleep(0.002)"


def test_sleep_loop(measure):
    load = Load(SLEEPS)
    measured = measure("--pid", load.pid, "--layers", "syscall,wakeup,offcpu")
    load.go()
    result = measured.end()
    sleeps, waits = now(result, "syscall", "sleep"), now(result, "offcpu", "sleep")
    assert sleeps["count"] == 100
    # A timer can expire before the thread is asleep, when the thread loses the CPU on the way (or the machine does).
    assert 70 <= waits["count"] <= 100
    assert all(begin * 9 / 8 >= 2000000 for begin, _, _ in sleeps["buckets"])
    # A wait is a part of its call.
    assert waits["sum_ns"] <= sleeps["sum_ns"] and waits["max_ns"] <= sleeps["max_ns"]
    # Of each the wake-up is a part.
    assert now(result, "wakeup", "all")["count"] >= waits["count"]
    assert {one["layer"] for one in result["series"]} == {"syscall", "wakeup", "offcpu"}


STAT_FIELDS = {"read": 0, "write": 4, "discard": 11, "flush": 15}


def stat_of(device):
    with open(f"/sys/block/{device}/stat", encoding="ascii") as file:
        numbers = [int(number) for number in file.read().split()]
    return {name: numbers[at] if at < len(numbers) else 0 for name, at in STAT_FIELDS.items()}


@pytest.fixture
def loop_device(tmp_path):
    image = tmp_path / "image"
    with open(image, "wb") as file:
        file.truncate(64 << 20)
    done = subprocess.run(["losetup", "--find", "--show", str(image)], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs a loop device: {done.stderr.strip()}")
    yield os.path.basename(done.stdout.strip())
    subprocess.run(["losetup", "--detach", done.stdout.strip()], check=True)


def test_dd_on_a_loop_device(measure, loop_device):
    """Requests, as many as the kernel's own statistics count."""
    device = f"/dev/{loop_device}"
    measured = measure("--by", "device")
    before = stat_of(loop_device)
    subprocess.run(["dd", f"of={device}", "if=/dev/zero", "bs=64k", "count=100", "oflag=direct", "conv=fsync"],
                   check=True, capture_output=True)
    subprocess.run(["dd", f"if={device}", "of=/dev/null", "bs=64k", "count=50", "iflag=direct"],
                   check=True, capture_output=True)
    after = stat_of(loop_device)
    result = measured.end()
    assert {one["layer"] for one in result["series"]} <= {"block-queue", "block-device", "flush"}
    done = {name: after[name] - before[name] for name in before}
    assert done["read"] >= 50 and done["write"] >= 100
    for name in ("read", "write"):
        histogram = now(result, "block-device", f"{loop_device} {name}")
        # The kernel counts a flush as a write without data, too.
        assert histogram["count"] == done[name] - (done["flush"] if name == "write" else 0)
        check(histogram)
    assert done["flush"]
    flushes = series(result, "flush", loop_device)
    assert sum(one["windows"]["now"]["count"] for one in flushes) == done["flush"]
    assert result["lost"]["requests"] == 0


HOSTILE = "import ctypes, os\nctypes.CDLL(None).prctl(15, b'\\x1b[31m,=\"<b>')\nfor _ in range(50): os.getppid()"


def test_by_process_with_a_hostile_name(measure, kymo_bin):
    load = Load(HOSTILE)
    measured = measure("--by", "process", "--layers", "syscall", "--syscalls", "getppid")
    load.go()
    result = measured.end()
    own = [one for one in series(result, "syscall", "getppid") if one["owner_id"] == load.pid]
    assert [one["windows"]["now"]["count"] for one in own] == [50]
    assert own[0]["owner"] == f'\x1b[31m,="<b> {load.pid}'
    assert {one["owner_id"] for one in series(result, "syscall")} > {load.pid}
    for form in ((), ("--csv",), ("--json",)):
        args = [kymo_bin, "latency", "--by", "process", "--layers", "syscall", "--limit", "0", "--syscalls", "getppid", *form]
        load = Load(HOSTILE)
        process = subprocess.Popen([*args, "--once", "--every", "1h"], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stderr.readline()
        load.go()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate()
        assert str(load.pid).encode() in out
        assert form == ("--csv",) or b"\x1b" not in out  # CSV has the text itself
        assert (b"\\x1b[31m" in out) == (form == ()), out


def test_by_user_and_cgroup(measure):
    load = Load("import os\nos.setuid(12345)\nfor _ in range(30): os.getppid()")
    measured = measure("--by", "user", "--layers", "syscall", "--syscalls", "getppid", "--pid", load.pid)
    load.go()
    users = {one["owner"]: one["windows"]["now"]["count"] for one in series(measured.end(), "syscall", "getppid")}
    assert users == {"12345": 30}
    load = Load("import os\nfor _ in range(30): os.getppid()")
    measured = measure("--by", "cgroup", "--layers", "syscall", "--syscalls", "getppid", "--pid", load.pid)
    with open(f"/proc/{load.pid}/cgroup", encoding="utf-8") as file:
        paths = [line.rstrip("\n").split(":", 2)[2] for line in file if line.startswith("0::")]
    load.go()
    groups = series(measured.end(), "syscall", "getppid")
    assert [one["windows"]["now"]["count"] for one in groups] == [30]
    if paths and not groups[0]["owner"].isdigit():
        assert groups[0]["owner"] == paths[0]


DATAGRAMS = """
import socket
one, other = socket.socket(type=socket.SOCK_DGRAM), socket.socket(type=socket.SOCK_DGRAM)
one.bind(("127.0.0.1", 0))
for _ in range(50):
    other.sendto(b"x" * 100, one.getsockname())
    one.recv(200)
"""

STREAM = """
import socket
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
other, _ = server.accept()
client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
for _ in range(50):
    client.send(b"x" * 100)
    other.recv(200)
"""


# Packets that a full socket drops leave their memory to messages between programs.
DROPPED = """
import socket
full, other = socket.socket(type=socket.SOCK_DGRAM), socket.socket(type=socket.SOCK_DGRAM)
full.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 100000)
full.bind(("127.0.0.1", 0))
for _ in range(2000):
    other.sendto(b"x" * 20000, full.getsockname())
near, far = socket.socketpair(type=socket.SOCK_DGRAM)
for _ in range(2000):
    near.send(b"x" * 500)
    far.recv(1000)
full.setblocking(False)
received = 0
while True:
    try:
        full.recv(20000)
        received += 1
    except BlockingIOError:
        break
print(received, flush=True)
"""


def test_messages_of_local_sockets_are_no_packets(measure, loopback):
    load = Load(DROPPED)
    measured = measure("--pid", load.pid, "--layers", "net-receive")
    expected = int(load.go())
    received = now(measured.end(), "net-receive", "lo")
    assert 0 < received["count"] == expected < 1000


def handled():
    """{number of a device's interrupt: how often it came} as the kernel counts."""
    found = {}
    with open("/proc/interrupts", encoding="ascii") as file:
        n_cpus = len(file.readline().split())
        for line in file:
            words = line.split()
            if words[0][:-1].isdigit() and "," not in line:  # of shared lines, each handler is an event
                found[words[0][:-1]] = sum(map(int, words[1:n_cpus + 1]))
    return found


def test_interrupts(measure, tmp_path):
    """Of devices, as many as the kernel counts while it is measured."""
    outer = handled()
    measured = measure("--layers", "irq")
    inner = handled()
    Load(FSYNCS, tmp_path / "file").go()
    least = {nr: n - inner.get(nr, n) for nr, n in handled().items()}
    result = measured.end()
    most = {nr: n - outer.get(nr, 0) for nr, n in handled().items()}
    if not any(least.values()):
        pytest.skip("no device interrupts this machine here")
    counts = collections.Counter()
    for one in series(result, "irq"):
        check(one["windows"]["now"])
        counts[one["name"].split()[0]] += one["windows"]["now"]["count"]
    for nr, n in least.items():
        # One whose handler runs when the measuring begins or ends.
        assert n - 2 <= counts[nr] <= most[nr], (nr, n, counts, most[nr])


def test_packets(measure, loopback):
    load = Load(DATAGRAMS)
    measured = measure("--pid", load.pid, "--layers", "net-send")
    load.go()
    sent = now(measured.end(), "net-send", "lo")
    assert sent["count"] == 50
    check(sent)
    load = Load(STREAM)
    measured = measure("--pid", load.pid, "--layers", "net-receive")
    load.go()
    received = now(measured.end(), "net-receive", "lo")
    assert received["count"] == 50
    check(received)


SERVER = """
import os, socket, threading, time
server = socket.create_server(("127.0.0.1", 0))
def serve():
    for i in range(6):
        connection, _ = server.accept()
        time.sleep(0.02)
        if i < 5:
            connection.send(b"a")
            connection.send(b"b")
        connection.close()
thread = threading.Thread(target=serve)
thread.start()
for _ in range(6):
    with socket.create_connection(server.getsockname()) as client:
        while client.recv(10): pass
thread.join()
"""


def test_time_to_first_byte(measure, loopback):
    """Of each connection once; one that is closed without an answer has none."""
    load = Load(SERVER)
    measured = measure("--pid", load.pid, "--layers", "first-byte")
    load.go()
    histogram = now(measured.end(), "first-byte", "all")
    assert histogram["count"] == 5
    assert all(end > 20000000 for _, end, _ in histogram["buckets"])
    check(histogram)


def test_more_keys_than_room(measure):
    measured = measure("--by", "process", "--keys", "2", "--layers", "syscall,wakeup,offcpu")
    Load("import os\nfor _ in range(300): os.getppid()").go()
    result = measured.end()
    assert len(result["series"]) == 2
    assert result["lost"]["without_cell"] > 300


def test_periods(kymo_bin):
    """A line for each period, until the reader goes; windows grow, the last period does not."""
    with subprocess.Popen([kymo_bin, "latency", "--every", "200ms", "--json", "--layers", "syscall"], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True) as process:
        seen = [json.loads(process.stdout.readline()) for _ in range(4)]
        process.stdout.close()
        assert process.wait() == 0
    lengths = [one["window_ns"]["15m"] for one in seen]
    assert lengths == sorted(lengths) and lengths[3] > lengths[0]
    total = 0
    for one in seen:
        own = [each["windows"] for each in series(one, "syscall", "read")]
        total += own[0]["now"]["count"] if own else 0
        assert not own or own[0]["15m"]["count"] == total
    assert [one["time_ns"] for one in seen] == sorted(one["time_ns"] for one in seen)


def test_text_and_csv(kymo):
    done = kymo("latency", "--once", "--every", "300ms", "--layers", "syscall,wakeup,softirq", code=0)
    assert "System calls" in done.out and "Wake-ups" in done.out and "p99.9" in done.out
    too_wide = [line for line in done.out.splitlines() if line.startswith("  ") and len(line) > 100]
    assert not too_wide and "--wide shows: p99 15m" in done.out
    done = kymo("latency", "--once", "--every", "300ms", "--layers", "wakeup", "--by", "process", code=0)
    assert "--wide shows: p99 15m, the distribution" in done.out
    done = kymo("latency", "--once", "--every", "300ms", "--layers", "syscall", "--wide", code=0)
    assert "p99 15m" in done.out and "--wide shows: " not in done.out
    done = kymo("latency", "--once", "--every", "300ms", "--csv", code=0)
    rows = list(csv.DictReader(io.StringIO(done.out, newline="")))
    assert {"syscall", "wakeup", "offcpu"} <= {row["layer"] for row in rows}
    for row in rows:
        assert int(row["p50_ns"]) <= int(row["p99_ns"]) <= int(row["max_ns"])
        assert row["window"] in ("now", "1m", "5m", "15m")


def test_named_calls_come_first(kymo_bin, tmp_path):
    """Others' calls take far longer, but do not crowd out the ones that were asked for."""
    load = Load(FSYNCS, tmp_path / "file")
    process = subprocess.Popen([kymo_bin, "latency", "--once", "--every", "1h", "--layers", "syscall", "--syscalls", "fsync,getppid",
                                "--by", "process", "--limit", "1"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stderr.readline()
    load.go()
    process.send_signal(signal.SIGINT)
    lines = process.communicate()[0].splitlines()
    first = lines[next(i for i, line in enumerate(lines) if "System calls" in line) + 1].split()
    assert first[0] == "fsync" and int(first[first.index(str(load.pid)) + 1].replace(",", "")) == 40


def test_wrong_options(kymo):
    for args, message in {
            ("--layers", "disk"): "'disk' is not a layer",
            ("--by", "colour"): "--by needs process, user, cgroup or device, not 'colour'",
            ("--by", "device", "--layers", "wakeup"): "--by device needs one of the layers block-queue, block-device and flush",
            ("--syscalls", "nosuchcall"): "there is no system call 'nosuchcall'",
            ("--window", "2m"): "--window needs now, 1m, 5m or 15m",
            ("--json", "--csv"): "exclude each other",
            ("--members", "1ms", "--csv"): "--csv has only histograms",
            ("--every", "1ms"): "--every needs 10ms or more"}.items():
        done = kymo("latency", *args, code=2)
        assert message in done.err and not done.out


def test_in_a_pid_namespace(kymo_bin):
    """There, --pid is an ID of that namespace."""
    script = (f"import os, signal, subprocess, sys\n"
              "load = subprocess.Popen([sys.executable, '-c', 'import os, sys\\nsys.stdin.readline()\\nfor _ in range(40): os.getppid()'],"
              " stdin=subprocess.PIPE)\n"
              f"kymo = subprocess.Popen(['{kymo_bin}', 'latency', '--once', '--every', '1h', '--json', '--layers', 'syscall',"
              " '--syscalls', 'getppid', '--pid', str(load.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)\n"
              "said = kymo.stderr.readline()\n"
              "load.communicate(b'\\n')\n"
              "kymo.send_signal(signal.SIGINT)\n"
              "print(kymo.communicate()[0] or said)")
    done = subprocess.run(["unshare", "--pid", "--fork", "--mount-proc", sys.executable, "-c", script], capture_output=True,
                          text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs unshare: {done.stderr}")
    assert now(json.loads(done.stdout), "syscall", "getppid")["count"] == 40


def test_without_root(kymo_bin, tmp_path):
    def drop():
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

    done = subprocess.run([kymo_bin, "latency", "--once"], capture_output=True, text=True, preexec_fn=drop, check=False,
                          cwd="/")
    if done.returncode == 126:
        pytest.skip("another user cannot run the program here")
    assert done.returncode == 1
    assert "the kernel does not allow BPF; run as root" in done.stderr
    assert not done.stdout


# ---- a peer ------------------------------------------------------------------------------

COUNT = """
tracepoint:raw_syscalls:sys_enter /pid == {pid}/ {{ @begin[tid] = nsecs; }}
tracepoint:raw_syscalls:sys_exit /pid == {pid} && @begin[tid]/ {{
    @calls = hist(nsecs - @begin[tid]); delete(@begin[tid]);
}}
BEGIN {{ printf("begun\\n"); }}
"""


def until_attached(bpftrace, n):
    """Until so many tracepoints are attached: BEGIN comes before. Its output has a perf event for each CPU."""
    def attached():
        links = [os.readlink(entry.path) for entry in os.scandir(f"/proc/{bpftrace.pid}/fd") if os.path.islink(entry.path)]
        return sum("[perf_event]" in link for link in links) >= os.cpu_count() + n

    deadline = time.monotonic() + 30
    while bpftrace.poll() is None and not attached() and time.monotonic() < deadline:
        time.sleep(0.05)


def output_of(bpftrace):
    """It does not hear each SIGINT."""
    for _ in range(6):
        bpftrace.send_signal(signal.SIGINT)
        try:
            return bpftrace.communicate(timeout=10)[0]
        except subprocess.TimeoutExpired:
            pass
    return pytest.skip("bpftrace does not end")


def test_same_counts_as_bpftrace(measure, peer):
    """Of one load, at the same time: as many calls, and nearly the same distribution."""
    peer("bpftrace", "--version")
    load = Load("import os, time\nfor i in range(3000): os.getppid()\nfor _ in range(50): time.sleep(0.001)\nos._exit(0)")
    theirs = subprocess.Popen(["bpftrace", "-f", "json", "-e", COUNT.format(pid=load.pid)], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True)
    try:
        while "begun" not in (line := theirs.stdout.readline()):
            assert line or theirs.poll() is None, theirs.stderr.read()
        until_attached(theirs, 2)
        measured = measure("--pid", load.pid, "--layers", "syscall")
        load.go()
        result = measured.end()
        out = output_of(theirs)
    finally:
        theirs.poll() is None and theirs.kill()
        theirs.wait()
    lines = [json.loads(line) for line in out.splitlines() if line.startswith("{")]
    hist = next(one["data"]["@calls"] for one in lines if one["type"] == "hist")
    ours = {}
    for one in series(result, "syscall"):
        for begin, _, n in one["windows"]["now"]["buckets"]:
            log2 = max(begin.bit_length() - 1, 0)
            ours[log2] = ours.get(log2, 0) + n
    other = {max(int(one.get("min", 0)), 1).bit_length() - 1: one["count"] for one in hist}
    # bpftrace sees the end of the read() in which the load waits, if it saw its beginning.
    assert abs(sum(ours.values()) - sum(other.values())) <= 1
    # Who measures outside sees the other's cost, too: a call can be in the next bucket.
    for log2 in set(ours) | set(other):
        near = sum(ours.get(at, 0) for at in (log2 - 1, log2, log2 + 1))
        assert other.get(log2, 0) <= near + 10, (ours, other)
