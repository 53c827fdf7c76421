# SPDX-License-Identifier: MIT
"""Recordings that go to a relay: every packet arrives once, whatever becomes of the relay and the connection."""

import contextlib
import glob
import json
import os
import random
import re
import signal
import socket
import stat
import struct
import subprocess
import time

import pytest

from conftest import ROOT, SANITIZED
from faulty_proxy import FaultyProxy
from relays import free_port, relays

pytestmark = pytest.mark.usefixtures("needs_root_tracefs")

MODES = os.path.join(os.path.dirname(os.environ.get("KYMO_BIN") or os.path.join(ROOT, "build/src/cli/kymo")),
                     "../../test/tracer/modes")


@pytest.fixture
def relay(kymo_bin, tmp_path):
    with relays(kymo_bin, tmp_path / "relay") as begin:
        yield begin


def record(kymo_bin, *args):
    return subprocess.Popen([kymo_bin, "record", *map(str, args)], stderr=subprocess.PIPE, text=True)


def events(kymo, trace):
    return [json.loads(line) for line in kymo("convert", "--to", "json", trace).out.splitlines()]


def numbers(found):
    return [event["fields"]["i"] for event in found if event["event"] == "modes:number"]


def test_kernel_and_programs(kymo, relay):
    """The same traces as in a directory, of the same modes, which other readers open."""
    here = relay()
    done = kymo("record", "-o", here.address("both"), "-k", "sched_process_*", "--user", "modes:*", "--", MODES, "numbers",
                "20000", "0")
    assert "; 0 lost" in done.err and f"Trace: {here.address('both')}" in done.err
    assert f"Next:  kymo info {here.address('both')}\n       kymo report why {here.address('both')}\n" in done.err
    # What the line says can be done.
    assert "sched_process_exit" in kymo("print", here.address("both")).out
    trace = here.trace("both")
    found = events(kymo, trace)
    assert numbers(found) == list(range(20000))
    assert {"sched_process_exec", "lttng_statedump_process_state", "lttng_ust_statedump:bin_info"} <= {
        event["event"] for event in found}
    peer = subprocess.run(["babeltrace2", trace], capture_output=True, text=True, check=True)
    assert len(peer.stdout.splitlines()) == len(found) and not peer.stderr
    for place, names, files in os.walk(here.dir):
        assert stat.S_IMODE(os.stat(place).st_mode) == 0o700
        assert all(stat.S_IMODE(os.stat(os.path.join(place, name)).st_mode) == 0o600 for name in files)
        assert names or files or place.endswith(".kymo")
    kymo("record", "-o", here.address("both"), "-k", "sched_switch", "-d", "50ms")
    assert os.path.isdir(trace + "-2")
    said = here.end()
    assert "both: complete" in said and "warning" not in said
    # What is left of complete sessions goes some time later.
    state, = glob.glob(f"{here.dir}/.kymo/*")[:1]
    assert len(os.listdir(f"{here.dir}/.kymo")) == 2 and os.path.getsize(state) < 4096


def test_index_is_that_of_a_directory(kymo, relay, tmp_path):
    """The packet index at the relay is what other readers and babeltrace2 accept."""
    here = relay()
    kymo("record", "-o", here.address("indexed"), "-k", "sched_switch,sched_waking", "-b", "64k", "-d", "500ms")
    trace = here.trace("indexed")
    for index in glob.glob(f"{trace}/kernel/index/*.idx"):
        data = open(index, "rb").read()
        magic, major, minor, size = struct.unpack(">4I", data[:16])
        assert (magic, major, minor, size) == (0xC1F1DCC1, 1, 1, 72)
        at = 0
        for entry in range(16, len(data), 72):
            offset, bits = struct.unpack(">2Q", data[entry:entry + 16])
            assert offset == at
            at += bits // 8
        assert at == os.path.getsize(f"{trace}/kernel/{os.path.basename(index)[:-4]}")


def keep_busy(seconds_of_numbers):
    return [MODES, "numbers", str(seconds_of_numbers), "20"]


# How often the relay is killed, or the connection breaks: KYMO_KILLS=50 for the whole of it.
KILLS = int(os.environ.get("KYMO_KILLS", "15"))


def strike(fault, rng, here, proxy):
    """Something bad happens. Some faults show only later: then more time passes before the next."""
    if fault == "relay":
        here.kill()
        time.sleep(rng.uniform(0, 0.05))
        here.begin()
    elif fault == "cut":
        proxy.cut()
    elif fault == "reset":
        proxy.reset()
    elif fault == "delay":
        proxy.delay = rng.choice([0, 0.002, 0.02])
    else:
        before = proxy.connections
        proxy.blackhole()
        end = time.monotonic() + 60
        while proxy.connections == before and time.monotonic() < end:
            time.sleep(0.1)


def program_of(recorder):
    """The process id of the program that the recorder has started."""
    with open(f"/proc/{recorder.pid}/task/{recorder.pid}/children", encoding="ascii") as children:
        program, = children.read().split()
    return program


def numbers_of(kymo, trace, program):
    """What the program counted. Programs of other tests may be in the recording, too."""
    own, = glob.glob(f"{trace}/ust/pid/modes-{program}-*")
    return numbers(events(kymo, own))


@pytest.mark.parametrize("fault", ["relay", "link", "mixed"])
def test_faults(kymo, kymo_bin, relay, fault):
    """The relay is killed, or the connection breaks, again and again: what the recorder counts arrives once."""
    rng = random.Random(7)
    here = relay()
    faults = ["relay"] if fault == "relay" else ["cut", "reset", "cut", "reset", "delay", "delay", "blackhole"]
    if fault == "mixed":
        faults += ["relay"] * 3
    with FaultyProxy(here.port) as proxy:
        recorder = record(kymo_bin, "-o", here.address("faults", proxy.port), "--user", "modes:*", "-b", "8M", "--",
                          *keep_busy(1000000000))
        while not glob.glob(f"{here.dir}/*/faults/ust/pid/*"):
            time.sleep(0.01)
        program = program_of(recorder)
        for _ in range(KILLS):
            time.sleep(rng.uniform(0.01, 0.1))
            assert recorder.poll() is None, recorder.communicate()
            strike(rng.choice(faults), rng, here, proxy)
        proxy.delay = 0
        recorder.send_signal(signal.SIGINT)
        _, said = recorder.communicate(timeout=240)
        assert recorder.returncode == 0, said
    assert "; 0 lost" in said
    recorded = int(re.search(r"Recorded (\d+) events", said).group(1))
    assert json.loads(kymo("info", "--json", "--count", here.trace("faults")).out)["events"] == recorded > 1000
    found = numbers_of(kymo, here.trace("faults"), program)
    assert found == list(range(len(found)))


def test_blackhole(kymo, kymo_bin, relay):
    """A connection that swallows everything is given up; what it swallowed is sent again."""
    here = relay()
    with FaultyProxy(here.port) as proxy:
        recorder = record(kymo_bin, "-o", here.address("hole", proxy.port), "--user", "modes:*", "--", *keep_busy(20000))
        while proxy.bytes < 100000:
            time.sleep(0.01)
        proxy.blackhole()
        _, said = recorder.communicate(timeout=120)
        assert recorder.returncode == 0, said
        assert proxy.connections >= 2
    assert numbers(events(kymo, here.trace("hole"))) == list(range(20000))


def test_relay_that_stays_away(kymo_bin, relay):
    """The recording ends with an error that says what is lost."""
    here = relay()
    recorder = record(kymo_bin, "-o", here.address("gone"), "--user", "modes:*", "--", *keep_busy(2000))
    while not glob.glob(f"{here.dir}/*/gone/ust/pid/*"):
        time.sleep(0.01)
    here.kill()
    _, said = recorder.communicate(timeout=120)
    assert recorder.returncode == 1
    assert re.search(r"the relay localhost does not answer: the last \d+ bytes of the recording are lost", said)


# Each program's rings hold what it records; together they are more than waits in memory.
FLOOD = "for i in 1 2 3 4 5 6 7 8; do {} numbers 600000 0; sleep 0.05; done"


def check_flood(kymo, trace, said):
    """All events that were recorded are there once; of one program, one by one in their order."""
    # Another test's program may be among them.
    found = sorted(glob.glob(f"{trace}/ust/pid/*"), key=lambda one: sum(map(os.path.getsize, glob.glob(f"{one}/c*"))))
    assert len(found) >= 8 and "; 0 lost" in said and "waited in the spill file" in said, said
    counted = json.loads(kymo("info", "--json", "--count", trace).out)
    assert counted["events"] == int(re.search(r"Recorded (\d+) events", said).group(1)) and not counted["lost_events"]
    assert numbers(events(kymo, found[-1])) == list(range(600000))


def session_of(kymo, output):
    return next((one for one in json.loads(kymo("sessions", "--json").out)["recordings"] if one.get("output") == output), {})


def test_spill(kymo, kymo_bin, relay, tmp_path):
    """What does not fit into memory waits in a file without a name, and arrives once, in order."""
    here = relay()
    output = here.address("spill")
    recorder = record(kymo_bin, "-o", output, "--spill", f"1G:{tmp_path}", "--user", "modes:*", "-b", "16M", "--", "sh", "-c",
                      FLOOD.format(MODES))
    while not glob.glob(f"{here.dir}/*/spill/ust/pid/*"):
        time.sleep(0.01)
    here.kill()
    end = time.monotonic() + 120
    while not session_of(kymo, output).get("spill"):
        assert recorder.poll() is None, recorder.communicate()
        assert time.monotonic() < end
        time.sleep(0.1)
    files = [os.readlink(f"/proc/{recorder.pid}/fd/{fd}") for fd in os.listdir(f"/proc/{recorder.pid}/fd")
             if os.path.exists(f"/proc/{recorder.pid}/fd/{fd}")]
    assert any(file.startswith(str(tmp_path)) and file.endswith(" (deleted)") for file in files), files
    assert "in the spill file" in kymo("sessions").out
    here.begin()
    _, said = recorder.communicate(timeout=200)
    assert recorder.returncode == 0, said
    check_flood(kymo, here.trace("spill"), said)
    assert os.listdir(tmp_path) == ["relay"]


def test_spill_and_faults(kymo, kymo_bin, relay, tmp_path):
    """Connections break while the queue and the file empty."""
    rng = random.Random(9)
    here = relay()
    with FaultyProxy(here.port) as proxy:
        recorder = record(kymo_bin, "-o", here.address("spill", proxy.port), "--spill", f"1G:{tmp_path}", "--user", "modes:*", "-b",
                          "16M", "--", "sh", "-c", FLOOD.format(MODES))
        while not glob.glob(f"{here.dir}/*/spill/ust/pid/*"):
            time.sleep(0.01)
        proxy.refuse(True)
        proxy.cut()
        end = time.monotonic() + 120
        while not session_of(kymo, here.address("spill", proxy.port)).get("spill"):
            assert recorder.poll() is None, recorder.communicate()
            assert time.monotonic() < end
            time.sleep(0.1)
        proxy.refuse(False)
        while recorder.poll() is None:
            time.sleep(rng.uniform(0.1, 0.5))
            rng.choice([proxy.cut, proxy.reset])()
        _, said = recorder.communicate()
    assert recorder.returncode == 0, said
    check_flood(kymo, here.trace("spill"), said)


@pytest.mark.parametrize("place", ["limit", "disk"])
def test_spill_that_is_full(kymo, kymo_bin, relay, tmp_path, place):
    """The file has a limit, or its disk is full: further events stay in the buffers, which count what they lose."""
    here = relay()
    spill = f"1M:{tmp_path}"
    if place == "disk":
        (tmp_path / "small").mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "none", tmp_path / "small"], check=True)
        spill = f"1G:{tmp_path}/small"
    try:
        recorder = record(kymo_bin, "-o", here.address("full"), "--spill", spill, "--user", "modes:*", "-b", "1M", "--", "sh", "-c",
                          f"{MODES} numbers 20000000 0; sleep 1")
        while not glob.glob(f"{here.dir}/*/full/ust/pid/*"):
            time.sleep(0.01)
        here.kill()
        time.sleep(5)
        here.begin()
        _, said = recorder.communicate(timeout=200)
    finally:
        if place == "disk":
            subprocess.run(["umount", tmp_path / "small"], check=True)
    assert recorder.returncode == 0, said
    recorded = int(re.search(r"Recorded (\d+) events", said).group(1))
    counted = json.loads(kymo("info", "--json", "--count", here.trace("full")).out)
    assert counted["events"] == recorded and counted["lost_events"] == int(re.search(r"; (\d+) lost", said).group(1))
    assert ("the spill file takes no more" in said) == (place == "disk"), said


def test_spill_options(kymo, tmp_path):
    for wrong in ("0", "x", "1G:", "1G:relative"):
        assert "--spill: " in kymo("record", "-o", "kymo://localhost/x", "--spill", wrong, "-d", "50ms", code=2).err
    assert "--spill is for a recording at a relay" in kymo("record", "-o", tmp_path / "x", "--spill", "1G", "-d", "50ms", code=2).err
    done = kymo("record", "-o", "kymo://localhost:1/x", "--spill", f"1G:{tmp_path}/nowhere", "-d", "50ms", code=1)
    assert "cannot make the spill file" in done.err


def test_rotation(kymo, kymo_bin, relay):
    here = relay()
    recorder = record(kymo_bin, "-o", here.address("chunks"), "--name", "chunks", "--user", "modes:*", "--", *keep_busy(30000))
    while not glob.glob(f"{here.dir}/*/chunks/ust/pid/*"):
        time.sleep(0.01)
    for _ in range(3):
        time.sleep(0.2)
        kymo("rotate", "chunks")
    _, said = recorder.communicate(timeout=120)
    assert recorder.returncode == 0, said
    trace = here.trace("chunks")
    assert len(os.listdir(os.path.join(trace, "archives"))) == 3
    assert numbers(events(kymo, trace)) == list(range(30000))


@pytest.mark.parametrize("kills", [False, True])
def test_clear(kymo, kymo_bin, relay, kills):
    """kymo ctl --clear empties what is at the relay, also when that is killed at the time; what comes then is there once."""
    rng = random.Random(10)
    here = relay()
    recorder = record(kymo_bin, "-o", here.address("cleared"), "--name", "cleared", "-k", "sched_process_*", "--user", "modes:*",
                      "--", "sh", "-c", f"{MODES} numbers 1000 0; exec {' '.join(keep_busy(1000000000))}")
    while len(glob.glob(f"{here.dir}/*/cleared/ust/pid/*/metadata")) < 2:
        time.sleep(0.01)
    for _ in range(6 if kills else 2):
        if kills and rng.random() < 0.5:
            here.kill()
        kymo("ctl", "--clear", "cleared")
        time.sleep(rng.uniform(0, 0.1))
        if kills:
            if here.process.poll() is None:
                here.kill()
            here.begin()
        subprocess.run([MODES, "numbers", "50", "0"], check=True, stdout=subprocess.DEVNULL)
    trace = here.trace("cleared")
    # All is at the relay, and nothing of what was cleared.
    end = time.monotonic() + 60
    while os.path.exists(f"{trace}/archives") or session_of(kymo, here.address("cleared")).get("queued", 0) > 100000:
        assert time.monotonic() < end
        time.sleep(0.05)
    recorder.send_signal(signal.SIGINT)
    _, said = recorder.communicate(timeout=120)
    assert recorder.returncode == 0 and "; 0 lost" in said and "were cleared" in said, said
    found = [numbers(events(kymo, one)) for one in glob.glob(f"{trace}/ust/pid/*")]
    assert all(os.path.exists(f"{one}/metadata") for one in glob.glob(f"{trace}/ust/pid/*"))
    long = max(found, key=len)
    assert long[0] > 0 and long == list(range(long[0], long[0] + len(long)))
    assert list(range(50)) in found and list(range(1000)) not in found
    recorded = int(re.search(r"Recorded (\d+) events", said).group(1))
    assert json.loads(kymo("info", "--json", "--count", trace).out)["events"] == recorded
    assert not os.path.exists(f"{trace}/archives")


def test_clear_at_an_older_relay(kymo_bin, kymo):
    """A relay that says nothing of its features keeps what it has."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"kymo://localhost:{server.getsockname()[1]}/x"
        recorder = record(kymo_bin, "-o", address, "--name", "older", "--user", "modes:*", "-d", "300s")
        client, _ = server.accept()
        client.sendall(struct.pack("<IIQQ", 5, 0, 0, 8) + struct.pack("<Q", 1))
        end = time.monotonic() + 60
        while not session_of(kymo, address):
            assert time.monotonic() < end and recorder.poll() is None
            time.sleep(0.05)
        assert "the relay is of an older version" in kymo("ctl", "--clear", "older", code=1).err
        recorder.kill()
        recorder.communicate()
        client.close()


def test_room_is_given_back(kymo, relay):
    """What the relay takes ahead for a large file does not stay."""
    here = relay()
    kymo("record", "-o", here.address("large"), "--user", "modes:*", "-b", "16M", "--", MODES, "numbers", "800000", "0")
    files = [os.stat(path) for path in glob.glob(f"{here.trace('large')}/ust/pid/*/channel0_*")]
    assert sum(one.st_size for one in files) > 4 << 20
    end = time.monotonic() + 60
    while any(os.stat(path).st_blocks * 512 > os.path.getsize(path) + (1 << 16)
              for path in glob.glob(f"{here.trace('large')}/ust/pid/*/channel0_*")):
        assert time.monotonic() < end
        time.sleep(0.05)


def test_no_relay(kymo, tmp_path):
    done = kymo("record", "-o", f"kymo://localhost:{free_port()}/x", "-d", "50ms", code=1)
    assert "cannot connect to localhost, port" in done.err
    for wrong in ("kymo://localhost", "kymo:///x", "kymo://localhost:99999/x", "kymo://localhost/a/b", "ssh://host"):
        done = kymo("record", "-o", wrong, "-d", "50ms", code=1)
        assert wrong in done.err or "is not a port" in done.err or "is not a name" in done.err, done


def says(recorder, pattern):
    """Its lines, until one matches."""
    said = []
    for line in recorder.stderr:
        said.append(line)
        if re.search(pattern, line):
            return
    raise AssertionError((pattern, said))


def test_relay_that_is_slow(kymo_bin, relay):
    """One that runs but does not answer is waited for, unless the user ends that."""
    here = relay()
    here.process.send_signal(signal.SIGSTOP)
    options = ["--user", "modes:*", "--", MODES, "numbers", "500", "0"]
    waits, ends = [record(kymo_bin, "-o", here.address(name), *options) for name in ("waits", "ends")]
    for recorder in (waits, ends):
        says(recorder, "waiting for the relay localhost")
    ends.send_signal(signal.SIGINT)
    _, said = ends.communicate(timeout=60)
    assert ends.returncode == 1 and "does not answer" in said
    here.process.send_signal(signal.SIGCONT)
    _, said = waits.communicate(timeout=60)
    assert waits.returncode == 0 and "; 0 lost" in said


def test_relay_that_begins_later(kymo, kymo_bin, relay, tmp_path):
    here = relay()
    here.kill()
    recorder = record(kymo_bin, "-o", here.address("early"), "--relay-wait", "1min", "--user", "modes:*", "--", MODES, "numbers",
                      "500", "0")
    says(recorder, "waiting for the relay localhost")
    here.begin()
    _, said = recorder.communicate(timeout=60)
    assert recorder.returncode == 0 and "; 0 lost" in said
    done = kymo("record", "-o", tmp_path / "t", "--relay-wait", "1s", "-d", "50ms", code=2)
    assert "--relay-wait is for a recording at a relay" in done.err


def test_quota(kymo, relay):
    here = relay("--quota", "200k")
    done = kymo("record", "-o", here.address("much"), "--user", "modes:*", "--", *keep_busy(100000), code=1)
    assert "the quota of" in done.err and "is used up (200.0 KiB)" in done.err


def test_many_recorders(kymo, kymo_bin, relay, tmp_path):
    """Many at a time; none is held up by others, nothing is lost."""
    here = relay()
    recorders = [record(kymo_bin, "-o", here.address(f"r{i}"), "--user", "modes:*", "-b", "64k", "--", MODES, "numbers",
                        "500", "0") for i in range(20)]
    for recorder in recorders:
        _, said = recorder.communicate(timeout=200)
        assert recorder.returncode == 0 and "; 0 lost" in said, said


# ---- TLS -----------------------------------------------------------------------------------------

@pytest.fixture
def secure(kymo, relay, tmp_path):
    """A relay with a key, and the file for its recorders."""
    def begin(*options):
        done = kymo("relay", "--init", "--dir", tmp_path / "relay")
        key, = re.findall("Key for recorders: (.*)", done.out)
        for name in os.listdir(tmp_path / "relay" / ".kymo"):
            assert stat.S_IMODE(os.stat(tmp_path / "relay" / ".kymo" / name).st_mode) == 0o600
        return relay(*options), key

    return begin


def test_tls(kymo, secure, tmp_path):
    here, key = secure()
    done = kymo("record", "--relay-key", key, "-o", here.address("secret"), "--user", "modes:*", "--", MODES, "numbers",
                "100000", "0")
    assert "; 0 lost" in done.err
    assert f"Next:  kymo info --relay-key FILE {here.address('secret')}" in done.err and ".kymo/reader-key" in done.err
    assert numbers(events(kymo, here.trace("secret"))) == list(range(100000))
    # A relay keeps its key.
    assert "has a key already; copy recorder-key" in kymo("relay", "--init", "--dir", here.dir, code=1).err


def test_tls_and_faults(kymo, kymo_bin, secure):
    rng = random.Random(8)
    here, key = secure()
    with FaultyProxy(here.port) as proxy:
        recorder = record(kymo_bin, "--relay-key", key, "-o", here.address("faults", proxy.port), "--user", "modes:*", "--",
                          *keep_busy(30000))
        # A recorder that finds no relay at its start ends.
        while not glob.glob(f"{here.dir}/*/faults/ust/pid/*") and recorder.poll() is None:
            time.sleep(0.01)
        assert recorder.poll() is None, recorder.communicate()
        program = program_of(recorder)
        while recorder.poll() is None:
            time.sleep(rng.uniform(0.05, 0.2))
            rng.choice([proxy.cut, proxy.reset])()
        _, said = recorder.communicate(timeout=120)
        assert recorder.returncode == 0, said
    assert numbers_of(kymo, here.trace("faults"), program) == list(range(30000))


def test_nothing_in_clear(kymo, secure):
    """What goes over the network has none of the recording's words, nor the token."""
    here, key = secure()
    seen = b""

    class Listening(FaultyProxy):
        def _forward(self, pair, source):
            nonlocal seen
            seen += source.recv(self.piece, socket.MSG_PEEK)
            super()._forward(pair, source)

    with Listening(here.port) as proxy:
        kymo("record", "--relay-key", key, "-o", here.address("hidden-name", proxy.port), "--user", "modes:*", "--", MODES,
             "numbers", "1000", "0")
    token = re.search("token (.*)", open(key).read()).group(1).encode()
    assert len(seen) > 10000
    assert all(word not in seen for word in (b"hidden-name", b"modes", b"KYMONET", token))


def test_keys_that_are_wrong(kymo, secure, tmp_path):
    here, key = secure()
    text = open(key).read()
    wrong = tmp_path / "wrong"

    def attempt(content, *options):
        wrong.write_text(content)
        return kymo("record", *options, "-o", here.address("x"), "-k", "sched_switch", "-d", "50ms", code=1).err

    assert "does not answer" in attempt("")
    assert "another certificate" in attempt(re.sub("fingerprint .*", "fingerprint " + "0" * 64, text), "--relay-key", wrong)
    assert "the token is wrong" in attempt(re.sub("token .*", "token 1234", text), "--relay-key", wrong)
    for damaged in ("", "kymo-relay 2\n", text[:-1], text + "x", text.replace("token", "tok"), "x" * 5000):
        assert "wrong: " in attempt(damaged, "--relay-key", wrong)
    assert "cannot read the relay's key" in attempt("", "--relay-key", tmp_path / "nothing")
    assert not glob.glob(f"{here.dir}/*/x")


def test_other_machines_need_a_key(kymo, relay, tmp_path):
    env = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": ""}
    done = kymo("record", "-o", "kymo://192.0.2.1/x", "-k", "sched_switch", "-d", "50ms", code=1, env=env)
    assert "a relay on another machine needs a key" in done.err and "kymo relay --init" in done.err
    done = kymo("relay", "--dir", tmp_path / "relay", "--listen", "0.0.0.0:0", code=1)
    assert "without a key the relay listens only on this machine" in done.err
    here = relay("--listen", f"0.0.0.0:{free_port()}", "--insecure")
    assert here.process.poll() is None


# ---- hostile peers -------------------------------------------------------------------------------

HELLO, OPEN, STREAM, PING, DATA, METADATA, PATCH, ROTATE, FEATURES, REMOVE, FILE = 1, 2, 3, 4, 9, 10, 11, 16, 19, 20, 21


def frame(kind, payload=b"", trace=0, number=0, claimed=None):
    return struct.pack("<IIQQ", kind, trace, number, len(payload) if claimed is None else claimed) + payload


def hello(host=b"evil", name=b"session", token=b"", session=b"x" * 16, version=1):
    return frame(HELLO, b"KYMONET1" + struct.pack("<II", version, 0) + session +
                 struct.pack("<4H", len(token), len(host), len(name), 0) + token + host + name)


def data(stream, offset, entry, payload, number):
    return frame(DATA, struct.pack("<IIQQ", stream, 72, offset, entry) + b"i" * 72 + payload, 1, number)


def symbols(name, content=b"", number=1, place=b"", claimed=None):
    return frame(FILE, place.ljust(192, b"\0") + name.ljust(64, b"\0") + content, 0, number, claimed)


def talk(port, *messages):
    """Sends them; returns all that the relay answers until it closes, or is silent for long."""
    with socket.create_connection(("127.0.0.1", port), timeout=3) as client:
        got = b""
        try:
            for message in messages:
                client.sendall(message)
            client.shutdown(socket.SHUT_WR)
            while piece := client.recv(65536):
                got += piece
        except OSError:  # of shutdown(), too, where the relay was faster
            pass
    return got


OPENED = hello() + frame(OPEN, struct.pack("<I", 0) + b"kernel", 1) + frame(STREAM, struct.pack("<II", 0, 0) + b"a", 1)


@pytest.mark.parametrize("messages, reason", [
    ([b"GET / HTTP/1.1\r\n\r\n" * 4], b"unknown type"),
    ([frame(HELLO, b"x" * 40)], b"does not speak"),
    ([hello(version=9)], b"version 9"),
    ([hello(host=b"..")], b"cannot be used"),
    ([hello(host=b"a/b")], b"cannot be used"),
    ([hello(name=b".kymo")], b"cannot be used"),
    ([hello(name=b"x" * 300)], b"cannot be used"),
    ([frame(PING)], b"greeting must come first"),
    ([hello(), hello()], b"greeting must come first"),
    ([hello(), frame(OPEN, struct.pack("<I", 0) + b"../x", 1)], b"path"),
    ([hello(), frame(OPEN, struct.pack("<I", 0) + b"/etc", 1)], b"path"),
    ([hello(), frame(OPEN, struct.pack("<I", 0) + b"a//b", 1)], b"path"),
    ([hello(), frame(OPEN, struct.pack("<I", 0) + b"a\0b", 1)], b"path"),
    ([hello(), frame(OPEN, struct.pack("<I", 0) + b"x", 0)], b"no trace"),
    ([hello(), frame(STREAM, struct.pack("<II", 0, 0) + b"a", 1)], b"no trace"),
    ([OPENED, frame(STREAM, struct.pack("<II", 1, 0) + b"metadata", 1)], b"stream"),
    ([OPENED, frame(STREAM, struct.pack("<II", 1 << 30, 0) + b"b", 1)], b"stream"),
    ([OPENED, data(5, 0, 0, b"x", 1)], b"no stream"),
    ([OPENED, data(0, 1 << 60, 0, b"x", 1)], b"place"),
    ([OPENED, data(0, 0, 0, b"x", 1), data(0, 1 << 40, 1, b"x", 2)], b"hole"),
    ([OPENED, data(0, 0, 0, b"x", 7)], b"comes before"),
    ([OPENED, frame(PATCH, struct.pack("<Q", 1 << 40) + b"x", 1, 1)], b"metadata"),
    ([OPENED, frame(ROTATE, struct.pack("<II", 1, 0) + b"../../x", 1, 1)], b"path"),
    ([OPENED, frame(REMOVE, b"../x", 0, 1)], b"path"),
    ([OPENED, frame(REMOVE, b"/etc", 0, 1)], b"path"),
    ([OPENED, frame(REMOVE, b"", 0, 1)], b"bytes"),
    ([OPENED, frame(REMOVE, b"x", 0, 0)], b"number"),
    *[([OPENED, symbols(name)], b"a file of symbols has a name") for name in (
        b"", b"..", b"../x.kdi", b"a/b.kdi", b"/etc/x.kdi", b"kallsyms/..", b".new", b"metadata", b"x.kdi", b"ABC.kdi",
        b"perf-.map", b"perf-1.map.kdi", b"a" * 64, b"a" * 57 + b".kdi")],
    *[([OPENED, symbols(b"kallsyms", place=place)], b"place of symbols") for place in (
        b"..", b"/etc", b"kernel/../..", b"kernel/", b".kymo", b"x" * 192)],
    ([OPENED, symbols(b"kallsyms", number=0)], b"number"),
    ([OPENED, frame(FILE, b"kallsyms", 0, 1)], b"bytes"),
    ([OPENED, symbols(b"kallsyms", claimed=256 + (16 << 20) + 1)], b"bytes"),
    ([OPENED, frame(FEATURES, bytes(8), 0, 0)], b"not for this side"),
    ([OPENED, frame(DATA, b"", 1, 1, claimed=1 << 62)], b"bytes"),
    ([frame(HELLO, claimed=1 << 40)], b"bytes"),
])
def test_hostile_clients(kymo, relay, tmp_path, messages, reason):
    """An error, a closed connection, and nothing outside; other clients notice nothing."""
    here = relay()
    got = talk(here.port, *messages)
    assert reason in got, got
    inside = [os.path.relpath(place, here.dir) for place, _, _ in os.walk(here.dir)]
    assert all(place in (".", ".kymo", "evil") or place.startswith("evil/session") for place in inside), inside
    assert sorted(os.listdir(tmp_path)) == ["relay"]
    kymo("record", "-o", here.address("good"), "-k", "sched_switch", "-d", "50ms")


def test_symbols_of_a_client(relay):
    """A client writes symbols only into its own session, and through no link. The relay keeps no half file, and makes no directory for an archive that is gone."""
    here = relay()
    place = f"{here.dir}/evil/session"
    talk(here.port, OPENED, data(0, 0, 0, b"p" * 100, 1), frame(ROTATE, struct.pack("<II", 1, 0) + b"archives/1/kernel", 1, 2),
         symbols(b"kallsyms", b"one", 3), symbols(b"0af0.kdi", b"two", 4, b"archives/1"), symbols(b"perf-7.map", b"three", 5, b"gone"),
         symbols(b"kallsyms", b"four", 6), symbols(b"perf-7.map", b"five" * 1000, 7)[:-1])
    found = {os.path.relpath(os.path.join(root, name), place): open(os.path.join(root, name), "rb").read()
             for root, _, names in os.walk(place) for name in names if root.endswith("symbols")}
    assert found == {"symbols/kallsyms": b"four", "archives/1/symbols/0af0.kdi": b"two"}
    assert sorted(os.listdir(place)) == ["archives", "kernel", "symbols"]
    os.rename(f"{place}/symbols", f"{place}/moved")
    for number, link in ((7, f"{place}/symbols"), (8, f"{place}/archives/2")):
        os.symlink(f"{place}/moved", link)
        assert b"cannot write symbols" in talk(here.port, hello(), symbols(b"kallsyms", b"x", 7, b"archives/2" if number == 8 else b""))
        os.remove(link)
    assert os.listdir(f"{place}/moved") == ["kallsyms"] and open(f"{place}/moved/kallsyms", "rb").read() == b"four"
    here.end()


def test_a_client_deletes_only_of_its_own_session(relay):
    """Two recordings of one host and name: each has its own directory, and the same path below it."""
    here = relay()
    opened = OPENED[len(hello()):] + data(0, 0, 0, b"p" * 100, 1)
    for session in (b"1" * 16, b"2" * 16):
        assert b"refused" not in talk(here.port, hello(session=session), opened)
    places = [f"{here.dir}/evil/{name}" for name in ("session", "session-2")]
    assert all(os.path.exists(f"{place}/kernel/a") for place in places)
    talk(here.port, hello(session=b"2" * 16), frame(REMOVE, b"kernel", 0, 2))
    assert os.path.getsize(f"{places[0]}/kernel/a") == 100 and not os.path.exists(f"{places[1]}/kernel")
    # What is behind a link there stays, also of the same session.
    os.symlink(places[0], f"{places[1]}/link")
    for number, path in ((3, b"link/kernel"), (4, b"link")):
        talk(here.port, hello(session=b"2" * 16), frame(REMOVE, path, 0, number))
    assert os.path.getsize(f"{places[0]}/kernel/a") == 100
    here.end()


def test_slow_and_silent_clients(kymo, relay):
    """Many that say nothing, or one byte at a time, hold nobody up."""
    here = relay()
    clients = [socket.create_connection(("127.0.0.1", here.port)) for _ in range(100)]
    begun = hello()
    for i, client in enumerate(clients):
        client.sendall(begun[:i % len(begun)])
    begin = time.monotonic()
    kymo("record", "-o", here.address("good"), "-k", "sched_switch", "-d", "50ms")
    assert time.monotonic() - begin < 60
    with open(f"/proc/{here.process.pid}/status") as status:
        memory_kb = int(re.search(r"VmRSS:\s+(\d+)", status.read()).group(1))
    assert SANITIZED or memory_kb < 100 * 64 + 32768
    for client in clients:
        client.close()


@pytest.mark.parametrize("answer, message", [
    (b"HTTP/1.1 400 Bad Request\r\n\r\n" * 2, "does not answer"),
    (b"", "does not answer"),
    (struct.pack("<IIQQ", 5, 0, 0, 8) + struct.pack("<Q", 1 << 40), "has lost the session"),
    (struct.pack("<IIQQ", 8, 0, 0, 6) + b"no way", "has refused: no way"),
    (struct.pack("<IIQQ", 8, 0, 0, 1 << 40), "does not answer"),
    (struct.pack("<IIQQ", 9, 0, 1, 100), "does not answer"),
])
def test_hostile_relays(kymo_bin, answer, message):
    with socket.create_server(("127.0.0.1", 0)) as server:
        recorder = record(kymo_bin, "-o", f"kymo://localhost:{server.getsockname()[1]}/x", "-k", "sched_switch", "-d", "1s")
        server.settimeout(0.1)
        while recorder.poll() is None:
            # A connection that ends without an answer is not the last one.
            with contextlib.suppress(TimeoutError), server.accept()[0] as client:
                client.sendall(answer)
                client.shutdown(socket.SHUT_WR)
                while client.recv(4096):
                    pass
        _, said = recorder.communicate(timeout=60)
    assert recorder.returncode == 1 and message in said, said


# ---- ssh -----------------------------------------------------------------------------------------

SSH = """
set -e
mount -t tmpfs none /root/.ssh 2>/dev/null || { mkdir -p /root/.ssh; mount -t tmpfs none /root/.ssh; }
chmod 700 /root/.ssh
mkdir -p /run/sshd
ssh-keygen -q -t ed25519 -N "" -f /root/.ssh/id_ed25519
ssh-keygen -q -t ed25519 -N "" -f host_key
cp /root/.ssh/id_ed25519.pub /root/.ssh/authorized_keys
cat >sshd_config <<END
Port $PORT
ListenAddress 127.0.0.1
HostKey $PWD/host_key
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
SetEnv PATH=$BIN:/usr/bin:/bin
END
cat >/root/.ssh/config <<END
Host archive
  HostName 127.0.0.1
  Port $PORT
  StrictHostKeyChecking no
  UserKnownHostsFile /dev/null
  LogLevel ERROR
END
/usr/sbin/sshd -D -f $PWD/sshd_config &
sshd=$!
trap 'kill $sshd' EXIT
for i in $(seq 100); do ssh archive true 2>/dev/null && break; sleep 0.1; done
"""


@pytest.fixture
def ssh(kymo_bin, tmp_path):
    """ssh(script): with a real sshd as host "archive", whose user is root."""
    if not os.access("/usr/sbin/sshd", os.X_OK):
        pytest.skip("no sshd here: tools/install-deps test")

    def call(script):
        return subprocess.run(["unshare", "-m", "bash", "-c", SSH + script], cwd=tmp_path, capture_output=True, text=True,
                              timeout=120, check=False, env=dict(os.environ, PORT=str(free_port()), T=MODES,
                                                                 BIN=os.path.dirname(kymo_bin), LC_ALL="C.UTF-8"))

    return call


def test_ssh(kymo, ssh, tmp_path):
    done = ssh("kymo() { $BIN/kymo \"$@\"; }\n"
               "kymo record -o \"ssh://archive$PWD/it's here\" --name far --user 'modes:*' -- $T numbers 20000 0")
    assert done.returncode == 0 and "; 0 lost" in done.stderr, done
    trace, = glob.glob(f"{tmp_path}/it's here/*/far")
    assert not os.path.exists(f"{trace}/symbols")
    assert f"Next:  kymo info {trace} (on archive)" in done.stderr
    assert numbers(events(kymo, trace)) == list(range(20000))


def test_ssh_that_breaks(kymo, ssh, tmp_path):
    """The connection's process is killed: a new one continues."""
    done = ssh("""
$BIN/kymo record -o ssh://archive$PWD/far --name far --user 'modes:*' -- $T numbers 20000 50 & recorder=$!
until ls far/*/far/ust/pid/*; do sleep 0.05; done
for i in 1 2 3 4 5; do sleep 0.4; pkill -P $recorder -x ssh || true; done
wait $recorder
""")
    assert done.returncode == 0 and "; 0 lost" in done.stderr, done
    trace, = glob.glob(f"{tmp_path}/far/*/far")
    assert numbers(events(kymo, trace)) == list(range(20000))


def test_ssh_host_that_is_not_there(ssh):
    done = ssh("$BIN/kymo record -o ssh://nowhere.invalid/tmp/x --user 'modes:*' -d 100ms")
    assert done.returncode == 1 and "nowhere.invalid" in done.stderr
