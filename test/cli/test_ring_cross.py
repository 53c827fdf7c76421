# SPDX-License-Identifier: MIT
"""The ring on other machines: built with cross compilers, run with qemu's user-mode emulation.

qemu has no restartable sequences, so what runs there is the fall-back; the sequences of aarch64 are
built, and their instructions looked at.
"""

import glob
import os
import re
import subprocess

import pytest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("KYMO_BUILD", os.path.join(ROOT, "build"))
FLAGS = ["-std=gnu17", "-O2", "-D_GNU_SOURCE", "-Wall", "-Wextra", "-Werror",
         "-Wno-unused-parameter", "-Wno-missing-field-initializers",
         f"-I{ROOT}/include", f"-I{ROOT}/src"]
SOURCES = sorted(glob.glob(f"{ROOT}/src/ring/*.c")) + [f"{ROOT}/src/base/error.c"]


def run(*cmd, **kwargs):
    result = subprocess.run(cmd, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=280,
                            check=False, **kwargs)
    text = result.stdout.decode("utf-8", "replace")
    assert result.returncode == 0, f"{cmd}:\n{text}"
    return text


def cross_build(machine, source, output):
    run(f"{machine}-linux-gnu-gcc", *FLAGS, "-static", "-pthread", f"{ROOT}/test/race/{source}",
        *SOURCES, "-o", str(output))


@pytest.mark.parametrize("case", ["preempted", "migrated", "signals", "snapshots", "forks"])
def test_ring_races_on_aarch64(tmp_path, case):
    cross_build("aarch64", "race-ring.c", tmp_path / "race")
    out = run("qemu-aarch64", str(tmp_path / "race"), case)
    assert "not ok" not in out and out.count("\nok") + out.startswith("ok") == 3


@pytest.mark.parametrize("machine, qemu, kind",
                         [("aarch64", "qemu-aarch64", "own"), ("s390x", "qemu-s390x", "foreign")])
def test_ring_file_of_another_machine(tmp_path, machine, qemu, kind):
    cross_build(machine, "ring-file.c", tmp_path / "ring-file")
    run(qemu, str(tmp_path / "ring-file"), "write", str(tmp_path / "ring"))
    out = run(os.path.join(BUILD, "test", "race", "ring-file"), "check", str(tmp_path / "ring"))
    assert out == f"1000 records, {kind}\n"
    # And the other way round.
    run(os.path.join(BUILD, "test", "race", "ring-file"), "write", str(tmp_path / "back"))
    out = run(qemu, str(tmp_path / "ring-file"), "check", str(tmp_path / "back"))
    assert out == f"1000 records, {kind}\n"


def test_aarch64_sequences(tmp_path):
    """From the pointer's store to the commit: a check of CPU and head, plain stores, releases."""
    obj = str(tmp_path / "write.o")
    run("aarch64-linux-gnu-gcc", *FLAGS, "-c", f"{ROOT}/test/race/ring-file.c", "-o", obj)
    text = run("aarch64-linux-gnu-objdump", "-d", "--no-show-raw-insn", obj)
    names = [line.split()[1] for line in text.splitlines() if re.match(r"\s+[0-9a-f]+:\s", line)]
    # 12-byte record: header, payload, then stamp, records and head by store-release.
    assert re.search(r"str ldr cmp b.ne ldr cmp b.ne str stur add stlr add stlr add eor add "
                     r"stlr str", " ".join(names))
    # The signature stands before each abort handler.
    abort = run("aarch64-linux-gnu-objdump", "-d", "-j", "kymo_rseq_abort", obj)
    aborts = re.findall(r"\t(d428bc00|14\w{6}|17\w{6}) ", abort)
    assert aborts and set(aborts[::2]) == {"d428bc00"} and "d428bc00" not in aborts[1::2]
