# SPDX-License-Identifier: MIT
"""Many threads that wait at one futex take neither much memory nor a time that grows with their square."""

import json
import subprocess

import kernel_trace
from conftest import SANITIZED
from oracle_figures import Event

WAIT, WAKE = 0, 1
WAITERS, WAKES = 20000, 300
PEAK_KIB = 160 << 10
USE = "import resource, subprocess, sys; code = subprocess.run(sys.argv[2:], stdout=open(sys.argv[1], 'w')).returncode; " \
      "print(code, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"


class Calls:
    """Events of one CPU, where threads begin and end futex()."""

    def __init__(self):
        self.events, self.ns, self.on = [], 10 ** 9, 0

    def add(self, name, **fields):
        self.ns += 100
        self.events.append(Event(self.ns, 0, name, {}, fields | {"perf_tid": self.on}))

    def switch(self, tid, state=1):
        self.add("sched_switch", prev_comm=f"t{self.on}", prev_tid=self.on, prev_prio=20, prev_state=state,
                 next_comm=f"t{tid}", next_tid=tid, next_prio=20)
        self.on = tid

    def begin(self, op, value, address=0x1000):
        self.add("syscall_entry_futex", uaddr=address, op=op, val=value, utime=0, uaddr2=0, val3=0)

    def end(self, ret=0):
        self.add("syscall_exit_futex", ret=ret)


def test_memory_of_many_waiters_and_wakes(kymo_bin, tmp_path):
    calls = Calls()
    for tid in range(10, 10 + WAITERS):
        calls.switch(tid)
        calls.begin(WAIT, 2)
    calls.switch(5)
    for _ in range(WAKES):
        calls.begin(WAKE, 1)
        calls.end(1)
    for tid in range(10, 10 + WAITERS):
        calls.switch(tid)
        calls.end()
    calls.switch(0)
    kernel_trace.write(tmp_path / "trace", calls.events)
    done = subprocess.run(["/usr/bin/python3", "-c", USE, tmp_path / "out", kymo_bin, "report", "locks", "-t", "locks", "--json",
                           "--limit", "0", tmp_path / "trace"], capture_output=True, text=True, timeout=300, check=True)
    code, peak = map(int, done.stdout.split())
    table, = json.loads((tmp_path / "out").read_text())["reports"][0]["tables"]
    assert code == 0 and sum(row["count"] for row in table["rows"]) == WAITERS, (done.stderr, table)
    assert SANITIZED or peak < PEAK_KIB


def test_waits_without_ends(kymo, tmp_path):
    """A thread whose call has lost its end waits no more; what the next release ends delays only the others."""
    calls = Calls()
    for tid in (10, 11, 12):
        calls.switch(tid)
        calls.begin(WAIT, 2)
    calls.switch(11)
    calls.add("syscall_entry_close", fd=3)
    calls.add("syscall_exit_close", ret=0)
    calls.switch(5)
    calls.begin(WAKE, 1)
    released = calls.ns
    calls.end(1)
    for tid in (12, 10):
        calls.switch(tid)
        calls.end()
    calls.switch(0)
    kernel_trace.write(tmp_path / "trace", calls.events)
    begins = [event.ns for event in calls.events if event.name == "syscall_entry_futex"]
    table, = json.loads(kymo("report", "locks", "-t", "holds", "--json", tmp_path / "trace").out)["reports"][0]["tables"]
    hold, = table["rows"]
    assert hold["delay"] == 2 * released - begins[0] - begins[2], hold
