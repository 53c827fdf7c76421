# SPDX-License-Identifier: MIT
"""Call stacks that a trace has once: samples at events carry their numbers, and readers put the addresses back."""

import collections
import os
import re
import signal
import struct
import subprocess
import time

import make_trace
import pytest

# Two processes pass a byte to and fro: each round has switches in get() and wakings in put().
PROGRAM = r"""
#include <stdlib.h>
#include <unistd.h>

static int there[2], back[2];

__attribute__((noinline)) void get(int fd)
{
	char byte;

	if (read(fd, &byte, 1) != 1)
		_exit(1);
	__asm__ volatile("");
}

__attribute__((noinline)) void put(int fd)
{
	if (write(fd, "x", 1) != 1)
		_exit(1);
	__asm__ volatile("");
}

int main(int argc, char **argv)
{
	long n = atol(argv[1]);

	if (pipe(there) || pipe(back))
		return 1;
	if (!fork()) {
		for (long i = 0; i < n; i++) {
			get(there[0]);
			put(back[1]);
		}
		_exit(0);
	}
	for (long i = 0; i < n; i++) {
		put(there[1]);
		get(back[0]);
	}
	return 0;
}
"""

SOURCES = ("--sample", "context-switches", "--sample", "sched:sched_waking")
STACK = re.compile(r"_callstack_(kernel|user)_length = (\d+), callstack_\w+ = \[ ((?:\[\d+\] = \w+,? )*)\]")


@pytest.fixture(scope="session")
def pipes(tmp_path_factory):
    path = tmp_path_factory.mktemp("pipes") / "pipes"
    subprocess.run(["cc", "-x", "c", "-O1", "-fno-omit-frame-pointer", "-fno-optimize-sibling-calls", "-w", "-o", path, "-"],
                   input=PROGRAM, text=True, check=True)
    return path


def ids_of(line):
    return {kind: int(number) for kind, number in re.findall(r"callstack_(kernel|user)_id = (\d+)", line)}


def stacks_of(line):
    return {kind: frames.strip() for kind, _n, frames in STACK.findall(line)}


def samples_in(text):
    return [line for line in text.splitlines() if " sample: " in line]


def filled(lines):
    """The lines of a reader that knows nothing of numbers, with each stack put where its number is; and how often each has its addresses."""
    known, told = {}, collections.Counter()
    for line in lines:
        for kind, number in ids_of(line).items():
            frames = stacks_of(line)[kind]
            if number and frames:
                assert known.setdefault(number, frames) == frames
                told[number] += 1
    out = []
    for line in lines:
        ids = ids_of(line)

        def put(match, ids=ids):
            frames = known[ids[match[1]]] if ids[match[1]] else match[3].strip()
            length = len(re.findall(r"\[\d+\] = ", frames))
            return (f"_callstack_{match[1]}_length = {length}, callstack_{match[1]} = "
                    f"[ {frames + ' ' if frames else ''}]")

        out.append(STACK.sub(put, line))
    return out, told


def no_names(lines):
    return [re.sub(r'procname = ".*?"', "", line) for line in lines]


def unresolved(kymo, trace, *options):
    """(samples, those that have a number and no addresses) as kymo print has them."""
    lines = samples_in(kymo("print", *options, trace).out)
    return lines, [line for line in lines
                   if any(number and not stacks_of(line)[kind] for kind, number in ids_of(line).items())]


def test_once(kymo, record, peer, pipes, tmp_path):
    """babeltrace2 reads each stack once, and its number elsewhere; Kymo prints the addresses everywhere, wherever it begins to read."""
    trace, _ = record(*SOURCES, "-b", "16M", command=[str(pipes), "3000"])
    form = ("--no-delta", "--clock-cycles")
    theirs = samples_in(peer("babeltrace2", *form, trace).out)
    whole, told = filled(theirs)
    # Each CPU may tell it before the others' packets are written.
    assert told and max(told.values()) <= os.cpu_count()
    assert sum('"pipes"' in line for line in theirs) > 2000
    # Of each program's stacks the same few come again and again.
    assert len(told) < len(theirs) / 2
    ours = samples_in(kymo("print", *form, trace).out)
    # babeltrace2 2.0.4 shows the text of an earlier event where a text is empty.
    assert sorted(no_names(ours)) == sorted(no_names(whole))
    times = [int(re.match(r"\[(\d+)\]", line)[1]) for line in ours]
    assert times == sorted(times)
    # From the middle on: the addresses are in what is not read.
    middle = re.match(r"\[(\S+?)\]", samples_in(kymo("print", trace).out)[len(ours) // 2])[1]
    late, lacking = unresolved(kymo, trace, "--begin", middle)
    assert len(ours) / 3 < len(late) < len(ours) and not lacking
    # What is converted has all of them for other readers, also a part of it.
    for options, least in (((), len(ours)), (("--begin", middle), len(late))):
        out = tmp_path / f"converted{least}"
        kymo("convert", *options, "-o", out, trace)
        copied = samples_in(peer("babeltrace2", *form, out).out)
        assert len(copied) == least and set(no_names(copied)) <= set(no_names(ours))
    # The C library's own functions have no frame pointers: of put() and get(), main() is left.
    folded = kymo("report", "flame", "--of", "wakeup", "--to", "folded", trace).out
    woken = sum(int(line.split()[-1]) for line in folded.splitlines() if line.startswith("pipes;") and ";main;" in line)
    assert woken > 1000, folded[:2000]
    folded = kymo("report", "flame", "--of", "context-switches", "--to", "folded", trace).out
    switched = sum(int(line.split()[-1]) for line in folded.splitlines() if line.startswith("pipes;") and ";main;" in line)
    assert switched > 1000, folded[:2000]
    # A stack of the kernel begins where perf sees it.
    named = kymo("print", "--symbols", trace).out
    assert re.search(r'"sched:sched_waking".*', named)
    first = collections.Counter(re.search(r"callstack_kernel = \[ \[0\] = \w+ \((\w+)", line)[1]
                                for line in samples_in(named) if "sched_waking" in line and '"pipes"' in line)
    # Between them is a function of the kernel's while others trace the same event.
    assert first.most_common(1)[0][0] in ("try_to_wake_up", "__traceiter_sched_waking"), first


def test_parts(kymo, record, peer, pipes):
    """Each chunk of a rotated recording has the stacks of its samples, each once."""
    trace, _ = record(*SOURCES, "--rotate-every", "1s", command=["sh", "-c", f"{pipes} 5000; sleep 1.2; {pipes} 5000"])
    chunks = [path for path in sorted([*trace.glob("archives/*"), trace]) if (path / "kernel").exists()]
    assert len(chunks) >= 2
    for chunk in chunks[:3]:
        told = filled(samples_in(peer("babeltrace2", chunk / "kernel").out))[1]
        assert max(told.values()) <= os.cpu_count()
        assert not unresolved(kymo, chunk / "kernel")[1]


def test_flight_recorder(kymo, kymo_bin, pipes, tmp_path, needs_root_tracefs):
    """A snapshot has the stacks of its samples, though the packets before are gone."""
    out, snapshot = tmp_path / "flight", tmp_path / "snapshot"
    process = subprocess.Popen([kymo_bin, "record", "--overwrite", "-b", "1M", *SOURCES, "-o", out], stderr=subprocess.PIPE)
    try:
        while kymo("snapshot", out, "-o", snapshot, code=None).code:
            assert process.poll() is None, process.stderr.read()
            time.sleep(0.05)
        for _ in range(2):
            subprocess.run([pipes, "20000"], check=True)
        kymo("snapshot", out, "-o", tmp_path / "later")
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate()
    lines, lacking = unresolved(kymo, tmp_path / "later")
    assert 1000 < len(lines) < 80000 and not lacking


def test_killed(kymo, kymo_bin, pipes, tmp_path, needs_root_tracefs):
    """What a killed recorder leaves has the stacks of its samples."""
    out = tmp_path / "killed"
    process = subprocess.Popen([kymo_bin, "record", *SOURCES, "-o", out], stderr=subprocess.DEVNULL)
    try:
        while not any(path.stat().st_size > 1 << 19 for path in out.glob("kernel/samples_*")):
            assert process.poll() is None
            subprocess.run([pipes, "5000"], check=True)
    finally:
        process.kill()
        process.wait()
    lines, lacking = unresolved(kymo, out)
    assert len(lines) > 1000 and not lacking


# ---- traces that are made to deceive -------------------------------------------------------------------------------------

CONTEXT = "event.context := struct {{ integer {{ size = 32; align = 8; signed = true; }} _tid; }};".replace("{{", "{").replace("}}", "}")
STACKS = """event.context := struct {
    uint32_t _callstack_kernel_id; uint32_t _callstack_user_id;
    uint32_t __callstack_kernel_length; uint64_t _callstack_kernel[__callstack_kernel_length];
    uint32_t __callstack_user_length; uint64_t _callstack_user[__callstack_user_length];
};"""


class Packet(make_trace.Packet):
    def sample(self, time, kernel, user, frames=(), user_frames=()):
        self.body += struct.pack("<I", 2 | (time & (1 << 27) - 1) << 5)
        self.last = time
        self.body += struct.pack("<II", kernel, user)
        for stack in (frames, user_frames):
            self.body += struct.pack(f"<I{len(stack)}Q", len(stack), *stack)


def sample(path):
    """Three packets, whose samples have stacks of those before."""
    packets = [Packet(1000 * number, seq=number - 1) for number in (1, 2, 3)]
    for packet in packets:
        for i in range(1, 13):
            first = i < 4 and packet is packets[0]
            packet.sample(packet.begin + i, 2 * i % 7, i % 4, range(16, 16 + 3 * first), range(64, 64 + 2 * first))
    return make_trace.write(path, {"c_0": packets}, make_trace.METADATA.replace(CONTEXT, STACKS))


def test_deceit(kymo, tmp_path):
    """A number without addresses is empty, the first of two stacks with a number counts, and no event becomes long by a number."""
    metadata = make_trace.METADATA
    assert CONTEXT in metadata
    packet = Packet(1000)
    packet.sample(1001, 7, 0)
    packet.sample(1002, 1, 2, (0x10, 0x20), (0x30,))
    packet.sample(1003, 1, 2)
    packet.sample(1004, 1, 3, (0x66,), tuple(range(2000)))
    packet.sample(1005, 2, 3)
    packet.sample(1006, 1, 1)
    trace = make_trace.write(tmp_path / "deceit", {"c_0": [packet]}, metadata.replace(CONTEXT, STACKS))
    lines = kymo("print", trace).out.splitlines()
    assert [[len(re.findall("=", frames)) for frames in stacks_of(line).values()] for line in lines] == [
        [0, 0], [2, 1], [2, 1], [1, 2000], [1, 0], [2, 2]]
    assert stacks_of(lines[2]) == {"kernel": "[0] = 16, [1] = 32", "user": "[0] = 48"}
    assert stacks_of(lines[4])["kernel"] == "[0] = 48"
