# SPDX-License-Identifier: MIT
"""Reports of small traces that are written here, for what happens seldom."""

import json
import os
import re

from kernel_trace import write
from oracle_figures import Event, tables

START_NS = 1_700_000_000_000_000_000


def event(ns, cpu, by, name, /, **fields):
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


def test_woken_on_its_way_off_the_cpu(kymo, tmp_path):
    """What another CPU wakes while its switch is not done waits for a CPU from the switch on, and is not blocked."""
    def record(name, *, seconds):
        wakeups = [wake(5300, 1, 0, "sched_wakeup", 10, 0), wake(20_100, 1, 20, "sched_wakeup", 10, 0),
                   wake(33_000, 1, 20, "sched_wakeup", 10, 0)]
        return write(tmp_path / name, sorted([
            switch(0, 0, 0, 10), switch(0, 1, 0, 20), event(1000, 0, 10, "syscall_entry_pause"),
            # Woken at 5 us, the switch comes at 5.2 us.
            wake(5000, 1, 20, "sched_waking", 10, 0), switch(5200, 0, 10, 0, 1), switch(9000, 0, 0, 10),
            # Woken before it gave up its CPU: it ran on. It sleeps later, until 33 us.
            wake(20_000, 1, 20, "sched_waking", 10, 0), switch(30_000, 0, 10, 0, 1),
            wake(33_000, 1, 20, "sched_waking", 10, 0), switch(34_000, 0, 0, 10), switch(35_000, 0, 10, 30),
            event(40_000, 0, 30, "syscall_entry_pause"), switch(45_000, 0, 30, 10), event(46_000, 0, 10, "syscall_exit_pause", ret=0),
            switch(47_000, 0, 10, 0, 1), switch(48_000, 1, 20, 0, 1)] + seconds * wakeups,
            key=lambda one: one.ns))

    for name, seconds in (("both", 1), ("first", 0)):
        trace = record(name, seconds=seconds)
        assert waits(kymo, trace) == [(5200, 9000, "woken", 10, 20), (33_000, 34_000, "woken", 10, 20),
                                      (35_000, 45_000, "preempted", 10, None)], name
        log = tables(kymo("report", "--json", "breakdown", "--of", "syscall", "-t", "log", trace), "breakdown")["log"]
        assert [(row["begin"] - START_NS, row["end"] - START_NS, row["cause"].split(" ")[0]) for row in log] == [
            (1000, 5200, "running"), (5200, 9000, "waiting"), (9000, 30_000, "running"), (30_000, 33_000, "blocked:"),
            (33_000, 34_000, "waiting"), (34_000, 35_000, "running"), (35_000, 45_000, "preempted"),
            (45_000, 46_000, "running")], name


def test_a_busy_cpu_without_any_event(kymo, tmp_path):
    """Its tick makes softirqs: where nothing comes for 20 ms, the host or the firmware had the CPU. Not of an idle CPU."""
    def ticks(cpu, tid, begin, end):
        return [event(ns + after, cpu, tid, f"irq_softirq_{what}", vec=1) for ns in range(begin, end, 4_000_000)
                for after, what in ((0, "raise"), (100, "entry"), (200, "exit"))]

    trace = write(tmp_path / "quiet", sorted(
        [switch(0, 0, 0, 10), switch(0, 1, 20, 0, 1), *ticks(0, 10, 1_000_000, 20_000_000), *ticks(0, 10, 45_000_000, 90_000_000),
         switch(60_000_000, 1, 0, 20), switch(61_000_000, 1, 20, 0, 1), switch(91_000_000, 0, 10, 0, 1)],
        key=lambda one: one.ns))
    rows = tables(kymo("report", "cpu", "--json", trace), "cpu")["quiet"]
    assert [(row["begin"] - START_NS, row["end"] - START_NS, row["cpu"], row["process"]["tid"]) for row in rows] == \
        [(17_000_200, 45_000_000, 0, 10)]
    assert "showed no event for 20 ms or more" in kymo("report", "cpu", trace).out.replace("\n", " ")


def test_waits_without_a_switch_to_the_thread(kymo, tmp_path):
    """The wait lies between 0 ns and the first sign of the thread on a CPU: reports give these bounds."""
    made = [switch(0, 0, 0, 10), switch(0, 1, 0, 20)]
    for i in range(1, 10):  # measured: 1 us each
        made += [switch(10_000 * i, 1, 20, 0, 1), wake(10_000 * i + 1000, 0, 10, "sched_waking", 20, 1),
                 switch(10_000 * i + 2000, 1, 0, 20)]
    made += [  # 20 sleeps; 7 us after its wake-up, an event shows it on its CPU; so does its next switch, 1 us later.
        switch(100_000, 1, 20, 0, 1), wake(103_000, 0, 10, "sched_waking", 20, 1), *file_read(110_000, 20)[:1],
        switch(111_000, 1, 20, 0, 1),
        # Only the switch away from 20 shows that it ran.
        wake(120_000, 0, 10, "sched_waking", 20, 1), switch(124_000, 1, 20, 30, 0),
        # 20 was preempted; the next sign of it is a switch away, 16 us later.
        switch(140_000, 1, 20, 0, 1), switch(150_000, 0, 10, 0, 1)]
    trace = write(tmp_path / "bounds", made)

    found = tables(kymo("report", "sched", "--json", "--limit", "0", trace), "sched")
    woken, preempted = found["total"]
    assert (woken["count"], woken["p99"], woken["unmeasured"], woken["unmeasured_longest"]) == (9, 1000, 2, 7000)
    assert [woken[key] for key in ("p50_least", "p50_most", "p99_least", "p99_most")] == [1000, 1000, 1000, 7000]
    assert (preempted["count"], preempted["unmeasured"], preempted["p99_least"], preempted["p99_most"]) == \
        (0, 1, 0, 16_000)
    (row,) = [row for row in found["threads"] if row["process"]["tid"] == 20]
    assert (row["count"], row["unmeasured"], row["unmeasured_at_most"]) == (9, 3, 7000 + 4000 + 16_000)

    def notes(report):
        return " ".join(json.loads(kymo("report", report, "--json", trace).out)["reports"][0]["notes"])

    for report in ("sched", "summary"):
        assert "measured 9 of 12 waits for a CPU: the other 3 ended without a recorded switch to the thread; " \
            "each lasted at most 16.000 us, together at most 27.000 us" in notes(report), notes(report)
    assert "with the time since the wake-ups, it would be at most 27.000 us more" in notes("threads")
    # A trace that has every switch shows no such column.
    whole = write(tmp_path / "whole", made[:-8])
    assert "Unmeasured" not in kymo("report", "sched", whole).out and "Unmeasured" in kymo("report", "sched", trace).out


def test_waking_at_the_time_of_the_switch(kymo, tmp_path):
    """A sched_wakeup from when the thread ran has no part in the waking after that."""
    trace = write(tmp_path / "stale", [
        switch(0, 0, 0, 10), switch(0, 1, 0, 20), wake(100, 1, 20, "sched_waking", 30, 2),
        wake(200, 1, 20, "sched_wakeup", 30, 2), wake(1000, 1, 20, "sched_wakeup", 10, 0), switch(5000, 0, 10, 0, 1),
        wake(5000, 1, 20, "sched_waking", 10, 0), wake(5100, 1, 20, "sched_wakeup", 10, 0), switch(9000, 0, 0, 10),
        switch(10000, 0, 10, 0, 1), switch(10000, 1, 20, 0, 1)])
    assert waits(kymo, trace) == [(5000, 9000, "woken", 10, 20)]


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
        assert any(note.startswith("events of alpha name CPUs without a data stream in the trace (3): ")
                   for note in found), found
        assert any(note.startswith("damage ends the record of CPU 1 of beta at ") for note in found), found
        assert len(found) == 3, found
    alone = json.loads(kymo("report", "cpu", "--json", one).out)["reports"][0]["notes"]
    assert alone[0].startswith("events name CPUs without a data stream in the trace (3): ")


def test_damage_of_a_stream_of_two_cpus(kymo, tmp_path):
    """Of perf up to 4.1: what is lost of the stream is lost of all CPUs that its events name."""
    def made_of(one):
        return one.name, {"perf_cpu": one.cpu} | one.context | one.fields

    def events(n):
        return [switch(1000 * i + cpu, cpu, 10 * cpu + i % 2, 10 * cpu + (i + 1) % 2) for i in range(n)
                for cpu in (0, 1)]

    perf = 'domain = "kernel"; tracer_name = "perf";'
    one = write(tmp_path / "one", events(2500), made_of, perf, one_stream=True)
    two = write(tmp_path / "two", [Event(START_NS + ns, 0, "tick", {}, {"n": ns}) for ns in (0, 9_000_000)])
    file = one / "stream_0"
    os.truncate(file, os.path.getsize(file) // 2)
    found = json.loads(kymo("report", "cpu", "--json", "-t", "cpus", one, two, code=1).out)["reports"][0]
    unknown = {row["cpu"]: row["unknown"] for row in found["tables"][0]["rows"]}
    assert sorted(unknown) == [0, 1] and all(7_500_000 < ns < 8_500_000 for ns in unknown.values()), unknown
    notes = [note for note in found["notes"] if note.startswith("damage ends the record of CPU ")]
    assert len(notes) == 2, found["notes"]


def test_a_stream_that_names_more_cpus_than_there_are(kymo, tmp_path):
    """A bit too many in a CPU's number: each loss is noted for so many CPUs as a machine may have."""
    perf = 'domain = "kernel"; tracer_name = "perf";'
    one = write(tmp_path / "one", [switch(1000 * cpu, cpu, 10, 11) for cpu in range(20_000)],
                lambda one: (one.name, {"perf_cpu": one.cpu} | one.context | one.fields), perf, one_stream=True)
    two = write(tmp_path / "two", [Event(START_NS + ns, 0, "tick", {}, {"n": ns}) for ns in (0, 90_000_000)])
    file = one / "stream_0"
    os.truncate(file, os.path.getsize(file) - 100)
    found = json.loads(kymo("report", "cpu", "--json", "-t", "cpus", "--limit", "0", one, two, code=1).out)["reports"][0]
    assert sum(note.startswith("damage ends the record of CPU ") for note in found["notes"]) == 8192
    assert len(found["tables"][0]["rows"]) > 19_000


def test_damage_in_a_file_that_another_one_follows(kymo, tmp_path):
    """The CPU's record does not end there."""
    trace = write(tmp_path / "files", [switch(1000 * i + cpu, cpu, 10 * cpu + i % 2, 10 * cpu + (i + 1) % 2)
                                       for i in range(4000) for cpu in (0, 1)])
    file = trace / "stream_1"
    data = file.read_bytes()
    size = int.from_bytes(data[20:28], "little") // 8
    (trace / "stream_1_more").write_bytes(data[2 * size:])
    file.write_bytes(data[:2 * size - 1000])

    def cpus(*options):
        found = json.loads(kymo("report", "cpu", "--json", "-t", "cpus", *options, trace, code=1).out)["reports"]
        assert not any(note.startswith("damage ends") for part in found for note in part["notes"])
        return [sum(row[column] for part in found for row in part["tables"][0]["rows"] if row["cpu"] == 1)
                for column in ("busy", "idle", "unknown")]

    whole = cpus()
    assert sum(whole) > 3_900_000 and whole[2] < 1_000_000
    assert cpus("--refresh", "500us") == whole


def test_a_time_stamp_that_runs_over(kymo, tmp_path):
    """The last moment of all is one like any other; of times that are further apart than can be, nothing overflows."""
    trace = write(tmp_path / "over", [
        switch(0, 0, 0, 10), switch(0, 1, 0, 20), event(50, 1, 20, "irq_handler_entry", irq=5, name="x"),
        switch(100, 0, 10, 0, 1), wake(200, 1, 20, "sched_waking", 10, 0), *file_read(300, 20), switch(1000, 0, 0, 10),
        event(2**63 - 1 - START_NS, 1, 20, "irq_handler_exit", irq=5, ret=1), switch(2**63 - 1 - START_NS, 1, 20, 0, 1)])
    reports = "cpu,threads,sched,syscalls,io,irq,summary"
    for origin in (START_NS, -2**63 + 1):
        text = (trace / "metadata").read_text(encoding="utf-8")
        (trace / "metadata").write_text(re.sub("offset = -?[0-9]+", f"offset = {origin}", text), encoding="utf-8")
        for options in ((), ("--begin", "10%", "--end", "90%"), ("--refresh", "1000000000s")):
            kymo("report", "--json", reports, *options, trace)
        rows = tables(kymo("report", "cpu", "--json", trace), "cpu")["threads"]
        assert {row["process"]["tid"] for row in rows} == {10, 20}
        for form in ("perfetto", "ctf2", "json"):
            kymo("convert", trace, "--to", form, "-o", tmp_path / f"{form}{origin}")


def test_files_outlast_the_first_thread(kymo, tmp_path):
    """main() may end by pthread_exit() while other threads of the process go on, and use its files."""
    def read(ns, tid):
        return [event(ns, 0, tid, "syscall_entry_read", fd=3, count=100), event(ns + 10, 0, tid, "syscall_exit_read", ret=5)]

    trace = write(tmp_path / "threads", [
        switch(0, 0, 0, 10),
        *(event(1 + tid, 0, 10, "lttng_statedump_process_state", tid=tid, pid=10, ppid=1, name=f"t{tid}",
                file_table_address=0) for tid in (10, 11)),
        event(20, 0, 10, "lttng_statedump_file_descriptor", pid=10, fd=3, flags=0, filename="/tmp/shared"),
        *read(100, 10), switch(200, 0, 10, 11), *read(300, 11), switch(400, 0, 11, 10, 1),
        event(500, 0, 10, "sched_process_exit", comm="t10", tid=10, prio=20), switch(600, 0, 10, 11, 64),
        *read(700, 11), event(800, 0, 11, "syscall_entry_close", fd=3), event(810, 0, 11, "syscall_exit_close", ret=0),
        *read(900, 11), event(1000, 0, 11, "sched_process_exit", comm="t11", tid=11, prio=20), *read(1100, 11)])
    rows = tables(kymo("report", "io", "--json", "-t", "files", trace), "io")["files"]
    # The last is of a thread that had ended, as damage may have it.
    assert {row["file"]: row["read"] for row in rows} == {"/tmp/shared": 15, "fd 3 of 10": 10}


def file_read(ns, tid, fd=5, size=5):
    return [event(ns, 0, tid, "syscall_entry_read", fd=fd, count=100),
            event(ns + 10, 0, tid, "syscall_exit_read", ret=size)]


def file_open(ns, tid, name, fd=5):
    return [event(ns, 0, tid, "syscall_entry_openat", dfd=-100, filename=name, flags=0, mode=0),
            event(ns + 10, 0, tid, "syscall_exit_openat", ret=fd)]


def ends(ns, tid):
    return event(ns, 0, tid, "sched_process_exit", comm=f"t{tid}", tid=tid, prio=20)


def fork(ns, by, tid, pid):
    return event(ns, 0, by, "sched_process_fork", parent_comm="p", parent_tid=by, parent_pid=by, child_comm="c",
                 child_tid=tid, child_pid=pid)


def files_read(kymo, path, events):
    rows = tables(kymo("report", "io", "--json", "-t", "files", write(path, events)), "io")["files"]
    return {row["file"]: row["read"] for row in rows if row["read"]}


def test_files_outlast_a_thread_that_used_them_alone(kymo, tmp_path):
    """The process has others, which used none so far: those of a state dump, its leader, and a new one."""
    dump = [event(1 + tid, 0, 10, "lttng_statedump_process_state", tid=tid, pid=10, ppid=1, name=f"t{tid}",
                  file_table_address=0) for tid in (10, 11)]
    worker = [*file_open(100, 11, "/tmp/opened"), *file_read(200, 11), ends(300, 11), switch(400, 0, 11, 10, 64),
              *file_read(500, 10)]
    assert files_read(kymo, tmp_path / "worker", [switch(0, 0, 10, 11), *dump, *worker]) == {"/tmp/opened": 10}
    # The leader ends, and the one that used the file: a third one was idle so far.
    idle = [event(1 + tid, 0, 10, "lttng_statedump_process_state", tid=tid, pid=10, ppid=1, name=f"t{tid}",
                  file_table_address=0) for tid in (10, 11, 12)]
    alone = [*worker[:4], ends(250, 10), ends(300, 11), switch(400, 0, 11, 12, 64), *file_read(500, 12)]
    assert files_read(kymo, tmp_path / "idle", [switch(0, 0, 10, 11), *idle, *alone]) == {"/tmp/opened": 10}
    # A thread becomes another program, and so its process' first one: that goes on when all others have ended.
    becomes = [*file_open(100, 11, "/tmp/opened"), ends(200, 10),
               event(300, 0, 10, "sched_process_exec", filename="/bin/new", tid=10, old_tid=11),
               fork(400, 10, 15, 10), switch(500, 0, 10, 15, 1), *file_read(600, 15), ends(700, 15),
               switch(800, 0, 15, 10, 64), *file_read(900, 10)]
    assert files_read(kymo, tmp_path / "becomes", [switch(0, 0, 10, 11), *dump, *becomes]) == {"/tmp/opened": 10}
    forked = [switch(0, 0, 0, 10), *file_open(100, 10, "/tmp/a"), fork(200, 10, 12, 12), switch(300, 0, 10, 12, 1),
              fork(400, 12, 13, 12), ends(500, 12), switch(600, 0, 12, 13, 64), *file_read(700, 13), ends(800, 13),
              # Another process of that number has what its parent has.
              switch(900, 0, 13, 10, 64), *file_open(1000, 10, "/tmp/b", 6), fork(1100, 10, 12, 12),
              switch(1200, 0, 10, 12, 1), *file_read(1300, 12), *file_read(1400, 12, 6, 7), fork(1500, 12, 14, 12),
              switch(1600, 0, 12, 14, 1), *file_read(1700, 14, 6), ends(1800, 14), switch(1900, 0, 14, 12, 64),
              *file_read(2000, 12, 6), ends(2100, 12)]
    assert files_read(kymo, tmp_path / "forked", forked) == {"/tmp/a": 10, "/tmp/b": 17}


def rss(ns, by, member, size, mm=7, curr=1):
    return event(ns, 0, by, "rss_stat", mm_id=mm, curr=curr, member=member, size=size)


def test_resident_sizes_outlast_intervals_and_other_threads(kymo, tmp_path):
    """Each event has one part; the other parts have their last known values, from events in the range or before it."""
    trace = write(tmp_path / "rss", [
        switch(0, 0, 0, 10), event(1000, 0, 10, "kmem_mm_page_alloc", order=0), rss(1_000_000, 10, 0, 4096),
        rss(2_000_000, 10, 1, 65536), rss(3_000_000, 10, 1, 32768), switch(4_000_000, 0, 10, 11, 1),
        rss(5_000_000, 11, 3, 8192, curr=0), switch(6_000_000, 0, 11, 10, 1), rss(7_000_000, 10, 1, 36864),
        switch(8_000_000, 0, 10, 0, 1)])

    def sizes(*options):
        found = json.loads(kymo("report", "memory", "--json", "-t", "rss", *options, trace).out)["reports"]
        return [tuple(row[column] for column in ("first", "highest", "last", "file", "anonymous", "shared"))
                for report in found for row in report["tables"][0]["rows"]]

    last = (4096, 36864, 8192)
    assert sizes() == [(4096, 69632, 49152, *last)]
    assert sizes("--refresh", "2500us") == [(4096, 69632, 69632, 4096, 65536, 0), (36864, 36864, 36864, 4096, 32768, 0),
                                            (45056, 49152, 49152, *last)]
    assert sizes("--begin", "+6500us") == [(49152, 49152, 49152, *last)]
    assert sizes("--tid", "10") == [(4096, 69632, 49152, *last)]


def test_events_between_sched_switch_and_the_switch(kymo, tmp_path):
    """
    After sched_switch the kernel changes registers and address space, and events of that still have the thread that leaves. They
    are no sign of a switch that was not recorded; once one is missing, all events are looked at.
    """
    events, ns = [], 0
    for i in range(1000):
        prev, to = (11, 12) if i % 2 else (12, 11)
        if i != 500:
            events.append(switch(ns, 0, prev, to))
        events += [event(ns + 1 + n, 0, prev, "tlb_flush", pages=0) for n in range(2 if i != 500 else 0)]
        events.append(event(ns + 10, 0, to, "syscall_entry_getppid"))
        ns += 1000
    trace = write(tmp_path / "trace", events)
    (notes,) = [r["notes"] for r in json.loads(kymo("report", "cpu", "--json", trace).out)["reports"]]
    assert [note for note in notes if note.startswith("1 switch of 1 CPU was not recorded")], notes
