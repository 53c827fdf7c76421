# SPDX-License-Identifier: MIT
"""Second computations: who ran, who waited for a CPU, and where threads were else."""

import collections

from oracle_figures import check_freq, check_stats, close, number, percentile

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


class Wakings:
    """sched_wakeup follows the sched_waking that began it, where those are recorded: else that was lost."""

    def __init__(self):
        self.any, self.announced = False, set()

    def is_whole(self, event):
        tid, announced = event.fields["tid"], event.fields["tid"] in self.announced
        self.announced.discard(tid)
        if event.name == "sched_waking":
            self.any = True
            self.announced.add(tid)
        return event.name != "sched_wakeup" or announced or not self.any


class Early:
    """Threads that another CPU wakes while they are on their way off theirs: they wait for a CPU since their switch."""

    def __init__(self):
        self.wakings = {}  # tid -> sched_waking

    def runs(self, event):
        """A wake-up of a thread that runs. With its sched_wakeup it is over: the thread runs on."""
        self.wakings.pop(event.fields["tid"], None)
        if event.name == "sched_waking":
            self.wakings[event.fields["tid"]] = event

    def leaves(self, event):
        """A switch: the sched_waking by which the thread goes on, or None."""
        waking = self.wakings.pop(event.fields["prev_tid"], None)
        return waking if number(event.fields["prev_state"]) & 0xff else None


def early_waits(events):
    """{(the switch's time, thread)} of all of them."""
    early, current, found = Early(), {}, set()
    for event in events:
        if event.name == "sched_switch":
            current[event.cpu] = event.fields["next_tid"]
            if early.leaves(event):
                found.add((event.ns, event.fields["prev_tid"]))
        elif event.name in ("sched_waking", "sched_wakeup") and event.fields["tid"] in current.values():
            early.runs(event)
    return found


def waits(events, bounded=None):
    """Waits for a CPU, in the order of their ends. To @bounded: those without a switch to the thread, up to its sign."""
    running, wakings, early, waiting, found = Running(), Wakings(), Early(), {}, []

    def miss(tid, event):
        wait = waiting.pop(tid, None)
        if wait and bounded is not None:
            bounded.append(Wait(wait[0], event.ns, wait[1], tid, event.cpu, None, None))

    for event in events:
        fields, cpu = event.fields, event.cpu
        miss(running.see(event), event)
        if event.name in ("sched_waking", "sched_wakeup", "sched_wakeup_new"):
            woken, whole = fields["tid"], wakings.is_whole(event)
            if woken in running.current.values():
                early.runs(event)
            elif woken not in waiting:
                waiting[woken] = (event.ns, "woken", event.context.get("tid") or None) if whole else None
        elif event.name == "sched_switch":
            prev, following = fields["prev_tid"], fields["next_tid"]
            miss(prev, event)
            running.current[cpu] = following
            if prev and number(fields["prev_state"]) & 0xff == 0:
                waiting[prev] = (event.ns, "preempted", None)
            waking = early.leaves(event)
            if waking:
                waiting[prev] = event.ns, "woken", waking.context.get("tid") or None
            wait = waiting.pop(following, None)
            if wait:
                begin, kind, waker = wait
                found.append(Wait(begin, event.ns, kind, following, cpu, fields["next_prio"],
                                  waker))
    return found


def check_bounds(row, measured, bounds):
    """The columns of waits whose end is not known: empty where there are none."""
    if not bounds:
        assert all(row[key] is None for key in ("unmeasured", "unmeasured_longest", "p50_least", "p50_most",
                                                "p99_least", "p99_most"))
        return
    assert (row["unmeasured"], row["unmeasured_longest"]) == (len(bounds), max(bounds))
    for percent in (50, 99):
        for key, values in (("least", [0] * len(bounds)), ("most", bounds)):
            assert close(row[f"p{percent}_{key}"], percentile(measured + values, percent), 0.008)


def check_sched(report, events):
    bounded = []
    found = waits(events, bounded)
    by_tid = collections.defaultdict(list)
    for wait in found:
        by_tid[wait.tid].append(wait)
    rows = {row["process"]["tid"]: row for row in report["threads"]}
    if len(rows) == len(report["threads"]):  # no id was used twice
        assert set(rows) >= set(by_tid)
        # Of the others, no wait has both ends.
        assert all(row["count"] == row["preempted"] == 0 and row["unmeasured"] for tid, row in rows.items()
                   if tid not in by_tid)
        for tid, row in rows.items():
            check_stats(row, [w.end - w.begin for w in by_tid[tid] if w.kind == "woken"])
            off = [w.end - w.begin for w in by_tid[tid] if w.kind == "preempted"]
            assert (row["preempted"], row["preempted_time"]) == (len(off), sum(off))
            most = [w.end - w.begin for w in bounded if w.tid == tid]
            assert (row["unmeasured"], row["unmeasured_at_most"]) == ((len(most), sum(most)) if most else (None, None))
    for row in report["total"]:
        durations = [w.end - w.begin for w in found if w.kind == row["kind"]]
        check_stats(row, durations)
        check_bounds(row, durations, [w.end - w.begin for w in bounded if w.kind == row["kind"]])
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


# ---- threads -----------------------------------------------------------------------------------

def check_threads(report, events):
    """Times off the CPU, by the same rules as waits; CPU time is report cpu's (test_report.py)."""
    running, early, off = Running(), Early(), {}
    sums = collections.defaultdict(collections.Counter)

    def end(tid, ns):
        kind, since = off.pop(tid, (None, 0))
        if kind and ns > since:
            sums[tid][kind] += ns - since

    ended = set()
    for event in events:
        fields, cpu = event.fields, event.cpu
        off.pop(running.see(event), None)
        if event.name in ("sched_waking", "sched_wakeup", "sched_wakeup_new"):
            woken = fields["tid"]
            if woken in running.current.values():
                early.runs(event)
            elif off.get(woken, ("",))[0] != "ready":
                end(woken, event.ns)
                off[woken] = "ready", event.ns
        elif event.name == "sched_switch":
            prev, following = fields["prev_tid"], fields["next_tid"]
            off.pop(prev, None)
            running.current[cpu] = following
            state = number(fields["prev_state"]) & 0xff
            kind = "ready" if not state or early.leaves(event) else "sleep" if state & 1 else \
                "disk" if state & 2 else "other"
            if prev and not (prev in ended and state):
                off[prev] = kind, event.ns
            if following:
                end(following, event.ns)
                sums[following]["runs"] += 1
        elif event.name == "sched_process_exit":
            ended.add(fields["tid"])
            sums[fields["tid"]]["ended"] += 1
        elif event.name == "sched_process_fork":
            ended.discard(fields["child_tid"])
            sums[fields["child_tid"]]["born"] += 1
    for tid in list(off):
        end(tid, events[-1].ns)
    mine = collections.defaultdict(collections.Counter)
    for row in report["processes"]:
        for column in ("ready", "sleep", "disk", "other", "runs", "born", "ended"):
            mine[row["process"]["tid"]][column] += row[column]
    for tid in set(mine) | set(sums):
        assert +mine[tid] == +sums[tid], tid
