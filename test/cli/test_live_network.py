# SPDX-License-Identifier: MIT
"""Recordings at relays: what kymo reads from lttng-relayd and from kymo relay, and what it does with relays that lie."""

import json
import os
import re
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

from relays import free_port, relays
from test_live import Follower, without_times
from test_lttng_ust import lab  # noqa: F401 (a fixture)


# ---- lttng-relayd -------------------------------------------------------------------------

@pytest.fixture(scope="module")
def relayd(lab):
    """A relay daemon: its address for readers, and the options that make a session use it."""
    ports = [free_port() for _ in range(3)]
    urls = [f"tcp4://127.0.0.1:{port}" for port in ports]
    with subprocess.Popen(["lttng-relayd", f"--output={lab.path / 'live-relay'}", "-C", urls[0], "-D", urls[1],
                           "-L", urls[2]], env=lab.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as daemon:
        try:
            end = time.monotonic() + 120
            while socket.socket().connect_ex(("127.0.0.1", ports[2])):
                assert time.monotonic() < end and daemon.poll() is None, "no relay daemon"
                time.sleep(0.1)
            yield f"net://127.0.0.1:{ports[2]}", [f"--ctrl-url={urls[0]}", f"--data-url={urls[1]}", "--live=100000"]
        finally:
            daemon.terminate()


def wait_for(reader, text, n=1):
    while open(reader.path, errors="replace").read().count(text) < n:
        assert reader.process.poll() is None, reader.process.stderr.read()
        time.sleep(0.02)


def relay_host(kymo, relay, name):
    """The host that the relay lists the session with."""
    found = re.search(rf"^{re.escape(relay)}/host/([^/\n]+)/{name} \(timer = 100000 us, ", kymo("print", relay).out, re.M)
    assert found
    return found.group(1)


def test_session_of_lttng(kymo, kymo_bin, peer, lab, relayd, tmp_path):
    """What is printed live is what babeltrace2 prints of the relay's files; programs come and go meanwhile."""
    relay, options = relayd
    name = "live-uid"
    lab.session(name, create=options)
    address = f"{relay}/host/{relay_host(kymo, relay, name)}/{name}"
    reader = Follower(kymo_bin, tmp_path / "live", "print", "--live", address)
    lab.run("./prog", 0, 200, 1000)
    wait_for(reader, "prov:tick", 200)
    lab.run("./prog", 200, 3000, 1000)
    lab.run("./kinds", 20)
    lab.end(name)
    printed = reader.end()
    stored, = (lab.path / "live-relay").glob(f"*/{name}-*")
    assert sorted(without_times(printed)) == sorted(without_times(kymo("print", stored).out))
    # babeltrace2 2.0.4 shows texts of some kinds otherwise (test_lttng_ust.py).
    ticks = [line for line in without_times(peer("babeltrace2", stored).out) if "prov:tick" in line]
    assert [line for line in without_times(printed) if "prov:tick" in line] == ticks
    assert printed.count("prov:tick") == 3200


def test_traces_that_come_and_go(kymo, kymo_bin, lab, relayd, tmp_path):
    """With buffers of each process, a trace comes and ends with its program. lttng-relayd does not give a reader what a
    program wrote just before its end, so these programs pause there."""
    relay, options = relayd
    lab.session("live-pid", "--buffers-pid", create=options)
    address = f"{relay}/host/{relay_host(kymo, relay, 'live-pid')}/live-pid"
    reader = Follower(kymo_bin, tmp_path / "live", "print", "--live", address)
    programs = [lab.popen("./prog", first, 1001, 300000) for first in (0, 1000)]
    wait_for(reader, "prov:tick", 200)
    lab.run("./prog", 2000, 1001, 300000)
    assert [program.wait(120) for program in programs] == [0, 0]
    lab.end("live-pid")
    found = [int(n) for n in re.findall(r"prov:tick: .* n = (\d+),", reader.end())]
    assert sorted(found) == sorted([*range(1001), *range(1000, 2001), *range(2000, 3001)])


def test_what_there_is_now(kymo, kymo_bin, lab, relayd, tmp_path):
    """Without --live a command reads what the relay has, and ends; all options work."""
    relay, options = relayd
    lab.session("now", create=options)
    address = f"{relay}/host/{relay_host(kymo, relay, 'now')}/now"
    lab.run("./prog", 0, 500)
    end = time.monotonic() + 120
    while int(kymo("print", "--count", "--event", "prov:tick", address, code=None).out or 0) < 500:
        assert time.monotonic() < end
        time.sleep(0.1)
    assert kymo("print", "--tail", "3", "--event", "prov:*", address).out.count("prov:tick") == 3
    assert json.loads(kymo("info", "--json", address).out)["events"] >= 500
    assert kymo("convert", "--to", "json", "--event", "prov:tick", address).out.count("\n") == 500
    kymo("convert", "--to", "ctf1.8", "-o", tmp_path / "copy", address)
    assert kymo("print", "--event", "prov:tick", tmp_path / "copy").out.count("\n") == 500
    counts = Follower(kymo_bin, tmp_path / "info", "info", "--live", "--json", "--refresh", "100ms", address)
    wait_for(counts, "events")  # it follows before the session ends
    lab.run("./prog", 500, 500)
    lab.end("now")
    assert json.loads(counts.end().splitlines()[-1])["events"] >= 1000
    assert "has no session 'gone'" in kymo("print", "--live", f"{relay}/host/x/gone", code=1).err


# ---- kymo relay ---------------------------------------------------------------------------

@pytest.fixture
def relay(needs_root_tracefs, kymo_bin, tmp_path):
    with relays(kymo_bin, tmp_path / "relay") as begin:
        yield begin()


def test_recording_at_a_relay(kymo, kymo_bin, relay, tmp_path):
    """kymo://HOST/NAME is followed, listed, and read when it is complete."""
    recorder = subprocess.Popen([kymo_bin, "record", "-o", relay.address("shop"), "-k", "sched_switch,sched_process_fork"],
                                stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 120
    while "/shop (" not in kymo("print", f"kymo://localhost:{relay.port}", code=None).out:
        assert time.monotonic() < end and recorder.poll() is None
        time.sleep(0.1)
    reader = Follower(kymo_bin, tmp_path / "live", "print", "--live", relay.address("shop"))
    report = Follower(kymo_bin, tmp_path / "report", "report", "--live", "--json", "cpu", relay.address("shop"))
    made = [Follower(kymo_bin, tmp_path / f"{kind}.out", "convert", "--live", "--to", kind, "-o", tmp_path / kind, relay.address("shop"))
            for kind in ("ctf1.8", "perfetto")]
    while open(reader.path, errors="replace").read().count("sched_process_fork") < 3:
        subprocess.run(["true"], check=True)  # an idle machine forks nothing
        assert reader.process.poll() is None, reader.process.stderr.read()
    assert int(kymo("print", "--count", relay.address("shop")).out) > 0
    recorder.terminate()
    recorder.communicate(timeout=120)
    printed = reader.end()
    # Formats that are written at the end say so.
    for one, kind in zip(made, ("ctf1.8", "perfetto")):
        _, said = one.process.communicate(timeout=120)
        assert one.process.returncode == 0 and f"waiting for the end of the recording, when {kind} is written" in said, said
    assert int(kymo("print", "--count", tmp_path / "ctf1.8").out) == printed.count("\n")
    assert os.path.getsize(tmp_path / "perfetto") > 1000
    said = kymo("convert", "--live", "--to", "ctf2", "-o", tmp_path / "x", "net://localhost/host/a/b", code=1).err
    assert "cannot convert net://localhost/host/a/b to ctf2 with --live: " in said and "try --to json" in said
    assert report.end().startswith("{")
    times = [line.split("]")[0] for line in printed.splitlines()]
    assert times == sorted(times)
    # Events of the same time come in the order of the streams, which the relay lists in another order.
    assert sorted(without_times(printed)) == sorted(without_times(kymo("print", relay.trace("shop")).out))
    assert sorted(without_times(kymo("print", relay.address("shop")).out)) == sorted(without_times(printed))


# ---- relays that lie ----------------------------------------------------------------------

METADATA = """/* CTF 1.8 */
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
trace { major = 1; minor = 8; byte_order = le;
  packet.header := struct { u32 magic; u32 stream_id; }; };
clock { name = c; freq = 1000000000; };
typealias integer { size = 64; align = 8; signed = false; map = clock.c.value; } := stamp;
stream { id = 0;
  packet.context := struct { stamp timestamp_begin; stamp timestamp_end; u64 content_size; u64 packet_size; };
  event.header := struct { u32 id; stamp timestamp; }; };
event { id = 0; name = "tick"; stream_id = 0; fields := struct { u32 n; }; };
"""


def packet(times):
    body = b"".join(struct.pack("<IQI", 0, ns, ns) for ns in times)
    bits = (40 + len(body)) * 8
    return struct.pack("<IIQQQQ", 0xC1FC1FC1, 0, times[0], times[-1], bits, bits) + body


class FakeRelay(threading.Thread):
    """Speaks the protocol as answers() says: a function for each command, which returns bytes, or None to hang up."""

    def __init__(self, **answers):
        super().__init__(daemon=True)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.address = f"net://127.0.0.1:{self.server.getsockname()[1]}/host/h/s"
        self.answers, self.metadata_sent, self.indexes = answers, False, 0
        self.start()

    def run(self):
        while True:
            try:
                connection, _ = self.server.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    @staticmethod
    def take(connection, n):
        data = b""
        while len(data) < n:
            piece = connection.recv(n - len(data))
            if not piece:
                raise ConnectionError
            data += piece
        return data

    def serve(self, connection):
        names = {1: "connect", 2: "list", 3: "attach", 4: "index", 5: "packet", 6: "metadata", 7: "streams", 8: "create"}
        state = {"metadata": False, "index": 0}
        try:
            while True:
                size, command, _ = struct.unpack(">QII", self.take(connection, 16))
                request = self.take(connection, size)
                name = names[command]
                answer = self.answers.get(name, getattr(self, "do_" + name))(state, request)
                if answer is None:
                    break
                connection.sendall(answer)
        except (ConnectionError, OSError):
            pass
        connection.close()

    def do_connect(self, _state, request):
        return struct.pack(">QIII", 7, 2, 4, 1)

    def do_list(self, _state, _request):
        return struct.pack(">IQIII64s255s", 1, 1, 1000000, 0, 2, b"h", b"s")

    def do_create(self, _state, _request):
        return struct.pack(">I", 1)

    @staticmethod
    def stream(number, is_metadata, name):
        return struct.pack(">QQI4096s255s", number, 5, is_metadata, b"h/s/ust/uid/0/64-bit", name)

    def do_attach(self, _state, _request):
        return struct.pack(">II", 1, 2) + self.stream(1, 1, b"metadata") + self.stream(2, 0, b"c_0")

    def do_metadata(self, state, _request):
        if state["metadata"]:
            return struct.pack(">QI", 0, 2)
        state["metadata"] = True
        return struct.pack(">QI", len(METADATA), 1) + METADATA.encode()

    @staticmethod
    def index_of(data, status=1, flags=0, end=0):
        return struct.pack(">QQQQQQQII", 0, len(data) * 8, len(data) * 8, 0, end, 0, 0, status, flags)

    PACKET = packet([10, 20, 30])

    def do_index(self, state, _request):
        state["index"] += 1
        if state["index"] == 1:
            return self.index_of(self.PACKET, end=30)
        return self.index_of(b"", status=3)

    def do_packet(self, _state, request):
        _, offset, size = struct.unpack(">QQI", request)
        return struct.pack(">III", 1, size, 0) + self.PACKET[offset:offset + size]

    def do_streams(self, _state, _request):
        return struct.pack(">II", 4, 0)


def test_relay_that_is_right(kymo):
    relay = FakeRelay()
    for options in ([], ["--live"]):
        done = kymo("print", *options, "--clock-seconds", relay.address)
        assert [line.split("]")[0] for line in done.out.splitlines()] == [
            "[0.000000010", "[0.000000020", "[0.000000030"]


def test_packet_without_bytes(kymo):
    """A relay says so that there are new streams; the reader asks for these, and goes on."""
    def index(state, _request):
        state["index"] += 1
        if state["index"] == 1:
            return FakeRelay.index_of(b"", flags=2)
        return FakeRelay.index_of(*((FakeRelay.PACKET, 1, 0, 30) if state["index"] == 2 else (b"", 3)))

    for options in ([], ["--live"]):
        assert kymo("print", *options, FakeRelay(index=index).address).out.count("tick") == 3
    endless = FakeRelay(index=lambda s, r: FakeRelay.index_of(b"", flags=2))
    assert "packets without bytes" in kymo("print", endless.address, code=1).err


def hang_up(_state, _request):
    return None


def attach_to(count, metadata_of):
    """Metadata @count times, all with one path: metadata_of(i): the number of the trace."""
    return lambda _state, _request: struct.pack(">II", 1, count) + b"".join(
        struct.pack(">QQI4096s255s", i, metadata_of(i), 1, b"host/s/ust", b"metadata") for i in range(count))


HOSTILE = {
    "many traces": ({"attach": attach_to(5000, lambda i: i)}, "too many traces"),
    "much metadata": ({"attach": attach_to(100, lambda i: 1)}, "too much metadata"),
    "version": ({"connect": lambda s, r: struct.pack(">QIII", 7, 3, 4, 1)}, "version 3.4"),
    "old version": ({"connect": lambda s, r: struct.pack(">QIII", 7, 2, 1, 1)}, "version 2.1"),
    "no greeting": ({"connect": hang_up}, "closed the connection"),
    "many sessions": ({"list": lambda s, r: struct.pack(">I", 0xffffffff)}, "too many sessions"),
    "many streams": ({"attach": lambda s, r: struct.pack(">II", 1, 0xffffffff)}, "too many streams"),
    "attach": ({"attach": lambda s, r: struct.pack(">II", 4, 0)}, "the session is not live"),
    "unknown status": ({"attach": lambda s, r: struct.pack(">II", 99, 0)}, "attach"),
    "metadata size": ({"metadata": lambda s, r: struct.pack(">QI", 1 << 62, 1)}, "metadata is too large"),
    "metadata error": ({"metadata": lambda s, r: struct.pack(">QI", 0, 3)}, "metadata"),
    "packet size": ({"index": lambda s, r: struct.pack(">QQQQQQQII", 0, 1 << 63, 8, 0, 0, 0, 0, 1, 0)}, "impossible size"),
    "no bits": ({"index": lambda s, r: struct.pack(">QQQQQQQII", 0, 0, 0, 0, 0, 0, 0, 1, 0)}, "impossible size"),
    "odd bits": ({"index": lambda s, r: struct.pack(">QQQQQQQII", 0, 1001, 8, 0, 0, 0, 0, 1, 0)}, "impossible size"),
    "index status": ({"index": lambda s, r: struct.pack(">QQQQQQQII", 0, 8, 8, 0, 0, 0, 0, 77, 0)}, "unknown status"),
    "index error": ({"index": lambda s, r: struct.pack(">QQQQQQQII", 0, 8, 8, 0, 0, 0, 0, 4, 0)}, "files"),
    "other bytes": ({"packet": lambda s, r: struct.pack(">III", 1, 7, 0) + b"1234567"}, "another size"),
    "no packet": ({"packet": lambda s, r: struct.pack(">III", 3, 0, 0)}, "does not have a packet"),
    "cut": ({"packet": hang_up}, "closed the connection"),
}


@pytest.mark.parametrize("options", [[], ["--live"]])
@pytest.mark.parametrize("what", HOSTILE)
def test_relay_that_lies(kymo, what, options):
    answers, text = HOSTILE[what]
    done = kymo("print", *options, FakeRelay(**answers).address, code=1)
    assert text in done.err, done.err


def test_relay_that_always_has_an_answer(kymo, kymo_bin):
    """A reader takes metadata without bytes for no metadata; Ctrl-C ends a reader whose relay always has new streams."""
    asked = []

    def more(_state, _request):
        asked.append(len(asked))
        return struct.pack(">II", 1, 50) + b"".join(FakeRelay.stream(100 * len(asked) + i, 0, b"c") for i in range(50))

    empty = FakeRelay(metadata=lambda s, r: struct.pack(">QI", 0, 1))
    assert "there is no trace yet" in kymo("print", empty.address, code=1).err
    endless_streams = FakeRelay(index=lambda s, r: FakeRelay.index_of(b"", 5, 2, 1), streams=more)
    reader = subprocess.Popen([kymo_bin, "print", "--live", endless_streams.address], stderr=subprocess.PIPE, text=True)
    while len(asked) < 5:
        time.sleep(0.01)
    before = len(asked)
    reader.send_signal(signal.SIGINT)
    assert reader.wait(60) == 0, reader.stderr.read()
    reader.stderr.close()
    assert len(asked) < before + 1000


def test_connection_that_breaks(kymo):
    """What has come is printed before the error."""
    def cut(state, request):
        state["index"] += 1
        return FakeRelay.index_of(FakeRelay.PACKET, end=30) if state["index"] == 1 else None

    done = kymo("print", "--live", FakeRelay(index=cut).address, code=1)
    assert done.out.count("tick") == 3 and "closed the connection" in done.err


def test_packet_that_is_none(kymo):
    """Damage in a packet is an error with its place."""
    done = kymo("print", "--live", FakeRelay(packet=lambda s, r: struct.pack(">III", 1, struct.unpack(">QQI", r)[2], 0) +
                                             b"\xff" * struct.unpack(">QQI", r)[2]).address, code=1)
    assert "c_0: " in done.err


def test_names_that_a_relay_chooses(kymo):
    """A name with control characters or a path of its own stays a name."""
    def attach(_state, _request):
        return (struct.pack(">II", 1, 3) + FakeRelay.stream(1, 1, b"metadata") +
                FakeRelay.stream(2, 0, b"../../etc/\x1b[31m") + FakeRelay.stream(3, 0, b"../../etc/\x1b[31m"))

    done = kymo("info", FakeRelay(attach=attach).address)
    assert "\x1b" not in done.out and "/etc/" not in done.out and "-2" in done.out


def endless(n_packets, per_packet):
    """A session with so many packets, which end."""

    def index(state, _request):
        state["index"] += 1
        at = state["index"]
        if at > n_packets:
            return FakeRelay.index_of(b"", status=3)
        state["data"] = packet(range(at * 1000000, at * 1000000 + per_packet))
        return FakeRelay.index_of(state["data"], end=at * 1000000 + per_packet - 1)

    def send(state, request):
        _, offset, size = struct.unpack(">QQI", request)
        return struct.pack(">III", 1, size, 0) + state["data"][offset:offset + size]

    return FakeRelay(index=index, packet=send)


def test_endless_session(kymo_bin, tmp_path):
    """A reader keeps what it has not read, and no more: its memory does not grow with the session."""
    n_packets, per_packet = 300, 40000
    relay = endless(n_packets, per_packet)
    done = subprocess.run(["/usr/bin/env", "python3", "-c", """
import resource, subprocess, sys
code = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL).returncode
print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
""", kymo_bin, "print", "--live", relay.address], capture_output=True, text=True, timeout=300, check=True)
    code, kilobytes = map(int, done.stdout.split())
    total = n_packets * per_packet * 16
    assert code == 0 and kilobytes * 1024 < total / 2, (done.stdout, total)


@pytest.mark.parametrize("command", [["print"], ["info"], ["report", "summary"], ["convert", "--to", "json"]])
def test_space_for_what_comes(kymo, command):
    """Packets are kept up to --relay-space; a reader that follows drops what it has read."""
    done = kymo(*command, "--relay-space", "5M", endless(20, 40000).address, code=1)
    assert "--relay-space: what the relay sends takes more than 5.0 MiB; give a larger size" in " ".join(done.err.split()), done
    if command == ["print"]:
        live = kymo(*command, "--live", "--relay-space", "5M", endless(20, 40000).address)
        assert live.out.count("\n") == 20 * 40000 and not live.err
        assert kymo("print", "--count", "--relay-space", "20M", endless(20, 40000).address).out == f"{20 * 40000}\n"
    # One packet that is too large does not come at all.
    done = kymo(*command, "--live", "--relay-space", "500k", endless(20, 40000).address, code=1)
    assert "what the relay sends takes more than 500.0 KiB" in done.err


@pytest.mark.parametrize("address", ["net://", "net:///host/a/b", "net://h/a/b", "net://h:x/host/a/b", "net://h/host/a",
                                     "kymo://", "kymo://h:99999/a", "kymo://h/a/b/c"])
def test_addresses_that_are_none(kymo, address):
    assert address in kymo("print", address, code=2).err or "port" in kymo("print", address, code=2).err


def test_nobody_answers(kymo):
    assert "kymo" in kymo("print", f"net://127.0.0.1:{free_port()}/host/a/b", code=1).err
