# SPDX-License-Identifier: MIT
"""'make demo', the first thing that a newcomer runs."""

import os
import re

import pytest

from conftest import ROOT, run


@pytest.fixture(scope="module")
def build():
    return os.environ.get("KYMO_BUILD") or os.path.join(ROOT, "build")


def demo(build, kymo, trace):
    """Run the demo, compare its trace with what its workload says it did, and return the losses."""
    result = run([f"{ROOT}/tools/demo", build, trace], timeout=240)
    assert result.code == 0, result
    assert "error" not in result.err.lower(), result
    for text in ("kymo record", "kymo info", "kymo report cpu", "kymo report syscalls",
                 "demo-lock", str(trace)):
        assert text in result.out, text
    lost = int(re.search(r"; (\d+) lost", result.out + result.err).group(1))
    started = int(re.search(r"(\d+) processes started", result.out).group(1))
    events = kymo("print", trace).out
    assert started - lost <= len(re.findall(r' sched_process_exec: .*"/bin/true"', events)) <= started
    synced = int(re.search(r"(\d+) blocks of 64 KiB written", result.out).group(1))
    assert len(re.findall(r" syscall_entry_fsync: ", events)) >= synced - lost
    return lost


def test_demo(needs_root_tracefs, build, kymo, tmp_path):
    """It loses nothing with the default buffers; where others keep the CPUs for long, in one of three."""
    for attempt in range(3):
        if demo(build, kymo, tmp_path / f"trace{attempt}") == 0:
            return
    pytest.fail("every run lost events")


def test_workload_without_loopback(build, tmp_path):
    """In a network namespace where nothing is up, it does the rest, and says what it does without."""
    if run(["unshare", "-n", "true"]).code:
        pytest.skip("needs a network namespace, which takes root")
    result = run(["unshare", "-n", f"{build}/examples/demo-workload", "0.2"], cwd=tmp_path, timeout=240)
    assert result.code == 0, result
    assert result.out.count("no messages over TCP: 127.0.0.1 cannot be reached") == 1
    assert "sent over loopback" not in result.out and "processes started" in result.out
