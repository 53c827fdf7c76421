# SPDX-License-Identifier: MIT
"""Report locks on locks of the kernel: of a trace that was made, and of a file system that is frozen for a while."""

import json
import os
import sys

import pytest

import kernel_trace
from oracle_figures import Event
from test_latency import loop_device  # noqa: F401
from test_latency_kernel import FROZEN, ext4_fixture  # noqa: F401

START_NS = 1_700_000_000_000_000_000
MUTEX, READ, WRITE, SPIN = 32, 2, 4, 1


def kernel_locks(kymo, trace, *options):
    found = json.loads(kymo("report", "locks", "-t", "kernel", "--json", *options, trace).out)
    return found["reports"][0]["tables"][0]["rows"]


def event(ns, tid, name, **fields):
    return Event(START_NS + ns, 0, name, {"perf_tid": tid}, fields)


@pytest.fixture
def needs_lock_events():
    if not os.path.exists("/sys/kernel/tracing/events/lock/contention_begin"):
        pytest.skip("this kernel has no events of its locks")


def test_waits_and_holders(kymo, tmp_path):
    """
    Thread 11 has a mutex, which no event tells. 12 and 13 wait; 12 gets it at 50 us, so 13's last 30 us are 12's. 13 spins first, and
    begins twice. A signal ends the wait of 14, and an interrupt spins on top of 12's wait.
    """
    switches = [event(0, 0, "sched_switch", prev_comm="idle", prev_tid=0, prev_prio=20, prev_state=0, next_comm="t12", next_tid=12,
                      next_prio=20), event(1, 12, "syscall_entry_read", fd=3, buf=0, count=1)]
    waits = [
        event(10_000, 12, "lock_contention_begin", lock_addr=0x1000, flags=MUTEX),
        event(20_000, 13, "lock_contention_begin", lock_addr=0x1000, flags=MUTEX | SPIN),
        event(22_000, 13, "lock_contention_begin", lock_addr=0x1000, flags=MUTEX),
        event(25_000, 12, "lock_contention_begin", lock_addr=0x2000, flags=SPIN),
        event(26_000, 12, "lock_contention_end", lock_addr=0x2000, ret=0),
        event(30_000, 14, "lock_contention_begin", lock_addr=0x3000, flags=WRITE),
        event(45_000, 14, "lock_contention_end", lock_addr=0x3000, ret=-4),
        event(50_000, 12, "lock_contention_end", lock_addr=0x1000, ret=0),
        event(80_000, 13, "lock_contention_end", lock_addr=0x1000, ret=0),
        event(90_000, 14, "lock_contention_end", lock_addr=0x1000, ret=0),  # its begin is not there
        event(95_000, 14, "lock_contention_begin", lock_addr=0x4000, flags=READ)]  # its end is not there
    trace = kernel_trace.write(tmp_path / "trace", switches + waits)
    rows = {row["address"]: row for row in kernel_locks(kymo, trace)}
    assert set(rows) == {0x1000, 0x2000, 0x3000}
    mutex = rows[0x1000]
    assert (mutex["kind"], mutex["waiters"], mutex["count"], mutex["total"], mutex["max"]) == ("mutex", 2, 2, 100_000, 60_000)
    assert (mutex["waiter"]["tid"], mutex["holder"]["tid"], mutex["delay"]) == (13, 12, 30_000)
    assert (rows[0x2000]["kind"], rows[0x2000]["total"], rows[0x2000]["holder"]) == ("spinlock", 1_000, None)
    assert (rows[0x3000]["kind"], rows[0x3000]["failed"], rows[0x3000]["total"]) == ("rwsem:W", 1, 15_000)
    assert [row["address"] for row in kernel_locks(kymo, trace, "--tid", "14")] == [0x3000]
    text = kymo("report", "locks", trace).out
    assert "Waits for locks of the kernel" in text and "Who held the locks" not in text


def test_a_frozen_file_system(record, without_losses, kymo, needs_lock_events, ext4):
    """Five threads write, and wait until it is thawed."""
    trace, done = without_losses(record, "-k", "syscalls,sched_*,lock_*", command=[sys.executable, "-c", "import sys\n" + FROZEN, ext4])
    tids = {int(tid) for tid in done.out.split("\n")[0].split()}
    assert len(tids) == 6
    (row,) = [row for row in kernel_locks(kymo, trace) if row["kind"] == "pcpu-sem:R" and row["waiter"]["tid"] in tids]
    assert (row["waiters"], row["count"], row["failed"]) == (5, 5, 0)
    assert row["min"] >= 250_000_000 and row["total"] >= 5 * row["min"]
