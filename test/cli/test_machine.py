# SPDX-License-Identifier: MIT
"""kymo record on an older kernel, Debian's 6.1, in a machine of its own: what this machine's kernel may
lack (kprobes, 32-bit calls), what that one lacks (mapped rings, large sub-buffers), and CPUs that are taken
away, which would disturb others here.

One boot does it all; the tests look at what it left.
"""

import collections
import json
import re

import pytest

import compat_arguments
import messages
from machine import Machine, compile_c, once_more, thirty_two

CALLS = 300

# What is recorded, as --whole and as --raw.
WORK = f"""#!/bin/busybox sh
cat /proc/version
thirty-two
pinned 1 before {CALLS}
echo 0 > /sys/devices/system/cpu/cpu1/online
pinned 0 without {CALLS}
echo 1 > /sys/devices/system/cpu/cpu1/online
pinned 1 after {CALLS}
"""

# The recorder has no time to see that the CPU is away; then it has.
BLINK = """#!/bin/busybox sh
pinned 1 before 10
echo 0 > /sys/devices/system/cpu/cpu1/online
echo 1 > /sys/devices/system/cpu/cpu1/online
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do pinned 1 after 1; sleep 0.1; done
"""

# Of functions of the kernel there are clones: of one nothing else, of another beside it. (Some may not be probed.)
CLONES = r"""#!/bin/busybox sh
grep ' [tT] ' /proc/kallsyms > all
sed -n 's/.* \([a-z][a-z_0-9]*\)\.\(isra\|constprop\)\.0$/\1/p' all | head -n 30 | while read f; do
	grep -q " $f$" all && continue
	kymo record -o gone --kprobe $f -- true 2>&1 | grep function
	break
done
sed -n 's/.* \([a-z][a-z_0-9]*\)\.part\.0$/\1/p' all | head -n 9 | while read f; do
	kymo record -o beside --kprobe $f -- true 2> said && grep compiler said && break
done
"""

SCRIPT = f"""
kymo record -o whole -k 'default,compat_syscall_*,syscall:unknown' --kprobe 'do_sys_openat2(arg1:s32, arg2:ustring, $retval:s32)' \\
	--syscall-content=paths --context procname -- work
tell whole
kymo record -o raw --raw -k default --context procname -- work
tell raw
kymo record -o messages --buffer-size 16M -k '{messages.EVENTS},{compat_arguments.EVENTS}' --syscall-content=all --context procname \\
	-- sh -c 'messages-64; messages-32; arguments'
tell messages
echo 0 > /sys/devices/system/cpu/cpu1/online
kymo record -o absent -k sched,syscalls,syscall:unknown --context procname,vtid,vpid,vppid,nice \\
	-- sh -c 'echo 1 > /sys/devices/system/cpu/cpu1/online; pinned 1 after {CALLS}'
tell absent
kymo record -o every -k '*' -- true
tell every
kymo record -o mapped --reader=mmap -- true
tell mapped
kymo record -o counted -k syscall_entry_getppid --context procname,perf:cpu:context-switches -- blink
tell counted
kymo count 'syscall_entry_*' if '$ctx.procname == "pinned-count"' --by event,cpu --json -- pinned 1 pinned-count {CALLS}
tell count
clones
tell clones
tar cf /dev/nvme0n1 whole raw messages absent every counted
sync
tell over
"""

EVENT = re.compile(r"^\[([\d:.]+)\] \(\+\S+\) \S* ?(\S+): \{ cpu_id = (\d+) \}, \{ tid = (\d+)(?:, procname = "
                   r"\"([^\"]*)\")?(?:, [^}]*)? \}, \{ ?(.*?) ?\}$", re.MULTILINE)


@pytest.fixture(scope="module")
def machine(kymo_bin, tmp_path_factory):
    directory = tmp_path_factory.mktemp("machine")
    programs = [kymo_bin, compile_c(directory, "pinned"), thirty_two(directory),
                messages.build(directory, 64), messages.build(directory, 32), compat_arguments.build(directory)]
    texts = {"bin/clones": CLONES, "bin/work": WORK, "bin/blink": BLINK}
    done = once_more(lambda: Machine(directory, "6.1", programs, SCRIPT, texts))
    print(done.text)
    assert "over" in done.steps, done.text
    done.unpack(directory)
    done.directory = directory
    return done


def events(kymo, trace):
    """(time, name, cpu, tid, procname, payload) of what is not of the state dump."""
    found = EVENT.findall(kymo("print", trace).out)
    return [(time, name, int(cpu), int(tid), comm, payload)
            for time, name, cpu, tid, comm, payload in found if "statedump" not in name]


def pinned_calls(found):
    """{(procname, cpu): how many getppid() it entered there}; shells call it, too."""
    return collections.Counter((comm, cpu) for _, name, cpu, _, comm, _ in found
                               if name == "syscall_entry_getppid" and comm not in ("work", "sh"))


@pytest.mark.parametrize("name", ["whole", "raw", "messages", "absent", "every", "counted"])
def test_recorded_without_loss(machine, name):
    assert machine.steps[name][0] == 0, machine.text
    said = re.findall(r"Recorded (\d+) (?:events|raw records).*; (\d+) lost", machine.text)
    assert len(said) == 6 and all(lost == "0" for _, lost in said), machine.text


@pytest.mark.parametrize("name", ["whole", "messages", "absent", "every"])
def test_babeltrace2_reads_it_alike(machine, kymo, peer, name):
    trace = machine.directory / name
    theirs = peer("babeltrace2", trace)
    assert theirs.code == 0 and theirs.out.count("\n") == kymo("print", trace).out.count("\n")


@pytest.mark.parametrize("name", ["whole", "raw"])
def test_a_cpu_goes_and_returns(machine, kymo, name):
    """What it recorded before is there, and what it did when it was back; nobody waited for it."""
    found = events(kymo, machine.directory / name)
    assert pinned_calls(found) == {("before", 1): CALLS, ("without", 0): CALLS, ("after", 1): CALLS}
    order = [comm for _, name, _, _, comm, _ in found
             if name == "syscall_entry_getppid" and comm != "work"]
    assert order == ["before"] * CALLS + ["without"] * CALLS + ["after"] * CALLS


def test_a_cpu_comes_that_was_away(machine, kymo):
    found = events(kymo, machine.directory / "absent")
    assert pinned_calls(found) == {("after", 1): CALLS}


def test_ids_in_namespaces(machine, kymo):
    """All is in the first one: they are the kernel's."""
    lines = kymo("convert", "--to", "json", "--event", "syscall_entry_getppid", machine.directory / "absent").out
    contexts = [json.loads(line)["context"] for line in lines.splitlines()]
    assert len(contexts) >= CALLS and all(c["vtid"] == c["vpid"] == c["tid"] and c["vppid"] and c["nice"] == 0
                                          for c in contexts)


def test_counters_of_a_cpu_that_was_away(machine, kymo):
    """It was back before anybody looked; it goes on from what it had."""
    lines = kymo("convert", "--to", "json", machine.directory / "counted").out.splitlines()
    counts = {"before": [], "after": []}
    for event in map(json.loads, lines):
        if event["event"] == "syscall_entry_getppid" and event["context"]["procname"] in counts:
            assert event["packet"]["cpu_id"] == 1
            counts[event["context"]["procname"]].append(event["context"]["perf_cpu_context_switches"])
    every = counts["before"] + counts["after"]
    assert len(every) == 30 and every[0] > 0 and every == sorted(every)
    assert every[-1] > every[10], every


def test_kernel_functions(machine, kymo):
    """--kprobe, with arguments and what the function returned."""
    found = events(kymo, machine.directory / "whole")
    call, = [event for event in found if event[1] == "kernel:do_sys_openat2" and
             '"/proc/version"' in event[5]]
    assert re.search(r"arg1 = -100, arg2 = \"/proc/version\"", call[5])
    back = next(event for event in found[found.index(call):] if event[3] == call[3] and
                event[1] == "kernel:do_sys_openat2_return")
    assert re.search(r"retval = 3\b", back[5]), back


def test_kernel_functions_with_clones(machine):
    """What there is of a function beside it, or in place of it, is named."""
    assert re.search(r"the kernel has no function for kernel:(\w+); the compiler made other functions of it: \1\.",
                     machine.text), machine.text
    assert re.search(r"warning: (\w+): the compiler made (\1\.\w+\.\d+)[^;]* of it for some callers, .*; --kprobe '\2' records",
                     machine.text), machine.text


def test_content_of_calls(machine, kymo):
    found = events(kymo, machine.directory / "whole")
    call, = [event for event in found if event[1] == "syscall_entry_openat" and
             'filename = "/proc/version"' in event[5]]
    assert call[4] == "cat"
    begun = [event[5] for event in found if event[1] == "syscall_entry_execve" and
             'argv_texts = [ [0] = "cat"' in event[5]]
    assert len(begun) == 1 and '[1] = "/proc/version" ]' in begun[0]


def test_calls_of_32_bits_are_not_taken_for_others(machine, kymo):
    found = events(kymo, machine.directory / "whole")
    tids = {tid for _, name, _, tid, comm, _ in found if comm == "thirty-two"}
    assert len(tids) == 1 and machine.text.count("thirty-two\r\n") == 10
    names = [name for _, name, _, tid, comm, _ in found if comm == "thirty-two" and "syscall_entry_" in name]
    assert names == 5 * ["compat_syscall_entry_write"] + ["compat_syscall_entry_getpid", "compat_syscall_entry_exit"]
    assert not any("compat" in name for _, name, *_ in events(kymo, machine.directory / "every"))


def test_counts_in_the_kernel(machine):
    """What an old verifier takes, and exactly those calls."""
    line, = re.findall(r'^\{"begin_ns".*\}', machine.text, re.MULTILINE)
    counts = {(row["by"]["event"], row["by"]["cpu"]): row["count"] for row in json.loads(line)["rows"]}
    assert counts["syscall_entry_getppid", 1] == CALLS and json.loads(line)["lost"] == 0


@pytest.mark.parametrize("bits", [64, 32])
def test_messages(machine, kymo, bits):
    out = kymo("convert", "--to", "json", "--filter", f"$ctx.procname == 'messages-{bits}'",
               machine.directory / "messages").out
    messages.check([(event["event"], event["fields"]) for event in map(json.loads, out.splitlines())],
                   "compat_" if bits == 32 else "")


def test_arguments_of_32_bits(machine, kymo):
    out = kymo("convert", "--to", "json", "--filter", "$ctx.procname == 'arguments'",
               machine.directory / "messages").out
    compat_arguments.check([(event["event"], event["fields"]) for event in map(json.loads, out.splitlines())])


def test_reports_on_it(machine, kymo):
    for name in ("whole", "raw"):
        rows = kymo("report", "cpu", "--limit", "0", machine.directory / name).out
        assert all(re.search(rf" {comm} ", rows) for comm in ("before", "without", "after")), rows


def test_a_kernel_that_maps_no_rings_says_so(machine):
    assert machine.steps["mapped"][0] == 1
    assert "the kernel does not map its ring buffer" in machine.text
