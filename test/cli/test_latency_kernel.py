# SPDX-License-Identifier: MIT
"""Layers of kymo latency inside the kernel: its own locks beside perf lock contention, and the file system."""

import collections
import os
import re
import shutil
import signal
import subprocess

import pytest

from test_latency import Load, check, loop_device, measure, needs_bpf, now, series  # noqa: F401
from test_latency_track import track  # noqa: F401

pytestmark = pytest.mark.usefixtures("needs_bpf", "needs_root_tracefs")

SBIN = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


@pytest.fixture(name="ext4")
def ext4_fixture(loop_device, tmp_path):  # noqa: F811
    mkfs = shutil.which("mkfs.ext4", path=SBIN)
    if not mkfs:
        pytest.skip("mkfs.ext4 is not installed: tools/install-deps test")
    subprocess.run([mkfs, "-q", f"/dev/{loop_device}"], check=True)
    where = tmp_path / "mounted"
    where.mkdir()
    if subprocess.run(["mount", f"/dev/{loop_device}", where], capture_output=True, check=False).returncode:
        pytest.skip("needs ext4")
    yield where
    subprocess.run(["umount", where], check=True)


WORK = """
import os
name = os.path.join(sys.argv[1], "file")
fd = os.open(name, os.O_RDWR | os.O_CREAT)
for i in range(40):
    os.pwrite(fd, b"x" * 3000, i * 4096)
for _ in range(7):
    os.fsync(fd)
os.posix_fallocate(fd, 1 << 20, 1 << 20)
os.ftruncate(fd, 4096)
os.unlink(name)
"""


def test_file_system(measure, ext4):  # noqa: F811
    load = Load(WORK, ext4)
    measured = measure("--pid", load.pid, "--layers", "file,syscall", "--syscalls", "fsync")
    load.go()
    result = measured.end()
    counts = {one["name"]: one["windows"]["now"]["count"] for one in series(result, "file")}
    assert counts.pop("ext4 truncate") >= 1
    assert counts == {"ext4 write": 40, "ext4 sync": 7, "ext4 allocate": 1, "ext4 unlink": 1}
    for one in series(result, "file"):
        check(one["windows"]["now"])
    # The file system's part is within the call, and is most of it.
    inside, call = now(result, "file", "ext4 sync"), now(result, "syscall", "fsync")
    assert call["sum_ns"] / 4 < inside["sum_ns"] < call["sum_ns"]


CALLS = """
import os
name = os.path.join(sys.argv[1], "file")
fd = os.open(name, os.O_RDWR | os.O_CREAT)
for i in range(40):
    os.pwrite(fd, b"x" * 3000, i * 4096)
for _ in range(7):
    os.fsync(fd)
for i in range(30):
    os.pread(fd, 1000, i * 4096)
"""
OTHERS = {"xfs": ("mkfs.xfs -q -f", {"xfs write": 40, "xfs sync": 7, "xfs read": 30}), "btrfs": ("mkfs.btrfs -q -f", {"btrfs sync": 7})}


@pytest.fixture(name="other")
def other_file_system(request, tmp_path):
    """(name, where it is mounted)"""
    command = OTHERS[request.param][0].split()
    mkfs = shutil.which(command[0], path=SBIN)
    if not mkfs:
        pytest.skip(f"{command[0]} is not installed: tools/install-deps test")
    image, where = tmp_path / "image", tmp_path / "mounted"
    with open(image, "wb") as file:
        file.truncate(400 << 20)
    where.mkdir()
    subprocess.run([mkfs, *command[1:], str(image)], check=True, capture_output=True)
    if subprocess.run(["mount", "-o", "loop", image, where], capture_output=True, check=False).returncode:
        pytest.skip(f"needs {request.param}")
    yield request.param, where
    subprocess.run(["umount", where], check=True)


@pytest.mark.parametrize("other", OTHERS, indirect=True)
def test_file_systems_with_begins_only(measure, other):  # noqa: F811
    """Their part ends with the call."""
    name, where = other
    load = Load(CALLS, where)
    measured = measure("--pid", load.pid, "--layers", "file,syscall", "--syscalls", "fsync")
    load.go()
    result = measured.end()
    found = {one["name"]: one["windows"]["now"] for one in series(result, "file") if one["name"].startswith(name)}
    assert {op: one["count"] for op, one in found.items()} == OTHERS[name][1]
    for one in found.values():
        check(one)
    call = now(result, "syscall", "fsync")
    assert call["count"] == 7 and 0 < found[f"{name} sync"]["sum_ns"] < call["sum_ns"]


# While a file system is frozen, who writes to it waits for a lock of the kernel.
FROZEN = """
import fcntl, os, threading, time
where = sys.argv[1]
files = [os.open(os.path.join(where, str(i)), os.O_RDWR | os.O_CREAT) for i in range(5)]
directory = os.open(where, os.O_RDONLY)
def states():
    for task in os.listdir("/proc/self/task"):
        yield open(f"/proc/self/task/{task}/stat").read().rsplit(")", 1)[1].split()[0]
fcntl.ioctl(directory, 0xC0045877, 0)
try:
    threads = [threading.Thread(target=os.write, args=(fd, b"x")) for fd in files]
    for thread in threads:
        thread.start()
    while sum(state == "D" for state in states()) < len(files):
        time.sleep(0.01)
    time.sleep(0.3)
finally:
    fcntl.ioctl(directory, 0xC0045878, 0)
for thread in threads:
    thread.join()
print(os.getpid(), *(thread.native_id for thread in threads), flush=True)
"""


class Perf:
    """perf lock contention, of a process."""

    def __init__(self, data, pid):
        self.data = str(data)
        control, ack = self.data + ".control", self.data + ".ack"
        os.mkfifo(control)
        os.mkfifo(ack)
        self.process = subprocess.Popen(["perf", "lock", "record", "-p", str(pid), "-D", "-1", f"--control=fifo:{control},{ack}", "-o", self.data],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with open(control, "w", encoding="ascii") as order, open(ack, encoding="ascii") as answer:
            order.write("enable\n")
            order.flush()
            assert answer.readline() == "ack\n"

    def waits(self):
        """Numbers of waits by the lock's kind."""
        self.process.send_signal(signal.SIGINT)
        self.process.wait()
        done = subprocess.run(["perf", "lock", "contention", "-i", self.data], capture_output=True, text=True, check=True)
        counts = collections.Counter()
        for count, kind in re.findall(r"^ +(\d+) .* (\S+)   \S+$", done.stdout + done.stderr, re.M):
            counts[kind] += int(count)
        return counts


def test_locks_of_the_kernel(track, ext4, tmp_path):  # noqa: F811
    if not shutil.which("perf"):
        pytest.skip("needs perf")
    load = Load(FROZEN, ext4)
    tracked = track("--pid", load.pid, "--layers", "lock", "--members", "100ms", "--stacks")
    perf = Perf(tmp_path / "perf.data", load.pid)
    tids = {int(tid) for tid in load.go().split()}
    members, result = tracked.end()
    assert len(tids) == 6
    waits = now(result, "lock", "pcpu-sem:R")
    assert waits["count"] == 5
    check(waits)
    # Other locks meet waits by chance, and perf does not begin and end when the tracker does: only the planted lock is compared.
    assert dict(perf.waits())["pcpu-sem:R"] == 5
    assert {one["tid"] for one in members} == tids - {load.pid}
    for one in members:
        assert one["name"] == "pcpu-sem:R" and one["pid"] == load.pid and one["duration_ns"] >= 250_000_000
        assert any("percpu" in name for name in one["kernel_stack"]), one
