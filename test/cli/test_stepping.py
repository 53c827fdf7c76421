# SPDX-License-Identifier: MIT
"""Signals at each instant of an event: nothing is lost that is not counted, left behind, or hangs.

"stepping" puts a breakpoint on one instruction after the other; when an event reaches it, a signal comes, whose
handler traces too, and jumps away, ends its thread or forks. What there is to be reached is all of the
library's code, or what one event was seen to run through.
"""

import collections
import os
import platform
import re
import shutil

import pytest

from test_perf_contexts import needs_migrations
from test_user import BUILD, KYMO, box, events, nothing_left, pytestmark  # noqa: F401 (a fixture)

pytestmark = [pytestmark, pytest.mark.skipif(
    platform.machine() != "x86_64" or not shutil.which("objdump") or "-tsan" in BUILD,
    reason="needs x86-64's trap flag and objdump, and no thread sanitizer, which keeps signals waiting")]

OFFSETS = rf"""
objdump -d --no-show-raw-insn -j .text $(dirname $T)/../src/tracer/libkymo-trace.so |
    sed -n 's/^ *\([0-9a-f]*\):\t.*/\1/p' >offsets
"""


class Steps:
    """What was recorded of each instant, by event."""

    def __init__(self, box, mode, stride=None, options=""):
        # A sanitizer's library is larger, and a program joins only some 4096 times as fast as it likes.
        stride = stride * 6 if stride and "-asan" in BUILD else stride
        tries = f"{stride} offsets" if stride else ""
        self.done = box(f"""{OFFSETS if stride else ""}
kymo record --user 'stepping:*' {options} -o out -- $T/stepping {mode} $T/plugin.so {tries}
""" + nothing_left())
        found = re.fullmatch(r"instants (\d+) handlers (\d+) files (\d+)\n", self.done.out)
        assert found, self.done.out
        self.instants, self.handlers, self.files = (int(number) for number in found.groups())
        self.lost = int(re.search(r"; (\d+) lost", self.done.err)[1])
        self.counts = collections.defaultdict(collections.Counter)
        for trace in self.done.traces():
            for line in events(trace):
                name, instant = re.match(r"stepping:(\w+): .*?instant = (\d+)", line).groups()
                self.counts[name][int(instant)] += 1

    def each(self):
        """Of each instant: how often stepped, handler, after, jumped."""
        for i in range(self.instants):
            yield (i, *(self.counts[name][i] for name in ("stepped", "handler", "after", "jumped")))

    def check_all(self):
        assert self.handlers > 20 and self.handlers == sum(self.counts["handler"].values())
        assert self.lost == 0, self.done.err
        assert [found for found in self.each() if (found[1], found[3]) != (1, 1)] == []


def test_event(box):
    """All that it runs through, the C library and the way round where it is always interrupted included."""
    Steps(box, "event").check_all()


def test_contexts(box):
    Steps(box, "event", 5, "--context vpid,vtid,procname,pthread_id,pid_ns,perf:task-clock"
          " --filter '$ctx.vtid > 0 && $ctx.procname == \"stepping\" || instant < 0'").check_all()


def test_switches(box):
    """Each event fills a sub-buffer: what the reader is too slow for is counted."""
    steps = Steps(box, "switch", 3, "--buffer-size 64K")
    recorded = sum(sum(counts.values()) for name, counts in steps.counts.items()
                   if name in ("stepped", "handler"))
    assert steps.handlers > 20
    assert recorded + steps.lost == steps.instants + steps.handlers


def test_first_of_a_thread(box):
    Steps(box, "first", 3, "--context vtid").check_all()


@needs_migrations
def test_first_that_counts(box):
    steps = Steps(box, "first", 3, "--context perf:cpu-migrations,vtid")
    steps.check_all()
    assert steps.files <= 1


def test_changes(box):
    """The event that finds that the rules have changed is recorded, and so is the handler's."""
    Steps(box, "change", 5).check_all()


@pytest.mark.parametrize("mode", ["jump", "jump-spare"])
def test_jumps(box, mode):
    steps = Steps(box, mode, 7)
    assert steps.handlers > 20 and steps.lost == 0
    for i, stepped, handler, after, jumped in steps.each():
        assert (jumped, after) == (handler, 1 - handler) and stepped <= 1, i


@needs_migrations
def test_threads_that_end(box):
    steps = Steps(box, "exit", 5, "--context perf:cpu-migrations")
    assert steps.handlers > 20 and steps.lost == 0 and steps.files <= 1
    for i, stepped, handler, after, _ in steps.each():
        assert after == 1 - handler and stepped <= 1, i


@pytest.mark.parametrize("mode, stride", [("fork", 20), ("fork-first", None), ("fork-spare", 15)])
def test_forks(box, mode, stride):
    """The child goes on where the handler came: with an event that was not written, and all that follows."""
    steps = Steps(box, mode, stride)
    assert steps.handlers > 5 and steps.lost == 0
    for i, stepped, handler, after, _ in steps.each():
        assert after == 1 + handler and 1 <= stepped <= after, i
