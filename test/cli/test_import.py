# SPDX-License-Identifier: MIT
"""Files of other tracers, read as traces: perf, trace-cmd and tcpdump judge real ones; made ones have what real ones lack here."""

import bz2
import collections
import gzip
import json
import lzma
import os
import pathlib
import re
import shutil
import socket
import struct
import subprocess
import time

import pytest

import foreign_files

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
WORK = ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do /bin/true; ls -lR /etc >/dev/null; done"]


def events_of(kymo, path, *options):
    return [json.loads(line) for line in kymo("convert", "--to", "json", *options, path).out.splitlines()]


def brief(event):
    return event["timestamp_ns"], event["packet"]["cpu_id"], event["event"]


# ---- perf.data ----------------------------------------------------------------------------


def perf_record(path, *options):
    perf = shutil.which("perf")
    if not perf:
        pytest.skip("perf is not installed: tools/install-deps test")
    for _ in range(5):
        done = subprocess.run([perf, "record", "-q", "-o", path, *options, "--", *WORK], capture_output=True, check=False)
        if done.returncode >= 0:
            break
    if done.returncode or not os.path.getsize(path):
        pytest.skip(f"perf cannot record here: {done.stderr[-300:]}")
    return path


LINE = re.compile(r"^\s*(?P<comm>.+?)\s+(?P<tid>-?\d+)\s+\[(?P<cpu>\d+)\]\s+(?P<s>\d+)\.(?P<ns>\d{9}):\s+(?P<event>\S+?):\s")
OUR_NAME = {"sys_enter_openat": "syscall_entry_openat", "sys_exit_openat": "syscall_exit_openat"}


def in_perf_words(peer, path):
    """{(ns, cpu, event): how many} of tracepoints and samples. None: perf has died: Linux marks mappings as ones with build IDs for all recorders as soon as one wants build IDs."""
    done = peer("perf", "script", "--ns", "-F", "comm,tid,cpu,time,event", "-i", path)
    if done.code < 0:
        return None
    text = done.out
    found = collections.Counter()
    for match in filter(None, map(LINE.match, text.splitlines())):
        name = match["event"].split(":")[-1] if ":" in match["event"] else "sample"
        found[int(match["s"]) * 10**9 + int(match["ns"]), int(match["cpu"]), OUR_NAME.get(name, name)] += 1
    return found


@needs_root
@pytest.mark.parametrize("options", [
    ("-e", "sched:sched_switch,sched:sched_waking,syscalls:sys_enter_openat,syscalls:sys_exit_openat", "-m", "2048"),
    ("-F", "997", "-e", "cpu-clock", "-g", "-z", "-a"),
    ("-F", "997", "-e", "cpu-clock", "-e", "sched:sched_process_exec", "-g", "-a"),
    ("--threads", "-F", "997", "-e", "cpu-clock", "-e", "sched:sched_switch", "-a"),
    ("--threads", "-z", "-e", "sched:sched_switch,sched:sched_waking", "-a"),
], ids=["tracepoints", "compressed", "stacks", "threads", "threads-compressed"])
def test_perf_has_the_same_events(kymo, peer, tmp_path, options):
    for n in range(5):
        path = perf_record(tmp_path / f"perf{n}.data", *options)
        theirs = in_perf_words(peer, path)
        if theirs is not None:
            break
    ours = collections.Counter(brief(event) for event in events_of(kymo, path)
                               if not event["event"].startswith(("perf_", "lttng_statedump_")))
    assert theirs and ours == theirs
    if "-g" in options:
        stacks = [event["context"] for event in events_of(kymo, path) if event["event"] == "sample"]
        assert any(stack["callstack_user"] for stack in stacks) and any(stack["callstack_kernel"] for stack in stacks)


@needs_root
def test_perf_in_a_pipe(kymo, peer, tmp_path):
    """perf's raw system calls get names, so that reports know them; the same ones as perf trace counts."""
    path = tmp_path / "piped"
    with open(path, "wb") as file:
        done = subprocess.run([shutil.which("perf") or "perf", "record", "-q", "-e", "raw_syscalls:*", "-m", "2048", "-o", "-",
                               "--", *WORK], stdout=file, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        pytest.skip(f"perf cannot record here: {done.stderr[-300:]}")
    names = collections.Counter(event["event"] for event in events_of(kymo, path))
    assert names["syscall_entry_openat"] == names["syscall_exit_openat"] > 100
    assert not names["raw_syscalls_sys_enter"]
    for _ in range(5):  # on a busy machine perf script has ended without a line
        text = peer("perf", "script", "-F", "event,trace", "-i", path).out
        if text:
            break
    assert names["syscall_entry_openat"] == len(re.findall(r"sys_enter: NR 257 ", text))
    table = json.loads(kymo("report", "syscalls", "--json", path).out)
    assert "openat" in json.dumps(table)


@pytest.mark.parametrize("big", [False, True], ids=["little-endian", "big-endian"])
def test_perf_of_either_byte_order(kymo, peer, tmp_path, big):
    path = foreign_files.perf_example(tmp_path / "made.data", big)
    events = events_of(kymo, path)
    start = 1_000_000_000_000
    kernel = [event for event in events if not event["event"].startswith(("perf_", "lttng_", "sample"))]
    assert [(event["timestamp_ns"] - start, event["packet"]["cpu_id"], event["event"]) for event in kernel] == [
        (1000, 1, "sched_switch"), (2000, 1, "syscall_entry_openat"), (3000, 0, "sched_switch"),
        (5000, 1, "syscall_exit_openat"), (7000, 1, "raw_syscalls_sys_enter"), (9000, 0, "sched_switch")]
    assert kernel[2]["fields"] == {"prev_comm": "one", "prev_tid": 10, "prev_prio": 20, "prev_state": 1,
                                   "next_comm": "two", "next_tid": 20, "next_prio": 20}
    assert kernel[1]["fields"]["flags"] == 0 and kernel[3]["fields"] == {"ret": -2}
    sample, = [event for event in events if event["event"] == "sample"]
    assert sample["context"]["callstack_user"] == [0x401000, 0x402000]
    assert sample["context"]["callstack_kernel"] == [0xffffffff81000010] and sample["context"]["procname"] == "two"
    info = json.loads(kymo("info", "--json", path).out)
    assert "made" in json.dumps(info) and "6.1.0-made" in json.dumps(info)
    assert "7 events lost" in kymo("print", path).err
    if shutil.which("perf"):
        assert peer("perf", "script", "-F", "tid,event", "-i", path).out.count("sched_switch") == 3


def test_perf_that_is_cut_or_damaged(kymo, tmp_path):
    whole = (foreign_files.perf_example(tmp_path / "made.data")).read_bytes()
    data_at = int.from_bytes(whole[40:48], "little")
    seen = set()
    for size in range(0, len(whole), 37):
        (tmp_path / "cut").write_bytes(whole[:size])
        done = kymo("print", tmp_path / "cut", code=1)
        assert "cut" in done.err, (size, done.err)
        if size > data_at:
            seen.add(len(done.out.splitlines()))
    # The samples before the break are there.
    assert max(seen) > 2
    damaged = bytearray(whole)
    damaged[data_at + 6:data_at + 8] = b"\0\0"
    (tmp_path / "damaged").write_bytes(damaged)
    done = kymo("print", tmp_path / "damaged", code=1)
    assert re.search(r"damaged: .*\(at byte \d+\)", done.err), done.err


# ---- trace.dat ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real_dat(tmp_path_factory, needs_root_tracefs):  # pylint: disable=unused-argument
    """What trace-cmd makes of pages of this kernel: it cannot record itself where ftrace is locked."""
    if not shutil.which("trace-cmd"):
        pytest.skip("trace-cmd is not installed: tools/install-deps test")
    place = tmp_path_factory.mktemp("dat")
    instance = f"/sys/kernel/tracing/instances/kymo-test-{os.getpid()}"
    os.mkdir(instance)

    def put(name, text):
        with open(f"{instance}/{name}", "w", encoding="ascii") as file:
            file.write(text)

    try:
        put("tracing_on", "0")
        put("buffer_size_kb", "4096")
        for event in ("sched/sched_switch", "sched/sched_process_exec", "syscalls"):
            put(f"events/{event}/enable", "1")
        put("tracing_on", "1")
        subprocess.run(["sh", "-c", "for i in 1 2 3; do ls -R /etc >/dev/null; done"], check=True)
        put("tracing_on", "0")
        for event in ("sched", "syscalls"):
            put(f"events/{event}/enable", "0")
        files = []
        for name in sorted(os.listdir(f"{instance}/per_cpu"), key=lambda name: int(name[3:])):
            files.append(place / f"pages.{name}")
            fd = os.open(f"{instance}/per_cpu/{name}/trace_pipe_raw", os.O_RDONLY | os.O_NONBLOCK)
            with open(files[-1], "wb") as file:
                try:
                    while page := os.read(fd, 4096):
                        file.write(page.ljust(4096, b"\0"))
                except BlockingIOError:
                    pass
            os.close(fd)
    finally:
        for _ in range(50):
            try:
                os.rmdir(instance)
                break
            except OSError:
                time.sleep(0.1)
    for args in (["restore", "-c", "-o", place / "head"], ["restore", "-o", place / "made.dat", "-i", place / "head", *files]):
        # It reads the events of all of tracefs, where other recordings come and go.
        for _ in range(5):
            done = subprocess.run(["trace-cmd", *args], capture_output=True, check=False)
            if not done.returncode:
                break
        assert done.returncode == 0, (args, done.stdout[-300:], done.stderr[-300:])
    return place / "made.dat"


@pytest.mark.parametrize("form", [("7", "none"), ("7", "zstd"), ("6", None)], ids=["7", "7-zstd", "6"])
def test_trace_cmd_has_the_same_events(kymo, peer, tmp_path, real_dat, form):
    version, packing = form
    path = tmp_path / "trace.dat"
    subprocess.run(["trace-cmd", "convert", "--file-version", version, *(["--compression", packing] if packing else []),
                    "-i", real_dat, "-o", path], check=True, capture_output=True)
    text = peer("trace-cmd", "report", "-t", path).out
    theirs = collections.Counter()
    for cpu, second, ns, name in re.findall(r"\[(\d+)\]\s+(\d+)\.(\d{9}): (\S+?):", text):
        name = re.sub("^sys_enter_", "syscall_entry_", re.sub("^sys_exit_", "syscall_exit_", name))
        theirs[int(second) * 10**9 + int(ns), int(cpu), name] += 1
    assert len(theirs) > 1000
    assert collections.Counter(map(brief, events_of(kymo, path))) == theirs
    assert "ls" in kymo("report", "cpu", path).out


def test_made_trace_dat(kymo, tmp_path):
    path = foreign_files.dat_example(tmp_path / "made.dat")
    assert [(event["timestamp_ns"] % 10**9, event["packet"]["cpu_id"], event["event"]) for event in events_of(kymo, path)] == [
        (1000, 1, "sched_switch"), (2000, 1, "syscall_entry_openat"), (3000, 0, "sched_switch"),
        (5000, 1, "syscall_exit_openat"), (9000, 0, "sched_switch")]
    assert "kernel_release = 6.1.0-made" in kymo("info", path).out
    whole = path.read_bytes()
    for size in (12, 100, 1000, 2500, len(whole) - 5000, len(whole) - 100):
        (tmp_path / "cut").write_bytes(whole[:size])
        done = kymo("print", tmp_path / "cut", code=1)
        assert re.search(r"cut: .*\(at byte \d+\)", done.err), (size, done.err)
    # The other CPU's page is whole.
    assert done.out.count("sched_switch") == 2


# ---- packets ------------------------------------------------------------------------------


def test_packets(kymo, peer, tmp_path):
    path = foreign_files.pcapng_example(tmp_path / "made.pcapng")
    udp, tcp, arp = events_of(kymo, path)
    assert [event["event"] for event in (udp, tcp, arp)] == ["udp", "tcp", "arp"]
    assert udp["timestamp_ns"] == 1_764_181_493_000_000_001 and tcp["timestamp_ns"] == 1_764_181_493_000_000_006
    assert tcp["fields"] == {"length": 79, "captured": 79, "src": "::1", "dst": "::2", "sport": 1000, "dport": 80,
                             "flags": "S.", "seq": 7, "ack": 9, "window": 512, "payload": 5}
    assert udp["fields"] == {"length": 49, "captured": 49, "src": "10.0.0.1", "dst": "192.168.100.200",
                             "sport": 53, "dport": 5353, "payload": 3}
    assert arp["fields"] == {"length": 42, "captured": 42, "operation": 1, "sender": "10.0.0.1", "target": "10.0.0.2"}
    assert len(peer("tcpdump", "-nr", path).out.splitlines()) == 3
    # A trace of it, as the command without a format makes one.
    kymo("convert", path, "-o", tmp_path / "trace")
    assert len(peer("babeltrace2", tmp_path / "trace").out.splitlines()) == 3


def test_packets_and_then_a_hole(kymo, tmp_path):
    """Zeros up to the end are no packets; zeros before another packet are."""
    path, head = tmp_path / "hole.pcap", struct.pack("<IHHiIII", 0xa1b2c3d4, 2, 4, 0, 0, 65535, 1)
    packet = struct.pack("<IIII", 1_764_181_493, 5, 14, 14) + bytes(12) + b"\x88\xb5"
    for size in (len(head + packet) + 40, 2 << 30):
        path.write_bytes(head + packet)
        os.truncate(path, size)
        done = kymo("print", path, code=1, timeout=20)
        assert f"{path}: the file goes on with zeros (at byte {len(head + packet)})" in done.err
        assert len(done.out.splitlines()) == 1
    path.write_bytes(head + packet + bytes(32) + packet)
    assert len(events_of(kymo, path)) == 4


@needs_root
def test_captured_packets(kymo, peer, tmp_path, loopback):  # pylint: disable=unused-argument
    tcpdump = shutil.which("tcpdump")
    if not tcpdump:
        pytest.skip("tcpdump is not installed: tools/install-deps test")
    path = tmp_path / "lo.pcap"
    with subprocess.Popen([tcpdump, "-Z", "root", "-i", "lo", "-U", "-w", path, "udp port 9"], stderr=subprocess.PIPE,
                          text=True) as capture:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            deadline = time.monotonic() + 30
            while (not path.exists() or path.stat().st_size < 1000) and time.monotonic() < deadline:
                sender.sendto(b"hello", ("127.0.0.1", 9))
                time.sleep(0.01)
        capture.terminate()
        capture.communicate()
    theirs = peer("tcpdump", "-nr", path).out.splitlines()
    ours = [event for event in events_of(kymo, path) if event["event"] == "udp"]
    assert theirs and len(ours) == len(theirs) and {event["fields"]["payload"] for event in ours} == {5}
    assert "data" not in ours[0]["fields"]
    # The same packets again, of the capture itself and of a trace with its bytes.
    whole = peer("tcpdump", "-r", path, "-nvvXX").out
    kymo("convert", "--to", "pcap", "-o", tmp_path / "again.pcap", path)
    kymo("convert", "--to", "ctf1.8", "--packet-data", "-o", tmp_path / "trace", path)
    kymo("convert", "--to", "pcap", "-o", tmp_path / "third.pcap", tmp_path / "trace")
    for made in ("again.pcap", "third.pcap"):
        assert peer("tcpdump", "-r", tmp_path / made, "-nvvXX").out == whole
    assert "no event has a packet's bytes" in kymo("convert", "--to", "pcap", foreign_files.perf_example(tmp_path / "p"),
                                                   code=1).err


# ---- logs ---------------------------------------------------------------------------------

LOGS = {
    "syslog": ("Nov 26 18:00:02 host1 kernel: usb 1-1: new device\n  continued\nNov 26 18:00:01 host1 sshd[77]: Accepted\n",
               [("log", {"host": "host1", "program": "sshd", "pid": 77, "message": "Accepted"}),
                ("log", {"host": "host1", "program": "kernel", "message": "usb 1-1: new device"}),
                ("line", {"message": "  continued"})]),
    "iso": ("2026-11-26T18:24:53.123456+01:00 host app[12]: hello\n",
            [(1795713893123456000, {"host": "host", "program": "app", "pid": 12, "message": "hello"})]),
    "5424": ('<34>1 2003-10-11T22:14:15.003Z mymachine su - ID47 [ex@1 a="b\\]c"] failed\n',
             [(1065910455003000000, {"host": "mymachine", "program": "su", "procid": "", "msgid": "ID47", "facility": 4,
                                     "severity": "critical", "data": '[ex@1 a="b\\]c"]', "message": "failed"})]),
    "dmesg": ("<6>[    1.000002] Linux version\n[   12.5] no\n[   12.500000] usb: hello\n",
              [(1000002000, {"facility": 0, "severity": "info", "message": "Linux version"}),
               (12500000000, {"message": "no"}), (12500000000, {"message": "usb: hello"})]),
    "json": ('{"time":"2026-11-26T18:24:53.123Z","level":"info","n":3,"x":1.5,"o":{"a":[1]},"nul":null,"user-id":"a"}\n'
             '{"__REALTIME_TIMESTAMP":"1795717494500001","MESSAGE":"m"}\n',
             [(1795717493123000000, {"level": "info", "n": 3, "x": 1.5, "o": '{"a":[1]}', "user_id": "a"}),
              (1795717494500001000, {"MESSAGE": "m"})]),
    "logfmt": ('time=2026-11-26T17:24:53Z level=info msg="say \\"x\\"" n=5 dur=1.5ms\n',
               [(1795713893000000000, {"level": "info", "msg": 'say "x"', "n": 5, "dur": "1.5ms"})]),
    "journal": ("__CURSOR=s=1\n__REALTIME_TIMESTAMP=1795713893123456\nMESSAGE=hi\n_PID=12\n\n"
                "__CURSOR=s=2\n__REALTIME_TIMESTAMP=1795713894123456\nMESSAGE\n\x05\0\0\0\0\0\0\0a\nb c\n_PID=13\n",
                [(1795713893123456000, {"__CURSOR": "s=1", "MESSAGE": "hi", "_PID": 12}),
                 (1795713894123456000, {"__CURSOR": "s=2", "MESSAGE": "a\nb c", "_PID": 13})]),
    "strace": ('7 1795713893.000001 openat(AT_FDCWD, "a = b)", O_RDONLY) = -1 ENOENT (No such file) <0.000004>\n'
               "8 1795713893.000003 read(3,  <unfinished ...>\n7 1795713893.000006 --- SIGCHLD {si_pid=8} ---\n"
               '8 1795713893.000009 <... read resumed>"x", 1) = 1 <0.000006>\n',
               [("syscall_entry_openat", {"arguments": 'AT_FDCWD, "a = b)", O_RDONLY'}),
                ("syscall_entry_read", {"arguments": "3,"}), (1795713893000005000, {"ret": -2, "error": "ENOENT"}),
                ("signal", {"message": "--- SIGCHLD {si_pid=8} ---"}), (1795713893000009000, {"ret": 1, "error": "", "arguments": '"x", 1'})]),
    "chrome": ('{"displayTimeUnit":"ns","traceEvents":[{"name":"load","ph":"X","ts":10.5,"dur":2,"pid":1,"tid":2,"args":{"n":3}},\n'
               '{"name":"a\\"]}","ph":"i","ts":11,"pid":1,"tid":2,"s":"t"}, {"ph":"M","name":"process_name","args":{"name":"x"}}],"a":1}',
               [("load_begin", {"n": 3}), (11000, {}), (12500, {})]),
    "program": ("2026-11-26 18:24:53,123 INFO [main] shop.Order: begins\n\tat shop.Order(Order.java:7)\n[2026-11-26 18:24:54,5: WARNING/Worker] late\n",
                [("log", {"level": "INFO", "message": "INFO [main] shop.Order: begins"}), ("line", {"message": "\tat shop.Order(Order.java:7)"}),
                 ("log", {"level": "WARNING", "message": "WARNING/Worker] late"})]),
    "apache": ("[Sun Dec 04 04:47:44.25 2005] [core:error] [pid 7] mod_jk: no\n[Sun Dec 04 04:47:45 2005] [notice] yes\n",
               [("log", {"level": "error", "message": "[core:error] [pid 7] mod_jk: no"}), ("log", {"level": "notice", "message": "[notice] yes"})]),
    "access": ('127.0.0.1 - ann [10/Oct/2000:13:55:36 -0700] "GET /a b HTTP/1.0" 200 2326\n'
               '::1 - - [10/Oct/2000:13:55:37 -0700] "\\x16\\x03" 400 - "http://x/\\"y" "A/5 (X)"\n',
               [(971211336000000000, {"client": "127.0.0.1", "user": "ann", "method": "GET", "path": "/a b", "protocol": "HTTP/1.0", "status": 200, "bytes": 2326}),
                ("request", {"client": "::1", "user": "-", "method": "", "path": "\\x16\\x03", "protocol": "", "status": 400, "bytes": 0,
                             "referer": 'http://x/\\"y', "agent": "A/5 (X)"})]),
    "ftrace": ("# tracer: nop\nversion = 6\nCPU 3 is empty\ncpus=2\n          <idle>-0       [001] d..2.    12.000001: sched_switch: prev_comm=swapper/1 prev_pid=0 "
               "prev_prio=120 prev_state=R ==> next_comm=my app next_pid=7 next_prio=120\n"
               "            app-7       [001] .....    12.000005: sys_openat(dfd: ffffff9c, filename: 1)\n"
               "            app-7       [001] .....    12.000009: sys_openat -> 0x3\n",
               [(12000001000, {"prev_comm": "swapper/1", "prev_tid": 0, "prev_prio": 20, "prev_state": 0,
                               "next_comm": "my app", "next_tid": 7, "next_prio": 20}),
                ("syscall_entry_openat", {"arguments": "(dfd: ffffff9c, filename: 1)"}), (12000009000, {"ret": 3})]),
}


@pytest.mark.parametrize("name", LOGS)
def test_logs(kymo, tmp_path, name):
    text, expected = LOGS[name]
    path = tmp_path / "a.log"
    path.write_bytes(text.encode("latin-1"))
    events = events_of(kymo, path)
    assert [event["fields"] for event in events] == [fields for _, fields in expected]
    for event, (what, _) in zip(events, expected):
        assert what in (event["event"], event["timestamp_ns"])


def test_a_long_chrome_trace(kymo, tmp_path):
    """One line of 3 MB, and cut: the events before the cut are there."""
    events = [{"name": "a", "ph": "X", "ts": n, "dur": 0.5, "pid": 1, "tid": n % 3, "args": {"text": "x" * 100}} for n in range(20000)]
    text = json.dumps(events, separators=(",", ":"))
    (tmp_path / "a.json").write_text(text, encoding="ascii")
    assert kymo("print", "--count", tmp_path / "a.json").out == "40000\n"
    (tmp_path / "b.json").write_text(text[:len(text) // 2], encoding="ascii")
    done = kymo("print", tmp_path / "b.json", code=1)
    assert "cut" in done.err and len(done.out.splitlines()) > 19000


CHROME = [{"ph": "X", "name": "load", "ts": 0, "dur": 2, "pid": 1, "tid": 2},
          {"ph": "B", "name": "parse", "ts": 1, "pid": 1, "tid": 3},
          {"ph": "E", "name": "parse", "ts": "1.5", "pid": 1, "tid": 3},
          {"ph": "M", "name": "process_name", "pid": 1, "tid": 0, "args": {"name": "browser"}},
          {"ph": "M", "name": "thread_name", "pid": 1, "tid": 3, "args": {"name": "worker"}}]


def test_losses_in_the_text_of_ftrace(kymo, tmp_path):
    event = "  a-7 [001] ..... 12.{:06d}: sched_waking: comm=b pid=3 prio=120 target_cpu=001\n"
    path = tmp_path / "a.txt"
    path.write_text("# tracer: nop\n" + event.format(5) + "CPU:1 [LOST 34 EVENTS]\n" + event.format(9) +
                    "CPU:1 [LOST EVENTS]\nCPU:1 [12 EVENTS DROPPED]\n" + event.format(11), encoding="ascii")
    done = kymo("print", path)
    assert len(done.out.splitlines()) == 3 and all(f" {n} lost by" in done.err for n in ("34 events", "1 event", "12 events")) and "are not of the format" not in done.err


def test_chrome_json_as_tools_write_it(kymo, tmp_path):
    """On one line or many, alone or in an object with much before it, and without the end of a program that was killed."""
    whole, lines = json.dumps(CHROME, indent=2), ",\n".join(map(json.dumps, CHROME))
    forms = {"one": json.dumps(CHROME), "many": whole, "lines": f"\n[\n{lines}\n]\n", "killed": f"[\n{lines}", "comma": f"[{lines},\n",
             "late": json.dumps({"metadata": "x" * 20000, "traceEvents": CHROME}, indent=1)}
    expected = [("load_begin", 0, "browser"), ("parse_begin", 1000, "worker"), ("parse_end", 1500, "worker"), ("load_end", 2000, "browser")]
    for name, text in forms.items():
        path = tmp_path / f"{name}.json"
        path.write_text(text, encoding="ascii")
        events = events_of(kymo, path)
        assert [(event["event"], event["timestamp_ns"], event["context"]["comm"]) for event in events] == expected, name
    path.write_text(forms["late"].rsplit("]", 1)[0], encoding="ascii")
    done = kymo("print", path, code=1)
    assert "the list of events is cut" in done.err and len(done.out.splitlines()) == 4


def test_a_log_of_ones_own_format(kymo, tmp_path):
    path = tmp_path / "access"
    path.write_text("10/Oct/2000:13:55:36.25 +0000 GET /x 200\nnonsense\n", encoding="ascii")
    options = ["--log-format", r"^(?<time>\S+ \S+) (?<method>\w+) (?<path>\S+) (?<status>\d+)$",
               "--log-time", "%d/%b/%Y:%H:%M:%S.%f %z"]
    first, second = events_of(kymo, path, *options)
    assert first["timestamp_ns"] == 971186136250000000
    assert first["fields"] == {"method": "GET", "path": "/x", "status": 200} and second["fields"] == {"message": "nonsense"}
    assert "not a directory" in kymo("print", path, code=1).err
    assert "--log-format" in kymo("print", "--log-format", "(?<a", path, code=None).err
    # An expression that tries everything does not take for ever.
    path.write_text("a" * 50 + "b\n", encoding="ascii")
    kymo("print", "--log-format", "^(?<x>(a+)+)$", path)


def test_a_real_strace(kymo, peer, tmp_path):
    strace = shutil.which("strace")
    if not strace:
        pytest.skip("strace is not installed: tools/install-deps test")
    path = tmp_path / "a.strace"
    subprocess.run([strace, "-f", "-ttt", "-T", "-o", path, "sh", "-c", "ls / >/dev/null; true"], check=True)
    names = collections.Counter(event["event"] for event in events_of(kymo, path))
    text = path.read_text(encoding="utf-8", errors="replace")
    assert names["syscall_entry_openat"] == len(re.findall(r" openat\(", text)) > 5
    table = kymo("report", "syscalls", path).out
    assert "openat" in table and "ENOENT" in table


# ---- compressed files and archives --------------------------------------------------------


def compressed(path, packing):
    data = path.read_bytes()
    if packing == "zst":
        subprocess.run(["zstd", "-q", "-f", path, "-o", f"{path}.zst"], check=True)
        return f"{path}.zst"
    module = {"gz": gzip, "xz": lzma, "bz2": bz2}[packing]
    with module.open(f"{path}.{packing}", "wb") as file:
        file.write(data)
    return f"{path}.{packing}"


@pytest.mark.parametrize("packing", ["gz", "xz", "bz2", "zst"])
def test_compressed_files(kymo, tmp_path, packing):
    for example in (foreign_files.perf_example, foreign_files.dat_example, foreign_files.pcapng_example):
        path = example(tmp_path / "a")
        expected = kymo("print", path).out
        assert expected and kymo("print", compressed(path, packing)).out == expected
    (tmp_path / "b.log").write_text(LOGS["strace"][0], encoding="ascii")
    assert "syscall_exit_read" in kymo("print", compressed(tmp_path / "b.log", packing)).out
    (tmp_path / "c").write_text("nothing\n", encoding="ascii")
    assert "no format that Kymo knows" in kymo("print", compressed(tmp_path / "c", packing), code=1).err


@pytest.mark.parametrize("form", ["zip", "xztar"])
def test_archives_of_other_files(kymo, tmp_path, form):
    """Without a trace in it, an archive is its files of known formats."""
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "README").write_text("not a trace\n", encoding="ascii")
    (folder / "a.json").write_text(json.dumps(CHROME), encoding="ascii")
    (folder / "b.log").write_text(LOGS["syslog"][0], encoding="latin-1")
    path = shutil.make_archive(str(tmp_path / "a"), form, root_dir=folder)
    n = [len(events_of(kymo, folder / name)) for name in ("a.json", "b.log")]
    assert all(n) and len(events_of(kymo, path)) == sum(n)
    (folder / "a.json").unlink()
    (folder / "b.log").unlink()
    path = shutil.make_archive(str(tmp_path / "b"), form, root_dir=folder)
    assert "no file of a format" in kymo("print", path, code=1).err


@pytest.mark.parametrize("form", ["tar", "gztar", "xztar", "zip"])
def test_archives_of_a_trace(kymo, shared, tmp_path, form):
    source = pathlib.Path(shared) / "traces" / "lttng-ust"
    trace = next(path.parent for path in sorted(source.rglob("metadata")))
    path = shutil.make_archive(str(tmp_path / "a"), form, root_dir=trace.parent, base_dir=trace.name)
    assert kymo("print", path).out == kymo("print", trace).out != ""
    with open(path, "rb") as file:
        whole = file.read()
    (tmp_path / "cut").write_bytes(whole[:len(whole) // 2])
    # What came before the damage is a trace.
    cut = kymo("print", "--no-delta", tmp_path / "cut", code=1)
    assert "damaged" in cut.err or ("truncated" in cut.err and cut.out)
    assert set(cut.out.splitlines()) <= set(kymo("print", "--no-delta", path).out.splitlines())


def test_file_that_grows_without_end(kymo, tmp_path):
    """A part of trace.dat that names itself, and CPUs that share pages: memory and time have bounds."""
    head = b"\x17\x08\x44tracing7\0" + struct.pack("<BBI", 0, 8, 4096) + b"none\0\0"
    at, filler = len(head) + 8, 1 << 20
    options = struct.pack("<HI", 5, filler) + b"x" * filler + struct.pack("<HIQ", 0, 8, at)
    (tmp_path / "loop").write_bytes(head + struct.pack("<QHHIQ", at, 0, 0, 0, len(options)) + options)
    assert "sections are too long" in kymo("info", tmp_path / "loop", code=1).err
    buffer = (struct.pack("<Q", 0) + b"\0mono\0" + struct.pack("<II", 4096, 1000)
              + struct.pack("<IQQ", 0, 0, at) * 1000)
    options = struct.pack("<HI", 3, len(buffer)) + buffer + struct.pack("<HIQ", 0, 8, 0)
    (tmp_path / "overlap").write_bytes(head + struct.pack("<QHHIQ", at, 0, 0, 0, len(options)) + options)
    assert "overlap" in kymo("info", tmp_path / "overlap", code=1).err


def test_texts_and_times_at_their_limits(kymo, tmp_path):
    """A text that ends with a backslash does not swallow the next event; times beyond 64 bits are no times."""
    (tmp_path / "c.json").write_text('{"traceEvents":[{"ph":"X","ts":1700000000000000.5,"dur":2.5,"name":"a","args":{"path":"C:\\\\"}},'
                                     '{"ph":"X","ts":1e300,"dur":1e300,"name":"b"},{"ph":"i","ts":"nan","name":"c"}]}')
    out = kymo("print", str(tmp_path / "c.json")).out
    assert [out.count(f" {name}: ") for name in ("a_begin", "a_end", "b_begin", "b_end", "c")] == [1] * 5
    assert 'path = "C:\\\\"' in out and "(+0.000002500) a_end" in out
    (tmp_path / "l.log").write_text("9999-12-31T00:00:00Z host p[1]: a\n2026-11-26T00:00:00Z host p[1]: b\n")
    done = kymo("convert", "--to", "json", "--log-format", "syslog", str(tmp_path / "l.log"))
    assert [json.loads(line)["event"] for line in done.out.splitlines()] == ["line", "log"]


def test_a_trace_that_does_not_fit_in_memory(kymo, tmp_path):
    """The first 64 MiB stay in memory, the rest is in a file: both are read, copied and listed in the index."""
    log = tmp_path / "long.log"
    texts = [(i, f"x{i:05}" * (11000 if i > 50 else 1)) for i in range(1300)]
    with open(log, "w", encoding="ascii") as file:
        for number, text in texts:
            file.write(json.dumps({"time": 1_764_181_493_000 + number, "number": number, "text": text}) + "\n")
    assert [(event["fields"]["number"], event["fields"]["text"]) for event in events_of(kymo, log)] == texts
    kymo("convert", "-o", tmp_path / "trace", log)
    assert [(event["fields"]["number"], event["fields"]["text"]) for event in events_of(kymo, tmp_path / "trace")] == texts
    index, = (tmp_path / "trace").rglob("*.idx")
    assert index.stat().st_size > 16 + 128 * 72
    assert not kymo("info", tmp_path / "trace").err
    kymo("convert", "-o", tmp_path / "copy", tmp_path / "trace")
    assert not kymo("info", tmp_path / "copy").err
