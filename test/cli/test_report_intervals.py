# SPDX-License-Identifier: MIT
"""--refresh: the intervals' tables add up to those of the whole trace, in every report and table, for every
column that is a sum; and every single occurrence is in one interval."""

import collections
import json
import os
import struct

import pytest

import kernel_trace
import oracle_figures

PERIODS = ("--period", "call : $event =~ 'syscall_entry_*' : $event =~ 'syscall_exit_*' : $cpu")
# Columns of these classes are sums, but for those that are no sums by their names.
SUMS = {"count", "size", "duration", "tally"}
NO_SUMS = {"threads", "cpus", "min", "max", "avg", "stdev", "p50", "p90", "p99", "p999", "max_queue", "mean",
           "latency", "highest", "lowest", "most", "first", "last", "waiters", "file", "anonymous", "shared", "swap",
           "p50_least", "p50_most", "p99_least", "p99_most", "unmeasured_longest"}
NET = {("memory", "total", "net"), ("memory", "processes", "net")}
KEYS = {"cpu", "text", "syscall", "path", "disk", "netif", "address", "process", "irq"}
# Steps of time begin with their interval, and are no occurrences.
STEPS = "syscall-rates"


def key_of(value):
    """A name or a process may be learnt later than in the interval."""
    return value["tid"] if isinstance(value, dict) and "tid" in value else json.dumps(value)


def is_sum(report, table, column):
    if (report, table, column["name"]) in NET:
        return True
    if column["class"] == "tally":
        return True
    return column["class"] in SUMS and column["name"] not in NO_SUMS


def add_table(found, report, table):
    """Into {(report, table, key, column): sum}."""
    columns = table["columns"]
    keys = [c["name"] for c in columns if c["class"] in KEYS]
    sums = [c["name"] for c in columns if is_sum(report, table["name"], c)]
    if {"from", "to"} <= {c["name"] for c in columns}:
        keys, sums = keys + ["from", "to"], ["count"]
    elif any(c["class"] == "timestamp" for c in columns) and report != STEPS:
        keys, sums = [c["name"] for c in columns], []
    for row in table["rows"]:
        key = report, table["name"], tuple(key_of(row[name]) for name in keys)
        if not sums:
            found[key] += 1
        for name in sums:
            for part, count in row[name].items() if isinstance(row[name], dict) else [("", row[name] or 0)]:
                found[(*key, name, part)] += count


def sums(kymo, trace, *options, code=0):
    """All that adds up, of all reports, with all tables; and how many intervals there were."""
    args = ("report", "all", "--json", "--limit", "0", *PERIODS)
    names = json.loads(kymo("report", "all", "--json", *PERIODS, trace, code=code).out)["reports"]
    # What is in the tables of the longest is in the logs.
    tables = {table["name"] for report in names for table in report["tables"]} - {"top"} | {"log"}
    words = [word for table in sorted(tables) for word in ("-t", table)]
    found = collections.Counter()
    reports = json.loads(kymo(*args, *words, *options, trace, code=code).out)["reports"]
    for report in reports:
        for table in report["tables"]:
            # Steps begin with their interval.
            if report["name"] != "summary" and table["name"] != "depth_steps":
                add_table(found, report["name"], table)
    return {key: value for key, value in found.items() if value}, len(reports) // len(names)


def check(kymo, trace, options, lengths, code=0):
    whole, _ = sums(kymo, trace, *options, code=code)
    assert len(whole) > 500
    for length in lengths:
        parts, n = sums(kymo, trace, *options, "--refresh", length, code=code)
        assert n > 5
        wrong = {key: (whole.get(key), parts.get(key)) for key in whole.keys() | parts.keys()
                 if whole.get(key) != parts.get(key)}
        assert not wrong, (length, len(wrong), sorted(wrong.items(), key=str)[:20])


@pytest.mark.parametrize("options,lengths", (
    ((), ("50ms",)),
    (("--begin", "10%", "--end", "60%", "--group-by", "process"), ("50ms",)),
    (("--cpu", "1", "--pid", "323", "--comm", "lttng*"), ("50ms",)),
    # Half of the switches: what CPUs and threads did is often known only later, or not at all.
    (("--filter", "$event != 'sched_switch' || next_tid % 2 == 1"), ("50ms",))))
def test_intervals_add_up(kymo, reference, options, lengths):
    check(kymo, reference, options, lengths)


@pytest.fixture(scope="module")
def no_dump(events):
    """The reference trace's events, but for what its state dump told."""
    return [event for event in events if not event.name.startswith("lttng_statedump")]


def test_intervals_add_up_over_losses(kymo, no_dump, tmp_path):
    """What threads did off the CPU is not told where they may have run, in whichever interval that is found."""
    trace = kernel_trace.write(tmp_path / "gap", no_dump, kernel_trace.same_event, lost=((0, 3), (0, 7), (1, 2)))
    check(kymo, trace, (), ("100ms",))


def test_intervals_before_the_first_event_of_a_cpu(kymo, no_dump, tmp_path):
    """Its first switch tells what it did since its record began, however many intervals were over."""
    late = [event for event in no_dump if event.cpu == 0 or event.ns > no_dump[0].ns + 700_000_000]
    trace = kernel_trace.write(tmp_path / "late", late, kernel_trace.same_event, whole=True)
    check(kymo, trace, (), ("100ms",))
    first = json.loads(kymo("report", "cpu", "--json", "-t", "cpus", "--refresh", "100ms", trace).out)["reports"][0]
    row = first["tables"][0]["rows"][1]
    assert (row["cpu"], row["idle"] + row["busy"], row["unknown"]) == (1, 100_000_000, 0)


def test_intervals_behind_damage(kymo, no_dump, tmp_path):
    """Intervals behind the end of a CPU's record do not know it, and say so; those before it do not."""
    trace = kernel_trace.write(tmp_path / "cut", no_dump, kernel_trace.same_event)
    os.truncate(trace / "stream_1", os.path.getsize(trace / "stream_1") // 2)
    check(kymo, trace, (), ("100ms",), code=1)
    failed = kymo("report", "cpu,net", "--json", "-t", "cpus", "--refresh", "100ms", trace, code=1)
    assert failed.err.count("\n") == 1 and "stream_1" in failed.err
    found = [r for r in json.loads(failed.out)["reports"] if r["name"] == "cpu"]
    marked = [any("damage ends the record of CPU 1 at" in note for note in part["notes"]) for part in found]
    n_whole = marked.index(True)
    assert 2 < n_whole < 10 < len(found) and all(marked[n_whole:])
    for part in found[n_whole + 1:]:
        row = part["tables"][0]["rows"][1]
        assert (row["cpu"], row["busy"], row["idle"], row["usage"]) == (1, 0, 0, None)
    for part in found[:n_whole]:
        assert part["tables"][0]["rows"][1]["unknown"] < 10_000_000


def test_intervals_behind_damage_of_a_cpu_of_which_nothing_was_known(kymo, tmp_path):
    """Neither whom it ran nor that it was idle: its record ends all the same."""
    def irq(ns):
        return oracle_figures.Event(ns, 1, "irq_handler_" + ("exit" if ns // 1990 % 2 else "entry"), {}, {"irq": 7})

    switches = [oracle_figures.Event(ns, 0, "sched_switch", {}, {
        "prev_comm": "t", "prev_tid": ns // 10_000 % 2, "prev_prio": 20, "prev_state": 0, "next_comm": "t",
        "next_tid": 1 - ns // 10_000 % 2, "next_prio": 20}) for ns in range(0, 8_000_000, 10_000)]
    events = sorted([irq(ns) for ns in range(0, 8_000_000, 1990)] + switches, key=lambda event: event.ns)
    trace = kernel_trace.write(tmp_path / "cut", events)
    # Its first packet, with the first 1000.
    with open(trace / "stream_1", "rb") as file:
        size = struct.unpack_from("<Q", file.read(100), 20)[0] // 8
    os.truncate(trace / "stream_1", size + 100)
    found = json.loads(kymo("report", "cpu", "--json", "--refresh", "1ms", trace, code=1).out)["reports"]
    marked = [any("damage ends the record of CPU 1 at" in note for note in part["notes"]) for part in found]
    assert marked == [False] + [True] * 7


def test_longest_queue_of_the_parts(kymo, no_dump, tmp_path):
    """A thread that waits at the begin of a part waits in it."""
    trace = kernel_trace.write(tmp_path / "queues", no_dump, kernel_trace.same_event)

    def longest(*options):
        """[{CPU: max_queue}] of each interval."""
        found = json.loads(kymo("report", "sched", "--json", "-t", "cpus", *options, trace).out)["reports"]
        return [{row["cpu"]: row["max_queue"] for row in part["tables"][0]["rows"]} for part in found]

    def of_all(parts):
        return {cpu: max(part.get(cpu, 0) for part in parts) for part in parts for cpu in part}

    whole, = longest()
    assert of_all(longest("--refresh", "100ms")) == whole
    # Two wait from 1 ms on, up to the end.
    def event(ns, name, **fields):
        return oracle_figures.Event(ns, 0, name, {}, fields)

    def switch(ns, prev, to):
        return event(ns, "sched_switch", prev_comm="t", prev_tid=prev, prev_prio=20, prev_state=1, next_comm="t",
                     next_tid=to, next_prio=20)

    trace = kernel_trace.write(tmp_path / "two", [
        switch(0, 0, 10), *(event(1_000_000, "sched_waking", comm="t", tid=tid, prio=20, target_cpu=0)
                            for tid in (20, 30)),
        *(event(ns * 1_000_000, "tick", n=ns) for ns in range(2, 6)), switch(6_000_000, 10, 20)])
    assert longest() == [{0: 2}]
    assert longest("--begin", "+4ms") == [{0: 2}]
    assert longest("--begin", "+2ms", "--refresh", "1ms") == [{0: 2}] * 5
