# SPDX-License-Identifier: MIT
"""The buffers of LTTng-UST after everything was killed: what lttng-crash gets out of them, Kymo reads where they are."""

import glob
import os
import random
import shutil
import signal
import struct
import time

from pathlib import Path

import pytest

from test_lttng_ust import WAIT_FILES, Lab, numbers

SESSIONS = {
    "discard": ("--subbuf-size=4096", "--num-subbuf=8"),
    "overwrite": ("--subbuf-size=4096", "--num-subbuf=4", "--overwrite"),
    "process": ("--subbuf-size=16384", "--num-subbuf=2", "--buffers-pid"),
}


def wait(condition, what):
    end = time.monotonic() + 120
    while not condition():
        assert time.monotonic() < end, what
        time.sleep(0.05)


def children(pid):
    """Of all threads, and their children."""
    found = []
    for path in glob.glob(f"/proc/{pid}/task/*/children"):
        with open(path, encoding="ascii") as file:
            for child in map(int, file.read().split()):
                found += [child, *children(child)]
    return found


def positions(directory):
    """Of each buffer: how far its writer is, and its reader; the head of the file tells where these numbers stand."""
    found = [(0, 0)]
    for path in glob.glob(str(directory / "**" / "ch_*"), recursive=True):
        with open(path, "rb") as file:
            data = file.read(65536)
        if len(data) > 128:
            found.append(tuple(struct.unpack_from("<Q", data, at)[0] for at in struct.unpack_from("<II", data, 32)))
    return found


def produced_of(path):
    """How far the writer of a buffer is."""
    data = path.read_bytes()
    return struct.unpack_from("<Q", data, struct.unpack_from("<I", data, 32)[0])[0]


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """Directories of buffers by session; nobody consumes them any more when the program, and then the daemons, are killed."""
    for program in ("lttng", "lttng-sessiond", "lttng-crash", "gcc"):
        if not shutil.which(program):
            pytest.skip(f"{program} is not installed: tools/install-deps test")
    before = set(glob.glob(WAIT_FILES))
    lab = Lab(tmp_path_factory.mktemp("c"))
    if os.system("echo '#include <lttng/tracepoint.h>' | gcc -E -xc - >/dev/null 2>&1"):
        pytest.skip("no headers of lttng-ust: tools/install-deps test")
    lab.build()
    try:
        lab.start()
        for name, channel in SESSIONS.items():
            create = ["--snapshot"] if name == "overwrite" else []
            lab.session(name, *channel, create=[*create, f"--output={lab.path / name}", f"--shm-path={lab.path / 'shm' / name}"])
        program = lab.popen("./prog", 0, 1 << 30, 1000)
        # Then the program has been told of all sessions.
        wait(lambda: all(max(position[0] for position in positions(lab.path / "shm" / name)) > 5000 for name in SESSIONS),
             "the program writes nothing")
        # What "enter" starts is nsenter, which becomes the daemon.
        daemons = [*children(lab.daemon.pid), lab.daemon.pid]
        for pid in daemons:
            os.kill(pid, signal.SIGSTOP)
        wait(lambda: all(max(end - begin for end, begin in positions(lab.path / "shm" / name)) > 8000 for name in SESSIONS),
             "the program writes nothing more")
        program.kill()
        program.wait()
        for pid in daemons:
            os.kill(pid, signal.SIGKILL)
        lab.daemon.wait()
        yield lab
    finally:
        lab.stop()
        for path in set(glob.glob(WAIT_FILES)) - before:
            os.unlink(path)


@pytest.mark.parametrize("name", SESSIONS)
def test_the_same_events_as_lttng_crash(kymo, peer, killed, name):
    shm, out = killed.path / "shm" / name, killed.path / f"out-{name}"
    kept = {path: path.read_bytes() for path in shm.rglob("*") if path.is_file()}
    killed.run("lttng-crash", "-x", out, shm)
    theirs, ours = peer("babeltrace2", out), kymo("print", shm)
    assert theirs.code == 0 and len(numbers(theirs.out)) > 100
    assert ours.raw == theirs.shown
    # The directory of one trace, and a trace of it.
    trace = next(path.parent for path in shm.rglob("metadata"))
    assert len(numbers(kymo("print", trace).out)) == len(numbers(ours.out))
    kymo("convert", shm, "-o", killed.path / f"trace-{name}")
    assert numbers(kymo("print", killed.path / f"trace-{name}").out) == numbers(ours.out)
    assert {path: path.read_bytes() for path in kept} == kept


def test_damaged_buffers(kymo, killed, tmp_path):
    source = next(path.parent for path in (killed.path / "shm" / "discard").rglob("metadata"))
    chance = random.Random(5)
    for n in range(60):
        place = tmp_path / f"d{n}"
        shutil.copytree(source, place)
        longest = max(place.glob("ch_*"), key=lambda path: path.stat().st_size)
        data = bytearray(longest.read_bytes())
        if n % 3 == 0:
            data = data[:chance.randrange(len(data))]
        else:
            for _ in range(n):
                data[chance.randrange(16, 600 if n % 3 == 1 else len(data))] = chance.choice((0, 255, 128, chance.randrange(256)))
        longest.write_bytes(data)
        done = kymo("print", place, code=None)
        assert done.code in (0, 1), done
        assert done.code == 0 or "error" in done.err or "kymo" in done.err, done
    data = (source / longest.name).read_bytes()
    (place / longest.name).write_bytes(data[:24] + b"\xff\xff" + data[26:])
    assert "this version of the buffer is not known" in kymo("print", place, code=1).err


def test_more_sub_buffers_than_the_file_has(kymo, killed, tmp_path):
    """A head that tells of a million sub-buffers in the same few bytes costs neither time nor disk."""
    source = next(path.parent for path in (killed.path / "shm" / "discard").rglob("metadata"))
    longest = max(source.glob("ch_*"), key=produced_of)

    def error(data, code=1):
        place = tmp_path / str(len(list(tmp_path.iterdir())))
        shutil.copytree(source, place)
        (place / longest.name).write_bytes(data)
        return kymo("print", place, code=code).err

    for at in (84, 88, 92):  # how long an element of each array is
        data = bytearray(longest.read_bytes())
        struct.pack_into("<I", data, at, 0)
        assert "the sizes of the buffer make no sense" in error(data)
    data = bytearray(longest.read_bytes())
    struct.pack_into("<Q", data, 112, 1 << 21)
    assert "the sizes of the buffer make no sense" in error(data)
    # 4096 sub-buffers, all of them the page that was written last as a whole: their counts and pages are behind the buffer's end.
    data = bytearray(longest.read_bytes())
    produced, consumed = struct.unpack_from("<II", data, 32)
    sub_bytes, n_subs = struct.unpack_from("<QQ", data, 104)
    page, count = (produced_of(longest) // sub_bytes - 1) % n_subs, 4096
    struct.pack_into("<QQ", data, 104, sub_bytes, count)
    struct.pack_into("<Q", data, produced, sub_bytes * count)
    struct.pack_into("<Q", data, consumed, 0)
    struct.pack_into("<IIII", data, 40, len(data), 0, len(data) + 8 * count, 0)
    struct.pack_into("<II", data, 84, 8, 8)
    data += struct.pack("<Q", sub_bytes) * count + struct.pack("<Q", page) * count
    assert "two sub-buffers have the same place" in error(data)
    # A writer's position near the end of all numbers.
    data = bytearray(longest.read_bytes())
    struct.pack_into("<Q", data, consumed, (1 << 64) - 2 * sub_bytes)
    struct.pack_into("<Q", data, produced, (1 << 64) - 1)
    error(data, None)


CORPUS = Path(__file__).parents[1] / "fuzz" / "corpus" / "crash-buffers" / "overwritten"


@pytest.fixture(scope="module")
def kept():
    """(metadata, buffer) of a trace of 303 events; the corpus has files as number, length, bytes."""
    data, files = CORPUS.read_bytes(), {}
    while data:
        length = data[1] | data[2] << 8
        files[data[0]], data = data[3:3 + length], data[3 + length:]
    return files[0], files[1]


def trace_of(place, metadata, *buffers):
    place.mkdir(parents=True)
    (place / "metadata").write_bytes(metadata)
    for i, data in enumerate(buffers):
        (place / f"ch_{i}").write_bytes(data)
    return place


def test_the_directory_of_the_session(kymo, kept, tmp_path):
    """Folder ust is not read a second time, as a trace of its own."""
    trace_of(tmp_path / "s" / "ust" / "uid" / "0" / "64-bit", *kept)
    for place in ("s", "s/ust", "s/ust/uid/0/64-bit"):
        assert len(kymo("print", tmp_path / place).out.splitlines()) == 303
    kymo("convert", tmp_path / "s", "-o", tmp_path / "out")
    assert len(kymo("print", tmp_path / "out").out.splitlines()) == 303
    (tmp_path / "link").symlink_to(tmp_path / "s")
    assert len(kymo("print", tmp_path / "link").out.splitlines()) == 303


def test_a_bad_buffer_beside_a_good_one(kymo, kept, tmp_path):
    metadata, good = kept
    for i, bad in enumerate((b"", bytes([good[0] ^ 1]) + good[1:])):
        for place, buffers in ((tmp_path / f"first{i}", (bad, good)), (tmp_path / f"last{i}", (good, bad))):
            done = kymo("print", trace_of(place, metadata, *buffers), code=1)
            assert len(done.out.splitlines()) == 303 and f"ch_{buffers.index(bad)}: not a buffer of LTTng" in done.err


def test_positions(kymo, kept, tmp_path):
    metadata, good = kept
    data = bytearray(good)
    produced, consumed = struct.unpack_from("<II", data, 32)
    struct.pack_into("<Q", data, consumed, (1 << 64) - 1)
    assert "the reader is ahead of the writer" in kymo("print", trace_of(tmp_path / "ahead", metadata, data), code=1).err
    # A program of 32 bits whose positions have gone past 2^32 in the middle of what is kept.
    data = bytearray(good)
    sub_bytes, n_subs = struct.unpack_from("<QQ", data, 104)
    commits_at, committed = struct.unpack_from("<II", data, 40)
    shift = (1 << 32) - sub_bytes * n_subs * (struct.unpack_from("<Q", data, produced)[0] // (sub_bytes * n_subs))
    data[30] = 4
    data[76:79] = bytes((4, 4, 4))
    for at in produced, consumed:
        struct.pack_into("<I", data, at, (struct.unpack_from("<Q", good, at)[0] + shift) % (1 << 32))
    assert struct.unpack_from("<I", data, produced)[0] < struct.unpack_from("<I", data, consumed)[0]
    for i in range(n_subs):
        at = commits_at + i * struct.unpack_from("<I", data, 84)[0] + committed
        struct.pack_into("<Q", data, at, (struct.unpack_from("<Q", good, at)[0] + shift // n_subs) % (1 << 32))
    assert len(kymo("print", trace_of(tmp_path / "wrapped", metadata, data)).out.splitlines()) == 303
