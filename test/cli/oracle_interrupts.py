# SPDX-License-Identifier: MIT
"""Second computations: interrupts, and what they lay on top of."""

import collections
import re

from oracle_figures import check_freq, check_stats, close

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


class Stacks:
    """The interrupts that run on each CPU."""

    def __init__(self):
        self.stacks = collections.defaultdict(list)
        self.raised, self.names = {}, {}

    def see(self, event):
        """The run that this event ends, if it does and its beginning was seen."""
        what = irq_event(event)
        if not what:
            return None
        kind, nr, name, action = what
        if kind == "hard":
            name = self.names[nr] = name or self.names.get(nr, "")
        stack = self.stacks[event.cpu]
        if action == "raise":
            self.raised.setdefault((event.cpu, nr), event.ns)
        elif action == "entry":
            first = self.raised.pop((event.cpu, nr), None) if kind == "soft" else None
            stack.append((kind, nr, name, event.ns, first))
        else:
            at = max((i for i, e in enumerate(stack) if e[:3] == (kind, nr, name)), default=None)
            if at is not None:
                _, _, _, begin, first = stack[at]
                del stack[at:]
                nested = any((e[0] == "soft") == (kind == "soft") for e in stack)
                return Run(first, begin, event.ns, event.cpu, kind, nr, name, nested)
        return None


def interrupts(events):
    """Runs of interrupts, in the order of their ends."""
    stacks = Stacks()
    return [run for run in map(stacks.see, events) if run]


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
