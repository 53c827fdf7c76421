# SPDX-License-Identifier: MIT
"""libkymo-trace in programs that live and die: sessions come and go under them, they fork, exec and load
libraries, and what they need is missing, full or damaged. Events themselves are test_tracer.py's.
"""

import os
import random
import re
import shutil
import subprocess
import time

import pytest

from test_tracer import (BUILD, FIELD, INT, KYMO, MODES, PLUGIN, SANITIZE, SHOP, TEXT, bare, bt2, names,
                         pytestmark, recorded, session, trace_of)  # noqa: F401 (a fixture)
from user_session import OVERWRITE, PREALLOCATE, TSC, Control, Rule, session_bytes


# ---- programs that run already ----

@pytest.fixture
def loop(session):
    """A program that hits an event all the time."""
    program = subprocess.Popen(session.command(MODES, "loop"), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, text=True)
    assert program.stdout.readline() == "ready\n"
    yield program
    program.stdin.close()
    assert program.wait(timeout=240) == 0


def eventually(what, seconds=200):
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "never happened"
        time.sleep(0.01)


def run_for(pid, seconds):
    """Until the program has had so much of a CPU."""
    def used():
        with open(f"/proc/{pid}/schedstat", encoding="ascii") as file:
            return int(file.read().split()[0])

    end = used() + seconds * 1e9
    eventually(lambda: used() >= end)


def joined(control, session, i=0):
    return control.slot(i)["joined"] == session.cookie


def test_running_program_joins_and_leaves(session, tmp_path, loop):
    control = Control(loop.pid)
    assert {f"{event.provider}:{event.name}" for event in control.events()} > {"modes:loop"}
    assert control.enabled() == 0 and not session.rings()
    # Nobody reads meanwhile, and on a busy machine that is long: few of the many.
    few = [FIELD("i"), INT(1000), "%", "!"]
    session.start([Rule("modes:*", levels=(0, 13), code=few)], subbuf_bytes=1 << 16, n_subbufs=64)
    control.ask(session)
    eventually(lambda: joined(control, session))
    slot = control.slot(0)
    assert (slot["reason"], slot["joined_pid"]) == (0, loop.pid)
    wanted = [(event.page, event.enable_byte) for event in control.events()
              if event.provider == "modes" and event.log_level <= 13]
    assert slot["n_events"] == len(wanted)
    # Two events may share a byte.
    assert control.enabled() == len(set(wanted)), "what is not wanted was disabled again"
    run_for(loop.pid, 0.02)
    control.stop()
    eventually(lambda: control.enabled() == 0)
    eventually(lambda: control.slot(0)["owner"] == 0)  # the slot is free again
    events, blob = recorded(session, tmp_path)
    numbers = [int(event.split("i = ")[1].split()[0]) for event in events]
    assert numbers == list(range(numbers[0], numbers[-1] + 1, 1000)), "none is missing"
    assert numbers[0] % 1000 == 0 and len(numbers) > 10
    assert blob.pid == loop.pid
    # And again, in another session.
    os.unlink(session.rings()[0])
    session.start([Rule("modes:loop")])
    control.ask(session, names=["loop"])
    eventually(lambda: joined(control, session) and session.rings())


def test_session_changes(session, tmp_path, loop):
    """A new session file with the old uuid: the same ring, the same ids, other events."""
    control = Control(loop.pid)
    session.start([Rule("modes:loop")], flags=OVERWRITE)
    control.ask(session)
    eventually(lambda: joined(control, session))
    session.start([Rule("modes:noise", code=[("field", "i"), ("int", 4), "%", "!"])],
                  flags=OVERWRITE, uuid=session.uuid)
    control.ask(session)
    eventually(lambda: joined(control, session))
    assert len(session.rings()) == 1
    run_for(loop.pid, 0.02)
    control.stop()
    eventually(lambda: control.enabled() == 0)


@pytest.mark.parametrize("break_it, reason", [
    (lambda s: s.die(), 5),
    (lambda s: shutil.rmtree(s.path), 2),
    (lambda s: os.chmod(s.path, 0o777), 3),
    (lambda s: os.chown(s.path, 1234, 0), 3),
    (lambda s: os.truncate(s.path + "/session", 100), 4),
    (lambda s: os.truncate(s.path + "/session", 165), 4),
])
def test_session_that_cannot_be_joined(session, loop, break_it, reason):
    control = Control(loop.pid)
    session.start([Rule("*")])
    break_it(session)
    control.ask(session)
    eventually(lambda: joined(control, session))
    assert control.slot(0)["reason"] == reason
    eventually(lambda: control.enabled() == 0)
    control.stop()


def test_version(session, tmp_path):
    session.start([Rule("*")], version=2)
    assert session.run(MODES, "once", "x", capture_output=True, text=True).stdout == "on\n"
    assert not session.rings()


def test_killed_program(session, tmp_path):
    session.start([Rule("modes:loop")], subbuf_bytes=1 << 20, n_subbufs=16)
    program = subprocess.Popen(session.command(MODES, "loop"), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    assert program.stdout.readline() == b"ready\n"
    run_for(program.pid, 0.02)
    program.kill()
    program.wait()
    program.stdin.close()
    events, _ = recorded(session, tmp_path)
    assert len(events) > 1
    assert [event.split("i = ")[1] for event in events[:2]] == ["0 }", "1 }"]


# ---- processes ----

def test_fork(session, tmp_path):
    session.start([Rule("modes:*")], contexts=["vpid"])
    session.run(MODES, "fork")
    events, blob = recorded(session, tmp_path)  # one ring: children go on in their parent's
    pids = {name: set() for name in names(events)}
    for event in events:
        pids[event.split(": ")[0]].add(int(re.search(r"vpid = (\d+)", event).group(1)))
    assert names(events).count("modes:child") == names(events).count("modes:parent") == 1000
    assert pids["modes:parent"] == pids["modes:before"] == {blob.pid}
    assert blob.pid not in pids["modes:child"] | pids["modes:clone_child"]
    assert "modes:vfork_child" in pids


def test_exec(session, tmp_path):
    session.start([Rule("modes:*")])
    session.run(MODES, "exec", MODES, "once", "after")
    traces = [bt2(trace_of(ring, tmp_path)[0]) for ring in session.rings()]
    assert sorted(names(sum(traces, []))) == ["modes:before_exec", "modes:once"]
    assert len(traces) == 2


def test_daemon(session, tmp_path):
    session.start([Rule("modes:*")])
    session.run(MODES, "daemon")
    found = []

    def both():  # what was read once, is not there the next time
        found.extend(names(recorded(session, tmp_path)[0]))
        return found == ["modes:daemon", "modes:closed"]

    eventually(both)


def test_setuid(session, tmp_path):
    session.start([Rule("modes:*")], subbuf_bytes=4096, n_subbufs=1024)
    session.run(MODES, "setuid", 50000)
    assert len(recorded(session, tmp_path)[0]) == 50001


def test_libraries_come_and_go(session, tmp_path):
    session.start([Rule("plugin:*")])
    session.run(MODES, "dlopen", PLUGIN, 300)
    events, blob = recorded(session, tmp_path)
    assert events == [f"plugin:work: {{ n = {i} }}" for i in range(300)]
    assert len(blob.events) == 1


def test_child_that_loads_a_library(session, tmp_path):
    session.start([Rule("plugin:*"), Rule("modes:*")])
    session.run(MODES, "fork-dlopen", PLUGIN, 3)
    traces = sorted(bt2(trace_of(ring, tmp_path)[0]) for ring in session.rings())
    assert traces == [["modes:child_before: { }", "modes:parent_after: { }"],
                      *[[f"plugin:work: {{ n = {i} }}" for i in range(3)]
                        + ["modes:child_after: { }"]]]


def test_reused_descriptor(session, tmp_path):
    """A program closes the control file, and opens another by its number: that one is not touched."""
    with open(tmp_path / "file", "w+", encoding="ascii") as file:
        session.run(MODES, "reused-dlopen", PLUGIN, 3, stdin=file)
        assert os.fstat(file.fileno()).st_size == 0


def test_signals(session, tmp_path):
    session.start([Rule("modes:*")], subbuf_bytes=65536, n_subbufs=1024)
    done = session.run(MODES, "signal", 300000, capture_output=True, text=True)
    n, n_signals = map(int, done.stdout.split())
    events, _ = recorded(session, tmp_path)
    found = names(events)
    assert (found.count("modes:main"), found.count("modes:signal")) == (n, n_signals)
    assert n_signals > 10


def test_threads(session, tmp_path):
    session.start([Rule("modes:thread")], subbuf_bytes=65536, n_subbufs=512)
    session.run(MODES, "threads", 8, 50000)
    events, blob = recorded(session, tmp_path)
    # Who hits while another thread takes the new session in goes without: counted, once at least.
    # ThreadSanitizer's build writes with the ring's locks, and loses what meets a preempted owner.
    lost = 4000 if "-fsanitize=thread" in SANITIZE else 0
    assert len(events) <= 400000 <= len(events) + blob.lost_joining + lost


def test_losses_are_counted(session, tmp_path):
    session.start([Rule("modes:thread")], subbuf_bytes=4096, n_subbufs=2)
    session.run(MODES, "threads", 1, 50000)
    [ring] = session.rings()
    path, _ = trace_of(ring, tmp_path)
    done = subprocess.run([KYMO, "print", path], capture_output=True, text=True, check=True)
    lost = sum(int(n) for n in re.findall(r"discarded (\d+) events?", subprocess.run(
        ["babeltrace2", path], capture_output=True, text=True, check=True).stderr))
    found = len(done.stdout.splitlines())
    assert 0 < found < 50000
    # What was lost after the last packet shows with the next one, which never came.
    assert found + lost <= 50000


def test_threads_while_sessions_come_and_go(session):
    program = subprocess.Popen(session.command(MODES, "endless", 4), stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE)
    program.stdout.readline()
    control = Control(program.pid)
    for _ in range(50):
        session.start([Rule("modes:thread")], flags=OVERWRITE)
        control.ask(session)
        eventually(lambda: joined(control, session))
        control.stop()
        eventually(lambda: control.slot(0)["owner"] == 0)
        for ring in session.rings():
            os.unlink(ring)
    program.stdin.close()
    assert program.wait(timeout=240) == 0


# ---- what is missing or full ----

def shell(session, script, *argv):
    """Run a program in the session's private mounts, after @script."""
    return subprocess.run(session.command("sh", "-c", script + '; exec "$@"', "sh", *argv),
                          capture_output=True, text=True, timeout=240, check=False)


@bare
def test_file_size_limit(session):
    session.start([Rule("*")])
    done = shell(session, "ulimit -f 0", MODES, "once")
    assert (done.returncode, done.stdout) == (
        0, "the limit for file sizes (ulimit -f) is too low\n")
    done = shell(session, "ulimit -f 35000", MODES, "once")
    assert done.returncode == 0 and done.stdout in (
        "on\n", "the limit for file sizes (ulimit -f) is too low\n")


@bare
def test_no_space(session):
    session.start([Rule("*")], subbuf_bytes=1 << 20)
    script = ("mkdir /run/kymo/u0/full && mount -t tmpfs -o size=64k none /run/kymo/u0/full && "
              "chmod 700 /run/kymo/u0/full")
    done = shell(session, script, MODES, "once")
    assert done.returncode == 0
    # A session in a file system without room: every page that is written was asked for before.
    path = os.path.join(session.runtime, "full")
    os.makedirs(path, exist_ok=True)
    script = ("mount -t tmpfs -o size=60k,mode=700 none /run/kymo/u0/full && "
              "cp /run/kymo/u0/test/session /run/kymo/u0/full/ && "
              "rm -r /run/kymo/u0/test && flock -o /run/kymo/u0/full/session true")
    done = shell(session, script, MODES, "threads", 4, 100000)
    assert (done.returncode, done.stderr) == (0, "")


@bare
def test_no_proc(session, tmp_path):
    session.start([Rule("*")], contexts=["net_ns", "vpid"])
    # The loader finds $ORIGIN through /proc.
    library = os.path.join(BUILD, "src", "tracer")
    done = shell(session, f"export LD_LIBRARY_PATH={library}; mount -t tmpfs none /proc", MODES,
                 "once")
    assert (done.returncode, done.stdout) == (0, "on\n")
    assert "net_ns = 0, vpid" in recorded(session, tmp_path)[0][0]


@bare
def test_sandbox(session, tmp_path):
    """After seccomp no system call may be made; the session asked for memory in advance."""
    session.start([Rule("modes:*")], clock=TSC, subbuf_bytes=4096, n_subbufs=16,
                  flags=OVERWRITE | PREALLOCATE)
    session.run(MODES, "seccomp", 50000)


@bare
def test_few_files(session, tmp_path):
    session.start([Rule("*")])
    done = shell(session, "ulimit -n 4", MODES, "once")
    assert done.returncode == 0


def test_dead_recorder(session):
    session.start([Rule("*")])
    session.die()
    done = session.run(MODES, "once", capture_output=True, text=True)
    assert done.stdout == "on\n" and not session.rings()


def test_others_directory(session):
    """A directory that somebody else could write to is not looked at."""
    session.start([Rule("*")])
    os.chmod(session.runtime, 0o777)
    session.run(MODES, "once")
    os.chmod(session.runtime, 0o755)
    os.chown(session.path, 1234, 1234)
    session.run(MODES, "once")
    assert not session.rings()


@bare
def test_damaged_session_files(session):
    """Whatever a session file holds, programs that start are not harmed."""
    data = session_bytes([Rule("shop:*", exclude=["a", "b"], code=[
        FIELD("n"), INT(3), "==", ("and", 7), FIELD("id"), TEXT("x"), "=~"])], contexts=["vpid"])
    session.start([Rule("*")])
    path = os.path.join(session.path, "session")
    script = f'for f in {session.root}/damaged/*; do cat "$f" > {path} && "$@" || exit 9; ' \
             'rm -f /run/kymo/u0/test/*.ring; done; set -- true'
    damaged = os.path.join(session.root, "damaged")
    os.mkdir(damaged)
    random.seed(1)
    for i in range(150):
        bad = bytearray(data)
        for _ in range(random.randrange(1, 5)):
            at = random.randrange(16, len(bad))
            bad[at] = random.choice([0, 1, 0xff, 0x80, random.randrange(256)])
        if i % 10 == 0:
            bad = bad[:random.randrange(len(bad))]
        with open(os.path.join(damaged, str(i)), "wb") as file:
            file.write(bad)
    done = shell(session, script, SHOP, 1)
    assert done.returncode == 0
