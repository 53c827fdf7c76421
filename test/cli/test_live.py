# SPDX-License-Identifier: MIT
"""kymo print --live: traces are read while they are recorded, and what is printed is what the complete trace has."""

import fcntl
import json
import os
import re
import signal
import subprocess
import time

import pytest

from recording import Recording
from test_user import PRELUDE, box, nothing_left, pytestmark  # noqa: F401 (a fixture)

LIVE = """
ready() { [ "$(kymo sessions | grep -c ' for ')" = 1 ]; }
printed() { [ "$(grep -c "$1" live 2>/dev/null)" -ge "$2" ]; }
land() { kymo ctl --stop || exit 95; wait $recorder || exit 97; wait $reader || exit 98; }
"""


def without_times(text):
    """Lines without their times: these are known better when a recording has ended."""
    return [re.sub(r"^\[.*?\] \(.*?\) ", "", line) for line in text.splitlines()]


def same_as_complete(done, live="live", complete="complete"):
    printed = open(os.path.join(done.cwd, live), errors="replace").read()
    complete = open(os.path.join(done.cwd, complete), errors="replace").read()
    assert without_times(printed) == without_times(complete)
    return printed


def test_programs_and_kernel(box):
    """Programs come and go, and one is idle all the time: nobody waits for it, and the order is that of the trace."""
    done = box(LIVE + """
kymo record --user 'modes:*' --kernel sched_process_fork -o out & recorder=$!
wait_for ready
kymo print --live out >live 2>live.err & reader=$!
$T/modes numbers 2 100000000 & idle=$!
$T/modes numbers 100000 2000 & busy=$!
wait_for "printed modes:number 20"
for i in 1 2 3 4; do $T/modes numbers 50 0; done
wait_for "printed modes:number 250"
# The streams of one program have been idle for 10 s.
sleep 10
n=$(grep -c modes:number live)
$T/modes numbers 50 0
wait_for "printed modes:number $((n + 50))"
kill $busy $idle
land
kymo print out >complete
ls -A out/kernel out/ust/pid/*
cat live.err >&2
""" + nothing_left())
    printed = same_as_complete(done)
    assert printed.count("modes:number") > 250 and "sched_process_fork" in printed
    assert ".live" not in done.out
    assert "events may be late" not in done.err


def test_reader_that_comes_first(box):
    """The reader waits for the first program, and for events that nobody has described yet."""
    done = box(LIVE + """
kymo record --user 'modes:*' -o out & recorder=$!
wait_for ready
kymo print --live --event 'modes:other' out >live 2>live.err & reader=$!
wait_for "grep -q waiting: live.err"
$T/modes numbers 100000 2000 & busy=$!
wait_for "printed modes:other 10"
kill $busy
land
kymo print --event 'modes:other' out >complete
cat live.err >&2
""" + nothing_left())
    assert "modes:number" not in same_as_complete(done)
    assert "waiting: " in done.err


def test_head(box):
    """So many events, and the reader ends while the recording goes on."""
    done = box(LIVE + """
kymo record --user 'modes:*' -o out & recorder=$!
wait_for ready
$T/modes numbers 100000 2000 & busy=$!
kymo print --live --head 25 out >live || exit 98
kill $busy
kymo ctl --stop && wait $recorder || exit 97
kymo print --head 25 out >complete
""" + nothing_left())
    assert same_as_complete(done).count("\n") == 25


def test_killed_recorder(box):
    """The reader prints what is whole, and ends."""
    done = box(LIVE + """
kymo record --user 'modes:*' -o out & recorder=$!
wait_for ready
kymo print --live out >live & reader=$!
$T/modes numbers 100000 2000 & busy=$!
wait_for "printed modes:number 20"
kill -9 $recorder
wait $reader || exit 98
kill $busy
kymo print out >complete
rm -rf /dev/shm/kymo*
""")
    assert same_as_complete(done).count("modes:number") >= 20


class Reader:
    """kymo print --live, whose output goes to a file."""

    def __init__(self, kymo_bin, path, out):
        self.path = str(path)
        with open(self.path, "w") as file:
            self.process = subprocess.Popen([kymo_bin, "print", "--live", str(out)], stdout=file,
                                            stderr=subprocess.PIPE, text=True, errors="replace")

    def printed(self):
        return open(self.path, errors="replace").read()

    def wait_for(self, text, n=1, make=lambda: time.sleep(0.01)):
        while self.printed().count(text) < n:
            assert self.process.poll() is None, self.process.stderr.read()
            make()

    def end(self):
        _, err = self.process.communicate()
        assert self.process.returncode == 0 and not err, (self.process.returncode, err)
        return self.printed()


def run_true():
    subprocess.run(["true"], check=True)


def test_kernel_rules_change(needs_root_tracefs, kymo, kymo_bin, tmp_path):
    """An event that is switched on while a reader is there is described anew: the reader goes on behind what it has."""
    out = tmp_path / "out"
    recording = Recording(kymo, kymo_bin, needs_root_tracefs, out, "--kernel", "sched_process_exec")
    reader = Reader(kymo_bin, tmp_path / "live", out)
    reader.wait_for("sched_process_exec", 3, run_true)
    recording.ctl("--enable-kernel", "sched_process_exit")
    reader.wait_for("sched_process_exit", 3, run_true)
    recording.process.send_signal(signal.SIGINT)
    printed = reader.end()
    recording.process.communicate()
    assert without_times(printed) == without_times(kymo("print", out).out)


def test_nobody_reads(needs_root_tracefs, kymo, kymo_bin, tmp_path):
    """Without a reader nothing is written for one."""
    out = tmp_path / "out"
    recording = Recording(kymo, kymo_bin, needs_root_tracefs, out, "--kernel", "sched_switch")
    time.sleep(0.5)
    assert not (out / "kernel" / ".live").exists()
    assert recording.stop()


def test_interrupted(needs_root_tracefs, kymo, kymo_bin, tmp_path):
    """Ctrl-C is how people end it: no error. The recording goes on."""
    out = tmp_path / "out"
    recording = Recording(kymo, kymo_bin, needs_root_tracefs, out, "--kernel", "sched_switch")
    reader = Reader(kymo_bin, tmp_path / "live", out)
    reader.wait_for("sched_switch")
    reader.process.send_signal(signal.SIGINT)
    reader.end()
    assert recording.process.poll() is None
    recording.stop()


@pytest.fixture
def trace(kymo_bin, tmp_path):
    path = tmp_path / "trace"
    program = os.path.join(os.path.dirname(kymo_bin), "..", "..", "examples", "write-trace")
    subprocess.run([program, path], check=True, capture_output=True)
    return path


def test_complete_trace(kymo, trace):
    """A trace that nobody writes is printed as ever."""
    assert kymo("print", "--live", trace).out == kymo("print", trace).out


@pytest.mark.parametrize("text, place", [
    ("nonsense\n", "1"), ("kymo-live 1\nuntil x\n", "2"),
    ("kymo-live 1\nuntil 1\n12\n", "3"), ("kymo-live 1\nuntil 1\n12 a/b\n", "3")])
def test_writer_that_lies(kymo, trace, text, place):
    """What a writer says to its readers is not trusted: an error with the file and the line."""
    (trace / ".live").write_text(text)
    index = os.open(trace / "index", os.O_RDONLY)
    fcntl.flock(index, fcntl.LOCK_SH)
    err = kymo("print", "--live", trace, code=1).err
    os.close(index)
    assert f".live:{place}: " in err, err


def test_writer_that_promises_too_much(kymo, kymo_bin, tmp_path, trace):
    """More bytes than the file has, and streams that are not there: the reader prints what there is, until the writer ends."""
    streams = [name for name in os.listdir(trace) if name not in ("metadata", "index")]
    said = "kymo-live 1\nuntil 18446744073709551615\n"
    (trace / ".live").write_text(said + "".join(f"99999999999 {name}\n" for name in streams))
    index = os.open(trace / "index", os.O_RDONLY)
    fcntl.flock(index, fcntl.LOCK_SH)
    complete = kymo("print", trace).out
    reader = Reader(kymo_bin, tmp_path / "live", trace)
    reader.wait_for("\n", complete.count("\n"))
    assert reader.process.poll() is None
    os.close(index)
    assert reader.end() == complete


def test_options_that_exclude_each_other(kymo, tmp_path):
    for option in (["--count"], ["--no-output"], ["--tail", "1"], ["--begin", "+1s"], ["--end", "+1s"],
                   ["--stream-intersection"]):
        assert "--live and " + option[0] in kymo("print", "--live", *option, tmp_path, code=2).err


class Follower:
    """A command with --live, whose output goes to a file."""

    def __init__(self, kymo_bin, path, *args):
        self.path = str(path)
        with open(self.path, "w") as file:
            self.process = subprocess.Popen([kymo_bin, *map(str, args)], stdout=file,
                                            stderr=subprocess.PIPE, text=True, errors="replace")

    def end(self):
        _, err = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, err
        return open(self.path, errors="replace").read()


def objects(text):
    """JSON objects one after the other."""
    decoder, at, found = json.JSONDecoder(), 0, []
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        value, at = decoder.raw_decode(text, at)
        found.append(value)
    return found


def test_other_commands(needs_root_tracefs, kymo, kymo_bin, tmp_path):
    """Reports, counts and conversions follow, and have the events of the complete trace."""
    out = tmp_path / "out"
    recording = Recording(kymo, kymo_bin, needs_root_tracefs, out, "--kernel",
                          "sched_switch,sched_process_fork")
    report = Follower(kymo_bin, tmp_path / "report", "report", "--live", "--refresh", "200ms", "--json",
                      "cpu", out)
    info = Follower(kymo_bin, tmp_path / "info", "info", "--live", "--refresh", "200ms", "--json", out)
    lines = Follower(kymo_bin, tmp_path / "json", "convert", "--live", "--to", "json", out)
    table = Follower(kymo_bin, tmp_path / "csv", "convert", "--live", "--to", "csv", "--fields",
                     "$event,prev_comm", out)
    ctf = Follower(kymo_bin, tmp_path / "ctf", "convert", "--live", "--to", "ctf2", "-o", tmp_path / "ctf2",
                   out)
    reader = Reader(kymo_bin, tmp_path / "live", out)
    reader.wait_for("sched_process_fork", 10, run_true)
    recording.ctl("--enable-kernel", "sched_process_exit")
    reader.wait_for("sched_process_exit", 3, run_true)
    assert recording.stop()
    reader.end()
    n_events = int(kymo("print", "--count", out).out)
    complete = kymo("convert", "--to", "json", out).out
    tables = objects(report.end())
    assert len(tables) >= 2
    assert sum(table["events"] for table in tables) == n_events
    counts = [json.loads(line) for line in info.end().splitlines()]
    assert counts[-1]["events"] == n_events
    assert sum(stream["events"] for stream in counts[-1]["streams"]) == n_events
    assert {kind["name"] for kind in counts[-1]["event_types"] if kind["events"]} >= {
        "sched_switch", "sched_process_fork", "sched_process_exit"}
    without = [re.sub(r'"timestamp_ns": \d+', "", line) for line in complete.splitlines()]
    assert [re.sub(r'"timestamp_ns": \d+', "", line) for line in lines.end().splitlines()] == without
    assert table.end().count("\n") == n_events + 1
    ctf.end()
    assert int(kymo("print", "--count", tmp_path / "ctf2").out) == n_events


def test_report_as_text(needs_root_tracefs, kymo, kymo_bin, tmp_path):
    """Ctrl-C ends the report, with the tables of the last interval."""
    out = tmp_path / "out"
    recording = Recording(kymo, kymo_bin, needs_root_tracefs, out, "--kernel", "sched_switch")
    report = Follower(kymo_bin, tmp_path / "report", "report", "--live", "--refresh", "100ms", "-t", "cpus",
                      "cpu", out)
    while open(report.path).read().count("Usage of each CPU") < 3:
        assert report.process.poll() is None, report.process.stderr.read()
        run_true()
    report.process.send_signal(signal.SIGINT)
    assert "Range  " in report.end()
    assert recording.process.poll() is None
    recording.stop()


@pytest.mark.parametrize("args", [("print", "--delay", "1s"), ("print", "--live", "--delay", "1ms"),
                                  ("report", "--live", "--html", "cpu"), ("report", "--live", "--begin", "+1s", "cpu"),
                                  ("info", "--refresh", "1s"), ("convert", "--to", "json", "--live", "--tail", "1")])
def test_options_of_live(kymo, tmp_path, args):
    kymo(*args, tmp_path, code=2)


def wakeups(kymo, needs_root_tracefs, path, process, seconds=5):
    """How often threads of @process wait for something, by the kernel's own events; waits for a disk do not count."""
    kymo("record", "--kernel", "sched_switch", "--duration", f"{seconds}s", "-o", path, code=None)
    threads = " || ".join(f"prev_tid == {tid}" for tid in os.listdir(f"/proc/{process.pid}/task"))
    return int(kymo("print", "--count", "--event", "sched_switch", "--filter", f"prev_state == 1 && ({threads})", path).out)


def test_idle_recorder(needs_root_tracefs, kymo, kymo_bin, tmp_path):
    """A recorder of events that do not happen sleeps; with a reader it wakes at most twice a second."""
    out = tmp_path / "out"
    recording = Recording(kymo, kymo_bin, needs_root_tracefs, out, "--kernel", "syscall_entry_acct,syscall_exit_acct")
    # The other recorder asks for the recordings that there are when it begins and ends.
    assert wakeups(kymo, needs_root_tracefs, tmp_path / "nobody", recording.process) <= 4
    reader = Reader(kymo_bin, tmp_path / "live", out)
    reader.wait_for("lttng_statedump_end")
    time.sleep(1)
    assert wakeups(kymo, needs_root_tracefs, tmp_path / "reader", recording.process) <= 2.5 * 5 + 4
    recording.process.send_signal(signal.SIGINT)
    reader.end()
    recording.process.communicate()


SLEEPS = """
# How often threads of the recorder wait for something in 4 s, by the kernel's own events.
waits() {
	local all
	rm -rf switches
	kymo record --kernel sched_switch --duration 4s -o switches 2>switches.err || cat switches.err >&2
	all=$(ls /proc/$recorder/task | sed 's/^/prev_tid == /; s/$/ || /' | tr -d '\n')
	kymo print --count --event sched_switch --filter "prev_state == 1 && (${all% || })" switches
}
# wait_seldom WHAT MOST: at most so often. The measuring recorder asks this one twice; others, and programs that start, may do
# so at any time.
wait_seldom() {
	local n
	for i in 1 2 3 4 5 6 7 8; do
		n=$(waits); echo "$1: $n"
		[ "$n" -le $2 ] && return
	done
	kill $(jobs -p); exit 96
}
"""


def test_changes_to_known_users(needs_root_tracefs, tmp_path):
    """A process that becomes a user of whom the recorder knows wakes nobody; a new user's program is recorded."""
    script = PRELUDE + LIVE + SLEEPS + """
setpriv --reuid 65534 --clear-groups sleep 1000 & nobody=$!
kymo record --user 'modes:*' -o out 2>recorder.err & recorder=$!
wait_for ready
sleep 1
while :; do setpriv --reuid 65534 --clear-groups true; sleep 0.1; done & changes=$!
wait_seldom "changes" 10
kill $changes $nobody
setpriv --reuid 64321 --clear-groups $T/modes numbers 10 100000
kymo ctl --stop || exit 95
wait $recorder || exit 97
cat recorder.err >&2
""" + nothing_left()
    done = subprocess.run(["unshare", "-m", "bash", "-c", script], cwd=tmp_path, capture_output=True, text=True,
                          timeout=240, errors="replace", env=dict(os.environ, LC_ALL="C.UTF-8", TZ="UTC"))
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    assert "; 0 lost" in done.stderr and "modes" in done.stderr


def test_idle_trigger_of_programs(needs_root_tracefs, tmp_path):
    """A trigger whose filter no event passes wakes the recorder at most twice a second, also while the program writes."""
    script = PRELUDE + LIVE + SLEEPS + """
$T/modes numbers 100000000 1000 & program=$!
kymo record --user 'modes:other' --when 'modes:number if i < 0' --do mark -o out 2>recorder.err & recorder=$!
wait_for ready
sleep 2
wait_seldom "trigger" 15
kymo ctl --stop || exit 95
wait $recorder || exit 97
kill $program
""" + nothing_left()
    done = subprocess.run(["unshare", "-m", "bash", "-c", script], cwd=tmp_path, capture_output=True, text=True,
                          timeout=240, errors="replace", env=dict(os.environ, LC_ALL="C.UTF-8", TZ="UTC"))
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)


@pytest.mark.parametrize("kernel", ["", "--kernel syscall_entry_acct,syscall_exit_acct"])
def test_idle_programs(needs_root_tracefs, tmp_path, kernel):
    """
    Programs that write nothing wake no recorder, and none at all does not; with a reader it wakes at most twice a
    second, and the reader still has an event soon.
    """
    script = PRELUDE + LIVE + SLEEPS + f"""
kymo record --user 'modes:*' {kernel} -o out 2>recorder.err & recorder=$!
wait_for ready
sleep 1
wait_seldom "no program, nobody reads" 5
$T/modes numbers 2 1000000000 & idle=$!
$T/modes numbers 2 1000000000 & idle="$idle $!"
wait_for '[ "$(ls out/ust/pid 2>/dev/null | wc -l)" = 2 ]'
sleep 1
wait_seldom "programs, nobody reads" 5
kymo print --live out >live 2>live.err & reader=$!
wait_for "printed modes:number 2"
sleep 1
wait_seldom "a reader" 15
$T/modes numbers 1000 4000000 & slow=$!
wait_for "printed modes:number 4"
kill $slow $idle
wait $slow $idle
sleep 1
wait_seldom "a reader, no program" 15
land
kymo print out >complete
cat recorder.err live.err >&2
""" + nothing_left()
    done = subprocess.run(["unshare", "-m", "bash", "-c", script], cwd=tmp_path, capture_output=True, text=True,
                          timeout=240, errors="replace", env=dict(os.environ, LC_ALL="C.UTF-8", TZ="UTC"))
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    assert "; 0 lost" in done.stderr and "Sanitizer" not in done.stderr
    assert without_times((tmp_path / "live").read_text()) == without_times((tmp_path / "complete").read_text())


@pytest.mark.parametrize("end", ["kill -KILL", "kill -USR1"])
def test_exit_wakes_a_sleeping_recorder(needs_root_tracefs, tmp_path, end):
    """
    A recorder that sleeps learns of a program's exit from the kernel, and completes its trace. It does not look again and
    again until it sees that: between both, its threads wait a few times only.
    """
    script = PRELUDE + LIVE + SLEEPS + f"""
all_slept() {{ local n=0 t; for t in $(ls /proc/$recorder/task); do n=$((n + $(slept $recorder/task/$t))); done; echo $n; }}
kymo record --user 'modes:*' -o out 2>recorder.err & recorder=$!
wait_for ready
$T/modes numbers 2 1000000000 & stays=$!
$T/modes numbers 2 1000000000 & ends=$!
wait_for '[ "$(ls out/ust/pid 2>/dev/null | wc -l)" = 2 ]'
sleep 1
wait_seldom "programs" 5
before=$(all_slept)
{end} $ends; wait $ends
wait_for '! ls /dev/shm/kymo-0/*/$ends-*.ring 2>/dev/null'
waits=$(($(all_slept) - before)); echo "until it knew: $waits"
[ $waits -le 60 ] || exit 95
ls /dev/shm/kymo-0/*/$stays-*.ring || exit 94
kymo info --count out/ust/pid/modes-$ends-* >info || exit 93
wait_seldom "one program" 5
kill $stays; wait $stays
kill -TERM $recorder; wait $recorder || exit 92
cat recorder.err >&2
""" + nothing_left()
    done = subprocess.run(["unshare", "-m", "bash", "-c", script], cwd=tmp_path, capture_output=True, text=True,
                          timeout=240, errors="replace", env=dict(os.environ, LC_ALL="C.UTF-8", TZ="UTC"))
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    assert "; 0 lost" in done.stderr and "nothing lost" in (tmp_path / "info").read_text()


def test_delay(needs_root_tracefs, kymo, kymo_bin, tmp_path):
    """The first event after a pause comes soon, though the recorder slept."""
    out = tmp_path / "out"
    recording = Recording(kymo, kymo_bin, needs_root_tracefs, out, "--kernel", "sched_process_exec")
    reader = Reader(kymo_bin, tmp_path / "live", out)
    for n in range(1, 4):
        time.sleep(1.5)
        subprocess.run(["/bin/true"], check=True)
        reader.wait_for('filename = "/bin/true"', n)
    recording.process.send_signal(signal.SIGINT)
    reader.end()
    recording.process.communicate()
