# SPDX-License-Identifier: MIT
"""Reports computed a second time, in plain Python, from `kymo convert --to json`.

Shares nothing with src/analysis, and keeps every duration, so that percentiles are exact. The rules
are those of docs/reports; it is written to be read, not to be fast.
"""

import collections
import json
import math
import re
import statistics

Event = collections.namedtuple("Event", "ns cpu name context fields")


def load(text):
    """Events of JSON lines."""
    found = []
    for line in text.splitlines():
        event = json.loads(line)
        context = dict(event.get("stream_context") or {})
        context.update(event.get("context") or {})
        found.append(Event(event["timestamp_ns"], (event.get("packet") or {}).get("cpu_id"),
                           event["event"], context, event.get("fields") or {}))
    return found


def close(a, b, relative=1e-9):
    return abs(a - b) <= relative * max(abs(a), abs(b), 1e-300)


def percentile(durations, percent):
    """Nearest-rank."""
    ordered = sorted(durations)
    return ordered[max(math.ceil(percent * len(ordered) / 100 - 1e-9), 1) - 1]


def check_stats(row, durations):
    """The columns that all statistics have."""
    assert row["count"] == len(durations)
    if not durations:
        assert row["total"] is None and row["p50"] is None
        return
    assert row["total"] == sum(durations)
    assert (row["min"], row["max"]) == (min(durations), max(durations))
    assert close(row["avg"], statistics.fmean(durations))
    if len(durations) > 1:
        assert close(row["stdev"], statistics.stdev(durations), 1e-7)
    else:
        assert row["stdev"] is None
    for name, percent in (("p50", 50), ("p90", 90), ("p99", 99), ("p999", 99.9)):
        want = percentile(durations, percent)
        if len(durations) <= 32:
            assert row[name] == want
        else:
            assert abs(row[name] - want) <= want / 128 + 1


def steps(durations):
    """{(from, to): count} in steps of 1, 2 and 5 times powers of ten, without the empty ones."""
    found = collections.Counter()
    for duration in durations:
        if duration == 0:
            found[0, 1] += 1
            continue
        power = 10 ** (len(str(duration)) - 1)
        low = max(part for part in (1, 2, 5) if part * power <= duration)
        found[low * power, {1: 2, 2: 5, 5: 10}[low] * power] += 1
    return found


def check_freq(rows, durations):
    assert {(row["from"], row["to"]): row["count"] for row in rows if row["count"]} == \
        steps(durations)
    assert [row["from"] for row in rows] == sorted(row["from"] for row in rows)
    for row in rows:
        assert close(row["share"], row["count"] / len(durations))


def number(value):
    """Enumerations are told as {"value": ...} or as numbers."""
    return value["value"] if isinstance(value, dict) else value


# ---- waiting for a CPU -------------------------------------------------------------------------

Wait = collections.namedtuple("Wait", "begin end kind tid cpu prio waker")


class Running:
    """What runs on the CPUs, as far as events tell."""

    def __init__(self):
        self.current = {}      # cpu -> tid, 0: idle
        self.missing = set()   # CPUs of which a switch is known to be missing

    def see(self, event):
        """Conclude from an event's context. Returns the thread that was found to run, or None.

        A context counts where the CPU is unknown, for system calls, and once switches are missing;
        a state dump's does not, as a recorder may write it on its own.
        """
        tid, cpu = event.context.get("tid"), event.cpu
        if event.name == "sched_switch":
            tid = event.fields["prev_tid"]
        elif event.name.startswith("lttng_statedump_") or cpu in self.current and \
                cpu not in self.missing and not event.name.startswith("syscall_"):
            return None
        if tid is None or self.current.get(cpu) == tid:
            return None
        if cpu in self.current:
            self.missing.add(cpu)
        self.current[cpu] = tid
        return tid


def waits(events):
    """Waits for a CPU, in the order of their ends."""
    running, waiting, found = Running(), {}, []
    for event in events:
        fields, cpu = event.fields, event.cpu
        waiting.pop(running.see(event), None)
        if event.name in ("sched_waking", "sched_wakeup", "sched_wakeup_new"):
            woken = fields["tid"]
            if woken not in running.current.values() and woken not in waiting:
                waiting[woken] = (event.ns, "woken", event.context.get("tid") or None)
        elif event.name == "sched_switch":
            prev, following = fields["prev_tid"], fields["next_tid"]
            waiting.pop(prev, None)
            running.current[cpu] = following
            if prev and number(fields["prev_state"]) & 0xff == 0:
                waiting[prev] = (event.ns, "preempted", None)
            if following in waiting:
                begin, kind, waker = waiting.pop(following)
                found.append(Wait(begin, event.ns, kind, following, cpu, fields["next_prio"],
                                  waker))
    return found


def check_sched(report, events):
    found = waits(events)
    by_tid = collections.defaultdict(list)
    for wait in found:
        by_tid[wait.tid].append(wait)
    rows = {row["process"]["tid"]: row for row in report["threads"]}
    if len(rows) == len(report["threads"]):  # no id was used twice
        assert set(rows) == set(by_tid)
        for tid, row in rows.items():
            check_stats(row, [w.end - w.begin for w in by_tid[tid] if w.kind == "woken"])
            off = [w.end - w.begin for w in by_tid[tid] if w.kind == "preempted"]
            assert (row["preempted"], row["preempted_time"]) == (len(off), sum(off))
    for row in report["total"]:
        durations = [w.end - w.begin for w in found if w.kind == row["kind"]]
        check_stats(row, durations)
        check_freq([r for r in report["freq"] if r["kind"] == row["kind"]], durations)
    for row in report["cpus"]:
        there = [w for w in found if w.cpu == row["cpu"]]
        assert row["waits"] == len(there)
        assert row["total"] == sum(w.end - w.begin for w in there)
        assert row["preempted"] == sum(w.kind == "preempted" for w in there)
        assert close(row["mean_queue"], row["total"] / (events[-1].ns - events[0].ns))
    assert [as_wait(row) for row in report["log"]] == found
    longest = sorted(found, key=lambda w: w.begin - w.end)[:10]
    assert [as_wait(row) for row in report["top"]] == longest


def as_wait(row):
    assert row["duration"] == row["end"] - row["begin"]
    return Wait(row["begin"], row["end"], row["kind"], row["process"]["tid"], row["cpu"],
                row["prio"], row["waker"] and row["waker"]["tid"])


# ---- interrupts ----------------------------------------------------------------------------------

Run = collections.namedtuple("Run", "raised begin end cpu kind nr name nested")
SOFTIRQS = "HI TIMER NET_TX NET_RX BLOCK IRQ_POLL TASKLET SCHED HRTIMER RCU".split()


def irq_event(event):
    """(kind, number, name, what) of an interrupt's event, or None."""
    match = re.fullmatch(r"irq_handler_(entry|exit)", event.name)
    if match:
        return "hard", event.fields["irq"], event.fields.get("name"), match.group(1)
    match = re.fullmatch(r"(?:irq_)?softirq_(raise|entry|exit)", event.name)
    if match:
        vec = event.fields["vec"]
        return "soft", vec, SOFTIRQS[vec], match.group(1)
    match = re.fullmatch(r"x86_irq_vectors_(.*)_(entry|exit)", event.name)
    if match:
        return "vector", None, match.group(1), match.group(2)
    return None


def interrupts(events):
    """Runs of interrupts whose beginning was seen, in the order of their ends."""
    stacks, raised, names, found = collections.defaultdict(list), {}, {}, []
    for event in events:
        what = irq_event(event)
        if not what:
            continue
        kind, nr, name, action = what
        if kind == "hard":
            name = names[nr] = name or names.get(nr, "")
        stack = stacks[event.cpu]
        if action == "raise":
            raised.setdefault((event.cpu, nr), event.ns)
        elif action == "entry":
            first = raised.pop((event.cpu, nr), None) if kind == "soft" else None
            stack.append((kind, nr, name, event.ns, first))
        else:
            at = max((i for i, e in enumerate(stack) if e[:3] == (kind, nr, name)), default=None)
            if at is None:
                continue
            _, _, _, begin, first = stack[at]
            del stack[at:]
            nested = any((e[0] == "soft") == (kind == "soft") for e in stack)
            found.append(Run(first, begin, event.ns, event.cpu, kind, nr, name, nested))
    return found


def check_interrupts(report, events, table, soft):
    found = [run for run in interrupts(events) if (run.kind == "soft") == soft]
    by_line = collections.defaultdict(list)
    for run in found:
        by_line[run.kind, run.nr, run.name].append(run)
    rows = {line(row): row for row in report[table]}
    assert set(rows) == set(by_line)
    for key, runs in by_line.items():
        durations = [run.end - run.begin for run in runs]
        check_stats(rows[key], durations)
        assert rows[key]["cpus"] == {str(cpu): n for cpu, n in
                                     collections.Counter(run.cpu for run in runs).items()}
        check_freq([row for row in report["freq"] if line(row) == key], durations)
    for row in report["cpus"]:
        there = [run for run in found if run.cpu == row["cpu"]]
        assert row["count"] == len(there)
        assert row["total"] == sum(run.end - run.begin for run in there if not run.nested)
        assert close(row["share"], row["total"] / (events[-1].ns - events[0].ns))
    assert [as_run(row) for row in report["log"]] == [run[:7] for run in found]
    longest = sorted(found, key=lambda run: run.begin - run.end)[:10]
    assert [as_run(row) for row in report["top"]] == [run[:7] for run in longest]
    if not soft:
        return
    rows = {line(row): row for row in report["latency"]}
    for key, runs in by_line.items():
        latencies = [run.begin - run.raised for run in runs if run.raised is not None]
        if latencies:
            check_stats(rows.pop(key), latencies)
            check_freq([row for row in report["latency_freq"] if line(row) == key], latencies)
    assert not rows


def line(row):
    return row["irq"]["kind"], row["irq"]["nr"], row["irq"]["name"]


def as_run(row):
    assert row["duration"] == row["end"] - row["begin"]
    assert row["latency"] == (row["raise"] and row["begin"] - row["raise"])
    return (row["raise"], row["begin"], row["end"], row["cpu"], *line(row))


CHECKS = {
    "sched": check_sched,
    "irq": lambda report, events: check_interrupts(report, events, "irqs", False),
    "softirq": lambda report, events: check_interrupts(report, events, "softirqs", True),
}
