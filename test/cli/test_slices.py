# SPDX-License-Identifier: MIT
"""Text cut into slices of time: the same bytes, warnings and errors as from one merge, whatever the clocks do."""

import os
import random
import shutil
import struct
import subprocess

import pytest

import make_trace

SEEDS = range(int(os.environ.get("KYMO_SLICES", "25")))
JOBS = ("2", "3", "8")
WAYS = (
    ["print"],
    ["print", "--recover"],
    ["print", "--clock-cycles", "--names", "all"],
    ["convert", "--to", "json"],
    ["convert", "--to", "csv", "--fields", "$time,$event,$stream,$cpu"],
    ["print", "--event", "tick"],
    ["print", "--filter", "_number > 40"],
    ["print", "--filter", "_number > 40", "--end", "70%"],
    ["print", "--begin", "20%", "--end", "70%"],
    ["print", "--recover", "--begin", "40%", "--event", "data"],
    ["print", "--no-delta", "--end", "50%"],
)


class Wild(make_trace.Packet):
    """A packet whose time may go back: then a whole time stamp is written."""

    def head(self, event_id, time):
        if time < self.last:
            self.body += struct.pack("<BIQ", 31, event_id, time)
            self.body += struct.pack("<i", 1000 + self.cpu)
            self.last = time
        else:
            super().head(event_id, time)


def wild_stream(rng, cpu, style):
    """Packets of one stream; @style: how likely it is that something is odd."""
    packets, time, lost = [], rng.randrange(3000), 0
    sequence = 0
    for _ in range(rng.randrange(1, 14)):
        sequence += 2 if rng.random() < style["gap"] else 1
        lost += rng.randrange(1, 9) if rng.random() < style["lost"] else 0
        if rng.random() < style["back"]:
            time -= rng.randrange(min(time, 6000) + 1)
        packet = Wild(time, sequence, lost, cpu, cpu)
        for i in range(rng.choice((0, 1, 3, 40, 90))):
            time += rng.randrange(400) // style["grain"] * style["grain"]
            if rng.random() < style["back"] / 20:
                time -= rng.randrange(min(time, 4000) + 1)
            rng.choice((lambda: packet.tick(time, i), lambda: packet.odd(time),
                        lambda: packet.data(time, range(i % 3), i % 2, i)))()
        end = max(time, packet.last)
        if rng.random() < style["lie"]:
            end = rng.randrange(end + 5000)
        packets.append(packet.raw(end=end, pad=rng.choice((0, 16, 64))))
        if rng.random() < style["lie"]:
            time += rng.randrange(9000)
    return b"".join(packets)


def style_of(rng):
    def likely(*shares):
        return rng.choice((0, 0) + shares)

    return {"gap": likely(0.2), "lost": likely(0.3), "back": likely(0.1, 0.5),
            "lie": likely(0.3), "grain": rng.choice((1, 1, 100, 399))}


def damage(rng, data):
    data = bytearray(data)
    for _ in range(rng.randrange(1, 4)):
        at = rng.randrange(len(data))
        data[at:at + 8] = bytes(rng.randrange(256) for _ in data[at:at + 8])
    return bytes(data[:rng.randrange(len(data) // 2, len(data))] if rng.random() < 0.3 else data)


def wild_trace(path, seed):
    rng = random.Random(seed)
    style, streams = style_of(rng), {}
    for cpu in range(rng.randrange(1, 6)):
        streams[f"c_{cpu}"] = wild_stream(rng, cpu, style)
        if rng.random() < 0.15:
            streams[f"c_{cpu}"] = damage(rng, streams[f"c_{cpu}"])
    return make_trace.write(path, streams)


def run(kymo_bin, args, traces):
    """Exit code, and the two outputs as they came, in one."""
    done = subprocess.run([kymo_bin, *args, *traces], stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, timeout=240,
                          env=dict(os.environ, TZ="UTC"))
    assert done.returncode >= 0
    assert b"Sanitizer" not in done.stdout and b"runtime error" not in done.stdout, done.stdout
    return done.returncode, done.stdout


def compare(kymo_bin, traces, ways=WAYS):
    for way in ways:
        code, out = run(kymo_bin, [*way, "--jobs", "1"], traces)
        for jobs in JOBS:
            other_code, other_out = run(kymo_bin, [*way, "--jobs", jobs], traces)
            assert other_code == code, (way, jobs)
            assert other_out == out, (way, jobs)


@pytest.mark.parametrize("seed", SEEDS)
def test_wild(kymo_bin, tmp_path, seed):
    """Ties, time that goes back, packets that lie about their times, losses, gaps, damage."""
    compare(kymo_bin, [wild_trace(tmp_path / "trace", seed)])


def test_several_traces(kymo_bin, tmp_path):
    """Two traces on one clock, one of them moved."""
    traces = [wild_trace(tmp_path / name, seed) for name, seed in (("a", 1001), ("b", 1002))]
    compare(kymo_bin, traces, ways=(
        ["print", "--force-correlate"], ["convert", "--to", "json", "--force-correlate"]))


def make_long(kymo_bin, path, events, streams, packet_bytes):
    build = os.path.dirname(os.path.dirname(os.path.dirname(kymo_bin)))
    make = os.path.join(build, "bench", "make-trace")
    if not os.access(make, os.X_OK):
        pytest.skip(f"{make} is not built")
    subprocess.run([make, "-n", str(events), "-s", str(streams), "-p", str(packet_bytes), path],
                   check=True)
    return str(path)


@pytest.fixture(scope="module")
def long_trace(kymo_bin, tmp_path_factory):
    return make_long(kymo_bin, tmp_path_factory.mktemp("slices") / "trace", 400000, 5, 16384)


@pytest.mark.parametrize("way", (
    ["--event", "power_cpu_idle"],          # little is selected: packets are passed over
    ["--filter", "state == 1"],
    ["--filter", "$stream == 'channel0_3'"],
    ["--begin", "30%", "--end", "60%"],
    ["--stream", "channel0_1"],
), ids=" ".join)
def test_selected(kymo_bin, long_trace, way):
    compare(kymo_bin, [long_trace], ways=(["print", *way],))


def test_without_index(kymo_bin, long_trace, tmp_path):
    bare = tmp_path / "bare"
    shutil.copytree(long_trace, bare)
    shutil.rmtree(bare / "index")
    compare(kymo_bin, [bare], ways=(["print"], ["print", "--event", "power_cpu_idle"]))


def test_memory_of_many_jobs(kymo_bin, tmp_path, tsan):
    """Hundreds of streams: what is held does not grow with the number of jobs."""
    with open(kymo_bin, "rb") as program:
        if tsan or b"__asan_init" in program.read():
            pytest.skip("a sanitizer multiplies memory")
    path = make_long(kymo_bin, tmp_path / "trace", 4000000, 256, 4096)
    script = "import resource, subprocess, sys;" \
             "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);" \
             "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    for jobs in ("2", "8", "64"):
        done = subprocess.run(["python3", "-c", script, kymo_bin, "print", "--jobs", jobs, path],
                              stdout=subprocess.PIPE, check=True)
        assert int(done.stdout) < 80 * 1024, jobs


def test_last_moment(kymo_bin, tmp_path):
    """A bit too many in a time stamp: all times beyond 64 bits of ns are the last moment."""
    streams = {}
    for cpu in range(3):
        packet = Wild(5000, 0, 0, cpu, cpu)
        for time in (5005, 5010 + cpu, 2**63 + 7, 2**63 + 9):
            packet.tick(time, cpu)
        streams[f"c_{cpu}"] = [packet]
    compare(kymo_bin, [make_trace.write(tmp_path / "trace", streams)])


def test_one_moment(kymo_bin, tmp_path):
    """Everything happens at once: one slice, which has more lines than it may hold."""
    streams = {}
    for cpu in range(2):
        packet = Wild(5000, 0, 0, cpu, cpu)
        packet.tick(5000, 1, b"t" * 300)
        packet.body *= 60000
        streams[f"c_{cpu}"] = [packet]
    compare(kymo_bin, [make_trace.write(tmp_path / "trace", streams)], ways=(["print"],))
