# SPDX-License-Identifier: MIT
"""Calls of 32-bit programs, which tracefs's events leave out: each of a program whose every call is known, as a 32-bit
program on x86-64 makes them, with its name, arguments, result and what it points at."""

import json
import re
import subprocess

import pytest

import compat_arguments

# No 32-bit library is needed: gcc -m32 -static -nostdlib. By int 0x80, and as C libraries call: by the vdso.
PROGRAM = r"""
static unsigned long vdso;

static long call(long number, long a, long b, long c)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
	return ret;
}

static long fast(long number, long a, long b, long c)
{
	long ret;

	__asm__ volatile("call *%1" : "=a"(ret) : "m"(vdso), "0"(number), "b"(a), "c"(b), "d"(c) : "memory");
	return ret;
}

static void say(long value)
{
	char text[16], *at = text + 15;

	*at = '\n';
	do
		*--at = '0' + value % 10;
	while (value /= 10);
	call(4, 1, (long)at, text + 16 - at);
}

static char path[] = "/no/such/file", other[] = "/another", big[5000];

void begin(long *stack);
void begin(long *stack)
{
	static unsigned short in[8] = {2, 0x0900, 0x010a, 0x0302};
	const char *arguments[] = {path, other, 0};
	long *at = stack + 1 + stack[0] + 1, child;

	while (*at)
		at++;
	for (at++; *at; at += 2)
		if (*at == 32) /* AT_SYSINFO */
			vdso = at[1];
	say(call(20, 0, 0, 0));
	for (int i = 0; i < 7; i++)
		call(64, 0, 0, 0);		/* getppid */
	for (int i = 0; i < 5; i++)
		fast(64, 0, 0, 0);
	call(5, (long)path, 0x1000, 0);		/* open */
	fast(195, (long)path, (long)big, 0);	/* stat64 */
	call(38, (long)path, (long)other, 0);	/* rename */
	call(5, 16, 0, 0);
	call(19, 999, -5, 1);			/* lseek */
	call(140, 999, -1, 2);			/* _llseek */
	call(4, 999, (long)path, 5);		/* write */
	call(362, 999, (long)in, 16);		/* connect */
	call(265, 1, (long)big, 0);		/* clock_gettime */
	call(17, 1, 2, 3);			/* break: no such call */
	call(500, 4, 5, 6);
	call(24, 0, 0, 0);			/* getuid of 16 bits */
	child = call(2, 0, 0, 0);		/* fork */
	if (child)
		call(7, child, 0, 0);		/* waitpid */
	call(45, child ? 1 : 2, 0, 0);		/* brk */
	call(11, (long)path, (long)arguments, 0); /* execve */
	call(252, 0, 0, 0);			/* exit_group */
}

__asm__(".globl _start\n_start:\n\tmovl %esp, %eax\n\tandl $-16, %esp\n\tsubl $12, %esp\n\tpushl %eax\n\tcall begin\n");
"""

# What socketcall stands for; and what it does not.
MULTIPLEXED = r"""
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

static int *block;

static int number(void *low)
{
	return (int)(long)low;
}

static long compat(long number, long a, long b)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(number), "b"(a), "c"(b)
			 : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

static long stands_for(int call, int a, int b, int c, int d, int e, int f)
{
	int arguments[] = {a, b, c, d, e, f};

	memcpy(block, arguments, sizeof(arguments));
	return compat(102, call, (long)block);
}

int main(void)
{
	char *low = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	unsigned short *in = (void *)low, port[4] = {AF_INET, 0x0900, 0x010a, 0x0302};
	struct sockaddr_un *name = (void *)(low + 128);
	int *pair = (void *)(low + 512), *length = pair + 2;
	char *text = low + 1024, *back = low + 2048;

	block = (int *)(low + 3000);
	memcpy(in, port, sizeof(port));
	strcpy(text, "hello");
	name->sun_family = AF_UNIX;
	sprintf(name->sun_path + 1, "kymo-test-%d", getpid());
	*length = 2 + 1 + strlen(name->sun_path + 1);
	printf("%d\n", (int)getpid());
	fflush(stdout);
	pair[0] = stands_for(1, AF_UNIX, SOCK_DGRAM, 0, 7, 7, 7);
	stands_for(2, pair[0], number(name), *length, 7, 7, 7);
	memset(name, 0, *length);
	*length = 100;
	stands_for(6, pair[0], number(name), number(length), 7, 7, 7);
	stands_for(8, AF_UNIX, SOCK_STREAM, 0, number(pair), 7, 7);
	stands_for(9, pair[0], number(text), 5, 0, 7, 7);
	stands_for(10, pair[1], number(back), 100, 0, 7, 7);
	stands_for(3, -1, number(in), 16, 7, 7, 7);
	stands_for(11, -1, number(text), 3, 64, number(in), 16);
	stands_for(5, -1, 0, 0, 7, 7, 7);
	stands_for(13, -1, 2, 7, 7, 7, 7);
	compat(102, 3, 16);	/* no block */
	compat(102, 99, 16);	/* no such call */
	compat(102, 0, 16);
	/* Three arguments at the end of what is mapped. */
	mprotect(low + 4096, 4096, PROT_NONE);
	block = (int *)(low + 4096 - 12);
	block[0] = -1;
	block[1] = number(in);
	block[2] = 8;
	compat(102, 3, (long)block);
	return 0;
}
"""

# Calls of 32 and of 64 bits in turn, and calls that are meant for x32.
MIXED = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static long compat(long number, long a, long b, long c)
{
	long ret;

	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(number), "b"(a), "c"(b), "d"(c)
			 : "memory", "r8", "r9", "r10", "r11");
	return ret;
}

int main(void)
{
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);

	printf("%d\n", (int)getpid());
	strcpy(low, "/of/32/bits");
	for (int i = 0; i < 2000; i++) {
		compat(19, 999, i, 0);
		syscall(SYS_lseek, 998, i, 0);
	}
	compat(5, 0xabcdef0100000000 | (long)low, 0, 0); /* only the lower half counts */
	syscall(0x40000000 | SYS_write, 997, low, 3);
	syscall(0x40000000 | 514, 997, low, 3);
	return 0;
}
"""


def compile_c(path, source, *flags):
    subprocess.run(["cc", "-x", "c", "-O1", "-w", *flags, "-o", path, "-"], input=source, text=True, check=True)
    return path


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return compile_c(tmp_path_factory.mktemp("compat") / "thirty-two", PROGRAM, "-m32", "-static", "-nostdlib",
                     "-ffreestanding", "-no-pie", "-fno-pic", "-fno-stack-protector")


@pytest.fixture(scope="module")
def runs(program):
    """Skip where the kernel runs no 32-bit programs."""
    try:
        subprocess.run([program], check=False, capture_output=True)
    except OSError:
        pytest.skip("this kernel runs no 32-bit programs")


def calls_of(kymo, trace, tid):
    out = kymo("convert", "--to", "json", "--event", "*syscall_*", "--filter", f"$ctx.tid == {tid}", trace).out
    return [(event["event"], event["fields"]) for event in map(json.loads, out.splitlines())]


def of(found, name):
    """[(entry's fields, exit's fields)] of one call."""
    pairs = []
    for event, fields in found:
        if event == f"compat_syscall_entry_{name}":
            pairs.append((fields, None))
        elif event == f"compat_syscall_exit_{name}" and pairs:
            pairs[-1] = (pairs[-1][0], fields)
    return pairs


def pid_of(done):
    return int(done.out.split()[0])


@pytest.fixture
def recorded(kymo, runs, record, program):
    """recorded(*options) -> (trace, the program's calls, its child's)"""

    def call(*options):
        trace, done = record("-k", "compat_syscall_*", *options, command=[program])
        assert "; 0 lost." in done.err, done
        pid = pid_of(done)
        found = calls_of(kymo, trace, pid)
        child = of(found, "fork")[0][1]["ret"]
        return trace, found, calls_of(kymo, trace, child)

    return call


def test_every_call_once(kymo, peer, recorded):
    trace, found, child = recorded()
    names = [name.split("_", 3)[3] for name, _ in found if name.startswith("compat_syscall_entry_")]
    assert names == ["getpid", "write"] + 12 * ["getppid"] + [
        "open", "stat64", "rename", "open", "lseek", "llseek", "write", "connect", "clock_gettime32", "unknown",
        "unknown", "getuid16", "fork", "waitpid", "brk", "execve", "exit_group"]
    # The program is begun by a call of 64 bits, which ends as one of 32.
    exits = [name.split("_", 3)[3] for name, _ in found if name.startswith("compat_syscall_exit_")]
    assert exits == ["execve"] + names[:-1]
    (entry, leave), = of(found, "lseek")
    assert entry == {"fd": 999, "offset": -5, "whence": 1} and leave == {"ret": -9}
    (entry, leave), = of(found, "llseek")
    assert (entry["fd"], entry["offset_high"], entry["offset_low"]) == (999, 0xffffffff, 2) and leave["ret"] == -9
    entry, leave = of(found, "open")[0]
    assert re.fullmatch("0x[0-9a-f]{7,8}", entry["filename"]) and entry["flags"] == 0x1000 and leave["ret"] == -2
    (entry, leave), = of(found, "clock_gettime32")
    assert entry["which_clock"] == 1 and leave == {"ret": 0}
    assert [(entry["id"], entry["args"][:3], leave["id"], leave["ret"], leave["args"] == entry["args"])
            for entry, leave in of(found, "unknown")] == [
        (17, [1, 2, 3], 17, -38, True), (500, [4, 5, 6], 500, -38, True)]
    (entry, leave), = of(found, "waitpid")
    assert entry["pid"] == leave["ret"] == of(found, "fork")[0][1]["ret"]
    assert [name for name, _ in child] == ["compat_syscall_exit_fork", "compat_syscall_entry_brk",
                                           "compat_syscall_exit_brk", "compat_syscall_entry_execve",
                                           "compat_syscall_exit_execve", "compat_syscall_entry_exit_group"]
    assert [fields["brk"] for name, fields in found + child if name == "compat_syscall_entry_brk"] == [1, 2]
    theirs = peer("babeltrace2", trace)
    assert theirs.code == 0, theirs
    event = re.compile(r"^\[[\d:.]+\] \S+ \S+ (compat_\S+)", re.MULTILINE)
    assert event.findall(theirs.out) == event.findall(kymo("print", trace).out)


def test_content(recorded):
    _, found, _ = recorded("--syscall-content=all")
    first, bad = of(found, "open")
    assert first[0]["filename"] == "/no/such/file" or first[1]["late_filename"] == "/no/such/file"
    assert bad[0]["filename"] == "0x10" and bad[0]["content_status"] == {"value": 3, "labels": ["unreadable"]}
    assert of(found, "stat64")[0][0]["filename"] == "/no/such/file"
    (entry, _), = of(found, "rename")
    assert (entry["oldname"], entry["newname"]) == ("/no/such/file", "/another")
    assert bytes(of(found, "write")[-1][0]["buf_data"]) == b"/no/s"
    (entry, _), = of(found, "execve")
    assert entry["argv_texts"] == ["/no/such/file", "/another"] and entry["envp_texts"] == []
    (entry, _), = of(found, "connect")
    assert (entry["dport"], entry["v4addr"]) == (9, [10, 1, 2, 3])


def test_arguments_of_all_kinds(kymo, runs, with_content, tmp_path):
    program = compat_arguments.build(tmp_path)
    trace, done = with_content("-k", compat_arguments.EVENTS, "--syscall-content=all", "--follow", command=[program])
    compat_arguments.check(calls_of(kymo, trace, pid_of(done)))


def test_who_is_chosen(kymo, runs, record, program):
    """Others' 32-bit calls are as little recorded as their 64-bit ones; filters are evaluated."""
    trace, done = record("-k", "compat_syscall_entry_brk", "--follow",
                         command=["sh", "-c", f"{program}; {program}"])
    found = [json.loads(line)["fields"]["brk"]
             for line in kymo("convert", "--to", "json", "--event", "compat_*", trace).out.splitlines()]
    assert sorted(found) == [1, 1, 2, 2]
    other = subprocess.Popen(["cat"], stdin=subprocess.PIPE)
    try:
        # The one that is chosen does nothing of 32 bits; the command does.
        trace, done = record("-k", "compat_syscall_*,syscall:getppid", "--pid", other.pid, command=[program])
        assert "compat_" not in kymo("print", "--event", "compat_*", trace).out
    finally:
        other.communicate()
    trace, done = record("-k", "compat_syscall_entry_* if $ctx.procname == 'thirty-two' && brk == 2",
                         "--context", "procname", "--follow", command=[program])
    assert kymo("print", "--event", "compat_*", trace).out.count("\n") == 1


def test_among_calls_of_64_bits(kymo, runs, record, with_content, tmp_path):
    """Both are in order; nobody's call is taken for another's."""
    mixed = compile_c(tmp_path / "mixed", MIXED)
    trace, done = with_content("-k", "syscalls,compat_syscall_*", "--syscall-content=paths",
                               "--context", "procname", command=[mixed])
    found = calls_of(kymo, trace, pid_of(done))
    seeks = [(name.partition("syscall_entry_")[0], fields["offset"]) for name, fields in found
             if name.endswith("entry_lseek") and fields["fd"] in (998, 999)]
    assert seeks == [(kind, i) for i in range(2000) for kind in ("compat_", "")]
    (entry, _), = of(found, "open")
    assert entry["filename"] == "/of/32/bits"
    # x32: neither of 32 bits, nor the call whose number its lower bits are.
    assert not any(fields.get("fd") == 997 or "unknown" in name for name, fields in found)
    # A recording that does not name them contains none.
    trace, done = record("-k", "*syscall*,syscall:*", command=[mixed])
    assert not any(name.startswith("compat") for name, _ in calls_of(kymo, trace, pid_of(done)))


def test_what_socketcall_stands_for(kymo, runs, record, tmp_path):
    """The calls themselves, as if they had been made; those that are not recorded are socketcalls."""
    multiplexed = compile_c(tmp_path / "multiplexed", MULTIPLEXED)

    def calls(*options):
        trace, done = record(*options, command=[multiplexed])
        assert "; 0 lost." in done.err, done
        return calls_of(kymo, trace, pid_of(done)), pid_of(done)

    found, pid = calls("-k", "compat_syscall_*", "--syscall-content=all")
    names = ["socket", "bind", "getsockname", "socketpair", "sendto", "recvfrom", "connect", "sendto", "accept4",
             "shutdown", "socketcall", "socketcall", "socketcall", "connect"]
    for kind in ("entry", "exit"):
        assert [name for name, _ in found if kind in name] == [f"compat_syscall_{kind}_{name}" for name in names]
    (entry, _), = of(found, "socket")
    assert (entry["family"], entry["type"], entry["protocol"]) == (1, 2, 0)
    assert [entry["sun_path"] for entry, _ in of(found, "bind")] == [f"@kymo-test-{pid}"]
    assert [leave["sun_path"] for _, leave in of(found, "getsockname")] == [f"@kymo-test-{pid}"]
    sent, later = of(found, "sendto")
    assert (sent[0]["len"], bytes(sent[0]["buff_data"]), sent[0]["addr"], sent[0]["addr_len"]) == (5, b"hello", 0, 0)
    assert sent[1]["ret"] == 5
    assert (later[0]["fd"], bytes(later[0]["buff_data"]), later[0]["flags"], later[0]["dport"], later[0]["v4addr"]) == (
        -1, b"hel", 64, 9, [10, 1, 2, 3])
    (entry, leave), = of(found, "recvfrom")
    assert (entry["size"], leave["ret"], bytes(leave["ubuf_data"])) == (100, 5, b"hello")
    assert [(entry["fd"], entry["addrlen"], entry["dport"], entry["v4addr"], leave["ret"])
            for entry, leave in of(found, "connect")] == [(-1, 16, 9, [10, 1, 2, 3], -9), (-1, 8, 9, [10, 1, 2, 3], -9)]
    assert [entry["flags"] for entry, _ in of(found, "accept4")] == [0]
    assert [entry["how"] for entry, _ in of(found, "shutdown")] == [2]
    assert [(entry["call"], entry["args"], leave["ret"]) for entry, leave in of(found, "socketcall")] == [
        (3, 16, -14), (99, 16, -22), (0, 16, -22)]
    # LTTng's way, when only that is asked for; and what was asked for of either.
    found, _ = calls("-k", "compat_syscall_*_socketcall")
    assert [entry["call"] for entry, _ in of(found, "socketcall")] == [1, 2, 6, 8, 9, 10, 3, 11, 5, 13, 3, 99, 0, 3]
    found, _ = calls("-k", "compat_syscall_*_connect")
    assert [(entry["fd"], entry["addrlen"], leave["ret"]) for entry, leave in of(found, "connect")] == [
        (-1, 16, -9), (-1, 8, -9)]
    assert len(found) == 4


def test_bad_options(kymo, needs_root_tracefs, tmp_path):
    kymo_record = ("record", "-k", "compat_syscall_*", "-o", tmp_path / "none")
    assert "32-bit" in kymo(*kymo_record, "--raw", code=2).err
    assert "monotonic" in kymo(*kymo_record, "--clock=tsc", code=2).err
    assert "procname" in kymo(*kymo_record, "--comm", "x", "--", "true", code=1).err
    assert "no event" in kymo("record", "-k", "compat_syscall_entry_nothing", "--", "true", code=1).err
    listed = kymo("list", "compat_syscall_entry_stat64", "--fields").out
    assert "filename" in listed and "statbuf" in listed
