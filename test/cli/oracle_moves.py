# SPDX-License-Identifier: MIT
"""Second computation: who took CPUs from others, who ran meanwhile, and who moved threads to other CPUs."""

import collections

from oracle_cpu import Early
from oracle_figures import check_stats, number


def runs(events):
    """{cpu: [(begin, end, tid)]}, and whether every switch says what the one before it did."""
    found, since, whole = collections.defaultdict(list), {}, True
    for event in events:
        if event.name == "sched_switch":
            begin, tid = since.get(event.cpu, (events[0].ns, event.fields["prev_tid"]))
            whole = whole and tid == event.fields["prev_tid"]
            found[event.cpu].append((begin, event.ns, tid))
            since[event.cpu] = event.ns, event.fields["next_tid"]
    for cpu, (begin, tid) in since.items():
        found[cpu].append((begin, events[-1].ns, tid))
    return found, whole


def first_cpus(events):
    """{(tid, begin of the wait): (preempted by, CPU that it waits for first)}"""
    found, running, waiting, early, left_ns = {}, {}, {}, Early(), {}
    for event in events:
        fields = event.fields
        wakes = event.name in ("sched_waking", "sched_wakeup", "sched_wakeup_new")
        if wakes and fields["tid"] in running.values():
            early.runs(event)
        elif wakes:
            begin, by, _ = waiting.get(fields["tid"], (left_ns.get(fields["tid"], event.ns), None, None))
            if by is None:
                waiting[fields["tid"]] = begin, None, fields["target_cpu"]
                found[fields["tid"], begin] = None, fields["target_cpu"]
        elif event.name == "sched_switch":
            prev, following = fields["prev_tid"], fields["next_tid"]
            running[event.cpu] = following
            waiting.pop(prev, None)
            waiting.pop(following, None)
            left_ns.pop(prev, None)
            left_ns.pop(following, None)
            if early.leaves(event):
                left_ns[prev] = event.ns
            if prev and number(fields["prev_state"]) & 0xff == 0:
                waiting[prev] = event.ns, following or False, event.cpu
                found[prev, event.ns] = following or None, event.cpu
    return found


def check_runner(row, ran, cpu):
    times = collections.Counter()
    there = [run for run in ran[cpu] if run[1] > row["begin"] and run[0] < row["end"]]
    for begin, end, tid in there:
        if tid and tid != row["process"]["tid"]:
            times[tid] += min(end, row["end"]) - max(begin, row["begin"])
    if len(there) > 100:  # it keeps some of them only
        return
    most = max(times.values(), default=0)
    assert (row["runner_time"] or 0) == most, (row, times)
    assert row["runner"] is None or times[row["runner"]["tid"]] == most


def check_pairs(report, waits, firsts):
    pairs = collections.defaultdict(list)
    for wait in waits:
        by = firsts[wait.tid, wait.begin][0] if wait.kind == "preempted" else None
        if by:
            pairs[wait.tid, by].append(wait.end - wait.begin)
    assert {(row["process"]["tid"], row["by"]["tid"]) for row in report["preempted"]} == set(pairs)
    for row in report["preempted"]:
        check_stats(row, pairs[row["process"]["tid"], row["by"]["tid"]])


def check_preemptions(report, events, waits):
    """Table preempted, and the columns of the log on who ran."""
    ran, whole = runs(events)
    if not whole:
        for table, column in (("log", "by"), ("log", "runner"), ("log", "runner_time"), ("preempted", "by"),
                              ("preempted", "process")):
            assert all(column in row for row in report[table])
            assert [row[column] for row in report[table]] is not None
        for row in report["preempted"]:
            row.looked_at.update(row)
        return
    firsts = first_cpus(events)
    check_pairs(report, waits, firsts)
    for row in report["log"]:
        by, cpu = firsts[row["process"]["tid"], row["begin"]]
        assert (row["by"] or {}).get("tid") == by, row
        check_runner(row, ran, cpu)


def check_migrations(rows, events, moved):
    """@moved: {tid: how often}, by sched_migrate_task and switches. Causes, by what threads say that they do."""
    calls, announced, causes = {}, set(), collections.Counter()
    called = {}  # stopper -> the system call of the thread that woke it last
    stoppers = {event.fields[side + "_tid"] for event in events if event.name == "sched_switch"
                for side in ("prev", "next") if event.fields[side + "_comm"].startswith("migration/")}
    for event in events:
        tid, fields = event.context.get("tid"), event.fields
        if event.name.startswith("syscall_entry_"):
            calls[tid] = event.name[len("syscall_entry_"):]
        elif event.name.startswith("syscall_exit_"):
            calls.pop(tid, None)
        elif event.name == "sched_waking":
            announced.add(fields["tid"])
            if fields["tid"] in stoppers:
                called[fields["tid"]] = calls.get(tid)
        elif event.name in ("sched_wakeup", "sched_wakeup_new"):
            announced.discard(fields["tid"])
        elif event.name == "sched_migrate_task" and fields["orig_cpu"] != fields["dest_cpu"]:
            who = fields["tid"]
            stopper = tid in stoppers
            if "sched_setaffinity" in (calls.get(tid), calls.get(who)) or \
                    (stopper and called.get(tid) == "sched_setaffinity"):
                causes["affinity"] += 1
            elif stopper and calls.get(who) in ("execve", "execveat"):
                causes["exec"] += 1
            elif who in announced and not stopper:
                causes["wake-up"] += 1
            else:
                causes["other"] += 1
    found = collections.Counter()
    for row in rows:
        found[row["process"]["tid"]] += row["count"]
        assert row["by"] is None or row["cause"] in ("wake-up", "affinity", "exec")
    assert +found == +collections.Counter(moved)
    for cause in ("affinity", "exec", "wake-up"):
        assert sum(row["count"] for row in rows if row["cause"] == cause) == causes[cause], (cause, causes)
