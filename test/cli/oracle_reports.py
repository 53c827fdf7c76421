# SPDX-License-Identifier: MIT
"""Reports computed a second time, in plain Python, from `kymo convert --to json`.

Shares nothing with src/analysis, and keeps every duration, so that percentiles are exact. The rules
are those of docs/reports; it is written to be read, not to be fast. Here are the checks by report; the
oracle_*.py beside it have what they compute.
"""

import collections
import re

from oracle_calls import calls, check_locks, check_rates, futexes
from oracle_cpu import check_sched, check_threads, waits
from oracle_devices import check_block, check_memory, check_net
from oracle_interrupts import check_interrupts
from oracle_io import check_io, check_io_latency, check_io_log, files_of, requests
from oracle_periods import check_periods, PERIODS
from oracle_signals import check_signals


def plural(some):
    return "" if len(some) == 1 else "s"


def check_devices(facts, done):
    """Bytes of the devices, to the digits that the text has."""
    if not done:
        return
    fact, units = facts["kymo report block"], {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
    assert fact.startswith(f"{len(done)} request{plural(done)}: ")
    for words, sectors in (("read", sum(one.sectors for one in done if one.read)),
                           ("written", sum(one.sectors for one in done if one.write))):
        found = re.search(rf"([\d.]+) (\w+) {words}", fact)
        told, unit = (float(found[1]), units[found[2]]) if found else (0, 1)
        assert abs(told * unit - 512 * sectors) <= unit / 20 + 1, (fact, words, sectors)


def check_summary(report, events):
    """Its counts; the words around them are for people."""
    facts = {}
    for row in report["facts"]:  # the first of each command
        facts.setdefault(row["more"], row["fact"])
    found = [w for w in waits(events) if w.kind == "woken"]
    if found:
        fact = facts["kymo report sched"]
        assert fact.startswith(f"{len(found)} wake-ups waited for a CPU")
        assert f", tid {max(found, key=lambda wait: wait.end - wait.begin).tid})" in fact
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
        mine = [row["fact"] for row in report["facts"] if row["more"] == "kymo report io-latency"]
        for kind, *words in (("read", "read of a file", "reads of files"), ("write", "write to a file", "writes to files"),
                             ("sync", "sync", "syncs")):
            of_kind = files.calls if kind == "sync" else on_disk
            of_kind = [io for io in of_kind if io.kind == kind]
            if of_kind:
                fact, = [fact for fact in mine if fact.startswith(f"{len(of_kind)} {words[len(of_kind) != 1]} took ")]
                assert f": {max(of_kind, key=lambda io: io.end - io.begin).call}" in fact
    waited = [wait for wait in futexes(events) if wait.ret != -110]
    if waited:
        assert facts["kymo report locks"].startswith(f"{len(waited)} wait{plural(waited)} at locks")
    signals = [event for event in events if event.name == "signal_generate"]
    seconds = (events[-1].ns - events[0].ns) / 1e9
    assert not signals or facts["kymo report signals"].startswith(
        f"{len(signals)} signal{plural(signals)}, {len(signals) / seconds:.1f} per second")
    moves = sum(event.name == "sched_migrate_task" and event.fields["orig_cpu"] != event.fields["dest_cpu"] for event in events)
    assert not moves or facts["kymo report sched -t migrations"].startswith(
        f"{moves} migration{'s' * (moves != 1)} between CPUs, {moves / seconds:.1f} per second")
    check_devices(facts, requests(events))
    preempted = [w for w in waits(events) if w.kind == "preempted"]
    assert not preempted or facts["kymo report sched -t preempted"].startswith(f"{len(preempted)} preemption{plural(preempted)} cost ")


# What the checks want beside --json.
OPTIONS = {name: ("--group-by", "thread") for name in ("block", "memory", "net", "threads")}
OPTIONS["periods"] = tuple(word for text in PERIODS for word in ("--period", text))

CHECKS = {
    "block": check_block,
    "locks": check_locks,
    "memory": check_memory,
    "signals": check_signals,
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
