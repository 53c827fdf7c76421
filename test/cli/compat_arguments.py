# SPDX-License-Identifier: MIT
"""A 32-bit program that makes calls with arguments of all kinds, and what each is recorded with: those whose meaning
depends on another argument (fcntl, prctl, semctl ...), 64-bit numbers in two registers, numbers that are
negative, and all six registers. All fail, since nothing is what they name."""

import os
import subprocess

M = 1 << 32
PATH = "/no/such/file"

# (name, number, arguments, fields): None: not looked at. "path": the address of PATH.
CALLS = [
    ("fcntl", 55, (999, 1030, -2), {"fd": 999, "cmd": 1030, "arg": M - 2}),
    ("fcntl64", 221, (999, 14, 0x12345), {"fd": 999, "cmd": 14, "arg": 0x12345}),
    ("ioctl", 54, (999, 0x80045430, 0xdeadbeef), {"fd": 999, "cmd": 0x80045430, "arg": 0xdeadbeef}),
    ("epoll_ctl", 255, (999, 1, -7, 48), {"epfd": 999, "op": 1, "fd": -7, "event": 48}),
    ("prctl", 172, (0x7ffffff0, -3, 2, 3, 0x80000004),
     {"option": 0x7ffffff0, "arg2": M - 3, "arg3": 2, "arg4": 3, "arg5": 0x80000004}),
    ("arch_prctl", 384, (0x7777, -1), {"option": 0x7777, "arg2": M - 1}),
    ("semctl", 394, (-1, -2, 12, 80), {"semid": -1, "semnum": -2, "cmd": 12, "arg": 80}),
    ("shmctl", 396, (-3, 99, 96), {"shmid": -3, "cmd": 99, "buf": 96}),
    ("msgctl", 402, (-4, 99, 112), {"msqid": -4, "cmd": 99, "buf": 112}),
    ("ipc", 117, (0x7fff, -5, -10, 7, 128, 9),
     {"call": 0x7fff, "first": -5, "second": M - 10, "third": 7, "ptr": 128, "fifth": 9}),
    ("socketcall", 102, (99, 64), {"call": 99, "args": 64}),
    ("keyctl", 288, (0x7fffffff, -6, 2, 3, 4),
     {"option": 0x7fffffff, "arg2": M - 6, "arg3": 2, "arg4": 3, "arg5": 4}),
    ("seccomp", 354, (99, 5, 0), {"op": 99, "flags": 5, "uargs": 0}),
    ("bpf", 357, (9999, 16, 8), {"cmd": 9999, "uattr": 16, "size": 8}),
    ("ptrace", 26, (9999, -1, -8, -9), {"request": 9999, "pid": -1, "addr": M - 8, "data": M - 9}),
    ("getpriority", 96, (99, -5), {"which": 99, "who": -5}),
    ("setpriority", 97, (99, -5, -6), {"which": 99, "who": -5, "niceval": -6}),
    ("tgkill", 270, (-1, -2, -3), {"tgid": -1, "pid": -2, "sig": -3}),
    ("setsockopt", 366, (999, 1, -2, "path", 4),
     {"fd": 999, "level": 1, "optname": -2, "optlen": 4, "optval_data": list(PATH[:4].encode())}),
    ("mmap_pgoff", 192, (0x12345000, 0, 3, 34, -1, 0xfffff),
     {"addr": 0x12345000, "len": 0, "prot": 3, "flags": 34, "fd": -1, "pgoff": 0xfffff}),
    ("splice", 313, (999, 0, 998, 0, -11, 4),
     {"fd_in": 999, "off_in": 0, "fd_out": 998, "off_out": 0, "len": M - 11, "flags": 4}),
    ("futex_time32", 240, (0x103, 0x7f, 1, 32, 48, -6),
     {"uaddr": 0x103, "op": 0x7f, "val": 1, "utime": 32, "uaddr2": 48, "val3": M - 6}),
    ("truncate", 92, ("path", -5), {"path": PATH, "length": -5}),
    ("ftruncate", 93, (999, -6), {"fd": 999, "length": -6}),
    ("truncate64", 193, ("path", -1, 2), {"path": PATH, "offset_low": M - 1, "offset_high": 2}),
    ("ftruncate64", 194, (999, 3, 4), {"fd": 999, "offset_low": 3, "offset_high": 4}),
    ("pread64", 180, (999, 16, 5, -1, 7), {"fd": 999, "buf": 16, "count": 5, "pos_low": M - 1, "pos_high": 7}),
    ("pwrite64", 181, (999, "path", 5, -1, 7),
     {"fd": 999, "count": 5, "pos_low": M - 1, "pos_high": 7, "buf_data": list(PATH[:5].encode())}),
    ("preadv2", 378, (999, 16, 1, -15, 2, 3), {"fd": 999, "vec": 16, "vlen": 1, "pos_l": M - 15, "pos_h": 2, "flags": 3}),
    ("readahead", 225, (999, 1, 2, 3), {"fd": 999, "offset_low": 1, "offset_high": 2, "count": 3}),
    ("fadvise64", 250, (999, -1, 2, 3, 4), {"fd": 999, "offset_low": M - 1, "offset_high": 2, "len": 3, "advice": 4}),
    ("fadvise64_64", 272, (999, -16, 1, 2, 3, 4),
     {"fd": 999, "offset_low": M - 16, "offset_high": 1, "len_low": 2, "len_high": 3, "advice": 4}),
    ("sync_file_range", 314, (999, 1, 2, 3, 4, 5),
     {"fd": 999, "offset_low": 1, "offset_high": 2, "nbytes_low": 3, "nbytes_high": 4, "flags": 5}),
    ("fallocate", 324, (999, 0, 1, 2, 3, 4),
     {"fd": 999, "mode": 0, "offset_low": 1, "offset_high": 2, "len_low": 3, "len_high": 4}),
    ("fanotify_mark", 339, (999, 1, 0x89abcdef, 0x01234567, -100, 16),
     {"fanotify_fd": 999, "flags": 1, "mask_low": 0x89abcdef, "mask_high": 0x01234567, "dfd": -100, "pathname": 16}),
]

EVENTS = ",".join(f"compat_syscall_*_{name}" for name, _, _, _ in CALLS)

PROGRAM = r"""
static long call(long nr, long a, long b, long c, long d, long e, long f)
{
	long arguments[] = {nr, a, b, c, d, e, f}, ret;

	/* The sixth is in the register that frames are found by. */
	__asm__ volatile("push %%ebp\n\tpush %%ebx\n\tmov 4(%1), %%ebx\n\tmov 8(%1), %%ecx\n\tmov 12(%1), %%edx\n\t"
			 "mov 16(%1), %%esi\n\tmov 20(%1), %%edi\n\tmov 24(%1), %%ebp\n\tmov (%1), %%eax\n\t"
			 "int $0x80\n\tpop %%ebx\n\tpop %%ebp"
			 : "=a"(ret) : "0"(arguments) : "memory", "ecx", "edx", "esi", "edi");
	return ret;
}

static char path[] = "@PATH@";

void begin(void);
void begin(void)
{
	char digits[16], *at = digits + 15;
	long pid = call(20, 0, 0, 0, 0, 0, 0);

	*at = '\n';
	do
		*--at = (char)('0' + pid % 10);
	while (pid /= 10);
	call(4, 1, (long)at, digits + 16 - at, 0, 0, 0);
	path[0] = '/'; /* its page is in memory */
@CALLS@
	call(252, 0, 0, 0, 0, 0, 0);
}

__asm__(".globl _start\n_start:\n\tandl $-16, %esp\n\tcall begin\n");
"""


def build(directory):
    """The program, as "arguments"."""
    path = os.path.join(directory, "arguments")
    calls = []
    for _, number, arguments, _ in CALLS:
        words = ["(long)path" if word == "path" else f"(int){word % M:#x}u" for word in arguments]
        calls.append(f"\tcall({', '.join([str(number), *words, *['0'] * (6 - len(words))])});")
    source = PROGRAM.replace("@CALLS@", "\n".join(calls)).replace("@PATH@", PATH)
    subprocess.run(["gcc", "-x", "c", "-O1", "-m32", "-static", "-nostdlib", "-ffreestanding", "-no-pie", "-fno-pic",
                    "-fno-stack-protector", "-o", path, "-"], input=source, text=True, check=True)
    return path


def number_of(value):
    """A number, of which a text may be shown, or which may be shown in another base."""
    if isinstance(value, dict):
        value = value["value"]
    return int(value, 0) if isinstance(value, str) and value.startswith("0x") else value


def check(found):
    """found: [(event, fields)] of the program's calls, in order."""
    entries = [(name.removeprefix("compat_syscall_entry_"), fields) for name, fields in found if "_entry_" in name]
    exits = [(name.removeprefix("compat_syscall_exit_"), fields) for name, fields in found if "_exit_" in name]
    names = [name for name, _, _, _ in CALLS]
    assert [name for name, _ in entries] == names and [name for name, _ in exits] == names
    for (name, _, _, expected), (_, fields), (_, leave) in zip(CALLS, entries, exits):
        got = {key: number_of(fields.get(key)) for key in expected}
        assert got == expected, (name, fields)
        assert leave["ret"] < 0, (name, leave)
