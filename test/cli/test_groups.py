# SPDX-License-Identifier: MIT
"""Groups of events with buffers of their own: frequent events do not push out the rare ones."""

import json
import os
import re
import signal
import subprocess

import pytest

needs_kernel = pytest.mark.usefixtures("needs_root_tracefs")

RARE = "rare:1M:sched_process_exec"


def peer_names(trace):
    done = subprocess.run(["babeltrace2", trace], capture_output=True, text=True, check=True)
    return re.findall(r"\) \S+ (\w+): ", done.stdout), done.stderr


@needs_kernel
def test_rare_events_survive(recordings, kymo, tmp_path):
    """Counts are exact, in one trace that every reader opens, and losses are of the frequent events."""
    record = recordings("-b", "64k", "-k", "syscalls,sched_switch", "--group", RARE, "--statedump=none")
    # While the recorder is stopped, nobody reads the rings.
    record.process.send_signal(signal.SIGSTOP)
    for _ in range(20):
        subprocess.run(["/bin/true"], check=True)
    subprocess.run(["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=20000"], check=True, stderr=subprocess.DEVNULL)
    record.process.send_signal(signal.SIGCONT)
    kymo("ctl", record.out, "--stop")
    _, err = record.process.communicate()
    err = err.decode()
    assert {"rare_0", "channel0_0"} <= set(os.listdir(record.out / "kernel"))
    lost = sum(int(n) for n in re.findall(r"^ +\d+ +\d+ +(\d+)$", err, re.M))
    of_group = re.findall(r"^ +\d+ +(\d+) +(\d+)  group rare$", err, re.M)
    assert lost > 10000 and of_group and all(int(n) == 0 for _, n in of_group)
    found, said = peer_names(record.out)
    assert found.count("sched_process_exec") == sum(int(n) for n, _ in of_group) >= 21
    assert "discarded" in said and "/rare_" not in said
    lines = [json.loads(line) for line in kymo("convert", "--to", "json", record.out).out.splitlines()]
    assert sorted(e["event"] for e in lines) == sorted(found)
    assert sum(e["event"] == "sched_process_exec" and e["fields"]["filename"] == "/bin/true" for e in lines) >= 20
    subprocess.run(["lttng-cputop", "--no-progress", record.out], stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL, check=True, cwd=tmp_path)
    assert kymo("report", "cpu", record.out).out


@needs_kernel
def test_filters_changes_and_pauses(recordings, kymo):
    record = recordings("-k", "sched_switch", "--group", "rare:64k:sched_process_exec,sched_wakeup_new if tid > 1",
                        "--context", "procname")
    subprocess.run(["/bin/true"], check=True)
    record.ctl("--pause")
    subprocess.run(["/bin/true"], check=True)
    record.ctl("--resume", "--disable-kernel", "sched_wakeup_new")
    subprocess.run(["/bin/true"], check=True)
    record.ctl("--enable-kernel", "sched_wakeup_new")
    subprocess.run(["/bin/true"], check=True)
    status = json.loads(record.ctl("--status", "--json").out)
    assert {one["group"] for one in status["cpus"]} == {None, "rare"}
    assert status["group"] == ["rare:65536:sched_process_exec,sched_wakeup_new if tid > 1"]
    kymo("rotate", record.out)
    subprocess.run(["/bin/true"], check=True)
    record.ctl("--clear")
    subprocess.run(["/bin/true"], check=True)
    events = record.stop()
    mine = [e for e in events if e[0] == "sched_process_exec" and e[1]["filename"] == "/bin/true"]
    assert len(mine) == 4
    assert {e[2]["procname"] for e in mine} == {"true"}
    # A chunk is a trace with the group's streams.
    chunk, = os.listdir(record.out / "archives")
    assert any(name.startswith("rare_") for name in os.listdir(record.out / "archives" / chunk / "kernel"))


@needs_kernel
def test_a_flight_group_beside_a_trace(recordings, kymo, tmp_path):
    record = recordings("-k", "sched_process_exec", "--group", "waking:4M:overwrite:sched_waking,syscall_entry_getppid")
    subprocess.run(["sh", "-c", "for i in $(seq 200); do /bin/true; done"], check=True)
    kymo("snapshot", "-o", tmp_path / "snap", record.out)
    snap, _ = peer_names(tmp_path / "snap")
    assert set(snap) <= {"sched_waking", "syscall_entry_getppid"} and snap
    # Until the end, the trace itself has none of them.
    assert not any(name.startswith("waking_") for name in os.listdir(record.out / "kernel"))
    events = [e[0] for e in record.stop()]
    assert events.count("sched_process_exec") >= 200 and "sched_waking" in events
    assert peer_names(record.out)[0].count("sched_waking") == events.count("sched_waking")


@needs_kernel
def test_groups_of_a_flight_recorder(recordings, kymo, tmp_path):
    """The rare events are older than all the others that are left."""
    record = recordings("--overwrite", "-b", "64k", "-k", "syscalls", "--group", "rare:64k:sched_process_exec")
    subprocess.run(["/bin/true"], check=True)
    subprocess.run(["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=200000"], check=True, stderr=subprocess.DEVNULL)
    kymo("snapshot", "-o", tmp_path / "snap", record.out)
    lines = [json.loads(line) for line in kymo("convert", "--to", "json", tmp_path / "snap").out.splitlines()]
    files = [e["fields"]["filename"] for e in lines if e["event"] == "sched_process_exec"]
    assert "/bin/true" in files
    assert any(e["event"] == "lttng_statedump_process_state" for e in lines)
    kymo("ctl", record.out, "--stop")
    record.process.communicate()


@needs_kernel
def test_a_saved_profile_has_groups(kymo, tmp_path):
    kymo("record", "-k", "sched_switch", "--group", RARE, "--save", tmp_path / "profile", "-o", tmp_path / "a",
         "--", "/bin/true")
    assert f"group {RARE}" in (tmp_path / "profile").read_text(encoding="utf-8").replace("=", " ")
    kymo("record", "--profile", tmp_path / "profile", "-o", tmp_path / "b", "--", "/bin/true")
    assert any(name.startswith("rare_") for name in os.listdir(tmp_path / "b" / "kernel"))


@pytest.mark.parametrize("group, message", [
    ("rare", "NAME:SIZE"), ("rare:1M", "NAME:SIZE"), ("rare:1M:", "NAME:SIZE"), ("rare:1M:overwrite:", "NAME:SIZE"),
    ("../x:1M:sched_switch", "not a name of a group"), ("channel0:1M:sched_switch", "not a name of a group"),
    ("statedump_x:1M:sched_switch", "not a name of a group"), ("rare:1:sched_switch", "not a size"),
    ("rare:x:sched_switch", "not a size"), ("rare:1M:user:shop:*", "for kernel events"), ("rare:99T:sched_switch", "not a size"),
])
def test_mistakes(kymo, tmp_path, group, message):
    assert message in kymo("record", "--group", group, "-o", tmp_path / "out", "--", "/bin/true", code=2).err
    assert not (tmp_path / "out").exists()


@needs_kernel
def test_more_mistakes(kymo, tmp_path):
    twice = ["--group", RARE, "--group", RARE]
    assert "two groups" in kymo("record", *twice, "-o", tmp_path / "out", "--", "/bin/true", code=2).err
    assert "no_such" in kymo("record", "--group", "rare:1M:no_such_event", "-o", tmp_path / "out", "--", "/bin/true",
                             code=1).err
    assert "--raw" in kymo("record", "--raw", "-k", "sched_switch", "--group", RARE, "-o", tmp_path / "out", "--",
                           "/bin/true", code=2).err
