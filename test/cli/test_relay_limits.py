# SPDX-License-Identifier: MIT
"""A relay that strangers hold connections of, and one that has few descriptors: recorders and readers get through."""

import contextlib
import glob
import json
import os
import re
import resource
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

import viewer as protocol
from test_live_viewer import MODES, begin_recording, end_recording, greet, relay, wait_for, welcome  # noqa: F401
from test_network import frame, hello, session_of
from viewer import Viewer

pytestmark = pytest.mark.usefixtures("needs_root_tracefs")

# A client's hello of TLS, without its end.
TLS_HELLO = bytes.fromhex("16030100c8010000c40303") + bytes(32)


def descriptors(process):
    return len(os.listdir(f"/proc/{process.pid}/fd"))


class Strangers:
    """Connections that say nothing, or one byte per second; those that the relay ends come again."""

    def __init__(self, port, count, words):
        self.port, self.count, self.words = port, count, words
        self.stops = threading.Event()
        self.ended = 0
        self.open = [self.connect(i) for i in range(count)]
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def connect(self, i):
        one = socket.create_connection(("127.0.0.1", self.port))
        one.setblocking(False)
        return one, iter(self.words[i % len(self.words)])

    def speak(self, i):
        one, word = self.open[i]
        with contextlib.suppress(BlockingIOError):
            try:
                if (byte := next(word, None)) is not None:
                    one.send(bytes([byte]))
                if one.recv(1000):
                    return
            except (BrokenPipeError, ConnectionResetError):
                pass
            one.close()
            self.ended += 1
            self.open[i] = self.connect(i)

    def run(self):
        while not self.stops.wait(1):
            for i in range(self.count):
                self.speak(i)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stops.set()
        self.thread.join()
        for one, _ in self.open:
            one.close()


def numbers(kymo, trace):
    lines = kymo("convert", "--to", "json", trace).out.splitlines()
    return [event["fields"]["i"] for event in map(json.loads, lines) if event["event"] == "modes:number"]


def record_numbers(kymo, address, count, *options):
    """A whole recording of @count events, which another may have in it, too."""
    done = kymo("record", *options, "-o", address, "--user", "modes:*", "--", MODES, "numbers", str(count), "0")
    assert "; 0 lost" in done.err, done.err


def printed(done):
    return [int(found) for found in re.findall(r"modes:number: .*\bi = (\d+)", done.out)]


@pytest.mark.parametrize("options", [(), ("--clients", "250")], ids=["room", "full"])
def test_silent_peers(kymo, relay, options):  # noqa: F811
    """Hundreds of strangers at each port; also more than the relay takes. Each loses its place when its greeting is late."""
    here = relay(*options)
    version = struct.pack(">QIIQIII", 20, protocol.CONNECT, 0, 0, 2, 4, 1)
    with Strangers(here.port, 300, [b"", hello()]) as some, Strangers(here.live, 300, [b"", version]) as more:
        record_numbers(kymo, here.address("among"), 20000)
        assert set(range(20000)) <= set(printed(kymo("print", "--live", here.address("among"))))
        with Viewer(here.live) as one:
            assert [found.name for found in one.sessions()] == ["among"]
        shown = subprocess.run(["babeltrace2", "-i", "lttng-live", here.url("among")], capture_output=True, text=True, timeout=120,
                               check=True)
        assert len(re.findall("modes:number", shown.stdout)) >= 20000
        # Nobody keeps a place without a greeting.
        wait_for(lambda: some.ended >= 300 and more.ended >= 300)
        record_numbers(kymo, here.address("later"), 100)
    wait_for(lambda: descriptors(here.process) < 60)


def test_silent_peers_of_tls(kymo, relay, tmp_path):  # noqa: F811
    """The same of a relay with a key: the strangers do not end their part of TLS's greeting."""
    done = kymo("relay", "--init", "--dir", tmp_path / "relay")
    recorders, readers = re.findall("Key for .*: (.*)", done.out)
    here = relay("--clients", "90")
    with Strangers(here.port, 100, [b"", TLS_HELLO, b"no TLS at all"]):
        record_numbers(kymo, here.address("among"), 20000, "--relay-key", recorders)
        done = kymo("print", "--live", "--relay-key", readers, here.address("among"))
        assert set(range(20000)) <= set(printed(done))


def test_recorders_keep_their_place(kymo, kymo_bin, relay):  # noqa: F811
    """A relay that is full of recorders takes no further one, and strangers cost none of them its place."""
    here = relay("--clients", "3")
    recorders = [begin_recording(kymo_bin, "-o", here.address(f"r{i}"), "--user", "modes:*") for i in range(3)]
    wait_for(lambda: all(session_of(kymo, here.address(f"r{i}")) for i in range(3)))
    with Strangers(here.port, 20, [b"", hello()]):
        subprocess.run([MODES, "numbers", "5000", "0"], check=True, stdout=subprocess.DEVNULL)
        refused = kymo("record", "-o", here.address("more"), "--relay-wait", "3s", "--user", "modes:*", "-d", "50ms", code=1)
        assert "does not answer" in refused.err
        for recorder in recorders:
            end_recording(recorder)
    for i in range(3):
        assert set(range(5000)) <= set(numbers(kymo, here.trace(f"r{i}")))
    said = here.end()
    assert not re.search("r[0-2]: silent", said) and len(re.findall("r[0-2]: connected", said)) == 3


# ---- half-open connections -----------------------------------------------------------------------

TCP_REPAIR = 19


def vanish(one):
    """The connection's end is gone, and the other one learns nothing of it."""
    one.setsockopt(socket.IPPROTO_TCP, TCP_REPAIR, 1)
    one.close()


def connect(port, data=b""):
    one = socket.create_connection(("127.0.0.1", port))
    one.sendall(data)
    return one


def test_half_open_connections(kymo, relay):  # noqa: F811
    """Peers that have gone without a word hold nobody up, and lose their place like silent ones."""
    here = relay()
    before = descriptors(here.process)
    for i in range(300):
        gone = connect(here.port, hello()[:i % 60])
        live = connect(here.live)
        vanish(gone)
        vanish(live)
    record_numbers(kymo, here.address("among"), 20000)
    assert set(range(20000)) <= set(printed(kymo("print", "--live", here.address("among"))))
    wait_for(lambda: descriptors(here.process) < before + 20)
    with contextlib.closing(connect(here.port, hello())) as recorder, greet(here.port) as reader:
        assert recorder.recv(32) and welcome(reader)[0] == 5


def test_recorder_that_comes_back(relay):  # noqa: F811
    """A recorder whose connection is gone without a word gets its place back, with all that the relay has."""
    here = relay()
    opened = hello() + frame(2, struct.pack("<I", 0) + b"kernel", 1) + frame(10, b"/* CTF 1.8 */", 1, 1)
    for turn in range(5):
        one = connect(here.port, opened if not turn else hello())
        kind, _, _, size = struct.unpack("<IIQQ", one.recv(24, socket.MSG_WAITALL))
        wanted, = struct.unpack("<Q", one.recv(size, socket.MSG_WAITALL))
        assert kind == 5 and wanted == (2 if turn else 1)
        wait_for(lambda: glob.glob(f"{here.dir}/evil/session/kernel/metadata"))
        vanish(one)
    assert [os.path.basename(path) for path in glob.glob(f"{here.dir}/evil/*")] == ["session"]
    assert len([line for line in here.end().splitlines() if "session: connected" in line]) == 5


# ---- few descriptors -----------------------------------------------------------------------------

def set_limit(process, count=None):
    """None: as it was."""
    _, most = resource.prlimit(process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (count or most, most))


def test_few_descriptors(kymo, kymo_bin, relay):  # noqa: F811
    """
    The relay takes no further connections; recorders that are there go on, and get files for new programs. When
    descriptors are free again, others get in.
    """
    here = relay()
    recorder = begin_recording(kymo_bin, "-o", here.address("first"), "--name", "first", "--user", "modes:*")
    wait_for(lambda: session_of(kymo, here.address("first")))
    subprocess.run([MODES, "numbers", "3000", "0"], check=True, stdout=subprocess.DEVNULL)
    limit = descriptors(here.process) + 40
    set_limit(here.process, limit)
    with contextlib.ExitStack() as stack:
        # These have greeted: they keep their descriptors.
        for i in range(limit):
            stack.enter_context(contextlib.closing(connect(here.port, hello(session=b"%16d" % i))))
        wait_for(lambda: any("new clients wait: Too many open files" in line for line in here.said))
        wait_for(lambda: descriptors(here.process) >= limit * 3 // 4)
        for i in range(3):
            subprocess.run([MODES, "numbers", "5000", "0"], check=True, stdout=subprocess.DEVNULL)
        kymo("ctl", "--clear", "first")
        subprocess.run([MODES, "numbers", "7000", "0"], check=True, stdout=subprocess.DEVNULL)
        waits = begin_recording(kymo_bin, "-o", here.address("second"), "--relay-wait", "5s", "--user", "modes:*")
        _, said = waits.communicate(timeout=120)
        assert waits.returncode == 1 and "does not answer" in said
    record_numbers(kymo, here.address("third"), 2000)
    end_recording(recorder)
    assert set(range(7000)) <= set(numbers(kymo, here.trace("first")))
    assert set(range(2000)) <= set(numbers(kymo, here.trace("third")))


def test_no_descriptors_for_files(kymo, kymo_bin, relay):  # noqa: F811
    """A recorder whose new files get no descriptor waits, and continues when there are some: nothing is lost."""
    here = relay()
    recorder = begin_recording(kymo_bin, "-o", here.address("waits"), "--user", "modes:*")
    wait_for(lambda: session_of(kymo, here.address("waits")))
    subprocess.run([MODES, "numbers", "3000", "0"], check=True, stdout=subprocess.DEVNULL)
    wait_for(lambda: glob.glob(f"{here.dir}/*/waits/ust/pid/*/metadata"))
    kymo("print", here.trace("waits"))
    set_limit(here.process, 12)
    for _ in range(3):
        subprocess.run([MODES, "numbers", "5000", "0"], check=True, stdout=subprocess.DEVNULL)
    wait_for(lambda: any("waits: has to wait: " in line and "Too many open files" in line for line in here.said))
    assert recorder.poll() is None
    set_limit(here.process)
    end_recording(recorder)
    found = [numbers(kymo, one) for one in glob.glob(f"{here.trace('waits')}/ust/pid/modes-*")]
    assert sum(one == list(range(5000)) for one in found) >= 3
    said = here.end()
    # The relay does not turn in circles.
    assert len(re.findall("has to wait", said)) < 100


def cpu_seconds(process):
    with open(f"/proc/{process.pid}/stat", encoding="utf-8") as stat:
        return sum(map(int, stat.read().rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")


def take_last_descriptor(process):
    """Leaves no number below the limit free."""
    used = {int(name) for name in os.listdir(f"/proc/{process.pid}/fd")}
    set_limit(process, next(i for i in range(len(used) + 1) if i not in used))


def test_recorder_without_descriptors(kymo, kymo_bin, tmp_path):
    """Who connects to its control socket waits, and the recorder does not turn in circles; with a descriptor, it answers."""
    recorder = begin_recording(kymo_bin, "-o", tmp_path / "out", "--name", "full", "--user", "modes:*")
    # The second place is that of machines whose /run is not in memory.
    places = [f"/run/kymo/recordings/{recorder.pid}", f"/dev/shm/kymo-recordings-0/{recorder.pid}"]
    path = wait_for(lambda: next(filter(os.path.exists, places), None))
    wait_for(lambda: session_of(kymo, str(tmp_path / "out")))
    take_last_descriptor(recorder)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(path)
        client.sendall(b"list\0")
        before = cpu_seconds(recorder)
        time.sleep(2)
        assert cpu_seconds(recorder) - before < 0.1
        set_limit(recorder)
        client.settimeout(60)
        assert client.recv(65536)
    subprocess.run([MODES, "numbers", "3000", "0"], check=True, stdout=subprocess.DEVNULL)
    end_recording(recorder)


@pytest.mark.parametrize("limit", [16, 24, 40, 64])
def test_limit_from_the_begin(kymo, kymo_bin, tmp_path, limit):
    """Whatever `ulimit -n` says, the relay serves as many as it can, one after the other."""
    port = socket.create_server(("127.0.0.1", 0))
    with contextlib.closing(port):
        number = port.getsockname()[1]
    with subprocess.Popen(["prlimit", f"--nofile={limit}:{limit}", kymo_bin, "relay", "--dir", tmp_path / "r", "--listen",
                           f"localhost:{number}"], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert "Listening" in process.stderr.readline()
            for i in range(3):
                done = kymo("record", "-o", f"kymo://localhost:{number}/r{i}", "--relay-wait", "5s", "--user", "modes:*", "--", MODES,
                            "numbers", "300", "0", code=None)
                if limit > 16:
                    assert "; 0 lost" in done.err, done.err
            assert process.poll() is None
        finally:
            process.send_signal(signal.SIGTERM)
            said = process.stderr.read()
    assert process.returncode == 0, said


@pytest.mark.parametrize("reader", ["kymo", "babeltrace2"])
def test_viewer_of_many_traces(kymo, kymo_bin, relay, tmp_path, reader):  # noqa: F811
    """A relay that shows a recording of many programs does not hold their traces open, and shows all of them in order."""
    here = relay()
    name = f"many{os.getpid()}"
    kymo("record", "--name", name, "--background", "-o", here.address("many"), "--user", "modes:number", cwd=tmp_path)
    for i in range(6):
        subprocess.run(["sh", "-c", f"for i in $(seq 25); do {MODES} numbers 3 0; done"], check=True, stdout=subprocess.DEVNULL)
        if i % 2:
            kymo("rotate", name)
    kymo("stop", name)
    n_traces = len(glob.glob(f"{here.dir}/*/many/**/metadata", recursive=True))
    assert n_traces >= 150
    # Of them, an eighth is for traces.
    set_limit(here.process, 400)
    most, stops = [0], threading.Event()

    def watch():
        while not stops.wait(0.002):
            most[0] = max(most[0], descriptors(here.process))

    before = descriptors(here.process)
    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        if reader == "kymo":
            shown = kymo("print", "--live", here.address("many")).out
        else:
            shown = subprocess.run(["babeltrace2", "-i", "lttng-live", here.url("many")], capture_output=True, text=True,
                                   check=True, timeout=120).stdout
    finally:
        stops.set()
        watcher.join()
    set_limit(here.process)
    assert shown.count("modes:number") >= 450 and shown.count("modes:number") == kymo("print", here.trace("many")).out.count("modes:number")
    assert most[0] - before < 100
    # A reader's own limit: the reason, and what to do.
    done = subprocess.run(["prlimit", "--nofile=60", kymo_bin, "print", here.address("many")], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 1 and "Too many open files; each data stream takes one; raise the limit (ulimit -n)" in done.stderr
