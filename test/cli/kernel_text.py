# SPDX-License-Identifier: MIT
"""Reports computed a second time, in plain Python, from the text of a kernel trace.

Shares nothing with src/analysis: it reads babeltrace2's default text (kymo print writes the same)
and keeps every duration, so percentiles are exact. The rules are those of docs/reports.
`lttng_rules` switches to what lttng-analyses 0.6.1 does where it differs, to show that the
difference is just that.
"""

import collections
import math
import re

LINE = re.compile(r"^\[(\d+)\.(\d{9})\] \(\S+\) (?:(\S+) )?(\S+): (.*)$")
FIELD = re.compile(r'(\w+) = (?:"((?:[^"\\]|\\.)*)"|(-?\d+)\b|(-?0x[0-9A-Fa-f]+))')

Event = collections.namedtuple("Event", "ns cpu name context fields")


def scopes(text):
    """'{ a = 1 }, { b = "}" }' -> ['a = 1', 'b = "}"']"""
    depth, quoted, begin, found = 0, False, 0, []
    skip = False
    for at, char in enumerate(text):
        if skip:
            skip = False
        elif quoted:
            skip = char == "\\"
            quoted = char != '"'
        elif char == '"':
            quoted = True
        elif char == "{":
            if depth == 0:
                begin = at + 1
            depth += 1
        elif char == "}":
            depth -= 1
            if depth == 0:
                found.append(text[begin:at].strip())
    return found


def values(scope):
    found = {}
    for match in FIELD.finditer(scope):
        name, text, number, hexadecimal = match.groups()
        if text is not None:
            found.setdefault(name, re.sub(r"\\(.)", r"\1", text))
        else:
            found.setdefault(name, int(number) if number is not None else int(hexadecimal, 16))
    return found


def parse(lines):
    """Events of text with --clock-seconds: '[seconds.nanoseconds] (+delta) host name: {...}'."""
    events = []
    for line in lines:
        match = LINE.match(line)
        if not match:
            assert not line.strip(), f"no event: {line!r}"
            continue
        seconds, nanos, _host, name, rest = match.groups()
        parts = [values(scope) for scope in scopes(rest)]
        packet, fields = parts[0], parts[-1]
        context = {}
        for part in parts[1:-1]:
            context.update(part)
        events.append(Event(int(seconds) * 10**9 + int(nanos), packet.get("cpu_id"), name,
                            context, fields))
    return events


class Cpu:
    """Who ran on the CPUs."""

    def __init__(self, events, lttng_rules=False):
        begin, end = events[0].ns, events[-1].ns
        self.range = end - begin
        self.busy = collections.Counter()     # cpu -> ns
        self.idle = collections.Counter()
        self.time = collections.Counter()     # tid -> ns
        self.migrations = collections.Counter()
        self.missing = collections.Counter()  # cpu -> switches that must have been there
        self.name, self.prio = {}, {}
        self.called = {}                      # tid -> its name by contexts, the first one
        self.runs = {}                        # cpu -> [tid, since, last sign]
        self.where = {}                       # tid -> cpu
        for event in events:
            fields, cpu = event.fields, event.cpu
            switch = event.name == "sched_switch"
            tid = fields["prev_tid"] if switch else event.context.get("tid")
            # A context counts where the CPU is unknown, for calls, and after a contradiction.
            # State dumps do not: a recorder may write them on its own.
            sign = switch or (tid is not None and not lttng_rules and
                              not event.name.startswith("lttng_statedump_") and
                              (cpu not in self.runs or self.missing[cpu] or
                               "syscall_e" in event.name or event.name == "task_newtask"))
            if sign:
                self.sign(cpu, tid, event.ns, begin, switch, lttng_rules)
            if switch:
                prev, tid = fields["prev_tid"], fields["next_tid"]
                self.runs[cpu] = [tid, event.ns, event.ns]
                self.move(tid, cpu, lttng_rules)
                self.name[prev], self.name[tid] = fields["prev_comm"], fields["next_comm"]
                self.prio[prev], self.prio[tid] = fields["prev_prio"], fields["next_prio"]
            elif event.name == "sched_migrate_task":
                self.migrations[fields["tid"]] += fields["orig_cpu"] != fields["dest_cpu"]
                self.where[fields["tid"]] = fields["dest_cpu"]
            elif event.name == "sched_process_fork":
                self.where.pop(fields["child_tid"], None)
            self.names(event)
        for cpu, (tid, since, _seen) in self.runs.items():
            self.ran(cpu, tid, end - since)
        self.cpus = sorted(self.runs)

    def sign(self, cpu, tid, ns, begin, switch, lttng_rules):
        """@tid runs on @cpu at @ns, or did up to it."""
        if cpu not in self.runs:
            self.ran(cpu, -1 if lttng_rules and tid == 0 else tid, ns - begin)
            self.runs[cpu] = [tid, ns, ns]
        ran, since, seen = self.runs[cpu]
        if ran == tid:
            self.runs[cpu][2] = ns
            if switch:
                self.ran(cpu, tid, ns - since)
        else:
            self.missing[cpu] += 1
            self.ran(cpu, ran, seen - since)
            self.runs[cpu] = [tid, ns, ns]
        self.move(tid, cpu, lttng_rules)

    def ran(self, cpu, tid, ns):
        if tid == 0:
            self.idle[cpu] += ns
        else:
            self.busy[cpu] += ns
            self.time[max(tid, 0)] += ns

    def move(self, tid, cpu, lttng_rules):
        if tid and not lttng_rules and self.where.get(tid, cpu) != cpu:
            self.migrations[tid] += 1
        self.where[tid] = cpu

    def names(self, event):
        fields = event.fields
        if event.context.get("procname") and event.context.get("tid"):
            self.called.setdefault(event.context["tid"], event.context["procname"])
        if "comm" in fields and "tid" in fields and event.name.startswith("sched_"):
            if event.name not in ("sched_process_free", "sched_process_wait"):
                self.name[fields["tid"]] = fields["comm"]
                if "prio" in fields:
                    self.prio[fields["tid"]] = fields["prio"]
        elif event.name == "sched_process_fork":
            self.name[fields["child_tid"]] = fields["child_comm"]
        elif event.name == "sched_process_exec":
            self.name[fields["tid"]] = event.context.get(
                "procname", fields["filename"].rsplit("/", 1)[-1][:15])
        elif event.name == "lttng_statedump_process_state":
            self.name[fields["tid"]] = fields["name"]


class Syscalls:
    """Durations and results of calls, per (tid, call)."""

    def __init__(self, events, lttng_rules=False):
        self.durations = collections.defaultdict(list)
        self.errors = collections.defaultdict(collections.Counter)
        self.headless = self.births = self.gone = self.exited = 0
        under_way, running, born, seen = {}, {}, set(), set()
        for event in events:
            if event.name == "sched_switch":
                running[event.cpu] = event.fields["next_tid"] or None
            elif event.name == "sched_process_fork":
                born.add(event.fields["child_tid"])
            elif event.name == "sched_process_exit":
                self.exited += under_way.pop(event.fields["tid"], None) is not None
            match = re.match(r"(compat_)?syscall_(entry|exit)_(.*)", event.name)
            if not match:
                continue
            compat, which, call = match.groups()
            call = (compat or "") + call
            if call == "unknown" and not lttng_rules:
                call = f"syscall {event.fields['id']}"
            tid = running.get(event.cpu) if lttng_rules else event.context["tid"]
            if tid is None:
                continue
            if which == "entry":
                self.gone += tid in under_way
                under_way[tid] = (call, event.ns)
            elif tid not in under_way:
                self.births += tid in born and tid not in seen
                self.headless += not (tid in born and tid not in seen)
            else:
                entered, since = under_way.pop(tid)
                assert lttng_rules or entered == call
                self.durations[tid, entered].append(event.ns - since)
                if -4095 <= event.fields["ret"] < 0:
                    self.errors[tid, entered][-event.fields["ret"]] += 1
            seen.add(tid)
        self.unended = len(under_way)


def percentile(durations, percent):
    """Nearest-rank."""
    ordered = sorted(durations)
    return ordered[max(math.ceil(percent * len(ordered) / 100 - 1e-9), 1) - 1]
