# SPDX-License-Identifier: MIT
"""Whose events the kernel recorder takes: what becomes of processes, threads, users and control groups while it runs."""

import glob
import os
import platform
import pwd
import shutil
import subprocess
import tempfile
import time

import pytest

import actors
from actors import steps, wait_until
from control_groups import hierarchies, remove_groups


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return actors.build(tmp_path_factory.mktemp("whose") / "kymo-actor")


@pytest.fixture
def actor(program):
    made = []

    def call(*command):
        made.append(actors.Actor(*command or [program]))
        return made[-1]

    yield call
    for one in made:
        one.end()


@pytest.fixture
def recording(recordings):
    return lambda *options, events="syscall_entry_lseek": recordings("-k", events, *options)


def test_a_process_with_its_threads(recording, actor):
    """Threads from before and after; children; and a thread that becomes another program."""
    one, other = actor(), actor()
    record = recording("--pid", one.pid)
    for line in ("sa", "2b", "tc", "cd"):
        one.does(line)
        other.does(line)
    one.does("2!")  # its answer is the new program's "0"
    one.does("se")
    one.does("2f")
    other.does("sg")
    assert steps(record.stop()) == dict.fromkeys("abcdef", 1)


def test_threads_alone(recording, actor):
    one, other = actor(), actor()
    record = recording("--tid", f"{one.second_thread()},{other.pid}")
    for line in ("sa", "2b", "tc", "cd"):
        one.does(line)
    for line in ("se", "2f", "tg", "ch"):
        other.does(line)
    assert steps(record.stop()) == {"b": 1, "e": 1}


def test_an_id_that_is_given_again(recording, actor):
    """It is chosen no more once its process has ended."""
    one, other, third = actor(), actor(), actor()
    record = recording("--pid", f"{one.pid},{third.pid}")
    one.does("sa")
    one.end()
    wait_until(record, one.pid, False)
    if other.does(f"cb{one.pid}") != one.pid:
        pytest.skip("somebody else was given the id")
    third.does("sc")
    assert steps(record.stop()) == {"a": 1, "c": 1}


def test_a_call_that_is_under_way(recording, actor):
    """The trace has its return; readers get no entry."""
    one = actor()
    one.sleeps()
    record = recording("--pid", one.pid, events="syscall:read,syscall:write")
    one.does("sa")
    names = [name for name, _, context in record.stop() if context["tid"] == one.pid]
    assert names[0] == "syscall_exit_read" and "syscall_entry_read" in names


def test_switches_and_wake_ups(recording, actor, program):
    """Those to it, those from it, and who wakes it. On the first CPU: some kernels do not tell when others leave their
    idle thread."""
    one, other = actor("taskset", "-c", str(min(os.sched_getaffinity(0))), program), actor()
    record = recording("--tid", one.pid, events="sched_switch,sched_waking")
    for _ in range(5):
        one.sleeps()
        one.does("2a")
        other.does("2a")
    events = record.stop()
    switches = [fields for name, fields, _ in events if name == "sched_switch"]
    assert all(one.pid in (fields["prev_tid"], fields["next_tid"]) for fields in switches)
    assert sum(fields["prev_tid"] == one.pid for fields in switches) >= 5
    assert sum(fields["next_tid"] == one.pid for fields in switches) >= 5
    wakings = [(context["tid"], fields["tid"]) for name, fields, context in events if name == "sched_waking"]
    assert all(one.pid in pair for pair in wakings)
    assert sum(wakee == one.pid for _, wakee in wakings) >= 5 and (one.pid, one.second_thread()) in wakings


def test_users_that_have_no_processes_yet(recording, actor):
    """Nobody is recorded; then who becomes that user's, for as long as it is; and what it starts."""
    one, other = actor(), actor()
    record = recording("--uid", "54321")
    for line in ("sa", "2b"):
        one.does(line)
        other.does(line)
    assert one.does("u 54321") == 0
    wait_until(record, one.pid, True)
    for line in ("sc", "cd", "te"):
        one.does(line)
        other.does(line)
    assert one.does("u 0") == 0
    wait_until(record, one.pid, False)
    one.does("sf")
    one.does("cg")
    assert one.does("u 54321") == 0
    wait_until(record, one.pid, True)
    one.does("sh")
    record.ctl("--add-pid", other.pid, "--remove-uid", "54321")
    one.does("si")
    other.does("sj")
    assert steps(record.stop()) == dict.fromkeys("cdehj", 1)


def test_a_user_by_name(recording, actor, kymo):
    """nobody: there is one in every Debian, without processes in most."""
    nobody = pwd.getpwnam("nobody").pw_uid
    one = actor()
    record = recording("--uid", "nobody")
    assert one.does(f"u {nobody}") == 0
    wait_until(record, one.pid, True)
    one.does("sa")
    assert "user 'no-such-user'" in record.ctl("--add-uid", "0,no-such-user", code=1).err
    record.ctl("--remove-uid", f"nobody,{nobody}")
    wait_until(record, one.pid, False)
    one.does("sb")
    record.ctl("--add-uid", "nobody")
    wait_until(record, one.pid, True)
    one.does("sc")
    assert steps(record.stop()) == {"a": 1, "c": 1}
    assert "user 'no-such-user'" in kymo("record", "--uid", "no-such-user", "--", "true", code=2).err


def test_a_user_for_a_moment(recording, actor):
    """Too short for --uid: a filter knows at each event."""
    one = actor()
    record = recording("--context", "uid", events="syscall_entry_lseek if $ctx.uid == 54326")
    for line in ("sa", "u 54326", "sb", "u 0", "sc", "u 54326", "sd", "u 0", "se"):
        one.does(line)
    assert steps(record.stop()) == {"b": 1, "d": 1}


def test_a_user_with_a_large_number(recording, actor):
    """Only 4294967295 is not a user."""
    one = actor()
    record = recording("--tid", os.getpid())
    record.ctl("--add-uid", "4294967294")
    assert "user '4294967295'" in record.ctl("--add-uid", "4294967295", code=1).err
    assert one.does("u 4294967294") == 0
    wait_until(record, one.pid, True)
    one.does("sa")
    assert steps(record.stop()) == {"a": 1}


COMPAT = r"""
int main(void)
{
	char letter;

	__builtin_printf("0\n"), fflush(0);
	/* Waits for a line; then becomes the user's, as 32-bit programs do (setresuid32), and waits for the end. */
	while (read(0, &letter, 1) == 1 && letter != '\n')
		;
	__asm__ volatile("int $0x80" : : "a"(208), "b"(54325), "c"(0), "d"(0) : "memory", "r8", "r9", "r10", "r11");
	__builtin_printf("0\n"), fflush(0);
	while (read(0, &letter, 1) == 1)
		;
	return 0;
}
"""


def test_a_32_bit_program_that_changes_its_user(recording, actor, tmp_path):
    """The kernel does not tell, so it is found a moment later."""
    if platform.machine() != "x86_64":
        pytest.skip("calls of 32 bits are made here as on x86")
    source = "#include <stdio.h>\n#include <unistd.h>\n" + COMPAT
    subprocess.run(["cc", "-x", "c", "-w", "-o", tmp_path / "compat", "-"], input=source, text=True, check=True)
    one = actor(tmp_path / "compat")
    record = recording("--uid", "54325")
    try:
        one.does("go")
    except ValueError:
        pytest.skip("this kernel has no calls of 32 bits")
    wait_until(record, one.pid, True)
    record.stop()


def test_who_was_taken_out_does_not_come_back(recording, actor):
    """By its id; for what happens to others of its user. What it starts then is taken out with it."""
    one, other, third = actor(), actor(), actor()
    for actor_of_user in (one, other):
        assert actor_of_user.does("u 54322") == 0
    record = recording("--uid", "54322")
    one.does("sa")
    record.ctl("--remove-pid", one.pid)
    record.ctl("--remove-tid", other.second_thread())
    assert third.does("u 54322") == 0
    wait_until(record, third.pid, True)
    for line in ("sb", "tc", "2d"):
        one.does(line)
        other.does(line)
    record.ctl("--add-tid", one.second_thread(), "--add-pid", other.pid)
    for line in ("se", "2f"):
        one.does(line)
        other.does(line)
    record.ctl("--add-uid", "54322")
    one.does("sg")
    assert steps(record.stop()) == {"a": 1, "b": 1, "c": 1, "e": 1, "f": 2, "g": 1}


@pytest.fixture(params=hierarchies() or [None], ids=str)
def group(request):
    """Tests name it before those who join it, who end before it then."""
    if not request.param:
        pytest.skip("needs control groups that can be made")
    root = f"/sys/fs/cgroup/{request.param}"
    path = tempfile.mkdtemp(prefix="kymo-test-", dir=root)
    os.mkdir(f"{path}/below")
    yield path
    remove_groups(path)


def join(path, pid, name="cgroup.procs"):
    with open(f"{path}/{name}", "w", encoding="ascii") as file:
        file.write(str(pid))


def test_control_groups(group, recording, actor):
    one, other = actor(), actor()
    record = recording("--cgroup", "/" + os.path.basename(group))  # as /proc/PID/cgroup has it
    for line in ("sa", "2b"):
        one.does(line)
        other.does(line)
    join(group, one.pid)
    wait_until(record, one.second_thread(), True)
    for line in ("sc", "2d", "ce"):
        one.does(line)
        other.does(line)
    join(os.path.dirname(group), one.pid)
    wait_until(record, one.pid, False)
    wait_until(record, one.second_thread(), False)
    one.does("sf")
    one.does("2g")
    join(f"{group}/below", other.pid)
    wait_until(record, other.pid, True)
    other.does("sh")
    if os.path.exists(f"{group}/tasks"):  # version 1: threads by themselves
        join(group, one.second_thread(), "tasks")
        wait_until(record, one.second_thread(), True)
        # To let one in, the list of those left out is begun anew.
        wait_until(record, one.pid, False)
        one.does("2i")
        one.does("sj")
    letters = "cdeh" + "i" * os.path.exists(f"{group}/tasks")
    assert steps(record.stop()) == dict.fromkeys(letters, 1)


def test_a_control_group_that_nobody_is_in(group, recording, actor, monkeypatch):
    """What memory has from before is no list of threads."""
    monkeypatch.setenv("MALLOC_PERTURB_", "200")
    one = actor()
    record = recording("--cgroup", group)
    one.does("sa")
    join(group, one.pid)
    wait_until(record, one.pid, True)
    one.does("sb")
    assert steps(record.stop()) == {"b": 1}


def test_control_groups_while_recording(group, recording, actor):
    one, other = actor(), actor()
    join(group, one.pid)
    record = recording()
    one.does("sa")
    other.does("sa")
    record.ctl("--add-cgroup", group)
    one.does("sb")
    other.does("sc")
    join(group, other.pid)
    wait_until(record, other.pid, True)
    other.does("sd")
    record.ctl("--add-tid", one.pid, "--remove-cgroup", group)
    refusal = record.ctl("--add-cgroup", "/no/such", code=1).err
    assert "no control group '/no/such'; give a directory below /sys/fs/cgroup" in refusal, refusal
    one.does("se")
    assert steps(record.stop()) == {"a": 2, "b": 1, "d": 1}


def test_who_is_in_two_of_them(group, recording, actor):
    """The user's and the group's stays when one of both is taken out; and a group that is gone can be."""
    one, other = actor(), actor()
    assert one.does("u 54323") == 0
    assert other.does("u 54323") == 0
    join(f"{group}/below", one.pid)
    record = recording("--uid", "54323", "--cgroup", f"{group}/below")
    one.does("sa")
    other.does("sa")
    record.ctl("--remove-uid", "54323")
    one.does("sb")
    other.does("sc")
    record.ctl("--add-uid", "54323", "--remove-cgroup", f"{group}/below")
    one.does("sd")
    other.does("sd")
    record.ctl("--add-cgroup", group)
    join(os.path.dirname(group), one.pid)
    os.rmdir(f"{group}/below")
    os.rmdir(group)
    record.ctl("--remove-cgroup", "/" + os.path.basename(group))
    assert "no control group" in record.ctl("--remove-cgroup", group, code=1).err
    os.mkdir(group)
    os.mkdir(f"{group}/below")
    one.does("se")
    assert steps(record.stop()) == {"a": 2, "b": 1, "d": 2, "e": 1}


def test_raw(group, recording, actor):
    """Whose events they are is the kernel's to decide: raw recordings have the same, and ctl changes it."""
    groups, users, others = actor(), actor(), actor()
    join(f"{group}/below", groups.pid)
    assert users.does("u 54327") == 0
    record = recording("--raw", "--cgroup", group, "--uid", "54327")
    for one in (groups, users, others):
        one.does("sa")
        one.does("cb")
    assert others.does("u 54327") == 0
    wait_until(record, others.pid, True)
    others.does("sc")
    join(os.path.dirname(group), groups.pid)
    wait_until(record, groups.pid, False)
    groups.does("sd")
    record.ctl("--remove-uid", "54327", "--add-pid", groups.pid)
    for one in (groups, users, others):
        one.does("se")
    assert steps(record.stop()) == {"a": 2, "b": 2, "c": 1, "e": 1}


def test_a_name_that_comes_with_a_program(recording, program, actor, tmp_path):
    """By exec, the name of who calls changes."""
    shutil.copy(program, tmp_path / "kymo-named")
    record = recording("--comm", "kymo-named", events="syscall_entry_lseek,syscall_*_execve")
    one = actor("sh", "-c", f"exec {tmp_path}/kymo-named")
    one.does("sa")
    one.does("cb")
    events = [event for event in record.stop() if event[2]["tid"] == one.pid]
    assert [name for name, _, _ in events if "execve" in name] == ["syscall_exit_execve"]
    assert steps([event for event in events if "execve" not in event[0]]) == {"a": 1}


IN_A_NAMESPACE = """
"$0" record -o "$1" -k sched_switch &
until "$0" sessions | grep -q whose-ns; do sleep 0.02; done
"$0" ctl "$1" --add-uid 54324; echo "answered $?"
ls -d /sys/kernel/tracing/instances/kymo-*-$(stat -Lc %i /proc/self/ns/pid)*
"$0" ctl "$1" --stop
wait $!; echo "ended $?"
"""


def test_a_refused_user_is_not_watched(kymo_bin, needs_root_tracefs, tmp_path):
    """Else who becomes that user's would end that everybody is recorded. With another namespace's /proc nobody is chosen."""
    unshare = ["unshare", "--pid", "--fork"]
    if subprocess.run([*unshare, "true"], check=False).returncode:
        pytest.skip("needs pid namespaces")
    # Who looks for leaks looks for its threads there.
    env = {**os.environ, "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":detect_leaks=0"}
    done = subprocess.run([*unshare, "sh", "-c", IN_A_NAMESPACE, kymo_bin, tmp_path / "whose-ns"], env=env,
                          capture_output=True, text=True, check=False, timeout=120)
    answered, *instances, ended = done.stdout.splitlines()
    assert (answered, ended) == ("answered 1", "ended 0"), done
    assert "from within this pid namespace" in done.stderr
    assert len(instances) == 1 and not instances[0].endswith("-watch")
