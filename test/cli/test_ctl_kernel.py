# SPDX-License-Identifier: MIT
"""kymo ctl on a recording of the kernel: other events, filters and processes, in the same trace."""

import json
import os
import subprocess

import pytest

# For each letter that it reads: ten calls of getppid() and of lseek() with 1 to 10; then it answers.
PROGRAM = r"""
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef COMPAT
/* As 32-bit programs call. */
static long call(long number, long a, long b, long c)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(number), "b"(a), "c"(b), "d"(c)
			 : "memory", "r8", "r9", "r10", "r11");
	return ret;
}
#define GETPPID() call(64, 0, 0, 0)
#define LSEEK(to) call(19, -1, to, 0)
#else
#define GETPPID() syscall(SYS_getppid)
#define LSEEK(to) syscall(SYS_lseek, -1, to, 0)
#endif

int main(int argc, char **argv)
{
	char letter;

	prctl(PR_SET_NAME, argv[1]);
	while (read(0, &letter, 1) == 1) {
		for (int i = 1; i <= 10; i++) {
			GETPPID();
			LSEEK((long)letter * 1000 + i);
		}
		if (write(1, &letter, 1) != 1)
			return 1;
	}
	return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("ctl") / "steps"
    subprocess.run(["cc", "-x", "c", "-O1", "-w", "-o", path, "-"], input=PROGRAM, text=True, check=True)
    return path


class Steps:
    def __init__(self, program, name):
        self.process = subprocess.Popen([program, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.pid = self.process.pid
        self.step("0")  # it has its name

    def step(self, letter):
        self.process.stdin.write(letter.encode())
        self.process.stdin.flush()
        assert self.process.stdout.read(1) == letter.encode()

    def end(self):
        self.process.communicate()


@pytest.fixture
def steps(program):
    """steps(name): a program that runs until the test's end."""
    all_of_them = []

    def call(name):
        all_of_them.append(Steps(program, name))
        return all_of_them[-1]

    yield call
    for one in all_of_them:
        one.end()


@pytest.fixture
def recording(recordings):
    return recordings


def seen(events, pid, name="syscall_entry_lseek"):
    """{letter: how many lseek() of the program are recorded}"""
    found = {}
    for event, fields, context in events:
        if event == name and context["tid"] == pid and fields.get("offset", 0) > 30000:
            letter = chr(fields["offset"] // 1000)
            found[letter] = found.get(letter, 0) + 1
    return found


def test_events_that_it_did_not_begin_with(recording, steps):
    a = steps("one")
    record = recording("-k", "syscall_entry_getppid", "--context", "procname")
    a.step("a")
    record.ctl("--enable-kernel", "syscall:lseek,sched_switch")
    a.step("b")
    record.ctl("--disable-kernel", "syscall:getppid", "--enable-kernel", "syscall_entry_close")
    a.step("c")
    record.ctl("--disable-kernel", "syscall_entry_lseek")
    a.step("d")
    record.ctl("--enable-kernel", "syscall_entry_lseek")
    a.step("e")
    events = record.stop()
    assert seen(events, a.pid) == {"b": 10, "c": 10, "e": 10}
    mine = [e for e in events if e[2]["tid"] == a.pid]
    assert sum(e[0] == "syscall_entry_getppid" for e in mine) == 20
    assert sum(e[0] == "syscall_exit_lseek" for e in mine) == 40
    assert any(e[0] == "sched_switch" for e in events)
    assert all(e[2]["procname"] == "one" for e in mine)


def test_calls_of_32_bits(recording, tmp_path):
    program = tmp_path / "steps-32"
    subprocess.run(["cc", "-x", "c", "-O1", "-w", "-DCOMPAT", "-o", program, "-"], input=PROGRAM, text=True, check=True)
    done = subprocess.run([program, "try"], input="x", capture_output=True, text=True, check=False)
    if done.returncode < 0:
        pytest.skip("this kernel runs no calls of 32 bits")
    a = Steps(program, "one")
    try:
        # Not where the recording has none at all: its programs in the kernel do not look for them.
        plain = recording("-k", "syscall_entry_getppid")
        assert "32-bit" in plain.ctl("--enable-kernel", "compat_syscall_entry_lseek", code=1).err
        assert "unknown calls" in plain.ctl("--enable-kernel", "syscall:unknown", code=1).err
        plain.stop()
        record = recording("-k", "compat_syscall_entry_brk", "--context", "procname")
        a.step("a")
        record.ctl("--enable-kernel", "compat_syscall_entry_lseek,compat_syscall_*_getppid")
        a.step("b")
        record.ctl("--disable-kernel", "compat_syscall_entry_getppid")
        a.step("c")
        record.ctl("--disable-kernel", "compat_syscall_entry_lseek")
        a.step("d")
        record.ctl("--enable-kernel", "compat_syscall_entry_lseek if offset % 2 == 0")
        a.step("e")
        events = record.stop()
    finally:
        a.end()
    assert seen(events, a.pid, "compat_syscall_entry_lseek") == {"b": 10, "c": 10, "e": 5}
    mine = [event for event, _, context in events if context["tid"] == a.pid]
    assert mine.count("compat_syscall_entry_getppid") == 10 and mine.count("compat_syscall_exit_getppid") == 40


def test_filters(recording, steps):
    a = steps("one")
    record = recording("-k", "syscall_entry_lseek if offset % 1000 < 3")
    a.step("a")
    record.ctl("--enable-kernel", "syscall_entry_lseek if whence == 0 && offset == 98007")
    a.step("b")
    record.ctl("--enable-kernel", "syscall_entry_lseek")
    a.step("c")
    record.ctl("--enable-kernel", "syscall_entry_lseek,syscall_exit_lseek if ret < 0 || offset % 2 == 0")
    a.step("d")
    for rule, words in (("syscall_entry_lseek if nonsense >", "ends too early"), ("no_such_event", "no event"),
                        ("syscall_entry_lseek if no_such == 1", "no_such"),
                        ("syscall_entry_lseek if $time > 1", "for reading")):
        assert words in record.ctl("--enable-kernel", rule, code=1).err
    a.step("e")
    events = record.stop()
    assert seen(events, a.pid) == {"a": 2, "b": 1, "c": 10, "d": 5, "e": 5}
    assert sum(e[0] == "syscall_exit_lseek" and e[2]["tid"] == a.pid for e in events) == 20


def test_processes(recording, steps):
    a, b, c = steps("one"), steps("two"), steps("three")

    def all_step(letter):
        for one in (a, b, c):
            one.step(letter)

    record = recording("-k", "syscall_entry_lseek")
    all_step("a")
    assert "of all processes" in record.ctl("--remove-pid", a.pid, code=1).err
    record.ctl("--add-pid", a.pid)
    all_step("b")
    record.ctl("--add-tid", f"{b.pid},{c.pid}")
    all_step("c")
    record.ctl("--remove-pid", f"{a.pid},{c.pid}")
    all_step("d")
    assert "would have no threads left" in record.ctl("--remove-tid", b.pid, code=1).err
    assert "no process 4194305" in record.ctl("--add-pid", "4194305", code=1).err
    assert "ids between commas" in record.ctl("--add-pid", "1,x", code=1).err
    all_step("e")
    record.ctl("--add-uid", "0")
    all_step("f")
    events = record.stop()
    assert seen(events, a.pid) == {"a": 10, "b": 10, "c": 10, "f": 10}
    assert seen(events, b.pid) == {"a": 10, "c": 10, "d": 10, "e": 10, "f": 10}
    assert seen(events, c.pid) == {"a": 10, "c": 10, "f": 10}


def test_names(recording, steps):
    a, b = steps("kymo-one"), steps("kymo-two")
    record = recording("-k", "syscall_entry_lseek", "--comm", "kymo-one")
    for letter, name in (("a", None), ("b", "kymo-two"), ("c", ""), ("d", "kymo-one")):
        if name is not None:
            record.ctl("--comm", name)
        a.step(letter)
        b.step(letter)
    assert "is not a name of a thread" in record.ctl("--comm", 'a"b', code=1).err
    events = record.stop()
    assert seen(events, a.pid) == {"a": 10, "c": 10, "d": 10}
    assert seen(events, b.pid) == {"b": 10, "c": 10}


def test_content_of_an_event_that_came_later(recording, steps):
    record = recording("-k", "syscall_entry_getppid", "--syscall-content=paths")
    record.ctl("--enable-kernel", "syscall_entry_openat")
    with open("/etc/hostname", encoding="utf-8"):
        pass
    events = record.stop()
    assert any(e[0] == "syscall_entry_openat" and e[1]["filename"] == "/etc/hostname"
               and e[2]["tid"] == os.getpid() for e in events)


def test_raw_keeps_its_events(recording, steps):
    a = steps("one")
    record = recording("-k", "syscall_entry_lseek", "--raw")
    a.step("a")
    assert "a raw recording keeps" in record.ctl("--enable-kernel", "syscall_entry_getppid", code=1).err
    record.ctl("--disable-kernel", "syscall_entry_lseek")
    a.step("b")
    record.ctl("--enable-kernel", "syscall_entry_lseek", "--add-pid", a.pid)
    a.step("c")
    assert seen(record.stop(), a.pid) == {"a": 10, "c": 10}


def enabled(tracefs, pid):
    """The events that the instances of this recorder have switched on."""
    found = []
    for instance in os.listdir(os.path.join(tracefs, "instances")):
        if instance.startswith(f"kymo-{pid}-"):
            path = os.path.join(tracefs, "instances", instance, "set_event")
            with open(path, encoding="utf-8") as file:
                found += file.read().split()
    return found


def test_pause(recording, steps, kymo, needs_root_tracefs):
    """Nothing is recorded, and no tracepoint is on; then the same trace goes on, with the right names."""
    a = steps("one")
    record = recording("-k", "syscall_entry_lseek,sched_switch", "--context", "procname")
    a.step("a")
    on_before = enabled(needs_root_tracefs, record.process.pid)
    assert any("sched_switch" in event for event in on_before)
    record.ctl("--pause")
    assert not enabled(needs_root_tracefs, record.process.pid)
    b = steps("two")
    a.step("b")
    b.step("b")
    shown = json.loads(record.ctl("--status", "--json").out)
    assert shown["state"] == "paused" and shown["pauses"] == 1
    assert {one["cpu"] for one in shown["cpus"]} and sum(one["events"] for one in shown["cpus"]) == shown["events"]
    record.ctl("--resume", "--enable-kernel", "syscall_exit_lseek")
    a.step("c")
    b.step("c")
    events = record.stop()
    assert seen(events, a.pid) == {"a": 10, "c": 10} and seen(events, b.pid) == {"c": 10}
    assert {e[2]["procname"] for e in events if e[2]["tid"] == b.pid} == {"two"}
    marks = [(i, fields) for i, (event, fields, _) in enumerate(events) if event.startswith("kymo_recording_")]
    assert [events[i][0] for i, _ in marks] == ["kymo_recording_paused", "kymo_recording_resumed"]
    assert marks[0][0] + 1 == marks[1][0] and marks[1][1]["paused_ns"] > 0
    peer = subprocess.run(["babeltrace2", record.out], capture_output=True, text=True, check=True)
    assert "discarded" not in peer.stderr and "kymo_recording_resumed" in peer.stdout
    # What happened meanwhile is unknown: neither lost, nor one long stay on a CPU.
    said = kymo("report", "cpu", record.out).out
    assert "paused for" in said and "events were lost" not in said


def test_the_end_comes_in_a_pause(recording, steps, kymo):
    a = steps("one")
    record = recording("-k", "syscall_entry_lseek,sched_switch")
    a.step("a")
    record.ctl("--pause")
    a.step("b")
    events = record.stop()
    assert seen(events, a.pid) == {"a": 10}
    assert events[-1][0] == "kymo_recording_paused"


def test_pause_of_chunks(recording, steps, kymo):
    """A rotation in a pause; each chunk says what it lacks."""
    a = steps("one")
    record = recording("-k", "syscall_entry_lseek")
    a.step("a")
    record.ctl("--pause")
    kymo("rotate", record.out)
    a.step("b")
    record.ctl("--resume")
    a.step("c")
    events = record.stop()
    assert seen(events, a.pid) == {"a": 10, "c": 10}
    assert sum(e[0].startswith("kymo_recording_") for e in events) == 2
    subprocess.run(["babeltrace2", record.out / "kernel"], stdout=subprocess.DEVNULL, check=True)


def test_clear(recording, steps, kymo):
    a = steps("one")
    record = recording("-k", "syscall_entry_lseek")
    a.step("a")
    kymo("rotate", record.out)
    a.step("b")
    record.ctl("--clear")
    a.step("c")
    events = record.stop()
    # The complete chunk stays.
    assert seen(events, a.pid) == {"a": 10, "c": 10}
    assert len(os.listdir(record.out / "archives")) == 1


def test_flight_recorder_is_cleared(recording, steps, kymo, tmp_path):
    a = steps("one")
    record = recording("--overwrite", "-k", "syscall_entry_lseek")
    a.step("a")
    record.ctl("--clear")
    a.step("b")
    kymo("snapshot", "-o", tmp_path / "snap", record.out)
    record.ctl("--pause")
    a.step("c")
    record.ctl("--resume")
    a.step("d")
    events = record.stop()
    assert seen(events, a.pid) == {"b": 10, "d": 10}
    snap = [json.loads(line) for line in kymo("convert", "--to", "json", tmp_path / "snap").out.splitlines()]
    assert seen([(e["event"], e["fields"], e["context"]) for e in snap], a.pid) == {"b": 10}
    assert any(e["event"] == "lttng_statedump_process_state" for e in snap)


def test_raw_recordings_do_not_pause(recording):
    record = recording("--raw", "-k", "syscall_entry_lseek")
    assert "raw recording" in record.ctl("--pause", code=1).err
    assert "raw" in record.ctl("--clear", code=1).err
    record.stop()


def test_what_fails_leaves_nothing(recording, kymo):
    record = recording("-k", "sched_switch", "--context", "pid")
    for rule in ("syscall_entry_lseek if no_such == 1", "sched_process_exec,task_newtask if nonsense >"):
        record.ctl("--enable-kernel", rule, code=1)
    record.ctl("--enable-kernel", "syscall_entry_close,task_newtask")
    subprocess.run(["/bin/true"], check=True)
    events = record.stop()
    with open(record.out / "kernel" / "metadata", encoding="utf-8") as file:
        metadata = file.read()
    assert "syscall_entry_lseek" not in metadata and "sched_process_exec" not in metadata
    assert "syscall_entry_close" in metadata
    names = {e[0] for e in events}
    assert {"sched_switch", "syscall_entry_close", "task_newtask"} <= names
    subprocess.run(["babeltrace2", record.out], stdout=subprocess.DEVNULL, check=True)
