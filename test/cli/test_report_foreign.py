# SPDX-License-Identifier: MIT
"""Reports of traces that others made: the reference trace's events under the names and in the fields that
perf's conversion to CTF and LTTng before 2.6 have, and with parts missing. The figures must be the same,
or what is missing must be said."""

import json
import os
import re
import struct

import pytest

import slow_figures
from slow_figures import tables

TASK = re.compile(r"sched_(waking|wakeup|wakeup_new)$")


def pick(fields, names):
    """The fields of that list, called otherwise where it says "new=old"."""
    pairs = [(name.split("=") * 2)[:2] for name in names.split()]
    return {new: slow_figures.number(fields[old]) for new, old in pairs}


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
    if name.startswith("sched_"):
        name = "sched:" + name
    sample = {"perf_tid": event.context["tid"], "perf_pid": event.context.get("pid", -1)}
    return name, sample | fields


def old_event(event):
    """What LTTng 2.0 to 2.5 recorded; the thread's id is a field here as any other."""
    name, old, fields = event.name, event.fields, {}
    if name == "sched_switch":
        fields = pick(old, "prev_comm prev_tid prev_prio prev_state next_comm next_tid next_prio")
    elif TASK.match(name):
        fields = pick(old, "comm tid prio target_cpu")
    elif name == "sched_process_fork":
        fields = pick(old, "parent_comm parent_tid child_comm child_tid")
    elif name == "sched_process_exit":
        fields = pick(old, "comm tid")
    elif name.startswith("syscall_entry_"):
        name = "sys_" + name[14:]
    elif name.startswith("syscall_exit_"):
        name, fields = "exit_syscall", {"ret": old["ret"]}
    elif name.startswith("irq_softirq_"):
        name, fields = name[4:], pick(old, "vec")
    elif name == "irq_handler_entry":
        fields = pick(old, "irq name")
    elif name == "irq_handler_exit":
        fields = pick(old, "irq")
    return name, fields | {"perf_tid": event.context["tid"]}


HEAD = """/* CTF 1.8 */
trace {{ major = 1; minor = 8; byte_order = le; packet.header := struct {{
    integer {{ size = 32; align = 8; signed = false; }} magic; }}; }};
env {{ {env} }};
clock {{ name = c; freq = 1000000000; offset = {offset}; }};
typealias integer {{ size = 64; align = 8; signed = false; map = clock.c.value; }} := time_t;
typealias integer {{ size = 64; align = 8; signed = true; }} := long_t;
stream {{
    event.header := struct {{ integer {{ size = 32; align = 8; signed = false; }} id; time_t timestamp; }};
    packet.context := struct {{ time_t timestamp_begin; time_t timestamp_end;
        integer {{ size = 64; align = 8; signed = false; }} content_size;
        integer {{ size = 64; align = 8; signed = false; }} packet_size;
        integer {{ size = 64; align = 8; signed = false; }} events_discarded;
        integer {{ size = 32; align = 8; signed = false; }} cpu_id; }};
}};
"""
PER_PACKET = 1000


def write(path, events, made_of, env='domain = "kernel";', lost=()):
    """A trace of @events as @made_of tells their names and fields; one stream for each CPU.

    Packets @lost, as (CPU, number), are not there: their events were discarded.
    """
    os.makedirs(path)
    offset = events[0].ns
    ids, classes, bodies = {}, [], {}
    for event in events:
        name, fields = made_of(event)
        key = name, tuple(fields)
        if key not in ids:
            ids[key] = len(ids)
            members = "".join(f" {'string' if isinstance(value, str) else 'long_t'} _{field};"
                              for field, value in fields.items())
            classes.append(f'event {{ name = "{name}"; id = {ids[key]}; '
                           f"fields := struct {{{members} }}; }};\n")
        data = struct.pack("<IQ", ids[key], event.ns - offset)
        for value in fields.values():
            data += value.encode() + b"\0" if isinstance(value, str) else struct.pack("<q", value)
        bodies.setdefault(event.cpu, []).append((event.ns - offset, data))
    with open(path / "metadata", "w", encoding="utf-8") as file:
        file.write(HEAD.format(env=env, offset=offset) + "".join(classes))
    for cpu, found in bodies.items():
        with open(path / f"stream_{cpu}", "wb") as file:
            discarded = 0
            for i in range(0, len(found), PER_PACKET):
                part = found[i:i + PER_PACKET]
                if (cpu, i // PER_PACKET) in lost:
                    discarded += len(part)
                    continue
                body = b"".join(data for _ns, data in part)
                bits = (4 + 44 + len(body)) * 8
                file.write(struct.pack("<IQQQQQI", 0xC1FC1FC1, part[0][0], part[-1][0], bits, bits,
                                       discarded, cpu) + body)
    return path


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
        "cpu": sorted(of("cpu", "threads", "process", "cpu_time", "prio")),
        "syscalls": sorted(row for row in of("syscalls", "syscalls", "syscall", "count", "total",
                                             "failed") if row[1]),
    }


@pytest.mark.parametrize("made_of, env", (
    (perf_event, 'domain = "kernel"; tracer_name = "perf";'),
    (old_event, 'domain = "kernel"; tracer_name = "lttng-modules"; tracer_major = 2; tracer_minor = 3;')))
def test_names_of_others_give_the_same_figures(kymo, events, tmp_path, made_of, env):
    kept = [event for event in events if not event.name.startswith(("lttng_statedump", "x86_"))
            and not event.name.endswith("_unknown")]
    as_now = write(tmp_path / "now", kept, same_event, 'domain = "kernel"; tracer_name = "lttng-modules";')
    theirs = write(tmp_path / "theirs", kept, made_of, env)
    ours = figures(kymo, as_now)
    assert len(ours["sched"]) > 1000 and len(ours["softirq"]) > 100 and len(ours["cpu"]) > 10
    found = figures(kymo, theirs)
    for report, rows in ours.items():
        assert found[report] == rows, report


def same_event(event):
    """Today's names."""
    name, fields = old_event(event)
    if event.name.startswith("syscall_"):
        name = event.name
    elif event.name.startswith("irq_softirq_"):
        name = event.name
    return name, fields


def test_cut_in_the_middle_without_a_state_dump(kymo, events, tmp_path):
    """What was whole before the cut is told as it was, and the cut is an error with its place."""
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


def test_intervals_add_up_over_lost_events(kymo, events, tmp_path):
    """Borders of intervals lie where events were lost, which is found behind them."""
    def length_ns(interval):
        return interval["end_ns"] - interval["begin_ns"] + 1

    def sums(*options):
        found = json.loads(kymo("report", "--json", "cpu", "--limit", "0", *options, gap).out)["reports"]
        rows = {}
        for report in found:
            for table in report["tables"]:
                for row in table["rows"]:
                    if table["name"] == "cpus":
                        assert not options or row["unknown"] <= length_ns(report["interval"])
                        for state in ("busy", "unknown"):
                            key = row["cpu"], state
                            rows[key] = rows.get(key, 0) + row[state]
                    elif table["name"] == "threads" and row["cpu_time"]:
                        key = row["process"]["tid"]
                        rows[key] = rows.get(key, 0) + row["cpu_time"]
        return rows

    kept = [event for event in events if not event.name.startswith("lttng_statedump")]
    gap = write(tmp_path / "gap", kept, same_event, lost=((0, 3), (0, 7), (1, 2)))
    whole = sums()
    assert whole[0, "unknown"] and whole[1, "unknown"]
    for interval in ("100ms", "10ms", "1ms"):
        assert sums("--refresh", interval) == whole
