# SPDX-License-Identifier: MIT
"""Times in a trace are wall time: as `date` tells it, to a millisecond."""

import calendar
import re
import time

import pytest

MS_IN_NS = 1_000_000

# getpriority is called by nobody else in this process; `date` is asked on both sides of it.
MARK = r"""
import os, subprocess, time
def date():
    return int(subprocess.run(["date", "+%s%N"], stdout=subprocess.PIPE).stdout)
before = date()
near_before = time.time_ns()
os.getpriority(os.PRIO_PROCESS, 0)
near_after = time.time_ns()
after = date()
print("MARK", os.getpid(), before, near_before, near_after, after, flush=True)
"""


def date_ns(text):
    """'2026-11-21 07:31:16.123456789' -> ns since the epoch, UTC."""
    second, fraction = text.split(".")
    return (calendar.timegm(time.strptime(second, "%Y-%m-%d %H:%M:%S")) * 1_000_000_000
            + int(fraction))


def marks(text, pid):
    """The times of getpriority in process @pid, from printed text."""
    lines = [line for line in text.splitlines()
             if "syscall_entry_getpriority:" in line and f"tid = {pid}," in line.replace(" }", ",")]
    return [date_ns(re.match(r"\[([^]]+)\]", line).group(1)) for line in lines]


@pytest.mark.parametrize("clock", [None, "monotonic"])
def test_agrees_with_date(kymo, record, peer, clock):
    options = ["--kernel", "syscall_*_getpriority"] + (["--clock", clock] if clock else [])
    trace, done = record(*options, command=["/usr/bin/python3", "-c", MARK])
    pid, before, near_before, near_after, after = map(
        int, re.search(r"MARK (\d+) (\d+) (\d+) (\d+) (\d+)", done.out + done.err).groups())
    for text in (kymo("print", "--clock-date", trace).out,
                 peer("babeltrace2", "--clock-date", trace).out):
        times = marks(text, pid)
        assert len(times) == 1, times
        assert before <= times[0] <= after
        assert near_before - MS_IN_NS <= times[0] <= near_after + MS_IN_NS
