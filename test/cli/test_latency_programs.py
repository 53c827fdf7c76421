# SPDX-License-Identifier: MIT
"""KYMO_LATENCY_BEGIN and KYMO_LATENCY_END in real programs, and kymo latency, which shows their histograms."""

import contextlib
import json
import os
import signal
import subprocess
import time
import urllib.request

import pytest

pytestmark = pytest.mark.usefixtures("needs_root_tracefs")

BUILD = os.environ.get("KYMO_BUILD") or os.path.join(os.path.dirname(__file__), "..", "..", "build")
PAIRS = os.path.join(BUILD, "test", "tracer", "pairs")
MEMFD = "/memfd:kymo-latency"


class Program:
    """The program `pairs`; step() carries out one line, and gives its answer."""

    def __init__(self, name=PAIRS):
        self.process = subprocess.Popen([name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def step(self, *words):
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().split()
        return [int(word) for word in answer] if answer and answer[0].isdigit() else answer

    def maps(self):
        with open(f"/proc/{self.process.pid}/maps", encoding="ascii") as file:
            return file.read()


@pytest.fixture
def start():
    with contextlib.ExitStack() as stack:
        def begin(*args):
            program = Program(*args)
            stack.callback(program.process.wait)
            stack.callback(program.process.kill)
            return program
        yield begin


class Measured:
    """`kymo latency --layers program --json`, from its start to end()."""

    def __init__(self, kymo_bin, *args):
        self.process = subprocess.Popen([kymo_bin, "latency", "--once", "--every", "1h", "--json", "--layers", "program", *args],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        assert line.startswith("kymo: measuring"), line

    def end(self):
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate()
        assert self.process.returncode == 0, err
        return json.loads(out)


@pytest.fixture
def measure(kymo_bin):
    running = []

    def begin(*args):
        running.append(Measured(kymo_bin, *args))
        return running[-1]
    yield begin
    for one in running:
        one.process.poll() is None and one.process.kill()
        one.process.wait()


def until(is_true):
    deadline = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def figures(result, owner=None):
    return {one["name"]: one["windows"]["now"] for one in result["series"]
            if one["layer"] == "program" and one["name"].startswith("pairs ") and (not owner or one["owner"] == owner)}


def test_durations_are_those_of_the_program(start, measure):
    program = start()
    # What a program has counted before is not of this measurement.
    program.step("sleep", 1, 5, 1000000)
    measured = measure()
    count, sum_ns, max_ns = program.step("sleep", 4, 40, 2000000)
    handed, handed_ns = program.step("hand", 50)
    pairs, signals = program.step("signals", 300)
    [busy] = program.step("busy", 4, 50000)
    result = measured.end()
    found = figures(result)
    nap = found["pairs nap"]
    assert nap["count"] == count == 160
    # The program measures around the pairs, with another clock: a little more, and where others have the CPU in between, much more.
    assert sum_ns / 4 < nap["sum_ns"] <= 1.001 * sum_ns
    assert 160 * 2000000 <= 1.001 * nap["sum_ns"]
    # If one of the sleeps before was longer, it is the end of a bucket, which is an eighth wide.
    assert nap["max_ns"] <= 1.126 * max_ns
    assert all(begin > 1700000 for begin, _, _ in nap["buckets"])
    assert found["pairs hand"]["count"] == handed == 50 and 0 < found["pairs hand"]["sum_ns"] <= 1.001 * handed_ns
    # Signals interrupt pairs at any place, in the library as well.
    assert found["pairs interrupted"]["count"] == pairs and found["pairs handler"]["count"] == signals
    assert found["pairs busy"]["count"] == busy == 200000
    assert all(sum(n for _, _, n in one["buckets"]) == one["count"] for one in found.values())
    assert result["lost"]["programs"] == 0


def test_children_threads_and_the_end(start, measure):
    measured = measure("--by", "process")
    program = start()
    [child] = program.step("fork", 20)
    pid = program.process.pid
    maps = program.maps()
    assert MEMFD in maps
    line = next(line for line in maps.splitlines() if MEMFD in line)
    mode = os.stat(f"/proc/{pid}/map_files/{line.split()[0]}").st_mode
    assert mode & 0o777 == 0o600
    assert not any(MEMFD in os.readlink(f"/proc/{pid}/fd/{fd}") for fd in os.listdir(f"/proc/{pid}/fd")), "no descriptor is left open"
    # Its file goes with the program, however that ends; what it has counted does not get lost.
    until(lambda: any(MEMFD in os.readlink(entry.path) for entry in os.scandir(f"/proc/{measured.process.pid}/fd")
                      if os.path.islink(entry.path)))
    program.process.kill()
    program.process.wait()
    result = measured.end()
    for owner in (f"pairs {pid}", f"pairs {child}", str(pid), str(child)):
        found = figures(result, owner)
        if found:
            assert found["pairs forked"]["count"] == 20 and found["pairs across"]["count"] == 1
    assert sum(one["windows"]["now"]["count"] for one in result["series"] if one["name"] == "pairs forked") == 40


def test_limits_are_counted(start, measure):
    measured = measure()
    program = start()
    assert program.step("full", 20000) == ["ok"] and program.step("trackers") == ["ok"]
    program.step("sleep", 1, 1, 1000)
    result = measured.end()
    found = figures(result)
    # The names of the first 63 of 100 find room beside "full"; "nap" finds none.
    assert found["pairs full"]["count"] == 16384 and sum(name.startswith("pairs many_") for name in found) == 63
    assert "pairs nap" not in found
    assert result["lost"]["programs"] == 20000 - 16384 + 37 + 2


def test_lies(start, measure):
    program, honest = start(), start()
    honest.step("sleep", 1, 1, 1000000)
    program.step("sleep", 1, 1, 1000)
    measured = measure()
    assert program.step("lie") == ["ok"]
    honest.step("sleep", 1, 10, 1000000)
    program.step("sleep", 1, 1, 1000)
    found = figures(measured.end())
    assert found["pairs nap"]["count"] >= 10
    for name, one in found.items():
        assert name.removeprefix("pairs ").replace("_", "").isalnum()
        assert 0 <= one["sum_ns"] < 2**63 and 0 <= one["p99_ns"] <= one["max_ns"] < 2**63


def test_text_csv_and_metrics(start, kymo_bin, kymo):
    program = start()
    program.step("sleep", 1, 1, 1000)
    server = subprocess.Popen([kymo_bin, "latency", "--layers", "program", "--listen", "127.0.0.1:0", "--every", "100ms", "--csv"],
                              stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        url = server.stderr.readline().split()[-1]
        program.step("sleep", 1, 20, 100000)
        line = 'kymo_latency_seconds_count{layer="program",name="pairs nap"} 20'
        deadline = time.monotonic() + 20
        while line not in (text := urllib.request.urlopen(url, timeout=10).read().decode()) and time.monotonic() < deadline:
            time.sleep(0.1)
        assert line in text
    finally:
        server.terminate()
        out, _ = server.communicate()
    assert ",program," in out and "pairs nap" in out
    # Text shows the layer under its title, and pairs that found no room in a note.
    shown = subprocess.Popen([kymo_bin, "latency", "--layers", "program", "--once", "--every", "1h"], stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
    assert shown.stderr.readline().startswith("kymo: measuring")
    program.step("sleep", 1, 7, 100000)
    program.step("full", 20000)
    shown.send_signal(signal.SIGINT)
    out, _ = shown.communicate()
    rows = [line.split() for line in out.splitlines()]
    assert ["Program", "trackers"] in rows and any(row[:3] == ["pairs", "nap", "7"] for row in rows)
    assert "Note: 3616 pairs or trackers of programs found no room" in out
