# SPDX-License-Identifier: MIT
"""System calls that the kernel has no event for: of numbers that nothing has, or that this kernel was built without."""

import json
import re
import subprocess

import pytest

# Numbers that no kernel has; of 32 bits, too. Between them, calls that it knows.
PROGRAM = r"""
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static void compat(long number)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(number), "b"(1), "c"(2), "d"(3)
			 : "memory", "r8", "r9", "r10", "r11");
}

static void exit_well(int number)
{
	_exit(0);
}

int main(void)
{
	/* A kernel without 32-bit calls. */
	signal(SIGSEGV, exit_well);

	printf("%d\n", (int)getpid());
	fflush(stdout);
	for (long i = 0; i < 1000; i++) {
		syscall(9999, i, -2L, 3L, 4L, 5L, 6L);
		syscall(SYS_getppid);
	}
	syscall(400, 1L, 2L, 3L, 4L, 5L, 6L);
	syscall(511, 1L, 2L, 3L, 4L, 5L, 6L);
	syscall(512, 1L, 2L, 3L, 4L, 5L, 6L);
	syscall(-1, 1L, 2L, 3L, 4L, 5L, 6L);
	compat(9999);
	compat(17);
	return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("unknown") / "unknown"
    subprocess.run(["cc", "-x", "c", "-O1", "-o", path, "-"], input=PROGRAM, text=True, check=True)
    return path


def events_of(kymo, trace, tid):
    out = kymo("convert", "--to", "json", "--event", "*syscall_*", "--filter", f"$ctx.tid == {tid}", trace).out
    return [(event["event"], event["fields"]) for event in map(json.loads, out.splitlines())]


def pid_of(done):
    return int(done.out.split()[0])


def test_every_call_once(kymo, peer, record, without_losses, program):
    trace, done = without_losses(record, "-k", "syscall:getppid,syscall:unknown", command=[program])
    found = events_of(kymo, trace, pid_of(done))
    many, few = found[:4000], found[4000:]
    for i in range(1000):
        args = [i, 2**64 - 2, 3, 4, 5, 6]
        assert many[4 * i:4 * i + 2] == [("syscall_entry_unknown", {"id": 9999, "args": args}),
                                         ("syscall_exit_unknown", {"id": 9999, "ret": -38, "args": args})]
        assert [name for name, _ in many[4 * i + 2:4 * i + 4]] == ["syscall_entry_getppid", "syscall_exit_getppid"]
    args = [1, 2, 3, 4, 5, 6]
    # Those of 32 bits are others', and were not asked for.
    assert few == [event for number in (400, 511, 512, -1) for event in (
        ("syscall_entry_unknown", {"id": number, "args": args}),
        ("syscall_exit_unknown", {"id": number, "ret": -38, "args": args}))]
    theirs = peer("babeltrace2", trace)
    assert theirs.code == 0, theirs
    event = re.compile(r"^\[[\d:.]+\] \S+ \S+ (syscall_\S+)", re.MULTILINE)
    assert event.findall(theirs.out) == event.findall(kymo("print", trace).out)


def test_of_32_bits(kymo, record, program):
    trace, done = record("-k", "compat_syscall_*_unknown", command=[program])
    found = events_of(kymo, trace, pid_of(done))
    if not found:
        pytest.skip("this kernel makes no 32-bit calls")
    assert [(name.split("_")[2], fields["id"], fields["args"][:3], fields.get("ret")) for name, fields in found] == [
        ("entry", 9999, [1, 2, 3], None), ("exit", 9999, [1, 2, 3], -38),
        ("entry", 17, [1, 2, 3], None), ("exit", 17, [1, 2, 3], -38)]


def test_whoever_does_not_name_them_has_none(kymo, record, program):
    trace, done = record("-k", "syscalls,*syscall*,syscall:*", command=[program])
    assert not any("unknown" in name for name, _ in events_of(kymo, trace, pid_of(done)))


def test_known_calls_are_not_among_them(kymo, record):
    """What ordinary programs call is known. What comes back from a signal's handler has no number any more."""
    trace, _ = record("-k", "syscall_*_unknown", "--follow", command=["sh", "-c", "ls / | sort | tail -1; date; id"])
    out = kymo("convert", "--to", "json", "--event", "*unknown", trace).out
    found = [json.loads(line) for line in out.splitlines()]
    assert {(event["event"], event["fields"]["id"]) for event in found} <= {("syscall_exit_unknown", -1)}


def test_who_is_chosen(kymo, record, program):
    other = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    try:
        trace, _ = record("-k", "syscall_*_unknown", "--pid", other.pid, command=[program])
    finally:
        other.communicate()
    # The state dump may have files of that name.
    assert not kymo("convert", "--to", "json", "--event", "*_unknown", trace).out
    trace, done = record("-k", "syscall_entry_unknown if id == 400", "--follow",
                         "--context", "procname", command=[program])
    found = events_of(kymo, trace, pid_of(done))
    assert [(name, fields["id"]) for name, fields in found] == [("syscall_entry_unknown", 400)]


def test_reports(kymo, peer, record, program):
    # The peer knows whose a call is from the switch to its thread: there is one.
    trace, done = record("-k", "sched_switch,sched_process_*,syscalls,syscall_*_unknown", "--follow",
                         command=["sh", "-c", f"sleep 0.05; exec {program}"])
    rows = json.loads(kymo("report", "syscalls", "--json", trace).out)
    assert '"syscall 9999"' in json.dumps(rows) and pid_of(done)
    theirs = peer("lttng-syscallstats", "--no-progress", trace / "kernel")
    assert theirs.code == 0 and "unknown" in theirs.out, theirs


def test_bad_options(kymo, needs_root_tracefs, tmp_path):
    kymo_record = ("record", "-k", "syscall_*_unknown", "-o", tmp_path / "none")
    assert "unknown" in kymo(*kymo_record, "--raw", code=2).err
    assert "monotonic" in kymo(*kymo_record, "--clock=tsc", code=2).err
    assert "procname" in kymo(*kymo_record, "--comm", "x", "--", "true", code=1).err
    listed = kymo("list", "syscall_*_unknown", "--fields").out
    assert "id" in listed and "args" in listed


def test_a_kernel_that_does_not_describe_itself(kymo_bin, needs_root_tracefs, tmp_path):
    """Which calls are of 32 bits is not known there, and their numbers may be none of 64 bits. Other fields are as /proc
    has them."""
    without = ["unshare", "-m", "sh", "-c", 'mount --bind /dev/null /sys/kernel/btf/vmlinux && exec "$@"', "sh"]
    if subprocess.run([*without, "true"], capture_output=True, check=False).returncode:
        pytest.skip("needs mount namespaces, and a kernel that describes itself")

    def record(*options):
        return subprocess.run([*without, kymo_bin, "record", "-o", tmp_path / "t", *options, "--", "true"], check=False,
                              capture_output=True, text=True, timeout=300)

    for name in "syscall_exit_unknown", "compat_syscall_entry_unknown":
        done = record("-k", name)
        assert done.returncode == 1 and "does not describe 32-bit calls" in done.stderr, done
    done = record("-k", "syscall_entry_getppid", "--context", "vpid")
    assert done.returncode == 0 and "ids in them and control groups are as /proc has them" in done.stderr, done
