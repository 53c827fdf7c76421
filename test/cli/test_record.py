# SPDX-License-Identifier: MIT
"""kymo record on this machine's kernel: what a known workload did is in the trace, exactly."""

import collections
import glob
import json
import os
import re
import shutil
import signal
import subprocess
import time

import pytest

# A workload of which every part can be counted. The number of getppid calls is its argument.
# Only one of the files is on a disk: on a busy one each fsync takes a second, in which others make events.
# It stays on the first CPU: some kernels do not tell when other CPUs leave their idle task, and
# lttng-analyses knows the current thread by such switches only.
WORKLOAD = r"""
import os, socket, subprocess, sys, threading
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
for _ in range(int(sys.argv[1])):
    os.getppid()
path = sys.argv[2]
for i in range(10):
    with open(os.memfd_create("file") if i else path, "wb", buffering=0) as file:
        file.write(b"x" * 8192)
        os.fsync(file.fileno())
threads = [threading.Thread(target=lambda: None) for _ in range(5)]
for thread in threads:
    thread.start()
    thread.join()
for _ in range(7):
    subprocess.run(["/bin/true"], check=True)
server = socket.create_server(("127.0.0.1", 0))
client = socket.create_connection(server.getsockname())
peer, _ = server.accept()
for _ in range(20):
    client.sendall(b"ping")
    peer.recv(4)
print(os.getpid())
"""

FIELD = re.compile(r'(\w+) = ("(?:[^"\\]|\\.)*"|[^,{}]+)')


class Event:
    """One line of babeltrace2."""

    def __init__(self, line):
        stamp, rest = line.split("] ", 1)
        self.time = float(stamp[1:])
        head, *self.groups = rest.split(": {", 1)[0], *re.findall(r"\{([^{}]*)\}", rest)
        self.name = head.rsplit(" ", 1)[1]
        self.cpu = int(FIELD.findall(self.groups[0])[0][1])
        self.context = self.fields_of(1)
        self.fields = self.fields_of(2)

    def fields_of(self, group):
        if len(self.groups) <= group:
            return {}
        return {name: value.strip() for name, value in FIELD.findall(self.groups[group])}

    @property
    def tid(self):
        return int(self.context["tid"])


def events_of(peer, trace, wanted=""):
    """Those whose lines have what the regular expression @wanted says."""
    done = peer("babeltrace2", "--clock-seconds", trace / "kernel")
    assert done.code == 0, done
    return [Event(line) for line in done.out.splitlines() if re.search(wanted, line)]


def workload(tmp_path, calls=1000):
    script = tmp_path / "workload.py"
    script.write_text(WORKLOAD)
    return ["/usr/bin/python3", script, str(calls), str(tmp_path / "file")]


def mine():
    """This test's instances; other recorders may be at work on the machine."""
    return [os.path.basename(path) for path in glob.glob("/sys/kernel/tracing/instances/kymo-*-*-*")]


def instance_of(pid):
    return [name for name in mine() if name.startswith(f"kymo-{pid}-")]


@pytest.fixture(scope="module")
def of_workload(kymo, needs_root_tracefs, loopback, without_losses, tmp_path_factory):
    """of_workload(*options): a recording of it with default events: (trace, pid of the workload, what was said)."""

    def call(*options):
        tmp_path = tmp_path_factory.mktemp("known")
        counter = iter(range(9))

        def record(*all_options, command):
            trace = tmp_path / f"trace-{next(counter)}"
            return trace, kymo("record", "-o", trace, *all_options, "--", *command)

        trace, done = without_losses(record, *options, command=workload(tmp_path))
        return trace, int(done.out), done.err

    return call


@pytest.fixture(scope="module")
def known(of_workload):
    """Of all that happens meanwhile."""
    return of_workload()


@pytest.fixture(scope="module")
def known_alone(of_workload):
    """Of nobody else: lttng-analyses is slow, and stumbles over threads that close files while the state is dumped."""
    return of_workload("--follow")


@pytest.fixture(scope="module")
def known_events(known, peer):
    return events_of(peer, known[0])


def test_counts(known, known_events, tsan):
    """1000 getppid calls are 1000 entries and 1000 exits of that thread."""
    _, pid, err = known
    count = collections.Counter(event.name for event in known_events if event.tid == pid)
    # One more: Python's start may ask too, but never does.
    assert count["syscall_entry_getppid"] == 1000
    assert count["syscall_exit_getppid"] == 1000
    assert count["syscall_entry_fsync"] == 10
    assert count["sched_process_fork"] in (5 + 7, 5 + 7 + tsan)
    assert count["net_dev_queue"] >= 20
    assert " 0 lost." in err


def test_fields(known, known_events):
    _, pid, _ = known
    ours = [event for event in known_events if event.tid == pid]
    parent = {event.fields["ret"] for event in ours if event.name == "syscall_exit_getppid"}
    assert len(parent) == 1 and int(parent.pop()) > 0
    writes = [event for event in ours if event.name == "syscall_entry_write"
              and event.fields["count"] == "8192"]
    assert len(writes) == 10
    assert writes[0].fields["buf"].startswith("0x")
    opened = [event for event in ours if event.name == "syscall_entry_openat"]
    assert opened and all(event.fields["dfd"] == "-100" for event in opened)
    assert all(event.fields["filename"].startswith('"') for event in opened)
    switch = next(event for event in known_events
                  if event.name == "sched_switch" and event.fields["prev_tid"] == str(pid))
    assert list(switch.fields) == ["prev_comm", "prev_tid", "prev_prio", "prev_state", "next_comm",
                                   "next_tid", "next_prio"]
    assert switch.tid == pid
    assert switch.fields["prev_prio"] == "20"


def test_fork(known, known_events, tsan):
    """Threads share their parent's pid, processes have their own."""
    _, pid, _ = known
    forks = [event.fields for event in known_events
             if event.name == "sched_process_fork" and event.tid == pid]
    assert all(fork["parent_pid"] == str(pid) == fork["parent_tid"] for fork in forks)
    threads = [fork for fork in forks if fork["child_pid"] == str(pid)]
    processes = [fork for fork in forks if fork["child_pid"] == fork["child_tid"]]
    assert len(threads) in (5, 5 + tsan) and len(processes) == 7
    executed = {event.fields["tid"] for event in known_events
                if event.name == "sched_process_exec" and event.fields["filename"] == '"/bin/true"'}
    assert {fork["child_tid"] for fork in processes} <= executed


def test_order(known_events):
    """Each CPU's switches form a chain: the next switch is from the thread of the last one.

    But some kernels do not tell when a CPU leaves its idle thread, or threads of a sandbox's agent.
    """
    current = {}
    switches = [event for event in known_events if event.name == "sched_switch"]
    told = {event.fields["prev_tid"] for event in switches} - {"0"}
    for event in switches:
        if current.get(event.cpu) in told:
            assert event.fields["prev_tid"] == current[event.cpu]
        current[event.cpu] = event.fields["next_tid"]
    assert current


def test_own_syscalls_are_left_out(known_events):
    kymo = {event.fields["tid"] for event in known_events
            if event.name == "lttng_statedump_process_state"
            and event.fields["name"].startswith('"kymo"')}
    recorders = {event.tid for event in known_events if event.name == "lttng_statedump_start"}
    assert recorders and recorders <= {int(tid) for tid in kymo}
    assert not [event for event in known_events
                if event.tid in recorders and event.name.startswith("syscall_")]


def test_readers_agree(known, kymo, peer):
    trace = known[0]
    recorded = int(re.search(r"Recorded (\d+) events", known[2])[1])
    assert json.loads(kymo("info", "--count", "--json", trace).out)["events"] == recorded
    for reader in ("babeltrace2", "babeltrace"):
        done = peer(reader, trace / "kernel")
        assert done.code == 0, done
        assert len(done.out.splitlines()) == recorded, reader
        assert "discarded" not in done.err


@pytest.mark.parametrize("tool", ["lttng-cputop", "lttng-syscallstats", "lttng-iousagetop",
                                  "lttng-schedtop", "lttng-irqstats", "lttng-memtop",
                                  "lttng-iolatencystats", "lttng-iolog"])
def test_lttng_analyses(known_alone, peer, tool):
    trace, pid, _ = known_alone
    limit = ["--limit", "1000"] if tool in ("lttng-cputop", "lttng-iousagetop") else []
    done = peer(tool, "--no-progress", *limit, trace / "kernel", timeout=100)
    assert done.code == 0, done
    assert "Traceback" not in done.err + done.out
    assert "Cannot run analysis" not in done.err + done.out
    if tool == "lttng-syscallstats":
        assert re.search(r"- getppid +1000 ", done.out)
        assert f"(TID: {pid})" in done.out or f"TID: {pid}" in done.out
    if tool in ("lttng-cputop", "lttng-iousagetop"):
        assert "python3" in done.out


def test_context(record, loopback, peer, tmp_path, tsan):
    """Every event of a new process knows its pid, parent and name from its first moment."""
    trace, done = record("-k", "sched_*,syscalls", "-c", "pid,ppid,procname,prio",
                         command=workload(tmp_path, 10))
    pid = int(done.out)
    # Others may have made many more.
    everything = events_of(peer, trace, rf"\bp?pid = {pid}\b|, {{ tid = 0,")
    events = [event for event in everything if event.context["pid"] == str(pid)]
    assert len({event.tid for event in events}) in (1 + 5, 1 + 5 + tsan)
    names = [event.context["procname"] for event in events if event.tid == pid]
    # Before exec it is the recorder's child.
    assert list(dict.fromkeys(names)) == ['"kymo"', '"python3"']
    assert {event.context["prio"] for event in events} == {"20"}
    parent = {event.context["ppid"] for event in events}
    assert len(parent) == 1
    children = [event for event in everything if event.context["ppid"] == str(pid)]
    assert len({event.tid for event in children}) == 7
    assert {event.context["pid"] for event in children} == {str(event.tid) for event in children}
    idle = [event for event in everything if event.tid == 0]
    assert {event.context["procname"] for event in idle} <= {
        f'"swapper/{cpu}"' for cpu in range(os.cpu_count() or 1)}


def test_compact_header(record, peer, kymo):
    """Few events have the compact header; readers see the same."""
    trace, _ = record("-k", "sched_switch,syscall_*_getppid",
                      command=["/usr/bin/python3", "-c",
                               "import os\nfor i in range(300): os.getppid()"])
    names = collections.Counter(event.name for event in events_of(peer, trace))
    assert names["syscall_entry_getppid"] >= 300
    assert not [name for name in names if not name.startswith("lttng_")
                and name not in ("sched_switch", "syscall_entry_getppid", "syscall_exit_getppid")]
    assert "event_header_compact" in (trace / "kernel" / "metadata").read_text()
    assert json.loads(kymo("info", "--json", trace).out)["events"] == sum(names.values())


def test_monotonic_clock(record, peer):
    before = time.time()
    trace, _ = record("-k", "sched_switch", "--clock", "monotonic", command=["true"])
    events = events_of(peer, trace)
    assert before - 1 < events[0].time <= events[-1].time < time.time() + 1


def test_identity(record):
    trace, _ = record("-k", "sched_switch", command=["true"])
    metadata = (trace / "kernel" / "metadata").read_text()
    assert 'tracer_name = "lttng-modules"' in metadata and "tracer_major = 2" in metadata
    trace, _ = record("-k", "sched_switch", "--identity", "kymo", command=["true"])
    assert 'tracer_name = "kymo"' in (trace / "kernel" / "metadata").read_text()


def test_pid(record, peer, tmp_path):
    """--pid records that process and what it starts."""
    script = "import os, subprocess, sys\nsys.stdin.readline()\n" \
             "for i in range(50): os.getppid()\nsubprocess.run(['/bin/true'])\n"
    with subprocess.Popen(["/usr/bin/python3", "-c", script], stdin=subprocess.PIPE) as target:
        # A process that has ended has no files.
        trace, _ = record("-k", "syscalls,sched_process_*", "-c", "pid", "--pid", target.pid,
                          command=["sh", "-c", f"cd /proc/{target.pid}/fd; echo > 0; "
                                   "while [ -e 0 ]; do sleep 0.02; done"])
        target.stdin.close()
    events = [event for event in events_of(peer, trace)
              if not event.name.startswith("lttng_statedump")]
    count = collections.Counter(event.name for event in events if event.tid == target.pid)
    assert count["syscall_entry_getppid"] == 50
    pids = {event.context["pid"] for event in events}
    # sched_process_exit and the like of the target's children, and nobody else's
    assert str(target.pid) in pids and len(pids) == 2


def test_losses_are_exact(record, peer, kymo):
    """With a ring that is far too small: what is there and what is lost is what happened."""
    calls = 400000
    # Nobody else calls it.
    script = f"import os\nf = os.sched_rr_get_interval\nfor i in range({calls}): f(0)"
    trace, done = record("-k", "syscall_*_sched_rr_get_interval", "-b", "64k",
                         command=["taskset", "-c", min(os.sched_getaffinity(0)), "/usr/bin/python3", "-c", script])
    lost = int(re.search(r" (\d+) lost\.", done.err)[1])
    info = json.loads(kymo("info", "--count", "--json", trace).out)
    assert info["lost_events"] == lost
    dump = int(re.search(r"state +(\d+)", done.err)[1])
    assert info["events"] - dump + lost == 2 * calls
    if lost:
        assert "--buffer-size" in done.err
        assert "discarded" in peer("babeltrace2", trace / "kernel").err


def test_buffers_beyond_memory(kymo, needs_root_tracefs, tmp_path):
    """Refused at once: the kernel would take all memory first."""
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGESIZE")
    if memory > 64 << 30:
        pytest.skip("the machine has room for the largest buffers")
    done = kymo("record", "-b", "64G", "-k", "sched_switch", "-o", tmp_path / "t", "--", "true", code=1)
    assert "more than the machine's memory" in done.err and "--buffer-size" in done.err
    assert not (tmp_path / "t").exists()


def test_bad_events(kymo, needs_root_tracefs, tmp_path):
    done = kymo("record", "-o", tmp_path / "t", "-k", "sched_swich", "--", "true", code=1)
    assert "sched_swich" in done.err and "did you mean sched_switch" in done.err
    assert len(done.err.strip().splitlines()) == 1
    done = kymo("record", "-o", tmp_path / "t", "-k", "nothing_*", "--", "true", code=1)
    assert "kymo list" in done.err
    kymo("record", "-o", tmp_path / "t", "-k", "sched_switch,!sched_*", "--", "true", code=1)
    assert not (tmp_path / "t").exists()


def test_selection(record, peer):
    """tracefs's names, systems, exclusions."""
    trace, _ = record("-k", "sched:sched_switch,irq", "-k", "!irq_softirq_raise,!irq_tasklet_*",
                      command=["true"])
    metadata = (trace / "kernel" / "metadata").read_text()
    names = set(re.findall(r'name = "(\w+)"', metadata)) & {
        "sched_switch", "sched_waking", "irq_handler_entry", "irq_softirq_entry",
        "irq_softirq_raise", "irq_tasklet_entry"}
    assert names == {"sched_switch", "irq_handler_entry", "irq_softirq_entry"}


def test_all_events(kymo, needs_root_tracefs, tmp_path, peer):
    """Every event of this kernel can be enabled, described and read."""
    done = kymo("record", "-o", tmp_path / "t", "-k", "*", "-b", "32M", "--", "ls", "/", code=0,
                timeout=100)
    count = json.loads(kymo("info", "--count", "--json", tmp_path / "t").out)["events"]
    assert count > 0
    assert "could not be read" not in done.err
    assert len(peer("babeltrace2", tmp_path / "t" / "kernel").out.splitlines()) == count


def test_usage(kymo):
    for args in (["--context", "pid,nope"], ["--identity", "x"], ["--clock", "x"],
                 ["--buffer-size", "1k"], ["--duration", "soon"], ["--duration", "0"], ["--pid", "99999999999"]):
        assert args[0] in kymo("record", *args, "--", "true", code=2).err
    # Not everybody, because nobody was named.
    assert "--follow needs a COMMAND" in kymo("record", "--follow", "--duration", "1s", code=2).err


def test_bad_output(kymo, needs_root_tracefs, tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    (full / "file").write_text("x")
    done = kymo("record", "-o", full, "--", "true", code=1)
    assert str(full) in done.err and "not empty" in done.err
    done = kymo("record", "-o", tmp_path / "a" / "b", "--", "true", code=1)
    assert "parent directory" in done.err
    done = kymo("record", "-o", full / "file", "--", "true", code=1)
    assert str(full / "file") in done.err
    # An empty directory is fine.
    (tmp_path / "empty").mkdir()
    kymo("record", "-o", tmp_path / "empty", "-k", "sched_switch", "--", "true")


def test_not_root(kymo_bin, tmp_path):
    """Run as nobody: one clear line. The program is copied to where nobody may read it."""
    if os.geteuid() != 0:
        args = []
    elif not shutil.which("setpriv"):
        pytest.skip("needs setpriv to drop root")
    else:
        args = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    place = subprocess.run(["mktemp", "-d"], stdout=subprocess.PIPE, check=True,
                           text=True).stdout.strip()
    try:
        os.chmod(place, 0o755)
        shutil.copy(kymo_bin, place + "/kymo")
        done = subprocess.run([*args, place + "/kymo", "record", "-o", place + "/t", "--", "true"],
                              stderr=subprocess.PIPE, check=False, text=True, timeout=30)
        assert done.returncode == 1
        assert "needs root" in done.stderr and "sudo" in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    finally:
        shutil.rmtree(place)


def test_no_such_pid(kymo, needs_root_tracefs, tmp_path):
    done = kymo("record", "-o", tmp_path / "t", "--pid", "4194303", "--", "true", code=1)
    assert "no process 4194303" in done.err
    assert not (tmp_path / "t").exists()


def test_command(kymo, needs_root_tracefs, tmp_path):
    """The command's exit code is ours; it runs only when recording is possible."""
    few = ["-k", "sched_switch"]
    assert kymo("record", "-o", tmp_path / "a", *few, "--", "sh", "-c", "exit 7", code=None).code == 7
    done = kymo("record", "-o", tmp_path / "b", *few, "--", "sh", "-c", "kill -9 $$", code=None)
    assert done.code == 128 + 9
    done = kymo("record", "-o", tmp_path / "c", "--", "/nonexistent/command", code=1)
    assert "/nonexistent/command" in done.err and not (tmp_path / "c").exists()
    done = kymo("record", "-o", tmp_path / "c", "--", "no-such-command-anywhere", code=1)
    assert "no-such-command-anywhere" in done.err
    # Executable, but no program: exec itself says so.
    broken = tmp_path / "broken"
    broken.write_text("#!/nonexistent/interpreter\n")
    broken.chmod(0o755)
    done = kymo("record", "-o", tmp_path / "d", *few, "--", broken, code=1)
    assert "broken" in done.err
    # Options of the command are its own.
    done = kymo("record", "-o", tmp_path / "e", *few, "echo", "-o", "--help")
    assert done.out == "-o --help\n"


def test_duration_ends_the_command(kymo, needs_root_tracefs, tmp_path):
    kymo("record", "-o", tmp_path / "t", "-k", "sched_switch", "-d", "300ms", "--", "sleep", "1000")
    info = json.loads(kymo("info", "--json", tmp_path / "t").out)
    assert info["events"] > 0


def test_default_output(kymo, needs_root_tracefs, tmp_path):
    kymo("record", "-k", "sched_switch", "--", "true", cwd=tmp_path)
    names = os.listdir(tmp_path)
    assert len(names) == 1 and re.fullmatch(r"kymo-\d{8}-\d{6}", names[0])


def test_default_outputs_at_once(kymo_bin, needs_root_tracefs, tmp_path):
    """Recordings that begin within one second have names of their own; one that cannot begin leaves none."""
    some = [subprocess.Popen([kymo_bin, "record", "-k", "sched_switch", "--", "true"], cwd=tmp_path,
                             stderr=subprocess.PIPE, text=True) for _ in range(4)]
    for process in some:
        assert "Recorded" in process.communicate(timeout=120)[1] and process.returncode == 0
    names = os.listdir(tmp_path)
    assert len(names) == 4 and all(re.fullmatch(r"kymo-\d{8}-\d{6}(-\d)?", name) for name in names)
    subprocess.run([kymo_bin, "record", "-k", "nosuch", "--", "true"], cwd=tmp_path, stderr=subprocess.DEVNULL, check=False)
    assert os.listdir(tmp_path) == names


class Recorder:
    """kymo record in the background."""

    def __init__(self, kymo_bin, trace):
        self.process = subprocess.Popen([kymo_bin, "record", "-o", trace, "-k", "sched_switch"],
                                        stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + 60
        while not os.path.exists(trace / "kernel" / "statedump_0"):
            assert time.monotonic() < deadline and self.process.poll() is None
            time.sleep(0.02)

    def end(self, number):
        self.process.send_signal(number)
        _, err = self.process.communicate(timeout=60)
        return self.process.returncode, err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals(kymo_bin, kymo, needs_root_tracefs, tmp_path, number):
    recorder = Recorder(kymo_bin, tmp_path / "t")
    assert len(instance_of(recorder.process.pid)) == 1
    code, err = recorder.end(number)
    assert code == 0, err
    assert not instance_of(recorder.process.pid)
    recorded = int(re.search(r"Recorded (\d+) events", err)[1])
    assert json.loads(kymo("info", "--json", tmp_path / "t").out)["events"] == recorded > 0


def test_killed(kymo_bin, kymo, needs_root_tracefs, tmp_path):
    """What a killed recorder leaves is cleaned by the next one, which a living one survives."""
    living = Recorder(kymo_bin, tmp_path / "living")
    killed = Recorder(kymo_bin, tmp_path / "killed")
    assert killed.end(signal.SIGKILL)[0] == -signal.SIGKILL
    # Another recorder, of another test, may be quicker to clean up.
    kymo("record", "-o", tmp_path / "next", "-k", "sched_switch", "--", "true")
    assert not instance_of(killed.process.pid)
    assert len(instance_of(living.process.pid)) == 1
    # The metadata was there from the start: the trace can be read.
    kymo("info", tmp_path / "killed", code=None)
    assert living.end(signal.SIGINT)[0] == 0


def test_other_instances_are_left_alone(kymo, needs_root_tracefs, tmp_path):
    other = f"/sys/kernel/tracing/instances/other-{os.getpid()}"
    os.mkdir(other)
    try:
        kymo("record", "-o", tmp_path / "t", "-k", "sched_switch", "--", "true")
        assert os.path.isdir(other)
    finally:
        os.rmdir(other)


def saves_names(path):
    """Whether events of this instance make the kernel save the names of threads."""
    with open(f"{path}/trace_options", encoding="ascii") as file:
        return "record-cmd" in file.read().split()


def test_kernel_saves_no_names_for_a_recorder(kymo_bin, needs_root_tracefs, tmp_path):
    """Only where nobody else traces: a change would reach the events of others."""
    instances = f"{needs_root_tracefs}/instances"

    def recorder_saves(name):
        record = Recorder(kymo_bin, tmp_path / name)
        found = saves_names(f"{instances}/{instance_of(record.process.pid)[0]}")
        assert saves_names(needs_root_tracefs)
        assert record.end(signal.SIGINT)[0] == 0
        return found

    if not saves_names(needs_root_tracefs):
        pytest.skip("this kernel saves no names")
    other = f"{instances}/other-{os.getpid()}"
    os.mkdir(other)
    try:
        assert saves_names(other)
        assert recorder_saves("beside")
    finally:
        os.rmdir(other)
    # Recorders of other tests may be at work on the machine.
    assert any(not recorder_saves(f"alone{n}") for n in range(20))


@pytest.fixture
def small_disk(tmp_path):
    """small_disk(size): a directory with so much room."""
    mounts = []

    def call(size):
        mount = tmp_path / f"small{len(mounts)}"
        mount.mkdir()
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", mount],
                              stderr=subprocess.PIPE, check=False)
        if done.returncode:
            pytest.skip(f"cannot mount a small tmpfs: {done.stderr}")
        mounts.append(mount)
        return mount

    yield call
    for mount in mounts:
        subprocess.run(["umount", mount], check=True)


def check_full_disk(kymo, done, trace):
    """One line tells of it, before the summary; what was written can be read."""
    lines = done.err.splitlines()
    (cause,), (warning,) = ([i for i, line in enumerate(lines) if text in line]
                            for text in ("No space left", "The trace may be incomplete"))
    assert cause < warning, done.err
    assert kymo("info", trace, code=None).out


@pytest.mark.parametrize("options", [(), ("--raw",)], ids=" ".join)
def test_full_disk(kymo, needs_root_tracefs, small_disk, options):
    """It ends the recording; the summary counts the content of the files."""
    mount = small_disk("2m")
    script = "import os\nwhile True: os.getppid()"
    done = kymo("record", "-o", mount / "t", "-k", "syscall_*_getppid", "-d", "30s", *options, "--",
                "/usr/bin/python3", "-c", script, code=1)
    check_full_disk(kymo, done, mount / "t")
    assert "the disk is full" in done.err
    if options:
        size = sum(os.path.getsize(path) for path in glob.glob(f"{mount}/t/raw/cpu*"))
        (told, unit), = re.findall(r"Recorded \d+ raw records.*?, ([\d.]+) ([KM])iB", done.err)
        assert float(told) * {"K": 1 << 10, "M": 1 << 20}[unit] > size * 0.9, (done.err, size)


# The size of files that is allowed: less than the metadata's, and of streams some packets.
@pytest.mark.parametrize("limit", [20000, 1000000])
@pytest.mark.parametrize("options", [(), ("--raw",)], ids=" ".join)
def test_limit_on_the_size_of_files(kymo, kymo_bin, needs_root_tracefs, tmp_path, options, limit):
    """It is an error like a full disk, and kills nobody but the command, if that is not careful."""
    script = "import os\nwhile True: os.getppid()"
    done = subprocess.run(["sh", "-c", 'echo $$; exec prlimit --fsize="$@"', "sh", f"{limit}", kymo_bin, "record",
                           "-o", tmp_path / "t", "-k", "syscall_*_getppid", "-d", "60s", *options, "--",
                           "/usr/bin/python3", "-c", script],
                          capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1, done
    cause, = (line for line in done.stderr.splitlines() if "File too large" in line)
    assert "raise it (ulimit -f)" in cause
    assert not glob.glob(f"{needs_root_tracefs}/instances/kymo-{int(done.stdout)}-*")
    if limit > 20000:
        assert "The trace may be incomplete" in done.stderr
        assert int(kymo("print", "--count", "--event", "syscall_*", tmp_path / "t").out) > 1000


def test_the_command_has_its_own_limit_on_the_size_of_files(kymo_bin, needs_root_tracefs, tmp_path):
    done = subprocess.run(["prlimit", "--fsize=4000000", kymo_bin, "record", "-o", tmp_path / "t", "-k",
                           "sched_process_exit", "--", "head", "-c", "8M", "/dev/zero"],
                          stdout=open(tmp_path / "file", "wb"), stderr=subprocess.PIPE, check=False)
    assert done.returncode == 128 + signal.SIGXFSZ, done


@pytest.mark.parametrize("options", [(), ("--raw",), ("--overwrite",), ("--overwrite", "--raw")], ids=" ".join)
def test_full_disk_at_the_end(kymo, needs_root_tracefs, small_disk, options):
    """All events are in the kernel's buffers until recording ends: only then the disk has no room for them."""
    mount = small_disk("1m")
    script = "import os\nfor i in range(60000): os.getppid()"
    done = kymo("record", "-o", mount / "t", "-b", "16M", "-k", "syscall_*_getppid", *options, "--",
                "/usr/bin/python3", "-c", script, code=1)
    check_full_disk(kymo, done, mount / "t")
