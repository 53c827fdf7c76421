# SPDX-License-Identifier: MIT
"""kymo ctl: a recording changes while it runs.

Programs run in a box of their own, as in test_user.py.
"""

import os
import platform
import re
import subprocess

import pytest

from test_user import KYMO, box, events, names, nothing_left, pytestmark  # noqa: F401 (a fixture)

CTL = """
ready() { [ "$(kymo list --recordings | grep -c ' for ')" = ${1:-1} ]; }
joined() { ls /dev/shm/kymo-0/*/*.ring >/dev/null 2>&1; }
recorded() { ls out/ust/pid/*/metadata >/dev/null 2>&1; }
land() { kymo ctl --stop || exit 95; wait $recorder || exit 97; }
"""


def count(path):
    found = {}
    for name in names(path):
        found[name] = found.get(name, 0) + 1
    return found


def test_events_come_and_go(box):
    """In one trace, of programs that run and of programs that start; nothing is lost."""
    done = box(CTL + """
$T/modes numbers 1000000 200 & a=$!
kymo record --user 'modes:number' -o out & recorder=$!
wait_for ready
wait_for joined
sleeps $a 200
kymo ctl --enable-event 'modes:other' || exit 96
$T/modes numbers 10 0
sleeps $a 200
kymo ctl --disable-event 'modes:*' || exit 96
sleeps $a 50
$T/modes numbers 10 0
kymo ctl --enable-event 'modes:other' || exit 96
sleeps $a 50
kymo list --recordings
kill $a
land
""" + nothing_left())
    short, long = sorted((count(trace) for trace in done.traces()), key=lambda c: sum(c.values()))
    assert short == {"modes:number": 10, "modes:other": 10}
    assert long["modes:other"] > 100 and long["modes:number"] > 200
    assert "--user modes:other" in done.out and "--user modes:number" not in done.out
    assert "; 0 lost." in done.err
    found = events([t for t in done.traces() if len(events(t)) > 20][0])
    kinds = re.sub("n+", "n", re.sub("(no)+", "b", "".join(
        "n" if "modes:number" in line else "o" for line in found)))
    assert re.fullmatch("nbn?o+", kinds), kinds[:100]


def test_filters_and_levels(box):
    done = box(CTL + """
kymo record --user 'shop:depth' -o out & recorder=$!
wait_for ready
kymo ctl --enable-event 'shop:order_placed' --filter 'total_cents > 1000' || exit 96
kymo ctl --enable-event 'shop:*' --loglevel WARNING.. || exit 96
$T/shop 1
kymo ctl --disable-event 'shop:*' -e 'shop:order_placed' --filter 'total_cents < 1000' || exit 96
$T/shop 1
land
""" + nothing_left())
    kinds = sorted(sorted(set(names(trace))) for trace in done.traces())
    assert ["shop:depth", "shop:forms", "shop:order_placed"] in kinds
    assert all("total_cents = 1" in line for trace in done.traces() for line in events(trace)
               if "order_placed" in line and len(events(trace)) > 2)


def test_mistakes_change_nothing(box):
    done = box(CTL + """
$T/shop 1000000 1000 & a=$!
kymo record --user 'shop:depth' -o out & recorder=$!
wait_for ready
kymo ctl && exit 94
kymo ctl --disable-event x --filter x && exit 94
kymo ctl --enable-event shop && exit 94
kymo ctl --enable-event 'shop:*' --filter 'nonsense >' && exit 94
kymo ctl --enable-event 'shop:order_placed' --filter 'no_such > 1' && exit 94
kymo ctl --enable-event 'shop:*' --loglevel LOUD && exit 94
kymo ctl --disable-kernel 'sched_switch' && exit 94
kymo ctl nobody --stop && exit 94
wait_for recorded
kill $a
land
""" + nothing_left())
    assert set(names(done.traces()[0])) == {"shop:depth"}
    for message in ("say what is to be changed", "'shop:*' is all of a provider", "no_such",
                    "'LOUD' is no log level", "does not record the kernel",
                    "no recording 'nobody' of yours runs", "are about --enable-event"):
        assert message in done.err, message


def test_one_of_several(box):
    done = box(CTL + """
for name in a b; do kymo record --user 'modes:number' -o $name & done
wait_for 'ready 2'
kymo ctl --stop && exit 96
kymo ctl b --enable-event 'modes:other' || exit 96
$T/modes numbers 10 0
kymo ctl a --stop
wait_for ready
kymo ctl --stop
wait
""" + nothing_left())
    assert "which one?" in done.err
    assert set(names(done.traces("a")[0])) == {"modes:number"}
    assert set(names(done.traces("b")[0])) == {"modes:number", "modes:other"}


def test_changes_while_programs_start(box):
    """Whoever starts at the moment of a change has the new rules in the end, and the end."""
    done = box(CTL + """
kymo record --user 'modes:other' -o out & recorder=$!
wait_for ready
for i in $(seq 30); do $T/modes numbers 100000 1000 & done
for i in $(seq 10); do
    kymo ctl --enable-event 'modes:number' || exit 96
    kymo ctl --disable-event 'modes:number' || exit 96
done
kymo ctl --disable-event '*' --enable-event 'modes:number' || exit 96
wait_for '[ $(ls out/ust/pid/*/metadata | wc -l) = 30 ]'
for program in $(jobs -p | grep -v "^$recorder$"); do sleeps $program 100; done
kill $(jobs -p | grep -v "^$recorder$")
land
""" + nothing_left())
    assert len(done.traces()) == 30
    for trace in done.traces():
        tail = names(trace)[-20:]
        assert set(tail) == {"modes:number"}, tail


@pytest.mark.skipif(platform.machine() != "x86_64", reason="looks at the registers of system calls")
@pytest.mark.parametrize("change, found", [
    ("kymo ctl --disable-event '*' --enable-event 'modes:number'", {"modes:number"}),
    ("kill -TERM $recorder; wait $recorder", None),
    ("kill -KILL $recorder; wait $recorder", None),
])
def test_changes_between_reading_and_joining(box, change, found):
    """A program is stopped when it has read the rules, before anybody can see that it has; then they change."""
    done = box(CTL + f"""
kymo record --user 'modes:other' -o out & recorder=$!
wait_for ready
$T/hold session $T/modes numbers 200 1000 >held & holder=$!
wait_for '[ -s held ]'
{change}
kill -CONT $(head -n 1 held)
wait $holder || exit 96
{"land" if found else "! ls /dev/shm/kymo-0/*/*.ring 2>/dev/null || exit 94"}
""")
    if found:
        (trace,) = done.traces()
        assert set(names(trace)) == found and len(names(trace)) == 200


def test_flight_recorder_changes(box):
    done = box(CTL + """
$T/modes numbers 1000000 200 & a=$!
kymo record --overwrite --user 'modes:number' -o out & recorder=$!
wait_for ready
wait_for joined
sleeps $a 50
kymo ctl --disable-event '*' --enable-event 'modes:other' || exit 96
sleeps $a 50
kymo snapshot -o snap || exit 95
kill $a
land
""" + nothing_left())
    assert set(names(done.traces("snap")[0])) == {"modes:number", "modes:other"}
    assert names(done.traces("snap")[0])[-1] == "modes:other"


def test_kernel(box):
    done = box(CTL + """
kymo record --comm modes --kernel 'syscall_entry_getppid,syscall_exit_getppid' -o out & recorder=$!
wait_for ready
kymo ctl --disable-kernel 'syscall_exit_*' || exit 96
kymo ctl --enable-kernel 'no_such_event' && exit 94
$T/modes steps 100
kymo ctl --enable-kernel 'syscall_exit_getppid' --disable-kernel 'syscall_entry_getppid' || exit 96
$T/modes steps 200
land
""" + nothing_left())
    shown = subprocess.run([KYMO, "print", os.path.join(done.cwd, "out")], capture_output=True,
                           text=True, check=True).stdout
    assert 100 <= shown.count("entry_getppid") < 200 and shown.count("exit_getppid") >= 200
    assert "this kernel has no event 'no_such_event'" in done.err
