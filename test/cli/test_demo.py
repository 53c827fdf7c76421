# SPDX-License-Identifier: MIT
"""'make demo', the first thing that a newcomer runs."""

import os
import re

import pytest

from conftest import ROOT, run


@pytest.fixture(scope="module")
def build():
    return os.environ.get("KYMO_BUILD") or os.path.join(ROOT, "build")


def test_demo(needs_root_tracefs, build, kymo, tmp_path):
    trace = tmp_path / "trace"
    result = run([f"{ROOT}/tools/demo", build, trace], timeout=100)
    assert result.code == 0, result
    assert "error" not in result.err.lower(), result
    for text in ("kymo record", "kymo info", "kymo report cpu", "kymo report syscalls",
                 "demo-lock", str(trace)):
        assert text in result.out, text
    # The workload says what it did; the trace has all of it, but for what a busy machine lost and told.
    lost = int(re.search(r"; (\d+) lost", result.out + result.err).group(1))
    started = int(re.search(r"(\d+) processes started", result.out).group(1))
    events = kymo("print", trace).out
    assert started - lost <= len(re.findall(r' sched_process_exec: .*"/bin/true"', events)) <= started
    synced = int(re.search(r"(\d+) blocks of 64 KiB written", result.out).group(1))
    assert len(re.findall(r" syscall_entry_fsync: ", events)) >= synced - lost
