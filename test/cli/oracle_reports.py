# SPDX-License-Identifier: MIT
"""Reports computed a second time, in plain Python, from `kymo convert --to json`.

Shares nothing with src/analysis, and keeps every duration, so that percentiles are exact. The rules
are those of docs/reports; it is written to be read, not to be fast. Here are the checks by report; the
oracle_*.py beside it have what they compute.
"""

import collections

from oracle_calls import calls, check_locks, check_rates, futexes
from oracle_cpu import check_sched, check_threads, waits
from oracle_devices import check_block, check_memory, check_net
from oracle_interrupts import check_interrupts
from oracle_io import check_io, check_io_latency, check_io_log, files_of, requests
from oracle_periods import check_periods, PERIODS


def check_summary(report, events):
    """Its counts; the words around them are for people."""
    facts = {row["more"]: row["fact"] for row in report["facts"]}
    found = [w for w in waits(events) if w.kind == "woken"]
    if found:
        assert facts["kymo report sched"].startswith(f"{len(found)} wake-ups waited for a CPU")
    done = calls(events)
    failed = sum(-4096 < ret < 0 for *_, ret in done)
    _name, count = collections.Counter(name for _, _, name, *_ in done).most_common(1)[0]
    assert facts["kymo report syscalls"].startswith(
        f"{len(done)} system calls, {failed} failed; most were ")
    assert f"({count})" in facts["kymo report syscalls"]
    files = files_of(events)
    on_disk = [io for io in files.calls if io.file and files.kinds[io.file] == "disk"]
    assert bool(requests(events)) == ("kymo report block" in facts)
    if "kymo report io-latency" in facts:
        assert max(on_disk, key=lambda io: io.end - io.begin).call in facts["kymo report io-latency"]
    if futexes(events):
        assert facts["kymo report locks"].startswith(f"{len(futexes(events))} waits at locks")


# What the checks want beside --json.
OPTIONS = {name: ("--group-by", "thread") for name in ("block", "memory", "net", "threads")}
OPTIONS["periods"] = tuple(word for text in PERIODS for word in ("--period", text))

CHECKS = {
    "block": check_block,
    "locks": check_locks,
    "memory": check_memory,
    "net": check_net,
    "periods": check_periods,
    "summary": check_summary,
    "syscall-rates": check_rates,
    "threads": check_threads,
    "io": check_io,
    "io-latency": check_io_latency,
    "io-log": check_io_log,
    "sched": check_sched,
    "irq": lambda report, events: check_interrupts(report, events, "irqs", False),
    "softirq": lambda report, events: check_interrupts(report, events, "softirqs", True),
}
