# SPDX-License-Identifier: MIT
"""kymo record of the kernel: which events, and what their fields are."""

import collections
import glob
import os
import re
import shlex
import subprocess
import tempfile

import pytest

from control_groups import remove_groups
from recording import middle_of

DELTA = re.compile(r"\] \(\+[0-9?.]+\)")


def lines(text):
    """Without the time since the line before, in an order of our own: equal times have none."""
    return sorted(DELTA.sub("]", line) for line in text.splitlines())


ESCAPED = re.compile(r"\\(x[0-9a-f]{2}|.)")
LETTERS = dict(zip("abtnvfre", "\a\b\t\n\v\f\r\x1b"))


def unescaped(text):
    """As babeltrace 1.5 prints texts: it escapes nothing."""
    return ESCAPED.sub(lambda found: chr(int(found[1][1:], 16)) if len(found[1]) > 1 else
                       LETTERS.get(found[1], found[1]), text)


def same_line(ours, babeltrace2s):
    """babeltrace2 2.0 shows an empty text as the one that was there before."""
    return ours == babeltrace2s or re.fullmatch(re.escape(ours).replace('""', '".*"'), babeltrace2s)


def metadata(trace):
    with open(trace / "kernel" / "metadata", encoding="utf-8") as file:
        return file.read()


def test_all_events_at_once(record, kymo, peer, needs_root_tracefs):
    """Every event of this kernel is in the metadata, which three readers understand alike."""
    trace, done = record("--kernel", "*", "--duration", "20ms", "--clock", "monotonic",
                         "--buffer-size", "16M", command=None)
    refused = done.err.count("the kernel refuses event")
    names = re.findall(r'^event \{\n\tname = "(.*)";$', metadata(trace), re.MULTILINE)
    names = [name for name in names if not name.startswith("lttng_statedump_")]
    # Other recordings' probes, which come and go, are theirs.
    there = [path for path in glob.glob(f"{needs_root_tracefs}/events/*/*/format")
             if not re.search("/events/(ftrace/|kymo_)", path)]
    assert len(names) == len(set(names)) == len(there), set(names)
    assert refused < len(there) / 100, done

    ours = kymo("print", trace)
    two = peer("babeltrace2", trace / "kernel", timeout=120)
    one = peer("babeltrace", trace / "kernel", timeout=120)
    assert two.code == 0 and one.code == 0, (two.err[-500:], one.err[-500:])
    assert ours.out.count("\n") == two.out.count("\n")
    assert all(map(same_line, ours.out.split("\n"), two.out.split("\n")))
    assert lines(one.out) == lines(unescaped(ours.out))


def test_names_of_values(record, kymo):
    """What the kernel prints with names is an enumeration; addresses are hexadecimal."""
    trace, _ = record("--kernel", "timer_hrtimer_start,kmem_kmalloc",
                      command=["sleep", "0.1"])
    out = kymo("print", trace).out
    start = re.search(r"timer_hrtimer_start: .*", out).group()
    assert re.search(r'mode = \( "(ABS|REL)[A-Z|_]*" : container = \d+ \)', start), start
    assert re.search(r"hrtimer = 0x[0-9A-F]{16}, function = 0x[0-9A-F]{16}", start), start
    # LTTng's analyses know this one as a number.
    assert re.search(r"kmem_kmalloc: .* call_site = 0x[0-9A-F]+, .* gfp_flags = \d+", out)
    text = metadata(trace)
    assert '"REL" = 1' in text and "HRTIMER_MODE" not in text
    modes = kymo("print", "--filter", 'mode == "REL" || mode == "ABS"', "--count", trace).out
    assert int(modes) > 0


@pytest.mark.parametrize("raw", [[], ["--raw"]])
def test_texts_of_the_kernel(record, kymo, peer, raw, needs_root_tracefs):
    """Of these the ring has addresses; RCU of every switch says why it was called."""
    if not os.path.exists(f"{needs_root_tracefs}/events/rcu/rcu_utilization"):
        pytest.skip("no event rcu_utilization")
    trace, _ = record("-k", "rcu_utilization", *raw, command=["sleep", "0.1"])
    wanted = kymo("print", "--event", "rcu_utilization", "--filter", 's == "Start context switch"', trace).out
    assert wanted and 's = ( "Start context switch" : container' in wanted
    if not raw:
        assert peer("babeltrace2", trace).out.count('"Start context switch"') == len(wanted.splitlines())


def test_softirq_keeps_its_number(record, kymo):
    # Timers' ticks raise some, on a CPU that is not idle.
    trace, _ = record("--kernel", "irq_softirq_*", command=[
        "/usr/bin/python3", "-c", "import time\nwhile time.process_time() < 0.3: pass"])
    assert re.search(r"irq_softirq_raise: .*\{ vec = \d+ \}", kymo("print", trace).out)


READS = """
import os, sys
fd = os.open("/dev/zero", os.O_RDONLY)
for size in range(1, 101):
    os.pread(fd, size, 7 * size)
    os.getpriority(os.PRIO_PROCESS, 0)
    os.lseek(fd, 50 - size, os.SEEK_CUR)
    if size % 10 == 0:
        os.sched_yield()
os.execv("/bin/true", ["true"])
"""

FILTERED = [
    ("syscall_exit_pread64", "ret > 90 || ret == 5"),
    ("syscall_entry_pread64", "count > 50 && pos % 2 == 0 && $cpu >= 0"),
    ("sched_process_exec", 'filename =~ "*/true"'),
    ("sched_switch", 'next_prio >= 0 && !(prev_state & 1) && $ctx.procname != "kymo"'),
    ("syscall_exit_getpriority", "!(ret in (20, 21))"),
    ("syscall_entry_sched_yield", "$ctx.tid > 0"),
    ("syscall_entry_lseek", "offset < 0"),
]


def test_filters_select_what_print_selects(record, kymo, kymo_bin, tmp_path):
    """Filtered while recording, or all recorded and then filtered: the same events of one thread."""
    script = tmp_path / "reads.py"
    script.write_text(READS)
    rules = [word for event, expr in FILTERED for word in ("-k", f"{event} if {expr}")]
    plain = ",".join(event for event, _ in FILTERED)
    inner = tmp_path / "filtered"
    outer, done = record("-b", "16M", "-k", plain, "-c", "procname", command=[
        "sh", "-c", 'echo $$ > "$1"; shift; exec "$@"', "sh", tmp_path / "unused",
        kymo_bin, "record", "-o", inner, "-b", "16M", "-c", "procname", *rules, "--",
        "sh", "-c", f'echo $$ > {tmp_path}/tid; exec /usr/bin/python3 {script}'])
    tid = int((tmp_path / "tid").read_text())
    assert "the recorder filters them" in done.err and "pos % 2" in done.err

    def events(trace, expr):
        out = kymo("print", "--filter", f"$ctx.tid == {tid} && {expr}", trace).out
        return [line.split(") ", 1)[1] for line in out.splitlines()]

    wanted = " || ".join(f'($event == "{event}" && ({expr}))' for event, expr in FILTERED)
    ours = events(inner, '!($event =~ "lttng_*")')
    theirs = events(outer, f'!($event =~ "lttng_*") && ({wanted})')
    # Both recordings begin before the thread does, but for the shell's switch to it; who ended the one after the other
    # may be told of it before it has left its CPU.
    before, after = middle_of(ours, theirs)
    assert len(before) <= 2 and all("sched_switch: " in line for line in after)
    names = "\n".join(ours)
    assert names.count("syscall_exit_pread64:") >= 11
    assert names.count("syscall_entry_pread64:") >= 25
    assert names.count("syscall_exit_getpriority:") == 0
    assert names.count("syscall_entry_sched_yield:") == 10
    assert names.count("syscall_entry_lseek:") >= 50


def test_filters_of_one_event_add_up(record, kymo):
    rules = ["-k", "syscall_exit_getpriority if ret == 99999",
             "-k", "syscall_*_getpriority,!syscall_entry_* if ret > 5",
             "-k", "!syscall_entry_getpriority"]
    trace, _ = record(*rules, command=["/usr/bin/python3", "-c",
                                       "import os\nfor _ in range(9): os.getpriority(0, 0)"])
    out = kymo("print", "--event", "syscall_*", trace).out
    assert out.count("syscall_exit_getpriority") >= 9 and "syscall_entry" not in out


def test_filter_mistakes(kymo, tmp_path, needs_root_tracefs):
    def fails(*rules):
        done = kymo("record", "-o", tmp_path / "t", *rules, "--", "true", code=None)
        assert not (tmp_path / "t").exists()
        # 2 where the rule's text is wrong at a column, 1 where this machine does not have what it names.
        assert done.code == (2 if re.search(r":\d+: ", done.err) else 1), done.err
        return done.err

    assert "the nearest names are: next_prio" in fails("-k", "sched_switch if next_pri < 5")
    assert "ends too early" in fails("-k", "sched_switch if next_prio <")
    assert "is true for no event" in fails("-k", "sched_switch if ret < 5", "-k", "syscall_exit_read")
    assert "for reading" in fails("-k", "sched_switch if $packet.cpu_id == 0 || next_tid == 5")
    assert "for reading" in fails("-k", "irq if content_size > 0")
    assert "for reading" in fails("-k", "irq if $time > 0")
    assert "no event 'sched_swich'" in fails("-k", "sched_swich if next_prio < 5")
    # A context field that nobody has asked for: not "the nearest names are: pid".
    assert "no event has a context field 'pid'; add pid to the context" in fails("-k", "sched_switch if $ctx.pid == 5")
    assert "add perf:cpu:page-faults to the context" in fails("-k", "sched_switch if $ctx.perf_cpu_page_faults > 5")
    assert "did you mean $ctx.procname? It needs procname in the context" in fails(
        "-k", "sched_switch if next_prio < 5 && $ctx.procnam == 'sh'")


def test_exclude(record, kymo):
    trace, _ = record("-k", "sched:*,irq", "--exclude", "sched_stat_*", "--exclude", "irq:*raise*",
                      command=["sleep", "0.1"])
    names = metadata(trace)
    assert '"sched_switch"' in names and '"irq_softirq_entry"' in names
    assert "sched_stat_" not in names and "raise" not in names
    done = kymo("record", "-k", "irq", "--exclude", "irk:*", "--", "true", code=1)
    assert "no event 'irk:*'" in done.err
    trace, _ = record("-k", "default,kmem_kmalloc", command=["true"])
    names = metadata(trace)
    assert '"kmem_kmalloc"' in names and '"sched_switch"' in names


def test_filter_keeps_threads_known(record, kymo):
    """A filtered event that the recorder learns from still teaches it."""
    trace, _ = record("-k", "sched_process_exit", "-k", 'sched_switch if next_comm == "nobody"',
                      "-c", "pid,procname,prio", command=["sh", "-c", "sleep 0.1; true"])
    out = kymo("print", "--event", "sched_process_exit", trace).out
    assert re.search(r'procname = "sleep", prio = 20 \}, \{ comm = "sleep"', out), out
    assert kymo("print", "--event", "sched_switch", "--count", trace).out.strip() == "0"


# ---- whose events ------------------------------------------------------------------------------

CALLS = """
import os, subprocess, sys, threading
sys.stdin.readline()
def call(n):
    for _ in range(n): os.getpriority(0, 0)
call(10)
thread = threading.Thread(target=call, args=(20,))
thread.start(); thread.join()
subprocess.run(["/usr/bin/python3", "-c", "import os\\nfor _ in range(30): os.getpriority(0, 0)"])
"""


class Target:
    """A process that makes its calls on command."""

    def __init__(self, **kwargs):
        self.process = subprocess.Popen(["/usr/bin/python3", "-c", CALLS],
                                        stdin=subprocess.PIPE, **kwargs)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()

    @property
    def pid(self):
        return self.process.pid

    @property
    def go(self):
        """A command that tells it, and waits for its end."""
        return ["sh", "-c", f"echo > /proc/{self.pid}/fd/0; "
                            f"while grep -q '^State:.[^Z]' /proc/{self.pid}/status; "
                            "do sleep 0.05; done"]


def calls(kymo, trace):
    """How many calls of getpriority() by each thread."""
    out = kymo("print", "--event", "syscall_entry_getpriority", trace).out
    return collections.Counter(int(tid) for tid in re.findall(r" tid = (\d+)", out))


def test_pids_and_what_they_start(record, kymo):
    with Target() as one, Target() as other:
        trace, _ = record("-k", "syscall:getpriority", "--pid", f"{one.pid},{other.pid}",
                          command=["sh", "-c", shlex.join(one.go) + ";" + shlex.join(other.go)])
    count = calls(kymo, trace)
    assert count[one.pid] == count[other.pid] == 10
    assert sorted(count.values()) == [10, 10, 20, 20, 30, 30]


@pytest.mark.parametrize("follow", [False, True])
def test_tids(record, kymo, follow):
    with Target() as one:
        trace, _ = record("-k", "syscall:getpriority", "--tid", one.pid,
                          *["--follow"] * follow, command=one.go)
    assert sorted(calls(kymo, trace).values()) == ([10, 20, 30] if follow else [10])


def test_follow_the_command(record, kymo):
    """Only the command and what it starts, though another process does the same beside it."""
    with Target() as other:
        trace, _ = record("-k", "syscall:getpriority,sched_process_*", "-c", "pid", "--follow",
                          command=["sh", "-c", shlex.join(other.go) +
                                   "; echo | /usr/bin/python3 -c \"$1\"", "sh", CALLS])
    assert sorted(calls(kymo, trace).values()) == [10, 20, 30]
    assert kymo("print", "--filter", f"$ctx.pid == {other.pid} && $event =~ 'sysc*'", "--count",
                trace).out.strip() == "0"


@pytest.mark.parametrize("context", [[], ["--context", "procname,pid"]])
def test_comm(record, kymo, context):
    """Threads of that name, and who wakes them or is replaced by them."""
    script = "import os\nopen('/proc/self/comm', 'w').write('kymo-named')\n" \
             "for _ in range(7): os.getpriority(0, 0)\nos.system('sleep 0.05')"
    trace, _ = record("-k", "syscall:getpriority,sched_switch,sched_waking,sched_process_fork",
                      "--comm", "kymo-named", *context, command=["/usr/bin/python3", "-c", script])
    out = kymo("print", "--event", "sched_*", "--event", "syscall_*", trace).out
    assert list(calls(kymo, trace).values()) == [7]
    switches = [line for line in out.splitlines() if " sched_switch: " in line]
    assert switches and all('_comm = "kymo-named"' in line for line in switches)
    assert any('next_comm = "kymo-named"' in line for line in switches)
    wakings = [line for line in out.splitlines() if " sched_waking: " in line]
    # A child has its parent's name until it is another program.
    tids = {int(tid) for tid in re.findall(
        r'(?:prev_comm|next_comm|parent_comm|child_comm) = "kymo-named", \w+ = (\d+)', out)}
    tids |= {int(tid) for tid in re.findall(r"child_tid = (\d+)", out)}
    assert all(' comm = "kymo-named"' in line or
               int(re.search(r" tid = (\d+)", line)[1]) in tids for line in wakings)
    assert 'parent_comm = "kymo-named"' in out


def test_uid(record, kymo):
    """All processes of a user, and what they start."""
    with Target(user=12345, group=12345) as one:
        trace, _ = record("-k", "syscall:getpriority", "--uid", "12345", command=one.go)
    assert sorted(calls(kymo, trace).values()) == [10, 20, 30]


def test_cgroup(record, kymo, tmp_path):
    """What is in a control group, and in those below it."""
    root = next((path for path in ("/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified", "/sys/fs/cgroup")
                 if os.access(f"{path}/cgroup.procs", os.W_OK)), None)
    if not root:
        pytest.skip("needs control groups that can be made")
    top = tempfile.mkdtemp(prefix="kymo-test-", dir=root)
    below = os.path.join(top, "below")
    os.mkdir(below)
    try:
        with Target() as one, Target() as other:
            for group, pid in ((top, one.pid), (below, other.pid)):
                with open(f"{group}/cgroup.procs", "w", encoding="ascii") as file:
                    file.write(str(pid))
            both = ["sh", "-c", shlex.join(one.go) + ";" + shlex.join(other.go)]
            trace, _ = record("-k", "syscall:getpriority", "--cgroup", top, command=both)
        assert sorted(calls(kymo, trace).values()) == [10, 10, 20, 20, 30, 30]
        done = kymo("record", "-o", tmp_path / "none", "--cgroup", "no/such/group", "--", "true",
                    code=1)
        assert "no control group 'no/such/group'" in done.err
    finally:
        remove_groups(top)


def test_bad_choices(kymo, tmp_path, needs_root_tracefs):
    def fails(*options, code=1):
        done = kymo("record", "-o", tmp_path / "t", *options, "--", "true", code=code)
        assert len(done.err.strip().splitlines()) == 1
        return done.err

    assert "no process 999999999" in fails("--pid", "999999999")
    assert "no thread 999999999" in fails("--tid", "999999999")
    for ids in ("0", "x", "1,,2", "1,", "-5", "99999999999"):
        assert "IDs, separated by commas" in fails("--pid", ids, code=2)
    assert "name of a thread" in fails("--comm", "sixteen bytes it", code=2)
    assert "name of a thread" in fails("--comm", 'a"b', code=2)


# ---- contexts ----------------------------------------------------------------------------------

def test_contexts_of_the_moment(record, kymo):
    """A program's system call may be interrupted and preempted; a timer's interrupt may not."""
    trace, done = record("-k", "syscall_entry_getpriority,timer_hrtimer_expire_entry,sched_switch",
                         "-c", "interruptible,preemptible,need_reschedule,migratable,procname",
                         command=["/usr/bin/python3", "-c",
                                  "import os\nfor _ in range(50): os.getpriority(0, 0)"])
    out = kymo("print", "--event", "syscall_*", "--event", "timer_*", trace).out.splitlines()
    at = "interruptible = {}, preemptible = {}, need_reschedule = "
    entries = [line for line in out if "syscall_entry_getpriority" in line and 'procname = "python3", ' in line]
    timers = [line for line in out if "timer_hrtimer_expire_entry" in line]
    assert len(entries) >= 50 and timers, done
    assert all(at.format(1, 1) in line and "migratable = 1" in line for line in entries)
    assert all(at.format(0, 0) in line for line in timers)
    assert all('procname = "python3", interruptible' in line for line in entries)


def test_few_descriptors(kymo, kymo_bin, needs_root_tracefs, tmp_path):
    """However few there are: what they lack is said, and nothing is left behind. Threads share them, so that what is
    refused depends on their order."""
    codes, whole = set(), set()
    for limit in (5, 9, 13, *range(16, 30), 40, 64):
        out = tmp_path / f"t-{limit}"
        done = subprocess.run(["sh", "-c", f'ulimit -n {limit}; echo $$; exec "$0" record -k sched_switch -d 1ms -o "$1"',
                               kymo_bin, out], capture_output=True, text=True, check=False, timeout=60)
        codes.add(done.returncode)
        if done.returncode:
            said, = re.findall("^kymo: (?!warning: )(.*)$", done.stderr, re.MULTILINE)
            assert said.endswith("Too many open files; raise the limit of open files (ulimit -n)"), (limit, done)
        else:
            # The state dump finds no free descriptor for its files; a warning says so, too.
            has_dump = "lttng_statedump_process_state" in kymo("print", "--event", "lttng_statedump_*", out).out
            assert has_dump or "the state dump of the kernel is not complete" in done.stderr, (limit, done)
            whole.add(has_dump)
        assert not glob.glob(f"{needs_root_tracefs}/instances/kymo-{int(done.stdout)}-*"), limit
    assert codes == {0, 1} and True in whole


@pytest.mark.parametrize("rules", [["-k", "sched_switch"], ["--raw", "-k", "sched_switch"]])
def test_soft_limit_of_descriptors(kymo_bin, needs_root_tracefs, tmp_path, rules):
    """With hundreds of CPUs more are needed than most processes may have at first; the command has its own limit."""
    script = 'ulimit -Sn 16; exec "$0" record -o "$@" -- sh -c "ulimit -Sn"'
    done = subprocess.run(["sh", "-c", script, kymo_bin, tmp_path / "t", *rules],
                          capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done
    assert done.stdout == "16\n"
