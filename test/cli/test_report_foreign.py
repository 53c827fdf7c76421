# SPDX-License-Identifier: MIT
"""Reports of traces that others made: the reference trace's events under the names and in the fields that
perf's conversion to CTF and LTTng before 2.6 have, and with parts missing. The figures must be the same,
or what is missing must be said."""

import json
import os
import re

import pytest

import oracle_figures
from kernel_trace import PER_PACKET, TASK, old_event, pick, same_event, write
from oracle_figures import tables


def perf_event(event):
    """perf's name and fields of an LTTng event: the kernel's own, and the sample's."""
    name, old, fields = event.name, event.fields, {}
    if name == "sched_switch":
        fields = pick(old, "prev_comm prev_pid=prev_tid prev_prio prev_state next_comm "
                           "next_pid=next_tid next_prio")
        fields["prev_prio"] += 100
        fields["next_prio"] += 100
    elif TASK.match(name):
        fields = pick(old, "comm pid=tid prio target_cpu")
        fields["prio"] += 100
    elif name == "sched_process_fork":
        fields = pick(old, "parent_comm parent_pid=parent_tid child_comm child_pid=child_tid")
    elif name == "sched_process_exit":
        fields = pick(old, "comm pid=tid")
    elif name.startswith("syscall_entry_"):
        name, fields = "syscalls:sys_enter_" + name[14:], {"__syscall_nr": 1}
    elif name.startswith("syscall_exit_"):
        name, fields = "syscalls:sys_exit_" + name[13:], {"__syscall_nr": 1, "ret": old["ret"]}
    elif name.startswith("irq_softirq_"):
        name, fields = "irq:" + name[4:], pick(old, "vec")
    elif name == "irq_handler_entry":
        name, fields = "irq:" + name, pick(old, "irq name")
    elif name == "irq_handler_exit":
        name, fields = "irq:" + name, pick(old, "irq")
    elif name == "sched_migrate_task":
        fields = pick(old, "comm pid=tid prio orig_cpu dest_cpu")
        fields["prio"] += 100
    if name.startswith("sched_"):
        name = "sched:" + name
    sample = {"perf_tid": event.context["tid"], "perf_pid": event.context.get("pid", -1)}
    return name, sample | fields


def old_perf_event(event):
    """What perf up to 4.1 wrote: one stream of all CPUs, and which one is a field of each event."""
    name, fields = perf_event(event)
    return name, {"perf_cpu": event.cpu} | fields


def older_event(event):
    """Before 2.7.1 the priorities of wake-ups were on the kernel's scale."""
    name, fields = old_event(event)
    if TASK.match(name):
        fields["prio"] += 100
    return name, fields


def unnamed_event(event):
    """Of a tracer that does not tell its version only priorities of 100 and above are known to be the kernel's."""
    name, fields = same_event(event)
    if TASK.match(name) and fields["prio"] >= 0:
        fields["prio"] += 100
    return name, fields


def figures(kymo, trace, *options):
    """What does not depend on names that only state dumps tell."""
    def of(report, table, *columns):
        rows = tables(found, report)[table]
        return [[row["process"]["tid"] if column == "process" else
                 (row["irq"]["kind"], row["irq"]["nr"], row["irq"]["name"]) if column == "irq" else
                 row[column] for column in columns] for row in rows]

    found = kymo("report", "--json", "cpu,sched,syscalls,irq,softirq", "-t", "sched.log", "-t", "irq.log",
                 "-t", "softirq.log", "-t", "cpu.threads", "-t", "syscalls.syscalls", *options, trace)
    return {
        "sched": of("sched", "log", "begin", "end", "kind", "process", "cpu", "prio"),
        "irq": of("irq", "log", "begin", "end", "cpu", "irq"),
        "softirq": of("softirq", "log", "raise", "begin", "end", "cpu", "irq"),
        "cpu": sorted(of("cpu", "threads", "process", "cpu_time", "migrations", "prio")),
        "syscalls": sorted(row for row in of("syscalls", "syscalls", "syscall", "count", "total",
                                             "failed") if row[1]),
    }


@pytest.mark.parametrize("made_of, env", (
    (perf_event, 'domain = "kernel"; tracer_name = "perf";'),
    (old_perf_event, 'domain = "kernel"; tracer_name = "perf";'),
    (old_event, 'domain = "kernel"; tracer_name = "lttng-modules"; tracer_major = 2; tracer_minor = 7; '
                'tracer_patchlevel = 1;'),
    (older_event, 'domain = "kernel"; tracer_name = "lttng-modules"; tracer_major = 2; tracer_minor = 7; '
                  'tracer_patchlevel = 0;'),
    (unnamed_event, 'domain = "kernel";')))
def test_names_of_others_give_the_same_figures(kymo, events, tmp_path, made_of, env):
    kept = [event for event in events if not event.name.startswith(("lttng_statedump", "x86_"))
            and not event.name.endswith("_unknown")]
    as_now = write(tmp_path / "now", kept, same_event, 'domain = "kernel"; tracer_name = "lttng-modules";')
    theirs = write(tmp_path / "theirs", kept, made_of, env, one_stream=made_of is old_perf_event)
    ours = figures(kymo, as_now)
    assert len(ours["sched"]) > 1000 and len(ours["softirq"]) > 100 and len(ours["cpu"]) > 10
    found = figures(kymo, theirs)
    for report, rows in ours.items():
        assert found[report] == rows, report


def test_what_perf_tells_of_the_time_before(kymo, events, tmp_path):
    """perf data convert --all: which processes were there, long before the first sample; of later, events tell."""
    def all_event(event):
        return (event.name, event.fields) if event.name.startswith("perf_") else perf_event(event)

    kept = [event for event in events if event.name.startswith("sched_")]
    tid = next(event.fields["prev_tid"] for event in kept
               if event.name == "sched_switch" and event.fields["prev_tid"] > 1)
    told = [("perf_fork", {"pid": tid, "ppid": 4711, "tid": tid, "ptid": 4711, "time": 0}),
            ("perf_comm", {"pid": tid, "tid": tid, "comm": "early"}),
            ("perf_mmap2", {"pid": tid, "tid": tid, "start": 0, "filename": "/bin/early"})]
    before = [kept[0]._replace(ns=kept[0].ns - 10**12, name=name, fields=fields) for name, fields in told]
    later = [kept[-1]._replace(ns=kept[-1].ns, name=name, fields=fields) for name, fields in told]
    perf = 'domain = "kernel"; tracer_name = "perf";'
    without = write(tmp_path / "without", kept, all_event, perf)
    whole = write(tmp_path / "all", before + kept + later, all_event, perf)
    assert figures(kymo, whole) == figures(kymo, without)
    found = [json.loads(kymo("report", "--json", "cpu,threads", "--limit", "0", trace).out)
             for trace in (without, whole)]
    assert found[0]["range"] == found[1]["range"] and found[0]["events"] + len(later) == found[1]["events"]
    # Relative times are of that range.
    for options in (("--begin", "50%"), ("--begin", "+500ms", "--end", "90%")):
        parts = [json.loads(kymo("report", "--json", "cpu", *options, trace).out)["range"] for trace in (without, whole)]
        assert parts[0] == parts[1] != found[0]["range"]
        assert figures(kymo, whole, *options) == figures(kymo, without, *options)
    parents = [{row["process"]["pid"]: row["parent"] for row in report["tables"][0]["rows"]}
               for report in (part["reports"][1] for part in found)]
    assert parents[1][tid] == 4711 and parents[0].get(tid) is None


def test_who_migrates_to_the_cpu_where_it_is_stays(kymo, events, tmp_path):
    """The kernel may say so of exec and fork."""
    kept = [event for event in events if event.name.startswith("sched_")]
    there = [event for event in kept if event.name == "sched_migrate_task"]
    fields = dict(there[0].fields, orig_cpu=there[0].cpu, dest_cpu=there[0].cpu)
    more = [there[0]._replace(ns=event.ns, cpu=event.cpu, fields=fields | {
        "tid": event.fields["prev_tid"], "comm": event.fields["prev_comm"], "prio": event.fields["prev_prio"],
        "orig_cpu": event.cpu, "dest_cpu": event.cpu}) for event in kept if event.name == "sched_switch"]
    both = sorted(more + kept, key=lambda event: event.ns)
    found = [figures(kymo, write(tmp_path / name, made, same_event))["cpu"]
             for name, made in (("without", kept), ("with", both))]
    assert found[0] == found[1] and sum(row[2] for row in found[0]) > 10


def test_cut_in_the_middle_without_a_state_dump(kymo, events, tmp_path):
    """The report has everything before the cut, and the cut is an error with its place."""
    kept = [event for event in events if not event.name.startswith("lttng_statedump")]
    whole = write(tmp_path / "whole", kept, same_event)
    cut = write(tmp_path / "cut", kept, same_event)
    size = os.path.getsize(cut / "stream_0")
    os.truncate(cut / "stream_0", size // 2)
    failed = kymo("report", "--json", "sched", "-t", "sched.log", cut, code=1)
    assert "stream_0: packet is truncated" in failed.err and "at byte" in failed.err
    last = max(event["timestamp_ns"] for event in map(json.loads, kymo(
        "convert", "--to", "json", cut, code=1).out.splitlines()) if event["packet"]["cpu_id"] == 0)

    def before(result):
        return [(row["begin"], row["end"], row["cpu"]) for row in tables(result, "sched")["log"]
                if row["end"] <= last]

    assert len(before(failed)) > 100
    assert before(failed) == before(kymo("report", "--json", "sched", "-t", "sched.log", whole))
    # The other CPU goes on; what this one does from there on is not known.
    cpus = {row["cpu"]: row for row in
            tables(kymo("report", "--json", "cpu", cut, code=1), "cpu")["cpus"]}
    assert cpus[0]["unknown"] >= events[-1].ns - last
    assert cpus[1]["unknown"] < events[-1].ns - last


def test_a_cpu_is_missing(kymo, events, tmp_path):
    """The other one's figures stay."""
    kept = [event for event in events if not event.name.startswith("lttng_statedump")]
    one = write(tmp_path / "one", [event for event in kept if event.cpu == 1], same_event)
    found = json.loads(kymo("report", "--json", "cpu", one).out)["reports"][0]["tables"]
    cpus = next(table["rows"] for table in found if table["name"] == "cpus")
    assert [row["cpu"] for row in cpus] == [1]


def test_lost_events_are_told_and_what_spans_them_is_not_measured(kymo, events, tmp_path):
    kept = [event for event in events if not event.name.startswith("lttng_statedump")]
    whole = write(tmp_path / "whole", kept, same_event)
    gap = write(tmp_path / "gap", kept, same_event, lost=((0, 3),))
    there = [event for event in kept if event.cpu == 0]
    since, until = there[3 * PER_PACKET - 1].ns, there[4 * PER_PACKET].ns
    result = kymo("report", "--json", "all", "-t", "syscalls.outcomes", "-t", "io-log.log", "-t", "sched.log",
                  "-t", "periods.log", "-t", "periods.periods", "--period",
                  'call : $event =~ "syscall_entry_*" : $event =~ "syscall_exit_*"', gap)
    for report in json.loads(result.out)["reports"]:
        if report["name"] != "summary" and report["tables"]:
            assert any("1000 events were lost in 1 gap" in note for note in report["notes"]), report["name"]
    outcomes = {row["outcome"]: row["count"] for row in tables(result, "syscalls")["outcomes"]}
    assert any(count for outcome, count in outcomes.items() if "lost" in outcome), outcomes
    assert tables(result, "periods")["periods"][0]["torn"] > 0
    for report, table in (("sched", "log"), ("io-log", "log"), ("periods", "log")):
        rows = tables(result, report)[table]
        assert len(rows) > 100
        assert not [row for row in rows if row["begin"] < until and row["end"] > since
                    and row["begin"] <= since and row["end"] >= until], report
    # Of intervals, only those in which something was lost say so.
    parts = json.loads(kymo("report", "--json", "irq", "--refresh", "100ms", gap).out)["reports"]
    told = [part["interval"] for part in parts if any("were lost" in note for note in part["notes"])]
    assert len(told) == 1 and told[0]["begin_ns"] <= until <= told[0]["end_ns"] + 1
    # Outside of the gap all is as it was: what ended before, and what began after it.
    other = kymo("report", "--json", "sched", "-t", "sched.log", whole)

    def outside(found):
        return [(row["begin"], row["end"], row["process"]["tid"]) for row in tables(found, "sched")["log"]
                if row["end"] < since]

    assert outside(result) == outside(other) != []
