# SPDX-License-Identifier: MIT
"""Switches from the idle task are recorded on every CPU, also where the kernel's own tracing leaves them out."""

import collections
import json
import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.usefixtures("needs_root_tracefs")

# Sleeps on one CPU, which is idle meanwhile if nothing else runs there. Prints how often it was switched out to sleep: on a
# loaded machine, some sleeps are over before that.
SLEEP = """
import os, resource, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
before = resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw
for _ in range(200):
    time.sleep(0.001)
print(resource.getrusage(resource.RUSAGE_SELF).ru_nvcsw - before)
"""


def sleep_on_all():
    """{process ID: number of sleeps}"""
    sleepers = [
        subprocess.Popen([sys.executable, "-c", SLEEP, str(cpu)], stdout=subprocess.PIPE, text=True)
        for cpu in os.sched_getaffinity(0)
    ]
    sleeps = {sleeper.pid: int(sleeper.communicate()[0]) for sleeper in sleepers}
    assert min(sleeps.values()) > 0
    return sleeps


def switches_of(kymo, trace):
    lines = kymo("convert", "--to", "json", trace).out.splitlines()
    return [(e["packet"]["cpu_id"], e["fields"]) for e in map(json.loads, lines) if e["event"] == "sched_switch"]


def by_cpu(switches):
    """{cpu: [(previous thread, next thread)]}"""
    pairs = collections.defaultdict(list)
    for cpu, fields in switches:
        pairs[cpu].append((fields["prev_tid"], fields["next_tid"]))
    return pairs


def missing(pairs):
    """How many switches between threads other than idle the kernel has left out, at least: it does so on a loaded machine."""
    neighbours = (pair for of_cpu in pairs.values() for pair in zip(of_cpu, of_cpu[1:]))
    return sum(to != from_ and to and from_ for (_, to), (from_, _) in neighbours)


def test_each_switch_to_idle_is_followed_by_one_from_idle(kymo, recordings):
    record = recordings("-k", "sched_switch")
    pids = sleep_on_all()
    record.stop()
    came, left = collections.Counter(), collections.Counter()
    all_switches = switches_of(kymo, record.out)
    for cpu, switches in by_cpu(all_switches).items():
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
    for pid, sleeps in pids.items():
        assert rows[pid]["count"] >= 0.95 * sleeps - missing(by_cpu(switches_of(kymo, record.out)))


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
    switches = by_cpu(switches_of(kymo, record.out))
    woken = collections.Counter(to for of_cpu in switches.values() for _, to in of_cpu)
    least = {pid: 0.95 * sleeps - missing(switches) for pid, sleeps in pids.items()}
    assert all(woken[pid] >= least[pid] for pid in pids), (least, woken)
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
