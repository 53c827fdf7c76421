# SPDX-License-Identifier: MIT
"""Reports of a range begin with a state of the state history, if there is one, and are the same as without it."""

import os
import subprocess

import pytest

REPORTS = "cpu", "threads", "sched", "syscalls", "syscall-rates", "irq", "softirq", "summary", "io", "locks"
RANGES = ("10%", "12%"), ("50%", "50.5%"), ("80%", "81%"), ("99%", "100%")


@pytest.fixture(scope="module")
def trace(kymo_bin, tmp_path_factory):
    build = os.path.dirname(os.path.dirname(os.path.dirname(kymo_bin)))
    path = tmp_path_factory.mktemp("made") / "trace"
    subprocess.run([os.path.join(build, "bench", "make-trace"), "-n", "2500000", "-s", "4", path], check=True)
    return path


@pytest.fixture
def report(kymo, tmp_path, trace):
    """report(name, range, kept) -> output and status; @kept: with the state history."""
    def run(name, times, kept, *options):
        env = {"XDG_CACHE_HOME": str(tmp_path / ("cache" if kept else "none"))}
        return kymo("report", name, "--json", "--limit", "20", "--begin", times[0], "--end", times[1], *options, trace,
                    env=env, code=None).out

    kymo("timeline", "--json", "--width", "10", "--rows", "cpu", trace, env={"XDG_CACHE_HOME": str(tmp_path / "cache")})
    return run


def test_reports_of_ranges_are_the_same(report):
    for name in REPORTS:
        for times in RANGES:
            assert report(name, times, True) == report(name, times, False), (name, times)
    for options in (("--tid", "17"), ("--cpu", "1"), ("--min", "1us"), ("--filter", '$name != "syscall_entry_read"')):
        assert report("sched", RANGES[2], True, *options) == report("sched", RANGES[2], False, *options), options


def test_reports_do_not_read_what_is_before(report, trace, tmp_path):
    """The begin of the trace becomes damaged in a way that the index cannot notice."""
    path = os.path.join(trace, "channel0_1")
    good = {name: report(name, RANGES[2], True) for name in ("cpu", "sched", "syscall-rates")}
    before = os.stat(path)
    with open(path, "r+b") as file:
        kept = file.read(5 << 20)
        file.seek((1 << 20) + 65536)  # within a packet
        file.write(b"\xff" * (1 << 19))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    try:
        for name, text in good.items():
            assert report(name, RANGES[2], True) == text
        # Files and what is open come from all events; so does a filter's state.
        assert report("cpu", RANGES[2], False) != good["cpu"]
        assert report("cpu", RANGES[2], True, "--filter", "$cpu_id < 9") != good["cpu"]
    finally:
        with open(path, "r+b") as file:
            file.write(kept)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_wrong_history_is_not_believed(report, trace, tmp_path):
    good = report("sched", RANGES[1], False)
    cache = tmp_path / "cache" / "kymo"
    name, = os.listdir(cache)
    data = bytearray((cache / name).read_bytes())
    for at in range(len(data) // 3, len(data), 4096):
        data[at] ^= 0x40
    (cache / name).write_bytes(data)
    assert report("sched", RANGES[1], True) == good
    # Another state of the trace.
    os.utime(trace / "channel0_0")
    assert report("sched", RANGES[1], True) == good
