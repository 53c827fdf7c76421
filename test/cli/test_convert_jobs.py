# SPDX-License-Identifier: MIT
"""A selection written as CTF: the same files, warnings and exit code for every number of jobs."""

import os
import resource
import subprocess

import pytest

import make_trace
from test_jobs import SMALL, both, trace  # noqa: F401
from test_slices import wild_trace

WAYS = {
    "filter": ["--filter", "$time > 0"],
    "event": ["--event", "*a*"],
    "begin": ["--begin", "30%"],
    "range": ["--begin", "20%", "--end", "70%"],
    "stream": ["--stream", "c*"],
    "head": ["--head", "3001"],
    "tail": ["--tail", "3001"],
    "recover": ["--recover", "--begin", "30%"],
}


def tree(path):
    """Every file below, and what is in it."""
    found = {}
    for where, _, names in os.walk(path):
        for name in names:
            with open(os.path.join(where, name), "rb") as file:
                found[os.path.relpath(os.path.join(where, name), path)] = file.read()
    return found


def converted(kymo_bin, tmp_path, args, traces, jobs):
    out = tmp_path / f"out-{jobs}"
    code, told = both(kymo_bin, ["convert", *args, "-o", str(out), "--jobs", str(jobs), *traces])
    files = tree(out)
    if out.exists():
        subprocess.run(["rm", "-r", str(out)], check=True)
    return code, told.replace(str(out).encode(), b"OUT"), files


def compare(kymo_bin, tmp_path, args, traces, jobs=(2, 4)):
    want = converted(kymo_bin, tmp_path, args, traces, 1)
    for number in jobs:
        assert converted(kymo_bin, tmp_path, args, traces, number) == want, (args, number)
    return want


@pytest.mark.parametrize("way", WAYS)
def test_large(kymo_bin, tmp_path, trace, way):  # noqa: F811
    code, told, files = compare(kymo_bin, tmp_path, ["--to", "ctf2", *WAYS[way]], [trace])
    assert code == 0 and not told
    assert "metadata" in files and any(files[name] for name in files if name.startswith("channel"))


@pytest.mark.parametrize("seed", range(12))
def test_wild(kymo_bin, tmp_path, seed):
    """Time that goes back, losses, packets that lie about their times, damage."""
    traces = [wild_trace(tmp_path / "trace", 3000 + seed)]
    for way in ("filter", "range", "recover"):
        compare(kymo_bin, tmp_path, ["--to", "ctf1.8", *WAYS[way]], traces)
    compare(kymo_bin, tmp_path, ["--to", "ctf2"], traces)
    compare(kymo_bin, tmp_path, ["--to", "csv", *WAYS["filter"]], traces)


def test_small(kymo_bin, tmp_path):
    for path in SMALL[::4]:
        compare(kymo_bin, tmp_path, ["--to", "ctf2", "--filter", "$time >= 0"], [path], jobs=(3,))
        compare(kymo_bin, tmp_path, ["--to", "csv"], [path], jobs=(3,))


@pytest.mark.parametrize("jobs", (1, 2))
@pytest.mark.parametrize("way", (["--to", "ctf2"], ["--to", "ctf2", "--filter", "number >= 0"],
                                 ["--to", "ctf1.8", "--head", "1000000"], ["--to", "csv"]))
def test_damage_and_a_full_disk(kymo_bin, tmp_path, way, jobs):
    """What ends at damage is kept; what could not be written is not, wherever else there is damage."""
    packets = {}
    for cpu, n_packets in enumerate((2, 100)):
        packets[f"c_{cpu}"] = []
        for number in range(n_packets):
            packet = make_trace.Packet(1000 + 10000 * number, cpu=cpu, instance=cpu)
            for i in range(500):
                packet.tick(1000 + 10000 * number + 10 * i, i)
            packets[f"c_{cpu}"].append(packet)
    path = make_trace.write(tmp_path / "trace", packets)
    with open(os.path.join(path, "c_0"), "r+b") as file:
        file.truncate(os.path.getsize(file.name) - 100)

    def convert(name, limit):
        return subprocess.run(
            [kymo_bin, "convert", *way, "--jobs", str(jobs), "-o", tmp_path / name, path],
            capture_output=True, text=True, timeout=240, check=False,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)))

    kept = convert("kept", resource.RLIM_INFINITY)
    assert kept.returncode == 1 and "c_0" in kept.stderr and (tmp_path / "kept").exists()
    lost = convert("lost", 100_000)
    assert lost.returncode == 1 and "File too large" in lost.stderr, lost.stderr
    assert not (tmp_path / "lost").exists()


def going_back(path, streams):
    """Each stream's time goes back once, the last one's earliest."""
    packets = {}
    for cpu in range(streams):
        packet = make_trace.Packet(1000, cpu=cpu, instance=cpu)
        for i in range(20):
            when = 1000 + 100 * (streams - cpu) + 10 * i - (150 if i >= 10 else 0)
            if i == 10:
                packet.last = when - (1 << 28)  # for the long header, which can go back
            packet.tick(when, i)
        packets[f"c_{cpu}"] = [packet]
    return make_trace.write(path, packets)


@pytest.mark.parametrize("way", [
    ["print"], ["print", "--no-output"], ["print", "--head", "1000"], ["print", "--filter", "number >= 0"],
    ["convert", "--to", "json"], ["convert", "--to", "csv", "--fields", "$time"]])
def test_time_that_goes_back(kymo_bin, tmp_path, way):
    """Told once for each stream, in the streams' order, at the end."""
    path = going_back(tmp_path / "trace", 6)
    want = both(kymo_bin, [*way, "--jobs", "1", path])
    told = [line for line in want[1].splitlines() if b"time goes back" in line]
    assert [line.split(b"/")[-1].split(b":")[0] for line in told] == [b"c_%d" % i for i in range(6)]
    assert b"\n".join(told) in want[1]
    for jobs in ("2", "4"):
        assert both(kymo_bin, [*way, "--jobs", jobs, path]) == want
