# SPDX-License-Identifier: MIT
"""Whether two readers print the same events of a trace whose clock does not tick in nanoseconds.

babeltrace2 converts such clocks in doubles: its times are off by a nanosecond now and then, and then it
may also swap events of two CPUs that lie that close together. Everything else has to be equal.
"""

import re

LINE = re.compile(r"^\[(\d\d):(\d\d):(\d\d)\.(\d{9})\] \(\+[?.\d]+\) (.*?\{ cpu_id = (\d+) \}.*)")
DAY_NS = 24 * 3600 * 10**9


def parse(text):
    """[(time in ns of the day, event, cpu)] of what `kymo print` or `babeltrace2` print."""
    events = []
    for line in text.splitlines():
        found = LINE.match(line)
        assert found, line
        hours, minutes, seconds, ns, event, cpu = found.groups()
        events.append((((int(hours) * 60 + int(minutes)) * 60 + int(seconds)) * 10**9 + int(ns),
                       event, cpu))
    return events


def assert_same(ours, theirs):
    """@ours, of kymo, is in the order of its exact times, and has @theirs, CPU by CPU."""
    ours, theirs = parse(ours), parse(theirs)
    cpus = {cpu for _, _, cpu in ours + theirs}
    for cpu in cpus:
        mine = [event for event in ours if event[2] == cpu]
        peers = [event for event in theirs if event[2] == cpu]
        for a, b in zip(mine, peers):
            assert a[1] == b[1] and abs(a[0] - b[0]) in (0, 1, DAY_NS - 1), (a, b)
        assert len(mine) == len(peers), (cpu, len(mine), len(peers))
    for a, b in zip(ours, ours[1:]):
        assert a[0] <= b[0] or a[0] - b[0] > DAY_NS // 2, (a, b)  # but at midnight
    # Its order differs only among events of one time.
    for a, b in zip(ours, theirs):
        assert a[1:] == b[1:] or abs(a[0] - b[0]) <= 1, (a, b)
