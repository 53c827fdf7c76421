# SPDX-License-Identifier: MIT
"""Perf counters as contexts: what they count, and that they leave nothing behind.

Page faults, context switches and CPU time take no descriptor; CPU migrations take a perf event per
thread, as hardware counters do, so they stand for these where there are none.
"""

import os
import re
import subprocess
import tempfile

import pytest

from test_user import KYMO, box, events, nothing_left, pytestmark  # noqa: F401 (a fixture)

FREE = "perf:page-faults,perf:thread:context-switches,perf:task-clock"


def has_counter(name):
    with tempfile.TemporaryDirectory() as path:
        shown = subprocess.run([KYMO, "record", "--user", "no:ne", "--context", f"perf:{name}", "-o",
                                path, "--", "true"], capture_output=True, text=True).stderr
    return "--context" not in shown


needs_migrations = pytest.mark.skipif(os.geteuid() != 0 or not has_counter("cpu-migrations"),
                                      reason="the kernel does not count CPU migrations for us")


def record(box, mode, contexts):
    return box(f"kymo record --user 'counting:*' --context {contexts} -o out -- $T/counting {mode}" +
               nothing_left())


def values(done, event):
    found = [line for trace in done.traces() for line in events(trace)
             if line.startswith(f"counting:{event}:")]
    return [{name: int(value) for name, value in
             re.findall(r"perf_thread_(\w+) = (\d+)", line)} for line in found]


def test_what_the_kernel_counts_anyway(box):
    done = record(box, "work", FREE + ",perf:minor-faults,perf:major-faults,perf:cpu-clock")
    (before,), (after,) = values(done, "begin"), values(done, "end")
    # A sanitizer's memory for each page is new, too.
    most = 600 if "-tsan" in KYMO or "-asan" in KYMO else 200
    assert 100 <= after["page_faults"] - before["page_faults"] < most
    # Each is asked for by itself, and the record's own memory may be new in between.
    kinds = after["minor_faults"] + after["major_faults"]
    assert after["page_faults"] <= kinds < after["page_faults"] + 10
    assert after["context_switches"] - before["context_switches"] >= 20
    assert after["task_clock"] > before["task_clock"] + 1000000
    assert done.out == "files 0\n"


@needs_migrations
def test_counter_of_a_descriptor(box):
    done = record(box, "work", "perf:cpu-migrations")
    (before,), (after,) = values(done, "begin"), values(done, "end")
    assert after["cpu_migrations"] - before["cpu_migrations"] >= 15
    assert done.out == "files 1\n"


@needs_migrations
def test_threads_take_theirs_along(box):
    done = record(box, "threads", "perf:cpu-migrations,perf:page-faults")
    assert len(values(done, "thread")) == 100
    assert done.out in ("files 0\n", "files 1\n")


@needs_migrations
def test_fork(box):
    """A child counts itself, from 0, and has closed what counts its parent's threads."""
    done = record(box, "fork", "perf:cpu-migrations,vpid")
    assert done.out == "child 1\nfiles 6\n"
    (child,), (end,) = values(done, "child"), values(done, "end")
    assert child["cpu_migrations"] <= 1 and end["cpu_migrations"] >= 15
    assert len(values(done, "parent")) == 3 and len(values(done, "vfork_child")) == 1


@needs_migrations
def test_children_in_the_same_memory(box):
    """What a child of vfork() closes is its own: its parent's descriptor stays, and is not forgotten."""
    done = record(box, "guests", "perf:cpu-migrations")
    assert done.out == "files 1\n"
    assert len(values(done, "guest")) == 40 and len(values(done, "after")) == 20


@needs_migrations
def test_numbers_that_are_other_files_now(box):
    done = record(box, "reuse", "perf:cpu-migrations,perf:alignment-faults")
    assert done.out.splitlines()[0] == "left 10"
    assert len(values(done, "after")) == 100


@needs_migrations
def test_signal_handlers(box):
    done = record(box, "signals", "perf:cpu-migrations," + FREE)
    assert len(values(done, "thread")) == 4000 and len(values(done, "handler")) > 100
    assert done.out in ("files 0\n", "files 1\n") and "; 0 lost." in done.err


@needs_migrations
def test_a_thread_that_ends(box):
    """Destructors that run after the counters' own find the last count, and open nothing again."""
    done = record(box, "endings", "perf:cpu-migrations")
    before, after = values(done, "thread"), values(done, "ending")
    assert len(before) == len(after) == 50
    for one, other in zip(before, after):
        assert 1 <= one["cpu_migrations"] <= other["cpu_migrations"]
    assert done.out in ("files 0\n", "files 1\n")  # the main thread's


@needs_migrations
def test_few_descriptors(box):
    """It takes no more than a quarter of them; then the value is 0."""
    done = box("""
kymo record --user 'counting:*' --context perf:cpu-migrations -o out -- \
    sh -c 'ulimit -n 16; exec "$0" fork' $T/counting
""" + nothing_left())
    assert done.out == "child 1\nfiles 4\n" and len(values(done, "parent")) == 3


def test_filter(box):
    done = box(f"""
kymo record --user 'counting:*' --context {FREE} -o out \
    --filter '$ctx.perf_thread_context_switches >= 20' -- $T/counting work
""" + nothing_left())
    assert values(done, "end")
    # On a busy machine even the first events may come after 20 switches.
    assert all(value["context_switches"] >= 20
               for event in ("before", "begin", "end") for value in values(done, event))


def test_no_such_counter_here(box):
    """Where there are hardware counters, they count; else it is said before anything is recorded."""
    if has_counter("instructions"):
        done = record(box, "work", "perf:instructions,perf:cpu-cycles")
        (before,), (after,) = values(done, "begin"), values(done, "end")
        assert after["instructions"] - before["instructions"] > 10000000
        return
    done = box("kymo record --user '*:*' --context vpid,perf:instructions -o out -- true", code=1)
    assert "'perf:instructions': this machine has no such counter" in done.err
    assert "page-faults, context-switches and task-clock are there everywhere" in done.err
    assert not os.path.exists(os.path.join(done.cwd, "out"))


def test_unknown_counter(box):
    done = box("kymo record --user '*:*' --context perf:nonsense -o out -- true", code=2)
    assert "unknown field 'perf:nonsense'" in done.err


def test_without_root(box):
    """Without rights: what needs none."""
    done = box(f"""
mkdir -m 777 free; cd free; cp -r $T/counting $(dirname $T)/../src/tracer/*.so* .
kymo() {{ setpriv --reuid 65534 --regid 65534 --clear-groups "$(command -v kymo.bin)" "$@"; }}
cp {KYMO} kymo.bin; PATH=$PWD:$PATH
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
kymo record --user 'counting:*' --context {FREE} -o out -- env LD_LIBRARY_PATH=. ./counting work
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -ge 2 ]; then
    kymo record --user 'counting:*' --context perf:cpu-migrations -o never -- true 2>err && exit 96
    grep -q perf_event_paranoid err || exit 95
fi
""")
    assert done.out == "files 0\n"
