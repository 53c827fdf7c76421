# SPDX-License-Identifier: MIT
"""kymo record --when-full block: programs that wait for the recorder rather than lose events."""

import re
import subprocess

import pytest

from test_dropped import attack
from test_user import KYMO, box, events, nothing_left, pytestmark  # noqa: F401

BURST = "-- $T/modes threads 4 100000"
RSEQ = ["", "GLIBC_TUNABLES=glibc.pthread.rseq=0 "]


def summary(err):
    """Recorded and lost events, without the state dump's."""
    row = re.search(r"^ +\d+ +(\d+) +(\d+) +\S+ \S+ +modes$", err, re.M)
    return int(row[1]), int(row[2])


@pytest.mark.parametrize("env", RSEQ)
def test_nothing_is_lost(box, env):
    done = box(f"""
{env}kymo record --user 'modes:*' --buffer-size 64k -o discarded {BURST}
{env}kymo record --user 'modes:*' --buffer-size 64k --when-full block -o out {BURST}
""" + nothing_left())
    discarded, blocked = done.err.split("out\n")[0], done.err[done.err.index("discarded") + 9:]
    recorded, lost = summary(discarded)
    assert recorded + lost == 400000 and lost, "a burst that loses nothing shows nothing"
    assert "--when-full block" in discarded
    assert summary(blocked) == (400000, 0)
    (trace,) = done.traces()
    assert sum(line.startswith("modes:thread") for line in events(trace)) == 400000


def test_a_wait_has_a_limit(box):
    """A recorder that stops for a while."""
    done = box("""
kymo record --user 'modes:*' --buffer-size 64k --when-full block:1ms -o out & recorder=$!
wait_for session_is_there
$T/modes threads 2 1 # the recorder is at work
kill -STOP $recorder
$T/modes threads 1 8000 & program=$!
wait_for "! kill -0 $program 2>/dev/null"
kill -CONT $recorder
wait_for '! ls /dev/shm/kymo-0/*/*.ring 2>/dev/null'
kill -TERM $recorder; wait $recorder
""" + nothing_left())
    totals = re.search(r"Recorded (\d+) events, .*; (\d+) lost\.", done.err)
    counted = sum(int(row) + int(lost) for row, lost in
                  re.findall(r"^ +\d+ +(\d+) +(\d+) +\S+ \S+ +modes$", done.err, re.M))
    assert counted == 8002 and int(totals[2]) > 0


@pytest.mark.parametrize("env", RSEQ)
def test_a_dead_recorder_does_not_hold_programs(box, env):
    """It is killed while a program waits for it; the next events do not wait as long to find that out."""
    box(f"""
kymo record --user 'modes:*' --buffer-size 64k --when-full block -o out & recorder=$!
wait_for session_is_there
{env}$T/modes endless 2 < <(wait_for '[ -e ended ]') > said & program=$!
wait_for '[ -s said ]'
wait_for 'ls /dev/shm/kymo-0/*/*.ring >/dev/null 2>&1'
kill -STOP $recorder
sleep 0.3
kill -KILL $recorder; wait $recorder
touch ended
wait $program || exit 93
rm -rf /dev/shm/kymo-0 /dev/shm/kymo-recordings-0
""" + nothing_left())


def test_the_end_of_the_recording_releases_programs(box):
    done = box("""
kymo record --user 'modes:*' --buffer-size 64k --when-full block -o out & recorder=$!
wait_for session_is_there
$T/modes endless 4 < <(wait_for '[ -e ended ]') > said & program=$!
wait_for '[ -s said ]'
wait_for 'ls /dev/shm/kymo-0/*/*.ring >/dev/null 2>&1'
for i in 1 2 3 4; do
	kymo ctl --disable-event 'modes:thread' >/dev/null
	kymo ctl --enable-event 'modes:thread' >/dev/null
done
kill -TERM $recorder; wait $recorder || exit 94
touch ended
wait $program || exit 93
""" + nothing_left())
    # What waited when it ended is lost, at most one event of each thread; nothing before. Events that meet a
    # change of rules are lost for another reason.
    full = re.search(r"(\d+): no free sub-buffer", done.err)
    assert summary(done.err)[0] > 1000 and int(full[1] if full else 0) <= 4


def test_signal_handlers_wait_too(box):
    done = box("""
kymo record --user 'modes:*' --buffer-size 64k --when-full block -o out -- $T/modes signal 200000
""" + nothing_left())
    numbers = re.search(r"^(\d+) (\d+)$", done.out, re.M)
    recorded, lost = summary(done.err)
    assert lost == 0 and recorded == int(numbers[1]) + int(numbers[2])


@pytest.mark.parametrize("seed", [900, 901])
def test_a_child_without_privileges_holds_its_parent_for_the_time_at_most(box, seed):
    shop = attack(box, "all", seed, 1500, "--when-full block:2ms")
    assert sum("shop:order_placed" in event for event in events(shop)) == 200


@pytest.mark.parametrize("options, said", [
    (["--user", "x:*", "--when-full", "wait"], "not discard, block or block:TIME"),
    (["--user", "x:*", "--when-full", "block:0s"], "not discard, block or block:TIME"),
    (["--user", "x:*", "--when-full", "block:soon"], "not discard, block or block:TIME"),
    (["--user", "x:*", "--when-full", "block", "--overwrite"], "--overwrite"),
    (["--kernel", "sched_switch", "--when-full", "block"], "the kernel cannot wait"),
])
def test_mistakes(tmp_path, options, said):
    done = subprocess.run([KYMO, "record", *options, "-o", tmp_path / "out"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and said in done.stderr
