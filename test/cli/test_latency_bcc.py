# SPDX-License-Identifier: MIT
"""kymo latency beside bcc's tools (Debian's libbpf-tools) on one load at the same time, and beside the kernel's statistics."""

import contextlib
import os
import re
import shutil
import signal
import subprocess

import pytest

from test_latency import Load, check, loop_device, measure, needs_bpf, now, series, stat_of  # noqa: F401

pytestmark = pytest.mark.usefixtures("needs_bpf")




@contextlib.contextmanager
def bcc(name, *args):
    """The tool measures; gives a function that ends it, for its output."""
    path = shutil.which(name, path="/usr/sbin:/usr/bin")
    if not path:
        pytest.skip(f"{name} is not installed: tools/install-deps test")
    # It ends by itself if it does not hear the signal.
    process = subprocess.Popen(["stdbuf", "-oL", path, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, bufsize=1)

    def end():
        process.send_signal(signal.SIGINT)
        return process.communicate(timeout=120)[0]

    try:
        # The line comes when all its programs are there.
        line = process.stdout.readline()
        if not line.startswith("Tracing"):
            pytest.skip(f"{name} does not run here: {line + process.stderr.read()}")
        yield end
    finally:
        process.poll() is None and process.kill()
        process.wait()


def rows_of(text):
    """log2 of microseconds: count."""
    rows = re.findall(r"^\s*(\d+) -> \d+\s*: (\d+)", text, re.MULTILINE)
    return {max(int(begin), 1).bit_length() - 1: int(n) for begin, n in rows if int(n)}


def octaves_of(histogram):
    found = {}
    for begin, _, n in histogram["buckets"]:
        log2 = max(begin // 1000, 1).bit_length() - 1
        found[log2] = found.get(log2, 0) + n
    return found


def check_near(ours, theirs, slack):
    """Programs of one tool run after those of the other: a duration may be in the next row, and starved ones anywhere."""
    for log2 in set(ours) | set(theirs):
        near = sum(ours.get(at, 0) for at in (log2 - 1, log2, log2 + 1))
        assert theirs.get(log2, 0) <= near + slack, (ours, theirs)


def test_same_requests_as_biolatency(measure, loop_device):  # noqa: F811
    with bcc("biolatency", "-d", loop_device, "3600", "1") as end:
        measured = measure("--layers", "block-device")
        subprocess.run(["dd", f"if=/dev/{loop_device}", "of=/dev/null", "bs=16k", "count=500", "iflag=direct"], check=True,
                       capture_output=True)
        histogram = now(measured.end(), "block-device", f"{loop_device} read")
        theirs = rows_of(end())
    assert histogram["count"] == sum(theirs.values()) >= 500
    check_near(octaves_of(histogram), theirs, 25)


def test_same_wake_ups_as_runqlat(measure):  # noqa: F811
    load = Load("import os, time\nfor _ in range(300): time.sleep(0.001)\n"
                "print(open('/proc/self/status').read().rsplit('nonvoluntary_ctxt_switches:', 1)[1])\nsys.stdout.flush()\nos._exit(0)")
    with bcc("runqlat", "-p", load.pid, "3600", "1") as end:
        measured = measure("--pid", load.pid, "--layers", "wakeup")
        preempted = int(load.go())
        histogram = now(measured.end(), "wakeup", "all")
        theirs = rows_of(end())
    # It also counts the waits of who was preempted; and a few wake-ups at both ends.
    assert 250 <= histogram["count"] <= sum(theirs.values()) + 2
    assert sum(theirs.values()) <= histogram["count"] + preempted + 2
    check_near(octaves_of(histogram), theirs, 30 + preempted)


@pytest.fixture
def many_devices(tmp_path):
    devices = []
    try:
        for i in range(28):
            image = tmp_path / str(i)
            with open(image, "wb") as file:
                file.truncate(1 << 20)
            done = subprocess.run(["losetup", "--find", "--show", str(image)], capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"needs loop devices: {done.stderr.strip()}")
            devices.append(os.path.basename(done.stdout.strip()))
        yield devices
    finally:
        for device in devices:
            subprocess.run(["losetup", "--detach", f"/dev/{device}"], check=True)


def test_more_devices_than_places(measure, many_devices):  # noqa: F811
    """Reads, writes and flushes of 28 devices: some have a place of their own in the kernel, and others are in the table."""
    measured = measure("--by", "device")
    before = {device: stat_of(device) for device in many_devices}
    for i, device in enumerate(many_devices):
        subprocess.run(["dd", f"of=/dev/{device}", "if=/dev/zero", "bs=4k", f"count={i + 1}", "oflag=direct", "conv=fsync"], check=True,
                       capture_output=True)
        subprocess.run(["dd", f"if=/dev/{device}", "of=/dev/null", "bs=4k", f"count={2 * i + 1}", "iflag=direct"], check=True,
                       capture_output=True)
    result = measured.end()
    for device in many_devices:
        done = {name: n - before[device][name] for name, n in stat_of(device).items()}
        assert now(result, "block-device", f"{device} read")["count"] == done["read"]
        assert now(result, "block-device", f"{device} write")["count"] == done["write"] - done["flush"]
        assert sum(one["windows"]["now"]["count"] for one in series(result, "flush", device)) == done["flush"] > 0
    for one in result["series"]:
        check(one["windows"]["now"])
