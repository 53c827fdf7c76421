# SPDX-License-Identifier: MIT
"""kymo latency --members: single long durations, with whose they are and call stacks."""

import collections
import json
import signal
import subprocess
import sys

import pytest

from test_latency import FSYNCS, Load, needs_bpf  # noqa: F401 (a fixture)
from test_latency_track import track  # noqa: F401 (a fixture)

pytestmark = pytest.mark.usefixtures("needs_bpf")


def test_a_long_sleep(track):
    load = Load("import time\nfor _ in range(20): time.sleep(0.001)\ntime.sleep(0.25)")
    tracked = track("--pid", load.pid, "--members", "200ms", "--stacks", "--layers", "syscall,offcpu")
    load.go()
    members, result = tracked.end()
    sleeps = [one for one in members if one["name"] == "sleep"]
    assert {one["member"] for one in sleeps} == {"syscall", "offcpu"}
    for one in sleeps:
        assert one["tid"] == one["pid"] == load.pid and one["duration_ns"] >= 250000000
    call, wait = sorted(sleeps, key=lambda one: one["member"] == "offcpu")
    assert call["duration_ns"] >= wait["duration_ns"]
    # Where the thread slept, and which code of the program called.
    assert any("nanosleep" in name for name in wait["kernel_stack"]), wait
    assert call["user_stack"]
    assert wait["prev_tid"] >= 0
    assert result["lost"]["members"] == 0


def test_all_members(track, tmp_path):
    """With the lowest threshold, each duration of the histograms is one."""
    load = Load(FSYNCS, tmp_path / "file")
    tracked = track("--pid", load.pid, "--members", "1ns", "--syscalls", "fsync", "--stacks")
    load.go()
    members, result = tracked.end()
    assert result["lost"]["members"] == 0
    counts, sums = collections.Counter(), collections.Counter()
    for one in members:
        counts[one["member"], one["name"]] += 1
        sums[one["member"], one["name"]] += one["duration_ns"]
        if one["member"] == "file":
            assert not one["kernel_stack"][0].startswith("bpf_"), one
    found = {(one["layer"], one["name"]): one["windows"]["now"] for one in result["series"]}
    # Interrupts are nobody's, and so not of a process.
    found = {key: histogram for key, histogram in found.items() if key[0] not in ("irq", "softirq")}
    assert found[("syscall", "fsync")]["count"] == 40
    for key, histogram in found.items():
        assert counts[key] == histogram["count"], key
        assert sums[key] == histogram["sum_ns"], key


def test_nothing_of_its_own(kymo_bin):
    """The tool waits ten times a second: this is no member, and it has no row."""
    sleeper = subprocess.Popen([sys.executable, "-c", "import time\nwhile True: time.sleep(0.02)"])
    process = subprocess.Popen([kymo_bin, "latency", "--once", "--every", "500ms", "--json", "--by", "process",
                                "--members", "10ms"], stdout=subprocess.PIPE, text=True)
    try:
        *members, result = [json.loads(line) for line in process.communicate()[0].splitlines()]
    finally:
        sleeper.kill()
        sleeper.wait()
    told = {one["pid"] for one in members if one["member"] in ("syscall", "wakeup", "offcpu")}
    assert sleeper.pid in told and process.pid not in told
    owners = {one.get("owner_id") for one in result["series"]}
    assert sleeper.pid in owners and process.pid not in owners


FLOOD = "import os\nwhile True: os.getppid()"


@pytest.mark.parametrize("what", [("--members", "1ns"), ("--track", "f: syscall:getppid -> syscall:getppid", "--over", "1ns")])
def test_a_flood_does_not_hold_it_up(kymo_bin, what):
    """A program that makes members faster than they are read holds up neither output nor an order to end."""
    flood = subprocess.Popen([sys.executable, "-c", FLOOD])
    process = subprocess.Popen([kymo_bin, "latency", "--every", "300ms", "--json", "--stacks", "--pid", str(flood.pid),
                                "--layers", "syscall", *what], stdout=subprocess.PIPE, text=True)
    try:
        assert any('"series"' in line for line in process.stdout)
        process.send_signal(signal.SIGINT)
        process.communicate()
    finally:
        flood.kill()
        flood.wait()
        process.kill()


def test_text(kymo):
    sleeper = subprocess.Popen([sys.executable, "-c", "import time\nwhile True: time.sleep(0.02)"])
    done = kymo("latency", "--once", "--every", "300ms", "--layers", "offcpu", "--members", "10ms", code=0)
    sleeper.kill()
    sleeper.wait()
    assert " offcpu " in done.out and f"pid {sleeper.pid})" in done.out
