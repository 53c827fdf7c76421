# SPDX-License-Identifier: MIT
"""Trackers of kymo latency: pairs of events of real loads, what takes long, actions."""

import json
import os
import signal
import subprocess
import time

import pytest

from test_latency import Load, FSYNCS, needs_bpf  # noqa: F401 (a fixture)

pytestmark = pytest.mark.usefixtures("needs_bpf", "needs_root_tracefs")


class Tracked:
    """A running `kymo latency --once --json` with trackers; end() gives its news and its figures."""

    def __init__(self, kymo_bin, *args):
        self.process = subprocess.Popen([kymo_bin, "latency", "--once", "--every", "1h", "--json", *map(str, args)],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        assert line.startswith("kymo: measuring"), line + self.process.stderr.read()

    def next(self):
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate()
        assert self.process.returncode == 0, err
        *news, result = [json.loads(line) for line in out.splitlines()]
        return news, result


@pytest.fixture
def track(kymo_bin):
    running = []

    def begin(*args):
        running.append(Tracked(kymo_bin, *args))
        return running[-1]
    yield begin
    for one in running:
        one.process.poll() is None and one.process.kill()
        one.process.wait()


def count_of(result, name):
    return sum(one["windows"]["now"]["count"] for one in result["series"] if (one["layer"], one["name"]) == ("track", name))


def test_every_fsync(track, tmp_path):
    load = Load(FSYNCS, tmp_path / "file")
    tracked = track("--track", f"fsync: syscall:fsync if $ctx.pid == {load.pid} -> syscall:fsync", "--over", "0s", "--stacks")
    longest_ns = int(load.go())
    news, result = tracked.end()
    assert len(news) == 40 == count_of(result, "fsync")
    for one in news:
        assert one["tracker"] == "fsync" and one["kind"] == "over"
        assert one["begin"]["pid"] == one["end"]["pid"] == load.pid == one["key"]["tid"]
        assert 0 < one["duration_ns"] <= longest_ns
        # It is a system call of the kernel's, and the program that calls has a stack, too.
        assert any("syscall" in name for name in one["begin"]["kernel_stack"])
        assert one["begin"]["user_stack"]
    assert max(one["duration_ns"] for one in news) == result["trackers"][0]["worst_ns"]
    histogram = result["series"][0]["windows"]["now"]
    assert histogram["sum_ns"] == sum(one["duration_ns"] for one in news)
    assert histogram["max_ns"] == result["trackers"][0]["worst_ns"]


def test_wake_up_with_both_stacks(track):
    load = Load("import time\nfor _ in range(30): time.sleep(0.002)")
    wake = f"sched_waking if tid == {load.pid} -> sched_switch by tid=next_tid"
    tracked = track("--track", f"wake: {wake}", "--over", "0s", "--track", f"worst: {wake}", "--over", "worst",
                    "--stacks", "--layers", "wakeup", "--pid", load.pid)
    load.go()
    news, result = tracked.end()
    worst = [one["duration_ns"] for one in news if one["tracker"] == "worst"]
    assert worst and worst == sorted(worst)
    assert worst[-1] == result["trackers"][1]["worst_ns"]
    # Who wakes up a sleeper is a timer's interrupt.
    assert any(name.startswith("hrtimer") for one in news for name in one["begin"]["kernel_stack"]), news
    layer = next(one for one in result["series"] if one["layer"] == "wakeup")["windows"]["now"]
    # The layer leaves out wake-ups of threads that have not gone to sleep yet.
    assert layer["count"] <= count_of(result, "wake") + result["trackers"][0]["skipped_runs"]


def test_filters(track):
    """Exactly those of a known load for which the filter is true."""
    load = Load("import os\nr, w = os.pipe()\n"
                "for n in range(100): os.write(w, b'x' * (n + 1)); os.read(r, 1000)\n"
                "for fd in (9999, -1, 1 << 20):\n    try: os.close(fd)\n    except OSError: pass")
    pid = f"$ctx.pid == {load.pid}"
    filters = {"w1": (f"write if {pid} && count > 90 -> syscall_exit_write", 10),
               "w2": (f"write if {pid} && count in (1, 2, 100) -> syscall_exit_write", 3),
               "w3": (f"write if {pid} && !(count >= 3) -> syscall_exit_write if ret == 2", 1),
               "w4": (f"write if {pid} && (count & 0x40) != 0 -> syscall_exit_write", 37),
               "w5": (f"write if {pid} && count < -1 -> syscall_exit_write", 0),
               "w6": (f"write if {pid} && procname =~ 'python*' && 50 <= count && count != 60 -> syscall_exit_write", 50),
               "w7": (f"write if {pid} && procname == 'python' -> syscall_exit_write", 0),
               "c1": (f"close if {pid} -> syscall_exit_close if ret < 0 && ret == -9", 3)}
    args = []
    for name, (text, _) in filters.items():
        args += ["--track", f"{name}: syscall_entry_{text}"]
    tracked = track(*args)
    load.go()
    _, result = tracked.end()
    assert {name: count_of(result, name) for name in filters} == {name: n for name, (_, n) in filters.items()}


def test_time_out_and_command(track, tmp_path):
    """The tracker tells of a call while it hangs, and once more when it ends; a command gets it in its environment."""
    # Pairs of 20 ms are shorter than the time-out: nothing tells of them, and nothing acts.
    load = Load("import time\nfor _ in range(5): time.sleep(0.02)\ntime.sleep(1.2)")
    told = tmp_path / "told"
    command = f'run:echo "$KYMO_TRIGGER_CONDITION $KYMO_TRIGGER_EVENT $KYMO_TRIGGER_FIELD_tid" >> {told}'
    tracked = track("--track", f"hang: syscall:clock_nanosleep if $ctx.pid == {load.pid} -> syscall:clock_nanosleep",
                    "--timeout", "300ms", "--do", command)
    begin = time.monotonic()
    load.process.stdin.write("\n")
    load.process.stdin.flush()
    first = tracked.next()
    assert load.process.poll() is None or time.monotonic() - begin > 1.2
    assert first["kind"] == "still open" and first["duration_ns"] >= 300000000 and "end" not in first
    load.process.wait()
    second = tracked.next()
    assert second["kind"] == "ended" and second["duration_ns"] >= 1200000000
    assert second["begin_ns"] == first["begin_ns"] and second["end"]["tid"] == load.pid
    news, result = tracked.end()
    assert not news and count_of(result, "hang") == 6
    assert told.read_text().splitlines()[0] == f"hang open {load.pid}"


def test_over_beside_a_time_out(track):
    """With both, the tracker tells of each pair over --over, although none is over the time-out."""
    load = Load("import time\nfor _ in range(5): time.sleep(0.02)")
    tracked = track("--track", f"s: syscall:clock_nanosleep if $ctx.pid == {load.pid} -> syscall:clock_nanosleep",
                    "--timeout", "1h", "--over", "5ms")
    load.go()
    news, _ = tracked.end()
    assert [one["kind"] for one in news] == ["over"] * 5


def test_more_open_than_room(track):
    load = Load("import threading, time\nall = [threading.Thread(target=time.sleep, args=(0.5,)) for _ in range(12)]\n"
                "[one.start() for one in all]\n[one.join() for one in all]")
    tracked = track("--track", f"s: syscall:clock_nanosleep if $ctx.pid == {load.pid} -> syscall:clock_nanosleep", "--open", "4")
    load.go()
    _, result = tracked.end()
    state = result["trackers"][0]
    assert state["without_room"] > 0
    assert count_of(result, "s") + state["without_room"] == 12


def test_snapshot_of_a_flight_recorder(kymo, track, tmp_path):
    name = f"track-{os.getpid()}"
    kymo("record", "--name", name, "--background", "--overwrite", "-o", tmp_path / "out", "-k", "sched_switch", code=0)
    try:
        load = Load("import time\ntime.sleep(0.01)")
        tracked = track("--track", f"s: syscall:clock_nanosleep if $ctx.pid == {load.pid} -> syscall:clock_nanosleep",
                        "--do", f"snapshot:{name}")
        load.go()
        news, _ = tracked.end()  # waits for the action
        assert len(news) == 1
        snapshot = tmp_path / "out-snapshot-1"
        assert "sched_switch" in kymo("print", snapshot, code=0).out
    finally:
        kymo("stop", name)


def test_actions_of_triggers_in_a_recording(kymo, kymo_bin, track, tmp_path):
    """A mark in the recording's trace, a line for its watchers, and an archive with reports, of one long call."""
    name, out = f"test-latency-act-{os.getpid()}", tmp_path / "out"
    load = Load("import time\ntime.sleep(0.05)")
    kymo("record", "--name", name, "--background", "-o", out, "-k", "syscall_exit_clock_nanosleep,sched_switch", code=0)
    watch = subprocess.Popen([kymo_bin, "watch", name, "--json"], stdout=subprocess.PIPE, text=True)
    try:
        tracked = track("--track", f"nap: syscall:clock_nanosleep if $ctx.pid == {load.pid} -> syscall:clock_nanosleep", "--over", "40ms",
                        "--do", f"mark:{name}", "--do", f"mark:{name}:a long nap", "--do", f"notify:{name}:too long",
                        "--do", f"report:{name}:{tmp_path}/nap.tar.zst", "--do", f"run:touch {tmp_path}/done")
        load.go()
        long = tracked.next()
        deadline = time.monotonic() + 60
        while not ((tmp_path / "done").exists() and (tmp_path / "nap.tar.zst").exists()) and time.monotonic() < deadline:
            time.sleep(0.1)
        tracked.end()
    finally:
        kymo("stop", name, code=0)
        told = [json.loads(line) for line in watch.communicate()[0].splitlines()]
    [line] = [one for one in told if one.get("do") == "notify"]
    assert line["result"] == "too long" and line["when"].startswith("nap: syscall:clock_nanosleep") and line["event"] == "end"
    assert line["duration_ns"] == long["duration_ns"] and abs(line["time_ns"] - long["time_ns"]) < 10**7 and line["n"] == 1
    assert line["fields"]["tid"] == line["fields"]["end_tid"] == line["fields"]["key_tid"] == load.pid
    assert line["fields"]["procname"].startswith("python3")
    marks = [one for one in kymo("print", out, code=0).out.splitlines() if "kymo:mark" in one]
    assert len(marks) == 2 and 'name = "nap"' in marks[0] and 'name = "a long nap"' in marks[1]
    assert all(f"duration_ns = {long['duration_ns']}" in one and "nap: syscall:clock_nanosleep" in one for one in marks)


def test_events_of_programs(track):
    """Both ends are events of a program: one that runs already, and one that starts later; across threads by a field."""
    shop = os.path.join(os.environ.get("KYMO_BUILD") or "build", "examples", "shop")
    tracked = track("--track", "checkout: shop:checkout_begin -> shop:checkout_end", "--over", "0s",
                    "--track", "order: user shop:order_placed if total_cents > 1000 -> user shop:order_changed if state == \"SENT\" by id",
                    "--over", "worst", "--track", "never: user shop:order_placed -> user shop:order_lost by id", "--timeout", "200ms",
                    "--do", "run:true")
    begin = time.monotonic_ns()
    done = subprocess.Popen([shop, "40"], stdout=subprocess.DEVNULL)
    assert done.wait() == 0
    longest_ns = time.monotonic_ns() - begin
    told = []
    while sum(one["tracker"] == "checkout" for one in told) < 40 or sum(one["tracker"] == "never" for one in told) < 40:
        told.append(tracked.next())
    news, result = tracked.end()
    told += news
    checkouts = [one for one in told if one["tracker"] == "checkout"]
    assert len(checkouts) == 40 == count_of(result, "checkout")
    for one in checkouts:
        # The program sleeps for 200 us within the span.
        assert one["kind"] == "over" and 200000 <= one["duration_ns"] < longest_ns
        assert one["begin"]["pid"] == one["end"]["pid"] == done.pid == one["key"]["vtid"] and one["end"]["comm"] == "shop"
    assert count_of(result, "order") == sum(997 * (i % 7) > 1000 for i in range(40))
    never = [one for one in told if one["tracker"] == "never"]
    assert {one["key"]["id"] for one in never} == set(range(40)) and {one["kind"] for one in never} == {"still open"}
    states = {one["name"]: one for one in result["trackers"]}
    assert states["never"]["open"] == 40 and states["checkout"]["worst_ns"] == max(one["duration_ns"] for one in checkouts)


def test_warning_of_a_recording_that_does_not_run(kymo, tmp_path):
    args = ["latency", "--once", "--every", "100ms", "--track", "s: syscall:clock_nanosleep -> syscall:clock_nanosleep", "--over", "1h"]
    name = f"absent-{os.getpid()}"
    for action in (f"snapshot:{name}", f"rotate:{name}", f"stop:{name}", f"mark:{name}:text", f"notify:{name}", f"report:{name}"):
        assert f"warning: --do '{action}' cannot work now: " in kymo(*args, "--do", action, code=0).err
    assert "warning" not in kymo(*args, "--do", f"run:echo {name}", code=0).err
    # A snapshot is of a flight recorder; any recording can rotate.
    kymo("record", "--name", name, "--background", "-o", tmp_path / "out", "-k", "sched_switch", code=0)
    try:
        assert "cannot work now" in kymo(*args, "--do", f"snapshot:{name}", code=0).err
        assert "warning" not in kymo(*args, "--do", f"stop:{name}", code=0).err
    finally:
        kymo("stop", name)


def test_text(kymo_bin):
    load = Load("import ctypes, time\nctypes.CDLL(None).prctl(15, b'\\x1b[31mx')\ntime.sleep(0.02)")
    process = subprocess.Popen([kymo_bin, "latency", "--once", "--every", "1h", "--stacks", "--track",
                                f"s: syscall:clock_nanosleep if $ctx.pid == {load.pid} -> syscall:clock_nanosleep"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stderr.readline()
    load.go()
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate()
    assert process.returncode == 0
    assert " s over " in out and f"begin \\x1b[31mx (tid {load.pid}, pid {load.pid})" in out
    assert "\x1b" not in out
    assert "  stack of the begin\n    ffff" in out
    assert "Trackers" in out and "Tracker s: 0 open, the worst so far " in out


def test_wrong_definitions(kymo):
    for text, message in {
            "sched_waking -> sched_switch": "a tracker begins with its name and ':'",
            "a: sched_waking": "'sched_waking' is not the end of a known pair of events; name both: BEGIN -> END by KEY",
            "a: nothing -> sched_switch": "this kernel has no event 'nothing'",
            "a: sched_waking if colour == 3 -> sched_switch": ":1:20: event sched_waking has no field 'colour'",
            "a: sched_waking if prio == 'x' -> sched_switch": "'==' does not go with a number and a text",
            "a: sched_waking if comm < 3 -> sched_switch": ":1:25: '<' does not go with a text and a number",
            "a: sched_waking if prio + 3 == 3 -> sched_switch": ":1:29: the kernel cannot evaluate this part of the condition",
            "a: sched_waking if comm =~ 'a*b' -> sched_switch": ":1:28: the kernel evaluates patterns of the form",
            "a: sched_waking -> sched_switch by comm": "the key of a tracker is a number",
            "a: sched_waking -> sched_switch by tid,prio,target_cpu=prev_prio": "a tracker has at most 2 keys",
            "a: sched_waking -> sched_switch by pid": "event sched_waking has no field 'pid'; $ctx.pid is that of the thread",
            "a: shop:order -> sched_switch": "both ends of a tracker are events of programs with libkymo-trace, or none of them",
            "a: shop:order if id == -> shop:done": ":1:23: ",
            "a b: sched_waking -> sched_switch": "begins with its name"}.items():
        done = kymo("latency", "--once", "--track", text, code=2)
        assert message in done.err, (text, done)
    for args, message in {
            ("--over", "1ms"): "--over needs a --track before it",
            ("--track", "a: sched_waking -> sched_switch", "--over", "soon"): "--over needs a time",
            ("--track", "a: sched_waking -> sched_switch", "--do", "shout"): "'shout' is not an action",
            ("--track", "a: sched_waking -> sched_switch", "--do", "snapshot:"): "is not an action"}.items():
        done = kymo("latency", *args, code=2)
        assert message in done.err, done


def test_constants_with_signs(kymo):
    """~5 is -6, as in all filters."""
    wakes = "w: sched_waking if tid >= ~5 && prio >= ~0x7fffffffffffffff -> sched_switch by tid=next_tid"
    for text, found in ((wakes, True), (wakes.replace("tid >= ", "tid < "), False)):
        done = kymo("latency", "--track", text, "--once", "--every", "500ms", "--json")
        assert bool(count_of(json.loads(done.out.splitlines()[-1]), "w")) == found
