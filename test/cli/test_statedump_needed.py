# SPDX-License-Identifier: MIT
"""kymo record --statedump: the events of the state dump, their processes, and their time."""

import collections
import glob
import json
import os
import re
import signal
import subprocess
import time

import pytest

import recording

PREFIX = "lttng_statedump_"
# Whatever the events are: who the threads are.
ALWAYS = {"start", "end", "process_state", "process_cgroup"}
OF_THREADS = {"process_pid_ns", "process_user_ns", "process_cgroup_ns", "process_ipc_ns", "process_net_ns",
              "process_uts_ns", "process_time_ns"}


def dump(kymo, trace, *options):
    """[(event without its prefix, fields)] of the state dump, in the order of time."""
    lines = kymo("convert", "--to", "json", *options, trace).out.splitlines()
    return [(e["event"][len(PREFIX):], e["fields"]) for e in map(json.loads, lines)
            if e["event"].startswith(PREFIX)]


def kinds(kymo, trace):
    return {name for name, _ in dump(kymo, trace)}


def test_of_a_command(kymo, record):
    """A command's switches need who it is; not the machine's descriptors, disks and processes."""
    trace, done = record("--follow", "-k", "sched_switch", command=["sleep", "0.1"])
    events = dump(kymo, trace)
    assert {name for name, _ in events} == (ALWAYS | {"cpu_topology"}) - no_groups()
    assert len({fields["pid"] for name, fields in events if name == "process_state"}) == 1
    assert f"state {len(events):14}" in done.err


def no_groups():
    """Without control groups of version 2, the dump has no events of them."""
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        return set() if any(line.startswith("0::") for line in file) else {"process_cgroup"}


@pytest.mark.parametrize("events, wanted", [
    ("syscall:futex", set()), ("syscall_exit_read", set()),
    ("syscall_entry_read", {"file_descriptor"}), ("syscall:epoll_wait", {"file_descriptor"}),
    ("block_rq_issue", {"block_device"}), ("net_dev_queue", {"network_interface"}),
    ("irq_handler_entry", {"interrupt"}), ("sched_waking", {"cpu_topology"}),
    ("kmem_mm_page_alloc", {"memory", "process_memory"}), ("kmem_kmalloc", {"memory", "process_memory", "module"}),
])
def test_what_events_need(kymo, record, events, wanted):
    trace, _ = record("-k", events, command=["true"])
    assert kinds(kymo, trace) - {"process_pid_ns"} == (ALWAYS | wanted) - no_groups()
    # Of everybody: also of the first process.
    assert any(name == "process_state" and fields["pid"] == 1 for name, fields in dump(kymo, trace))


def test_all_none_and_excluded(kymo, record):
    trace, _ = record("-k", "sched_switch", "--statedump=all", command=["true"])
    everything = kinds(kymo, trace)
    assert everything >= OF_THREADS - {"process_time_ns"} | {"file_descriptor", "module", "memory", "cpu_topology"}
    trace, _ = record("-k", "sched_switch", "--statedump=all", "--exclude", PREFIX + "process_*", "--exclude",
                      PREFIX + "file_descriptor", command=["true"])
    assert kinds(kymo, trace) == {name for name in everything if not name.startswith("process_")} - \
        {"file_descriptor"}
    for options in ("--statedump=none",), ("--exclude", PREFIX + "*"):
        trace, done = record("-k", "sched_switch", *options, command=["true"])
        assert not kinds(kymo, trace) and not (trace / "kernel" / "statedump_0").exists()
        assert f"state {0:14}" in done.err
        kymo("report", "cpu", trace)
        raw, _ = record("--raw", "-k", "sched_switch", *options, command=["true"])
        assert not kinds(kymo, raw) and int(kymo("print", "--count", raw).out)


def test_mistakes(record):
    _, done = record("--statedump=some", command=["true"], code=2)
    assert "--statedump: unknown value 'some'; try needed, all or none" in done.err
    _, done = record("--statedump=none", "--maps", command=["true"], code=2)
    assert "--maps" in done.err
    _, done = record("--exclude", PREFIX + "nonsense", command=["true"], code=1)
    assert f"no event '{PREFIX}nonsense'" in done.err


@pytest.fixture
def opener(tmp_path):
    """opener(name) -> process that has opened that file, and writes to it until it is killed."""
    running = []

    def call(name):
        script = ("import os, sys, time\n"
                  f"fd = os.open({str(tmp_path / name)!r}, os.O_WRONLY | os.O_CREAT)\n"
                  "os.set_inheritable(fd, True)\n"
                  "while os.pwrite(fd, b'x' * 100, 0):\n"
                  "    print(fd, flush=True)\n"
                  "    time.sleep(0.005)\n")
        running.append(subprocess.Popen(["/usr/bin/python3", "-c", script], stdout=subprocess.PIPE))
        assert running[-1].stdout.readline()
        return running[-1]

    yield call
    for process in running:
        process.kill()
        process.communicate()


def writes(process, times):
    """The process has written so many times more."""
    for _ in range(times):
        assert process.stdout.readline()


def test_of_chosen_processes(kymo, kymo_bin, needs_root_tracefs, tmp_path, opener):
    """Names and files of processes that are chosen at the start or later, and of no other process."""
    first, later = opener("first-file"), opener("later-file")
    running = recording.Recording(kymo, kymo_bin, None, tmp_path / "t", "-k", "syscall:pwrite64", "--pid", first.pid)
    running.ctl("--add-pid", str(later.pid))
    deadline = time.monotonic() + 60
    while len(dump_files(kymo, tmp_path / "t")) < 2:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    running.stop()
    events = dump(kymo, tmp_path / "t")
    assert {f["pid"] for name, f in events if name == "process_state"} == {first.pid, later.pid}
    assert dump_files(kymo, tmp_path / "t") == {(first.pid, str(tmp_path / "first-file")),
                                                (later.pid, str(tmp_path / "later-file"))}
    assert [name for name, _ in events if name in ("start", "end")] == ["start", "end"] * 2


def dump_files(kymo, trace):
    return {(f["pid"], f["filename"]) for name, f in dump(kymo, trace)
            if name == "file_descriptor" and f["filename"].endswith("-file")}


def test_of_events_that_come_later(kymo, kymo_bin, needs_root_tracefs, tmp_path, opener):
    process = opener("a-file")
    running = recording.Recording(kymo, kymo_bin, None, tmp_path / "t", "-k", "sched_process_exit")
    assert "file_descriptor" not in kinds(kymo, tmp_path / "t")
    running.ctl("--enable-kernel", "syscall:pwrite64")
    deadline = time.monotonic() + 60
    while not dump_files(kymo, tmp_path / "t"):
        assert time.monotonic() < deadline
        time.sleep(0.1)
    running.stop()
    assert (process.pid, str(tmp_path / "a-file")) in dump_files(kymo, tmp_path / "t")


# ---- snapshots ------------------------------------------------------------------------------


def names_of(kymo, trace):
    """What `report io` calls the files, each once."""
    report, = json.loads(kymo("report", "--json", "io", "--limit", "100000", trace).out)["reports"]
    table = next(table for table in report["tables"] if table["name"] == "files")
    names = [row["file"] for row in table["rows"]]
    assert len(names) == len(set(names))
    return set(names)


@pytest.mark.parametrize("options", [[], ["--raw"]], ids=["converted", "raw"])
def test_snapshots_have_a_fresh_one(kymo, kymo_bin, needs_root_tracefs, peer, tmp_path, opener, options):
    """What was opened, and who was started, after the flight recorder was: known in each of its snapshots."""
    running = recording.Recording(kymo, kymo_bin, None, tmp_path / "flight", "--overwrite", *options, "-k",
                                  "syscall_*_pwrite64")
    process = opener("opened-later")
    for n in range(5):
        writes(process, 10)
        kymo("snapshot", tmp_path / "flight", "-o", tmp_path / f"snap{n}")
    gone = opener("soon-gone")
    writes(gone, 10)
    kymo("snapshot", tmp_path / "flight", "-o", tmp_path / "snap5")
    gone.kill()
    gone.wait()
    running.process.send_signal(signal.SIGINT)
    running.process.wait()
    assert running.process.returncode == 0
    for n in range(6):
        trace = tmp_path / f"snap{n}"
        events = dump(kymo, trace)
        states = [fields for name, fields in events if name == "process_state"]
        assert states[0]["pid"] != process.pid and any(fields["pid"] == process.pid for fields in states)
        # It was used before the dump was taken that tells of it.
        assert str(tmp_path / "opened-later") in names_of(kymo, trace)
        # Dumps that newer ones replace are not kept.
        assert 2 <= sum(name == "start" for name, _ in events) <= 3
        ctf = trace
        if options:
            ctf = tmp_path / f"ctf{n}"
            kymo("convert", "--to", "ctf1.8", "-o", ctf, trace)
        shown = peer("babeltrace2", ctf)
        assert "lost" not in shown.err and "discarded" not in shown.err
        assert shown.out.count(PREFIX + "start") == sum(name == "start" for name, _ in events)
    # The snapshot before has a process that has ended since.
    assert {str(tmp_path / "opened-later"), str(tmp_path / "soon-gone")} <= names_of(kymo, tmp_path / "flight")


def test_threads_of_a_process_that_no_event_told_of(kymo, kymo_bin, needs_root_tracefs, tmp_path):
    """Which process a thread is of is known from the fresh state dump alone: so are its files."""
    running = recording.Recording(kymo, kymo_bin, None, tmp_path / "flight", "--overwrite", "-k",
                                  "syscall_*_pwrite64")
    script = ("import os, threading\n"
              f"fd = os.open({str(tmp_path / 'of-a-thread')!r}, os.O_WRONLY | os.O_CREAT)\n"
              "def work():\n"
              "    for i in range(20): os.pwrite(fd, b'y', i)\n"
              "    print('done', flush=True)\n"
              "    threading.Event().wait()\n"
              "threading.Thread(target=work).start()\n")
    with subprocess.Popen(["/usr/bin/python3", "-c", script], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout.readline()
            kymo("snapshot", tmp_path / "flight", "-o", tmp_path / "snap")
        finally:
            process.kill()
    running.process.send_signal(signal.SIGINT)
    running.process.wait()
    assert str(tmp_path / "of-a-thread") in names_of(kymo, tmp_path / "snap")


# ---- the recorder's own system calls --------------------------------------------------------


def own_calls(converted):
    found = re.search(r"(\d+) system calls of Kymo's own", converted)
    return int(found[1]) if found else 0


@pytest.mark.parametrize("overwrite", [True, False])
def test_own_calls_take_no_room(kymo, record, kymo_bin, tmp_path, overwrite):
    """A state dump makes ten calls for each of its events, which are not in the rings of a raw recording."""
    raw, done = record("--raw", *(["--overwrite"] if overwrite else []), "-k", "syscalls",
                       command=["sh", "-c", f"{kymo_bin} snapshot -o {tmp_path}/snap" if overwrite else "true"])
    state = int(re.search(r"^ +state +(\d+)$", done.err, re.M)[1])
    traces = [raw, tmp_path / "snap"] if overwrite else [raw]
    for n, trace in enumerate(traces):
        converted = kymo("convert", "--to", "ctf1.8", "-o", tmp_path / f"ctf{n}", trace).err
        assert own_calls(converted) < state, converted


def test_filters_are_there_again(kymo, recordings, tmp_path):
    """Filters of single events hold while the recorder's calls are kept out, and after that."""
    running = recordings("--raw", "--overwrite", "-k", "syscall_entry_pwrite64 if count == 77", "-k", "syscall_exit_pwrite64")
    instance, = glob.glob(f"/sys/kernel/tracing/instances/kymo-{running.process.pid}-*")

    def text(event):
        with open(f"{instance}/events/syscalls/{event}/filter", encoding="utf-8") as file:
            return file.read().strip()

    def settle():
        deadline = time.monotonic() + 60
        while (text("sys_enter_pwrite64"), text("sys_exit_pwrite64")) != ("(count == 77)", "none"):
            assert time.monotonic() < deadline, (text("sys_enter_pwrite64"), text("sys_exit_pwrite64"))
            time.sleep(0.02)

    settle()
    for n in range(20):
        for count in 77, 78:
            assert subprocess.run(["/usr/bin/python3", "-c", "import ctypes\n"
                                   f"ctypes.CDLL(None).pwrite64(-1, None, ctypes.c_size_t({count}), ctypes.c_long({n}))"], check=False).returncode == 0
        if n % 7 == 0:
            kymo("snapshot", running.out, "-o", tmp_path / f"snap{n}")
    settle()
    running.process.send_signal(signal.SIGINT)
    running.process.wait()
    lines = kymo("convert", "--to", "json", "--filter", "$event == 'syscall_entry_pwrite64'", running.out).out
    seen = collections.Counter((e["fields"]["pos"], e["fields"]["count"]) for e in map(json.loads, lines.splitlines()))
    assert seen == {(n, 77): 1 for n in range(20)}


def test_thread_for_programs_is_the_recorders_own(kymo, record):
    """The thread that reads programs' rings makes calls all the time, which nobody recorded is to see."""
    trace, done = record("-k", "syscalls", "--user", "nobody:*", "-d", "300ms", command=None)
    assert "events" in done.err
    out = kymo("convert", "--to", "json", "--event", PREFIX + "start", trace).out
    recorder = json.loads(out.splitlines()[0])["context"]["tid"]
    lines = kymo("convert", "--to", "json", "--event", "syscall_entry_*", trace).out.splitlines()
    tids = {json.loads(line)["context"]["tid"] for line in lines}
    # Threads of the recorder have the ids that were given next.
    assert not any(tid in tids for tid in range(recorder, recorder + 5) if was_thread(kymo, trace, tid, recorder))


def was_thread(kymo, trace, tid, pid):
    events = dump(kymo, trace)
    return any(name == "process_state" and f["tid"] == tid and f["pid"] == pid for name, f in events)
