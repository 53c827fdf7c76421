# SPDX-License-Identifier: MIT
"""kymo record --syscall-content: each call of a program whose every call is known, with what it points at."""

import json
import os
import re
import subprocess

import pytest

# Every call says in its first argument, or by its name, which one it is. What is expected of it stands in
# the tests. fd 999 is open nowhere.
PROGRAM = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/vm_sockets.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define OPEN(mark, path) syscall(SYS_openat, mark, path, 0x1234000, 0)

static char big[6000];

static void paths(const char *dir)
{
	char *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *hole = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char file[4200], *cold;
	int fd;

	OPEN(-1001, "/relative/ünï");
	memset(pages, 'c', 8192);
	pages[4096 + 9] = 0;
	OPEN(-1002, pages + 4096 - 10); /* across two pages */
	memset(hole, 'h', 8192);
	hole[4095] = 0;
	munmap(hole + 4096, 4096);
	OPEN(-1003, hole + 4095 - 7); /* up to the last byte there is */
	OPEN(-1004, (char *)16);
	hole[4095] = 'h';
	OPEN(-1005, hole + 4000); /* into nothing */
	memset(pages, 'p', 4096);
	munmap(pages + 4096, 4096);
	OPEN(-1014, pages); /* longer than may be, and nothing behind that */
	OPEN(-1015, pages + 1);
	OPEN(-1006, NULL);
	memset(big, 'b', sizeof(big));
	big[4095] = 0;
	OPEN(-1007, big); /* as long as may be */
	big[4095] = 'b';
	big[5000] = 0;
	OPEN(-1008, big); /* longer */
	OPEN(-1009, "");
	/* A page of a file that nobody has touched: the call itself brings it in. */
	snprintf(file, sizeof(file), "%s/cold", dir);
	fd = open(file, O_RDWR | O_CREAT, 0600);
	memset(file, 'k', sizeof(file));
	file[20] = 0;
	if (write(fd, file, 21) != 21)
		_exit(1);
	cold = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	OPEN(-1010, cold);
	syscall(SYS_renameat2, -1011, "from", -1012, "to", 0x80);
	syscall(SYS_readlink, "/proc/self/cwd", big, 5000);
	syscall(SYS_getcwd, big, 5000);
	syscall(SYS_execve, "/no/such/program", NULL, NULL);
	syscall(SYS_openat2, -1013, "two", NULL, 0);
	syscall(SYS_mount, "device", "directory", NULL, 0, NULL);
}

static void sockets(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(9)}, got;
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(0x1234)};
	struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "/no/socket"};
	struct sockaddr_nl nl = {.nl_family = AF_NETLINK, .nl_pid = 77, .nl_groups = 5};
	struct sockaddr_ll ll = {AF_PACKET, htons(0x800), 2, 1, 4, 6, {0, 1, 2, 0xfd, 0xfe, 0xff}};
	struct sockaddr_vm vm = {.svm_family = AF_VSOCK, .svm_cid = 2, .svm_port = 123456};
	struct iovec iov[3] = {{"abc", 3}, {"", 0}, {"defgh", 5}}, in_iov[2] = {{big, 2}, {big + 100, 50}};
	struct msghdr msg = {.msg_name = &in, .msg_namelen = sizeof(in), .msg_iov = iov, .msg_iovlen = 3};
	socklen_t len = sizeof(got);
	int udp = socket(AF_INET, SOCK_DGRAM, 0);

	in.sin_addr.s_addr = htonl(0x0a010203);
	in6.sin6_addr.s6_addr[15] = 1;
	syscall(SYS_connect, 999, &in, sizeof(in));
	syscall(SYS_connect, 999, &in6, sizeof(in6));
	syscall(SYS_connect, 999, &un, sizeof(un));
	memcpy(un.sun_path, "\0hidden", 7);
	syscall(SYS_connect, 999, &un, 2 + 7);
	memcpy(un.sun_path, "\0two\0parts", 10);
	syscall(SYS_connect, 999, &un, 2 + 10);
	in6.sin6_scope_id = 3;
	in6.sin6_flowinfo = htonl(0x12345);
	syscall(SYS_connect, 999, &in6, sizeof(in6));
	syscall(SYS_connect, 999, &nl, sizeof(nl));
	syscall(SYS_connect, 999, &ll, sizeof(ll));
	syscall(SYS_connect, 999, &vm, sizeof(vm));
	syscall(SYS_connect, 999, "\377\0\1\2\375", 5);
	syscall(SYS_connect, 999, (void *)32, 16);
	syscall(SYS_connect, 999, &in, 1);
	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	in.sin_port = 0;
	bind(udp, (void *)&in, sizeof(in));
	getsockname(udp, (void *)&in, &len);
	syscall(SYS_sendto, udp, "ping\0pong", 9, 0, &in, sizeof(in));
	len = sizeof(got);
	syscall(SYS_recvfrom, udp, big, 100, 0, &got, &len);
	syscall(SYS_sendmsg, udp, &msg, 0);
	msg.msg_iov = in_iov;
	msg.msg_iovlen = 2;
	syscall(SYS_recvmsg, udp, &msg, 0);
	printf("%d\n", ntohs(in.sin_port));
}

static void data(const char *dir)
{
	struct iovec iov[20], many[1100];
	char file[4200], apart[20] = "ab";
	int fd;

	snprintf(file, sizeof(file), "%s/data", dir);
	fd = open(file, O_RDWR | O_CREAT, 0600);
	for (int i = 0; i < 5000; i++)
		big[i] = (char)(i * 7);
	iov[0] = (struct iovec){"remote", 6};
	many[0] = (struct iovec){apart, 2};
	many[1] = (struct iovec){apart + 9, 9};
	syscall(SYS_process_vm_readv, getpid(), many, 2, iov, 1, 0);
	syscall(SYS_process_vm_writev, getpid(), many, 2, iov, 0, 0);
	syscall(SYS_sethostname, "no host", -1);
	syscall(SYS_pwrite64, fd, big, 5000, 0);
	syscall(SYS_pwrite64, fd, big, 3, 1);
	syscall(SYS_pwrite64, fd, (void *)64, 3, 2);
	syscall(SYS_pwrite64, fd, big, 0, 3);
	syscall(SYS_pread64, fd, big, 10, 4999);
	syscall(SYS_pread64, fd, big, 10, 9999);
	syscall(SYS_pread64, 999, big, 10, 5);
	for (int i = 0; i < 20; i++)
		iov[i] = (struct iovec){big + i, 10};
	syscall(SYS_pwritev, fd, iov, 20, 0, 0);
	iov[1].iov_base = (void *)8;
	syscall(SYS_pwritev, fd, iov, 3, 1, 0);
	for (int i = 0; i < 1100; i++)
		many[i] = (struct iovec){big, 2};
	syscall(SYS_pwritev, fd, many, 1024, 2, 0);
	syscall(SYS_preadv, fd, iov, 1, 0, 0);
}

/* As a 32-bit program calls: 4 is write there, stat for others; 5 is open, and fstat. */
static void compat(void)
{
	char *low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	long ret;

	strcpy(low, "/of/32/bits");
	syscall(SYS_getppid);
	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(5), "b"(low), "c"(0), "d"(0) : "memory", "r8", "r9", "r10", "r11");
	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(4), "b"(999), "c"(low), "d"(3) : "memory", "r8", "r9", "r10", "r11");
	syscall(SYS_getppid);
}

static sigjmp_buf no_compat;

/* A kernel without 32-bit calls sends SIGSEGV. */
static void skip_compat(int number)
{
	siglongjmp(no_compat, number);
}

int main(int argc, char **argv)
{
	printf("%d\n", (int)getpid());
	sigaction(SIGSEGV, &(struct sigaction){.sa_handler = skip_compat, .sa_flags = SA_NODEFER}, NULL);
	if (!sigsetjmp(no_compat, 0))
		compat();
	else
		syscall(SYS_getppid);
	paths(argv[1]);
	sockets();
	data(argv[1]);
	return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program, compiled."""
    folder = tmp_path_factory.mktemp("content")
    (folder / "calls.c").write_text(PROGRAM)
    subprocess.run(["cc", "-O1", "-w", "-o", folder / "calls", folder / "calls.c"], check=True)
    return folder / "calls"


class Calls:
    """The calls of one program: .of("openat") -> [(entry's fields, exit's fields)]."""

    def __init__(self, kymo, trace, pid):
        out = kymo("convert", "--to", "json", "--filter", f"$ctx.tid == {pid}", trace).out
        self.events = [json.loads(line) for line in out.splitlines()]

    def of(self, name):
        found = []
        for event in self.events:
            if event["event"] == f"syscall_entry_{name}":
                found.append((event["fields"], None))
            elif event["event"] == f"syscall_exit_{name}" and found:
                found[-1] = (found[-1][0], event["fields"])
        return found


@pytest.fixture
def calls(kymo, with_content, program, tmp_path):
    """calls("all") -> (Calls, what the program printed, the trace)."""

    def call(what):
        trace, done = with_content("--kernel", "syscalls", f"--syscall-content={what}", "--buffer-size", "64M",
                                   command=[program, tmp_path])
        printed = [int(line) for line in done.out.split()]
        return Calls(kymo, trace, printed[0]), printed, trace

    return call


def status(fields):
    """The label of content_status."""
    value = fields["content_status"]
    return value["labels"][0] if isinstance(value, dict) else value


def test_paths(calls):
    recorded, _, _ = calls("paths")
    by_mark = {entry["dfd"]: (entry, leave) for entry, leave in recorded.of("openat")}
    expected = {
        -1001: ("/relative/ünï", "read"), -1002: ("c" * 19, "read"), -1003: ("h" * 7, "read"),
        -1004: ("0x10", "unreadable"), -1005: (None, "unreadable"), -1006: ("0x0", "read"),
        -1007: ("b" * 4095, "read"), -1008: ("b" * 4103, "truncated"), -1009: ("", "read"),
        -1010: ("k" * 20, "read_late"), -1014: ("p" * 4095, "truncated"), -1015: (None, "unreadable"),
    }
    for mark, (text, state) in expected.items():
        entry, leave = by_mark[mark]
        assert sum(e["dfd"] == mark for e, _ in recorded.of("openat")) == 1, mark
        assert text is None or entry["filename"] == text, (mark, entry)
        assert status(entry) == state, (mark, entry)
        assert entry["flags"] == 0x1234000 and leave["ret"] < 0
        assert leave["late_filename"] == (text if state == "read_late" else "")
    assert re.fullmatch("0x[0-9a-f]+", by_mark[-1005][0]["filename"])
    assert (by_mark[-1014][1]["ret"], by_mark[-1015][1]["ret"]) == (-36, -14)  # ENAMETOOLONG, EFAULT
    (entry, _), = recorded.of("renameat2")
    assert (entry["oldname"], entry["newname"], entry["newdfd"]) == ("from", "to", -1012)
    (entry, leave), = recorded.of("readlink")
    assert entry["path"] == "/proc/self/cwd" and len(leave["buf"]) == leave["ret"]
    (_, leave), = recorded.of("getcwd")
    assert leave["buf"].startswith("/") and len(leave["buf"].encode()) == leave["ret"] - 1
    assert recorded.of("execve")[-1][0]["filename"] == "/no/such/program"
    assert recorded.of("openat2")[0][0]["filename"] == "two"
    (entry, _), = recorded.of("mount")
    assert (entry["dev_name"], entry["dir_name"], entry["type"]) == ("device", "directory", "0x0")


def test_sockets(calls):
    recorded, printed, _ = calls("all")
    connects = [entry for entry, _ in recorded.of("connect")]
    assert [(e["family"]["value"] if isinstance(e["family"], dict) else e["family"],
             e["dport"], e["v4addr"], e["v6addr"], e["sun_path"], e["address"], status(e)) for e in connects] == [
        (2, 9, [10, 1, 2, 3], [], "", "", "read"),
        (10, 0x1234, [], [0] * 15 + [1], "", "", "read"),
        (1, 0, [], [], "/no/socket", "", "read"),
        (1, 0, [], [], "@hidden", "", "read"),
        (1, 0, [], [], "@two@parts", "", "read"),
        (10, 0x1234, [], [0] * 15 + [1], "", "scope_id=3 flowinfo=0x12345", "read"),
        (16, 0, [], [], "", "pid=77 groups=0x5", "read"),
        (17, 0, [], [], "", "protocol=0x800 ifindex=2 hatype=1 pkttype=4 addr=00:01:02:fd:fe:ff", "read"),
        (40, 0, [], [], "", "cid=2 port=123456", "read"),
        (255, 0, [], [], "", "data=0102fd", "read"),
        (0, 0, [], [], "", "", "unreadable"),
        (0, 0, [], [], "", "", "read"),
    ]
    port = printed[1]
    (entry, _), = recorded.of("sendto")
    assert (entry["dport"], bytes(entry["buff_data"])) == (port, b"ping\0pong")
    (_, leave), = recorded.of("recvfrom")
    assert (leave["sport"], leave["v4addr"]) == (port, [127, 0, 0, 1])
    assert bytes(leave["ubuf_data"]) == b"ping\0pong" and leave["ret"] == 9
    (entry, _), = recorded.of("sendmsg")
    assert (entry["dport"], entry["msg_bytes"], bytes(entry["msg_data"])) == (port, 8, b"abcdefgh")
    (_, leave), = recorded.of("recvmsg")
    assert (leave["sport"], leave["msg_bytes"], bytes(leave["msg_data"])) == (port, 52, b"abcdefgh")
    (_, leave), = recorded.of("getsockname")
    assert leave["sport"] == port


SHORT = r"""
#define _GNU_SOURCE
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

/* In memory that 32-bit calls reach, too. */
static struct {
	char address[128], data[16];
	socklen_t len;
	int args[6];
} *low;
static struct sockaddr_un un = {.sun_family = AF_UNIX, .sun_path = "\0kymo-short"};

static void exit_well(int number)
{
	_exit(0);
}

/* Room for @bytes bytes, with others behind them. */
static void *room(socklen_t bytes)
{
	memset(low->address, 'X', sizeof(low->address));
	low->len = bytes;
	return low->address;
}

int main(void)
{
	struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t in_len = sizeof(in), un_len = 2 + 11 + 6;
	int listening = socket(AF_UNIX, SOCK_STREAM, 0), connected = socket(AF_UNIX, SOCK_STREAM, 0);
	int udp = socket(AF_INET, SOCK_DGRAM, 0), fd;
	struct iovec vector;
	struct msghdr msg = {.msg_iov = &vector, .msg_iovlen = 1, .msg_namelen = 5};
	long ret;

	low = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
	sprintf(un.sun_path + 11, "%06d", getpid() % 1000000);
	printf("%d\n", (int)getpid());
	fflush(stdout);
	bind(listening, (void *)&un, un_len);
	listen(listening, 5);
	for (int i = 0; i <= 21; i += 7)
		syscall(SYS_getsockname, listening, room(i), &low->len);
	un.sun_path[1] = 'c';
	bind(connected, (void *)&un, un_len);
	un.sun_path[1] = 'k';
	connect(connected, (void *)&un, un_len);
	syscall(SYS_getpeername, connected, room(6), &low->len);
	syscall(SYS_accept, listening, room(4), &low->len);
	bind(udp, (void *)&in, sizeof(in));
	getsockname(udp, (void *)&in, &in_len);
	for (int i = 0; i < 2; i++)
		sendto(udp, "ping", 4, 0, (void *)&in, sizeof(in));
	syscall(SYS_recvfrom, udp, low->data, 16, 0, room(5), &low->len);
	syscall(SYS_recvfrom, udp, low->data, 16, MSG_PEEK, NULL, NULL);
	vector.iov_base = low->data;
	vector.iov_len = 16;
	msg.msg_name = room(0);
	syscall(SYS_recvmsg, udp, &msg, 0);
	/* Here it is not the length of what was written that is returned. */
	sendto(udp, "a longer one", 12, 0, (void *)&in, sizeof(in));
	memset(low->data, 'X', sizeof(low->data));
	syscall(SYS_recvfrom, udp, low->data, 3, MSG_TRUNC, NULL, NULL);
	syscall(SYS_flistxattr, listening, low->data, 0);
	/* Of 32 bits: getsockname itself, and socketcall. A kernel without 32-bit calls sends SIGSEGV. */
	signal(SIGSEGV, exit_well);
	room(9);
	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(367), "b"(listening), "c"((long)low->address), "d"((long)&low->len)
			 : "memory", "r8", "r9", "r10", "r11");
	room(8);
	low->args[0] = listening;
	low->args[1] = (int)(long)low->address;
	low->args[2] = (int)(long)&low->len;
	__asm__ volatile("int $0x80" : "=a"(ret) : "a"(102), "b"(6), "c"((long)low->args) : "memory", "r8", "r9", "r10", "r11");
	return 0;
}
"""


def test_addresses_without_room(kymo, record, tmp_path):
    """Of an address that does not fit, the kernel tells the length; what lies behind the room for it is not from it."""
    (tmp_path / "short.c").write_text(SHORT)
    subprocess.run(["cc", "-O1", "-w", "-o", tmp_path / "short", tmp_path / "short.c"], check=True)
    trace, done = record("--syscall-content=all", "--follow", "-b", "16M", "-k",
                         "syscall:flistxattr,syscall:*sockname,syscall:getpeername,syscall:accept,syscall:recv*,compat_syscall_*_getsockname",
                         command=[tmp_path / "short"])
    assert "; 0 lost." in done.err and "content" not in done.err, done
    recorded = Calls(kymo, trace, int(done.out.split()[0]))
    name = f"@kymo-short{int(done.out.split()[0]) % 1000000:06d}"

    def told(call):
        return [(leave["sun_path"], status(leave)) for _, leave in recorded.of(call)]

    names = told("getsockname")
    assert names[:4] == [("", "truncated"), (name[:5], "truncated"), (name[:12], "truncated"), (name, "read")]
    leave = recorded.of("getsockname")[4][1]
    assert leave["v4addr"] == [127, 0, 0, 1] and status(leave) == "read"
    assert told("getpeername") == [(name[:4], "truncated")]
    assert told("accept") == [("@c", "truncated")]
    received = [(leave["ret"], bytes(leave["ubuf_data"]), status(leave)) for _, leave in recorded.of("recvfrom")]
    assert received == [(4, b"ping", "truncated"), (4, b"ping", "read"), (12, b"a l", "read")]
    (_, leave), = recorded.of("flistxattr")
    assert leave["list_data"] == [] and status(leave) == "read"
    for call in ("recvfrom", "recvmsg"):
        _, leave = recorded.of(call)[0]
        assert (leave["sport"], leave["v4addr"], status(leave)) == (0, [], "truncated"), call
        family = leave["family"]
        assert (family["value"] if isinstance(family, dict) else family) == 2
    compat = [event["fields"] for event in recorded.events if event["event"] == "compat_syscall_exit_getsockname"]
    assert not compat or [(leave["sun_path"], status(leave)) for leave in compat] == \
        [(name[:7], "truncated"), (name[:6], "truncated")]
    recorded.events = [event for event in recorded.events if event["event"].startswith("compat")]
    assert len(recorded.events) in (0, 4)


def test_buffers_for_people(record, kymo):
    """Text where it is text, else hexadecimal with ASCII; the trace has bytes."""
    script = ("import os\nfd = os.open('/dev/null', os.O_WRONLY)\n"
              "for data in (b'GET / \"x\"\\r\\n', b'\\x7fELF\\x02', 'caf\u00e9'.encode(), 'caf\u00e9'.encode()[:-1], b'', b'end\\0',"
              " b'\\0\\0', b'\\x1b[2J'): os.pwrite(fd, data, 4711)")
    trace, _ = record("-k", "syscall_entry_pwrite64", "--syscall-content=all",
                      command=["/usr/bin/python3", "-c", script])
    wanted = ['"GET / \\"x\\"\\r\\n"', "7f 45 4c 46 02 |.ELF.|", '"caf\u00e9"', '"caf\\xc3"', '""', '"end\\0"', "00 00 |..|",
              "1b 5b 32 4a |.[2J|"]
    chosen = ("--filter", "$event == 'syscall_entry_pwrite64' && pos == 4711")
    assert re.findall(r"buf_data = (.*?), content_status", kymo("print", *chosen, trace).out) == wanted
    details = re.findall(r"buf_data: (\d+) bytes: (.*)", kymo("convert", "--to", "details", *chosen, trace).out)
    assert [int(n) for n, _ in details] == [11, 5, 5, 4, 0, 4, 2, 4]
    assert [text for _, text in details][1] == wanted[1]
    events = [json.loads(line) for line in kymo("convert", "--to", "json", *chosen, trace).out.splitlines()]
    assert events[1]["fields"]["buf_data"] == list(b"\x7fELF\x02")


def test_buffers(calls):
    recorded, _, _ = calls("all:100")
    big = bytes(i * 7 & 255 for i in range(5000))
    writes = {entry["pos"]: entry for entry, _ in recorded.of("pwrite64")}
    assert bytes(writes[0]["buf_data"]) == big[:100] and status(writes[0]) == "truncated"
    assert bytes(writes[1]["buf_data"]) == big[:3] and status(writes[1]) == "read"
    assert writes[2]["buf_data"] == [] and status(writes[2]) == "unreadable"
    assert writes[3]["buf_data"] == [] and status(writes[3]) == "read"
    reads = {entry["pos"]: leave for entry, leave in recorded.of("pread64")}
    assert (reads[4999]["ret"], bytes(reads[4999]["buf_data"])) == (1, big[4999:])
    assert (reads[9999]["ret"], reads[9999]["buf_data"]) == (0, [])
    assert (reads[5]["ret"], reads[5]["buf_data"], status(reads[5])) == (-9, [], "read")
    vectors = {entry["pos_l"]: entry for entry, _ in recorded.of("pwritev")}
    data = big[:1] + b"\0" * 0  # the first byte was read over by pread64
    expected = b"".join((big[4999:] + big[1:])[i:i + 10] for i in range(8))
    assert vectors[0]["vec_bytes"] == 200 and len(data) == 1
    assert bytes(vectors[0]["vec_data"]) == expected and status(vectors[0]) == "truncated"
    assert status(vectors[1]) == "unreadable"
    assert vectors[2]["vec_bytes"] == 2048
    (entry, leave), = recorded.of("preadv")
    assert leave["ret"] == len(leave["vec_data"]) == 10
    (_, leave), = recorded.of("process_vm_readv")
    assert (leave["ret"], leave["lvec_bytes"], bytes(leave["lvec_data"])) == (6, 11, b"remote")
    (entry, leave), = recorded.of("process_vm_writev")
    assert (entry["lvec_bytes"], bytes(entry["lvec_data"][:2]), leave["ret"]) == (11, b"re", 0)
    (entry, leave), = recorded.of("sethostname")
    assert bytes(entry["name_data"][:8]) == b"no host\0" and leave["ret"] == -22


def test_every_call_once(kymo, calls, peer):
    """Other readers find the same; names of files come where lttng-analyses looks for them."""
    recorded, printed, trace = calls("paths")
    done = peer("babeltrace2", trace / "kernel")
    assert done.code == 0, done
    for mark in range(-1010, -1000):
        assert len(re.findall(rf"syscall_entry_openat: .*dfd = {mark},", done.out)) == 1
    entries = sum(e["event"].startswith("syscall_entry_") for e in recorded.events)
    exits = sum(e["event"].startswith("syscall_exit_") for e in recorded.events)
    assert entries in (exits, exits + 1)  # exit_group() does not return
    assert printed
    # Nothing of the calls with other numbers between these two.
    first, second = [i for i, e in enumerate(recorded.events) if e["event"] == "syscall_entry_getppid"]
    assert second == first + 2


def test_selected_process(kymo, with_content, program, tmp_path):
    """Others' calls leave content, too, which nobody's event claims."""
    trace, _ = with_content("--kernel", "syscall_entry_openat if dfd < -1000", "--syscall-content=paths", "--follow",
                            command=[program, tmp_path])
    found = [json.loads(line)["fields"]["filename"]
             for line in kymo("convert", "--to", "json", "--event", "syscall_*", trace).out.splitlines()]
    assert len(found) == 12 and found[0] == "/relative/ünï"


# Begins programs, most of which there are not, with arguments of all kinds.
EXECS = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(void)
{
	char *many[301], *one = strdup("one"), *big = malloc(9000), *none[] = {NULL};
	char *variables[] = {strdup("X=1"), strdup("Y=two"), NULL};

	for (int i = 0; i < 300; i++)
		if (asprintf(&many[i], "a%d", i) < 0)
			return 1;
	many[300] = NULL;
	memset(big, 'b', 8999);
	big[8999] = 0;
	printf("%d\n", (int)getpid());
	fflush(stdout);
	execve("/no/1", many, variables);
	execve("/no/2", (char *[]){one, big, one, NULL}, none);
	execve("/no/3", (char **)8, (char **)16);
	execve("/no/4", (char *[]){one, (char *)24, one, NULL}, NULL);
	execve("/no/5", none, none);
	many[128] = NULL;
	execveat(AT_FDCWD, "/no/6", many, variables, 0);
	execve("/bin/true", (char *[]){strdup("true"), strdup("with space"), strdup(""), NULL}, variables);
	return 1;
}
"""


@pytest.mark.parametrize("what", ["paths", "all"])
def test_arguments_of_programs(kymo, peer, with_content, tmp_path, what):
    subprocess.run(["cc", "-x", "c", "-O1", "-w", "-o", tmp_path / "execs", "-"], input=EXECS, text=True, check=True)
    trace, done = with_content("-k", "syscall:execve*", f"--syscall-content={what}", command=[tmp_path / "execs"])
    recorded = Calls(kymo, trace, int(done.out.split()[0]))
    calls = [(entry, leave) for name in ("execve", "execveat") for entry, leave in recorded.of(name)]
    by_name = {entry["filename"]: (entry["argv_texts"], status(entry), leave["late_argv_texts"])
               for entry, leave in calls}
    many = [f"a{i}" for i in range(128)]
    assert by_name["/no/1"] == (many, "truncated", [])
    texts, state, _ = by_name["/no/2"]
    assert texts[0] == "one" and re.fullmatch("b{4000,4096}", texts[1]) and len(texts) == 2 and state == "truncated"
    assert by_name["/no/3"] == ([], "unreadable", [])
    assert by_name["/no/4"] == (["one", "0x18", "one"], "unreadable", ["one", "0x18", "one"])
    assert by_name["/no/5"] == ([], "read", [])
    assert by_name["/no/6"] == (many, "read", [])
    assert by_name["/bin/true"] == (["true", "with space", ""], "read", [])
    # The environment may hold secrets, so only an explicit option records it.
    if what == "all":
        variables = {entry["filename"]: entry["envp_texts"] for entry, _ in calls}
        assert variables["/no/1"] == variables["/bin/true"] == ["X=1", "Y=two"] and variables["/no/2"] == []
    else:
        assert not any("envp_texts" in entry for entry, _ in calls)
    theirs = peer("babeltrace2", trace)
    # An empty text of a list is, in babeltrace2 2.0, what stood at its place in the event before.
    assert theirs.code == 0 and '[0] = "true", [1] = "with space", [2] = "' in theirs.out
    assert theirs.out.count("\n") == kymo("print", trace).out.count("\n")


def test_iousagetop(kymo, record, peer, tmp_path):
    file = tmp_path / "a-file-with-a-name"
    # On the first CPU: some kernels do not tell when others leave their idle thread, and the peer goes by that.
    # Of nobody else, whose events it would need long for.
    trace, _ = record("--kernel", "default", "--syscall-content=paths", "--follow",
                      command=["taskset", "-c", str(min(os.sched_getaffinity(0))),
                               "dd", "if=/dev/zero", f"of={file}", "bs=64k", "count=50"])
    done = peer("lttng-iousagetop", "--no-progress", "--limit", "100", trace / "kernel", timeout=110)
    assert done.code == 0 and str(file) in done.out, done


def test_bad_options(kymo):
    for text in ("files", "all:", "all:0", "all:65k", "all:x", ""):
        assert "--syscall-content" in kymo("record", f"--syscall-content={text}", code=2).err
    assert "monotonic" in kymo("record", "--syscall-content=paths", "--clock=tsc", code=2).err
    assert "--kernel" in kymo("record", "--user", "x:*", "--syscall-content=paths", code=2).err
