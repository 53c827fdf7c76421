# SPDX-License-Identifier: MIT
"""Peers that use the protocols against a relay, or against a recorder."""

import contextlib
import glob
import json
import os
import random
import re
import resource
import signal
import socket
import struct
import subprocess
import threading
import time

import pytest

from conftest import SANITIZED
from lttng_daemon import Daemon
from relays import relays
from test_network import METADATA, MODES, OPEN, OPENED, PATCH, REMOVE, STREAM, data, frame, hello, symbols, talk
from viewer import OK, Viewer

pytestmark = pytest.mark.usefixtures("needs_root_tracefs")

WELCOME, ACK, READERS, BEACON, BYE = 5, 6, 7, 12, 17
HEAD_BYTES = 24


def answer(kind, value):
    return frame(kind, struct.pack("<Q", value))


def numbers_of(client):
    """The numbers of the frames that a recorder sends, as they are whole."""
    with client.makefile("rb") as stream:
        while len(head := stream.read(HEAD_BYTES)) == HEAD_BYTES:
            kind, _, number, size = struct.unpack("<IIQQ", head)
            stream.read(size)
            yield kind, number


@contextlib.contextmanager
def hostile_relay(serve):
    """A port whose connections get serve(client), one thread each."""
    def take(client):
        with client, contextlib.suppress(ConnectionError):
            serve(client)

    def accept(server):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=take, args=(server.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=accept, args=(server,), daemon=True).start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)


# ---- a recorder's relay ---------------------------------------------------------------------------

def test_acknowledgement_of_what_is_not_sent(kymo_bin):
    """The recorder keeps frames that the relay cannot have: it ends the connection."""
    def serve(client):
        client.sendall(answer(WELCOME, 1) + b"".join(answer(ACK, number) for number in range(2, 5000)))
        for _ in numbers_of(client):
            pass

    with hostile_relay(serve) as port:
        done = subprocess.run([kymo_bin, "record", "-o", f"kymo://localhost:{port}/x", "--user", "modes:*", "--", MODES,
                               "numbers", "100000", "0"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1 and "Protocol error" in done.stderr, done.stderr


def test_relay_that_talks_without_end(kymo_bin):
    """Its answers do not keep the recorder from sending, nor from its end."""
    def flood(client):
        word = (answer(READERS, 20) + answer(READERS, 30)) * 10000
        with contextlib.suppress(OSError):
            while True:
                client.sendall(word)

    def serve(client):
        client.sendall(answer(WELCOME, 1))
        talker = None
        for kind, number in numbers_of(client):
            if kind == BYE:
                client.sendall(answer(ACK, number + 1))
            elif not talker:
                talker = threading.Thread(target=flood, args=(client,), daemon=True)
                talker.start()

    with hostile_relay(serve) as port:
        done = subprocess.run([kymo_bin, "record", "-o", f"kymo://localhost:{port}/x", "--user", "modes:*", "--", MODES,
                               "numbers", "10", "0"], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_relay_that_takes_its_time(kymo_bin):
    """A relay makes some progress every few seconds, which the recorder waits for; Ctrl-C gives up."""
    has_all = threading.Event()

    def serve(client):
        client.sendall(answer(WELCOME, 1))
        for kind, number in numbers_of(client):
            if number == 1:
                client.sendall(answer(ACK, 2))
            if kind == BYE:
                has_all.set()

    with hostile_relay(serve) as port:
        recorder = subprocess.Popen([kymo_bin, "record", "-o", f"kymo://localhost:{port}/x", "--user", "modes:*", "--", MODES,
                                     "numbers", "10", "0"], stderr=subprocess.PIPE, text=True)
        assert has_all.wait(60)
        # A signal that comes with the end is no second one: the first may be too early.
        while recorder.poll() is None:
            recorder.send_signal(signal.SIGINT)
            time.sleep(0.2)
        said = recorder.stderr.read()
    assert recorder.returncode == 1 and "has not taken all: the last" in said, said


# ---- a relay's clients ----------------------------------------------------------------------------

@pytest.fixture
def small_disk(tmp_path):
    """A directory on a disk of its own, of 1 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", place], check=True)
    yield place
    subprocess.run(["umount", "-l", place], check=True)


def test_new_recording_on_a_full_disk(kymo_bin, small_disk):
    """The relay refuses it, and goes on: other recordings may be on its other disks, or wait for room."""
    with relays(kymo_bin, small_disk) as begin:
        here = begin()
        with contextlib.suppress(OSError), open(small_disk / "filler", "wb", buffering=0) as filler:
            while filler.write(bytes(4096)):
                pass
        assert b"No space left" in talk(here.port, hello())
        os.remove(small_disk / "filler")
        assert b"No space left" not in talk(here.port, OPENED, data(0, 0, 0, b"x", 1))
        assert os.path.exists(here.trace("session") + "/kernel/a")


HIDING = [("archives", "s", "t"), ("metadata", "s", "t"), ("kernel", "index", "t"), ("ust", "pid", "t"), ("ust", "uid", "t"),
          ("victim", "ust", "pid"), ("victim", "ust", "uid/x"), ("victim", "kernel", "index"), ("victim", "archives", "t")]


VICTIMS = {("victim", "first"), ("victim", "kernel-2"), ("victim", "ust-2"), ("victim", "ust-3"), ("victim", "archives-2")}


def shown(kymo, here):
    return {(one["host"], one["name"]) for one in json.loads(kymo("sessions", "--json", here.address("")).out)["recordings"]}


def test_names_that_would_hide_other_recordings(kymo_bin, kymo, tmp_path):
    """Neither the relay's directory nor a host's becomes a recording: others are shown, and their hosts go on."""
    with relays(kymo_bin, tmp_path) as begin:
        here = begin()
        talk(here.port, hello(b"victim", b"first", session=b"1" * 16), frame(OPEN, struct.pack("<I", 0) + b"kernel", 1))
        for i, names in enumerate(HIDING):
            host, name, trace = (text.encode() for text in names)
            is_refused = host in (b"archives", b"metadata")
            opened = [] if is_refused else [frame(OPEN, struct.pack("<I", 0) + trace, 1)]
            said = talk(here.port, hello(host, name, session=b"%016d" % i), *opened)
            assert (b"try another host name" in said) == is_refused, said
        assert os.path.isdir(here.dir + "/victim/ust-2/pid")
        assert b"is a recording" not in talk(here.port, hello(b"victim", b"again", session=b"9" * 16))
        assert os.path.isdir(here.dir + "/victim/again")
        assert shown(kymo, here) >= VICTIMS | {("ust", "pid-2"), ("ust", "uid-2"), ("kernel", "index-2")}
    # Nor do files that are there for another reason.
    os.mkdir(here.dir + "/archives")
    with relays(kymo_bin, tmp_path) as begin:
        assert shown(kymo, begin()) >= VICTIMS


def test_beacon_in_a_directory_that_is_gone(kymo_bin, tmp_path):
    with relays(kymo_bin, tmp_path) as begin:
        got = talk(begin().port, OPENED, frame(REMOVE, b"kernel", 0, 1), frame(BEACON, bytes(8), 1, 2))
        assert b"cannot write for live readers: No such file or directory" in got


def test_much_work_for_few_bytes(kymo_bin, tmp_path):
    """A beacon of 32 bytes costs several system calls: others get their turn among them."""
    def flood(port, number):
        with socket.create_connection(("127.0.0.1", port)) as client, contextlib.suppress(OSError):
            client.sendall(OPENED.replace(b"x" * 16, b"%016d" % number))
            for first in range(1, 1 << 30, 10000):
                client.sendall(b"".join(frame(BEACON, bytes(8), 1, first + i) for i in range(10000)))

    with relays(kymo_bin, tmp_path) as begin:
        here = begin()
        floods = [threading.Thread(target=flood, args=(here.port, i)) for i in range(8)]
        for one in floods:
            one.start()
        time.sleep(2)
        with socket.create_connection(("127.0.0.1", here.port), timeout=30) as client:
            client.sendall(hello(session=b"y" * 16))
            assert client.recv(HEAD_BYTES)[0] == WELCOME
        here.end()
        for one in floods:
            one.join()


def memory_kb(process):
    with open(f"/proc/{process.pid}/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1))


def test_numbers_of_streams_take_no_memory(kymo_bin, tmp_path):
    """A trace has one stream, with the highest number that the protocol allows."""
    with relays(kymo_bin, tmp_path) as begin:
        here = begin()
        before_kb = memory_kb(here.process)
        assert b"" != talk(here.port, hello(), *(
            frame(OPEN, struct.pack("<I", 0) + b"t%d" % trace, trace) +
            frame(STREAM, struct.pack("<II", 65535, 0) + b"a", trace) for trace in range(1, 101)))
        assert memory_kb(here.process) - before_kb < 32768


def test_streams_of_an_lttng_daemon_take_little_memory(kymo_bin, tmp_path):
    with relays(kymo_bin, tmp_path, "--lttng", "localhost:0,0") as begin:
        here = begin()
        with Daemon(here.lttng) as daemon:
            daemon.create("many")
            daemon.chunk(1)
            before_kb = memory_kb(here.process)
            for _ in range(4000):
                assert daemon.add("metadata")
            assert SANITIZED or memory_kb(here.process) - before_kb < 8192


@pytest.mark.parametrize("frames", [
    # Packets without bytes, of which the index has an entry.
    [data(0, 0, entry, b"", entry + 1) for entry in range(2000)],
    # Far away, with a hole in front.
    [data(0, 1 << 40, 0, b"x", 1), frame(REMOVE, b"kernel", 0, 2)],
    [data(0, 0, 1 << 30, b"x", 1), frame(REMOVE, b"kernel", 0, 2)],
    # Symbols.
    [symbols(b"%d.kdi" % i, b"", i) for i in range(1, 100)],
    [symbols(b"kallsyms", b"x" * 200000, 1), symbols(b"kallsyms", b"x", 2)],
    # Metadata that grows by changes.
    [frame(METADATA, b"x", 1, 1)] + [frame(PATCH, struct.pack("<Q", 1 + 4000 * i) + b"x" * 4000, 1, i + 2) for i in range(30)],
], ids=["index", "hole", "hole in the index", "files of symbols", "symbols", "changes"])
def test_quota_counts_whatever_takes_room(kymo_bin, tmp_path, frames):
    with relays(kymo_bin, tmp_path / "relay", "--quota", "100k") as begin:
        here = begin()
        talk(here.port, OPENED, *frames)
        assert "the quota of evil is used up" in here.end()


def entries(place):
    return sum(len(files) + len(directories) for _, directories, files in os.walk(place))


@pytest.mark.parametrize("what", ["sessions", "traces", "streams"])
def test_quota_counts_files_and_directories(kymo_bin, tmp_path, what):
    """Of recordings without a byte, 4 KiB each; a relay that begins anew counts the same."""
    with relays(kymo_bin, tmp_path / "relay", "--quota", "400k") as begin:
        here = begin()
        if what == "sessions":
            for i in range(200):
                with socket.create_connection(("127.0.0.1", here.port)) as client:
                    client.sendall(hello(session=b"%016d" % i))
                    assert client.recv(HEAD_BYTES)
        elif what == "traces":
            talk(here.port, hello(), *[frame(OPEN, struct.pack("<I", 0) + b"t%d" % i, i) + frame(METADATA, b"", i, i)
                                       for i in range(1, 200)])
        else:
            streams = b"".join(frame(STREAM, struct.pack("<II", i, 0) + b"s%d" % i, 1) for i in range(200))
            talk(here.port, hello(), frame(OPEN, struct.pack("<I", 0) + b"t", 1), streams,
                 *[data(i, 0, 0, b"", i + 1) for i in range(200)])
        assert "the quota of evil is used up" in here.end()
        assert 50 < entries(here.dir + "/evil") < 110
        # Refused recorders leave nothing: each recording has a state there.
        assert what != "sessions" or entries(here.dir + "/.kymo") < 110
        here.begin()
        talk(here.port, hello(session=b"another session."), frame(OPEN, struct.pack("<I", 0) + b"t", 1))
        assert "the quota of evil is used up" in here.end()


def test_quota_counts_what_is_not_whole(kymo_bin, tmp_path):
    """Parts of packets, in one recording after the other; metadata that is not whole goes."""
    with relays(kymo_bin, tmp_path / "relay", "--quota", "100k") as begin:
        here = begin()
        for i in range(20):
            half = data(0, 0, 0, b"x" * 20000, 1)[:-1] if i % 2 else frame(METADATA, b"x" * 20000, 1, 1)[:-1]
            talk(here.port, OPENED.replace(b"x" * 16, b"%016d" % i), half)
        assert "the quota of evil is used up" in here.end()
        assert sum(os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(here.dir + "/evil")
                   for name in names) < 200000


@pytest.mark.parametrize("what", ["metadata", "packet", "symbols"])
def test_quota_ends_what_is_coming(kymo_bin, tmp_path, what):
    """A client does not get the size that one frame may have beyond its quota; parts of files that come again count no more."""
    size = 15 << 20
    frames = {"metadata": [frame(METADATA, b"m" * size, 1, 1)], "packet": [data(0, 0, 0, b"p" * size, 1)],
              "symbols": [symbols(b"kallsyms", b"s" * size, 1)]}[what]
    with relays(kymo_bin, tmp_path / "relay", "--quota", "1M") as begin:
        here = begin()
        # Half of the frame: its end would be checked in any case.
        halves = OPENED + frames[0][:-size // 2]
        with socket.create_connection(("127.0.0.1", here.port)) as client:
            with contextlib.suppress(ConnectionError):
                client.sendall(halves)
                while client.recv(1000):
                    pass
        size = sum(os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(here.dir) for name in names)
        assert size < 3 << 20
        # Of a packet, the part stays.
        said = talk(here.port, OPENED.replace(b"x" * 16, b"y" * 16), data(0, 0, 0, b"x", 1))
        assert (b"used up" in said) == (what == "packet"), said
        assert "the quota of evil is used up" in here.end()


def test_states_of_many_sessions(kymo_bin, tmp_path):
    """Old ones go, a part at a time: so many do not hold up others. Those of sessions that are not complete stay."""
    with relays(kymo_bin, tmp_path) as begin:
        here = begin()
        for i in range(500):
            talk(here.port, hello(name=b"n%d" % (i % 50), session=b"%016d" % i), *([frame(BYE, b"", 0, 1)] if i else []))
        here.end()
        states = glob.glob(here.dir + "/.kymo/*")
        assert len(states) == 500
        for state in states:
            os.utime(state, (0, 0))
        here.begin()
        end = time.monotonic() + 60
        while len(left := os.listdir(here.dir + "/.kymo")) > 1 and time.monotonic() < end:
            time.sleep(0.1)
        assert left == [(b"%016d" % 0).hex()]


def test_log_of_a_flood(kymo_bin, tmp_path):
    """Clients cannot fill the disk of the relay's log, nor hold it up by that; what is left out is counted."""
    n = 4000
    with relays(kymo_bin, tmp_path) as begin:
        here, began = begin(), time.monotonic()
        for _ in range(n):
            with socket.create_connection(("127.0.0.1", here.port)) as client:
                client.sendall(frame(99))
                with contextlib.suppress(ConnectionResetError):
                    client.recv(1000)
        said = here.end()
        seconds = time.monotonic() - began
    lines = said.count("frame of unknown type")
    left_out = sum(map(int, re.findall(r"(\d+) messages were left out", said)))
    assert lines + left_out == n and 1000 < lines <= 2000 + 20 * (seconds + 1), (lines, left_out, seconds)


def test_paths_that_are_deep(kymo_bin, tmp_path):
    """Each component costs the relay work, and all above it once more."""
    with relays(kymo_bin, tmp_path) as begin:
        here = begin()
        deep = b"/".join([b"d"] * 2000)
        assert b"a path cannot be used" in talk(here.port, hello(), frame(OPEN, struct.pack("<I", 0) + deep, 1))
        assert b"a path cannot be used" in talk(here.port, OPENED.replace(b"x" * 16, b"y" * 16), frame(REMOVE, deep, 0, 1))
        assert entries(here.dir + "/evil/session") == 0


def test_removed_files_give_room(kymo_bin, tmp_path):
    """A recorder that removes what it has sent can go on for ever."""
    frames = []
    for i in range(10):
        frames += [data(0, 0, 0, b"x" * 60000, 3 * i + 1),
                   frame(16, struct.pack("<II", 1, 0) + b"archives/cleared/kernel", 1, 3 * i + 2),
                   frame(REMOVE, b"archives/cleared", 0, 3 * i + 3)]
    with relays(kymo_bin, tmp_path / "relay", "--quota", "100k") as begin:
        here = begin()
        talk(here.port, OPENED, *frames)
        assert "quota" not in here.end()


def test_files_of_one_client_are_not_all(kymo_bin, kymo, tmp_path):
    """A client opens as many traces as the relay has descriptors, and comes again; a recorder gets its own all the same."""
    stops = threading.Event()
    traces = b"".join(frame(OPEN, struct.pack("<I", 0) + b"t%d" % i, i) for i in range(1, 120))

    def take_files(port):
        while not stops.is_set():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(hello() + traces)
                client.settimeout(0.1)
                while not stops.is_set():
                    with contextlib.suppress(TimeoutError):
                        if not client.recv(1000):
                            break

    with relays(kymo_bin, tmp_path) as begin:
        here = begin()
        resource.prlimit(here.process.pid, resource.RLIMIT_NOFILE, (256, 256))
        taker = threading.Thread(target=take_files, args=(here.port,))
        taker.start()
        while not glob.glob(f"{here.dir}/evil/session/t100"):
            time.sleep(0.01)
        assert "; 0 lost" in kymo("record", "-o", here.address("good"), "-k", "sched_process_*", "-d", "50ms").err
        stops.set()
        taker.join()
        assert "open files while others want some" in here.end()


# ---- a relay's viewers ----------------------------------------------------------------------------

def test_large_answers_do_not_hold_up_other_viewers(kymo_bin, tmp_path):
    """A viewer that takes gigabytes as fast as they come; another one gets its answers meanwhile, and large ones are whole."""
    trace = tmp_path / "host" / "large" / "kernel"
    (trace / "index").mkdir(parents=True)
    (trace / "metadata").write_text("/* CTF 1.8 */\n")
    content = random.Random(1).randbytes(20 << 20)
    (trace / "a").write_bytes(content)
    os.truncate(trace / "a", 4 << 30)
    (trace / "index" / "a.idx").write_bytes(struct.pack(">4I", 0xC1F1DCC1, 1, 1, 72) + struct.pack(">9Q", 0, 32768, 32768, 1, 2, *[0] * 4))

    def open_stream(viewer):
        viewer.create()
        _, streams = viewer.attach(viewer.sessions()[0].id)
        return next(stream.id for stream in streams if not stream.is_metadata)

    def devour(viewer, stream):
        with contextlib.suppress(OSError):
            for _ in range(32):
                viewer.send(5, struct.pack(">QQI", stream, 0, 0xFFFFF000))
            while viewer.socket.recv(1 << 20, socket.MSG_TRUNC):
                pass

    with relays(kymo_bin, tmp_path, "--live", "localhost:0") as begin:
        here = begin()
        with Viewer(here.live) as greedy, Viewer(here.live) as other:
            eater = threading.Thread(target=devour, args=(greedy, open_stream(greedy)))
            eater.start()
            stream = open_stream(other)
            for _ in range(20):
                assert len(other.sessions()) == 1
            assert other.packet(stream, 0, len(content)) == (OK, content)
            greedy.socket.shutdown(socket.SHUT_RDWR)
            eater.join()
