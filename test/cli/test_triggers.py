# SPDX-License-Identifier: MIT
"""Triggers: each kind of condition and of action, with the real kernel and real programs."""

import json
import os
import subprocess
import time

import pytest

pytestmark = pytest.mark.usefixtures("needs_root_tracefs")

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
WAIT_S = 60


@pytest.fixture(scope="module")
def shop(kymo_bin):
    path = os.path.join(os.path.dirname(kymo_bin), "..", "..", "test", "tracer", "shop")
    if not os.access(path, os.X_OK):
        pytest.skip(f"{path} is not built")
    return path


@pytest.fixture
def begin(kymo, tmp_path):
    """begin(*options) -> the directory of a recording in the background, which ends with the test."""
    names = []

    def start(*options, mode=("--overwrite",), events=("-k", "sched_process_exit", "--statedump=none"), code=0):
        name = f"trig{os.getpid()}-{len(names)}"
        out = tmp_path / name
        done = kymo("record", "--name", name, "--background", "-o", out, *mode, *events, *options, code=code)
        if code:
            return done
        names.append(name)
        out = Recording(kymo, name, out)
        return out

    yield start
    for name in names:
        kymo("stop", name, code=None)


class Recording:
    def __init__(self, kymo, name, out):
        self.kymo, self.name, self.out = kymo, name, out

    def triggers(self):
        return json.loads(self.kymo("ctl", self.name, "--triggers", "--json").out)["triggers"]

    def wait_fired(self, n=1, number=None, act=None):
        """Until a trigger has fired n times; act() is done again and again meanwhile."""
        end = time.monotonic() + WAIT_S
        while True:
            if act:
                act()
            for one in self.triggers():
                if number in (None, one["number"]) and one["fired"] >= n:
                    return one
            assert time.monotonic() < end, self.triggers()
            time.sleep(0.05)

    def stop(self):
        return self.kymo("stop", self.name)


def wait_for(what):
    end = time.monotonic() + WAIT_S
    while not what():
        assert time.monotonic() < end
        time.sleep(0.05)


def true():
    subprocess.run(["/bin/true"], check=True)


def fsync(path):
    fd = os.open(path, os.O_CREAT | os.O_WRONLY)
    os.write(fd, b"x" * 4096)
    os.fsync(fd)
    os.close(fd)


def test_slow_fsync_makes_a_snapshot(kymo, begin, tmp_path):
    """The line of the issue: the duration of a system call, and what led to it."""
    recording = begin("--when", "syscall_exit_fsync with duration > 1us", "--do", "snapshot",
                      events=("-k", "syscall:fsync,sched_switch", "--statedump=none"))
    recording.wait_fired(act=lambda: fsync(tmp_path / "file"))
    wait_for(lambda: os.path.exists(f"{recording.out}-snapshot-1/kernel/metadata"))
    said = recording.stop().err
    assert "snapshot: " in said
    names = {json.loads(line)["event"] for line in
             kymo("convert", "--to", "json", f"{recording.out}-snapshot-1").out.splitlines()}
    assert "syscall_entry_fsync" in names


def test_a_duration_that_is_not_reached(begin, tmp_path):
    recording = begin("--when", "syscall_exit_fsync with duration > 1h", "--do", "snapshot",
                      "--when", "syscall_exit_fsync with duration < 1h", "--do", "notify")
    recording.wait_fired(number=2, act=lambda: fsync(tmp_path / "file"))
    assert recording.triggers()[0]["fired"] == 0
    recording.stop()


def test_filter_and_environment(begin, tmp_path):
    """Values of events reach the command as variables, and are no part of the shell's text."""
    odd = tmp_path / "$(touch hacked);`id`"
    odd.symlink_to("/bin/true")
    log = tmp_path / "log"
    recording = begin("--when", 'sched_process_exec if filename =~ "*hacked*"',
                      "--do", f"run:env >{log}.part; mv {log}.part {log}")
    true()
    recording.wait_fired(act=lambda: subprocess.run([odd], check=True))
    wait_for(log.exists)
    variables = dict(line.split("=", 1) for line in log.read_text().splitlines() if line.startswith("KYMO_TRIGGER"))
    assert variables["KYMO_TRIGGER_EVENT"] == "sched_process_exec"
    assert variables["KYMO_TRIGGER_FIELD_filename"] == str(odd)
    assert json.loads(variables["KYMO_TRIGGER_JSON"])["fields"]["filename"] == str(odd)
    assert int(variables["KYMO_TRIGGER_TIME_NS"]) / 1e9 == pytest.approx(time.time(), abs=3600)
    recording.stop()
    assert not list(tmp_path.rglob("hacked"))


def test_programs(begin, shop):
    recording = begin("--when", "user shop:order_placed if total_cents > 5 once per 0", "--do", "notify",
                      "--when", "shop:order_placed if total_cents < 5", "--do", "notify")
    recording.wait_fired(number=1, act=lambda: subprocess.run([shop, "3"], check=True, stdout=subprocess.DEVNULL))
    assert recording.triggers()[1]["fired"] == 0
    recording.stop()


def test_pairs_of_programs(begin, shop):
    recording = begin("--when", "shop:checkout_begin -> shop:order_placed with duration < 1h", "--do", "notify",
                      "--when", "shop:started -> shop:order_placed by $ctx.vpid with duration > 0", "--do", "notify")
    recording.wait_fired(number=2, act=lambda: subprocess.run([shop, "3"], check=True, stdout=subprocess.DEVNULL))
    recording.stop()


def test_times_within(begin):
    recording = begin("--when", 'sched_process_exec if filename == "/bin/true" 5 times within 1min', "--do", "notify")
    for _ in range(4):
        true()
    time.sleep(0.5)
    assert recording.triggers()[0]["fired"] == 0
    recording.wait_fired(act=true)
    recording.stop()


def test_an_event_that_does_not_come(begin):
    true_then = 'sched_process_exec if filename == "/bin/true" without sched_process_exec if filename == "{}" within 1s'
    recording = begin("--when", true_then.format("/bin/false"), "--do", "notify",
                      "--when", true_then.format("/bin/true"), "--do", "notify")
    true()
    recording.wait_fired(number=1)
    recording.wait_fired(number=2)
    subprocess.run(["/bin/false"], check=False)
    recording.stop()


def test_first_and_held(begin):
    recording = begin("--when", 'sched_process_exec if filename == "/bin/true" once per 0 first 2', "--do", "notify")
    recording.wait_fired(n=2, act=true)
    wait_for(lambda: true() or recording.triggers()[0]["held"])
    assert recording.triggers()[0]["fired"] == 2
    recording.stop()


def test_amounts_and_time(begin):
    soon = time.strftime("%H:%M:%S", time.gmtime(time.time() + 5))  # commands run with TZ=UTC
    recording = begin("--when", "size > 1", "--do", "notify", "--when", "every 1s", "--do", "notify",
                      "--when", f"at {soon}", "--do", "notify", "--when", "loss > 1000000000", "--do", "notify",
                      mode=(), events=("-k", "sched_switch,sched_waking,syscalls", "-b", "64k", "--statedump=none"))
    recording.wait_fired(number=1)
    recording.wait_fired(number=2)
    assert recording.wait_fired(number=3)["fired"] == 1
    assert recording.triggers()[3]["fired"] == 0
    recording.stop()


def test_fill(begin):
    """The recorder empties the kernel's buffers at a quarter: at some look there is something in them."""
    recording = begin("--when", "fill > 1%", "--do", "notify", mode=(),
                      events=("-k", "syscalls", "-b", "64k", "--statedump=none"))
    recording.wait_fired(act=true)
    recording.stop()


def test_losses(begin, kymo_bin):
    modes = os.path.join(os.path.dirname(kymo_bin), "..", "..", "test", "tracer", "modes")
    recording = begin("--when", "loss > 10", "--do", "notify", mode=(), events=("--user", "modes:*", "-b", "64k"))
    recording.wait_fired(act=lambda: subprocess.run([modes, "numbers", "300000", "0"], check=True, stdout=subprocess.DEVNULL))
    recording.stop()


def test_rotation_and_marks(kymo, begin):
    """Marks are a trace beside the others, in the chunk of their time, and other readers open it."""
    recording = begin("--when", 'sched_process_exec if filename == "/bin/true" once per 0', "--do", "mark:here", "--do", "rotate",
                      mode=())
    recording.wait_fired(act=true)
    wait_for(lambda: os.path.isdir(recording.out / "archives"))
    true()
    recording.wait_fired(n=2)
    recording.stop()
    lines = [json.loads(line) for line in kymo("convert", "--to", "json", recording.out).out.splitlines()]
    marks = [line for line in lines if line["event"] == "kymo:mark"]
    assert len(marks) >= 2
    assert all("here" in json.dumps(mark) and "sched_process_exec" in json.dumps(mark) for mark in marks)
    chunk = sorted((recording.out / "archives").iterdir())[0]
    assert (chunk / "marks" / "metadata").exists()
    done = subprocess.run(["babeltrace2", chunk], stdout=subprocess.PIPE, text=True, check=True)
    assert 'kymo:mark: { cpu_id = 0 }, { name = "here"' in done.stdout
    kymo("report", "cpu", recording.out, code=None)


def test_marks_of_a_flight_recorder(kymo, begin):
    recording = begin("--when", 'sched_process_exec if filename == "/bin/true"', "--do", "mark", "--do", "snapshot")
    recording.wait_fired(act=true)
    wait_for(lambda: os.path.exists(f"{recording.out}-snapshot-1/marks/metadata"))
    recording.stop()
    for trace in (recording.out, f"{recording.out}-snapshot-1"):
        assert "kymo:mark" in kymo("print", trace).out


def marks_of(kymo, trace):
    lines = [json.loads(line) for line in kymo("convert", "--to", "json", str(trace)).out.splitlines()]
    return [line for line in lines if line["event"] == "kymo:mark"]


def test_everything_that_fired_is_carried_out(kymo, begin, shop, tmp_path):
    """More at a time than the recorder carries out in one step; the last ones at the end of the recording."""
    # Shops of other tests may run in between the end of the triggers and that of the recording.
    own = tmp_path / f"shop{os.getpid()}"
    own.symlink_to(os.path.realpath(shop))
    recording = begin("--when", "shop:order_placed once per 0", "--do", "mark", mode=(), events=("-u", "shop:*", "--comm", own.name))
    recording.wait_fired(act=lambda: subprocess.run([own, "1"], check=True, stdout=subprocess.DEVNULL))
    subprocess.run([own, "100"], check=True, stdout=subprocess.DEVNULL)
    recording.stop()
    lines = [json.loads(line)["event"] for line in kymo("convert", "--to", "json", str(recording.out)).out.splitlines()]
    assert lines.count("shop:order_placed") > 100
    assert len(marks_of(kymo, recording.out)) == lines.count("shop:order_placed")


def test_report_is_an_archive(kymo, begin, tmp_path):
    recording = begin("--when", "syscall_exit_fsync with duration > 1us", "--do", "report",
                      events=("-k", "syscalls,sched_switch"))
    archive = f"{recording.out}-snapshot-1.report.tar.zst"
    recording.wait_fired(act=lambda: fsync(tmp_path / "file"))
    wait_for(lambda: os.path.exists(archive))
    recording.stop()
    assert "Overview" in kymo("report", "--all", archive).out
    # The same events in the same order.
    assert kymo("convert", "--to", "json", archive).out.count("\n") == \
        kymo("convert", "--to", "json", f"{recording.out}-snapshot-1").out.count("\n")
    assert "kernel" in kymo("info", archive).out
    subprocess.run(["tar", "-I", "zstd", "-xf", archive, "-C", tmp_path / "."], check=True)
    unpacked = tmp_path / os.path.basename(f"{recording.out}-snapshot-1")
    trigger = json.loads((unpacked / "report" / "trigger.json").read_text())
    assert trigger["event"] == "syscall_exit_fsync" and trigger["duration_ns"] > 1000
    assert "syscall" in (unpacked / "report" / "stacks.txt").read_text()
    assert "/proc/version" in (unpacked / "report" / "machine.txt").read_text()
    json.loads((unpacked / "report" / "report.json").read_text())


def test_archives_that_are_none(kymo, tmp_path):
    trace = os.path.join(ROOT, "test", "data", "ok", "traces", "kinds")
    archive = tmp_path / "a.tar.zst"
    kymo("report", "summary", "--archive", archive, trace, code=None)
    assert archive.exists()
    assert "exist" in kymo("report", "summary", "--archive", archive, trace, code=1).err.lower()
    whole = archive.read_bytes()
    archive.write_bytes(whole[:len(whole) // 2])
    done = kymo("print", archive, code=1)
    assert "cut off" in done.err or "damaged" in done.err
    # Names that lead elsewhere create no file.
    evil = tmp_path / "evil"
    (tmp_path / "x").mkdir()
    (tmp_path / "x" / "metadata").write_bytes(open(os.path.join(trace, "metadata"), "rb").read())
    subprocess.run(["tar", "--transform", "s,^,../../evil/,", "-P", "-I", "zstd", "-cf", archive, "metadata"],
                   cwd=tmp_path / "x", check=True)
    kymo("info", archive, code=None)
    assert not evil.exists() and not (tmp_path.parent / "evil").exists()


def test_start_and_stop_of_another(kymo, begin, tmp_path):
    name = f"other{os.getpid()}"
    profile = tmp_path / "other.profile"
    profile.write_text(f"name={name}\noutput={tmp_path}/other\nkernel=sched_process_exec\nstatedump=none\n")
    recording = begin("--when", 'sched_process_exec if filename == "/bin/true"', "--do", f"start:{profile}",
                      "--when", 'sched_process_exec if filename == "/bin/false"', "--do", f"stop:{name}")

    def runs():
        return any(one.get("name") == name for one in json.loads(kymo("sessions", "--json").out)["recordings"])

    recording.wait_fired(number=1, act=true)
    wait_for(runs)
    recording.wait_fired(number=2, act=lambda: subprocess.run(["/bin/false"], check=False))
    wait_for(lambda: not runs())
    recording.stop()


def test_watch(kymo, kymo_bin, begin, tmp_path):
    recording = begin("--when", 'sched_process_exec if filename == "/bin/true" once per 0', "--do", "notify:look", mode=())
    lines = [tmp_path / "text", tmp_path / "json"]
    watchers = []
    for path, options in zip(lines, ([], ["--json"])):
        with open(path, "w", encoding="utf-8") as out:
            watchers.append(subprocess.Popen([kymo_bin, "watch", *options, recording.name], stdout=out))
    wait_for(lambda: true() or all(path.read_text() for path in lines))
    kymo("rotate", recording.name)
    recording.stop()
    assert all(watcher.wait(timeout=WAIT_S) == 0 for watcher in watchers)
    text, objects = lines[0].read_text(), [json.loads(line) for line in lines[1].read_text().splitlines()]
    assert "look: " in text and "sched_process_exec" in text and text.splitlines()[-1].endswith("the recording has ended")
    kinds = [one["kind"] for one in objects]
    assert "trigger" in kinds and "rotation" in kinds and kinds[-1] == "end"
    assert objects[0]["fields"]["filename"] == "/bin/true" and objects[0]["result"] == "look"


def test_a_slow_watcher_loses_lines(kymo, kymo_bin, begin):
    """The recorder goes on, and the watcher learns how much it has missed."""
    recording = begin("--when", "sched_process_exit once per 0", "--do", "notify:" + 100 * "much ", mode=())
    watcher = subprocess.Popen([kymo_bin, "watch", "--json", recording.name], stdout=subprocess.PIPE, text=True)
    end = time.monotonic() + WAIT_S
    while recording.triggers()[0]["fired"] < 1500:
        assert time.monotonic() < end
        subprocess.run(["/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/true; done"], check=True)
    assert kymo("sessions").code == 0
    recording.stop()
    out = [json.loads(line) for line in watcher.communicate(timeout=WAIT_S)[0].splitlines()]
    assert out and all("kind" in one for one in out)


def test_changes(kymo, begin):
    recording = begin()
    assert "no triggers" in kymo("ctl", recording.name, "--triggers").out
    said = kymo("ctl", recording.name, "--when", 'sched_process_exec if filename == "/bin/true"', "--do", "notify").err
    assert said.startswith("Trigger 1: ")
    recording.wait_fired(act=true)
    kymo("ctl", recording.name, "--remove-trigger", "1", "--when", "every 1h", "--do", "mark")
    assert [one["number"] for one in recording.triggers()] == [2]
    assert "no trigger 7" in kymo("ctl", recording.name, "--remove-trigger", "7", code=1).err
    assert "column 23" in kymo("ctl", recording.name, "--when", 'sched_process_exec if filenam == "x"', "--do", "mark",
                               code=1).err
    kymo("ctl", recording.name, "--remove-trigger", "all")
    assert not recording.triggers()
    assert "only a flight recorder" not in kymo("ctl", recording.name, "--when", "every 1h", "--do", "rotate", code=1).err
    recording.stop()


def test_relative_paths(kymo_bin, tmp_path):
    """They begin where the recording was started, whoever adds the trigger."""
    here, there, name = tmp_path / "here", tmp_path / "there", f"trig{os.getpid()}-relative"
    here.mkdir()
    there.mkdir()

    def run(where, *args):
        subprocess.run([kymo_bin, *args], cwd=where, check=True, timeout=WAIT_S, stderr=subprocess.DEVNULL)

    run(here, "record", "--name", name, "--background", "--overwrite", "-k", "sched_process_exit", "--statedump=none")
    try:
        run(there, "ctl", name, "--when", "every 1s", "--do", "snapshot:mine", "--do", "run:touch ran")
        wait_for(lambda: (here / "mine-1" / "kernel" / "metadata").exists() and (here / "ran").exists())
    finally:
        run(there, "stop", name)
    assert not list(there.iterdir())


@pytest.mark.parametrize("options, said", [
    (["--when", "sched_switch"], "needs --do"),
    (["--do", "snapshot"], "needs --when"),
    (["--when", "sched_switch iff", "--do", "snapshot"], "column 14"),
    (["--when", "sched_switch", "--do", "dance"], "unknown"),
])
def test_mistakes(kymo, tmp_path, options, said):
    done = kymo("record", "-o", tmp_path / "out", *options, "-d", "1ms", code=2)
    assert said in done.err and not (tmp_path / "out").exists()


@pytest.mark.parametrize("options, said", [
    (["--when", "no_such_event", "--do", "mark"], "no_such_event"),
    (["--when", "sched_switch if nonsense > 1", "--do", "mark"], "nonsense"),
    (["--when", "sched_waking -> sched_switch by nonsense with duration > 1s", "--do", "mark"], "nonsense"),
    (["--when", "every 1s", "--do", "snapshot"], "only a flight recorder"),
    (["--overwrite", "--when", "every 1s", "--do", "rotate"], "no chunks"),
])
def test_mistakes_that_the_recording_finds(kymo, tmp_path, options, said):
    done = kymo("record", "-o", tmp_path / "out", "-k", "sched_switch", *options, "-d", "1ms", code=None)
    assert done.code and said in done.err and not (tmp_path / "out").exists()


def test_profiles_have_triggers(kymo, tmp_path):
    profile = tmp_path / "p"
    kymo("record", "-o", tmp_path / "a", "-k", "sched_switch", "--overwrite", "-d", "200ms", "--save", profile,
         "--when", "every 1h", "--do", "snapshot", "--do", "notify:x", "--when", "at 03:00", "--do", "mark")
    rules = [line for line in profile.read_text().splitlines() if line.startswith(("when", "do"))]
    assert rules == ["when=every 1h", "do=snapshot", "do=notify:x", "when=at 03:00", "do=mark"]
    kymo("record", "--profile", profile, "-o", tmp_path / "b", "-d", "200ms")


def test_no_loop(kymo, begin):
    """The recorder's own calls are no events of its triggers."""
    recording = begin()
    pid, = [one["pid"] for one in json.loads(kymo("sessions", "--json").out)["recordings"]
            if one.get("name") == recording.name]
    for call in ("epoll_wait", "timerfd_settime", "read"):
        kymo("ctl", recording.name, "--when", f"syscall_entry_{call} if $ctx.pid == {pid} once per 0", "--do", "notify")
    time.sleep(1)
    assert all(one["fired"] < 20 for one in recording.triggers()), recording.triggers()
    recording.stop()
