# SPDX-License-Identifier: MIT
"""Second computations: system calls, and the locks that some of them wait for."""

import collections
import re

from oracle_cpu import Early, Running, Wakings
from oracle_figures import check_stats, close, number
from oracle_interrupts import Stacks
from oracle_locks import check_holders

# ---- rates of system calls -----------------------------------------------------------------------

def calls(events):
    """(begin, end, call, tid, ret) of calls whose beginning and end were seen."""
    called, found = {}, []
    for event in events:
        match = re.match(r"(compat_)?syscall_(entry|exit)_(.*)", event.name)
        tid = event.context.get("tid")
        if event.name == "sched_process_exit":
            called.pop(event.fields["tid"], None)
        # A thread that is not its process' first takes over that one's id.
        if event.name == "sched_process_exec" and event.fields["old_tid"] in called:
            called[event.fields["tid"]] = called.pop(event.fields["old_tid"])
        if not match or not tid:
            continue
        compat, which, name = match.groups()
        name = f"syscall {event.fields['id']}" if name == "unknown" else name
        name = (compat or "") + name
        if which == "entry":
            called[tid] = name, event.ns
        else:
            entered, begin = called.pop(tid, (None, 0))
            if entered == name:
                found.append((begin, event.ns, name, tid, event.fields["ret"]))
    return found


def check_rates(report, events):
    found = calls(events)
    begin, end = events[0].ns, events[-1].ns
    length = 1000000
    while (end - begin) // length >= 30:
        length *= 2
    steps = collections.defaultdict(list)
    for call in found:
        steps[(call[1] - begin) // length].append(call)
    assert [row["begin"] for row in report["steps"]] == \
        [begin + i * length for i in range(len(report["steps"]))]
    for i, row in enumerate(report["steps"]):
        mine = steps.pop(i, [])
        assert row["count"] == len(mine)
        assert row["failed"] == sum(-4096 < ret < 0 for *_, ret in mine)
        assert row["total"] == sum(to - since for since, to, *_ in mine)
        span = min(length, end - row["begin"])
        assert row["rate"] is None and not span or close(row["rate"], len(mine) * 1e9 / span)
    assert not steps
    for table, key_of, row_key in (
            ("syscalls", lambda call: call[2], lambda row: row["syscall"]),
            ("threads", lambda call: (call[3], call[2]),
             lambda row: (row["process"]["tid"], row["syscall"]))):
        series = collections.defaultdict(collections.Counter)
        for call in found:
            series[key_of(call)][(call[1] - begin) // length] += 1
        assert {row_key(row) for row in report[table]} == set(series)
        keys = [row_key(row) for row in report[table]]
        for row in report[table]:
            mine = series[row_key(row)]
            if keys.count(row_key(row)) > 1:
                continue  # an id that was used twice
            assert row["count"] == sum(mine.values())
            assert close(row["rate"], row["count"] * 1e9 / (end - begin))
            peak = max(mine.values())
            assert close(row["peak"], peak * 1e9 / length)
            assert row["peak_begin"] == begin + length * min(i for i, n in mine.items() if n == peak)
    assert sum(row["count"] for row in report["log"]) == len(found)


# ---- locks -------------------------------------------------------------------------------------

Futex = collections.namedtuple("Futex", "begin end tid address ret waker")


def futexes(events):
    """futex() calls that wait, in the order of their ends."""
    running, stacks, waiting, woken, called, found = Running(), Stacks(), set(), {}, {}, []
    wakings, early, tops = Wakings(), Early(), {}
    for event in events:
        fields, cpu, tid = event.fields, event.cpu, event.context.get("tid")
        waiting.discard(running.see(event))
        if event.name in ("sched_waking", "sched_wakeup", "sched_wakeup_new"):
            who, whole = fields["tid"], wakings.is_whole(event)
            waker = None if stacks.stacks[cpu] or not whole else tid or None
            if who in running.current.values():
                early.runs(event)
                tops[who] = waker
            elif who not in waiting:
                waiting.add(who)
                woken[who] = event.ns, waker
        elif event.name == "sched_switch":
            prev, following = fields["prev_tid"], fields["next_tid"]
            running.current[cpu] = following
            waiting -= {prev, following}
            if early.leaves(event):
                waiting.add(prev)
                woken[prev] = event.ns, tops[prev]
            if prev and number(fields["prev_state"]) & 0xff == 0:
                waiting.add(prev)
        elif event.name == "syscall_entry_futex":
            called[tid] = event
        elif event.name.startswith("syscall_entry_"):
            called.pop(tid, None)
        elif event.name == "syscall_exit_futex" and tid in called:
            entry = called.pop(tid)
            if entry.fields["op"] & 0x7f in (0, 6, 9, 11, 13):
                at, waker = woken.get(tid, (0, None))
                ret = fields["ret"]
                found.append(Futex(entry.ns, event.ns, tid, number(entry.fields["uaddr"]), ret,
                                   waker if ret >= 0 and at >= entry.ns else None))
        stacks.see(event)
    return found


def check_locks(report, events):
    found = futexes(events)
    assert [(row["begin"], row["end"], row["process"]["tid"], row["address"],
             row["waker"] and row["waker"]["tid"]) for row in report["log"]] == \
        [(f.begin, f.end, f.tid, f.address, f.waker) for f in found]
    assert [row["result"] == "woken" for row in report["log"]] == [f.ret >= 0 for f in found]
    by_tid, pairs = (collections.defaultdict(list) for _ in range(2))
    for f in found:
        by_tid[f.tid].append(f.end - f.begin)
        if f.waker:
            pairs[f.tid, f.waker].append(f.end - f.begin)
    assert {row["process"]["tid"] for row in report["threads"]} == set(by_tid)
    for row in report["threads"]:
        check_stats(row, by_tid[row["process"]["tid"]])
    assert {(row["waiter"]["tid"], row["waker"]["tid"]) for row in report["pairs"]} == set(pairs)
    for row in report["pairs"]:
        check_stats(row, pairs[row["waiter"]["tid"], row["waker"]["tid"]])
    assert sum(row["count"] for row in report["locks"]) == len(found)
    for column, fits in (("woken", lambda f: f.ret >= 0), ("changed", lambda f: f.ret == -11),
                         ("timed_out", lambda f: f.ret == -110)):
        assert sum(row[column] for row in report["locks"]) == sum(map(fits, found))
    by_lock = collections.defaultdict(list)
    for row in report["log"]:
        by_lock[row["process"]["pid"] or row["process"]["tid"], row["address"]].append(row)
    assert len(report["locks"]) == len(by_lock)
    for row in report["locks"]:
        there = by_lock[row["process"]["pid"] or row["process"]["tid"], row["address"]]
        check_stats(row, [f["duration"] for f in there])
        assert row["waiters"] == len({f["process"]["tid"] for f in there})
    check_holders(report, events)
