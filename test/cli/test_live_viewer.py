# SPDX-License-Identifier: MIT
"""kymo relay --live: viewers of LTTng's live protocol watch recordings, while they run and afterwards."""

import collections
import contextlib
import glob
import json
import os
import pathlib
import random
import re
import shutil
import struct
import subprocess
import time

import pytest

import viewer as protocol
from conftest import ROOT
from relays import HOST, relays
from test_lttng_ust import lab  # noqa: F401 (a fixture)
from viewer import BEGIN, HUP, INACTIVE, LAST, NEW_STREAM, OK, RETRY, Viewer

pytestmark = pytest.mark.usefixtures("needs_root_tracefs")

MODES = os.path.join(os.path.dirname(os.environ.get("KYMO_BIN") or os.path.join(ROOT, "build/src/cli/kymo")),
                     "../../test/tracer/modes")


@pytest.fixture
def relay(kymo_bin, tmp_path):
    with relays(kymo_bin, tmp_path / "relay", "--live", "localhost:0") as begin:
        yield begin


def wait_for(what, seconds=120):
    end = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


def begin_recording(kymo_bin, *args):
    """A recording that is on."""
    process = subprocess.Popen([kymo_bin, "record", *map(str, args)], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE,
                               text=True)
    return process


def end_recording(process):
    process.terminate()
    _, said = process.communicate(timeout=120)
    assert process.returncode == 0 and "; 0 lost" in said, said
    return said


class Babeltrace:
    """babeltrace2, or kymo, which watches by the same protocol."""

    def __init__(self, url, path, kymo_bin=None):
        if kymo_bin:
            self.watch(path, [kymo_bin, "print", "--live", "--no-delta", url])
            return
        if not shutil.which("babeltrace2"):
            pytest.skip("no babeltrace2")
        self.watch(path, ["babeltrace2", "-i", "lttng-live", "--clock-seconds", "--no-delta", url])

    def watch(self, path, command):
        self.path = str(path)
        # Its warnings can be more than a pipe takes.
        with open(self.path, "w", encoding="utf-8") as out, open(self.path + ".said", "w", encoding="utf-8") as said:
            self.process = subprocess.Popen(command, stdout=out, stderr=said)

    def lines(self):
        with open(self.path, encoding="utf-8") as text:
            return text.read().splitlines()

    def end(self):
        """Waits until the recording is over."""
        self.process.wait(timeout=120)
        with open(self.path + ".said", encoding="utf-8") as text:
            said = text.read().splitlines()
        # babeltrace2 says so when two streams go on at the same time, as at a rotation.
        said = [line for line in said if "Cannot deterministically pick next" not in line and ": waiting: " not in line]
        assert self.process.returncode == 0 and not said, said
        return self.lines()


def read(trace):
    done = subprocess.run(["babeltrace2", "--clock-seconds", "--no-delta", trace], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


def numbers_of(lines, own):
    return [int(found[1]) for line in lines if own in line and (found := re.search(r"i = ([0-9]+) }", line))]


def sessions(port, name):
    with Viewer(port) as one:
        return [session for session in one.sessions() if session.name == name]


def time_of(line):
    return line[1:line.index("]")]


def contents(lines):
    """Without the times: a complete trace's clock is known better than before."""
    return [line[line.index("] "):] for line in lines]


def assert_shown(shown, trace, since):
    """What was shown is what is in the trace, and all of it from the time @since, in this order."""
    whole = read(trace)
    assert len(set(whole)) == len(whole) and len(set(shown)) == len(shown)
    assert not collections.Counter(contents(shown)) - collections.Counter(contents(whole))
    late = [line for line in shown if time_of(line) >= since]
    assert contents(late) == contents(whole[-len(late):])
    # 10 us are more than the correction of the clock in a short recording.
    assert not [line for line in whole[:-len(late)] if time_of(line) >= f"{float(since) + 1e-5:.9f}"]


def now():
    return f"{time.time():.9f}"


# ---- babeltrace2 ---------------------------------------------------------------------------------


def test_kernel_and_programs(kymo_bin, relay, tmp_path):
    """A recording of the kernel, and of programs that begin while it is watched."""
    here = relay()
    recorder = begin_recording(kymo_bin, "-o", here.address("web"), "-k", "sched_process_*,sched_switch", "--user", "modes:*")
    wait_for(lambda: sessions(here.live, "web"))
    watching = Babeltrace(here.url("web"), tmp_path / "shown")
    # The viewer has what happens now.
    wait_for(lambda: watching.lines() or recorder.poll() is not None)
    since = now()
    for count in (1000, 20000, 300):
        subprocess.run([MODES, "numbers", str(count), "0"], check=True, stdout=subprocess.DEVNULL)
    end_recording(recorder)
    shown = watching.end()
    assert_shown(shown, here.trace("web"), since)
    assert sum("modes:number" in line for line in shown) == 21300
    assert "warning" not in here.end()


def test_chunks(kymo_bin, kymo, relay, tmp_path):
    """Rotations of the recording are not seen by its viewers."""
    here = relay()
    recorder = begin_recording(kymo_bin, "-o", here.address("chunks"), "-k", "sched_switch", "--user", "modes:*",
                               "--rotate-every", "1s")
    wait_for(lambda: sessions(here.live, "chunks"))
    watching = Babeltrace(here.url("chunks"), tmp_path / "shown")
    wait_for(lambda: watching.lines() or recorder.poll() is not None)
    since = now()
    programs = [subprocess.Popen([MODES, "numbers", "3000", "1000"], stdout=subprocess.DEVNULL) for _ in range(2)]
    for program in programs:
        assert program.wait(timeout=120) == 0
    trace = here.trace("chunks")
    wait_for(lambda: len(os.listdir(f"{trace}/archives")) >= 4)
    end_recording(recorder)
    shown = watching.end()
    # babeltrace2 orders events of the same time in its own way, and each chunk tells the state again.
    whole, late = ([line for line in lines if "lttng_" not in line and time_of(line) >= since] for lines in (read(trace), shown))
    assert sorted(contents(late)) == sorted(contents(whole))
    assert [time_of(line) for line in shown] == sorted(time_of(line) for line in shown)
    assert sum("modes:number" in line for line in shown) == 6000
    assert "warning" not in here.end()


@pytest.mark.parametrize("who", ["babeltrace2", "kymo"])
def test_clear(kymo_bin, kymo, relay, tmp_path, who):
    """A recording that is cleared goes on for its viewers: what comes after that is shown."""
    here = relay()
    recorder = begin_recording(kymo_bin, "-o", here.address("clear"), "--name", "clear", "-k", "sched_process_*", "--user",
                               "modes:*")
    began = time.monotonic()
    program = subprocess.Popen([MODES, "numbers", "100000000", "1000"], stdout=subprocess.DEVNULL)
    wait_for(lambda: sessions(here.live, "clear"))
    if who == "kymo":
        readers = []
        for i, address in enumerate((here.address("clear"), here.trace("clear"))):
            with open(tmp_path / f"read{i}", "w", encoding="utf-8") as out:
                readers.append(subprocess.Popen([kymo_bin, "print", "--live", address], stdout=out, stderr=subprocess.PIPE, text=True))
        shown = [lambda i=i: (tmp_path / f"read{i}").read_text().splitlines() for i in range(2)]
    else:
        watching = Babeltrace(here.url("clear"), tmp_path / "shown")
        shown = [watching.lines]

    def has_ended():
        return any(process.poll() is not None for process in (readers if who == "kymo" else [watching.process]))

    def wait_for_lines():
        before = [len(lines()) for lines in shown]
        wait_for(lambda: all(len(lines()) > n + 200 for lines, n in zip(shown, before)) or has_ended(), 60)

    for i in range(20):
        if i % 5 == 0:
            wait_for_lines()
        kymo("ctl", "--clear", "clear")
    # Another test's programs may be among them. What came before the last clear may be shown late: its numbers are lower.
    own = f":({program.pid}) modes:number:"
    enough = int((time.monotonic() - began) * 1000) + 200
    wait_for(lambda: all(numbers_of(lines(), own)[-1:] > [enough] for lines in shown) or has_ended(), 240)
    program.kill()
    program.wait()
    end_recording(recorder)
    last = {line[line.index("i = "):] for line in read(here.trace("clear")) if own in line}
    assert len(last) > 100
    if who == "kymo":
        for reader in readers:
            _, said = reader.communicate(timeout=60)
            # On a busy machine, recorder and relay may not come to tell how far they are.
            said = re.sub("kymo: warning: .*: its recorder has sent no news for .*; its events may be late\n", "", said)
            assert reader.returncode == 0 and re.fullmatch("(kymo: waiting: .*no trace.*\n)?", said), said
    else:
        watching.end()
    for lines in shown:
        found = numbers_of(lines(), own)
        assert found == sorted(found) and {f"i = {n} }}" for n in found} >= last
    assert "warning" not in here.end()


def test_chunks_in_ctf2(kymo, relay, tmp_path):
    """A converted recording with several chunks: viewers get the clock of its first trace for all, as in CTF 1.8."""
    here = relay()
    name = f"chunks{os.getpid()}"
    kymo("record", "--name", name, "--background", "-o", tmp_path / "chunks", "-k", "sched_process_*", "--user", "modes:*")
    for _ in range(3):
        subprocess.run([MODES, "numbers", "50", "100"], check=True, stdout=subprocess.DEVNULL)
        kymo("rotate", name)
    kymo("stop", name)
    os.makedirs(f"{here.dir}/{HOST}")
    kymo("convert", "--to", "ctf2", "-o", f"{here.dir}/{HOST}/chunks2", tmp_path / "chunks")
    clock = re.compile(r'"frequency": .*?"cycles": \d+', re.S)
    paths = sorted(pathlib.Path(here.dir, HOST, "chunks2").rglob("metadata"))
    for i, path in enumerate(paths):
        # The recorder has known its clock better from chunk to chunk.
        path.write_text(re.sub(r'("cycles": )(\d+)', lambda found, i=i: f"{found[1]}{int(found[2]) + i % 3}", path.read_text()))
    assert len(paths) >= 4 and len({clock.search(path.read_text())[0] for path in paths}) == 3
    with Viewer(here.live, 15) as viewer:
        viewer.create()
        session, = [one for one in viewer.sessions() if one.name == "chunks2"]
        metadata = [stream for stream in viewer.attach(session.id)[1] if stream.is_metadata]
        texts = [viewer.metadata(stream.id)[1].decode() for stream in metadata]
    assert len(texts) == len(paths) and all('"clock-class"' in text for text in texts)
    assert len({re.sub(r"\s", "", clock.search(text)[0]) for text in texts}) == 1
    for text in texts:
        for part in text.split("\x1e"):
            if part:
                json.loads(part)
    # Kymo's own readers take the clocks as they are.
    shown = kymo("print", "--clock-seconds", here.address("chunks2")).out.splitlines()
    assert len(shown) == int(kymo("print", "--count", tmp_path / "chunks").out)


@pytest.mark.parametrize("reader", ["babeltrace2", "kymo"])
def test_new_program_beside_an_idle_one(kymo_bin, relay, tmp_path, reader):
    """A viewer learns of a new stream, though none of those that it knows has anything for it."""
    here = relay()
    idle = subprocess.Popen([MODES, "numbers", "1000", "100000000"], stdout=subprocess.DEVNULL)
    try:
        recorder = begin_recording(kymo_bin, "-o", here.address("idle"), "--user", "modes:*")
        wait_for(lambda: sessions(here.live, "idle"))
        watching = Babeltrace(here.url("idle"), tmp_path / "shown", kymo_bin if reader == "kymo" else None)
        time.sleep(1)  # it is attached then, or else the test is easier
        subprocess.run([MODES, "numbers", "20000", "0"], check=True, stdout=subprocess.DEVNULL)
        wait_for(lambda: sum("modes:number" in line for line in watching.lines()) > 10000)
    finally:
        idle.kill()
        idle.wait()
    end_recording(recorder)
    assert sum("modes:number" in line for line in watching.end()) >= 20000


@pytest.mark.parametrize("buffers", ["process", "user"])
def test_events_that_come_later(kymo_bin, kymo, relay, tmp_path, buffers):
    """Metadata that grows while it is watched: the viewer gets what is new of it, which is at its end."""
    here = relay()
    recorder = begin_recording(kymo_bin, "-o", here.address("grows"), "--name", "grows", "-k", "sched_process_fork", "--user",
                               "modes:rare", "--buffers", buffers)
    wait_for(lambda: sessions(here.live, "grows"))
    program = subprocess.Popen([MODES, "rare", "20"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    watching = Babeltrace(here.url("grows"), tmp_path / "shown")

    def shows(name):
        program.stdin.write("\n")
        program.stdin.flush()
        time.sleep(0.1)
        return watching.process.poll() is not None or any(f" {name}: " in line for line in watching.lines())

    wait_for(lambda: shows("modes:rare"))
    kymo("ctl", "--enable-event", "modes:*", "grows")
    wait_for(lambda: shows("modes:frequent"))
    kymo("ctl", "--enable-kernel", "sched_process_exit", "grows")
    wait_for(lambda: subprocess.run(["true"], check=True) and shows("sched_process_exit"))
    program.communicate()
    end_recording(recorder)
    shown = watching.end()
    assert all(any(f" {name}: " in line for line in shown) for name in ("modes:rare", "modes:frequent", "sched_process_exit"))


def test_two_viewers_and_one_that_goes(kymo_bin, relay, tmp_path):
    here = relay()
    recorder = begin_recording(kymo_bin, "-o", here.address("two"), "-k", "sched_switch")
    wait_for(lambda: sessions(here.live, "two"))
    watching = [Babeltrace(here.url("two"), tmp_path / f"shown{i}") for i in range(3)]
    wait_for(lambda: all(one.lines() for one in watching) or recorder.poll() is not None)
    since = now()
    watching[2].process.kill()
    watching[2].process.communicate()
    end_recording(recorder)
    for one in watching[:2]:
        assert_shown(one.end(), here.trace("two"), since)


def test_complete_recording(kymo, kymo_bin, relay, tmp_path):
    """All of it, from the begin."""
    here = relay()
    kymo("record", "-o", here.address("done"), "-k", "sched_switch", "--user", "modes:*", "--rotate-every", "1s", "--", "sh",
         "-c", f"{MODES} numbers 2000 0; sleep 1.5; {MODES} numbers 100 0")
    # The relay knows then that the recorder has gone.
    wait_for(lambda: any("done: complete" in line for line in here.said))
    shown = Babeltrace(here.url("done"), tmp_path / "shown").end()
    # The viewer gets the clock of the first chunk for all.
    assert sorted(contents(shown)) == sorted(contents(read(here.trace("done")))) and sum("modes:number" in line for line in shown) >= 2100


def test_list(kymo, relay):
    """Recordings in the list of a viewer; one of CTF 2 only for viewers that know it."""
    here = relay()
    kymo("record", "-o", here.address("one"), "-k", "sched_switch", "--user", "modes:*", "--", MODES, "numbers", "10", "0")
    kymo("convert", "--to", "ctf2", "-o", f"{here.dir}/{HOST}/new", here.trace("one") + "/kernel")
    with Viewer(here.live) as old, Viewer(here.live, 15) as new:
        assert {(one.host, one.name) for one in old.sessions()} == {(HOST, "one")}
        assert {(one.name, one.format) for one in new.sessions()} == {("one", 0), ("new", 1)}
        assert old.theirs == 15
    done = subprocess.run(["babeltrace2", "-i", "lttng-live", f"net://localhost:{here.live}"], check=True,
                          capture_output=True, text=True)
    assert re.fullmatch(rf"{here.url('one')} \(timer = 100000, \d+ stream\(s\), 0 client\(s\) connected\)\n", done.stdout)


def test_without_relay(kymo_bin, relay, tmp_path):
    """A recorder on the same machine writes to a directory; the relay only shows it."""
    here = relay(path=tmp_path)
    recorder = begin_recording(kymo_bin, "-o", tmp_path / "local", "-k", "sched_switch", "--user", "modes:*")
    wait_for(lambda: sessions(here.live, "local"))
    watching = Babeltrace(here.url("local"), tmp_path / "shown")
    wait_for(lambda: watching.lines() or recorder.poll() is not None)
    since = now()
    subprocess.run([MODES, "numbers", "5000", "0"], check=True, stdout=subprocess.DEVNULL)
    end_recording(recorder)
    shown = watching.end()
    assert_shown(shown, tmp_path / "local", since)
    assert sum("modes:number" in line for line in shown) == 5000


@pytest.mark.usefixtures("loopback")
def test_session_of_lttng(lab, relay, tmp_path):
    """LTTng's programs, through the relay, to babeltrace2."""
    here = relay("--lttng", "localhost:0,0")
    lab.session("shown", create=["--live=100000", *here.lttng_options()])
    lab.run("./prog", 0, 1, 0)
    found, = wait_for(lambda: sessions(here.live, "shown"))
    watching = Babeltrace(here.url("shown", found.host), tmp_path / "shown")
    wait_for(lambda: sessions(here.live, "shown")[0].clients)
    lab.run("./prog", 0, 500, 100)
    lab.end("shown")
    assert sum("prov:tick" in line for line in watching.end()) >= 500


# ---- the protocol --------------------------------------------------------------------------------


@pytest.fixture
def recorded(kymo, relay):
    """A relay with a complete recording of programs, 5000 events, and its session."""
    here = relay()
    kymo("record", "-o", here.address("some"), "--user", "modes:*", "-b", "64k", "--", MODES, "numbers", "5000", "0")
    with Viewer(here.live) as one:
        session, = one.sessions()
    return here, session


def test_every_command(recorded):
    here, session = recorded
    trace, = glob.glob(f"{here.trace('some')}/ust/pid/*")
    with Viewer(here.live) as one:
        assert one.attach(session.id)[0] == 6
        one.create()
        assert one.attach(session.id + 1)[0] == 3 and one.attach(session.id, 7)[0] == 5
        status, streams = one.attach(session.id)
        assert status == 1 and {stream.trace for stream in streams} == {streams[0].id} and streams[0].is_metadata
        assert {stream.path for stream in streams} == {os.path.realpath(trace)}
        status, text = one.metadata(streams[0].id)
        magic, checksum, content, size = struct.unpack("<I16xIII", text[:32])
        assert (status, magic, checksum, content, size) == (1, 0x75d11d57, 0, len(text) * 8, len(text) * 8)
        assert text[37:] == open(f"{trace}/metadata", "rb").read()
        assert one.metadata(streams[0].id) == (2, b"") and one.metadata(streams[1].id)[0] == 3
        assert one.index(streams[0].id).status == 4 and one.packet(streams[0].id, 0, 10)[0] == 3
        for stream in streams[1:]:
            data = b""
            while (index := one.index(stream.id)).status == OK:
                assert index.offset == len(data)
                status, part = one.packet(stream.id, index.offset, index.size // 8)
                data += part
            assert index.status == HUP and one.index(stream.id).status == HUP
            assert data == open(f"{trace}/{stream.channel}", "rb").read()
            assert one.packet(stream.id, len(data), 1)[0] == 4 and one.packet(stream.id, 0, len(data) + 1)[0] == 3
            assert one.packet(stream.id, 2 ** 63, 2 ** 32 - 1)[0] == 4 and one.packet(stream.id, 0, 0)[0] == 3
        assert one.new_streams(session.id) == (4, []) and one.new_streams(5) == (3, [])
        # The same viewer gets nothing twice.
        assert one.attach(session.id) == (1, [])
        assert one.detach(session.id) == 1 and one.detach(5) == 2
        for strange in (0, 1, 2 ** 32, 2 ** 64 - 1, streams[0].id + 100):
            assert one.index(strange).status == 4 and one.packet(strange, 0, 8)[0] == 3 and one.metadata(strange)[0] == 3


def name_of(answer):
    """Of a session or a stream: its last field."""
    return answer[-1].split(b"\0")[0].decode()


class TraceCompass:
    """
    Sends what Trace Compass 9.3 sends (LttngRelaydConnector_2_4, LttngRelaydConsumer): sizes in the heads that do not fit what
    follows, no question for new streams or packets, no pause. It opens the files at the path of the first stream, and learns from
    the relay how far they go, until the first stream that ends.
    """

    def __init__(self, port, session):
        self.one = Viewer(port, connects=False)
        self.request(protocol.CONNECT, 20, struct.pack(">QIII", 0, 2, 4, 1))
        _, major, minor, _ = self.one.take("QIII")
        assert major == 2 and minor >= 4
        self.request(protocol.LIST, 0)
        found = [self.one.take("QIII64s255s") for _ in range(self.one.take("I")[0])]
        self.session, = [one[0] for one in found if name_of(one) == session]
        self.request(protocol.CREATE, 0)
        assert self.one.take("I") == (OK,)
        self.request(protocol.ATTACH, 0, struct.pack(">QQI", self.session, 0, LAST))
        status, count = self.one.take("II")
        self.streams = [self.one.take("QQI4096s255s") for _ in range(count)]
        assert status == OK and self.streams
        metadata = next(one for one in self.streams if one[2] == 1)
        self.request(protocol.METADATA, 20, struct.pack(">Q", metadata[0]))
        size, status = self.one.take("QI")
        assert status == OK and self.one.read(size)
        self.path = self.streams[0][3].split(b"\0")[0].decode()
        self.end = 0

    def request(self, command, size, *parts):
        for part in (struct.pack(">QII", size, command, 0), *parts):
            self.one.socket.sendall(part)

    def round(self):
        """Whether the trace goes on."""
        for stream in self.streams:
            if stream[2] == 1:
                continue
            self.request(protocol.INDEX, 20, struct.pack(">Q", stream[0]))
            index = protocol.Index(*self.one.take("7QII"))
            assert index.status in (OK, RETRY, HUP, INACTIVE)
            if index.status == HUP:
                return False
            if index.status == OK:
                self.end = max(self.end, index.end)
        return True

    def watch(self, until=lambda: False):
        """Until something holds, or the trace ends."""
        limit = time.monotonic() + 120
        while (goes_on := self.round()) and not until():
            assert time.monotonic() < limit
        return goes_on


def ends(trace, names=("*",)):
    """The last time of each stream, by its index."""
    for name in sum((glob.glob(f"{trace}/index/{name}.idx") for name in names), []):
        data = open(name, "rb").read()
        if len(data) > 16:
            yield struct.unpack(">Q", data[-40:-32])[0]


def test_as_trace_compass_watches(kymo_bin, kymo, relay, tmp_path):
    """Also when another program comes, whose streams it does not ask for."""
    here = relay()
    (tmp_path / "tcwatch").symlink_to(MODES)
    command = [tmp_path / "tcwatch", "numbers", "1000000000", "2000"]

    def trace_of(program):
        return wait_for(lambda: glob.glob(f"{here.dir}/*/tc/ust/pid/*-{program.pid}-*"))[0]

    recorder = begin_recording(kymo_bin, "-o", here.address("tc"), "--user", "modes:*", "--comm", "tcwatch", "-b", "64k")
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as first:
        try:
            # Its buffers are not full, so the recorder has written no packet yet.
            trace = trace_of(first)
            one = TraceCompass(here.live, "tc")
            assert one.path == os.path.realpath(trace)
            assert [name for name in map(name_of, one.streams) if name.startswith("channel")]
            assert one.watch(lambda: one.end)
            before = one.end
            with subprocess.Popen(command, stdout=subprocess.DEVNULL) as second:
                trace_of(second)
                assert one.watch(lambda: one.end > before)
                second.kill()
        finally:
            first.kill()
    end_recording(recorder)
    assert not one.watch()
    assert one.end == max(ends(trace, [name_of(stream) for stream in one.streams if stream[2] != 1]))
    assert kymo("info", "--count", one.path).out


def test_last_is_what_comes_now(kymo_bin, relay):
    """A recording that goes on: from its begin, or from now on; a stream is silent up to a time that rises."""
    here = relay()
    recorder = begin_recording(kymo_bin, "-o", here.address("on"), "-k", "sched_switch", "-b", "64k")
    with Viewer(here.live) as first, Viewer(here.live) as last:
        wait_for(lambda: [one for one in first.sessions() if one.name == "on" and one.streams])
        session, = [one for one in first.sessions() if one.name == "on"]
        begins = {}
        for one, seek in ((first, BEGIN), (last, LAST)):
            one.create()
            if seek == LAST:
                time.sleep(1)
            _, streams = one.attach(session.id, seek)
            streams = streams or wait_for(lambda one=one: one.new_streams(session.id)[1])
            ids = [stream.id for stream in streams if not stream.is_metadata and stream.channel.startswith("channel")]
            told = 0
            while ids:
                index = one.index(ids[0])
                if index.status == INACTIVE:
                    assert index.end >= told
                    told = index.end
                elif index.status == OK:
                    begins[seek] = index
                    assert index.begin >= told
                    # The packet says what its index says.
                    data = one.packet(ids[0], index.offset, 84)[1]
                    assert struct.unpack("<QQ", data[32:48]) == (index.begin, index.end)
                    break
                if index.flags & NEW_STREAM:
                    one.new_streams(session.id)
                time.sleep(0.01)
        assert begins[LAST].begin > begins[BEGIN].begin
    end_recording(recorder)


# ---- hostile viewers -----------------------------------------------------------------------------


def test_hostile_viewers(recorded):
    """Nonsense ends a connection, or gets an error, and nothing more."""
    here, session = recorded
    rng = random.Random(5)
    for _ in range(200):
        with Viewer(here.live, connects=False) as one:
            with contextlib.suppress(ConnectionError):
                one.socket.sendall(rng.randbytes(rng.randrange(1, 200)))
    for command in (0, 10, 77, 2 ** 32 - 1, protocol.LIST):
        with Viewer(here.live, connects=False) as one:
            one.send(command, size=2 ** 63)
            assert one.is_closed()
    for major, kind in ((1, 1), (3, 1), (2, 2), (2, 0)):
        with Viewer(here.live, connects=False) as one:
            one.send(protocol.CONNECT, struct.pack(">QIII", 0, major, 4, kind))
            assert one.is_closed()
    with Viewer(here.live) as one:
        one.send(protocol.CONNECT, struct.pack(">QIII", 0, 2, 4, 1))
        assert one.is_closed()
    for _ in range(100):
        with Viewer(here.live) as one:
            one.create()
            _, streams = one.attach(session.id)
            for _ in range(20):
                body = struct.pack(">QQI", rng.choice(streams).id, rng.choice([0, 4096, 2 ** 40, 2 ** 64 - 1]),
                                   rng.choice([0, 1, 4096, 2 ** 32 - 1]))
                with contextlib.suppress(ConnectionError):
                    one.send(rng.randrange(2, 10), body[:rng.choice([8, 20])])
    with Viewer(here.live) as one:
        assert one.sessions()[0].name == session.name


def memory(process):
    with open(f"/proc/{process.pid}/statm", encoding="ascii") as text:
        return int(text.read().split()[1]) * 4096


def test_viewers_that_do_not_read(kymo, recorded):
    """Thousands of requests, and nobody takes the answers: others get theirs, and the relay's memory stays."""
    here, session = recorded
    slow = []
    before = memory(here.process)
    for _ in range(50):
        one = Viewer(here.live)
        slow.append(one)
        one.create()
        _, streams = one.attach(session.id)
        one.socket.setblocking(False)
        request = struct.pack(">QIIQQI", 20, protocol.PACKET, 0, streams[1].id, 0, 4096)
        try:
            while True:
                one.socket.send(request * 1000)
        except BlockingIOError:
            pass
    assert memory(here.process) - before < 16 << 20
    with Viewer(here.live) as one:
        one.create()
        _, streams = one.attach(session.id)
        assert one.index(streams[1].id).status == OK
    # Recorders are not held up either.
    kymo("record", "-o", here.address("beside"), "--user", "modes:*", "--", MODES, "numbers", "5000", "0")
    for one in slow:
        one.socket.close()


def test_silent_viewers(recorded):
    here, _ = recorded
    with Viewer(here.live, connects=False) as silent, Viewer(here.live) as greeted:
        silent.socket.sendall(b"\0" * 10)
        assert silent.is_closed()
        assert greeted.sessions()


def test_paths_of_a_session_have_no_links(kymo, recorded, tmp_path):
    """What lies beside the recordings cannot be read through the relay."""
    here, _ = recorded
    secret = tmp_path / "secret"
    shutil.copytree(here.trace("some"), secret)
    os.symlink(secret, f"{here.dir}/{HOST}/link")
    with Viewer(here.live) as one:
        assert {session.name for session in one.sessions()} == {"some"}


def test_other_machines(kymo, tmp_path):
    done = kymo("relay", "--dir", tmp_path, "--listen", "localhost:0", "--live", "0.0.0.0:0", code=1)
    assert "not encrypted" in done.err


# ---- readers at the relay's own port -------------------------------------------------------------


def greet(port, token=b"", kind=18, more=b"", names=(b"", b""), wish=0):
    one = Viewer(port, 15, connects=False)
    hello = b"KYMONET1" + struct.pack("<II16xHHHH", 1, wish, len(token), *map(len, names), 0) + token + b"".join(names)
    one.socket.sendall(struct.pack("<IIQQ", kind, 0, 0, len(hello)) + hello + more)
    return one


def welcome(one):
    kind, _, _, size = struct.unpack("<IIQQ", one.read(24))
    return kind, one.read(size)


def test_reader(recorded):
    """A reader greets at the port for recorders; then it is a viewer."""
    here, session = recorded
    with greet(here.port) as one:
        assert welcome(one) == (5, bytes(8))
        one.send(protocol.CONNECT, struct.pack(">QIII", 0, 2, 15, 1))
        assert one.take("QIII")[1:] == (2, 15, 1)
        assert [found.id for found in one.sessions()] == [session.id]
    with greet(here.port, more=b"x") as one:
        assert welcome(one)[0] == 5
        kind, text = welcome(one)
        assert kind == 8 and b"does not wait" in text


def test_delay_of_readers(relay):
    """The recorder learns the least delay of all readers, within bounds."""
    here = relay()

    def watch(wish):
        one = greet(here.port, wish=wish)
        assert welcome(one)[0] == 5
        one.send(protocol.CONNECT, struct.pack(">QIII", 0, 2, 15, 1))
        one.take("QIII")
        one.create()
        session, = [found for found in one.sessions() if found.name == "slow"]
        assert one.attach(session.id)[0] == 1
        return one, session

    with greet(here.port, kind=1, names=(HOST.encode(), b"slow")) as recorder:
        assert welcome(recorder) == (5, struct.pack("<Q", 1))

        recorder.socket.settimeout(0.2)

        def is_told(reader, delay):
            # Readers ask all the time.
            reader.new_streams(session.id)
            try:
                kind, value = welcome(recorder)
            except TimeoutError:
                return False
            return kind == 7 and struct.unpack("<Q", value)[0] == delay

        readers = []
        for wish, delay in ((5000, 5000), (20, 20), (1, 10)):
            one, session = watch(wish)
            readers.append(one)
            wait_for(lambda one=one, delay=delay: is_told(one, delay))
        readers[2].socket.close()
        readers[1].socket.close()
        wait_for(lambda: is_told(readers[0], 5000))
        readers[0].socket.close()


def test_reader_keys(kymo, kymo_bin, relay, tmp_path):
    """A relay with a key wants one of readers, too; a reader's key is not enough to write."""
    done = kymo("relay", "--init", "--dir", tmp_path / "relay")
    keys = re.findall(r"Key for (\w+): (.*)", done.out)
    assert [name for name, _ in keys] == ["recorders", "readers"]
    here = relay()
    done = kymo("record", "-o", here.address("x"), "--relay-key", keys[1][1], "-k", "sched_switch", "-d", "50ms", code=1)
    assert "the key is one of readers" in done.err
    kymo("record", "-o", here.address("x"), "--relay-key", keys[0][1], "-k", "sched_switch", "-d", "50ms")
    listed = kymo("print", "--relay-key", keys[1][1], here.address("")).out
    assert re.fullmatch(r"kymo://\S+/x \(\d+ streams?, \d+ readers?\)\n", listed), listed
    assert kymo("sessions", "--relay-key", keys[1][1], here.address("")).out == listed
    one, = json.loads(kymo("sessions", "--json", "--relay-key", keys[1][1], here.address("")).out)["recordings"]
    assert one == {"name": "x", "host": HOST, "address": listed.split()[0], "streams": one["streams"], "readers": 0}
    assert "not the address of a relay" in kymo("sessions", "nonsense", code=2).err
    # Readers follow over TLS, too, also a recording that rotates.
    recorder = begin_recording(kymo_bin, "-o", here.address("turns"), "--name", "turns", "--relay-key", keys[0][1], "-k",
                               "sched_process_*", "--user", "modes:*")
    wait_for(lambda: "turns" in kymo("sessions", "--relay-key", keys[1][1], here.address("")).out)
    with open(tmp_path / "printed", "w", encoding="utf-8") as out, open(tmp_path / "reported", "w", encoding="utf-8") as tables:
        readers = [subprocess.Popen([kymo_bin, *command, "--live", "--relay-key", keys[1][1], here.address("turns")], stdout=to,
                                    stderr=subprocess.PIPE, text=True)
                   for command, to in ((["print", "--delay", "20ms"], out), (["report", "summary"], tables))]
    wait_for(lambda: "turns" in kymo("sessions").out)  # the relay lists a recording a little earlier
    # A reader has what happens from its coming on.
    wait_for(lambda: subprocess.run(["true"], check=True) and (tmp_path / "printed").stat().st_size)
    for _ in range(2):
        subprocess.run([MODES, "numbers", "500", "0"], check=True, stdout=subprocess.DEVNULL)
        kymo("rotate", "turns")
    end_recording(recorder)
    for reader in readers:
        _, said = reader.communicate(timeout=120)
        assert reader.returncode == 0, said
    printed = (tmp_path / "printed").read_text()
    assert sum("modes:number" in line for line in printed.splitlines()) == 1000
    assert (tmp_path / "reported").read_text()
