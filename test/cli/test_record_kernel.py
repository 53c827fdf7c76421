# SPDX-License-Identifier: MIT
"""kymo record of the kernel: which events, and what their fields are."""

import glob
import re

import pytest

DELTA = re.compile(r"\] \(\+[0-9?.]+\)")


def lines(text):
    """Without the time since the line before, in an order of our own: equal times have none."""
    return sorted(DELTA.sub("]", line) for line in text.splitlines())


def metadata(trace):
    with open(trace / "kernel" / "metadata", encoding="utf-8") as file:
        return file.read()


@pytest.mark.deadline(180)
def test_all_events_at_once(record, kymo, peer, needs_root_tracefs):
    """Every event of this kernel is in the metadata, which three readers understand alike."""
    trace, done = record("--kernel", "*", "--duration", "20ms", "--clock", "monotonic",
                         "--buffer-size", "16M", command=None)
    refused = done.err.count("the kernel refuses event")
    names = re.findall(r'^event \{\n\tname = "(.*)";$', metadata(trace), re.MULTILINE)
    names = [name for name in names if not name.startswith("lttng_statedump_")]
    there = [path for path in glob.glob(f"{needs_root_tracefs}/events/*/*/format")
             if "/events/ftrace/" not in path]
    assert len(names) == len(set(names)) == len(there), set(names)
    assert refused < len(there) / 100, done

    ours = kymo("print", trace)
    two = peer("babeltrace2", trace / "kernel", timeout=120)
    one = peer("babeltrace", trace / "kernel", timeout=120)
    assert two.code == 0 and one.code == 0, (two.err[-500:], one.err[-500:])
    assert ours.out == two.out
    assert lines(one.out) == lines(two.out)


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


def test_softirq_keeps_its_number(record, kymo):
    trace, _ = record("--kernel", "irq_softirq_*", command=["sleep", "0.2"])
    assert re.search(r"irq_softirq_raise: .*\{ vec = \d+ \}", kymo("print", trace).out)


READS = """
import os, sys
fd = os.open("/dev/zero", os.O_RDONLY)
for size in range(1, 101):
    os.pread(fd, size, 7 * size)
    os.getpriority(os.PRIO_PROCESS, 0)
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
]


def test_filters_select_what_print_selects(record, kymo, kymo_bin, tmp_path):
    """Filtered while recording, or all recorded and then filtered: the same events of one thread."""
    script = tmp_path / "reads.py"
    script.write_text(READS)
    rules = [word for event, expr in FILTERED for word in ("-k", f"{event} if {expr}")]
    plain = ",".join(event for event, _ in FILTERED)
    inner = tmp_path / "filtered"
    outer, done = record("-k", plain, "-c", "procname", command=[
        "sh", "-c", 'echo $$ > "$1"; shift; exec "$@"', "sh", tmp_path / "unused",
        kymo_bin, "record", "-o", inner, "-c", "procname", *rules, "--",
        "sh", "-c", f'echo $$ > {tmp_path}/tid; exec /usr/bin/python3 {script}'])
    tid = int((tmp_path / "tid").read_text())
    assert "the recorder leaves out" in done.err and "pos % 2" in done.err

    def events(trace, expr):
        out = kymo("print", "--filter", f"$ctx.tid == {tid} && {expr}", trace).out
        return [line.split(") ", 1)[1] for line in out.splitlines()]

    wanted = " || ".join(f'($event == "{event}" && ({expr}))' for event, expr in FILTERED)
    ours = events(inner, '!($event =~ "lttng_*")')
    theirs = events(outer, f'!($event =~ "lttng_*") && ({wanted})')
    # Both recordings begin before the thread does, but for the shell's switch to it.
    assert ours == theirs[-len(ours):] and len(theirs) - len(ours) <= 2
    names = "\n".join(ours)
    assert names.count("syscall_exit_pread64:") >= 11
    assert names.count("syscall_entry_pread64:") >= 25
    assert names.count("syscall_exit_getpriority:") == 0
    assert names.count("syscall_entry_sched_yield:") == 10


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
        done = kymo("record", "-o", tmp_path / "t", *rules, "--", "true", code=1)
        assert not (tmp_path / "t").exists()
        return done.err

    assert "the nearest names are: next_prio" in fails("-k", "sched_switch if next_pri < 5")
    assert "ends too early" in fails("-k", "sched_switch if next_prio <")
    assert "true of none" in fails("-k", "sched_switch if ret < 5", "-k", "syscall_exit_read")
    assert "for reading" in fails("-k", "sched_switch if $packet.cpu_id == 0 || next_tid == 5")
    assert "for reading" in fails("-k", "irq if content_size > 0")
    assert "for reading" in fails("-k", "irq if $time > 0")
    assert "no event 'sched_swich'" in fails("-k", "sched_swich if next_prio < 5")


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
