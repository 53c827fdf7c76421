# SPDX-License-Identifier: MIT
"""Reports of small traces that are written here, for what happens seldom."""

import json
import os

from kernel_trace import write
from slow_figures import Event, tables

START_NS = 1_700_000_000_000_000_000


def event(ns, cpu, by, name, **fields):
    return Event(START_NS + ns, cpu, name, {"perf_tid": by}, fields)


def switch(ns, cpu, prev, to, state=0):
    return event(ns, cpu, prev, "sched_switch", prev_comm=f"t{prev}", prev_tid=prev, prev_prio=20, prev_state=state,
                 next_comm=f"t{to}", next_tid=to, next_prio=20)


def wake(ns, cpu, by, name, tid, target):
    return event(ns, cpu, by, name, comm=f"t{tid}", tid=tid, prio=20, target_cpu=target)


def waits(kymo, trace, *options):
    found = tables(kymo("report", "sched", "--json", "-t", "log", *options, trace), "sched")["log"]
    return [(row["begin"] - START_NS, row["end"] - START_NS, row["kind"], row["process"]["tid"],
             row["waker"] and row["waker"]["tid"]) for row in found]


def test_waking_and_wakeup_of_the_same_time(kymo, tmp_path):
    """Their order in the merge is that of the CPUs, which need not be that of what happened."""
    def record(name, waker, target):
        # At 5 us woken, at 6 us it runs; at 9 us all within the same nanosecond; at 11 us told by half.
        return write(tmp_path / name, sorted([
            switch(0, waker, 0, 10), switch(0, target, 0, 20), switch(1000, target, 20, 0, 1),
            wake(5000, waker, 10, "sched_waking", 20, target), wake(5000, target, 0, "sched_wakeup", 20, target),
            switch(6000, target, 0, 20), switch(8000, target, 20, 0, 1),
            wake(9000, waker, 10, "sched_waking", 20, target), wake(9000, target, 0, "sched_wakeup", 20, target),
            switch(9000, target, 0, 20), switch(10000, target, 20, 0, 1),
            wake(11000, target, 0, "sched_wakeup", 20, target), switch(12000, target, 0, 20),
            switch(13000, target, 20, 0, 1), switch(14000, waker, 10, 0, 1)],
            key=lambda one: (one.ns, one.cpu)))

    for name, waker, target in (("right", 0, 1), ("wrong", 1, 0)):
        trace = record(name, waker, target)
        assert waits(kymo, trace) == [(5000, 6000, "woken", 20, 10), (9000, 9000, "woken", 20, 10)], name
        assert waits(kymo, trace, "--min", "1us") == [(5000, 6000, "woken", 20, 10)]


def test_notes_on_cpus_name_the_host(kymo, tmp_path):
    """Of several hosts, which one's CPU has no record, or one that ends in damage."""
    def events(cpus):
        made = [switch(1000 * i + cpu, cpu, 10 * cpu + i % 2, 10 * cpu + (i + 1) % 2) for i in range(2500)
                for cpu in cpus]
        return made + [wake(2_500_000, 0, 1, "sched_waking", 99, 3)]

    one = write(tmp_path / "one", events((0,)), env='domain = "kernel"; hostname = "alpha";')
    two = write(tmp_path / "two", events((0, 1))[:-1], env='domain = "kernel"; hostname = "beta";')
    file = two / "stream_1"
    os.truncate(file, os.path.getsize(file) - 1000)
    for options in ((), ("--refresh", "1ms")):
        found = json.loads(kymo("report", "cpu", "--json", *options, one, two, code=1).out)["reports"][-1]["notes"]
        assert any(note.startswith("events of alpha name CPUs of which the trace has no record (3): ")
                   for note in found), found
        assert any(note.startswith("damage ends the record of CPU 1 of beta at ") for note in found), found
        assert len(found) == 3, found
    alone = json.loads(kymo("report", "cpu", "--json", one).out)["reports"][0]["notes"]
    assert alone[0].startswith("events name CPUs of which the trace has no record (3): ")
