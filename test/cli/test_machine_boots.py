# SPDX-License-Identifier: MIT
"""kymo recover of what the boot before recorded: rings in memory that outlives a reboot (Linux 6.12), in a
machine that is reset in between. This kernel maps rings and has large sub-buffers, too."""

import collections
import re

import pytest

from machine import Machine, compile_c, once_more, thirty_two

CALLS = 500
INSTANCE = "/sys/kernel/tracing/instances/black-box"

# Without nokaslr the memory is elsewhere after the reset.
PARAMETERS = ("nokaslr reserve_mem=12M:4096:trace "
              "trace_instance=black-box^traceoff@trace trace_clock=mono")

SCRIPT = f"""
box={INSTANCE}
if [ "$(head -c 4 /dev/nvme0n1)" != done ]; then
	echo mono > $box/trace_clock
	for event in syscalls/sys_enter_getppid syscalls/sys_exit_getppid sched/sched_switch; do
		echo 1 > $box/events/$event/enable
	done
	echo 1 > $box/tracing_on
	kymo recover -o busy $box
	tell busy
	pinned 0 first {CALLS}
	pinned 1 second {CALLS}
	echo "what was written as text" > $box/trace_marker
	# A ring that is written to at the moment of the reset may be one that the kernel drops.
	echo 0 > $box/tracing_on
	echo done > /dev/nvme0n1
	sync
	tell before
	reboot -f
fi
dmesg | grep -i 'ring buffer'
cat $box/last_boot_info $box/per_cpu/cpu?/stats
kymo record -o other --reader=mmap -k sched,syscalls -- pinned 1 third {CALLS}
tell other
mkdir /sys/kernel/tracing/instances/plain
kymo recover -o plain /sys/kernel/tracing/instances/plain
tell plain
kymo recover -o found /sys/kernel/tracing/instances
tell found
ls found
kymo recover -o again $box/
tell again
kymo record -o content -k 'compat_syscall_*,syscall:exec*' --syscall-content=all -- thirty-two
tell content
tar cf /dev/nvme0n1 found other content
sync
tell over
"""


@pytest.fixture(scope="module")
def machine(kymo_bin, tmp_path_factory):
    directory = tmp_path_factory.mktemp("boots")
    programs = [kymo_bin, compile_c(directory, "pinned"), thirty_two(directory)]
    done = once_more(lambda: Machine(directory, "6.12", programs, SCRIPT, parameters=PARAMETERS, reboots=True))
    print(done.text)
    assert "over" in done.steps, done.text
    done.unpack(directory)
    done.directory = directory
    return done


def test_events_of_the_boot_before(machine, kymo, peer):
    assert machine.steps["found"][0] == 0, machine.text
    trace = machine.directory / "found" / "black-box"
    said, = re.findall(rf"^{INSTANCE}: (\d+) events of the boot before -> found/black-box\r?$",
                       machine.text, re.MULTILINE)
    text = kymo("print", trace).out
    assert text.count("\n") == int(said)
    assert peer("babeltrace2", trace).out.count("\n") == int(said)
    calls = collections.Counter()
    for kind, cpu, tid in re.findall(r"syscall_(entry|exit)_getppid: \{ cpu_id = (\d) \}, "
                                     r"\{ tid = (\d+) \}", text):
        calls[kind, cpu, tid] += 1
    pairs = sorted((kind, cpu, n) for (kind, cpu, _), n in calls.items() if n >= CALLS)
    assert pairs == [("entry", "0", CALLS), ("entry", "1", CALLS),
                     ("exit", "0", CALLS), ("exit", "1", CALLS)], calls
    assert "sched_switch: {" in text
    assert re.search(r' print: .*buf = "what was written as text\\n" \}', text)
    # Of this boot there is nothing: it had written nothing there.
    assert "third" not in text


def test_only_the_trace_is_left(machine):
    assert re.search(r"^black-box\r?$", machine.text, re.MULTILINE)
    assert not re.search(r"black-box-raw", machine.text)


def test_what_cannot_be_recovered_is_told(machine):
    assert machine.steps["busy"][0] == 1 and "this boot records into it" in machine.text
    assert machine.steps["plain"][0] == 1
    assert "is not in memory that survives a reboot" in machine.text
    assert machine.steps["again"][0] == 1, "its events were taken"


def test_this_kernel_records_too(machine, kymo):
    assert machine.steps["other"][0] == 0
    found = kymo("print", machine.directory / "other").out
    assert found.count("syscall_entry_getppid") >= CALLS


def test_programs_that_read_content(machine, kymo):
    """This kernel supports them, too, and a warning names 32-bit calls."""
    assert machine.steps["content"][0] == 7 and "; 0 lost." in machine.text, machine.text
    text = kymo("print", "--event", "*syscall_*", machine.directory / "content").out
    assert re.search(r"syscall_entry_execve: .*argv_texts = \[ \[0\] = \"thirty-two\" \]", text), text
    # What is not in memory yet is read when the call is left; by then its entry may have been written.
    writes = re.findall(r"compat_syscall_(entry|exit)_write: (.*)", text)
    assert [kind for kind, _ in writes] == 5 * ["entry", "exit"], text
    for (_, entry), (_, leave) in zip(writes[::2], writes[1::2]):
        assert " _buf_data_length = 11," in entry or ("unreadable" in entry and " _late_buf_data_length = 11," in leave), text
