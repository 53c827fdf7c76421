# SPDX-License-Identifier: MIT
"""kymo record --buffers user: one ring and one trace for all programs of a user."""

import collections
import os
import re
import subprocess

import pytest

from test_user import KYMO, box, events, nothing_left, pytestmark  # noqa: F401

NO_RSEQ = "GLIBC_TUNABLES=glibc.pthread.rseq=0"
SHARED = "0-0-user.ring"


def trace_of(done, uid=0, out="out"):
    """The only trace: nothing lies beside it."""
    top = os.path.join(done.cwd, out, "ust")
    assert os.listdir(top) == ["uid"], "each program fell back to a ring of its own"
    return os.path.join(top, "uid", str(uid), "64-bit")


def by_process(lines):
    """How many events of each name each process has."""
    found = collections.defaultdict(collections.Counter)
    for line in lines:
        # The recorder writes the state dump: it is no thread's.
        match = re.match(r"(\S+): \{ vpid = (\d+)(, vtid = \d+|(?= \}))", line)
        assert match and match[1].startswith("lttng_ust_statedump:") == (not match[3]), line
        found[int(match[2])][match[1]] += 1
    return found


def summary(done):
    """Recorded and lost events of root's programs."""
    return tuple(map(int, re.search(r"^ +0 +(\d+) +(\d+) .* user 0$", done.err, re.M).groups()))


def shown(done, **options):
    return events(trace_of(done), dump=True, **options)


def test_one_trace_of_many_programs(box):
    done = box("""
kymo record --user 'shop:*' --user 'modes:*' --buffers user -o out -- sh -c '
$0/shop 3 & $0/shop 5 & $0/modes numbers 100 0 & $0/modes threads 4 1000 & wait' $T
""" + nothing_left())
    path = trace_of(done)
    text = open(os.path.join(path, "metadata")).read()
    for line in ('tracer_buffering_scheme = "uid"', "tracer_buffering_id = 0", "architecture_bit_width = 64"):
        assert line in text
    assert "vpid_datetime" not in text and "\tprocname = " not in text
    found = by_process(shown(done))
    assert len(found) == 4
    counts = sorted((counter["shop:order_placed"], counter["modes:number"], counter["modes:thread"])
                    for counter in found.values())
    assert counts == [(0, 0, 4000), (0, 100, 0), (3, 0, 0), (5, 0, 0)]
    assert all(counter["lttng_ust_statedump:procname"] == 1 for counter in found.values())
    assert "; 0 lost" in done.err and re.search(r"^ +0 +\d+ +0 .* user 0$", done.err, re.M)
    # One numbering: the events of both shops have the same ids.
    assert text.count('name = "shop:order_placed"') == 1


def test_processes_in_the_fields(box):
    done = box("""
kymo record --user 'modes:*' --buffers user -o out -- sh -c '$0/modes numbers 50 0 & echo $! > pid; wait' $T
""" + nothing_left())
    found = by_process(shown(done))
    pid = int(open(os.path.join(done.cwd, "pid")).read())
    assert found[pid]["modes:number"] == 50
    lines = shown(done)
    assert sum(f"vpid = {pid}, vtid = {pid} " in line for line in lines) == 100
    assert all(f"vpid = {pid}" in line for line in lines)
    assert any(line.startswith("lttng_ust_statedump:procname:") and 'procname = "modes"' in line for line in lines)


def test_context_fields(box):
    done = box("""
kymo record --user 'modes:number' --exclude 'lttng_ust_statedump:*' --buffers user --context vpid,procname,vtid -o out -- $T/modes numbers 20 0
""" + nothing_left())
    lines = shown(done)
    assert sum('procname = "modes" }, { i = ' in line for line in lines) == 20
    assert len(lines) == 20 and all(line.count("vpid = ") == 1 for line in lines)


def test_three_hundred_short_programs(box):
    done = box("""
kymo record --user 'shop:started' --buffers user -o out -- sh -c 'for i in $(seq 300); do $0 1; done' $T/shop
""" + nothing_left())
    found = by_process(shown(done))
    assert len(found) == 300 and all(counter["shop:started"] == 1 for counter in found.values())
    assert all(counter["lttng_ust_statedump:procname"] == counter["lttng_ust_statedump:end"] == 1 and
               counter["lttng_ust_statedump:build_id"] > 1 for counter in found.values())
    files = [os.path.join(top, name) for top, _, names in os.walk(os.path.join(done.cwd, "out")) for name in names]
    # metadata; for each CPU, the spare buffer and the state dump at most: packets and index
    assert len(files) <= 1 + 2 * (os.cpu_count() + 2)
    # Most of it is the state dump of 300 processes.
    sizes = {dump: sum(os.path.getsize(name) for name in files if ("statedump" in name) == dump) for dump in (True, False)}
    assert sizes[False] < 100000 and sizes[True] < 1000000
    assert "; 0 lost" in done.err


def test_short_programs_without_state_dump(box):
    """As LTTng, which records the state dump only when told to: metadata, and for each buffer a stream and its index."""
    done = box("""
kymo record --user 'shop:started' --exclude 'lttng_ust_statedump:*' --buffers user -o out -- sh -c '
    for i in $(seq 100); do $0 1; done' $T/shop
""" + nothing_left())
    assert sum(counter["shop:started"] for counter in by_process(shown(done)).values()) == 100
    files = [os.path.join(top, name) for top, _, names in os.walk(os.path.join(done.cwd, "out")) for name in names]
    assert len(files) <= 1 + 2 * (os.cpu_count() + 1) and sum(map(os.path.getsize, files)) < 20000


def test_children(box):
    done = box("""
kymo record --user 'modes:*' --user 'shop:started' --buffers user -o out -- $T/modes fork
kymo record --user 'modes:*' --user 'shop:started' --buffers user -o exec -- $T/modes exec $T/shop 3
""" + nothing_left())
    lines = shown(done)
    assert sum("modes:child:" in line for line in lines) == 1000
    assert len(by_process(lines)) > 1
    found = by_process(events(trace_of(done, out="exec")))
    assert sum(counter["shop:started"] for counter in found.values()) == 3


@pytest.mark.parametrize("order", [
    f"{NO_RSEQ} $0/modes threads 2 10000; $0/modes threads 2 10000",
    f"$0/modes threads 2 10000; {NO_RSEQ} $0/modes threads 2 10000",
    f"{NO_RSEQ} $0/modes threads 2 10000 & $0/modes threads 2 10000 & wait",
])
def test_with_and_without_rseq(box, order):
    """Whoever makes the ring, the others can write to it."""
    done = box(f"""
kymo record --user 'modes:*' --buffers user --when-full block -o out -- sh -c '{order}' $T
""" + nothing_left())
    counts = [counter["modes:thread"] for counter in by_process(shown(done)).values()]
    # Without rseq, the programs share one buffer under its lock, and may find it busy.
    assert len(counts) == 2 and max(counts) == 20000
    assert sum(counts) + summary(done)[1] == 40000


@pytest.mark.parametrize("env", ["", NO_RSEQ + " "])
def test_killed_programs(box, env):
    """At any moment, also while they join; the others go on and lose nothing."""
    done = box(f"""
kymo record --user 'modes:*' --user 'shop:order_placed' --buffers user --when-full block -o out & recorder=$!
wait_for session_is_there
for i in $(seq 30); do
	{env}$T/modes numbers 100000 20 & victim=$!
	sleep 0.0$((i % 6))$((i % 10))
	kill -KILL $victim; wait $victim 2>/dev/null
	$T/shop 10
done
kill -TERM $recorder; wait $recorder || exit 94
""" + nothing_left())
    found = by_process(shown(done))
    assert sum(counter["shop:order_placed"] for counter in found.values()) == 300
    recorded, lost = summary(done)
    assert recorded == len(events(trace_of(done)))
    assert env or lost == 0


def test_same_names_with_other_fields(box):
    """rough and its namesake describe an event of one name with other fields: two ids, each read as it was written."""
    done = box("""
kymo record --user 'rough:*' --user 'modes:other' --buffers user -o out -- sh -c '
$0/rough names; $0/modes numbers 3 0; $0/rough names' $T
""" + nothing_left())
    lines = [line for line in shown(done) if line.startswith("rough:")]
    assert len(lines) == 4 and len({re.sub(r"\{ vpid.*?\}", "", line) for line in lines}) == 2


def test_rules_that_change(box):
    done = box("""
kymo record --user 'modes:number' --buffers user -o out & recorder=$!
wait_for session_is_there
$T/modes numbers 100000 2000 & first=$!
$T/modes numbers 100000 2000 & second=$!
sleeps $first 10; sleeps $second 10
kymo ctl --enable-event 'modes:other' --filter 'i % 2 == 0' || exit 95
sleeps $first 10; sleeps $second 10
kymo ctl --disable-event 'modes:*' || exit 96
$T/modes numbers 10 0
kymo ctl --enable-event 'modes:number' || exit 97
$T/modes numbers 10 0
kill $first $second
kill -TERM $recorder; wait $recorder || exit 94
""" + nothing_left())
    found = by_process(shown(done))
    assert sum(counter["modes:number"] > 0 for counter in found.values()) == 3
    assert sum(counter["modes:other"] > 0 for counter in found.values()) == 2
    assert 10 in [counter["modes:number"] for counter in found.values()]
    assert not any(re.search(r"^modes:other.*i = \d*[13579] ", line) for line in shown(done))


def test_pause_and_clear(box):
    done = box("""
kymo record --user 'modes:number' --buffers user -o out & recorder=$!
wait_for session_is_there
$T/modes numbers 10 0
kymo ctl --pause || exit 95
$T/modes numbers 20 0
kymo ctl --resume || exit 96
$T/modes numbers 30 0
kymo ctl --clear || exit 97
$T/modes numbers 40 0
kymo ctl --status > status
kill -TERM $recorder; wait $recorder || exit 94
""" + nothing_left())
    assert [counter["modes:number"] for counter in by_process(events(trace_of(done))).values()] == [40]
    assert " user 0" in open(os.path.join(done.cwd, "status")).read()


def test_rotation(box):
    done = box("""
kymo record --user 'modes:number' --buffers user -o out & recorder=$!
wait_for session_is_there
for i in 1 2 3; do
	$T/modes numbers 10 0; $T/modes numbers 10 0
	kymo rotate || exit 95
done
$T/modes numbers 10 0
kill -TERM $recorder; wait $recorder || exit 94
""" + nothing_left())
    chunks = sorted(os.listdir(os.path.join(done.cwd, "out", "archives")))
    assert len(chunks) == 3
    for chunk in chunks:
        path = os.path.join(done.cwd, "out", "archives", chunk, "ust", "uid", "0", "64-bit")
        assert sum(line.startswith("modes:number") for line in events(path)) == 20
    assert sum(line.startswith("modes:number") for line in shown(done)) == 10


def test_flight_recorder(box):
    done = box("""
kymo record --overwrite --user 'modes:number' --buffers user --buffer-size 64k -o out & recorder=$!
wait_for session_is_there
$T/modes numbers 100000 0; $T/modes numbers 50 0
kymo snapshot -o snap || exit 95
kill -TERM $recorder; wait $recorder || exit 94
""" + nothing_left())
    for out in ("snap", "out"):
        found = by_process(events(trace_of(done, out=out)))
        assert 50 in [counter["modes:number"] for counter in found.values()]


def test_live_reader(box):
    done = box("""
kymo record --user 'modes:number' --buffers user -o out & recorder=$!
wait_for session_is_there
$T/modes numbers 10 0
wait_for '[ -e out/ust/uid/0/64-bit/metadata ]'
kymo print --live out > live & reader=$!
$T/modes numbers 20 1000
wait_for '[ $(grep -c modes:number live) -ge 30 ]'
kill -TERM $recorder; wait $recorder || exit 94
wait $reader || exit 93
""" + nothing_left())
    assert open(os.path.join(done.cwd, "live")).read().count("modes:number:") == 30


def test_killed_recorder(box):
    done = box("""
kymo record --user 'modes:number' --buffers user --shm-path /dev/shm/rings -o out & recorder=$!
wait_for 'ls /dev/shm/rings/*/session >/dev/null 2>&1'
kill -STOP $recorder
$T/modes numbers 100 0; $T/modes numbers 100 0
kill -KILL $recorder; wait $recorder
kymo recover --remove -o found /dev/shm/rings || exit 95
""")
    assert "0-0-user.ring: " in done.out and "complete" in done.out
    found = by_process(events(trace_of(done, out="found")))
    assert [counter["modes:number"] for counter in found.values()] == [100, 100]


def test_users_do_not_share(box):
    done = box("""
kymo record --user 'modes:*' --buffers user -o out & recorder=$!
wait_for session_is_there
setpriv --reuid 1000 --regid 1000 --clear-groups sleep 600 & sleeper=$!
wait_for 'session_is_there 1000'
setpriv --reuid 1000 --regid 1000 --clear-groups $T/modes numbers 30 0
$T/modes numbers 20 0
kill $sleeper
kill -TERM $recorder; wait $recorder || exit 94
""" + nothing_left())
    for uid, count in ((0, 20), (1000, 30)):
        found = events(os.path.join(done.cwd, "out", "ust", "uid", str(uid), "64-bit"))
        assert sum(line.startswith("modes:number") for line in found) == count


@pytest.mark.parametrize("seed", range(4))
def test_hostile_program(box, seed):
    """A program that scribbles over all that it shares: its user's trace suffers, the recorder and other users go on."""
    done = box(f"""
kymo record --user '*' --buffers user --buffer-size 64k -o out 2>told & recorder=$!
wait_for session_is_there
setpriv --reuid 1000 --regid 1000 --clear-groups sleep 600 & sleeper=$!
wait_for 'session_is_there 1000'
for i in 1 2; do setpriv --reuid 1000 --regid 1000 --clear-groups $T/hostile {seed}$i 300 ring 2>/dev/null & hostile="${{hostile-}} $!"; done
for i in $(seq 5); do setpriv --reuid 1000 --regid 1000 --clear-groups $T/shop 20 1000; $T/shop 20 1000; done
kill -KILL $hostile 2>/dev/null
kill $sleeper
kill -TERM $recorder; wait $recorder; code=$?
[ $code -le 1 ] || exit 94
""")
    found = by_process(events(os.path.join(done.cwd, "out", "ust", "uid", "0", "64-bit")))
    assert sum(counter["shop:order_placed"] for counter in found.values()) == 100


@pytest.mark.parametrize("options, said", [
    (["--user", "x:*", "--buffers", "all"], "neither process nor user"),
    (["--kernel", "sched_switch", "--buffers", "user"], "add --user"),
])
def test_mistakes(tmp_path, options, said):
    done = subprocess.run([KYMO, "record", *options, "-o", tmp_path / "out"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and said in done.stderr
