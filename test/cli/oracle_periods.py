# SPDX-License-Identifier: MIT
"""Second computations: periods that the user defines."""

import collections

from oracle_figures import check_freq, check_stats, close

# The first is by a field, the second one lies in it, the third is by thread, the last by two fields.
PERIODS = (
    'call : $event =~ "syscall_entry_*" : $event =~ "syscall_exit_*" : by $ctx.tid '
    ": name=$event : failed=ret < 0",
    'off(call) : $event == "sched_switch" : $event == "sched_switch" : by prev_tid = next_tid',
    'stay : $event == "syscall_entry_read" : $event =~ "syscall_exit_*"',
    'soft : $event =~ "*softirq_entry" : $event =~ "*softirq_exit" : by $cpu, vec : vec',
)
Period = collections.namedtuple("Period", "name begin end tid cpu captured within")


class Periods:
    """Open periods, and what became of them."""

    def __init__(self):
        self.open = collections.defaultdict(list)  # (name, key) -> [begin, tid, captured, parent, over]
        self.found = []
        self.headless, self.outlived = collections.Counter(), collections.Counter()

    def begin(self, name, key, event, captured=None, parent=None):
        self.open[name, key].append([event.ns, event.context["tid"], captured, parent, False])

    def end(self, name, key, event, captured=None, child=False):
        stack = self.open[name, key]
        if not stack:
            self.headless[name] += not child
            return
        begin, tid, first, parent, _ = stack.pop()
        for (inner, _key), others in self.open.items():
            if inner == "off" and name == "call":
                self.outlived["off"] += sum(one[3] == (key, begin) for one in others)
                others[:] = [one for one in others if one[3] != (key, begin)]
        if first and captured:
            first = f"{first} {captured}"
        self.found.append(Period(name, begin, event.ns, tid or None, event.cpu, first,
                                 parent and parent[1]))


def see_period(stacks, event):
    fields, tid = event.fields, event.context["tid"]
    if event.name.startswith("syscall_exit_"):
        stacks.end("stay", tid, event)
        stacks.end("call", tid, event, f"failed={str(fields['ret'] < 0).lower()}")
    elif event.name.startswith("syscall_entry_"):
        stacks.begin("call", tid, event, f"name={event.name}")
        if event.name == "syscall_entry_read":
            stacks.begin("stay", tid, event)
    elif event.name == "sched_switch":
        stacks.end("off", fields["next_tid"], event, child=True)
        calls_open = stacks.open["call", fields["prev_tid"]]
        if calls_open:
            stacks.begin("off", fields["prev_tid"], event,
                         parent=(fields["prev_tid"], calls_open[-1][0]))
    elif event.name.endswith("softirq_entry"):
        stacks.begin("soft", (event.cpu, fields["vec"]), event, f"vec={fields['vec']}")
    elif event.name.endswith("softirq_exit"):
        stacks.end("soft", (event.cpu, fields["vec"]), event)
    elif event.name == "sched_process_fork":  # a new life of that id
        old = stacks.open.pop(("stay", fields["child_tid"]), None)
        if old:
            stacks.open["stay", fields["child_tid"], event.ns] = old


def check_periods(report, events):
    stacks = Periods()
    for event in events:
        see_period(stacks, event)
    found = stacks.found
    names = ["call", "off", "stay", "soft"]
    assert [row["period"] for row in report["periods"]] == names
    for row in report["periods"]:
        name = row["period"]
        durations = [p.end - p.begin for p in found if p.name == name]
        check_stats(row, durations)
        assert row["headless"] == (None if name == "off" else stacks.headless[name])
        assert row["outlived"] == (stacks.outlived[name] if name == "off" else None)
        assert row["unended"] == sum(len(stack) for key, stack in stacks.open.items()
                                     if key[0] == name)
        assert row["torn"] == row["forgotten"] == 0
        check_freq([r for r in report["freq"] if r["period"] == name], durations)
    assert [as_period(row) for row in report["log"]] == found
    assert [as_period(row) for row in report["top"]] == \
        sorted(found, key=lambda p: p.begin - p.end)[:10]
    captured = collections.defaultdict(list)
    for period in found:
        if period.captured:
            captured[period.name, period.captured].append(period.end - period.begin)
    rows = {(row["period"], row["captured"]): row for row in report["captured"]}
    assert set(rows) == set(captured)
    for key, durations in captured.items():
        check_stats(rows[key], durations)
    by_thread = collections.defaultdict(list)
    for period in found:
        by_thread[period.tid, period.name].append(period.end - period.begin)
    keys = [(row["process"] and row["process"]["tid"], row["period"]) for row in report["threads"]]
    assert set(keys) == set(by_thread)
    for key, row in zip(keys, report["threads"]):
        if keys.count(key) == 1:
            check_stats(row, by_thread[key])
    row, = report["within"]
    parents = [p.end - p.begin for p in found if p.name == "call"]
    inner = [p.end - p.begin for p in found if p.name == "off"]
    assert (row["within"], row["period"]) == ("call", "off")
    assert (row["count"], row["total"]) == (len(inner), sum(inner))
    assert close(row["each"], len(inner) / len(parents))
    assert close(row["share"], sum(inner) / sum(parents))


def as_period(row):
    assert row["duration"] == row["end"] - row["begin"]
    return Period(row["period"], row["begin"], row["end"],
                  row["process"] and row["process"]["tid"], row["cpu"], row["captured"],
                  row["within"])
