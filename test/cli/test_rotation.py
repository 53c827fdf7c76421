# SPDX-License-Identifier: MIT
"""Chunks of a recording: each is a trace of its own, and all together have each event once."""

import collections
import glob
import json
import os
import re
import subprocess

import pytest

from conftest import run
from test_user import box, nothing_left, pytestmark  # noqa: F401 (a fixture)

KYMO = os.environ.get("KYMO_BIN") or "build/src/cli/kymo"

PRELUDE = """
number_of_chunks() { ls -d $1/archives/*-* 2>/dev/null | wc -l; }
has_chunks() { [ "$(number_of_chunks $1)" -ge "$2" ]; }
runs() { [ "$(kymo sessions | grep -c $1)" = 1 ]; }
"""


def chunks(done, name="out"):
    """The directories of the complete chunks in their order, and at last the recording without them."""
    archives = os.path.join(done.cwd, name, "archives")
    found = sorted(os.listdir(archives), key=lambda chunk: int(chunk.split("-")[-1]))
    first = int(found[0].split("-")[-1])
    assert [int(chunk.split("-")[-1]) for chunk in found] == list(range(first, first + len(found)))
    assert all(re.fullmatch(r"\d{8}T\d{6}Z-\d{8}T\d{6}Z-\d+", chunk) for chunk in found)
    parts = [os.path.join(archives, chunk) for chunk in found]
    present = [os.path.join(done.cwd, name, part) for part in ("kernel", "ust")]
    return parts, [part for part in present if glob.glob(f"{part}/**/metadata", recursive=True)]


def json_events(*traces):
    done = run([KYMO, "convert", "--to", "json", *traces])
    assert done.code == 0 and not done.err, done
    return [json.loads(line) for line in done.out.splitlines()]


def opens_in_babeltrace(path, n):
    """As many events as Kymo reads, without a complaint."""
    peer = subprocess.run(["babeltrace2", path], capture_output=True, text=True, check=True)
    assert len(peer.stdout.splitlines()) == n
    assert not peer.stderr, peer.stderr


def numbers(events):
    """Of each program, its numbers."""
    found = collections.defaultdict(list)
    for event in events:
        if event["event"] == "modes:number":
            found[event["env"]["vpid"] if "env" in event else event["context"]["vpid"]].append(event["fields"]["i"])
    return found


def test_programs_and_kernel(box):
    """Programs that write all the time, that come and go: every number is in one chunk."""
    done = box(PRELUDE + """
kymo record --user 'modes:*' -b 32M --context vpid --kernel 'sched_process_*' -o out --name chunks & recorder=$!
wait_for "runs chunks"
$T/modes numbers 150000 0 & one=$!
$T/modes numbers 3000 500 & two=$!
for i in 1 2 3 4 5; do kymo rotate chunks || exit 95; $T/modes numbers 100 0; done
wait $one $two
kymo rotate chunks || exit 95
kymo stop chunks; wait $recorder || exit 97
""" + nothing_left())
    assert "; 0 lost" in done.err and "Chunks: 6 in archives/, 0 removed" in done.err
    complete, present = chunks(done)
    assert len(complete) == 6
    alone = [json_events(chunk) for chunk in complete] + [json_events(*present)]
    together = json_events(os.path.join(done.cwd, "out"))
    assert len(together) == sum(map(len, alone))
    of_chunks = numbers([event for events in alone for event in events])
    assert sorted(map(len, of_chunks.values())) == [100] * 5 + [3000, 150000]
    # In the order of the chunks no number is missing, and none comes twice.
    assert all(found == list(range(found[0], found[0] + len(found))) for found in of_chunks.values())
    assert numbers(together) == of_chunks
    for chunk, events in zip(complete, alone):
        opens_in_babeltrace(chunk, len(events))
        # Each has the state that its events need.
        names = {event["event"] for event in events}
        assert "lttng_statedump_process_state" in names
        assert "lttng_ust_statedump:bin_info" in names or len(numbers_of(events)) < 1000
    opens_in_babeltrace(os.path.join(done.cwd, "out"), len(together))


def test_by_size_and_how_many_stay(box):
    done = box(PRELUDE + """
kymo record --user 'modes:*' -o out --rotate-size 1M --keep 2 --on-rotate 'echo "$KYMO_CHUNK" >>chunks.txt' \
    -- sh -c 'for i in 1 2 3 4 5 6; do $0 numbers 60000 0; sleep 1; done' $T/modes
""" + nothing_left())
    assert "; 0 lost" in done.err
    removed, = re.findall(r"Chunks: 2 in archives/, (\d+) removed", done.err)
    complete, present = chunks(done)
    assert len(complete) == 2 and int(removed) >= 1
    ran = open(os.path.join(done.cwd, "chunks.txt")).read().split()
    assert len(ran) == int(removed) + 2
    assert [os.path.basename(path) for path in ran[-2:]] == [os.path.basename(path) for path in complete]
    found = numbers_of(json_events(*complete, *present))
    assert found[-1]["fields"]["i"] == 59999
    for chunk in complete:
        size = sum(os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(chunk) for name in names)
        assert 1 << 20 <= size < 8 << 20


def test_by_time(box):
    """The kernel alone; and a program that has ended is in the chunk of its time only."""
    done = box(PRELUDE + """
kymo record --kernel sched_process_exec --statedump=none -o out --rotate-every 1s --keep-for 1h & recorder=$!
wait_for "has_chunks out 2"
kill -INT $recorder; wait $recorder || exit 97
""" + nothing_left())
    complete, _ = chunks(done)
    assert len(complete) >= 2
    assert all(sorted(os.listdir(chunk)) == ["kernel"] for chunk in complete)
    spans = [run([KYMO, "info", "--json", chunk]) for chunk in complete]
    assert all(span.code == 0 for span in spans)


def test_time_and_size_that_stay(box):
    """--keep-for looks at each rotation at the ends of chunks, --keep-size at their sizes, the newest first."""
    done = box(PRELUDE + """
for limit in for=1s size=100k; do
    kymo record --kernel sched_process_exec --statedump=none --name ${limit%=*} --keep-$limit -o ${limit%=*} --background >/dev/null || exit 97
done
kymo rotate for; sleep 1.1; kymo rotate for
for i in 1 2 3 4 5 6 7 8; do kymo rotate size; done
kymo stop for
kymo stop size
""" + nothing_left())
    assert re.findall(r"Chunks: (\d+) in archives/, (\d+) removed", done.out + done.err)[0] == ("1", "1"), done.err
    complete, _ = chunks(done, "for")
    assert len(complete) == 1 and complete[0].endswith("-2")
    complete, _ = chunks(done, "size")
    sizes = [sum(os.path.getsize(os.path.join(place, name)) for place, _, names in os.walk(chunk) for name in names)
             for chunk in complete]
    assert complete[-1].endswith("-8") and 1 < len(complete) < 8 and sum(sizes) <= 100 << 10 < sum(sizes) + max(sizes)


def test_readers_while_it_runs(box):
    """The index of the present chunk is behind its file then, which is no fault: a reader has no complaint."""
    done = box(PRELUDE + """
kymo record --kernel sched_process_exec -o out --name on --background || exit 95
kymo rotate on || exit 95
wait_for "grep -q . out/kernel/metadata"
kymo info on 2>&1 >info.txt | tee complaints.txt; kymo print --count out 2>>complaints.txt || exit 96
kymo stop on || exit 97
""" + nothing_left())
    with open(os.path.join(done.cwd, "complaints.txt")) as complaints:
        assert complaints.read() == ""


def objects_of(path):
    """The objects of a file, one behind another."""
    with open(path, encoding="utf-8") as file:
        text, at, found = file.read().strip(), 0, []
    while at < len(text):
        one, at = json.JSONDecoder().raw_decode(text, at)
        at += len(text[at:]) - len(text[at:].lstrip())
        found.append(one)
    return found


def test_chunks_are_one_machine(box):
    """A report that follows a recording knows the machine's CPUs once, and their time; a clock's offset is that of all chunks."""
    done = box(PRELUDE + """
reported() { [ "$(grep -c '"kymo"' live.json)" -ge "$1" ]; }
kymo record --kernel sched_switch --statedump=none -o out --name on --background || exit 95
kymo report cpu --live --json out >live.json 2>live.txt & reader=$!
wait_for "reported 1"; kymo rotate on || exit 95
wait_for "reported 2"; kymo rotate on || exit 95
wait_for "reported 4"; kymo stop on; wait $reader || exit 97
""" + nothing_left())
    for interval in objects_of(os.path.join(done.cwd, "live.json")):
        tables = {table["name"]: table for table in interval["reports"][0]["tables"]}
        cpus = [row["cpu"] for row in tables["cpus"]["rows"]]
        total, = tables["total"]["rows"]
        assert len(set(cpus)) == len(cpus) == total["cpus"], interval
        assert total["busy"] <= (interval["range"]["end_ns"] - interval["range"]["begin_ns"]) * len(cpus)
    out = os.path.join(done.cwd, "out")
    begin, moved = (json.loads(run([KYMO, "info", "--json", *options, out]).out)["begin_ns"]
                    for options in ((), ("--clock-offset", "out:-3ms")))
    assert moved == begin - 3000000


def test_losses_belong_to_the_chunk_of_their_time(box):
    """The losses before a rotation are the first chunk's, and a second chunk without losses has none."""
    done = box(PRELUDE + """
kymo record --user 'modes:*' -b 64k -o out --name full & recorder=$!
wait_for "runs full"
kill -STOP $recorder; timeout 60 $T/modes numbers 100000 0 & writer=$!; sleep 1; kill -CONT $recorder
wait $writer
kymo rotate full || exit 95
$T/modes numbers 100 0
kymo stop full; wait $recorder || exit 97
""" + nothing_left())
    lost = int(re.search(r"; (\d+) lost", done.err).group(1))
    complete, present = chunks(done)
    first, second = run([KYMO, "print", *complete]), run([KYMO, "print", *present])
    assert lost and f"{lost} events" in first.err.replace(" lost", ""), (lost, first.err)
    assert "lost" not in second.err


def test_killed_recorder(box):
    """What was written until then is a chunk that readers open, beside the complete ones."""
    done = box(PRELUDE + """
kymo record --user 'modes:*' -o out --name killed & recorder=$!
wait_for "runs killed"
$T/modes numbers 1000 0
kymo rotate killed || exit 95
$T/modes numbers 1000 0 ; $T/modes numbers 100000 1000 & busy=$!
wait_for "grep -q number out/ust/pid/*/metadata"
kill -KILL $recorder; wait $recorder
kill $busy
""")
    complete, present = chunks(done)
    assert len(numbers_of(json_events(*complete))) == 1000
    assert run([KYMO, "print", *present]).code == 0


def test_programs_that_the_recorder_has_not_looked_at(box):
    """What began before the rotation is in its chunk, though the recorder hears of it only then."""
    done = box(PRELUDE + """
kymo record --user 'modes:*' -b 64k -o out --name late & recorder=$!
wait_for "runs late"
kill -STOP $recorder
for i in $(seq 60); do $T/modes numbers 10 0; done
kymo rotate late & rotation=$!
wait_for "ls -l /proc/$rotation/fd | grep -q socket: && grep -q '^State:.S' /proc/$rotation/status" # for the answer
kill -CONT $recorder; wait $rotation || exit 95
kymo stop late; wait $recorder || exit 97
""" + nothing_left())
    complete, present = chunks(done)
    assert len(numbers_of(json_events(*complete))) == 600
    assert not present


def numbers_of(events):
    return [event for event in events if event["event"] == "modes:number"]


def test_refused(box):
    done = box(PRELUDE + """
kymo record --overwrite --user 'modes:*' -o flight --name flight & recorder=$!
wait_for "runs flight"
kymo rotate flight && exit 95
kymo stop flight; wait $recorder
kymo record --raw --kernel sched_switch -o raw --name raw & recorder=$!
wait_for "runs raw"
kymo rotate raw && exit 95
kymo stop raw; wait $recorder
kymo rotate nothing && exit 95
kymo record --raw --kernel sched_switch --rotate-every 1s -o no; [ $? = 2 ] || exit 96
kymo record --rotate-size 1k -o no; [ $? = 2 ] || exit 96
true""")
    assert "this recording is a flight recorder: take a snapshot of it" in done.err
    assert "this recording is raw" in done.err
    assert "have no chunks" in done.err and "--rotate-size: from 1M" in done.err


def test_lttng_analyses_read_a_chunk(box, peer):
    done = box(PRELUDE + """
kymo record --kernel 'sched_*,syscall:nanosleep' -o out --name analysed & recorder=$!
wait_for "runs analysed"
kymo rotate analysed || exit 95
sleep 0.3
kymo rotate analysed || exit 95
kymo stop analysed; wait $recorder || exit 97
""" + nothing_left())
    complete, _ = chunks(done)
    found = peer("lttng-cputop", complete[1])
    assert found.code == 0 and "Per-TID Usage" in found.out
