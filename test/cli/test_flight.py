# SPDX-License-Identifier: MIT
"""kymo record --overwrite and kymo snapshot: the last of what happened, at any time.

Programs run in a box of their own, as in test_user.py.
"""

import glob
import json
import os
import re
import subprocess

import pytest

from test_user import KYMO, box, events, nothing_left, pytestmark  # noqa: F401 (a fixture)

FLIGHT = """
ready() { kymo sessions --json | grep -q '"id"'; }
flight() { kymo record --overwrite --user 'modes:number' "$@" & recorder=$!; wait_for ready; }
# computes PID N: waits until it has had N/100 s more of a CPU.
had() { awk '{print $14 + $15}' /proc/$1/stat; }
computes() { wait_for "[ \\$(had $1) -ge $(($(had $1) + $2)) ]"; }
land() { kill -TERM $recorder; wait $recorder || exit 97; }
"""


def numbers(path):
    return [int(re.search(r"i = (\d+)", line).group(1)) for line in events(path)]


def gaps(trace):
    return "discarded" in subprocess.run(["babeltrace2", trace], capture_output=True, text=True,
                                         check=True).stderr


def is_run(found):
    return found == list(range(found[0], found[-1] + 1))


def test_the_last_of_it(box):
    done = box(FLIGHT + """
flight -o out --buffer-size 64k
taskset -c $CPU $T/modes numbers 100000 0
land
""" + nothing_left())
    found = numbers(done.traces()[0])
    assert found[-1] == 99999 and is_run(found) and 1000 < len(found) < 65536 // 8
    assert re.search(r"\d+ older events were overwritten", done.err) and "; 0 lost." in done.err


def test_everything_when_there_is_room(box):
    done = box(FLIGHT + """
flight -o out
for i in 1 2 3; do $T/modes numbers 500 0; done
land
""" + nothing_left())
    assert [numbers(trace) for trace in done.traces()] == [list(range(500))] * 3
    assert "overwritten" not in done.err


def test_snapshots_of_running_programs(box):
    """Each is whole, and later ones go further; the programs go on."""
    done = box(FLIGHT + """
$T/modes numbers 1000000 100 & a=$!
flight -o out --buffer-size 256k
taskset -c $OTHER_CPU $T/modes numbers 2000000000 0 & b=$!
for i in 1 2 3 4 5; do
    wait_for 'kymo snapshot -o snap$i 2>>said'
    sleeps $a 10
    computes $b 3
done
kill $a $b
land
cat said >&2
""" + nothing_left())
    last = {}
    for i in range(1, 6):
        traces = done.traces(f"snap{i}")
        assert traces
        for trace in traces:
            found = sorted(numbers(trace))
            name = re.sub(r"-\d{8}.*", "", os.path.basename(trace))
            assert found[-1] > last.get(name, -1)
            last[name] = found[-1]
            # What was overwritten before it could be copied is missing, and told to be.
            assert len(set(found)) == len(found) and (is_run(found) or gaps(trace))
    assert len(last) == 2
    assert not glob.glob(os.path.join(done.cwd, "out-snapshot*"))


def test_state_dump_stands_before_the_events(box):
    done = box(FLIGHT + """
flight -o out --buffer-size 64k
$T/modes numbers 1000000 10 & a=$!
wait_for 'kymo snapshot -o snap 2>/dev/null'
kill $a
land
""")
    for out in "snap", "out":
        dump = events(done.traces(out)[0], dump=True)
        kinds = ["statedump" in line for line in dump]
        assert kinds == sorted(kinds, reverse=True)
        assert sum("statedump:start" in line for line in dump) == 1
        assert any("bin_info" in line and "modes" in line for line in dump)


def test_signal(box):
    done = box(FLIGHT + """
flight -o out/
$T/modes numbers 10 0
wait_for 'kill -USR1 $recorder; ls -d out-snapshot-1/ust/pid/*/metadata'
kill -USR1 $recorder
wait_for 'ls -d out-snapshot-2/ust/pid/*/metadata'
land
""" + nothing_left())
    assert "Snapshot: out-snapshot-1: 10 events" in done.err
    for out in "out-snapshot-1", "out-snapshot-2", "out":
        assert numbers(done.traces(out)[0]) == list(range(10))
    # Two snapshots of one program are two traces.
    both = subprocess.run(["babeltrace2", *[os.path.join(done.cwd, f"out-snapshot-{i}")
                                            for i in (1, 2)]], capture_output=True, text=True)
    assert both.stdout.count("modes:number") == 20


def test_programs_that_ended_make_way(box):
    """What is kept of them is bounded: the newest stay."""
    done = box(FLIGHT + """
flight -o out --keep-ended 1M
for i in $(seq 20); do $T/modes numbers $i 0; done
land
""" + nothing_left())
    found = [len(numbers(trace)) for trace in done.traces()]
    # A program whose ring is just being read stays, and a newer one makes way: on a busy machine there are gaps.
    assert 0 < len(found) < 20 and max(found) == 20
    assert f"{20 - len(found)} ended programs were dropped" in done.err


def test_recorder_that_is_killed(box):
    done = box(FLIGHT + """
flight -o out --buffer-size 64k
taskset -c $CPU $T/modes numbers 100000 0
kill -9 $recorder; wait $recorder
kymo snapshot && exit 96
kymo recover --remove -o found /dev/shm/kymo-0
kymo record --user 'other:*' -o other -- true
""" + nothing_left())
    found = numbers(done.traces("found")[0])
    assert found[-1] == 99999 and is_run(found)
    assert "no flight recorder is running" in done.err


def test_several_recordings(box):
    done = box(FLIGHT + """
kymo record --overwrite --user 'modes:number' -o a & a=$!
kymo record --overwrite --user 'modes:*' -o b & b=$!
kymo record --user 'modes:number' -o c & c=$!
wait_for '[ $(kymo sessions | grep -c " for ") = 3 ]'
kymo sessions --json >list.json
$T/modes numbers 10 0
kymo snapshot -o x && exit 96
kymo snapshot c -o x && exit 95
kymo snapshot nobody -o x && exit 94
kymo snapshot a -o by-name || exit 93
kymo snapshot $PWD/b -o by-path || exit 92
(mkdir elsewhere; cd elsewhere; kymo snapshot $b -o by-pid) || exit 91
kymo snapshot b || exit 90
kymo snapshot b -o by-path && exit 89
kill -TERM $a $b $c; wait $a $b $c
""" + nothing_left())
    assert "name one of" in done.err and "is not a flight recorder" in done.err
    assert "no flight recorder 'nobody' is running" in done.err
    assert "the directory is not empty" in done.err
    for out, count in ("by-name", 10), ("by-path", 20), ("elsewhere/by-pid", 20), \
            ("b-snapshot-1", 20), ("a", 10), ("b", 20), ("c", 10):
        assert len(events(done.traces(out)[0])) == count
    with open(os.path.join(done.cwd, "list.json")) as file:
        recordings = {os.path.basename(r["output"]): r for r in json.load(file)["recordings"]}
    assert {name: r["mode"] for name, r in recordings.items()} == \
        {"a": "flight", "b": "flight", "c": "trace"}
    assert recordings["b"]["user"] == ["modes:*"]


def test_nothing_recorded(box):
    done = box(FLIGHT + """
flight -o out
kymo snapshot -o snap && exit 96
[ ! -e snap ] || exit 95
land
""" + nothing_left())
    assert "no events were recorded yet" in done.err


def test_socket_is_nobody_elses(box):
    """Others do not get in, and a directory that others could use is not used."""
    done = box(FLIGHT + """
flight -o out
stat -c '%a %U %F' /dev/shm/kymo-recordings-0 /dev/shm/kymo-recordings-0/*
chmod 755 /dev/shm/kymo-recordings-0; chmod 666 /dev/shm/kymo-recordings-0/*
setpriv --reuid 65534 --clear-groups /usr/bin/python3 - <<'PY' || exit 96
import glob, socket
s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
s.connect(glob.glob("/dev/shm/kymo-recordings-0/*")[0])
try:
    s.send(b"snapshot\\0/tmp/never\\0")
    assert s.recv(100) == b""
except (BrokenPipeError, ConnectionResetError):
    pass
PY
kymo record --user 'modes:*' -o other -- $T/modes numbers 3 0
chmod 700 /dev/shm/kymo-recordings-0
kymo sessions
land
""" + nothing_left())
    assert done.out.splitlines()[:2] == ["700 root directory", "600 root socket"]
    assert "no other command finds this recording" in done.err and "other users have access" in done.err
    assert "flight recorder" in done.out
    assert len(events(done.traces("other")[0])) == 6


def test_nonsense_on_the_socket(box):
    """No request disturbs the recording."""
    done = box(FLIGHT + """
flight -o out
python3 - <<'PY' || exit 96
import glob, socket, random
def connect():
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    s.connect(glob.glob("/dev/shm/kymo-recordings-0/*")[0])
    return s
for text in b"", b"\\0", b"snapshot", b"snapshot\\0", b"x" * 65536, b"x" * 100000, b"\\0" * 5000, \\
        b"enable\\0\\0", b"enable\\0" + b"a" * 5000 + b"\\0":
    s = connect()
    s.send(text)
    if text and len(text) <= 65536:
        assert s.recv(65536).startswith(b"error\\0"), text
    s.close()
random.seed(1)
for i in range(100):
    s = connect()
    s.send(random.randbytes(random.randrange(300)))
    s.close()
PY
$T/modes numbers 10 0
land
""" + nothing_left())
    assert numbers(done.traces()[0]) == list(range(10))


def test_kernel(box):
    """The kernel's events and programs' in one snapshot, in exact order; and again."""
    done = box(FLIGHT + """
kymo record --overwrite --kernel 'syscall_entry_getppid' --user 'modes:step' -o out & recorder=$!
wait_for ready
for i in 1 2; do $T/modes steps 200; kymo snapshot -o snap$i || exit 96; done
land
""" + nothing_left())
    for out, count in ("snap1", 1), ("snap2", 2), ("out", 2):
        path = os.path.join(done.cwd, out)
        shown = subprocess.run([KYMO, "print", path], capture_output=True, text=True,
                               check=True).stdout.splitlines()
        kinds = ["call" if "getppid" in line else "event" for line in shown
                 if "modes:step" in line or "getppid" in line]
        assert kinds.count("event") == 201 * count
        peer = subprocess.run(["babeltrace2", path], capture_output=True, text=True)
        assert peer.returncode == 0 and len(peer.stdout.splitlines()) == len(shown)
        steps = [i for i, kind in enumerate(kinds) if kind == "event"]
        assert all(b - a > 1 for a, b in zip(steps[:200], steps[1:200]))


def test_kernel_alone(box):
    done = box(FLIGHT + """
kymo record --overwrite --kernel 'sched_switch' --buffer-size 512k -o out & recorder=$!
wait_for ready
for i in $(seq 300); do /bin/true; done
kymo snapshot -o snap || exit 96
land
kymo info snap out
""" + nothing_left())
    assert "nothing lost" in done.out
    for out in "snap", "out":
        path = os.path.join(done.cwd, out)
        kymo = subprocess.run([KYMO, "print", path], capture_output=True, text=True, check=True)
        peer = subprocess.run(["babeltrace2", path], capture_output=True, text=True, check=True)
        assert kymo.stdout.count("sched_switch") == peer.stdout.count("sched_switch") > 0


@pytest.mark.parametrize("more", ("", "--raw"))
def test_kernel_summary(box, more):
    """What newer events replaced is counted once: not in the rows, which add up to the first line."""
    done = box(f"kymo record {more} --overwrite --kernel 'syscall_*_getppid' --buffer-size 64k -o out -- "
               "python3 -c 'import os\nfor _ in range(50000): os.getppid()'")
    summary = done.err[done.err.index("Recorded "):]
    counts = sum(int(n) for n in re.findall(r"(\d+) (?:raw records|events)", summary.splitlines()[0]))
    assert counts == sum(int(n) for n in re.findall(r"^ +(?:\d+|state) +(\d+)", summary, re.M)) < 50000
    assert int(re.search(r"(\d+) older events were overwritten", summary)[1]) > 0
