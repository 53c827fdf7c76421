# SPDX-License-Identifier: MIT
"""aarch64 machines with a kernel of their own: the ring with restartable sequences (qemu's emulation of
programs has none), on CPUs that may be taken away; and the tracer with hardware's counters as contexts.

The kernel is Debian's, fetched by tools/get-kernel.
"""

import platform
import re
import shutil

import pytest

import machine
from machine import BUILD, archive, disk_device, file_of, get_kernel
from test_ring_cross import FLAGS, ROOT, cross_build, run
from test_tracer_cross import SOURCES
from user_session import Rule, consume, session_bytes

CASES = ["preempted", "migrated", "signals", "beyond", "vforks", "unplugged"]

# Of struct perf_event_attr: type and config.
COUNTERS = {"instructions": (0, 1), "cycles": (0, 0)}
ROUNDS = 10000000  # of the loop in counting.c

# run_machine() has a deadline of its own; and the kernel is fetched.
pytestmark = [
    pytest.mark.deadline(900),
    pytest.mark.skipif(not shutil.which("qemu-system-aarch64"),
                       reason="no qemu-system-arm: tools/install-deps test"),
    pytest.mark.skipif(platform.machine() != "x86_64" or BUILD.endswith(("-asan", "-tsan")),
                       reason="what runs there is cross-compiled, and not sanitized"),
]


def run_machine(tmp_path, programs, arguments, *options):
    """What an aarch64 machine says that runs arm64-init.c with these arguments."""
    kernel = get_kernel("6.1", "arm64")
    run("aarch64-linux-gnu-gcc", *FLAGS, "-static", f"{ROOT}/test/machine/arm64-init.c", "-o",
        str(tmp_path / "init"))
    files = [(name, 0o100755, (tmp_path / name).read_bytes()) for name in ["init", *programs]]
    (tmp_path / "initrd").write_bytes(archive(files))
    out = machine.run_machine(["qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a57", "-smp", "2", "-m", "512",
              "-nographic", "-nic", "none", "-no-reboot", "-kernel", kernel, "-initrd",
              str(tmp_path / "initrd"), "-append",
              f"console=ttyAMA0 quiet panic=-1 -- {' '.join(arguments)}", *options])
    assert "# over" in out, out
    return out


def test_restartable_sequences_of_aarch64(tmp_path):
    cross_build("aarch64", "race-ring.c", tmp_path / "race-ring")
    out = run_machine(tmp_path, ["race-ring"], CASES)
    for case in CASES:
        for mode in ("per CPU", "locked", "global"):
            assert any(line.startswith("ok ") and f"- {case}, {mode}" in line
                       for line in out.splitlines()), out


def test_hardware_counters(tmp_path, peer):
    """perf:instructions and perf:cycles, of a PMU. qemu counts instructions where it paces the machine by
    them."""
    run("aarch64-linux-gnu-gcc", *FLAGS, "-static", "-pthread", f"{ROOT}/test/tracer/counting.c",
        *SOURCES, "-o", str(tmp_path / "counting"))
    contexts = [("perf", name, *counter) for name, counter in COUNTERS.items()]
    (tmp_path / "session").write_bytes(session_bytes([Rule("*")], contexts))
    disk = file_of(tmp_path / "disk", 64 << 20)
    out = run_machine(tmp_path, ["counting", "session"], ["counting"], "-icount", "shift=2",
                      *disk_device("ring", disk))
    # Two counters, of one thread.
    assert re.search(r"^# counting: 0\r?$", out, re.MULTILINE) and "files 2" in out, out
    size = int(re.search(r"^# ring: (\d+) bytes", out, re.MULTILINE).group(1))
    (tmp_path / "ring").write_bytes(disk.read_bytes()[:size])
    consume(BUILD, str(tmp_path / "ring"), str(tmp_path / "trace"))
    text = peer("babeltrace2", tmp_path / "trace").out
    found = [{name: int(re.search(rf"perf_thread_{name} = (\d+)", line).group(1)) for name in COUNTERS}
             for line in text.splitlines()]
    assert re.findall(r"counting:(\w+):", text) == ["before", "begin", "end"], text
    before, begin, end = found
    for name in COUNTERS:
        assert 0 < before[name] < begin[name] < end[name], text
    # A round loads, adds, stores, and branches back; all else is little beside ten million of them.
    rounds = (end["instructions"] - begin["instructions"]) / ROUNDS
    assert 4 <= rounds < 12, text
    assert begin["instructions"] - before["instructions"] < ROUNDS, text
