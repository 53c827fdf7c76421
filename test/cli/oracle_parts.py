# SPDX-License-Identifier: MIT
"""Second computation: the parts of system calls, from the text of switches, wake-ups and interrupts alone."""

import bisect
import collections

from oracle_cpu import Early
from oracle_figures import number
from oracle_interrupts import Stacks

Part = collections.namedtuple("Part", "kind begin end")
KINDS = {"running in user space": "run", "running in the kernel": "run", "running": "run", "interrupted": "interrupted",
         "preempted": "preempted", "waiting for a CPU": "waits", "unknown": "unknown",
         "blocked: stopped by a signal or a debugger": "stopped"}


def kind_of(cause):
    return KINDS.get(cause, "blocked")


def join(parts):
    """Parts of one kind that touch are one."""
    found = []
    for part in parts:
        if found and found[-1].kind == part.kind and found[-1].end == part.begin:
            found[-1] = found[-1]._replace(end=part.end)
        elif part.begin < part.end:
            found.append(part)
    return found


class Threads:
    """What each thread does at each time, and what interrupts each CPU."""

    def __init__(self, events):
        self.early, self.current, self.since = Early(), {}, {}
        self.stretches = collections.defaultdict(list)  # of a thread: [(end, begin, kind, CPU)]
        self.wakers = {}  # (thread, end of its sleep): who woke it, None: an interrupt
        self.doubts = []  # [(begin, end)]: a switch is missing
        self.switched, self.stacks = {}, Stacks()
        self.irqs = collections.defaultdict(list)  # of a CPU: [(end, begin)]
        self.top = {}
        for event in events:
            self.see(event)
        for tid in list(self.since):
            self.change(tid, "end", event.ns)

    def change(self, tid, kind, ns, cpu=None):
        old, since, on = self.since.get(tid, (None, ns, None))
        if since < ns:
            self.stretches[tid].append((ns, since, old, on))
        self.since[tid] = kind, ns, cpu

    def see(self, event):
        cpu = event.cpu
        if event.name == "sched_switch":
            self.switch(event, cpu)
        elif event.name in ("sched_waking", "sched_wakeup", "sched_wakeup_new"):
            self.wake(event)
        elif event.name.startswith("syscall_") and cpu not in self.current:
            self.current[cpu] = event.context["tid"]
            self.change(event.context["tid"], "run", event.ns, cpu)
        self.stacks.see(event)
        inside = bool(self.stacks.stacks[cpu])
        if inside and cpu not in self.top:
            self.top[cpu] = event.ns
        elif not inside and cpu in self.top:
            self.irqs[cpu].append((event.ns, self.top.pop(cpu)))

    def switch(self, event, cpu):
        prev, following = event.fields["prev_tid"], event.fields["next_tid"]
        if self.current.get(cpu, prev) != prev:
            self.doubts.append((self.switched[cpu], event.ns))
        state = number(event.fields["prev_state"]) & 0xff
        early = self.early.leaves(event)
        if prev:
            self.change(prev, "preempted" if not state else "waits" if early else "blocked" if state & 3 else "stopped",
                        event.ns)
        self.current[cpu], self.switched[cpu] = following, event.ns
        if following:
            self.change(following, "run", event.ns, cpu)

    def wake(self, event):
        tid = event.fields["tid"]
        kind = self.since.get(tid, ("",))[0]
        if kind == "run":
            self.early.runs(event)
        elif kind in ("blocked", "stopped"):
            self.wakers[tid, event.ns] = None if self.stacks.stacks[event.cpu] else event.context.get("tid")
        if kind not in ("run", "waits", "preempted"):
            self.change(tid, "waits", event.ns)

    def is_doubtful(self, begin, end):
        return any(since < end and begin < to for since, to in self.doubts)

    def interrupts(self, cpu, begin, end):
        """A run of a thread, without and with interrupts on top."""
        irqs = self.irqs[cpu]
        for to, since in irqs[bisect.bisect_right(irqs, (begin, end)):]:
            if since >= end:
                break
            since, to = max(since, begin), min(to, end)
            yield from (Part("run", begin, since), Part("interrupted", since, to))
            begin = to
        yield Part("run", begin, end)

    def parts(self, tid, begin, end):
        found, stretches = [], self.stretches[tid]
        for to, since, kind, cpu in stretches[bisect.bisect_right(stretches, (begin, end)):]:
            if since >= end:
                break
            since, to = max(since, begin), min(to, end)
            found.append(Part("unknown", begin, since))
            found += self.interrupts(cpu, since, to) if kind == "run" else [Part(kind, since, to)]
            begin = to
        return join(found + [Part("unknown", begin, end)])
