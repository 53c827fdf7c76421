# SPDX-License-Identifier: MIT
"""Groups of events with buffers of their own: frequent events do not push out the rare ones."""

import glob
import json
import os
import re
import signal
import socket
import subprocess

import pytest

from test_user import box, nothing_left  # noqa: F401

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="mounting a private /dev/shm needs root")
needs_kernel = pytest.mark.usefixtures("needs_root_tracefs")

RARE = "rare:1M:sched_process_exec"


def peer_names(trace):
    done = subprocess.run(["babeltrace2", trace], capture_output=True, text=True, check=True)
    return re.findall(r"\) \S+ ([\w:]+): ", done.stdout), done.stderr


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
    assert f"{lost} events were lost: the rings (64.0 KiB per CPU) were full; try a larger --buffer-size" in err
    assert "larger --group" not in err
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
def test_losses_of_a_group_name_its_size(recordings, kymo):
    record = recordings("-k", "sched_process_exec", "--group", "calls:64k:syscalls", "--statedump=none")
    record.process.send_signal(signal.SIGSTOP)
    subprocess.run(["dd", "if=/dev/zero", "of=/dev/null", "bs=1", "count=50000"], check=True, stderr=subprocess.DEVNULL)
    record.process.send_signal(signal.SIGCONT)
    kymo("ctl", record.out, "--stop")
    err = record.process.communicate()[1].decode()
    lost = sum(int(n) for n in re.findall(r"^ +\d+ +\d+ +(\d+)  group calls$", err, re.M))
    assert lost > 10000
    assert f"{lost} events of group calls were lost: the rings (64.0 KiB per CPU) were full; try a larger --group calls:SIZE, " in err
    assert "--buffer-size" not in err


@needs_kernel
def test_filters_changes_and_pauses(recordings, kymo):
    pids = []

    def run_true():
        with subprocess.Popen(["/bin/true"]) as program:
            pids.append(program.pid)

    record = recordings("-k", "sched_switch", "--group", "rare:64k:sched_process_exec,sched_wakeup_new if tid > 1",
                        "--context", "procname")
    run_true()
    record.ctl("--pause")
    run_true()
    record.ctl("--resume", "--disable-kernel", "sched_wakeup_new")
    run_true()
    record.ctl("--enable-kernel", "sched_wakeup_new")
    run_true()
    status = json.loads(record.ctl("--status", "--json").out)
    assert {one["group"] for one in status["cpus"]} == {None, "rare"}
    assert status["group"] == ["rare:64k:sched_process_exec,sched_wakeup_new if tid > 1"]
    kymo("rotate", record.out)
    run_true()
    record.ctl("--clear")
    run_true()
    events = record.stop()
    mine = [e for e in events if e[0] == "sched_process_exec" and e[1]["filename"] == "/bin/true" and e[1]["tid"] in pids]
    # The second one ran in a pause, the one after the rotation was cleared.
    assert [e[1]["tid"] for e in mine] == [pids[i] for i in (0, 2, 3, 5)]
    assert {e[2]["procname"] for e in mine} == {"true"}
    # A chunk is a trace with the group's streams.
    chunk, = os.listdir(record.out / "archives")
    assert any(name.startswith("rare_") for name in os.listdir(record.out / "archives" / chunk / "kernel"))


def ask(record, *words):
    """As kymo ctl does, without the time that a program takes to start."""
    # Files that it closes meanwhile are none of them.
    listed = subprocess.run(["ls", "-l", f"/proc/{record.process.pid}/fd"], capture_output=True, text=True, check=False)
    own = {int(number) for number in re.findall(r"socket:\[(\d+)\]", listed.stdout)}
    with open("/proc/net/unix", encoding="utf-8") as file:
        paths = [line.split()[7] for line in file if "/kymo-recordings" in line and int(line.split()[6]) in own]
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        client.connect(paths[0])
        yield
        client.send(b"".join(word.encode() + b"\0" for word in words))
        assert client.recv(65536).startswith(b"ok\0")


@needs_kernel
@pytest.mark.parametrize("options", [[], ["--context", "procname"], ["--overwrite"],
                                     ["--overwrite", "--context", "procname"]])
def test_clear_takes_the_last_moment(recordings, kymo, options, tmp_path):
    """What happened right before it is not in the trace, though the newest events are held back for a while."""
    record = recordings("-k", "sched_switch", "--group", RARE, *options)
    for _ in range(5):
        request = ask(record, "clear")
        next(request)
        pid = os.posix_spawn("/bin/true", ["true"], {})
        os.waitpid(pid, 0)
        assert next(request, None) is None
        if "--overwrite" in options:
            kymo("snapshot", "-o", tmp_path / f"snapshot-{pid}", record.out)
            shown = kymo("convert", "--to", "json", tmp_path / f"snapshot-{pid}").out
        else:
            kymo("rotate", record.out)
            chunk = max(os.listdir(record.out / "archives"), key=lambda name: int(name.rsplit("-", 1)[1]))
            shown = kymo("convert", "--to", "json", record.out / "archives" / chunk).out
        events = [json.loads(line) for line in shown.splitlines()]
        assert events and not [e for e in events if e["event"] == "sched_process_exec" and e["fields"]["tid"] == pid]
    kymo("ctl", record.out, "--stop")
    record.process.communicate()


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
    ("rare:x:sched_switch", "not a size"), ("rare:99T:sched_switch", "not a size"), ("rare:1M:user:", "no event"),
    ("rare:1M:user: if x > 1", "no event"), ("x:1:user:shop:*", "not a size"),
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


@needs_kernel
def test_a_flight_group_in_chunks(recordings, kymo):
    """Each chunk has the group's events of its time, and no event is in two."""
    # Not getppid(), which the leak sanitizer calls in the commands that the test starts.
    record = recordings("-k", "sched_process_exec", "--pid", os.getpid(), "--group", "calls:1M:overwrite:syscall_entry_getsid")
    for n in (50, 70):
        for _ in range(n):
            os.getsid(0)
        kymo("rotate", record.out)
    for _ in range(30):
        os.getsid(0)
    record.ctl("--clear")
    for _ in range(40):
        os.getsid(0)
    chunks = sorted((record.out / "archives").iterdir(), key=lambda path: int(path.name.split("-")[-1]))
    assert [peer_names(chunk)[0].count("syscall_entry_getsid") for chunk in chunks] == [50, 70]
    assert [e[0] for e in record.stop()].count("syscall_entry_getsid") == 160
    assert peer_names(record.out)[0].count("syscall_entry_getsid") == 160


# A program that writes N frequent events and a rare one for each line of its input; rounds 3: until it has done so 3 times.
PROGRAM = r"""
begin() {
	mkfifo in; : >said
	kymo record "$@" -o out & recorder=$!
	wait_for 'kymo sessions | grep -q /out'
	$T/modes rare 20000 <in >said & program=$!
	exec 3>in
}
rounds() { while [ $(wc -l <said) -lt $1 ]; do local n=$(wc -l <said); echo >&3; wait_for "[ \$(wc -l <said) -gt $n ]"; done; }
end() { exec 3>&-; wait $program; kill -INT $recorder; wait $recorder; }
"""


def program_events(kymo, done, *path):
    """(rounds of the rare events, number of frequent ones), on which kymo and the peer agree."""
    path = os.path.join(done.cwd, *path)
    lines = [json.loads(line) for line in kymo("convert", "--to", "json", path).out.splitlines()]
    rare = [e["fields"]["round"] for e in lines if e["event"] == "modes:rare"]
    frequent = sum(e["event"] == "modes:frequent" for e in lines)
    found, _ = peer_names(path)
    assert found.count("modes:frequent") == frequent and found.count("modes:rare") == len(rare)
    times = [e["timestamp_ns"] for e in lines]
    assert times == sorted(times)
    return rare, frequent


@needs_root
@pytest.mark.parametrize("group, larger", [
    ("few:64k:user:modes:frequent", "--group few:SIZE (now 64.0 KiB per CPU), fewer events in the groups"),
    ("rare:1M:user:modes:rare", "--buffer-size (now 64.0 KiB per CPU), fewer events with --user"),
])
def test_losses_of_programs_name_the_size(box, group, larger):  # noqa: F811
    done = box(PROGRAM + f"""
begin -b 64k --user 'modes:*' --group {group}
rounds 1
kill -STOP $recorder
rounds 2
kill -CONT $recorder
end
""" + nothing_left())
    assert f"); try a larger {larger}, or --when-full block\n" in done.err


@needs_root
@pytest.mark.parametrize("buffers", ["process", "user"])
def test_rare_events_of_programs_survive(box, kymo, buffers):  # noqa: F811
    """A flight recorder: of the frequent events the newest are left, of the rare ones all."""
    done = box(PROGRAM + f"""
begin --overwrite -b 64k --buffers {buffers} --user 'modes:*' --group rare:64k:user:modes:rare
rounds 3
kymo ctl out --status --json >status
kymo ctl out --status >text
kymo sessions >sessions
kymo snapshot -o snap out >/dev/null
rounds 5
end
""" + nothing_left())
    rare, frequent = program_events(kymo, done, "snap")
    assert rare == [1, 2, 3] and 0 < frequent < 20000
    rare, frequent = program_events(kymo, done, "out")
    assert rare == [1, 2, 3, 4, 5] and 0 < frequent < 20000
    with open(os.path.join(done.cwd, "status"), encoding="utf-8") as file:
        status = json.load(file)
    assert status["group"] == ["rare:64k:user:modes:rare"]
    events = {one["group"]: one["events"] for one in status["program_list"]}
    assert events["rare"] >= 3 and events[None] >= 60000
    for name in ("text", "sessions"):
        with open(os.path.join(done.cwd, name), encoding="utf-8") as file:
            text = file.read()
        assert "--group rare:64k:user:modes:rare" in text
    assert re.search(r"group rare$", done.err, re.M) and "; 0 lost." in done.err
    assert "overwritten: the buffers have 64.0 KiB per CPU, those of group rare 64.0 KiB\n" in done.err
    if buffers == "process":
        assert [re.sub(r"modes-\d+-\d+-\d+", "", os.path.basename(path)) for path in done.traces()] == ["", "-rare"]
        assert {"rare_0"} <= {re.sub(r"\d+$", "0", name) for name in os.listdir(done.traces()[1])}
    else:
        assert sorted(os.listdir(os.path.join(done.cwd, "out", "ust", "uid", "0"))) == ["64-bit", "64-bit-rare"]


@needs_root
def test_groups_of_programs_change(box, kymo):  # noqa: F811
    """Beside a trace: chunks, events that are switched off and on, a pause, clearing, snapshots."""
    done = box(PROGRAM + """
begin -b 2M --user 'modes:*' --group rare:64k:overwrite:user:modes:rare --group 'few:2M:user:modes:freq*,no:event if i < 10'
rounds 2; kymo rotate out
rounds 3; kymo rotate out
kymo ctl out --disable-event modes:rare; rounds 4
kymo ctl out --enable-event 'modes:*'; rounds 5
kymo ctl out --pause; rounds 6
kymo ctl out --resume; rounds 7
kymo snapshot -o snap out
rounds 8
kymo sessions --json >sessions
end
begin2() { rm in said; begin "$@"; }
mv out first
begin2 --group rare:64k:overwrite:user:modes:rare
rounds 2; kymo ctl out --clear; rounds 4
end
""" + nothing_left())
    chunks = sorted(os.listdir(os.path.join(done.cwd, "first", "archives")), key=lambda name: int(name.split("-")[-1]))
    found = [program_events(kymo, done, "first", "archives", chunk) for chunk in chunks]
    assert found == [([1, 2], 20), ([3], 10)]
    assert program_events(kymo, done, "snap") == ([5, 7], 0)
    assert program_events(kymo, done, "first") == ([1, 2, 3, 5, 7, 8], 70)
    with open(os.path.join(done.cwd, "sessions"), encoding="utf-8") as file:
        recording, = json.load(file)["recordings"]
    assert len(recording["group"]) == 2
    # A group alone: nothing else of the program is recorded, and a cleared event does not come back.
    assert program_events(kymo, done, "out") == ([3, 4], 0)


@needs_root
@pytest.mark.parametrize("buffers", ["process", "user"])
@pytest.mark.parametrize("options", ["--overwrite -b 64k", "-b 4M"])
def test_recovered_groups(box, kymo, options, buffers):  # noqa: F811
    """What a killed recorder left of a group is the group's again; with what was read before, each event is there once."""
    done = box(PROGRAM + f"""
begin {options} --buffers {buffers} --user 'modes:*' --group rare:64k:user:modes:rare
rounds 2
{"" if "--overwrite" in options else "wait_for '[ $(find out -name metadata | wc -l) = 2 ]'"}
kill -9 $recorder; wait $recorder
rounds 3
exec 3>&-; wait $program
kymo recover -o single /dev/shm/kymo-0/*/*.ring
kymo recover --remove -o found /dev/shm/kymo-0
kymo record --user 'other:*' -o other -- true
""" + nothing_left())
    whose = r" events of process \d+" if buffers == "process" else " events of the programs of user 0"
    assert len(re.findall(rf"{whose}, group rare -> \S+-rare; (?:\d+ were read before; )?complete$", done.out, re.M)) == 2
    assert len(re.findall(rf"{whose} -> ", done.out)) == 2
    shape = "pid/modes-*-rare" if buffers == "process" else "uid/0/64-bit-rare"
    for place in ("single", "found"):
        trace, = glob.glob(os.path.join(done.cwd, place, "ust", shape))
        assert any(name.startswith("rare_") for name in os.listdir(trace))
    if "--overwrite" in options:
        rare, frequent = program_events(kymo, done, "found")
        assert rare == [1, 2, 3] and 0 < frequent < 60000
    else:
        both = kymo("print", os.path.join(done.cwd, "out"), os.path.join(done.cwd, "found")).out
        assert re.findall(r"modes:rare: .*round = (\d+)", both) == ["1", "2", "3"]
        assert both.count("modes:frequent:") == 60000


@needs_root
@pytest.mark.parametrize("name", ["../x", "a/bc", "-abc", "a bc", r"\x1b[1m"])
def test_a_group_that_others_wrote(box, kymo, name):  # noqa: F811
    """The session file may be another user's: what is no name of a group never becomes a part of a path."""
    done = box(PROGRAM + f"""
begin --overwrite --user 'modes:*' --group rare:64k:user:modes:rare
rounds 1
kill -9 $recorder; wait $recorder
exec 3>&-; wait $program
kymo recover -o before /dev/shm/kymo-0 | grep -q ', group rare -> ' || exit 95
sed -i 's|rare\\x00|{name}\\x00|' /dev/shm/kymo-0/*/session
kymo recover --remove -o found /dev/shm/kymo-0
""")
    assert done.out.count(" events of process ") == 2 and "group" not in done.out
    traces = os.listdir(os.path.join(done.cwd, "found", "ust", "pid"))
    assert len(traces) == 2 and all(re.fullmatch(r"modes-[\d-]+", trace) for trace in traces)


@needs_root
def test_live_readers(box, kymo):  # noqa: F811
    """A live reader has groups' events in the order of time, but those of groups that overwrite come with the chunks."""
    done = box(PROGRAM + """
begin --user 'modes:*' --group rare:64k:user:modes:rare --group few:64k:overwrite:user:modes:freq*
kymo print --live out 3>&- >live 2>live.err & live=$!
rounds 1; wait_for 'grep -q modes:rare live'
kymo rotate out
rounds 2; wait_for '[ $(grep -c modes:rare live) -eq 2 ]'
kymo rotate out
rounds 3; wait_for '[ $(grep -c modes:rare live) -eq 3 ]'
end
wait $live
""" + nothing_left())
    with open(os.path.join(done.cwd, "live"), encoding="utf-8") as file:
        lines = [line for line in file if "lttng_ust" not in line]
    assert [re.search(r"modes:(\w+)", line)[1] for line in lines] == ["rare"] * 3
    assert lines == sorted(lines)
    rare, frequent = program_events(kymo, done, "out")
    assert rare == [1, 2, 3] and frequent > 1000
