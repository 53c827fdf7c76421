# SPDX-License-Identifier: MIT
"""What every second computation of a report begins with, and the columns that all reports have."""

import collections
import json
import math
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


def tables(result, report):
    """{table name: rows} of one report of `kymo report --json`."""
    reports = {r["name"]: r for r in json.loads(result.out)["reports"]}
    return {t["name"]: t["rows"] for t in reports[report]["tables"]}


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
    """Enumerations appear as {"value": ...} or as numbers."""
    return value["value"] if isinstance(value, dict) else value
