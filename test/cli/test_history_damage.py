# SPDX-License-Identifier: MIT
"""A state history on disk that becomes damaged is not believed: it is removed, and built again, also while a viewer shows it."""

import contextlib
import fcntl
import json
import os
import random
import shutil

import pytest

from test_view import Viewer
from test_view_live import forks, recording, until  # noqa: F401 (a fixture)
from test_view_rows import ready

WARNING = "the state history on disk was damaged: kymo has removed it, and builds it again where it is needed"


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache" / "kymo"


@pytest.fixture
def trace(reference, tmp_path):
    shutil.copytree(reference, tmp_path / "trace")
    return tmp_path / "trace"


def index_in(cache):
    name, = (name for name in os.listdir(cache) if name.endswith(".history"))
    return cache / name


def flip(path, places):
    """In the file itself, as a bad disk does."""
    with open(path, "r+b") as file:
        for at in places:
            file.seek(at)
            byte = file.read(1)[0]
            file.seek(at)
            file.write(bytes([byte ^ 1 << at % 8]))


def pictures(view):
    """What the page asks the history for; again and again while a new one is built."""
    asked = []
    for _ in range(20):
        tree = ready(view)
        view.counted()
        begin, end = (view.get("info")[word] for word in ("begin", "end"))
        rows = [str(row[0]) for row in tree["rows"]]
        asked = [tree["rows"]]
        for i in range(6):
            part = {"begin": begin + (end - begin) * i // 6, "end": begin + (end - begin) * (i + 1) // 6}
            for at in range(0, len(rows), 200):
                some = dict(part, ids=",".join(rows[at:at + 200]))
                asked += [view.get("timeline", count=500, **some), view.get("curves", count=100, **some)]
        asked.append(view.get("area", begin=begin, end=end))
        if all(answer.get("ready", True) for answer in asked[1:]):
            break
    return [{name: value for name, value in answer.items() if name not in ("read", "progress")} if isinstance(answer, dict) else answer
            for answer in asked]


def test_a_viewer_builds_it_again(kymo_bin, trace, cache):
    viewer = Viewer(kymo_bin, "--no-browser", trace, env={"XDG_CACHE_HOME": str(cache.parent)})
    good = pictures(viewer)
    path = index_in(cache)
    size, right = os.path.getsize(path), path.read_bytes()
    some = random.Random(17)
    # All over the file, in single places, in the head, and without its end.
    for n, places in enumerate([range(0, size, 97), [size // 2], [some.randrange(192, size)], some.sample(range(192, size), 50), range(8, 60)]):
        flip(path, places)
        assert pictures(viewer) == good
        if n < 1:
            assert index_in(cache).read_bytes() == right
        path = index_in(cache)
    os.truncate(path, size // 3)
    assert pictures(viewer) == good
    assert index_in(cache).read_bytes() == right
    assert viewer.end().count(WARNING) >= 2


def test_commands_build_it_again(kymo, trace, cache, tmp_path):
    env = {"XDG_CACHE_HOME": str(cache.parent)}

    def timeline():
        found = kymo("timeline", "--json", trace, env=env)
        return found.out.replace('"index_built": true', '"index_built": false'), found.err

    def report():
        return kymo("report", "sched", "--json", "--begin", "50%", "--end", "60%", trace, env=env)

    def query():
        return kymo("query", "--json", trace, f"select * from thread_state where end > {middle}", env=env)

    ends = json.loads(timeline()[0])
    middle = (ends["begin_ns"] + ends["end_ns"]) // 2
    good = timeline()[0], report().out, query().out
    right = index_in(cache).read_bytes()
    for places in (range(192, len(right), 61), range(64, 192), [3]):
        for run, expected in ((lambda: timeline()[0], good[0]), (lambda: report().out, good[1]), (lambda: query().out, good[2])):
            flip(index_in(cache), places)
            assert run() == expected
            assert timeline()[0] == good[0]
            assert index_in(cache).read_bytes() == right
    flip(index_in(cache), [len(right) // 2])
    assert WARNING in timeline()[1] and not timeline()[1]
    page = tmp_path / "page.html"
    kymo("view", "--save", page, trace, env=env)
    saved = page.read_bytes()
    flip(index_in(cache), range(500, len(right), 1000))
    assert WARNING in kymo("view", "--save", page, trace, env=env).err
    assert page.read_bytes() == saved


def test_a_viewer_does_not_wait_for_another_at_its_end(kymo_bin, trace, cache):
    """Another process has the lock of the index, as while it builds it."""
    env = {"XDG_CACHE_HOME": str(cache.parent)}
    first = Viewer(kymo_bin, "--no-browser", trace, env=env)
    good = ready(first)["rows"]
    part = index_in(cache).with_suffix(".part")
    os.unlink(index_in(cache))
    first.end()
    with open(part, "w", encoding="ascii") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        other = Viewer(kymo_bin, "--no-browser", trace, env=env)
        assert not other.get("tree")["ready"]
        other.end()
        third = Viewer(kymo_bin, "--no-browser", trace, env=env)
        assert not third.get("tree")["ready"]
    assert ready(third)["rows"] == good
    third.end()


def unnamed_history(pid):
    """A file of the process that has no name."""
    for fd in os.listdir(f"/proc/{pid}/fd"):
        path = f"/proc/{pid}/fd/{fd}"
        with contextlib.suppress(OSError):
            if "(deleted)" in os.readlink(path):
                with open(path, "rb") as file:
                    if file.read(8) == b"KYMOHIS1":
                        return path, os.stat(path).st_ino
    return None


def test_the_history_of_a_recording_begins_again(recording, kymo_bin, tmp_path):  # noqa: F811
    viewer = Viewer(kymo_bin, "--no-browser", f"seen-{tmp_path.name}", env={"XDG_CACHE_HOME": str(tmp_path), "TMPDIR": str(tmp_path)})

    def painted():
        """How many rows have states, once there are rows."""
        tree, info = viewer.get("tree"), viewer.get("info")
        ids = [str(row[0]) for row in tree["rows"]][:200]
        if not tree["ready"] or not ids or info["begin"] is None:
            return 0
        found = viewer.get("timeline", begin=info["begin"], end=info["end"], count=500, ids=",".join(ids))
        return sum(bool(row["runs"]) for row in found["rows"]) if found["ready"] else 0

    forks()
    until(lambda: painted() > 3)
    path, before = unnamed_history(viewer.process.pid)
    with open(path, "rb"):  # so that no other file gets its number
        flip(path, range(192, os.path.getsize(path), 41))
        until(lambda: painted() >= 0 and (found := unnamed_history(viewer.process.pid)) and found[1] != before)
    until(lambda: painted() > 3)
    assert viewer.get("info")["recording"]["running"]
    assert recording.stop()
    viewer.end()
