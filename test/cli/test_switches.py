# SPDX-License-Identifier: MIT
"""Switches from the idle task are recorded on every CPU, also where the kernel's own tracing leaves them out."""

import collections
import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.usefixtures("needs_root_tracefs")

# Sleeps on one CPU, which is idle meanwhile if nothing else runs there.
SLEEP = "import os, sys, time; os.sched_setaffinity(0, {int(sys.argv[1])})\nfor _ in range(200): time.sleep(0.001)"


def sleep_on_all():
    sleepers = [subprocess.Popen([sys.executable, "-c", SLEEP, str(cpu)]) for cpu in os.sched_getaffinity(0)]
    for sleeper in sleepers:
        assert sleeper.wait() == 0
    return [sleeper.pid for sleeper in sleepers]


def switches_of(kymo, trace):
    lines = kymo("convert", "--to", "json", trace).out.splitlines()
    return [(e["packet"]["cpu_id"], e["fields"]) for e in map(json.loads, lines) if e["event"] == "sched_switch"]


def test_each_switch_to_idle_is_followed_by_one_from_idle(kymo, recordings):
    record = recordings("-k", "sched_switch")
    pids = sleep_on_all()
    record.stop()
    came, left = collections.Counter(), collections.Counter()
    by_cpu = collections.defaultdict(list)
    all_switches = switches_of(kymo, record.out)
    for cpu, fields in all_switches:
        by_cpu[cpu].append((fields["prev_tid"], fields["next_tid"]))
    for cpu, switches in by_cpu.items():
        for (_, to), (from_, _) in zip(switches, switches[1:]):
            came[cpu] += to == 0
            left[cpu] += to == 0 and from_ == 0
    assert set(came) == set(os.sched_getaffinity(0))
    if min(came.values()) < 100:
        pytest.skip(f"other programs keep the CPUs busy: switches to idle {dict(came)}")
    # A kernel may miss some switches of other threads, too.
    assert all(left[cpu] >= 0.95 * came[cpu] for cpu in came), (came, left)
    found = {fields["next_tid"]: fields for _, fields in all_switches if fields["prev_tid"] == 0}
    assert set(pids) <= set(found)
    for pid in pids:
        fields = found[pid]
        assert fields["prev_comm"].startswith("swapper/") and fields["prev_prio"] == 20
        assert fields["next_prio"] == 20 and fields["prev_state"] == 0


def test_waits_are_measured(kymo, recordings):
    """Of threads that are woken where nothing runs, as of others."""
    record = recordings("-k", "sched_switch,sched_waking")
    pids = sleep_on_all()
    record.stop()
    report = json.loads(kymo("report", "sched", "--json", "--limit", "0", record.out).out)
    rows = {row["process"]["tid"]: row for row in report["reports"][0]["tables"][0]["rows"]}
    for pid in pids:
        assert rows[pid]["count"] >= 190


@pytest.mark.parametrize("cpu", sorted(os.sched_getaffinity(0)))
def test_a_cpu_that_is_busy_at_first(kymo, recordings, cpu):
    """Then the self-test says nothing about the CPU; and no switch is recorded twice, whether the ring has them or not."""
    hog = subprocess.Popen([sys.executable, "-c", f"import os\nos.sched_setaffinity(0, {{{cpu}}})\nwhile True: pass"])
    try:
        record = recordings("-k", "sched_switch,sched_waking")
    finally:
        hog.kill()
        hog.wait()
    pids = sleep_on_all()
    record.stop()
    switches = collections.defaultdict(list)
    for at, fields in switches_of(kymo, record.out):
        switches[at].append((fields["prev_tid"], fields["next_tid"]))
    woken = collections.Counter(to for of_cpu in switches.values() for _, to in of_cpu)
    assert all(woken[pid] >= 190 for pid in pids), woken
    for of_cpu in switches.values():
        twice = sum(one == other and one[0] == 0 for one, other in zip(of_cpu, of_cpu[1:]))
        assert twice == 0


def test_none_while_the_event_is_off_or_filtered(kymo, recordings):
    record = recordings("-k", "sched_switch if prev_tid != 0", "-k", "sched_waking")
    sleep_on_all()
    record.ctl("--disable-kernel", "sched_switch")
    sleep_on_all()
    record.stop()
    assert not any(fields["prev_tid"] == 0 for _, fields in switches_of(kymo, record.out))


def test_none_while_it_is_switched_off(kymo, recordings):
    record = recordings("-k", "sched_switch", "-k", "sched_waking")
    record.ctl("--disable-kernel", "sched_switch")
    pids = sleep_on_all()
    record.stop()
    assert not set(pids) & {fields["next_tid"] for _, fields in switches_of(kymo, record.out)}
