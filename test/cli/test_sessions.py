# SPDX-License-Identifier: MIT
"""Recordings in the background: they begin, are listed and changed by name, and end, one beside the other."""

import json
import os
import signal
import subprocess
import time

import pytest

from test_user import box, names  # noqa: F401 (a fixture)

pytestmark = pytest.mark.usefixtures("needs_root_tracefs")


@pytest.fixture
def session(kymo, tmp_path):
    """session(name, *options) -> its directory; what runs at the end is stopped."""
    made = []

    def begin(name, *options, code=0):
        out = tmp_path / name
        done = kymo("record", "--name", name, "--background", "-o", out, *options, code=code)
        if not code:
            made.append(name)
        return out, done

    yield begin
    running = {one.get("name") for one in sessions(kymo)}
    for name in made:
        if name in running:
            kymo("stop", name)


def sessions(kymo):
    return json.loads(kymo("sessions", "--json").out)["recordings"]


def named(kymo, name):
    found, = [one for one in sessions(kymo) if one.get("name") == name]
    return found


def events_of(kymo, trace):
    return {json.loads(line)["event"] for line in kymo("convert", "--to", "json", trace).out.splitlines()}


def test_three_at_once(kymo, session):
    """An engineer, an operator and a flight recorder: each has its own events, and its own end."""
    engineer, said = session("engineer", "-k", "sched_switch", "--statedump=none")
    assert "Recording in the background: engineer" in said.err and "kymo stop engineer" in said.err
    operator, _ = session("operator", "-k", "sched_waking", "--user", "operator:*", "--statedump=none")
    always, _ = session("always", "--overwrite", "-k", "sched_wakeup", "--statedump=none")
    assert {"engineer", "operator", "always"} <= {one.get("name") for one in sessions(kymo)}
    assert named(kymo, "always")["mode"] == "flight" and named(kymo, "operator")["mode"] == "trace"
    # The recorders' own switches are events, too.
    end = time.monotonic() + 60
    while not named(kymo, "engineer")["events"]:
        assert time.monotonic() < end
        time.sleep(0.05)
    kymo("snapshot", "always")
    kymo("ctl", "operator", "--enable-kernel", "sched_process_exec")
    subprocess.run(["/bin/true"], check=True)
    done = kymo("stop", "operator")
    assert "Recorded " in done.err and "; 0 lost." in done.err
    # The others go on.
    assert {one.get("name") for one in sessions(kymo)} >= {"engineer", "always"}
    assert not any(one.get("name") == "operator" for one in sessions(kymo))
    for name in ("engineer", "always"):
        kymo("stop", name)
    assert events_of(kymo, engineer) == {"sched_switch"}
    assert events_of(kymo, operator) == {"sched_waking", "sched_process_exec"}
    assert events_of(kymo, always) == {"sched_wakeup"}
    assert events_of(kymo, f"{always}-snapshot-1") == {"sched_wakeup"}


AS_NOBODY = "setpriv --reuid 65534 --regid 65534 --clear-groups"


def test_three_users_of_one_program(box):
    """
    An engineer without root, an operator and a flight recorder record one program, and the kernel: changes, pauses and
    the end of one recording leave the others alone.
    """
    done = box(f"""
mkdir -m 777 theirs && chmod 755 .
begun() {{ kymo sessions | grep -q "^$1 "; }}
joined() {{ [ $(ls /dev/shm/kymo-65534/*/*.ring 2>/dev/null | wc -l) = 3 ]; }}
status() {{ kymo ctl $1 --status --json >$2.json; }}
{AS_NOBODY} $T/modes numbers 10000000 200 & a=$!
(cd theirs; {AS_NOBODY} kymo record --name engineer --background --user 'modes:*' -o engineer) || exit 97
kymo record --name operator --background -k sched_process_exec --user 'modes:number' -o operator || exit 96
kymo record --name always --background --overwrite -k sched_process_exec --user 'modes:*' -o always || exit 95
wait_for joined
sleeps $a 100
(cd theirs; {AS_NOBODY} kymo ctl engineer --disable-event modes:other) || exit 94
kymo ctl operator --pause || exit 93
sleeps $a 20
status operator paused
(cd theirs; {AS_NOBODY} kymo ctl operator --status) && exit 92
/bin/true
sleeps $a 500
status operator still
kymo snapshot -o snap always || exit 91
kymo stop operator || exit 90
sleeps $a 100
(cd theirs; {AS_NOBODY} kymo stop engineer) || exit 89
sleeps $a 50
kymo stop always || exit 88
kill $a
""")

    def program(where):
        trace, = done.traces(where)
        return names(trace)

    def status(name):
        with open(os.path.join(done.cwd, name + ".json"), encoding="utf-8") as file:
            return json.load(file)

    paused, still = status("paused"), status("still")
    assert paused["state"] == still["state"] == "paused"
    assert [one["events"] for one in paused["program_list"]] == [one["events"] for one in still["program_list"]]
    engineer, operator, always, snap = map(program, ("theirs/engineer", "operator", "always", "snap"))
    # The engineer's rule changed for the engineer alone, the operator's pause for the operator.
    assert set(engineer[:100]) == {"modes:number", "modes:other"} and set(engineer[-100:]) == {"modes:number"}
    assert set(operator) == {"modes:number"} and len(operator) < engineer.count("modes:number")
    assert set(snap[-100:]) == set(always[-100:]) == {"modes:number", "modes:other"}
    assert done.err.count("; 0 lost.") == 3, done.err
    # So did the kernel's events.
    kernel = {}
    for where in ("operator", "always", "snap"):
        peer = subprocess.run(["babeltrace2", os.path.join(done.cwd, where, "kernel")], capture_output=True, text=True,
                              check=True)
        kernel[where] = peer.stdout.count('filename = "/bin/true"')
    assert kernel["operator"] == 0 and kernel["always"] >= 1 and kernel["snap"] >= 1
    assert not os.path.exists(os.path.join(done.cwd, "theirs", "engineer", "kernel"))


def test_the_log_has_what_the_recorder_said(kymo, session):
    out, _ = session("logged", "-k", "sched_switch")
    log = out / "recorder.log"
    assert log.stat().st_mode & 0o777 == 0o600
    done = kymo("stop", "logged")
    assert log.read_text() == done.err
    # It is no part of the trace.
    assert kymo("print", out).code == 0


def test_a_recording_that_cannot_begin(kymo, session):
    _, done = session("wrong", "-k", "no_such_event", code=1)
    assert "no event 'no_such_event'" in done.err and "background" not in done.err
    assert not any(one.get("name") == "wrong" for one in sessions(kymo))


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", ".x", "17", "x" * 65, "ä"])
def test_names_that_are_none(kymo, tmp_path, name):
    done = kymo("record", "--name", name, "-o", tmp_path / "out", "-d", "1ms", code=2)
    assert "--name:" in done.err and not (tmp_path / "out").exists()


def test_a_name_is_one_recordings(kymo, session, tmp_path):
    session("mine", "-k", "sched_switch")
    done = kymo("record", "--name", "mine", "-o", tmp_path / "other", "-k", "sched_switch", code=1)
    assert "'mine' runs already" in done.err and "kymo stop mine" in done.err


def test_beside_a_suspended_recorder(kymo, session, tmp_path):
    """Another recorder that does not answer is no reason not to find one by its name."""
    session("asleep", "-k", "sched_wakeup", "--statedump=none")
    session("awake", "-k", "sched_wakeup", "--statedump=none")
    pid = named(kymo, "asleep")["pid"]
    os.kill(pid, signal.SIGSTOP)
    try:
        assert "awake" in kymo("ctl", "awake", "--status").out
        assert "Recorded " in kymo("stop", tmp_path / "awake").err
        assert "did not answer" in kymo("ctl", "asleep", "--status", code=1).err
    finally:
        os.kill(pid, signal.SIGCONT)
    assert "Recorded " in kymo("stop", "asleep").err


def test_it_ends_with_its_time_or_its_command(kymo, tmp_path):
    for options in (("-d", "100ms"), ("--", "sleep", "0.1")):
        out = tmp_path / f"out{len(options)}"
        kymo("record", "--name", "short", "--background", "-k", "sched_switch", "-o", out, *options[:2] if options[0] == "-d"
             else options)
        end = time.monotonic() + 60
        while any(one.get("name") == "short" for one in sessions(kymo)) or \
                "Recorded" not in (out / "recorder.log").read_text():
            assert time.monotonic() < end
            time.sleep(0.02)
        assert events_of(kymo, out) >= {"sched_switch"}


def test_stop_of_one_in_the_foreground(kymo, kymo_bin, tmp_path):
    out = tmp_path / "out"
    recorder = subprocess.Popen([kymo_bin, "record", "--name", "front", "-k", "sched_switch", "-o", out],
                                stderr=subprocess.PIPE, text=True)
    end = time.monotonic() + 60
    while not any(one.get("name") == "front" for one in sessions(kymo)):
        assert time.monotonic() < end and recorder.poll() is None
        time.sleep(0.02)
    done = kymo("stop", "front")
    assert done.err == f"Stopped: {os.path.realpath(out)}\n"
    # The trace is complete when kymo stop returns.
    assert recorder.poll() is not None or recorder.wait(timeout=10) == 0
    assert "Recorded " in recorder.stderr.read()
    assert "no recording 'front' is running" in kymo("stop", "front", code=1).err


def test_changes_are_shown(kymo, session):
    session("changed", "-k", "sched_switch", "--statedump=none")
    kymo("ctl", "changed", "--enable-kernel", "irq_handler_entry")
    kymo("ctl", "changed", "--disable-kernel", "sched_switch")
    kymo("ctl", "changed", "--add-pid", str(os.getpid()))
    assert named(kymo, "changed")["changes"] == [
        "enable-kernel irq_handler_entry", "disable-kernel sched_switch", f"add-pid {os.getpid()}"]
    assert "then ctl --disable-kernel sched_switch" in kymo("sessions").out


def test_two_of_one_name_at_once(kymo_bin, kymo, tmp_path):
    """One of them has it; the other one says so."""
    both = [subprocess.Popen([kymo_bin, "record", "--name", "twin", "--background", "-o", tmp_path / f"{i}", "-k", "sched_switch",
                              "--statedump=none"], stderr=subprocess.PIPE, text=True) for i in range(2)]
    said = [one.communicate(timeout=60)[1] for one in both]
    assert sorted(one.returncode for one in both) == [0, 1], said
    assert "a recording 'twin' runs already" in "".join(said)
    kymo("stop", "twin")


def test_a_failure_is_told_by_stop(kymo, tmp_path):
    """The disk is full: kymo stop says so, and fails, though the log could not be written."""
    disk = tmp_path / "disk"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "none", disk], check=True)
    try:
        kymo("record", "--name", "full", "--background", "-o", disk / "out", "-k", "sched_waking", "--statedump=none")
        with open(disk / "filler", "wb") as filler:
            try:
                filler.write(bytes(4 << 20))
                filler.flush()
            except OSError:
                pass
        for _ in range(200):
            subprocess.run(["true"], check=True)
        done = kymo("stop", "full", code=1)
        # It may have ended already, or just now.
        assert any(said in done.err for said in ("No space left", "no recording 'full' is running", "the recorder ended without an answer",
                                                 "the recorder is gone")), done.err
    finally:
        subprocess.run(["umount", "-l", disk], check=True)


def test_whoever_waits_is_killed(kymo_bin, kymo, tmp_path):
    """The user has given up before the recording began: it does not go on unseen."""
    waiter = subprocess.Popen([kymo_bin, "record", "--name", "unseen", "--background", "-o", tmp_path / "out", "-k", "*"],
                              stderr=subprocess.DEVNULL)
    time.sleep(0.05)
    waiter.terminate()
    if waiter.wait(timeout=30) == 0:
        kymo("stop", "unseen")
        pytest.skip("the recording had begun")
    end = time.monotonic() + 60
    while subprocess.run(["pgrep", "-f", "record --name unseen"], stdout=subprocess.DEVNULL, check=False).returncode == 0:
        assert time.monotonic() < end
        time.sleep(0.1)


# ---- profiles ------------------------------------------------------------------------------------

def test_a_saved_profile_is_the_same_recording(kymo, tmp_path):
    profile = tmp_path / "profile"
    kymo("record", "-o", tmp_path / "one", "-k", "sched_switch if prev_tid != 0", "-k", "sched_waking", "--statedump=none",
         "-b", "1M", "-d", "50ms", "--save", profile)
    assert profile.stat().st_mode & 0o777 == 0o600
    assert profile.read_text().splitlines()[1:] == [
        "kernel=sched_switch if prev_tid != 0", "kernel=sched_waking", "statedump=none", "buffer-size=1M", "duration=50ms"]
    kymo("record", "--profile", profile, "-o", tmp_path / "two")
    lines = kymo("convert", "--to", "json", tmp_path / "two").out.splitlines()
    found = [json.loads(line) for line in lines]
    assert {event["event"] for event in found} == {"sched_switch", "sched_waking"}
    assert all(event["fields"]["prev_tid"] for event in found if event["event"] == "sched_switch")


def test_a_saved_profile_is_the_users_own(kymo, tmp_path):
    profile = tmp_path / "profile"
    profile.write_text("old")
    profile.chmod(0o666)
    kymo("record", "-o", tmp_path / "out", "-k", "sched_waking", "-d", "10ms", "--save", profile)
    assert profile.stat().st_mode & 0o777 == 0o600 and "old" not in profile.read_text()


def test_how_a_profile_is_written(kymo, tmp_path):
    """Three spellings, comments and empty lines; the command line has the last word."""
    (tmp_path / "profile").write_text("# what we always want\n\n--kernel sched_switch\n  kernel = sched_waking \n"
                                      "statedump none\nduration=1h\n")
    kymo("record", "--profile", tmp_path / "profile", "-d", "50ms", "-o", tmp_path / "out")
    assert events_of(kymo, tmp_path / "out") <= {"sched_switch", "sched_waking"}


@pytest.mark.parametrize("text, place, message", [
    ("kernel=sched_switch\nbogus=1\n", ":2: ", "unknown option --bogus"),
    ("overwrite=yes\n", ":1: ", "--overwrite takes no value"),
    ("\n\nkernel\n", ":3: ", "--kernel needs a value"),
    ("buffer-size=huge\n", ":1: ", "--buffer-size needs a size"),
    ("profile=x\n", ":1: ", "--profile is not allowed in a profile"),
    ("kernel=sched_switch\0\n", ": ", "this profile is not a text"),
])
def test_profiles_with_mistakes(kymo, tmp_path, text, place, message):
    (tmp_path / "profile").write_text(text)
    done = kymo("record", "--profile", tmp_path / "profile", "-o", tmp_path / "out", "-d", "1ms", code=2)
    assert f"{tmp_path}/profile{place}" in done.err and message in done.err
    assert not (tmp_path / "out").exists()


def test_profiles_that_cannot_be_read(kymo, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    for name in ("nothing", "fifo"):
        assert "cannot read the profile" in kymo("record", "--profile", tmp_path / name, "-d", "1ms", code=1).err


# ---- names instead of directories ----------------------------------------------------------------

def test_a_name_is_a_trace(kymo, session, tmp_path):
    """Commands that read take a recording's name; a directory of that name comes first."""
    out, _ = session("reading", "-k", "sched_switch", "--statedump=none")
    end = time.monotonic() + 60
    while not named(kymo, "reading")["events"]:
        assert time.monotonic() < end
        time.sleep(0.05)
    kymo("rotate", "reading")
    assert str(out) in kymo("info", "reading", cwd=tmp_path.parent).out
    assert "sched_switch" in kymo("print", "--live", "--head", "3", "reading", cwd=tmp_path.parent).out
    assert "CPU" in kymo("report", "cpu", "reading", cwd=tmp_path.parent).out
    (tmp_path / "away").mkdir()
    (tmp_path / "away" / "reading").mkdir()
    assert "no trace here" in kymo("info", "reading", cwd=tmp_path / "away", code=1).err


def test_names_are_completed(kymo, session, kymo_bin, tmp_path):
    session("first-one", "-k", "sched_switch")
    session("second-one", "-k", "sched_switch")
    assert {"first-one", "second-one"} <= set(kymo("sessions", "--names").out.split())
    script = tmp_path / "completion"
    script.write_text(kymo("completion", "bash").out)
    (tmp_path / "first-file").write_text("")
    for command, wanted in (("stop", {"first-one"}), ("print", {"first-one", "first-file"})):
        done = subprocess.run(["bash", "-c", f". {script}; COMP_WORDS=(kymo {command} fir); COMP_CWORD=2; _kymo; "
                                             "printf '%s\\n' \"${COMPREPLY[@]}\""], cwd=tmp_path, capture_output=True,
                              text=True, check=True, env=dict(os.environ, PATH=f"{os.path.dirname(kymo_bin)}:/usr/bin:/bin"))
        assert set(done.stdout.split()) == wanted
