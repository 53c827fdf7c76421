# SPDX-License-Identifier: MIT
"""kymo list: against what tracefs itself says."""

import json
import os
import re


def listing(kymo, *globs):
    return json.loads(kymo("list", "--json", *globs).out)


def test_all_events(kymo, needs_root_tracefs):
    """Each event directory of tracefs once, none besides; but for other recordings' probes."""
    found = listing(kymo)
    events = os.path.join(needs_root_tracefs, "events")
    want = {(system, event) for system in os.listdir(events)
            if os.path.isdir(os.path.join(events, system)) and not re.match("ftrace$|kymo_", system)
            for event in os.listdir(os.path.join(events, system))
            if os.path.isdir(os.path.join(events, system, event))}
    have = {(event["system"], event["event"]) for event in found["events"]}
    assert have == {(s, e) for s, e in want
                    if not (s == "syscalls" and e.startswith(("sys_enter_", "sys_exit_")))}
    assert ({call["name"] for call in found["syscalls"]}
            == {e[len("sys_enter_"):] for s, e in want
                if s == "syscalls" and e.startswith("sys_enter_")})


def test_lttng_names(kymo, needs_root_tracefs):
    found = {event["name"]: event for event in listing(kymo)["events"]}
    switch = found["sched_switch"]
    assert switch["default"] is True
    assert ([field["name"] for field in switch["fields"]]
            == ["prev_comm", "prev_tid", "prev_prio", "prev_state", "next_comm", "next_tid",
                "next_prio"])
    assert switch["fields"][0]["type"] == "char[16]"
    assert found["irq_softirq_entry"]["event"] == "softirq_entry"
    assert "kmem_mm_page_alloc" in found
    assert found["irq_handler_entry"]["fields"][1] == {"name": "name", "type": "string"}


def test_syscalls(kymo, needs_root_tracefs):
    calls = listing(kymo, "openat")["syscalls"]
    assert [call["name"] for call in calls] == ["openat"]
    assert calls[0]["default"] is True
    assert ([argument["name"] for argument in calls[0]["arguments"]]
            == ["dfd", "filename", "flags", "mode"])
    out = kymo("list", "openat").out
    assert "* openat(dfd, filename, flags, mode)" in out
    out = kymo("list", "--fields", "openat").out
    assert "int dfd, const char *filename, int flags, umode_t mode" in out


def test_choosing(kymo, needs_root_tracefs):
    out = kymo("list", "sched_switch", "irq:softirq_*").out
    assert "sched: 1 event\n* sched_switch\n" in out
    assert "irq: 3 events\n" in out
    assert "block" not in out
    assert out == kymo("list", "--kernel", "sched_switch", "irq:softirq_*").out


def test_unknown(kymo, needs_root_tracefs):
    done = kymo("list", "sched_swich", code=1)
    assert done.out == ""
    assert "sched_swich" in done.err and "did you mean sched_switch" in done.err
