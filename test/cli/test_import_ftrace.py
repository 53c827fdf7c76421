# SPDX-License-Identifier: MIT
"""ftrace's text with call stacks, which the options stacktrace and userstacktrace write, and the text of the tracer function_graph."""

import collections
import os
import re
import subprocess
import time

from test_import import events_of

STACKS = """# tracer: nop
#
          <idle>-0       [001] d..2. 24913.120041: sched_waking: comm=app pid=7 prio=120 target_cpu=001
            bash-84700   [000] .... 24913.120042: sys_close(fd: 3)
          <idle>-0       [001] d..2. 24913.120051: <stack trace>
 => try_to_wake_up
 => hrtimer_wakeup
 => cpu_startup_entry
##### CPU 0 buffer started ####
            bash-84700   [000] .... 24913.120052: <stack trace>
 => syscall_exit_to_user_mode+0x1f/0x30
 => do_syscall_64
"""


def stacks_of(kymo, path):
    return [(event["event"], event["fields"].get("event_before"), event["fields"]["callstack"])
            for event in events_of(kymo, path) if event["event"].endswith("_stack")]


def folded_of(text):
    return {stack: int(n) for stack, n in (line.rsplit(" ", 1) for line in text.splitlines())}


def test_stacks_of_the_kernel(kymo, tmp_path):
    """A stack is an event of its thread, CPU and time, and names the event before it: another CPU's event may stand between the two."""
    path = tmp_path / "trace"
    path.write_text(STACKS)
    found = kymo("convert", "--to", "json", path)
    assert not found.err
    events = events_of(kymo, path)
    assert [(event["event"], event["timestamp_ns"] // 1000 % 10**6, event["packet"]["cpu_id"], event["context"], event["fields"].get("callstack"))
            for event in events] == [
        ("sched_waking", 120041, 1, {"tid": 0, "procname": "<idle>"}, None),
        ("syscall_entry_close", 120042, 0, {"tid": 84700, "procname": "bash"}, None),
        ("kernel_stack", 120051, 1, {"tid": 0, "procname": "<idle>"}, "cpu_startup_entry_[k];hrtimer_wakeup_[k];try_to_wake_up_[k]"),
        ("kernel_stack", 120052, 0, {"tid": 84700, "procname": "bash"}, "do_syscall_64_[k];syscall_exit_to_user_mode_[k]")]
    assert [event["fields"].get("event_before") for event in events] == [None, None, "sched_waking", "syscall_entry_close"]


def test_flame_of_stacks(kymo, tmp_path):
    path = tmp_path / "trace"
    path.write_text(STACKS)
    of = ("report", "flame", "--of", "kernel_stack", "--to", "folded")
    waking = [("cpu_startup_entry_[k];hrtimer_wakeup_[k];try_to_wake_up_[k]", 1)]
    every = folded_of(kymo(*of, path).out)
    assert len(every) == 2 and every["bash;do_syscall_64_[k];syscall_exit_to_user_mode_[k]"] == 1
    only = folded_of(kymo(*of, "-f", 'event_before == "sched_waking"', path).out)
    assert [(stack.split(";", 1)[1], n) for stack, n in only.items()] == waking


def test_forms_of_frames(kymo, tmp_path):
    """The options sym-offset, sym-addr and sym-userobj, functions of modules, and trace-cmd report."""
    path = tmp_path / "trace"
    front = "            app-7       [000] .....    12.000005: "
    path.write_text(f"""{front}<stack trace>
 => schedule+0x1f/0x30 <ffffffff814b0cf5>
 => nft_do_chain+0x1f/0x30 [nf_tables] <ffffffffc14b0cf5>
 => nf_hook_slow [nf_tables]
 => [FTRACE TRAMPOLINE]
 => 0xffffffffc0a1e083
 => entry;x
{front}<user stack trace>
 =>  <00007fa44477aa1a>
 => /lib/libc.so.6[+0xd2a1a]
 => /opt/a b[+0x68] <0000562c0a6a89ee>
 => ??
{front}kernel_stack:         <stack trace >
=> schedule (ffffffff814b260e)
=> cpu_idle+0x2a (ffffffff8100a38c)
{front}kernel_stack:         <stack trace>
=> start_secondary (ffffffff814ab828)
{front}user_stack:           \t=> (00007fa44477aa1a)
\t=> (000055b9054435f6)
\t=> (0000000000000000)
{front}<stack trace>
""")
    assert stacks_of(kymo, path) == [
        ("kernel_stack", None,
         "entry:x_[k];0xffffffffc0a1e083_[k];[FTRACE TRAMPOLINE]_[k];nf_hook_slow_[k];nft_do_chain_[k];schedule_[k]"),
        ("user_stack", None, "??;/opt/a b[+0x68];/lib/libc.so.6[+0xd2a1a];0x7fa44477aa1a"),
        ("kernel_stack", None, "cpu_idle_[k];schedule_[k]"),
        ("kernel_stack", None, "start_secondary_[k]"),
        ("user_stack", None, "0x55b9054435f6;0x7fa44477aa1a"),
        ("kernel_stack", None, "")]
    assert "line" not in {event["event"] for event in events_of(kymo, path)}


def test_stacks_without_their_event(kymo, tmp_path):
    """A trigger writes the stack of an event that the text may lack, and an interrupt's event may stand between. Only a likely event is named."""
    path = tmp_path / "trace"
    path.write_text("""            app-7       [000] .....    12.000001: sched_waking: comm=x pid=8 prio=120 target_cpu=000
            app-8       [000] d..2.    12.000002: <stack trace>
 => schedule
            app-7       [000] .....    12.000003: sched_waking: comm=x pid=8 prio=120 target_cpu=000
            app-7       [001] d..2.    12.000004: <stack trace>
 => schedule
            app-7       [000] d..2.    12.000005: <stack trace>
 => schedule
            app-7       [000] d..2.    12.000006: <user stack trace>
 => /bin/app[+0x1]
            app-7       [000] .....    12.000007: sys_close(fd: 3)
            app-7       [000] d.h3.    12.000008: sched_waking: comm=x pid=8 prio=120 target_cpu=000
            app-7       [000] d.h3.    12.000009: <stack trace>
 => try_to_wake_up
            app-7       [000] .....    12.000010: <stack trace>
 => do_syscall_64
            app-7       [000] .....    12.000011: sys_close(fd: 3)
CPU:0 [LOST 3 EVENTS]
            app-7       [000] d..2.    12.000012: <stack trace>
 => schedule
""")
    assert stacks_of(kymo, path) == [
        ("kernel_stack", None, "schedule_[k]"), ("kernel_stack", None, "schedule_[k]"), ("kernel_stack", "sched_waking", "schedule_[k]"),
        ("user_stack", "sched_waking", "/bin/app[+0x1]"), ("kernel_stack", "sched_waking", "try_to_wake_up_[k]"),
        ("kernel_stack", None, "do_syscall_64_[k]"), ("kernel_stack", None, "schedule_[k]")]


def test_long_stacks(kymo, tmp_path):
    """Of a stack without an end, the innermost functions remain; all of its lines are its own."""
    path = tmp_path / "trace"
    front = "            app-7       [000] .....    12.00000{}: "
    path.write_text(front.format(1) + "<stack trace>\n" + "".join(f" => f{i}\n" for i in range(70000)) +
                    front.format(2) + "<stack trace>\n => " + "x" * 70000 + "\n" + front.format(3) + "sys_close(fd: 3)\n")
    first, second, last = events_of(kymo, path)
    assert first["fields"]["callstack"] == ";".join(f"f{i}_[k]" for i in reversed(range(1024)))
    assert second["fields"]["callstack"] == "x" * 4096 + "_[k]"
    assert last["event"] == "syscall_entry_close"


def test_real_stacks(kymo, tmp_path, needs_root_tracefs):
    """What this kernel writes. The text itself is the judge."""
    instance = f"{needs_root_tracefs}/instances/kymo-test-{os.getpid()}-stack"

    def put(name, text):
        with open(f"{instance}/{name}", "w", encoding="ascii") as file:
            file.write(text)

    def read(name):
        with open(f"{instance}/trace", encoding="utf-8", errors="replace") as file:
            text = file.read()
        (tmp_path / name).write_text(text)
        return text

    texts = {}
    os.mkdir(instance)
    try:
        put("tracing_on", "0")
        put("buffer_size_kb", "4096")
        for option in ("stacktrace", "userstacktrace"):
            put(f"options/{option}", "1")
        # Only this test's program counts: other threads would fill the buffer.
        program = subprocess.Popen(["sh", "-c", "read x; exec ls /"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)  # pylint: disable=consider-using-with
        put("set_event_pid", str(program.pid))
        put("events/syscalls/sys_enter_close/enable", "1")
        put("events/sched/sched_waking/enable", "1")
        put("tracing_on", "1")
        program.communicate(b"\n")
        put("tracing_on", "0")
        texts["plain"] = read("plain")
        for option in ("sym-offset", "sym-addr"):
            put(f"options/{option}", "1")
        texts["all"] = read("all")
        put("events/enable", "0")
    finally:
        for _ in range(50):
            try:
                os.rmdir(instance)
                break
            except OSError:
                time.sleep(0.1)
    found = {}
    for name, text in texts.items():
        events = events_of(kymo, tmp_path / name)
        found[name] = collections.Counter(event["fields"]["callstack"] for event in events if event["event"] == "kernel_stack")
        assert "line" not in {event["event"] for event in events}
        assert found[name].total() == text.count(": <stack trace>") > 0
        assert sum(event["event"] == "user_stack" for event in events) == text.count(": <user stack trace>")
        expected = collections.Counter()
        for block in re.findall(r": <stack trace>\n((?: => .*\n)*)", text):
            expected[";".join(re.sub(r"(\+0x\S+)?( \[\S+\])?( <[0-9a-f]+>)?$", "", line[4:]) + "_[k]" for line in reversed(block.splitlines()))] += 1
        assert found[name] == expected
    assert found["plain"] == found["all"]
    flame = folded_of(kymo("report", "flame", "--of", "kernel_stack", "-f", 'event_before == "syscall_entry_close"', "--to", "folded",
                           tmp_path / "plain").out)
    assert flame and all("do_syscall_64_[k]" in stack or "syscall" in stack for stack in flame)


GRAPH = """# tracer: function_graph
#
# CPU  DURATION                  FUNCTION CALLS
# |     |   |                     |   |   |   |
 3)               |  pick_next_task() {
 3)   0.081 us    |    pick_task_fair();
 3)   3.977 us    |  }
"""


def test_function_graph(kymo, tmp_path):
    """The text of this tracer has no times and no threads: an error says that Kymo does not read it."""
    path = tmp_path / "graph"
    path.write_text(GRAPH)
    assert "the text of ftrace's tracer function_graph is not read" in kymo("print", path, code=1).err
    # What other lines of the file say is not lost.
    path.write_text("            app-7       [000] .....    12.000001: sys_close(fd: 3)\n" + GRAPH)
    assert [event["event"] for event in events_of(kymo, path)] == ["syscall_entry_close", "line", "line", "line"]


def test_a_stack_says_nothing_of_its_cpu(kymo, tmp_path):
    """The stack of a switch has the thread that left, and the time after the switch."""
    path = tmp_path / "trace"
    switch = "     {0}-{1}  [000] d..2. 12.00000{2}: sched_switch: prev_comm={0} prev_pid={1} prev_prio=120 prev_state=S ==> next_comm={3} next_pid={4} next_prio=120\n"
    stack = "     {0}-{1}  [000] d..2. 12.00000{2}: <stack trace>\n => __schedule\n"
    parts = [("a", 7, 1, "b", 8), ("b", 8, 5, "a", 7), ("a", 7, 9, "b", 8)]
    reports = []
    for with_stacks in (False, True):
        path.write_text("# tracer: nop\n" + "".join(switch.format(*part) + (stack.format(part[0], part[1], part[2] + 0) if with_stacks else "") for part in parts))
        reports.append(re.findall(r"^ +\d+ .*", kymo("report", "cpu", path).out, re.M))
    assert reports[0] == reports[1] and "4.000 us" in reports[0][0]
