# SPDX-License-Identifier: MIT
"""kymo count on known loads: the program's own count, a recording of the same events, and bpftrace agree with it."""

import collections
import csv
import io
import json
import os
import shutil
import signal
import subprocess
import sys

import pytest

pytestmark = pytest.mark.usefixtures("needs_root_tracefs")

# A program with a name of its own, that knows what it calls.
LOAD = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
null = os.open('/dev/null', os.O_WRONLY)
zero = os.open('/dev/zero', os.O_RDONLY)
pipe, _ = os.pipe()
libc.prctl(15, sys.argv[1].encode(), 0, 0, 0)
for i in range(200):
    os.write(null, b'x' * (i % 7 + 1))
    os.read(zero, 100 + i)
    libc.getppid()
    libc.lseek(null if i % 5 else pipe, i, i % 3)
    libc.open(b'/nowhere/at/all' if i % 2 else b'/dev/null', os.O_RDWR | (os.O_CLOEXEC if i % 3 else 0))
libc.prctl(15, b'python3', 0, 0, 0)
"""
NAME = f"cl-{os.getpid()}"  # other runs of these tests count as well
EVENTS = ("syscall_entry_write,syscall_exit_write,syscall_exit_read,syscall_entry_getppid,syscall_entry_lseek,syscall_exit_lseek,"
          "syscall_entry_openat,syscall_exit_openat")


def load(name=NAME):
    return ("--", sys.executable, "-c", LOAD, name)


@pytest.fixture(scope="module")
def count(kymo):
    """count(EVENTS, condition, *options) -> the object of JSON."""

    def call(events, condition="", *options, command=load()):
        rule = [events, *(["if", condition] if condition else [])]
        # The kernel skips an event in an interrupt of another event, and says so.
        for _ in range(5):
            result = kymo("count", *rule, *options, "--json", "--limit", "0", *command)
            found = json.loads(result.out.splitlines()[-1])
            assert found["lost"] == 0, found
            if not found["missed"]:
                break
        return found

    return call


def rows(found):
    return {tuple(row["by"].values()): row["count"] for row in found["rows"]}


def own(condition=""):
    return f'$ctx.procname == "{NAME}"' + (f" && ({condition})" if condition else "")


def test_counts_are_those_of_the_program(count):
    found = count(EVENTS, own())
    assert rows(found) == {("syscall_entry_write",): 200, ("syscall_exit_write",): 200, ("syscall_exit_read",): 200,
                           ("syscall_entry_getppid",): 200, ("syscall_entry_lseek",): 200, ("syscall_exit_lseek",): 200,
                           ("syscall_entry_openat",): 200, ("syscall_exit_openat",): 200}
    assert found["count"] == 1600 and found["keys"] == 8
    counts = [row["count"] for row in found["rows"]]
    assert counts == sorted(counts, reverse=True)


def test_sums(count):
    found = count("syscall_exit_write,syscall_exit_read", own("ret > 0"), "--by", "event", "--sum", "ret")
    assert [(row["by"]["event"], row["count"], row["sum"]) for row in found["rows"]] == [
        ("syscall_exit_read", 200, sum(100 + i for i in range(200))),
        ("syscall_exit_write", 200, sum(i % 7 + 1 for i in range(200)))]
    # Those without the field do not count.
    assert count(EVENTS, own(), "--sum", "whence")["count"] == 200
    negative = count("syscall_exit_lseek,syscall_exit_openat", own("ret < 0"), "--by", "ret", "--sum", "ret")
    assert all(row["sum"] == row["by"]["ret"] * row["count"] for row in negative["rows"]) and len(negative["rows"]) >= 2


def test_devices_have_names_in_text(kymo, count, tmp_path):
    """In text the name of the disk, in JSON and in a condition the kernel's number."""
    write = ("--", "dd", "if=/dev/zero", f"of={tmp_path / 'file'}", "bs=64k", "count=16", "oflag=direct", "conv=fsync")
    found = count("block_rq_issue", "", "--by", "dev", command=write)
    if not found["rows"]:
        pytest.skip("no requests of a block device here")
    number = found["rows"][0]["by"]["dev"]
    place = f"{number >> 20}:{number & 0xfffff}"
    link = f"/sys/dev/block/{place}"
    name = os.path.basename(os.readlink(link)) if os.path.exists(link) else place
    done = kymo("count", "block_rq_issue", "if", f"dev == {number}", "--by", "dev", "--sum", "nr_sector", *write, code=0)
    shown = [line.split()[0] for line in done.out.splitlines()[3:] if line.strip()]
    assert name in shown and str(number) not in shown, done.out


def test_texts_of_the_program(count):
    found = rows(count("syscall_entry_openat", own(), "--by", "filename,flags"))
    texts = collections.Counter()
    for (name, _), n in found.items():
        texts[name] += n
    assert texts == {"/nowhere/at/all": 100, "/dev/null": 100} and len(found) == 4
    assert count("syscall_entry_openat", own('filename =~ "/dev/*"'))["count"] == 100
    assert count("syscall_entry_openat", own('filename == "/dev/null"'))["count"] == 100
    assert count("syscall_entry_openat", own('filename == "/dev/nul"'), command=load())["count"] == 0


CONDITIONS = (
    "ret >= 0", "ret == -22", "ret in (-22, -6, 3)", "!(ret > 5)", "ret <= -2 || fd == 1", "count > 3 && count != 7",
    "flags & 524288 != 0", "(flags & 0x80000) == 0", "has(whence) && whence > 0", "offset > 100", "5 < count",
    "$event == 'syscall_exit_read' && ret < 200", "ret != 18446744073709551615", "ret > -3 && !(has(ret) && ret < 7)",
    "ret & -4 == -24", "ret & -2 < 0",
)


def test_conditions_choose_as_readers_do(kymo, kymo_bin, tmp_path):
    """A recording of the same run, and its filters, say what is to be counted."""
    for i, condition in enumerate(CONDITIONS):
        trace = tmp_path / f"trace-{i}"
        # Only of the command and its children: others may make more events than the recorder comes to write.
        result = kymo("record", "-o", trace, "-k", EVENTS, "--context", "procname", "--follow", "-b", "8M", "--", shutil.which("env"), "KYMO=1",
                      "sh", "-c", 'exec "$@" > "$0"', tmp_path / "counted", kymo_bin, "count", EVENTS, "if", own(condition),
                      "--by", "event,ret,fd", "--json", "--limit", "0", *load())
        assert "; 0 lost" in result.err, result
        with open(tmp_path / "counted", encoding="utf-8") as file:
            found = json.load(file)
        expected = collections.Counter()
        for line in kymo("convert", "--to", "json", "--filter", own(condition), trace).out.splitlines():
            event = json.loads(line)
            expected[event["event"], event["fields"].get("ret"), event["fields"].get("fd")] += 1
        assert rows(found) == expected, condition
    assert sum(expected.values()) > 0


def test_events_of_the_scheduler(kymo, kymo_bin, tmp_path):
    """Priorities and names of threads, which the kernel's records have in another way."""
    trace, python = tmp_path / "trace", tmp_path.parent / NAME
    python.symlink_to(sys.executable)  # a path that no other program has
    kymo("record", "-o", trace, "-k", "sched_switch,sched_process_exec,sched_process_fork", "--", "sh", "-c", 'exec "$@" > "$0"',
         tmp_path / "counted", kymo_bin, "count", "sched_switch,sched_process_exec", "if",
         f'prev_comm == "{NAME}" || filename == "{python}"',
         "--by", "event,prev_comm,prev_prio,filename", "--json", "--limit", "0", "--", python, *load()[2:])
    with open(tmp_path / "counted", encoding="utf-8") as file:
        found = rows(json.load(file))
    expected = collections.Counter()
    for line in kymo("convert", "--to", "json", "--filter", f'prev_comm == "{NAME}" || filename == "{python}"',
                     trace).out.splitlines():
        event = json.loads(line)
        fields = event["fields"]
        expected[event["event"], fields.get("prev_comm"), fields.get("prev_prio"), fields.get("filename")] += 1
    assert found == expected and ("sched_process_exec", None, None, str(python)) in found


def test_many_calls_are_counted_from_one_tracepoint(count):
    """Each of them exactly: all calls of a command, entries and exits."""
    found = rows(count("syscall_entry_*,syscall_exit_*", own()))
    for name in ("write", "read", "getppid", "lseek", "openat"):
        assert found[f"syscall_entry_{name}",] == found[f"syscall_exit_{name}",] == 200
    by_fd = count("syscall_entry_*", own("has(fd)"), "--by", "fd")
    assert by_fd["count"] == 600


def test_follow_counts_the_command_and_its_children(count):
    script = 'for i in 1 2 3; do "$@"; done'
    found = count("syscall_entry_getppid", "", "--by", "procname", "--follow",
                  command=("--", "sh", "-c", script, "sh", *load()[1:]))
    assert rows(found)[NAME,] == 600 and found["count"] == sum(rows(found).values())
    whole = rows(count("sched_process_exec", "", "--follow", "--by", "filename", command=("--", "sh", "-c", "true; env true")))
    assert not any("python" in name for name, in whole)


def test_periods_add_up(kymo, kymo_bin):
    script = "import os, time\nfor _ in range(8):\n    time.sleep(0.05)\n    [os.getppid() for _ in range(50)]\n"
    result = kymo("count", "syscall_entry_getppid", "--follow", "--every", "50ms", "--json", "--", sys.executable, "-c", script)
    found = [json.loads(line) for line in result.out.splitlines()]
    assert len(found) > 3 and sum(one["count"] for one in found) == 400
    assert all(a["end_ns"] == b["begin_ns"] for a, b in zip(found, found[1:]))
    table = kymo("count", "syscall_entry_getppid", "--follow", "--every", "50ms", "--csv", "--", sys.executable, "-c", script).out
    parsed = list(csv.DictReader(io.StringIO(table)))
    assert sum(int(row["count"]) for row in parsed) == 400 and {row["event"] for row in parsed} == {"syscall_entry_getppid"}
    # Ctrl-C ends a counting without a command.
    process = subprocess.Popen([kymo_bin, "count", "sched_switch"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "Ctrl-C" in process.stderr.readline()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and "sched_switch" in out, err


def test_text_has_the_largest_rows_and_says_what_is_left_out(kymo):
    out = kymo("count", "syscall_entry_*", "--follow", "--limit", "2", *load()).out
    assert "more rows: --limit 0 shows all" in out and "Count" in out and "Rate" in out
    assert "-" in kymo("count", "syscall_entry_write,syscall_entry_getppid", "--follow", "--by", "fd", *load()).out
    evil = "\x1b[2Jx"
    out = kymo("count", "syscall_entry_getppid", "--follow", "--by", "procname", *load(evil)).out
    assert "\\x1b[2Jx" in out and "\x1b" not in out
    # Without room for more keys, the output says how many events are not counted.
    found = json.loads(kymo("count", "syscall_exit_read", "if", own("ret > 0"), "--by", "ret", "--keys", "10", "--json", *load()).out)
    assert found["keys"] <= 10 and found["count"] + found["lost"] == 200 and found["lost"]


def test_stacks(kymo, count):
    found = count("syscall_entry_getppid", own(), "--stack")
    assert found["count"] == 200 == sum(row["count"] for row in found["rows"])
    stack = found["rows"][0]["by"]
    # With another kernel or libc, the names are other ones.
    assert stack["kernel_stack"] and all(" " in frame for frame in stack["kernel_stack"]), stack
    assert any("syscall" in frame for frame in stack["kernel_stack"]) and stack["user_stack"] and stack["pid"] > 0
    by_kernel = count("syscall_entry_getppid", own(), "--by", "kernel_stack,procname")
    # Other tracers at the same tracepoint change the innermost frames, not those of the system call's entry.
    entry = stack["kernel_stack"][-2:]
    assert sum(row["count"] for row in by_kernel["rows"]) == 200 and {row["by"]["procname"] for row in by_kernel["rows"]} == {NAME}
    assert all(row["by"]["kernel_stack"][-2:] == entry for row in by_kernel["rows"])
    words = ("count", "syscall_entry_getppid", "if", own(), "--by", "kernel_stack,event")
    rest = list(csv.DictReader(io.StringIO(kymo(*words, "--csv", *load()).out)))
    assert sum(int(row["count"]) for row in rest) == 200 and {row["event"] for row in rest} == {"syscall_entry_getppid"}
    assert all(row["kernel_stack"].split(";")[-2:] == entry for row in rest)
    text = kymo(*words, *load()).out
    assert all(frame in text for frame in entry) and "event syscall_entry_getppid" in text


def test_exit_code_and_errors(kymo):
    assert kymo("count", "sched_switch", "--", "sh", "-c", "exit 7", code=7).out
    assert kymo("count", "sched_switch", "--", "sh", "-c", "kill -9 $$", code=137).out
    for words, message in (
            (("sched_switch", "--by", "nothing"), "none of these events has a field 'nothing'"),
            (("sched_switch", "--by", "a,b,c,d,e,f,g"), "6 fields"),
            (("sched_switch", "--sum", "prev_comm"), "no"),
            (("sched_switch", "if", "next_tid + 1 == 3"), ":1:30: the kernel cannot evaluate this part"),
            (("sched_switch", "if", "next_tid == prev_tid"), "cannot evaluate this part"),
            (("sched_switch", "if", 'next_comm =~ "*x"'), "patterns of the form"),
            (("sched_switch", "if", 'next_comm =='), ""),
            (("sched_switch", "if", 'nothing == 3'), ":1:17: event sched_switch has no field 'nothing'; the nearest names are: "),
            (("sched_switch", "if", " || ".join(f"next_tid == {i}" for i in range(40))), "too long"),
            (("sched_switch", "--follow"), "--follow needs a command"),
            (("sched_switch", "--json", "--csv"), "exclude each other"),
            (("sched_switch", "--"), "a command is missing"),
            ((), "operand")):
        result = kymo("count", *words, code=2)
        assert message in result.err and not result.out, result
    assert "no event 'nix'" in kymo("count", "nix", code=1).err
    assert "cannot run" in kymo("count", "sched_switch", "--", "/nowhere", code=1).err


def test_bpftrace_counts_the_same(kymo, tmp_path):
    bpftrace = shutil.which("bpftrace")
    if not bpftrace:
        pytest.skip("bpftrace is not installed")
    (tmp_path / "load.py").write_text(LOAD, encoding="utf-8")
    program = (f'tracepoint:syscalls:sys_exit_read /comm == "{NAME}" && args->ret > 0/ {{ @n = count(); @s = sum(args->ret); }}'
               f'tracepoint:sched:sched_switch /args->prev_pid != 0 && comm == "{NAME}"/ {{ @w = count(); }}')
    found = json.loads(kymo("count", "syscall_exit_read,sched_switch", "if", own("ret > 0 || prev_tid != 0"), "--json", "--", bpftrace,
                            "-f", "json", "-o", tmp_path / "out", "-e", program, "-c",
                            f"{sys.executable} {tmp_path / 'load.py'} {NAME}").out.splitlines()[-1])
    theirs = {}
    for line in (tmp_path / "out").read_text(encoding="utf-8").splitlines():
        one = json.loads(line)
        if one["type"] == "map":
            theirs.update(one["data"])
    ours = rows(found)
    assert ours["syscall_exit_read",] == theirs["@n"] == 200 and theirs["@s"] == sum(100 + i for i in range(200))
    assert ours.get(("sched_switch",), 0) == theirs.get("@w", 0)
