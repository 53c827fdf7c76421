# SPDX-License-Identifier: MIT
"""perf, recording beside kymo record: perf script shows the same events of scheduling, in the same order."""

import collections
import difflib
import re
import shutil

import pytest

# perf's names of fields, and ours, which are LTTng's.
THREAD = {"pid": "tid", "prio": "prio"}
EVENTS = {
    "sched_process_fork": {"pid": "parent_tid", "child_pid": "child_tid"},
    "sched_process_exec": {"pid": "tid", "old_pid": "old_tid"},
    "sched_process_exit": THREAD,
    "sched_process_free": THREAD,
    "sched_process_wait": THREAD,
    "sched_switch": {f"{side}_{name}": f"{side}_{ours}" for side in ("prev", "next") for name, ours in THREAD.items()},
    "sched_waking": THREAD | {"target_cpu": "target_cpu"},
    "sched_wakeup": THREAD | {"target_cpu": "target_cpu"},
    "sched_wakeup_new": THREAD | {"target_cpu": "target_cpu"},
    "sched_migrate_task": THREAD | {"orig_cpu": "orig_cpu", "dest_cpu": "dest_cpu"},
    "sched_stat_runtime": {"pid": "tid", "runtime": "runtime"},
}
NAMES = "|".join(sorted(EVENTS, key=len, reverse=True))
PERF_LINE = re.compile(rf" *(?P<tid>-?\d+) +\[(?P<cpu>\d+)\] .*? sched:(?P<event>{NAMES}): (?P<fields>.*)")
OUR_LINE = re.compile(rf".* (?P<event>{NAMES}): {{ cpu_id = (?P<cpu>\d+) }}, {{ tid = (?P<tid>\d+) }}, {{ (?P<fields>.*) }}")
SCRIPT = "echo $$ >workload; for i in $(seq 20); do /bin/true; done; echo a | cat | cat >/dev/null"


def by_cpu(text, line_of, field, side):
    """{CPU: [(event, thread, values)]}; @side of the names above tells the fields that @field finds."""
    found = {}
    for match in filter(None, map(line_of.match, text.splitlines())):
        values = dict(re.findall(field, match["fields"]))
        wanted = sorted(names[side] for names in EVENTS[match["event"]].items())
        found.setdefault(int(match["cpu"]), []).append(
            (match["event"], int(match["tid"]), {name: int(values[name]) for name in wanted}))
    return found


def in_our_words(event, tid, values):
    """An event of perf's with our names; LTTng's priorities are those of a nice value of -20 less."""
    ours = {EVENTS[event][name]: value - 100 * name.endswith("prio") for name, value in values.items()}
    # Of a thread that is dead and waited for, perf does not know the id any more.
    if tid == -1 and event in ("sched_switch", "sched_stat_runtime"):
        tid = ours.get("prev_tid", ours.get("tid"))
    return event, tid, dict(sorted(ours.items()))


def with_children(first, events):
    """The ids of a thread and of all that it, and they, have forked."""
    found, before = {first}, set()
    while found != before:
        before = set(found)
        found |= {values["child_tid"] for event, _, values in events
                  if event == "sched_process_fork" and values["parent_tid"] in found}
    return found


def content(event):
    return event[0], *event[2].items()


def is_in_a_row(ours, perfs):
    """@ours are the first of @perfs, but for those of which perf does not know the thread."""
    rest = iter(perfs)
    for event in ours:
        while (other := next(rest, None)) and other[1] == -1 and content(other) != content(event):
            pass
        if not other or content(other) != content(event) or other[1] not in (-1, event[1]):
            return False
    return True


@pytest.fixture
def record(kymo, kymo_bin, peer, needs_root_tracefs, tmp_path):
    """record(*options) -> perf's events of each CPU, ours, and the ids of the workload's threads; once more where perf
    has lost events, as it does on a busy machine: nothing tells then which are missing."""

    def call(*options):
        for _ in range(4):
            found = once(*options)
            if found:
                return found
        return pytest.fail("perf lost events every time")

    def once(*options):
        trace, converted, data = (tmp_path / name for name in ("trace", "converted", "perf.data"))
        for path in (trace, converted):
            shutil.rmtree(path, ignore_errors=True)
        done = peer("perf", "record", "-q", "-a", "-m", "16M", "-o", data, "-e",
                    ",".join(f"sched:{name}" for name in EVENTS), "--", kymo_bin, "record", "-b", "16M", *options, "-k",
                    ",".join(EVENTS), "-o", trace, "--", "sh", "-c", SCRIPT, cwd=tmp_path)
        assert done.code == 0 and "; 0 lost." in done.err, done
        script = peer("perf", "script", "--show-lost-events", "-i", data, "-F", "tid,cpu,time,event,trace")
        assert script.code == 0, script
        if "LOST" in script.out:
            return None
        if "--raw" in options:
            kymo("convert", "--to", "ctf1.8", "-o", converted, trace)
            trace = converted
        perfs = {cpu: [in_our_words(*event) for event in events]
                 for cpu, events in by_cpu(script.out, PERF_LINE, r"(\w+)=(-?\d+)", 0).items()}
        ours = by_cpu(kymo("print", trace).out, OUR_LINE, r"(\w+) = (-?\d+)", 1)
        everything = [event for events in ours.values() for event in events]
        threads = with_children(int((tmp_path / "workload").read_text()), everything)
        assert len(threads) >= 23
        assert ({event for event, tid, _ in everything if tid in threads} >=
                EVENTS.keys() - {"sched_migrate_task", "sched_process_free"})
        return perfs, ours, threads

    return call


@pytest.mark.parametrize("options", [(), ("--raw",)], ids=["converted", "raw"])
def test_same_events_in_the_same_order(record, options):
    """Of the workload's threads: Linux 6.18 tells perf nothing of some others (idle tasks among them), and tells us.

    Where an interrupt comes between the two recorders' turns with one event, its own events are before
    that event for one of them, and after it for the other: then once more.
    """
    for _ in range(8):
        perfs, ours, threads = record(*options)
        difference = []
        for cpu in ours:
            events = [event for event in ours[cpu] if event[1] in threads]
            beside = [event for event in perfs.get(cpu, []) if event[1] in threads | {-1}]
            missing = collections.Counter(map(content, events)) - collections.Counter(map(content, beside))
            assert not missing, cpu
            # perf begins before, and ends after.
            if events and not any(is_in_a_row(events, beside[i:]) for i in range(len(beside))):
                difference += difflib.unified_diff([*map(str, beside)], [*map(str, events)], "perf's", "ours", n=1)
        if not difference:
            return
    pytest.fail("\n".join(difference))
