# SPDX-License-Identifier: MIT
"""kymo record --raw on slow disks, and on other file systems."""

import os
import re
import shutil
import signal
import subprocess
import time

import pytest

CALLS = 150000
SBIN = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def calls(n):
    """Calls that nobody else makes, two events each: some 8 MiB in the ring for CALLS."""
    code = f"import os\nfor i in range({n}): os.sched_rr_get_interval(0)\n"
    cpu = str(min(os.sched_getaffinity(0)))
    subprocess.run(["taskset", "-c", cpu, "/usr/bin/python3", "-c", code], check=True)


def mounted(at, *command):
    at.mkdir()
    done = subprocess.run([*command, at], stderr=subprocess.PIPE, check=False)
    if done.returncode:
        pytest.skip(f"cannot mount: {done.stderr.decode().strip()}")


@pytest.fixture
def disk(tmp_path, needs_root_tracefs):
    """A file system of its own, which can be frozen."""
    image = tmp_path / "image"
    with open(image, "wb") as file:
        file.truncate(256 << 20)
    mkfs = shutil.which("mkfs.ext4", path=SBIN)
    if not mkfs:
        pytest.skip("mkfs.ext4 is not installed: tools/install-deps test")
    subprocess.run([mkfs, "-q", "-F", image], check=True)
    mounted(tmp_path / "disk", "mount", "-o", "loop", image)
    yield tmp_path / "disk"
    subprocess.run(["umount", "--lazy", tmp_path / "disk"], check=True)


@pytest.fixture
def recorder(kymo_bin, needs_root_tracefs):
    """recorder(directory, size): a raw recording that has begun; stopping it gives (events, lost)."""
    running = []

    class Recorder:
        def __init__(self, directory, size):
            self.process = subprocess.Popen(
                [kymo_bin, "record", "--raw", "-b", size, "-k", "syscall_*_sched_rr_get_interval", "-o", directory],
                stderr=subprocess.PIPE)
            running.append(self.process)
            while not (directory / "raw/state/statedump_0").exists():
                assert self.process.poll() is None
                time.sleep(0.01)

        def open_files(self, path):
            """How many descriptors it has of a file."""
            links = subprocess.run(["find", f"/proc/{self.process.pid}/fd", "-lname", path],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
            return len(links.stdout.splitlines())

        def stop(self):
            self.process.send_signal(signal.SIGINT)
            said = self.process.stderr.read().decode()
            assert self.process.wait() == 0, said
            found = re.search(r"Recorded (\d+) raw records.* (\d+) lost", said)
            return int(found[1]), int(found[2])

    yield Recorder
    for process in running:
        process.kill()
        process.wait()
        process.stderr.close()


def test_a_disk_that_stands_still(disk, recorder, kymo):
    """Pages that go to it without a copy are waited for: meanwhile, what comes is kept in memory."""
    recording = recorder(disk / "raw", "8M")
    file = disk / "raw/raw" / f"cpu{min(os.sched_getaffinity(0))}"
    made = 0
    while recording.open_files(file) < 2 and made < 10 * CALLS:
        calls(CALLS // 3)
        made += CALLS // 3
    direct = recording.open_files(file) == 2  # for the disk alone, too; old kernels' pages are copied
    subprocess.run(["fsfreeze", "--freeze", disk], check=True)
    try:
        calls(4 * CALLS)  # four times what the ring holds, and what waits in memory at most
    finally:
        subprocess.run(["fsfreeze", "--unfreeze", disk], check=True)
    calls(CALLS)
    made += 5 * CALLS
    events, lost = recording.stop()
    assert events + lost >= 2 * made
    # Without memory, three quarters of what was done meanwhile. A slow machine's recorder loses some.
    assert lost < 2 * CALLS, direct
    assert 0 <= int(kymo("print", "--count", "--event", "syscall_*", disk / "raw").out) + lost - 2 * made < 2000


def test_a_file_system_without_direct_writes(recorder, kymo, tmp_path):
    mounted(tmp_path / "ram", "mount", "-t", "ramfs", "-o", "mode=700", "ramfs")
    try:
        recording = recorder(tmp_path / "ram/raw", "8M")
        for _ in range(4):
            calls(CALLS)
        events, lost = recording.stop()
        assert events + lost >= 8 * CALLS and lost < CALLS
        count = int(kymo("print", "--count", "--event", "syscall_*", tmp_path / "ram/raw").out)
        assert 0 <= count + lost - 8 * CALLS < 2000
    finally:
        subprocess.run(["umount", "--lazy", tmp_path / "ram"], check=True)
