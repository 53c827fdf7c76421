# SPDX-License-Identifier: MIT
"""kymo relay --lttng: sessions of LTTng, from its real daemons and from a client that speaks their protocol."""

import contextlib
import glob
import itertools
import json
import os
import random
import re
import resource
import signal
import socket
import struct
import subprocess
import time

import pytest

import lttng_daemon
from conftest import SANITIZED
from lttng_daemon import OK, Closed, Daemon
from relays import relays
from test_lttng_ust import assert_equal_text, lab, numbers  # noqa: F401 (a fixture)

pytestmark = pytest.mark.usefixtures("loopback")


@pytest.fixture
def relay(kymo_bin, tmp_path):
    with relays(kymo_bin, tmp_path / "relay", "--lttng", "localhost:0,0") as begin:
        yield begin


@contextlib.contextmanager
def peer_relay(env, path):
    """lttng-relayd, with the options that make a session use it."""
    with socket.create_server(("127.0.0.1", 0)) as a, socket.create_server(("127.0.0.1", 0)) as b, \
            socket.create_server(("127.0.0.1", 0)) as c:
        ports = [one.getsockname()[1] for one in (a, b, c)]
    urls = [f"tcp4://127.0.0.1:{port}" for port in ports]
    with subprocess.Popen(["lttng-relayd", f"--output={path}", "-C", urls[0], "-D", urls[1], "-L", urls[2]], env=env,
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as daemon:
        try:
            wait_for(lambda: socket.socket().connect_ex(("127.0.0.1", ports[2])) == 0)
            yield [f"--ctrl-url={urls[0]}", f"--data-url={urls[1]}"]
        finally:
            daemon.terminate()


def wait_for(what, seconds=120):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end
        time.sleep(0.02)


def without_times(text):
    """Lines without times and CPUs: the program may move between what it does for one session and the next."""
    return [re.sub(r"^\[.*?\] \(.*?\) |cpu_id = \d+", "", line) for line in text.splitlines()]


# ---- LTTng's own daemons ----------------------------------------------------------------------


@pytest.mark.parametrize("live", [[], ["--live=100000"]])
def test_same_as_lttng_relayd(kymo, peer, lab, relay, tmp_path, live):
    """The same events at the same time to a directory, lttng-relayd and Kymo: the same text, and the same metadata."""
    here, name = relay(), f"same{len(live)}"
    with peer_relay(lab.env, tmp_path / "peer") as urls:
        for to, create in (("dir", [] if live else [f"--output={tmp_path}/dir"]), ("peer", live + urls),
                           ("kymo", live + here.lttng_options())):
            if create:
                lab.session(f"{name}-{to}", create=create)
        lab.run("./prog", 0, 500, 1000)
        lab.run("./kinds", 50)
        for to in ("dir", "peer", "kymo")[bool(live):]:
            lab.end(f"{name}-{to}")
    ours = here.trace(f"{name}-kymo")
    theirs, = glob.glob(f"{tmp_path}/peer/*/*")
    text = assert_equal_text(kymo, peer, ours)
    assert numbers(text.out) == list(range(500)) and text.out.count("kinds:") == 100
    assert without_times(text.out) == without_times(kymo("print", theirs).out)
    if not live:
        assert without_times(text.out) == without_times(kymo("print", tmp_path / "dir").out)
    assert sorted(os.path.relpath(path, ours) for path in glob.glob(f"{ours}/**", recursive=True)) == sorted(
        os.path.relpath(path, theirs) for path in glob.glob(f"{theirs}/**", recursive=True))
    said = here.end()
    assert f"{name}-kymo: complete" in said and "warning" not in said
    for place, _, names in os.walk(here.dir):
        assert not [name for name in names if name.startswith(".")]
        assert os.stat(place).st_mode & 0o777 == 0o700
        assert all(os.stat(os.path.join(place, name)).st_mode & 0o777 == 0o600 for name in names)


def test_buffers_of_each_process(kymo, peer, lab, relay):
    here = relay()
    lab.session("pids", "--buffers-pid", create=here.lttng_options())
    for first in range(0, 500, 100):
        lab.run("./prog", first, 100)
    lab.end("pids")
    text = assert_equal_text(kymo, peer, here.trace("pids"))
    assert numbers(text.out) == list(range(500))
    assert len(glob.glob(here.trace("pids") + "/ust/pid/*")) == 5


def test_rotations(kymo, peer, lab, relay):
    """Chunks are whole traces of their own, with each event once; the session's directory has all."""
    here = relay()
    lab.session("rot", "--subbuf-size=4096", "--num-subbuf=64", create=here.lttng_options())
    for first in (0, 1000, 2000):
        with lab.popen("./prog", first, 1000, 3000) as program:
            # Without a program, the first chunk has no trace.
            wait_for(lambda: glob.glob(here.dir + "/*/rot/ust/uid/*/64-bit/metadata"))
            said = lab.run("lttng", "rotate", "rot")
            assert "is now readable on relay" in said and "/rot/archives/" in said
            program.wait()
    lab.end("rot")
    trace = here.trace("rot")
    assert sorted(os.listdir(trace)) == ["archives"]
    found = []
    for chunk in sorted(glob.glob(f"{trace}/archives/*"), key=lambda path: int(path.rsplit("-", 1)[1])):
        assert re.fullmatch(r"\d{8}T\d{6}\+0000-\d{8}T\d{6}\+0000-\d+", os.path.basename(chunk))
        found.append(numbers(assert_equal_text(kymo, peer, chunk).out))
    assert len(found) == 4 and sum(found, []) == sorted(sum(found, [])) == list(range(3000))
    assert numbers(assert_equal_text(kymo, peer, trace).out) == list(range(3000))


def test_rotation_by_schedule_and_clear(kymo, peer, lab, relay):
    """lttng enable-rotation, then lttng clear: what came before is gone, what comes after is there."""
    here = relay()
    lab.session("sched", "--subbuf-size=4096", "--num-subbuf=64", create=here.lttng_options())
    lab.run("lttng", "enable-rotation", "-s", "sched", "--timer=200000")
    lab.run("./prog", 0, 2000, 50000)
    wait_for(lambda: len(glob.glob(here.trace("sched") + "/archives/*+0000-*+0000-*")) >= 3)
    lab.end("sched")
    assert numbers(assert_equal_text(kymo, peer, here.trace("sched")).out) == list(range(2000))
    lab.session("clear", "--subbuf-size=4096", create=here.lttng_options())
    lab.run("./prog", 0, 2000, 1000)
    lab.run("lttng", "clear", "clear")
    lab.run("./prog", 5000, 300, 1000)
    lab.end("clear")
    assert numbers(assert_equal_text(kymo, peer, here.trace("clear")).out) == list(range(5000, 5300))
    here.end()


def test_files_of_limited_size(kymo, peer, lab, relay):
    here = relay()
    lab.session("size", "--subbuf-size=4096", "--num-subbuf=64", "--tracefile-size=16384", create=here.lttng_options())
    lab.session("count", "--subbuf-size=4096", "--num-subbuf=64", "--tracefile-size=8192", "--tracefile-count=3",
                create=here.lttng_options())
    lab.run("./prog", 0, 3000, 2000)
    for name in ("size", "count"):
        lab.end(name)
    text = assert_equal_text(kymo, peer, here.trace("size"))
    assert numbers(text.out) == list(range(3000))
    files = glob.glob(here.trace("size") + "/ust/uid/*/64-bit/ch_*")
    assert len(files) > 4 and all(os.path.getsize(path) <= 16384 for path in files)
    found = numbers(assert_equal_text(kymo, peer, here.trace("count")).out)
    assert 0 < len(found) < 3000
    for cpu in range(os.cpu_count()):
        assert len(glob.glob(here.trace("count") + f"/ust/uid/*/64-bit/ch_{cpu}_*")) <= 3
    assert not glob.glob(here.trace("count") + "/ust/uid/*/64-bit/ch_*_3*")


def test_snapshots(kymo, peer, lab, relay):
    here = relay()
    lab.session("snap", "--subbuf-size=4096", "--num-subbuf=8", "--overwrite", create=["--snapshot", *here.lttng_options()])
    for first in (0, 1000):
        lab.run("./prog", first, 200, 1000)
        lab.run("lttng", "snapshot", "record", "-s", "snap")
    lab.run("lttng", "destroy", "snap")
    snapshots = sorted(glob.glob(here.trace("snap") + "/snapshot-*"))
    assert len(snapshots) == 2
    assert numbers(assert_equal_text(kymo, peer, snapshots[0]).out) == list(range(200))
    assert numbers(assert_equal_text(kymo, peer, snapshots[1]).out)[-200:] == list(range(1000, 1200))


def test_several_sessions_at_once(kymo, peer, lab, relay):
    here = relay()
    for i in range(4):
        lab.session(f"s{i}", "--subbuf-size=4096", "--num-subbuf=64", create=here.lttng_options() + (["--live=200000"] if i % 2 else []))
    programs = [lab.popen("./prog", first, 1000, 2000) for first in (0, 1000)]
    assert [program.wait() for program in programs] == [0, 0]
    for i in range(4):
        lab.end(f"s{i}")
    for i in range(4):
        assert sorted(numbers(assert_equal_text(kymo, peer, here.trace(f"s{i}")).out)) == list(range(2000))
    # A second session of the name.
    lab.session("s0", create=here.lttng_options())
    lab.end("s0")
    assert os.path.isdir(here.trace("s0-2"))


def test_live_readers(kymo, kymo_bin, lab, relay, tmp_path):
    """kymo print --live sees events while the session runs, and at the end all of them in order."""
    here = relay()
    lab.session("follow", "--subbuf-size=4096", create=["--live=100000", *here.lttng_options()])
    lab.run("./prog", 0, 10)
    wait_for(lambda: glob.glob(here.dir + "/*/follow/ust/uid/*/64-bit/metadata"))
    with open(tmp_path / "printed", "wb") as file:
        reader = subprocess.Popen([kymo_bin, "print", "--live", here.trace("follow")], stdout=file, stderr=subprocess.PIPE)
    printed = lambda: numbers((tmp_path / "printed").read_text())
    wait_for(lambda: printed() == list(range(10)))
    lab.run("./prog", 10, 100)
    wait_for(lambda: printed() == list(range(110)))
    # Metadata that comes later, with events of new classes.
    lab.run("./kinds", 5)
    wait_for(lambda: (tmp_path / "printed").read_text().count("kinds:") == 10)
    lab.run("./prog", 110, 50)
    lab.end("follow")
    assert reader.wait(timeout=120) == 0, reader.stderr.read()
    reader.stderr.close()
    assert printed() == list(range(160))
    text = kymo("print", here.trace("follow")).out
    assert without_times(text) == without_times((tmp_path / "printed").read_text())


def test_reader_before_the_first_program(kymo_bin, lab, relay, tmp_path):
    """The session is there for readers at the relay from its begin on: they wait for its first trace."""
    here = relay()
    lab.session("early", "--subbuf-size=4096", create=["--live=100000", *here.lttng_options()])
    with open(tmp_path / "printed", "wb") as file, open(tmp_path / "said", "wb") as said:
        reader = subprocess.Popen([kymo_bin, "print", "--live", here.address("early")], stdout=file, stderr=said)
    wait_for(lambda: "waiting: there is no trace yet" in (tmp_path / "said").read_text() or reader.poll() is not None)
    lab.run("./prog", 0, 10)
    wait_for(lambda: numbers((tmp_path / "printed").read_text()) == list(range(10)) or reader.poll() is not None)
    lab.end("early")
    assert reader.wait(timeout=120) == 0, (tmp_path / "said").read_text()
    assert numbers((tmp_path / "printed").read_text()) == list(range(10))


def consumers(home):
    """The consumer daemons of the session daemon in @home."""
    found = []
    for path in glob.glob("/proc/[0-9]*/environ"):
        with contextlib.suppress(OSError), open(path, "rb") as file, open(path.replace("environ", "comm")) as comm:
            if "lttng-consumerd".startswith(comm.read().strip()[:15]) and f"LTTNG_HOME={home}".encode() in file.read().split(b"\0"):
                found.append(int(path.split("/")[2]))
    return found


def test_consumer_that_is_killed(kymo, peer, lab, relay, tmp_path):
    """What has come is a readable trace; the relay serves others, and the session's name gets a number."""
    here = relay()
    killed = type(lab)(tmp_path)
    killed.build()
    killed.start()
    try:
        killed.session("kill", "--subbuf-size=4096", "--num-subbuf=64", create=here.lttng_options())
        killed.run("./prog", 0, 5000, 1000)
        wait_for(lambda: sum(map(os.path.getsize, glob.glob(here.dir + "/*/kill/ust/uid/*/64-bit/ch_*"))) > 100000)
        # The consumer daemon sends the metadata when it likes.
        wait_for(lambda: any(map(os.path.getsize, glob.glob(here.dir + "/*/kill/ust/uid/*/64-bit/.metadata.all"))))
        consumer, = consumers(tmp_path)
        os.kill(consumer, signal.SIGKILL)
    finally:
        killed.stop()
    wait_for(lambda: not glob.glob(here.dir + "/*/kill/ust/uid/*/64-bit/.live"))
    found = numbers(assert_equal_text(kymo, peer, here.trace("kill")).out)
    assert len(found) > 1000 and len(set(found)) == len(found)
    lab.session("other", create=here.lttng_options())
    lab.run("./prog", 0, 100)
    lab.end("other")
    assert numbers(kymo("print", here.trace("other")).out) == list(range(100))


# ---- the protocol -----------------------------------------------------------------------------


@pytest.fixture
def kernel(lttng_kernel):
    return os.path.join(getattr(lttng_kernel, "path", lttng_kernel), "kernel")


def test_kernel_domain(kymo, relay, kernel):
    """A trace of LTTng's kernel tracer, sent as its consumer daemon does, arrives as it is."""
    here = relay()
    with Daemon(here.lttng) as daemon:
        assert daemon.create("k") == (OK, "board/k") and daemon.chunk(0) == OK
        sent = lttng_daemon.send_trace(daemon, kernel, "kernel")
        for handle, last in sent.values():
            assert daemon.close_stream(handle, last) == OK
        assert daemon.close_chunk(0, 1) == (OK, "board/k")
        wait_for(lambda: not os.path.exists(here.dir + "/board/k/kernel/.live"))
    for name in [*lttng_daemon.streams_of(kernel), "metadata", *(f"index/{n}.idx" for n in lttng_daemon.streams_of(kernel))]:
        with open(f"{kernel}/{name}", "rb") as theirs, open(f"{here.dir}/board/k/kernel/{name}", "rb") as ours:
            assert theirs.read() == ours.read(), name
    assert kymo("print", here.trace("k")).raw == kymo("print", kernel).raw


@pytest.mark.parametrize("minor", [1, 2, 4, 8, 10])
def test_old_versions(kymo, relay, kernel, minor):
    """Daemons before chunks name whole paths; the first ones have no index."""
    here = relay()
    with Daemon(here.lttng, minor) as daemon:
        assert daemon.create("old")[0] == OK
        path = "/board/old-20260101-000000/kernel"
        if minor < 4:
            name = lttng_daemon.streams_of(kernel)[0]
            stream, metadata = daemon.add(name, path), daemon.add("metadata", path)
            daemon.metadata(metadata, open(f"{kernel}/metadata", "rb").read())
            data = open(f"{kernel}/{name}", "rb").read()
            first = lttng_daemon.entries(f"{kernel}/index/{name}.idx")[0][1] // 8
            daemon.packet(stream, 0, data[:first])
            daemon.close_stream(metadata, 0)
            daemon.close_stream(stream, 0)
        else:
            for handle, last in lttng_daemon.send_trace(daemon, kernel, path).values():
                assert daemon.close_stream(handle, last) == OK
        trace = here.dir + ("/board/old" if minor >= 4 else "/board/old-20260101-000000") + "/kernel"
        wait_for(lambda: os.path.exists(trace) and not os.path.exists(trace + "/.live"))
    events = json.loads(kymo("info", "--json", "--count", trace).out)["events"]
    if minor < 4:
        assert events > 0
    else:
        assert events == json.loads(kymo("info", "--json", "--count", kernel).out)["events"]


def begin(here, name="s", **spec):
    daemon = Daemon(here.lttng)
    assert daemon.create(name, **spec)[0] == OK and daemon.chunk(0) == OK
    return daemon


def packets(trace, stream):
    """The packets of a stream of the tests' own: each is the text of its number."""
    data = open(f"{trace}/{stream}", "rb").read()
    return [(record[8], data[record[0]:record[0] + record[1] // 8].rstrip(b"\0"))
            for record in lttng_daemon.entries(f"{trace}/index/{stream}.idx")]


@pytest.mark.parametrize("order", ["data", "index", "mixed"])
@pytest.mark.parametrize("padding", [0, 3, 7])
def test_rotation_at_any_moment(relay, order, padding):
    """The packets before the position are in the old chunk, the others in the new one, whatever came first."""
    here, rng = relay(), random.Random(padding)
    with begin(here) as daemon:
        a, b = daemon.add("a"), daemon.add("b", file_bytes=64, files=0)
        early = 5 if order == "data" else 0
        for number in range(8):
            for stream in (a, b):
                def index(early=False):
                    assert daemon.index(stream, number, 32, number, number + 1) == OK

                first = order == "index" or (order == "mixed" and rng.random() < 0.5)
                if first:
                    index()
                daemon.packet(stream, number, b"%d" % number + bytes(16 - len(str(number))), 16)
                if not first and (number < early or order != "data"):
                    index()
        if order == "data":
            # All packets are in their files before the relay learns of the rotation.
            wait_for(lambda: daemon.is_pending(a, 7) and
                     os.path.getsize(here.dir + "/board/s/ust/uid/0/64-bit/a") == 256 and
                     os.path.exists(here.dir + "/board/s/ust/uid/0/64-bit/b_3"))
        else:
            wait_for(lambda: not daemon.is_pending(a, 7) and not daemon.is_pending(b, 7))
        assert daemon.chunk(1) == OK
        position = 5 if order == "data" else 8
        assert daemon.rotate([(a, position), (b, position)], 1, padding) == OK
        if order == "data":
            for number in range(5, 8):
                for stream in (a, b):
                    assert daemon.index(stream, number, 32, number, number + 1) == OK
        for stream in (a, b):
            daemon.packet(stream, 8, b"8" + bytes(31))
            assert daemon.index(stream, 8, 32, 8, 9) == OK
        code, path = daemon.close_chunk(0, 0)
        assert (code, path) == (OK, "board/s/archives/20231114T221320+0000-20231114T221330+0000-0")
        wait_for(lambda: daemon.chunk_exists(0) == (OK, 0))
        assert daemon.chunk_exists(1) == (OK, 1)
        for stream in (a, b):
            wait_for(lambda: not daemon.is_pending(stream, 8))
            assert daemon.close_stream(stream, 8) == OK
    old, new = f"{here.dir}/{path}/ust/uid/0/64-bit", f"{here.dir}/board/s/ust/uid/0/64-bit"
    assert [number for number, _ in packets(old, "a")] == list(range(position))
    assert packets(new, "a") == [(number, b"%d" % number) for number in range(position, 9)]
    for trace, want in ((old, range(position)), (new, range(position, 9))):
        files = sorted(glob.glob(trace + "/b_*"))
        assert sum((packets(trace, os.path.basename(file)) for file in files), []) == [(n, b"%d" % n) for n in want]
        assert all(os.path.getsize(file) <= 64 for file in files)


def test_packets_that_were_written_over(relay):
    """In a flight recorder, the number of the next packet can be beyond the rotation's."""
    here = relay()
    with begin(here) as daemon:
        stream = daemon.add("a")
        daemon.packet(stream, 0, b"0" * 8)
        assert daemon.index(stream, 0, 8, 1, 2, sequence=0) == OK
        wait_for(lambda: not daemon.is_pending(stream, 0))
        assert daemon.chunk(1) == OK and daemon.rotate([(stream, 4)], 1) == OK
        daemon.packet(stream, 1, b"1" * 8)
        assert daemon.index(stream, 1, 8, 5, 6, sequence=9) == OK
        wait_for(lambda: not daemon.is_pending(stream, 1))
        _, path = daemon.close_chunk(0, 0)
        assert daemon.close_stream(stream, 1) == OK
    assert packets(f"{here.dir}/{path}/ust/uid/0/64-bit", "a") == [(0, b"0" * 8)]
    assert packets(f"{here.dir}/board/s/ust/uid/0/64-bit", "a") == [(9, b"1" * 8)]


def test_two_consumers_of_one_session(relay):
    """The kernel's and the programs' consumer daemons share the directory and the chunks."""
    here = relay()
    with begin(here, daemon=b"d" * 16) as kernel, Daemon(here.lttng) as user:
        assert user.create("s", daemon=b"d" * 16, chunk=0) == (OK, "board/s")
        streams = [kernel.add("k", "kernel"), user.add("u", "ust/uid/0/64-bit")]
        for daemon, stream in zip((kernel, user), streams):
            daemon.packet(stream, 0, bytes(16))
            assert daemon.index(stream, 0, 16, 1, 2) == OK
            wait_for(lambda: not daemon.is_pending(stream, 0))
        for daemon, stream in zip((kernel, user), streams):
            assert daemon.chunk(1) == OK and daemon.rotate([(stream, 1)], 1) == OK
        assert kernel.close_chunk(0, 0)[0] == OK
        assert kernel.chunk_exists(0) == (OK, 1)
        code, path = user.close_chunk(0, 0)
        assert code == OK and user.chunk_exists(0) == (OK, 0)
        assert sorted(os.listdir(f"{here.dir}/{path}")) == ["kernel", "ust"]
    assert sorted(os.listdir(f"{here.dir}/board/s")) == ["archives", "kernel", "ust"]


def test_data_on_the_way(relay):
    """`lttng stop` waits until everything has come, and no longer."""
    here = relay()
    with begin(here) as daemon:
        stream, metadata = daemon.add("a"), daemon.add("metadata")
        assert daemon.is_pending(stream, 0) == 1 and daemon.is_pending(stream, 2 ** 64 - 1) == 0
        assert daemon.index(stream, 0, 8, 1, 2) == OK
        assert daemon.is_pending(stream, 0) == 1
        daemon.packet(stream, 0, bytes(8))
        wait_for(lambda: daemon.is_pending(stream, 0) == 0)
        assert daemon.is_pending(stream, 1) == 1
        assert daemon.ask(10, struct.pack(">Q", daemon.session)) == OK
        assert daemon.ask(11, struct.pack(">Q", daemon.session)) == 1
        daemon.is_pending(stream, 0)
        assert daemon.ask(9, struct.pack(">Q", metadata)) == OK
        assert daemon.ask(11, struct.pack(">Q", daemon.session)) == 0
        # A daemon that closes a stream before its data has come.
        assert daemon.close_stream(stream, 1) == OK
        assert daemon.index(stream, 1, 8, 3, 4) == OK
        time.sleep(0.05)
        daemon.packet(stream, 1, b"12345678")
        wait_for(lambda: os.path.getsize(here.dir + "/board/s/ust/uid/0/64-bit/index/a.idx") == 16 + 2 * 72)
        # Nothing comes after the end of the data connection.
        other = daemon.add("b")
        assert daemon.is_pending(other, 0) == 1
        daemon.data.close()
        wait_for(lambda: daemon.is_pending(other, 0) == 0)


def test_what_live_readers_get(relay):
    """The sizes are those of packets with an index, the time that of the slowest stream; metadata is whole."""
    here = relay()
    trace = here.dir + "/board/s/ust/uid/0/64-bit"

    def live():
        head, until, *streams = open(trace + "/.live").read().splitlines()
        assert head == "kymo-live 1"
        return int(until.split()[1]), dict(reversed(line.split(" ", 1)) for line in streams)

    with begin(here, live=100000) as daemon:
        a, b, metadata = daemon.add("a"), daemon.add("b"), daemon.add("metadata")
        assert live() == (0, {}) or live() == (0, {"a": "0", "b": "0"})
        daemon.metadata(metadata, b"x" * 5000, 100)
        wait_for(lambda: os.path.exists(trace + "/metadata") and os.path.getsize(trace + "/metadata") == 5100)
        daemon.packet(a, 0, bytes(64))
        assert daemon.index(a, 0, 64, 10, 20) == OK and daemon.index(b, 2 ** 64 - 1, 0, 0, 15) == OK
        wait_for(lambda: live() == (15, {"a": "64", "b": "0"}))
        assert daemon.index(b, 2 ** 64 - 1, 0, 0, 30) == OK
        wait_for(lambda: live() == (20, {"a": "64", "b": "0"}))
        # A packet without its index is not there yet, and neither is a time while an index waits for its packet.
        daemon.packet(a, 1, bytes(64))
        assert daemon.index(b, 0, 64, 30, 40) == OK and daemon.index(b, 2 ** 64 - 1, 0, 0, 99) == OK
        wait_for(lambda: daemon.is_pending(a, 1) and os.path.getsize(trace + "/a") == 128)
        assert live()[1] == {"a": "64", "b": "0"} and live()[0] <= 30
        daemon.packet(b, 0, bytes(64))
        assert daemon.index(a, 1, 64, 20, 50) == OK
        wait_for(lambda: live() == (40, {"a": "128", "b": "64"}))
        daemon.close_stream(b, 0)
        wait_for(lambda: live() == (50, {"a": "128", "b": "64"}))
    wait_for(lambda: not os.path.exists(trace + "/.live"))


def test_metadata_that_begins_anew(relay):
    here = relay()
    with begin(here) as daemon:
        stream = daemon.add("metadata")
        daemon.metadata(stream, b"old" * 100)
        assert daemon.ask(17, struct.pack(">QQ", stream, 1)) == OK
        daemon.metadata(stream, b"new", 5)
        assert daemon.close_stream(stream, 0) == OK
        assert open(here.dir + "/board/s/ust/uid/0/64-bit/metadata", "rb").read() == b"new" + bytes(5)
    with begin(here) as daemon:
        code = daemon.ask(22, struct.pack(">Q", 0))
        assert code == OK and daemon.control.unpack("Q") == (1,)


def test_quota(relay):
    here = relay("--quota", "64K")
    with begin(here) as daemon:
        stream = daemon.add("a")
        with pytest.raises((Closed, ConnectionError)):
            for number in range(1000):
                daemon.packet(stream, number, bytes(4096))
                daemon.index(stream, number, 4096, number, number + 1)
                daemon.is_pending(stream, number)
                time.sleep(0.001)
                if number > 100:
                    daemon.data.take(1)
    assert sum(os.path.getsize(path) for path in glob.glob(here.dir + "/board/s/ust/uid/0/64-bit/a")) <= 80 << 10
    with Daemon(here.lttng) as daemon:
        assert daemon.create("again")[0] != OK
    with begin(here, host="other") as daemon:
        assert daemon.add("a")
    assert "the quota of board is used up (64.0 KiB)" in here.end()


@pytest.mark.parametrize("size", [100, 3000])
def test_full_disk(relay, tmp_path, size):
    """Packets of several streams come in one read; the disk takes a part of them. All that is in the files is whole."""
    (tmp_path / "relay").mkdir(exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "none", tmp_path / "relay"], check=True)
    try:
        here = relay()
        with begin(here) as daemon:
            streams = [daemon.add(name) for name in "abc"]
            with pytest.raises((Closed, ConnectionError)):
                for number in range(20000):
                    for stream in streams:
                        daemon.packet(stream, number, b"%06d" % number + bytes(size - 6), size // 2)
                        daemon.index(stream, number, size + size // 2, number, number + 1)
        assert re.search("cannot write (what came|the index): No space left on device", here.end())
        traces = f"{here.dir}/board/s/ust/uid/0/64-bit"
        for name in "abc":
            data = open(f"{traces}/{name}", "rb").read()
            each = size + size // 2
            assert len(data) % each == 0
            assert [data[at:at + 6] for at in range(0, len(data), each)] == [b"%06d" % n for n in range(len(data) // each)]
            if os.path.exists(f"{traces}/index/{name}.idx"):
                assert len(packets(traces, name)) <= len(data) // each
    finally:
        subprocess.run(["umount", "--lazy", tmp_path / "relay"], check=True)


HOSTILE_NAMES = ["", ".", "..", "a/../../b", "/etc", "a//b", "a\nb", "x" * 250]


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names(relay, name):
    """Nothing lands outside the host's directory."""
    here = relay()
    if name != "a//b":
        with Daemon(here.lttng) as daemon:
            assert daemon.create("s", host=name)[0] != OK
    with Daemon(here.lttng) as daemon:
        assert daemon.create(name)[0] != OK
    if name and name != "/etc":
        with Daemon(here.lttng) as daemon:
            assert daemon.create("s", path=name)[0] != OK
        with Daemon(here.lttng) as daemon:
            assert daemon.create("c")[0] == OK and daemon.chunk(0, name) != OK
    for bad in ({"channel": name}, {"channel": "a", "path": name}, {"channel": "a", "path": "archives"}):
        with begin(here) as daemon:
            assert daemon.add(**bad) is None
    assert set(os.listdir(here.dir)) <= {"board"}
    assert not glob.glob(here.dir + "/board/*/archives")


def test_sessions_are_not_in_recordings(kymo, relay):
    """Whatever they are called: a session with slashes has another name, and a recording is no host."""
    here = relay()
    os.makedirs(f"{here.dir}/web/kernel/index")  # as kymo record -o makes it there
    with begin(here, "rec") as daemon, Daemon(here.lttng) as inside, Daemon(here.lttng) as by_path:
        assert daemon.add("a")
        assert inside.create("rec/x") == (OK, "board/rec-x") and inside.chunk(0) == OK and inside.add("a")
        assert by_path.create("s", path="/rec/ust/x") == (OK, "board/rec-ust-x")
    for name in ("archives", "metadata", "kernel", "ust", "index", "pid", "uid"):
        with Daemon(here.lttng) as daemon:
            assert daemon.create(name) == (OK, f"board/{name}-2")
    for name, path in (("kernel", "index"), ("ust", "pid/x"), ("ust", "uid")):
        with begin(here, name) as daemon:
            assert daemon.add("a", path=path)
    with Daemon(here.lttng) as daemon:
        assert daemon.create("kernel") == (OK, "board/kernel-4") and daemon.chunk(0, "index") == OK
    for host in ("archives", "metadata"):
        with Daemon(here.lttng) as daemon:
            assert daemon.create("s", host=host)[0] != OK
    for host, name in (("kernel", "index"), ("ust", "pid"), ("ust", "uid")):
        with Daemon(here.lttng) as daemon:
            assert daemon.create(name, host=host) == (OK, f"{host}/{name}-2")
    with Daemon(here.lttng) as daemon:
        assert daemon.create("s", host="web")[0] != OK
    found = json.loads(kymo("sessions", "--json", here.address("")).out)["recordings"]
    assert {(one["host"], one["name"]) for one in found} >= {("board", "rec"), ("board", "rec-x")}
    said = here.end()
    assert "'web' is a recording in the relay's directory" in said
    assert sorted(os.listdir(f"{here.dir}/web")) == ["kernel"] and sorted(os.listdir(f"{here.dir}/board/rec")) == ["ust"]


def test_one_daemon_does_not_take_all_descriptors(kymo, relay):
    here = relay()
    resource.prlimit(here.process.pid, resource.RLIMIT_NOFILE, (800, 800))
    before = len(os.listdir(f"/proc/{here.process.pid}/fd"))

    def files():
        return len(os.listdir(f"/proc/{here.process.pid}/fd")) - before

    def add(daemon, most, path):
        return sum(1 for _ in itertools.takewhile(lambda i: daemon.add(f"s{i}", path=path.format(i)), range(most)))

    # The streams of one trace, and traces; a daemon that wants too much loses its connections.
    for name, path, least, most in (("one", "kernel", 40, 50), ("two", "ust/pid/{}", 15, 21)):
        with begin(here, name) as daemon:
            assert least < add(daemon, 1000, path) < most
        wait_for(lambda: files() <= 2)
    with contextlib.ExitStack() as stack:
        kept = [stack.enter_context(begin(here, f"kept{i}")) for i in range(4)]
        added = [add(daemon, 12, "ust/pid/{}") for daemon in kept]
        assert added[:3] == [12] * 3 and added[3] < 12
        assert files() < 250
        # Recorders come and go all the same.
        kymo("record", "-o", here.address("mine"), "-k", "sched_switch", "-d", "50ms")
    said = here.end()
    assert "need more than 100 open files, an eighth of the relay's limit" in said
    assert "need more than 200 open files, a quarter of the relay's limit" in said


def test_hostile_bytes(kymo, relay):
    """Whatever comes, the relay closes that connection, takes no memory for it, and serves others."""
    here, rng = relay(), random.Random(3)
    good = begin(here, "good")
    stream = good.add("a")
    heads = [struct.pack(">QQII", 0, size, command, 0) for command in [*range(30), 2 ** 32 - 1]
             for size in (0, 1, 7, 5000, 1 << 27, 2 ** 64 - 1)]
    for head in heads:
        with Daemon(here.lttng) as bad:
            if rng.random() < 0.7:
                bad.create("bad")
            with contextlib.suppress(Closed, OSError):
                bad.control.send(head + rng.randbytes(rng.randrange(200)))
                bad.control.socket.shutdown(socket.SHUT_WR)
                bad.control.take(1 << 20)
    for payload in (struct.pack(">QQQII", 0, 1, 0, 8, 0), struct.pack(">QQQII", 0, stream, 0, 1 << 30, 0),
                    struct.pack(">QQQII", 0, stream, 0, 2 ** 32 - 1, 2 ** 32 - 1), rng.randbytes(64)):
        bad = lttng_daemon.Connection(here.lttng[1])
        bad.send(payload)
        with pytest.raises(Closed):
            bad.take(1)
        bad.close()
    # Neither can a daemon use the streams of another.
    with begin(here, "thief") as thief:
        assert thief.index(stream, 0, 8, 1, 2) != OK
    with begin(here, "thief") as thief:
        own = thief.add("t")
        thief.packet(own, 0, bytes(8))
        wait_for(lambda: os.path.getsize(here.dir + "/board/thief-2/ust/uid/0/64-bit/t") == 8)
        thief.packet(stream, 0, bytes(8))
        with pytest.raises(Closed):
            while True:
                thief.is_pending(own, 1)
                thief.data.socket.settimeout(0.01)
                with contextlib.suppress(TimeoutError):
                    thief.data.take(1)
    good.packet(stream, 0, b"good" * 2)
    assert good.index(stream, 0, 8, 1, 2) == OK
    wait_for(lambda: not good.is_pending(stream, 0))
    good.close_stream(stream, 0)
    good.__exit__()
    with open(f"/proc/{here.process.pid}/status") as status:
        assert int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)) < (400 if SANITIZED else 64) << 10
    assert packets(here.dir + "/board/good/ust/uid/0/64-bit", "a") == [(0, b"good" * 2)]


@pytest.mark.parametrize("fault", [lambda d, s: d.index(s, 0, 16, 1, 2),
                                   lambda d, s: d.rotate([(s, 0)], 5), lambda d, s: d.rotate([(s + 1, 0)], None),
                                   lambda d, s: d.close_chunk(9)[0], lambda d, s: d.close_chunk(0, 7)[0],
                                   lambda d, s: d.ask(4), lambda d, s: d.ask(17, struct.pack(">QQ", s, 1)),
                                   lambda d, s: d.chunk(1) + d.chunk(2) - OK, lambda d, s: d.add("a") or 0])
def test_commands_that_make_no_sense(relay, fault):
    here = relay()
    with begin(here) as daemon:
        stream = daemon.add("a")
        daemon.packet(stream, 0, bytes(8))
        wait_for(lambda: os.path.getsize(here.dir + "/board/s/ust/uid/0/64-bit/a") == 8)
        assert fault(daemon, stream) != OK
        with pytest.raises(Closed):
            daemon.control.take(1)
    assert begin(here, "after").add("a")
    found, = glob.glob(here.dir + "/board/s/**/a", recursive=True)
    assert os.path.getsize(found) == 8


def test_slow_and_silent_daemons(relay):
    """Connections that say little or nothing do not hold up others."""
    here = relay("--clients", "20")
    silent = [lttng_daemon.Connection(here.lttng[1]) for _ in range(30)]
    slow = lttng_daemon.Connection(here.lttng[0])
    for byte in struct.pack(">QQII", 0, 8, 5, 0)[:23]:
        slow.send(bytes([byte]))
    with begin(here) as daemon:
        stream = daemon.add("a")
        for number in range(50):
            daemon.packet(stream, number, bytes(100))
            assert daemon.index(stream, number, 100, number, number + 1) == OK
        wait_for(lambda: not daemon.is_pending(stream, 49))
    for one in [*silent, slow]:
        one.close()


def test_other_machines(kymo, tmp_path):
    done = kymo("relay", "--dir", tmp_path / "r", "--listen", "localhost:0", "--lttng", "0.0.0.0:0,0", code=1)
    assert "not encrypted" in done.err and "--insecure" in done.err
    for wrong in ("localhost:1", "localhost:1,2,3", "localhost:x,y", "localhost:1,"):
        assert kymo("relay", "--dir", tmp_path / "r", "--listen", "localhost:0", "--lttng", wrong, code=1).err


def test_stream_that_closes_while_its_packet_comes(relay):
    """The rest of a packet comes for a stream that has no chunk any more, and is closed."""
    here = relay()
    with begin(here) as daemon:
        stream = daemon.add("a")
        daemon.data.send(struct.pack(">QQQII", 0, stream, 0, 64, 0))
        daemon.is_pending(stream, 0)
        assert daemon.rotate([(stream, 0)], None) == OK
        daemon.close_stream(stream, 2 ** 64 - 1)
        daemon.data.send(bytes(64))
        with pytest.raises(Closed):
            daemon.data.take(1)
    assert begin(here, "after").add("a")


def test_chunk_that_ends_while_streams_go_to_it(relay):
    """Another daemon of the session closes the chunk between two parts of the command."""
    here, same = relay(), {"daemon": b"d" * 16, "number": 3}
    with begin(here, **same) as daemon:
        stream = daemon.add("a")
        with Daemon(here.lttng) as other:
            assert other.create("s", **same)[0] == OK and other.chunk(5) == OK
            daemon.send(18, struct.pack(">IB7xQ", 1, 1, 5), size=36)
            wait_for(lambda: other.chunk_exists(5) == (OK, 1))
            time.sleep(0.1)
        time.sleep(0.2)
        daemon.control.send(struct.pack(">QQ", stream, 0))
        assert daemon.control.unpack("I")[0] == OK
        assert daemon.chunk_exists(5) == (OK, 1)
    assert begin(here, "after").add("a")


@pytest.mark.parametrize("padding", [0, 4096])
def test_quota_of_metadata(relay, padding):
    here = relay("--quota", "64K")
    with begin(here) as daemon:
        stream = daemon.add("metadata")
        with pytest.raises((Closed, ConnectionError)):
            for _ in range(1000):
                daemon.metadata(stream, bytes(4096 - padding), padding)
                daemon.ask(16)
    found, = glob.glob(here.dir + "/board/s/ust/uid/0/64-bit/metadata")
    assert os.path.getsize(found) <= 80 << 10
    with begin(here, host="other") as daemon:
        daemon.metadata(daemon.add("metadata"), b"", 2 ** 32 - 1)
        with pytest.raises(Closed):
            daemon.control.take(1)


def grows(daemon, file, size):
    """Waits for the file's size, or for the end of the data connection."""
    while os.path.getsize(file) != size:
        try:
            daemon.data.take(1)
        except TimeoutError:
            continue
        except Closed:
            return False
    return True


def test_quota_of_packets_that_change_their_chunk(relay):
    """Packets that go to a new chunk count there, after the old one is deleted."""
    here = relay("--quota", "64K")
    file = here.dir + "/board/s/ust/uid/0/64-bit/a"
    with begin(here) as daemon:
        stream = daemon.add("a")
        daemon.data.socket.settimeout(0.01)
        for number in range(20):
            with contextlib.suppress(ConnectionError):
                daemon.packet(stream, number, bytes(8192))
            if not grows(daemon, file, 8192 * (number + 1)):
                break
            assert daemon.chunk(number + 1) == OK
            assert daemon.rotate([(stream, 0)], number + 1) == OK
            assert daemon.close_chunk(number, 2)[0] == OK
    assert "the quota of board is used up (64.0 KiB)" in here.end()
