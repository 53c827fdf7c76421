# SPDX-License-Identifier: MIT
"""The state dump of a real recording: what was open before is known by name."""

import os
import re
import subprocess

import pytest


@pytest.fixture
def reader(tmp_path):
    """A process that has a file open before any recording, and reads it until it is killed.

    It stays on the first CPU: some kernels do not tell when other CPUs leave their idle task,
    and lttng-analyses knows the current thread by such switches only.
    """
    path = tmp_path / "opened-before"
    path.write_bytes(b"x" * 4096)
    script = ("import os, sys, time\n"
              "os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\n"
              f"fd = os.open({str(path)!r}, os.O_RDONLY)\n"
              "print('ready', flush=True)\n"
              "while True:\n"
              "    os.pread(fd, 4096, 0)\n"
              "    time.sleep(0.002)\n")
    process = subprocess.Popen(["/usr/bin/python3", "-c", script], stdout=subprocess.PIPE)
    assert process.stdout.readline() == b"ready\n"
    yield process.pid, str(path)
    process.kill()
    process.wait()


@pytest.fixture
def kernel_trace(record, reader):
    trace, _ = record(command=("sleep", "1"))
    return trace / "kernel"


def dump_lines(text, event):
    return [line for line in text.splitlines() if f" lttng_statedump_{event}: " in line]


def test_events(kymo, reader, kernel_trace):
    pid, path = reader
    out = kymo("print", kernel_trace).out
    assert len(dump_lines(out, "start")) == len(dump_lines(out, "end")) == 1
    files = [line for line in dump_lines(out, "file_descriptor") if f" pid = {pid}, " in line]
    assert any(f'filename = "{path}"' in line for line in files)
    own = [line for line in dump_lines(out, "process_state") if f" tid = {pid}, pid = {pid}, " in line]
    assert len(own) == 1
    assert f"ppid = {os.getpid()}," in own[0] and 'name = "python3"' in own[0]
    table = re.search(r"file_table_address = (0x[0-9A-F]+)", own[0]).group(1)
    assert all(f"file_table_address = {table}," in line for line in files)
    assert len(dump_lines(out, "cpu_topology")) == os.cpu_count()
    threads = {re.search(r"\{ tid = (\d+), pid", line).group(1)
               for line in dump_lines(out, "process_state")}
    namespaces = {re.search(r"\{ tid = (\d+), vtid", line).group(1)
                  for line in dump_lines(out, "process_pid_ns")}
    assert "1" in threads and namespaces <= threads


def test_block_devices(kymo, kernel_trace):
    """The numbers are those of the block events: major << 20 | minor."""
    out = kymo("print", kernel_trace).out
    have = set(re.findall(r'dev = (\d+), diskname = "([^"]+)"', "\n".join(
        dump_lines(out, "block_device"))))
    want = set()
    for name in os.listdir("/sys/class/block"):
        with open(f"/sys/class/block/{name}/dev", encoding="ascii") as file:
            major, minor = map(int, file.read().split(":"))
        want.add((str(major << 20 | minor), name))
    assert have == want


def test_peer_reads_the_same(kymo, peer, kernel_trace):
    """Without the times: babeltrace2 converts cycles in floating point, and is 1 ns off at times."""
    def events(text):
        return [line[line.index(") ") + 2:] for line in text.splitlines() if "statedump" in line]

    ours = events(kymo("print", kernel_trace).out)
    assert ours and ours == events(peer("babeltrace2", kernel_trace).out)


def test_iousagetop_knows_the_name(peer, reader, kernel_trace):
    _, path = reader
    done = peer("lttng-iousagetop", "--no-progress", "--limit=1000", kernel_trace)
    assert done.code == 0, done
    assert path in done.out, done


@pytest.mark.parametrize("program, options", [("lttng-cputop", ["--limit=1000"]),
                                              ("lttng-syscallstats", [])])
def test_analyses_run(peer, reader, kernel_trace, program, options):
    """They know the process that was there before. (Its pid is "?" where its first system call
    came before its turn in the dump.)"""
    pid, _ = reader
    done = peer(program, "--no-progress", *options, kernel_trace)
    assert done.code == 0, done
    assert re.search(rf"python3 \(({pid}|({pid}|\?), TID: {pid})\)", done.out), done
