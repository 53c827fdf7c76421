# SPDX-License-Identifier: MIT
"""Recording from within a pid namespace: options choose processes by their ids there, though the kernel's events
have the ids of the first namespace."""

import collections
import json
import os
import re
import subprocess
import sys
import tempfile

import pytest

import actors
from control_groups import hierarchies, remove_groups

UNSHARE = ["unshare", "--pid", "--fork", "--kill-child"]

# Runs inside, as the first process there: what it prints is as it sees it.
INSIDE = r"""
import json, os, signal, subprocess, sys, time
import actors

kymo, program, out = sys.argv[1:]

def ctl(*options, code=0):
    done = subprocess.run([kymo, "ctl", out, *map(str, options)], capture_output=True, text=True, check=False)
    assert done.returncode == code, done
    return done.stderr

a, b, c = (actors.Actor(program) for _ in range(3))
record = subprocess.Popen([kymo, "record", "-o", out, "-k", "syscall_entry_lseek,syscall_entry_getppid",
                           "--context", "pid,ppid,procname", "--pid", str(a.pid)], stderr=subprocess.PIPE)
while out not in subprocess.run([kymo, "sessions"], capture_output=True, text=True, check=True).stdout:
    assert record.poll() is None, record.stderr.read()
    time.sleep(0.02)

def all_do(letter):
    for one in a, b, c:
        one.does(f"s{letter}")
        one.does(f"2{letter}")

all_do("a")
a.does("tb")                                # another thread
a.does("cc")                                # a child
ctl("--add-tid", b.second_thread())
all_do("d")
ctl("--add-pid", c.pid, "--remove-pid", a.pid)
all_do("e")
assert "there is no process 4000000" in ctl("--add-pid", 4000000, code=1)
assert "there is no thread 4000000" in ctl("--add-tid", 4000000, code=1)
ctl("--remove-pid", c.pid)
all_do("f")
record.send_signal(signal.SIGINT)
_, err = record.communicate()
assert record.returncode == 0 and b"; 0 lost." in err, err
print(json.dumps({"a": a.pid, "b": b.second_thread(), "c": c.pid, "second of a": a.second_thread(),
                  "second of c": c.second_thread()}))
for one in a, b, c:
    one.end()
"""

# The same for a control group, which a process leaves.
LEAVING = r"""
import glob, os, signal, subprocess, sys, time
import actors

kymo, program, out, group = sys.argv[1:]

def move(pid, to):
    with open(f"{to}/cgroup.procs", "w", encoding="ascii") as file:
        file.write(str(pid))

def lists():
    texts = []
    for name in "set_event_pid", "set_event_notrace_pid":
        if os.path.exists(f"{instance}/{name}"):
            with open(f"{instance}/{name}", encoding="ascii") as file:
                texts.append(file.read())
    return texts

one = actors.Actor(program)
move(one.pid, group)
record = subprocess.Popen([kymo, "record", "-o", out, "-k", "syscall_entry_lseek", "--cgroup", group],
                          stderr=subprocess.PIPE)
while out not in subprocess.run([kymo, "sessions"], capture_output=True, text=True, check=True).stdout:
    assert record.poll() is None, record.stderr.read()
    time.sleep(0.02)
instance, = glob.glob(f"/sys/kernel/tracing/instances/kymo-{record.pid}-*-{os.stat('/proc/self/ns/pid').st_ino}")
one.does("sa")
before, end = lists(), time.monotonic() + 60
move(one.pid, os.path.dirname(group))
while lists() == before:
    assert time.monotonic() < end, before
    time.sleep(0.02)
one.does("sb")
record.send_signal(signal.SIGINT)
_, err = record.communicate()
assert record.returncode == 0 and b"; 0 lost." in err, err
one.end()
"""


@pytest.fixture(scope="module")
def inside(needs_root_tracefs):
    """inside(*command, own_proc=True) -> CompletedProcess"""
    if subprocess.run([*UNSHARE, "true"], check=False).returncode:
        pytest.skip("needs pid namespaces")

    def call(*command, own_proc=True):
        return subprocess.run([*UNSHARE, *(["--mount-proc"] if own_proc else []), *command], capture_output=True,
                              text=True, check=False, timeout=300,
                              env={**os.environ, "PYTHONPATH": os.path.dirname(__file__)})

    return call


def events_of(kymo, trace):
    lines = kymo("convert", "--to", "json", trace).out.splitlines()
    return [(e["event"], e["fields"], e["context"]) for e in map(json.loads, lines)]


def test_whom(kymo, kymo_bin, inside, tmp_path):
    """By processes and threads, added and taken out; their threads and children, too."""
    program = actors.build(tmp_path / "kymo-actor")
    done = inside(sys.executable, "-c", INSIDE, kymo_bin, program, tmp_path / "t")
    assert done.returncode == 0, done
    ids = json.loads(done.stdout)
    events = events_of(kymo, tmp_path / "t")
    # The state dump knows both: what they are called inside, and the kernel's ids; also of who was chosen later.
    kernel = {f["vtid"]: f["tid"] for event, f, _ in events if event == "lttng_statedump_process_pid_ns"}
    assert len(kernel) >= len(ids) and all(f["ns_level"] >= 1 for event, f, _ in events
                                    if event == "lttng_statedump_process_pid_ns")
    ids = {name: kernel[own] for name, own in ids.items()}
    found = collections.defaultdict(str)
    for event, fields, context in events:
        if event == "syscall_entry_lseek" and fields["offset"] % 1000 == 10:
            found[context["tid"]] += chr((fields["offset"] - actors.BASE) // 1000)
    assert {name: found.pop(tid, "") for name, tid in ids.items()} == {
        "a": "ad", "second of a": "ad", "b": "de" + "f", "c": "e", "second of c": "e"}
    # Who was started meanwhile: the thread, and the child.
    assert sorted(found.values()) == ["b", "c"]
    for event, fields, context in events:
        if event == "syscall_entry_lseek":
            assert context["procname"] in ("kymo-actor", "actor")
            assert context["tid"] in found or context["pid"] in ids.values() or context["tid"] == ids["b"]
            if context["tid"] in (ids["second of a"], ids["second of c"]):
                assert context["pid"] == ids["a" if context["tid"] == ids["second of a"] else "c"]
    # In a namespace, too, the recorder is not in its recording.
    assert not any(event == "syscall_entry_getppid" for event, _, _ in events)


# The same of users, control groups and containers: present, later, added and removed threads.
GROUPS = r"""
import os, signal, subprocess, sys, time
import actors

kymo, program, out, top, container = sys.argv[1:]
one, user, kept, nobody = everybody = [actors.Actor(program) for _ in range(4)]

def join(group, who):
    with open(f"{top}/{group}/cgroup.procs", "w", encoding="ascii") as file:
        file.write(str(who.pid))

def all_do(letter):
    for i, who in enumerate(everybody):
        who.does(f"s{chr(ord(letter) + i)}")

def ctl(*options):
    subprocess.run([kymo, "ctl", out, *options], check=True, capture_output=True)

join("group", one)
join(f"docker/{container}", kept)
user.does("u 54321")
record = subprocess.Popen([kymo, "record", "-o", out, "-k", "syscall_entry_lseek", "--uid", "54321", "--cgroup",
                           f"{top}/group", "--container", container[:12]], stderr=subprocess.PIPE)
while out not in subprocess.run([kymo, "sessions"], capture_output=True, text=True, check=True).stdout:
    assert record.poll() is None, record.stderr.read()
    time.sleep(0.02)
all_do("a")
one.does("cg")
kept.does("th")
ctl("--remove-uid", "54321", "--remove-container", container)
all_do("m")
ctl("--add-uid", "54321", "--add-container", container, "--remove-cgroup", f"{top}/group")
all_do("A")
record.send_signal(signal.SIGINT)
_, err = record.communicate()
assert record.returncode == 0 and b"; 0 lost." in err, err
for process in everybody:
    process.end()
"""


def test_users_and_groups(kymo, kymo_bin, inside, tmp_path, request):
    hierarchy = next(iter(hierarchies()), None)
    if not hierarchy:
        pytest.skip("needs control groups that can be made")
    program = actors.build(tmp_path / "kymo-actor")
    top = tempfile.mkdtemp(prefix="kymo-test-", dir=os.path.join("/sys/fs/cgroup", hierarchy))
    request.addfinalizer(lambda: remove_groups(top))
    container = os.urandom(32).hex()
    os.makedirs(f"{top}/docker/{container}")
    os.mkdir(f"{top}/group")
    done = inside(sys.executable, "-c", GROUPS, kymo_bin, program, tmp_path / "t", top, container)
    assert done.returncode == 0, done
    found = actors.steps([e for e in events_of(kymo, tmp_path / "t") if e[0] == "syscall_entry_lseek"])
    # Of one, user, kept and nobody.
    assert found == dict.fromkeys("abc" + "gh" + "m" + "BC", 1)


def test_who_leaves_a_group(kymo, kymo_bin, inside, tmp_path):
    if not hierarchies():
        pytest.skip("needs control groups that can be made")
    top = tempfile.mkdtemp(prefix="kymo-test-", dir=f"/sys/fs/cgroup/{hierarchies()[0]}")
    try:
        os.mkdir(f"{top}/group")
        done = inside(sys.executable, "-c", LEAVING, kymo_bin, actors.build(tmp_path / "kymo-actor"), tmp_path / "t",
                      f"{top}/group")
    finally:
        remove_groups(top)
    assert done.returncode == 0, done
    found = actors.steps([e for e in events_of(kymo, tmp_path / "t") if e[0] == "syscall_entry_lseek"])
    assert found == {"a": 1}


@pytest.mark.parametrize("raw", [[], ["--raw"]])
def test_the_command(kymo, kymo_bin, inside, tmp_path, raw):
    done = inside(kymo_bin, "record", "-o", tmp_path / "t", "--follow", *raw, "-k", "syscall_*_execve,sched_process_exit",
                  "--context", "pid,procname", "--", "sh", "-c", "true | /bin/true; exit 0")
    assert done.returncode == 0 and "; 0 lost." in done.stderr, done
    events = [e for e in events_of(kymo, tmp_path / "t") if not e[0].startswith("lttng_statedump")]
    exits = [fields["comm"] for event, fields, _ in events if event == "sched_process_exit"]
    assert exits[-1] == "sh" and exits.count("true") == 1
    assert {context["procname"] for event, fields, context in events
            if event == "syscall_exit_execve" and fields["ret"] == 0} == {"sh", "true"}
    assert all(context["pid"] == context["tid"] for _, _, context in events)
    if raw:
        # The recorder's threads are the kernel's, too: there they are the first few. 0: there is no such thread.
        own = re.search("^own (.*)$", (tmp_path / "t/raw/recording").read_text(errors="replace"), re.M)[1]
        assert all(tid == 0 or tid > 20 for tid in map(int, own.split())), own


def test_proc_of_another_one(kymo_bin, inside, tmp_path):
    """Nothing tells which process is meant: better nobody than somebody else."""
    for options in (["--pid", "1"], ["--follow"]):
        done = inside(kymo_bin, "record", "-o", tmp_path / "t", *options, "-k", "sched_switch", "--", "true",
                      own_proc=False)
        assert done.returncode == 1 and not (tmp_path / "t").exists(), done
        last = done.stderr.splitlines()[-1]
        assert "from within this pid namespace" in last and "/proc is of another pid namespace" in last
        assert "mount -t proc" in last and "record on the host and choose this container there" in last
    # All else is recorded.
    done = inside(kymo_bin, "record", "-o", tmp_path / "t", "-k", "sched_switch", "--", "true", own_proc=False)
    assert done.returncode == 0 and "may have wrong IDs: /proc is of another pid namespace" in done.stderr, done
