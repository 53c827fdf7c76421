# SPDX-License-Identifier: MIT
"""The ring on an emulated aarch64 machine with a kernel of its own, which has restartable sequences (qemu's
emulation of programs has none), and whose CPUs may be taken away.

Takes a minute and a kernel, so it is run only where one is given:

    apt-get download linux-image-6.1.0-NN-arm64      # dpkg-deb -x it
    KYMO_ARM64_KERNEL=.../boot/vmlinuz-6.1.0-NN-arm64 make test T=machine
"""

import os
import shutil
import subprocess

import pytest

from machine import archive
from test_ring_cross import FLAGS, ROOT, cross_build, run

KERNEL = os.environ.get("KYMO_ARM64_KERNEL", "")
CASES = ["preempted", "migrated", "signals", "beyond", "vforks", "unplugged"]

pytestmark = [
    pytest.mark.skipif(not KERNEL, reason="KYMO_ARM64_KERNEL names no kernel for aarch64"),
    pytest.mark.skipif(not shutil.which("qemu-system-aarch64"), reason="no qemu-system-arm"),
]


def test_restartable_sequences_of_aarch64(tmp_path):
    cross_build("aarch64", "race-ring.c", tmp_path / "race-ring")
    run("aarch64-linux-gnu-gcc", *FLAGS, "-static", f"{ROOT}/test/race/vm-init.c", "-o",
        str(tmp_path / "init"))
    (tmp_path / "initrd").write_bytes(archive(
        [(name, 0o100755, (tmp_path / name).read_bytes()) for name in ("init", "race-ring")]))
    out = run("qemu-system-aarch64", "-M", "virt", "-cpu", "cortex-a57", "-smp", "2", "-m", "512",
              "-nographic", "-nic", "none", "-no-reboot", "-kernel", KERNEL, "-initrd",
              str(tmp_path / "initrd"), "-append",
              f"console=ttyAMA0 quiet panic=-1 -- {' '.join(CASES)}", stdin=subprocess.DEVNULL)
    assert "# over" in out, out
    for case in CASES:
        for mode in ("per CPU", "locked", "global"):
            assert any(line.startswith("ok ") and f"- {case}, {mode}" in line
                       for line in out.splitlines()), out
