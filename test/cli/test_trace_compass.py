# SPDX-License-Identifier: MIT
"""What Trace Compass' kernel analysis needs of a trace, which is Java and in no Debian package.

The list is our own, of the names by which its LTTng layout (2.9 and later) knows events and fields, as its
documentation and the traces that it reads have them: the environment that makes it choose that layout, the
events that its state system and its execution graph use, and their fields' names and kinds."""

import json

import pytest

ENVIRONMENT = {"domain": "kernel", "tracer_name": "lttng-modules", "tracer_major": 2}
# Fields that are read; "int" or "text". Where it takes one of several names, the first that LTTng has.
EVENTS = {
    "sched_switch": {"prev_comm": "text", "prev_tid": "int", "prev_prio": "int", "prev_state": "int",
                     "next_comm": "text", "next_tid": "int", "next_prio": "int"},
    "sched_waking": {"comm": "text", "tid": "int", "prio": "int", "target_cpu": "int"},
    "sched_wakeup": {"comm": "text", "tid": "int", "prio": "int", "target_cpu": "int"},
    "sched_wakeup_new": {"comm": "text", "tid": "int", "prio": "int", "target_cpu": "int"},
    "sched_migrate_task": {"comm": "text", "tid": "int", "prio": "int", "orig_cpu": "int", "dest_cpu": "int"},
    "sched_pi_setprio": {"comm": "text", "tid": "int", "oldprio": "int", "newprio": "int"},
    "sched_process_fork": {"parent_comm": "text", "parent_tid": "int", "parent_pid": "int",
                           "child_comm": "text", "child_tid": "int", "child_pid": "int"},
    "sched_process_exec": {"filename": "text", "tid": "int", "old_tid": "int"},
    "sched_process_exit": {"comm": "text", "tid": "int", "prio": "int"},
    "sched_process_free": {"comm": "text", "tid": "int", "prio": "int"},
    "irq_handler_entry": {"irq": "int", "name": "text"},
    "irq_handler_exit": {"irq": "int", "ret": "int"},
    "irq_softirq_raise": {"vec": "int"},
    "irq_softirq_entry": {"vec": "int"},
    "irq_softirq_exit": {"vec": "int"},
    "timer_hrtimer_start": {"hrtimer": "int", "function": "int", "expires": "int", "softexpires": "int"},
    "timer_hrtimer_cancel": {"hrtimer": "int"},
    "timer_hrtimer_expire_entry": {"hrtimer": "int", "function": "int", "now": "int"},
    "timer_hrtimer_expire_exit": {"hrtimer": "int"},
    "power_cpu_frequency": {"cpu_id": "int", "state": "int"},
    "block_rq_insert": {"dev": "int", "sector": "int", "nr_sector": "int", "rwbs": "int", "tid": "int"},
    "block_rq_issue": {"dev": "int", "sector": "int", "nr_sector": "int", "rwbs": "int", "tid": "int"},
    "block_rq_complete": {"dev": "int", "sector": "int", "nr_sector": "int", "rwbs": "int", "error": "int"},
    "block_rq_merge": {"dev": "int", "sector": "int", "nr_sector": "int", "rwbs": "int"},
    "block_bio_frontmerge": {"dev": "int", "sector": "int", "nr_sector": "int", "rwbs": "int"},
    "block_bio_backmerge": {"dev": "int", "sector": "int", "nr_sector": "int", "rwbs": "int"},
    "net_dev_queue": {"skbaddr": "int", "len": "int", "name": "text"},
    "net_if_receive_skb": {"skbaddr": "int", "len": "int", "name": "text"},
    "kmem_mm_page_alloc": {"order": "int"},
    "kmem_mm_page_free": {"order": "int"},
    "syscall_entry_read": {"fd": "int", "count": "int"},
    "syscall_exit_read": {"ret": "int"},
    "syscall_entry_openat": {"filename": "text"},
    "syscall_exit_openat": {"ret": "int"},
    "syscall_entry_futex": {"uaddr": "int", "op": "int", "val": "int"},
    "lttng_statedump_start": {},
    "lttng_statedump_end": {},
    "lttng_statedump_process_state": {"tid": "int", "pid": "int", "ppid": "int", "name": "text", "type": "int",
                                      "mode": "int", "submode": "int", "status": "int", "cpu": "int"},
    "lttng_statedump_file_descriptor": {"fd": "int", "filename": "text"},
    "lttng_statedump_block_device": {"dev": "int", "diskname": "text"},
    "lttng_statedump_network_interface": {"name": "text"},
}
# Statuses that its state provider knows: waiting for a CPU, ended, blocked, running.
STATUSES = {2, 4, 5, 6, 7}


@pytest.fixture(scope="module")
def trace(kymo, needs_root_tracefs, tmp_path_factory):
    path = tmp_path_factory.mktemp("compass") / "trace"
    kymo("record", "-o", path, "-k", "default", "-k", "timer_hrtimer_*", "-k", "power_cpu_*", "--", "true")
    return path / "kernel"


@pytest.fixture(scope="module")
def classes(kymo, trace):
    """{event: {field: "int" or "text"}} by the metadata."""
    found, fields = {}, {}
    for line in kymo("convert", "--to", "details", "--head", "1", trace).out.splitlines():
        if line.startswith("    event class "):
            fields = found.setdefault(line.split('"')[1], {})
        elif line.startswith("        ") and not line.startswith("         ") and ": " in line:
            name, what = line.strip().split(": ", 1)
            fields[name] = "text" if what.startswith("string") else "int" if "integer" in what else what
    return found


def test_environment(kymo, trace):
    environment = json.loads(kymo("info", "--json", trace).out)["traces"][0]["environment"]
    assert ENVIRONMENT.items() <= environment.items()
    assert environment["tracer_minor"] >= 9  # the newest layout that it knows
    assert environment["hostname"] and environment["kernel_release"]


@pytest.mark.parametrize("name", sorted(EVENTS))
def test_events_and_fields(classes, name):
    assert {field: classes[name].get(field) for field in EVENTS[name]} == EVENTS[name]


def test_context_and_process_state(kymo, trace):
    """Each event of a CPU says which thread ran; states of processes are numbers that it knows."""
    for line in kymo("convert", "--to", "json", trace).out.splitlines():
        event = json.loads(line)
        assert "cpu_id" in event["packet"] and "tid" in event["context"]
        if event["event"] == "lttng_statedump_process_state":
            assert event["fields"]["status"] in STATUSES and event["fields"]["type"] in (0, 1)
