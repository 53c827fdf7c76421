# SPDX-License-Identifier: MIT
"""kymo timeline: the picture, and the index on disk that it comes from."""

import json
import os
import shutil
import stat
import subprocess
import sys
import threading

import pytest

import make_trace
import oracle_figures
from kernel_trace import write
from test_perfetto import SPANS

WORDS = ("state", "name", "row", "value")


@pytest.fixture
def cache(tmp_path):
    return {"XDG_CACHE_HOME": str(tmp_path / "cache")}


@pytest.fixture
def timeline(kymo, cache):
    """timeline(trace, ...) -> the JSON object."""
    return lambda *args, **more: json.loads(kymo("timeline", "--json", *args, env=cache, **more).out)


MEASURE = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL); "
           "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)")


def test_threads_that_are_not_shown_take_no_memory(kymo_bin, cache, tmp_path):
    """20,000 threads, of which each runs once: the pictures of all would be 1.2 GiB."""
    threads = ((b"w%d" % i, 1000 + i) for i in range(20000))
    make_trace.switches(tmp_path / "t", threads)
    command = [sys.executable, "-c", MEASURE, kymo_bin, "timeline", "-w", "4000", tmp_path / "t"]
    found = subprocess.run(command, env={**os.environ, **cache}, check=True, capture_output=True, text=True)
    assert int(found.stdout) < 700 * 1024


def index_of(cache):
    directory = os.path.join(cache["XDG_CACHE_HOME"], "kymo")
    names = os.listdir(directory)
    assert len(names) == 1 and names[0].endswith(".history"), names
    return os.path.join(directory, names[0])


def runs(row):
    return [(run["begin_px"], run["end_px"], *(run[word] for word in WORDS if word in run))
            for run in row["runs"]]


def row(found, kind, number):
    return next(r for r in found["rows"] if r["kind"] == kind and r["number"] == number)


def switch(ns, prev, after, state=0, cpu=0):
    return oracle_figures.Event(ns, cpu, "sched_switch", {}, {
        "prev_comm": f"t{prev}" if prev else "swapper", "prev_tid": prev, "prev_prio": 20, "prev_state": state,
        "next_comm": f"t{after}" if after else "swapper", "next_tid": after, "next_prio": 20})


def event(ns, event_name, **fields):
    return oracle_figures.Event(ns, 0, event_name, {}, fields)


def make_kernel(path):
    """100 ns: thread 7 computes, reads, waits in futex; 8 runs with an interrupt, then is preempted by 7."""
    return write(path, [
        event(1000, "lttng_statedump_process_state", tid=7, pid=7, ppid=1, name="t7"),
        switch(1000, 0, 7),
        event(1005, "syscall_entry_read", fd=3),
        event(1015, "syscall_exit_read", ret=1),
        event(1020, "syscall_entry_futex", uaddr=1, op=0, val=0),
        switch(1030, 7, 8, state=1),
        event(1040, "irq_handler_entry", irq=24, name="eth0"),
        event(1045, "sched_waking", comm="t7", tid=7, prio=20, target_cpu=0),
        event(1050, "irq_handler_exit", irq=24, ret=1),
        switch(1060, 8, 7),
        event(1065, "syscall_exit_futex", ret=0),
        switch(1080, 7, 8, state=2),
        switch(1090, 8, 0, state=1),
        switch(1099, 0, 8),
    ])


def test_states_of_a_made_trace(timeline, tmp_path):
    trace = make_kernel(tmp_path / "t")
    found = timeline("--width", 100, trace)
    assert (found["width_px"], found["events"]) == (100, 14)
    cpu, seven, eight = row(found, "cpu", 0), row(found, "thread", 7), row(found, "thread", 8)
    assert runs(cpu) == [(0, 30, "runs", seven["id"]), (30, 60, "runs", eight["id"]),
                         (60, 80, "runs", seven["id"]), (80, 90, "runs", eight["id"]),
                         (90, 99, "idle")]
    states = runs(seven)
    assert states[:5] == [(0, 5, "user"), (5, 15, "syscall", "read"), (15, 20, "user"),
                          (20, 30, "syscall", "futex"), (30, 45, "lock", "futex")], states
    assert states[5:] == [(45, 60, "wait-cpu"), (60, 65, "syscall", "futex"), (65, 80, "user"), (80, 99, "disk")]
    # No call shows whether it runs in user space.
    assert runs(eight)[:4] == [(30, 40, "running"), (40, 50, "irq", "irq 24 eth0"), (50, 60, "running"),
                               (60, 80, "wait-cpu")]
    irq = next(r for r in found["rows"] if r["kind"] == "irq")
    assert irq["parent"] == cpu["id"] and runs(irq) == [(40, 50, "active", eight["id"])]
    assert row(found, "process", 7)["id"] == seven["parent"]
    assert sum(next(r for r in found["rows"] if r["kind"] == "stream")["events"]) == 14


def test_text(kymo, cache, tmp_path):
    trace = make_kernel(tmp_path / "t")
    text = kymo("timeline", "--width", 100, trace, env=cache).out
    line = next(line for line in text.splitlines() if "CPU 0" in line)
    picture = line.split("|")[1]
    assert len(picture) == 100 and picture[:30] == picture[60:80] + picture[:10]
    assert set(picture[:99]) == {"A", "B", "-"} and picture.count("-") == 9
    line = next(line for line in text.splitlines() if "t7 (7)" in line and "|" in line)
    assert line.split("|")[1] == "#####ssssssssss#####" + "s" * 10 + "l" * 15 + "w" * 15 + "sssss" + "#" * 15 + "d" * 19 + " "
    assert "waits for a lock" in text and "A  t7 (7)" in text
    only = kymo("timeline", "--rows", "cpu", "--width", 20, "--begin", "+30ns", "--end", "+49ns", trace,
                env=cache).out
    assert "t7" not in only.split("\n\n")[1] and "|" + "A" * 20 + "|" in only


@pytest.mark.parametrize("begin, end", [("work_begin", "work_end"), ("work_start", "work_done"), ("work.enter", "work.leave"),
                                        ("workStart", "workStop")])
def test_spans(timeline, tmp_path, begin, end):
    """Spans nest; an end without a begin is left out, and one that does not end goes to the last event."""
    packet = make_trace.Packet(1000)
    packet.tick(1000, 1, b"outer")
    packet.tick(1020, 2, b"inner", 4)
    for number, at in ((3, 1040), (3, 1060), (3, 1070), (4, 1080)):
        packet.head(number, at)
        packet.body += (0).to_bytes(4, "little")
    packet.tick(1090, 1)
    packet.odd(1099)
    found = timeline("--width", 100, make_trace.write(str(tmp_path / "t"), {"c": [packet]}, SPANS.replace("work_begin", begin).replace("work_end", end)))
    spans = {r["number"]: runs(r) for r in found["rows"] if r["kind"] == "spans"}
    assert spans == {0: [(0, 60, "span", "work"), (90, 99, "span", "work")], 1: [(20, 40, "span", "work")]}
    assert all(r["parent"] == row(found, "thread", 1000)["id"]
               for r in found["rows"] if r["kind"] == "spans")


def test_index_is_kept_and_private(timeline, cache, tmp_path):
    trace = make_kernel(tmp_path / "t")
    first, second = timeline(trace), timeline(trace)
    assert first.pop("index_built") and not second.pop("index_built")
    assert first == second
    path = index_of(cache)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700


def test_changed_and_foreign_traces_get_a_new_index(timeline, cache, tmp_path):
    trace, other = make_kernel(tmp_path / "t"), make_kernel(tmp_path / "other")
    assert timeline(trace)["index_built"]
    own = index_of(cache)
    data = open(own, "rb").read()
    timeline(other)
    foreign, = [path for path in (os.path.join(os.path.dirname(own), name)
                                  for name in os.listdir(os.path.dirname(own))) if path != own]
    shutil.copy(foreign, own)
    assert timeline(trace)["index_built"] and open(own, "rb").read() == data
    # The same size and name, but another time.
    os.utime(trace / "stream_0", ns=(1, 1))
    assert timeline(trace)["index_built"] and not timeline(trace)["index_built"]
    # Other clocks are another picture.
    shifted = timeline("--clock-offset", "5s", trace)
    assert shifted["index_built"] and shifted["begin_ns"] == timeline(trace)["begin_ns"] + 5 * 10**9


@pytest.mark.skipif(os.geteuid() != 0, reason="mounts a file system")
def test_old_indexes_make_room(kymo_bin, cache, tmp_path):
    """All have at most a tenth of the file system; those that were used last stay."""
    for i in range(8):
        make_kernel(tmp_path / f"trace-{i}")
    script = """
mkdir -p $XDG_CACHE_HOME; mount -t tmpfs -o size=1m tmpfs $XDG_CACHE_HOME || exit 99
touch $XDG_CACHE_HOME/kymo-is-not-alone
for i in 0 1 2 3 4 5 6 7; do
    head -c 30000 /dev/zero >>$XDG_CACHE_HOME/kymo/$(printf '%032x' $i).history 2>/dev/null
    $KYMO timeline trace-$i >/dev/null || exit 98
    $KYMO timeline trace-0 >/dev/null || exit 98
    [ $i != 0 ] || first=$(ls $XDG_CACHE_HOME/kymo)
    sleep 0.02
done
for name in $first; do ls $XDG_CACHE_HOME/kymo/$name || exit 97; done
ls $XDG_CACHE_HOME/kymo | wc -l
du -sk $XDG_CACHE_HOME/kymo | cut -f 1
"""
    done = subprocess.run(["unshare", "-m", "bash", "-c", script], cwd=tmp_path, capture_output=True, text=True,
                          env=os.environ | cache | {"KYMO": kymo_bin}, timeout=100)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    _, n, kib = done.stdout.split()
    # The last trace's, the first one's, and no more large files than there is room for.
    assert 2 <= int(n) < 16 and int(kib) <= 1024 // 10, done.stdout


def test_damaged_index_is_built_again(timeline, cache, tmp_path):
    trace = make_kernel(tmp_path / "t")
    right = timeline(trace)["rows"]
    path = index_of(cache)
    data = open(path, "rb").read()
    for at in (0, 9, 20, 45, 70, 140, len(data) - 3, len(data) // 2):
        damaged = bytearray(data)
        damaged[at] ^= 0x40
        for content in (bytes(damaged), data[:at]):
            with open(path, "wb") as file:
                file.write(content)
            assert timeline(trace)["rows"] == right
    for content in (b"", b"x" * 5000):
        with open(path, "wb") as file:
            file.write(content)
        found = timeline(trace)
        assert found["index_built"] and found["rows"] == right


def test_hostile_places(kymo, timeline, cache, tmp_path):
    """A directory that others can write to, a link, a FIFO and a missing home: the picture comes nevertheless."""
    trace = make_kernel(tmp_path / "t")
    right = timeline(trace)["rows"]
    path = index_of(cache)
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    os.unlink(path)
    os.symlink(victim, path)
    assert timeline(trace)["rows"] == right and victim.read_bytes() == b"precious"
    os.unlink(path)
    os.mkfifo(path)
    assert timeline(trace)["rows"] == right
    os.chmod(os.path.dirname(path), 0o777)
    before = sorted(os.listdir(os.path.dirname(path)))
    assert timeline(trace)["rows"] == right
    assert sorted(os.listdir(os.path.dirname(path))) == before
    found = kymo("timeline", "--json", trace, env={"XDG_CACHE_HOME": "", "HOME": ""})
    assert json.loads(found.out)["rows"] == right


def test_several_at_once_build_one_index(timeline, cache, reference):
    found = []
    runners = [threading.Thread(target=lambda: found.append(timeline("--rows", "cpu", reference)))
               for _ in range(4)]
    for runner in runners:
        runner.start()
    for runner in runners:
        runner.join()
    assert len(found) == 4 and sum(one["index_built"] for one in found) >= 1
    assert all(one["rows"] == found[0]["rows"] for one in found)
    index_of(cache)


def test_damaged_trace_is_shown_and_not_kept(kymo, cache, reference, tmp_path):
    trace = shutil.copytree(reference, tmp_path / "t")
    shutil.rmtree(trace / "index", ignore_errors=True)
    path = max((trace / name for name in os.listdir(trace) if name.startswith("c")), key=os.path.getsize)
    size = os.path.getsize(path)
    with open(path, "r+b") as file:
        file.seek(size // 2)
        file.write(b"\xff" * 8192)
    done = kymo("timeline", "--json", trace, code=1, env=cache)
    assert any(r.get("runs") for r in json.loads(done.out)["rows"])
    assert os.path.basename(path) in done.err
    assert os.listdir(os.path.join(cache["XDG_CACHE_HOME"], "kymo")) == []


def test_cpu_time_agrees_with_the_report(kymo, timeline, reference):
    """The whole trace in pixels of a few microseconds: threads run as long as report cpu says."""
    found = timeline("--width", 100000, "--rows", "cpu", "--rows", "thread", reference)
    report = json.loads(kymo("report", "--json", "cpu", reference).out)
    table = next(t for t in report["reports"][0]["tables"] if t["name"] == "cpus")
    pixel = (found["end_ns"] - found["begin_ns"]) / found["width_px"]
    for line in table["rows"]:
        one = row(found, "cpu", line["cpu"])
        busy = sum(run["end_px"] - run["begin_px"] for run in one["runs"] if run["state"] == "runs")
        assert busy * pixel == pytest.approx(line["busy"], rel=0.03)


@pytest.mark.parametrize("args, message", [
    (("--width", "100001"), "--width"),
    (("--begin", "+1s", "--end", "+0s"), ""),
])
def test_usage(kymo, cache, tmp_path, args, message):
    done = kymo("timeline", *args, make_kernel(tmp_path / "t"), code=2, env=cache)
    assert message in done.err


def test_recordings_agree_with_a_slow_computation(kymo, kymo_bin, record, without_losses, tmp_path):
    """At the time of each of 10,000 events of the kernel: test/unit/test-history-oracle.c."""
    oracle = os.path.join(os.path.dirname(kymo_bin), "..", "..", "test", "unit", "test-history-oracle")
    if not os.path.exists(oracle):
        pytest.skip(f"no {oracle}")
    recorded, _ = without_losses(record, command=("ls", "-lR", "/usr/share/perl5"))
    whole = kymo("convert", "--to", "json", recorded).out.splitlines()
    end = json.loads(whole[min(len(whole), 10000) - 1])["timestamp_ns"]
    part = tmp_path / "part"
    kymo("convert", "--to", "ctf2", "--end", f"{end // 10**9}.{end % 10**9:09}", "-o", part, recorded)
    done = subprocess.run([oracle, part], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and " rows at " in done.stdout + done.stderr, done
