# SPDX-License-Identifier: MIT
"""Second computation: who held the locks that others waited for.

Unlike the model, it looks at the whole trace at once: every wait and every release of a futex is a pair of
positions in the list of events, and each question is answered by searching them.
"""

import collections

from oracle_figures import check_stats, number
from oracle_io import files_of

WAITS, RELEASES = (0, 6, 9, 11, 13), (1, 7, 10)
NEVER = float("inf")

Wait = collections.namedtuple("Wait", "at end_at begin end tid op val ret done")
Release = collections.namedtuple("Release", "at ns tid")
Hold = collections.namedtuple("Hold", "begin end tid address whole delay waits parts told_at")


class Futex:
    """One futex of a process."""

    def __init__(self, address):
        self.address, self.waits, self.releases = address, [], []

    def owner(self, at):
        """(who was woken last, and has neither waited again nor seen another release before @at, its wait)."""
        last = max((w for w in self.waits if w.done and w.ret == 0 and w.end_at < at),
                   key=lambda w: w.end_at, default=None)
        if not last or any(last.end_at < r.at < at for r in self.releases) or \
                any(w.tid == last.tid and last.end_at < w.at < at for w in self.waits):
            return None, None
        return last.tid, last

    def release_before(self, at):
        known = min((w.at for w in self.waits), default=NEVER)
        return max((r for r in self.releases if known < r.at < at), key=lambda r: r.at, default=None)

    def busy(self, at):
        """Since when there was a waiter at any time, up to @at."""
        begin, since = NEVER, None
        for wait in sorted((w for w in self.waits if w.at < at), key=lambda w: -w.end_at):
            if since is None and wait.end_at < at:
                break
            if since is not None and wait.end_at < begin:
                break
            if wait.at < begin:
                begin, since = wait.at, wait.begin
        return since

    def is_lock(self, at):
        """As far as is known at event @at."""
        begun = [w for w in self.waits if w.at <= at]
        pi = any(w.op in (6, 13) for w in begun)
        mutex = any(w.val == 2 and w.op not in (6, 13) for w in begun)
        other = any(w.val != 2 and w.op not in (6, 13) for w in begun)
        bitset = any(w.op not in (0, 6, 13) for w in begun)
        handed = any(r.at <= at and self.owner(r.at)[0] == r.tid for r in self.releases)
        return pi or (mutex and not other) or (handed and not bitset)

    def holds(self):
        found = []
        for release in self.releases:
            there = [w for w in self.waits if w.at < release.at < w.end_at and w.tid != release.tid]
            before = self.release_before(release.at)
            if not there:
                continue
            owner, wait = self.owner(release.at)
            given = self.release_before(wait.end_at) if owner == release.tid else None
            if given and given.ns < wait.begin:
                given = None
            busy = self.busy(release.at)
            begin, whole = busy, False
            if given:
                begin, whole = given.ns, True
            elif before and before.ns > busy:
                begin, whole = before.ns, True
            parts = {w: release.ns - max(w.begin, before.ns if before else w.begin) for w in there}
            parts = {w: ns for w, ns in parts.items() if ns}
            if parts:
                found.append(Hold(begin, release.ns, release.tid, self.address, whole, sum(parts.values()),
                                  [], parts, max(w.end_at for w in parts)))
        for wait in self.waits:
            with_it = [h for h in found if wait in h.parts]
            if with_it and wait.done:
                max(with_it, key=lambda h: h.parts[wait]).waits.append(wait)  # the first of equal ones
        return [h for h in found if any(w.done for w in h.parts)]


def futexes_of(events):
    """{(pid, address): Futex}; threads whose process no event tells are of any process."""
    found, calls, pids, known = {}, {}, files_of(events).pids, collections.defaultdict(set)
    for event in events:
        if event.name == "syscall_entry_futex":
            known[number(event.fields["uaddr"])].add(pids.get(event.context.get("tid")))

    def end(tid, at, ns, ret, done):
        entry, began, futex = calls.pop(tid, (None, 0, None))
        if entry and entry.fields["op"] & 0x7f in WAITS:
            futex.waits.append(Wait(began, at, entry.ns, ns, tid, entry.fields["op"] & 0x7f,
                                    number(entry.fields["val"]) & 0xffffffff, ret, done))

    for at, event in enumerate(events):
        tid = event.context.get("tid")
        if event.name.startswith("syscall_entry_"):
            end(tid, at, event.ns, None, False)
        if event.name == "sched_process_exit":
            end(event.fields["tid"], at, event.ns, None, False)
        if event.name == "syscall_entry_futex":
            address = number(event.fields["uaddr"])
            key = pids.get(tid) if len(known[address] - {None}) > 1 else None, address
            futex = found.setdefault(key, Futex(key[1]))
            calls[tid] = event, at, futex
            op = event.fields["op"] & 0x7f
            if op == 7 or (op in RELEASES and number(event.fields["val"]) == 1):
                futex.releases.append(Release(at, event.ns, tid))
        elif event.name == "syscall_exit_futex":
            end(tid, at, event.ns, event.fields["ret"], True)
    for tid in list(calls):
        end(tid, NEVER, NEVER, None, False)
    return found


def check_holders(report, events):
    """Tables holders and holds, and who held what the waits of the log were for."""
    futexes = futexes_of(events)
    holds = [(h, f) for f in futexes.values() for h in f.holds()]
    told = [h for h, f in holds if f.is_lock(h.told_at)]
    keys = ("begin", "end", "address", "whole", "waits", "wait", "delay", "held")
    every = {(h.begin, h.end, h.address, "yes" if h.whole else "no", len(h.waits),
              sum(w.end - w.begin for w in h.waits), h.delay, h.end - h.begin, h.tid) for h in told}
    shown = {tuple(row[key] for key in keys) + (row["holder"]["tid"],) for row in report["holds"]}
    assert shown <= every, (shown - every, every - shown)
    delays = sorted((h.delay for h in told), reverse=True)  # of single ones, the largest are shown
    assert [row["delay"] for row in report["holds"]] == delays[:len(report["holds"])]
    assert len(report["holds"]) in (10, len(told))
    by_holder = collections.defaultdict(list)
    for hold in told:
        by_holder[hold.tid, hold.address].append(hold)
    assert {(row["holder"]["tid"], row["address"]) for row in report["holders"]} == set(by_holder)
    for row in report["holders"]:
        there = by_holder[row["holder"]["tid"], row["address"]]
        check_stats(row, [h.end - h.begin for h in there])
        assert row["waits"] == sum(len(h.waits) for h in there)
        assert row["delay"] == sum(h.delay for h in there)
        assert row["ran"] + row["ready"] + row["blocked"] == sum(h.end - h.begin for h in there)
    held = {}
    for hold, futex in holds:
        for wait in hold.waits:
            if futex.is_lock(wait.end_at):
                held[wait.tid, wait.end] = hold.tid, hold.parts[wait]
    for row in report["log"]:
        there = held.get((row["process"]["tid"], row["end"]), (None, None))
        assert ((row["holder"] or {}).get("tid"), row["held"]) == there, row
