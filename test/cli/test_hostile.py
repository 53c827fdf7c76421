# SPDX-License-Identifier: MIT
"""Programs that write whatever they like over all that they share with the recorder: it goes on, what
other programs record is whole, and what lies in its traces was written by the hostile ones.
"""

import json
import os
import re
import shutil
import subprocess

import pytest

from conftest import SANITIZED
from test_user import KYMO, box, events, nothing_left, pytestmark  # noqa: F401

SEEDS = int(os.environ.get("KYMO_HOSTILE", "8"))

# What they do to their own tracer is their own affair.
RECORDED = """
kymo record --user '*' --buffer-size 64k -o out %s & recorder=$!
wait_for session_is_there
$T/shop 200 3000 & shop=$!
# From then on nobody can take its ring from the recorder: not even its own user, who may remove the file.
wait_for 'ls -l /proc/$recorder/fd | grep -q -- "-shop.ring"'
for seed in %s; do $T/hostile $seed 400 %s 2>/dev/null & hostile="${hostile-} $!"; done
n=0
while kill -0 $shop 2>/dev/null; do
    n=$((n + 1))
    timeout 30 kymo list --user --json >list.json || exit 90
    timeout 30 kymo list --user --fields >list.txt || exit 91
    # Copies that change while they are made.
    mkdir copy; cp /dev/shm/kymo-0/*/*.ring copy 2>/dev/null
    timeout 30 kymo recover -o found.$n copy /dev/shm/kymo-0/*/ 2>>recover.txt; code=$?
    [ $code -le 1 ] || exit 92
    rm -r copy
done
wait $shop $hostile || exit 93
grep VmHWM /proc/$recorder/status
kill -TERM $recorder; wait $recorder || exit 94
"""


def print_all(path):
    done = subprocess.run([KYMO, "print", path], capture_output=True, text=True, errors="replace",
                          timeout=240, check=False)
    assert done.returncode in (0, 1), (done.returncode, done.stderr)
    assert "Sanitizer" not in done.stderr and "runtime error" not in done.stderr, done.stderr
    return done


@pytest.mark.parametrize("first", range(0, SEEDS, 4))
def test_hostile_programs(box, first):
    done = box(RECORDED % ("", " ".join(str(first + i) for i in range(4)), "session") +
               nothing_left("ls /dev/shm | grep -v '^kymo-0$'; ls /dev/shm/kymo-0/*/session "
                            "2>/dev/null"))
    kibibytes = int(re.search(r"VmHWM:\s+(\d+)", done.out).group(1))
    assert SANITIZED or kibibytes < 200000, "memory in proportion to what they claim"
    with open(os.path.join(done.cwd, "list.json"), errors="replace") as file:
        json.load(file)
    honest = [trace for trace in done.traces() if os.path.basename(trace).startswith("shop-")]
    assert len(honest) == 1
    whole = print_all(honest[0])
    assert whole.returncode == 0 and not whole.stderr
    assert sum("shop:order_placed" in line for line in whole.stdout.splitlines()) == 200
    for trace in done.traces():
        if trace in honest:
            continue
        print_all(trace)
        # All but the packets that the program itself has written.
        ours = trace + ".ours"
        shutil.copytree(trace, ours, ignore=lambda _, names: [
            name for name in names if name.startswith("channel0_")])
        if os.listdir(os.path.join(ours, "index")):
            dump = print_all(ours)
            assert dump.returncode == 0 and not dump.stderr, dump.stderr
    everything = print_all(os.path.join(done.cwd, "out"))
    assert "shop:order_placed" in everything.stdout


CLAIM = """
import glob, mmap, struct
path, = glob.glob("/dev/shm/kymo-0/*/*.ring")
with open(path, "r+b") as file:
    ring = mmap.mmap(file.fileno(), 0)
    control = struct.unpack_from("=Q", ring, 48)[0]
    for at in %s:
        struct.pack_into("=Q", ring, eval(at), %s)
"""
# Of two buffers and of the ring: each alone, and so many that the sum runs over.
COUNTS = ["control + 128", "control + 256 + 128", "256"]


@pytest.mark.parametrize("where, count", [(COUNTS, 2**64 - 1), (COUNTS[:1], 2**63),
                                          (COUNTS[1:2], 10**17)])
def test_losses_that_cannot_be(box, where, count):
    """Impossible losses of a program appear as its own claim, and no total contains them."""
    done = box(f"""
cat >claim.py <<'PY'{CLAIM % (where, count)}PY
kymo record --user 'shop:*' -o out & recorder=$!
wait_for session_is_there
$T/shop 1000000 1000 & shop=$!
wait_for 'ls /dev/shm/kymo-0/*/*.ring >/dev/null 2>&1'
kill -STOP $shop
/usr/bin/python3 claim.py || exit 97
mkdir copy; cp --sparse=always /dev/shm/kymo-0/*/*.ring copy || exit 96
kill -9 $shop
kill -TERM $recorder; wait $recorder || exit 95
kymo recover -o found copy
""" + nothing_left())
    told = min(count * len(where), 2**64 - 1)
    assert re.search(rf"warning: shop \(\d+\) claims to have lost {told} events, which is impossible",
                     done.err)
    assert re.search(r"Recorded \d+ events, .*; 0 lost\.", done.err)
    assert "events of programs were lost" not in done.err
    assert f"its count of {told} lost events is impossible" in done.out
    assert "complete" not in done.out and ", 0 lost." in done.out


def test_hostile_program_that_takes_the_session_too(box):
    """Its own user's session file and directory: programs may not join any more, but nothing ends."""
    box(RECORDED % ("", "100 101", ""))


FLOWN = """
kymo record --overwrite --user '*' --buffer-size 64k -o out & recorder=$!
wait_for 'kymo sessions | grep -q flight'
$T/shop 200 3000 & shop=$!
# From then on nobody can take its ring from the recorder: not even its own user, who may remove the file.
wait_for 'ls -l /proc/$recorder/fd | grep -q -- "-shop.ring"'
for seed in %s; do $T/hostile $seed 400 session 2>/dev/null & hostile="${hostile-} $!"; done
n=0
while kill -0 $shop 2>/dev/null; do
    n=$((n + 1))
    timeout 30 kymo snapshot -o snap.$n 2>>said.txt
    timeout 30 kymo ctl --disable-event 'shop:word' --enable-event 'shop:depth' || exit 91
done
wait $shop $hostile || exit 93
grep VmHWM /proc/$recorder/status
kill -TERM $recorder; wait $recorder || exit 94
"""


@pytest.mark.parametrize("first", range(0, SEEDS, 4))
def test_flight_recorder_of_hostile_programs(box, first):
    """Their rings are copied while they write over them: the copies of others' are whole."""
    done = box(FLOWN % " ".join(str(first + i) for i in range(4)))
    kibibytes = int(re.search(r"VmHWM:\s+(\d+)", done.out).group(1))
    assert SANITIZED or kibibytes < 200000, "memory in proportion to what they claim"
    depths = []
    for out in sorted(os.listdir(done.cwd)):
        if not out.startswith(("snap.", "out")):
            continue
        for trace in done.traces(out):
            shown = print_all(trace)
            if os.path.basename(trace).startswith("shop-"):
                assert shown.returncode == 0, shown.stderr
                depths.append(shown.stdout.count(" shop:depth:"))
    # A sanitized program may be too slow to join before the session is taken from it.
    assert SANITIZED or max(depths, default=0) > 20


def test_more_programs_than_files(box):
    """Those for which no descriptors are left are named; the others are recorded."""
    done = box("""
(ulimit -n 110; exec kymo record --user 'modes:closed_loop' -o out) 2>told & recorder=$!
wait_for session_is_there
for i in 1 2 3 4 5 6 7 8; do $T/modes closed-loop & pids="${pids-} $!"; done
wait_for 'grep "too many programs at a time" told'
kill -TERM $recorder; wait $recorder || exit 97
kill $pids
""" + nothing_left())
    assert 1 <= len(done.traces()) <= 4
    for trace in done.traces():
        assert print_all(trace).returncode == 0


def test_many_mappings(box):
    """The recorder looks through a program's mappings while other programs' buffers fill."""
    done = box("kymo record --user 'rough:*' -o out -- $T/rough mappings 30000" + nothing_left())
    assert sum("rough:mapped" in line
               for line in print_all(done.traces()[0]).stdout.splitlines()) == 100


def test_field_called_as_a_length(box):
    """Of two fields of one name, which readers refuse, the second gets a number."""
    done = box("kymo record --user 'rough:*' -o out -- $T/rough names" + nothing_left())
    lines = [line for line in events(done.traces()[0])]
    assert lines == ["rough:names: { _x_length = 2, x = [ [0] = 1, [1] = 2 ], _x_length_2 = 3 }",
                     "rough:names_too: { _x_length = 3, _x_length_2 = 2, x = [ [0] = 1, [1] = 2 ] }"]
