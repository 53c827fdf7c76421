# SPDX-License-Identifier: MIT
"""kymo record --callstack-kernel, --callstack-user: who called what, of the events that were named."""

import json
import re
import subprocess

import pytest

# chain() calls itself @depth times and then the kernel; it says where its own code is.
PROGRAM = r"""
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

__attribute__((noinline)) static void call(void)
{
	__asm__ volatile("syscall" : : "a"(SYS_getppid) : "rcx", "r11", "memory");
	__asm__ volatile("" : : : "memory");
}

__attribute__((noinline)) static void chain(int depth)
{
	if (depth)
		chain(depth - 1);
	else
		call();
	__asm__ volatile("" : : : "memory");
}

int main(int argc, char **argv)
{
	printf("%lu %lu %d\n", (unsigned long)call, (unsigned long)chain, getpid());
	fflush(stdout);
	for (int i = 0; i < atoi(argv[1]); i++) {
		chain(i % 5);
		syscall(SYS_getuid);
	}
	return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("stacks") / "chain"
    subprocess.run(["cc", "-x", "c", "-O0", "-fno-omit-frame-pointer", "-w", "-o", path, "-"], input=PROGRAM,
                   text=True, check=True)
    return path


@pytest.fixture
def record(record, without_losses):
    return lambda *options, **kwargs: without_losses(record, *options, **kwargs)


def run(kymo, record, tmp_path, program, *options):
    said = tmp_path / "said"
    trace, _ = record(*options, command=["sh", "-c", f"{program} 1000 > {said}"])
    call, chain, pid = (int(word) for word in said.read_text().split())
    lines = kymo("convert", "--to", "json", trace).out.splitlines()
    events = [event for event in map(json.loads, lines) if not event["event"].startswith("lttng_statedump")]
    return trace, events, call, chain, pid


def symbols():
    """[(address, name)] of the kernel, or nothing where it hides them."""
    found = []
    with open("/proc/kallsyms", encoding="utf-8") as file:
        for line in file:
            address, kind, name = line.split()[:3]
            if kind in "tT" and int(address, 16):
                found.append((int(address, 16), name))
    return sorted(found)


def name_of(table, address):
    low, high = 0, len(table)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if table[middle][0] <= address else (low, middle)
    return table[low][1]


@pytest.mark.parametrize("raw", [False, True])
def test_program(kymo, record, program, tmp_path, raw):
    """Each call's stack has as many frames of chain() as it was deep; other events have none."""
    trace, events, call, chain, pid = run(
        kymo, record, tmp_path, program, "-k", "syscall_*_getppid,syscall_*_getuid,sched_switch",
        "--callstack-user", "syscall_entry_getppid", "--context", "pid", *(["--raw"] if raw else []))
    stacks = []
    for event in events:
        context = event["context"]
        assert "callstack_kernel" not in context
        if event["event"] != "syscall_entry_getppid":
            assert context["callstack_user"] == []
        elif context["tid"] == pid:
            assert context["pid"] == pid
            stacks.append(context["callstack_user"])
    assert len(stacks) == 1000
    for i, stack in enumerate(stacks):
        assert len(stack) <= 8 and call < stack[0] < chain
        assert sum(chain < frame < chain + 100 for frame in stack[1:]) == i % 5 + 1, (i, stack)


def test_kernel(kymo, record, peer, program, tmp_path):
    trace, events, _, _, pid = run(
        kymo, record, tmp_path, program, "-k", "syscall_entry_getppid,syscall_entry_getuid,sched_*,irq_*,timer_*",
        "--callstack-kernel", "syscall_entry_getppid", "--callstack-kernel", "sched:sched_waking",
        "--context", "callstack_user")  # as the field is called
    table = symbols()
    calls = wakings = without = 0
    for event in events:
        context, name = event["context"], event["event"]
        stack = context["callstack_kernel"]
        if name == "sched_waking":
            # In interrupts of the idle thread the kernel finds none, in others nearly always: its own text of
            # the ring has none either.
            wakings += context["tid"] != 0
            without += context["tid"] != 0 and not stack
        else:
            assert bool(stack) == (name == "syscall_entry_getppid"), event
        if name == "syscall_entry_getppid" and context["tid"] == pid:
            calls += 1
            assert all(address >= 2**63 for address in stack)
            if table:
                assert "do_syscall_64" in [name_of(table, address) for address in stack]
            assert context["callstack_user"]
        elif name == "sched_waking" and table and stack:
            names = [name_of(table, address) for address in stack]
            assert any(re.match("try_to_wake_up|ttwu", symbol) for symbol in names), names
    assert calls == 1000
    assert without <= wakings * 0.05 + 1
    shown = kymo("print", "--event", "syscall_entry_getppid", "--clock-cycles", trace).out
    assert re.search(r"callstack_kernel = \[ \[0\] = 0xFFFF", shown)
    # Without the differences: within a nanosecond, the order of two CPUs' events is not that of cycles, and babeltrace2 has
    # no difference below 0.
    theirs = peer("babeltrace2", "--clock-cycles", "--no-delta", trace)
    assert theirs.code == 0, theirs
    ours = kymo("print", "--clock-cycles", "--no-delta", trace)
    ours, theirs = ([line for line in result.out.splitlines() if " syscall_entry_getppid" in line]
                    for result in (ours, theirs))
    assert ours == theirs


def test_filtered(kymo, record, program, tmp_path):
    """What the kernel leaves out has a stack in the ring all the same: nobody else gets it."""
    _, events, call, chain, pid = run(
        kymo, record, tmp_path, program, "-k", "syscall_exit_getppid if ret > 1000000000",
        "-k", "syscall_entry_getuid,syscall_exit_getuid", "--callstack-kernel", "*getppid",
        "--callstack-kernel", "syscall_exit_getuid", "--callstack-user", "*getuid")
    mine = [event for event in events if event["context"]["tid"] == pid]
    assert len(mine) == 2000
    for event in mine:
        assert bool(event["context"]["callstack_kernel"]) == (event["event"] == "syscall_exit_getuid")
        assert event["context"]["callstack_user"]


def test_mistakes(kymo, tmp_path):
    for options, words, code in (
            (["-k", "sched_switch", "--callstack-kernel", "sched_waking"], "matches no event of the recording", 1),
            (["--user", "a:*", "--callstack-user", "*"], "for kernel events; add --kernel", 2)):
        assert words in kymo("record", "-o", tmp_path / "t", *options, "--", "true", code=code).err
        assert not (tmp_path / "t").exists()
