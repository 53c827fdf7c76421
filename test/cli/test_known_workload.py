# SPDX-License-Identifier: MIT
"""A program that counts its signals, page faults, sockets' calls, forks and execs: the recording has each of
them once, with what it was about."""

import json
import re
import subprocess

import pytest

PROGRAM = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGES 300

static volatile int handled[65];
static volatile unsigned long segv_at;
static char *mine;

static void handler(int number, siginfo_t *info, void *context)
{
	handled[number]++;
	if (number == SIGSEGV) {
		segv_at = (unsigned long)info->si_addr;
		mprotect(mine, 4096, PROT_READ | PROT_WRITE);
	}
}

static void *sleeper(void *data)
{
	*(volatile int *)data = gettid();
	while (handled[SIGUSR2] < 5)
		usleep(200);
	return NULL;
}

static void signals(void)
{
	struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
	union sigval value = {.sival_int = 7};
	volatile int tid = 0;
	pthread_t thread;

	sigaction(SIGUSR1, &action, NULL);
	sigaction(SIGUSR2, &action, NULL);
	sigaction(SIGSEGV, &action, NULL);
	sigaction(SIGCHLD, &action, NULL);
	sigaction(SIGRTMIN + 3, &action, NULL);
	for (int i = 0; i < 20; i++)
		kill(getpid(), SIGUSR1);
	for (int i = 0; i < 11; i++)
		sigqueue(getpid(), SIGRTMIN + 3, value);
	pthread_create(&thread, NULL, sleeper, (void *)&tid);
	while (!tid)
		usleep(200);
	for (int i = 0; i < 5; i++) {
		tgkill(getpid(), tid, SIGUSR2);
		while (handled[SIGUSR2] <= i)
			usleep(200);
	}
	pthread_join(thread, NULL);
	printf("\"thread\": %d, ", tid);
	mine = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	*(volatile char *)mine = 1;
	printf("\"segv\": %lu, ", segv_at);
}

static void faults(void)
{
	char *read_only = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	char *written = mmap(NULL, PAGES * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile char sum = 0;

	madvise(read_only, PAGES * 4096, MADV_NOHUGEPAGE);
	madvise(written, PAGES * 4096, MADV_NOHUGEPAGE);
	for (int i = 0; i < PAGES; i++)
		sum += read_only[i * 4096 + i];
	for (int i = 0; i < PAGES; i++)
		written[i * 4096 + i] = 1;
	for (int i = 0; i < PAGES; i++) /* there already */
		sum += written[i * 4096 + i];
	printf("\"read\": %lu, \"written\": %lu, ", (unsigned long)read_only, (unsigned long)written);
}

static void options(int fd, int port)
{
	struct iovec iov[2][2] = {{{"first ", 6}, {"message", 7}}, {{"second", 6}, {"", 0}}};
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)}, from = {0};
	struct mmsghdr messages[2] = {{.msg_hdr = {.msg_iov = iov[0], .msg_iovlen = 2}},
				      {.msg_hdr = {.msg_iov = iov[1], .msg_iovlen = 2}}};
	int udp = socket(AF_INET, SOCK_DGRAM, 0), size = 0x54321, got = 0;
	struct linger linger = {1, 7}, now = {0};
	socklen_t len = sizeof(now);
	char room[2][64];

	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	getsockopt(fd, SOL_SOCKET, SO_LINGER, &now, &len);
	getsockopt(-1, SOL_SOCKET, SO_LINGER, &now, &len);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bind(udp, (void *)&to, sizeof(to));
	for (int i = 0; i < 2; i++) {
		messages[i].msg_hdr.msg_name = &to;
		messages[i].msg_hdr.msg_namelen = sizeof(to);
	}
	sendmmsg(udp, messages, 2, 0);
	for (int i = 0; i < 2; i++) {
		iov[i][0] = (struct iovec){room[i], 64};
		messages[i].msg_hdr.msg_iovlen = 1;
		messages[i].msg_hdr.msg_name = &from;
		messages[i].msg_hdr.msg_namelen = sizeof(from);
	}
	recvmmsg(udp, messages, 2, 0, NULL);
	close(udp);
}

static void sockets(void)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0), server;
	struct sockaddr_in at = {.sin_family = AF_INET};
	socklen_t len = sizeof(at);
	char text[64];

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	bind(listener, (void *)&at, sizeof(at));
	listen(listener, 1);
	getsockname(listener, (void *)&at, &len);
	connect(client, (void *)&at, sizeof(at));
	server = accept(listener, NULL, NULL);
	for (int i = 0; i < 50; i++) {
		int n = snprintf(text, sizeof(text), "message %d", i);

		send(client, text, n, 0);
		recv(server, text, sizeof(text), 0);
	}
	options(client, ntohs(at.sin_port));
	printf("\"port\": %d, \"client\": %d, \"server\": %d, ", ntohs(at.sin_port), client, server);
	close(client);
	close(server);
}

static void processes(void)
{
	char path[] = "/bin/true", name[] = "true", number[] = "0", variable[] = "KNOWN=1"; /* in pages that are there */
	char *arguments[] = {name, number, NULL}, *environment[] = {variable, NULL};

	printf("\"children\": [");
	for (int i = 0; i < 8; i++) {
		int pid;

		fflush(stdout);
		pid = fork();
		if (pid == 0) {
			if (i % 2)
				_exit(i);
			number[0] = '0' + i;
			execve(path, arguments, environment);
			_exit(99);
		}
		waitpid(pid, NULL, 0);
		printf("%s%d", i ? ", " : "", pid);
	}
	printf("], ");
}

int main(void)
{
	printf("{");
	faults();
	signals();
	sockets();
	processes();
	printf("\"pid\": %d, \"rt\": %d, \"handled\": [", getpid(), SIGRTMIN + 3);
	for (int i = 0; i < 65; i++)
		printf("%s%d", i ? ", " : "", handled[i]);
	printf("]}\n");
	return 0;
}
"""

EVENTS = ("signal_generate,signal_deliver,sched_process_*,exceptions:page_fault_user,"
          "syscall:kill,syscall:rt_sigqueueinfo,syscall:tgkill,syscall:sendto,syscall:recvfrom,"
          "syscall:*sockopt,syscall:*mmsg,syscall:connect,syscall:bind,syscall:accept,syscall:wait4,syscall:execve")
PAGE = 4096
PAGES = 300


@pytest.fixture(scope="module")
def known(tmp_path_factory, kymo, needs_root_tracefs, loopback, without_losses):
    """(what the program says, its events and its children's)"""
    folder = tmp_path_factory.mktemp("known")
    program, counter = folder / "known", iter(range(9))

    def record(*options, command):
        trace = folder / f"trace-{next(counter)}"
        return trace, kymo("record", "-o", trace, *options, "--", *command)

    subprocess.run(["cc", "-x", "c", "-O1", "-w", "-pthread", "-o", program, "-"], input=PROGRAM, text=True,
                   check=True)
    trace, done = without_losses(record, "-k", EVENTS, "--syscall-content=all", "--context", "pid", "-b", "32M",
                                 command=[program], is_whole=lambda done: "content" not in done.err)
    said = json.loads(done.out)
    events = [json.loads(line) for line in kymo("convert", "--to", "json", trace).out.splitlines()]
    return said, [e for e in events if e["context"]["pid"] in (said["pid"], *said["children"])]


def of(known, name, **fields):
    return [e for e in known[1] if e["event"] == name
            and all(e["fields"].get(key) == value for key, value in fields.items())]


def test_signals(known):
    said = known[0]
    pid, thread, handled = said["pid"], said["thread"], said["handled"]
    assert (handled[10], handled[12], handled[11], handled[17], handled[said["rt"]]) == (20, 5, 1, 8, 11)
    for number, call, count, to in ((10, "kill", 20, pid), (12, "tgkill", 5, thread),
                                    (said["rt"], "rt_sigqueueinfo", 11, pid)):
        assert len(of(known, f"syscall_entry_{call}", sig=number)) == count
        sent = of(known, "signal_generate", sig=number)
        assert len(sent) == count and all(e["fields"]["tid"] == to for e in sent)
        taken = of(known, "signal_deliver", sig=number)
        assert len(taken) == count and all(e["context"]["tid"] == to for e in taken)
        assert all(e["fields"]["sa_flags"] & 4 for e in taken)  # SA_SIGINFO
    (fault,) = [e for e in of(known, "signal_deliver", sig=11)]
    assert fault["fields"]["code"] == 2  # SEGV_ACCERR
    children = of(known, "signal_generate", sig=17, tid=pid)
    assert sorted(e["context"]["tid"] for e in children) == sorted(said["children"])
    assert len(of(known, "signal_deliver", sig=17)) == 8


def test_page_faults(known):
    """Each page once when it is read, once when it is written, at its very byte."""
    said = known[0]
    faults = of(known, "x86_exceptions_page_fault_user")
    for start, bits in ((said["read"], 0b100), (said["written"], 0b110)):
        here = [e["fields"] for e in faults if start <= e["fields"]["address"] < start + PAGES * PAGE]
        assert [fault["address"] for fault in here] == [start + i * PAGE + i for i in range(PAGES)]
        assert all(fault["error_code"] & 7 == bits for fault in here)
    assert [e["fields"]["address"] for e in faults].count(said["segv"]) == 2  # forbidden, then not there


def test_sockets(known):
    said = known[0]
    mine = said["pid"]

    def calls(name, fd):
        entries = [e["fields"] for e in of(known, f"syscall_entry_{name}") if e["context"]["tid"] == mine]
        exits = [e["fields"] for e in of(known, f"syscall_exit_{name}") if e["context"]["tid"] == mine]
        assert len(entries) == len(exits)
        return [(entry, end) for entry, end in zip(entries, exits) if entry["fd"] == fd]

    (connect,) = calls("connect", said["client"])
    assert connect[0]["dport"] == said["port"] and connect[0]["v4addr"] == [127, 0, 0, 1]
    assert connect[1]["ret"] == 0
    texts = [f"message {i}".encode() for i in range(50)]
    sent, received = calls("sendto", said["client"]), calls("recvfrom", said["server"])
    assert [bytes(entry["buff_data"]) for entry, _ in sent] == texts
    assert [bytes(end["ubuf_data"]) for _, end in received] == texts
    assert [end["ret"] for _, end in sent] == [len(text) for text in texts]
    (accepted,) = of(known, "syscall_exit_accept", ret=said["server"])
    assert accepted["context"]["tid"] == mine


def test_options_and_several_messages(known):
    port = known[0]["port"]
    size, linger = [e["fields"] for e in of(known, "syscall_entry_setsockopt")]
    assert bytes(size["optval_data"]) == (0x54321).to_bytes(4, "little")
    assert bytes(linger["optval_data"]) == bytes([1, 0, 0, 0, 7, 0, 0, 0])
    good, bad = [e["fields"] for e in of(known, "syscall_exit_getsockopt")]
    assert good["optval_data"] == linger["optval_data"] and bad["optval_data"] == []
    (sent,), (received,) = of(known, "syscall_entry_sendmmsg"), of(known, "syscall_exit_recvmmsg")
    texts = [b"first message", b"second"]
    messages, arrived = sent["fields"]["mmsg_messages"], received["fields"]["mmsg_messages"]
    assert [bytes(message["data"]) for message in messages] == texts
    assert [message["bytes"] for message in messages] == [len(text) for text in texts]
    assert [bytes(message["data"]) for message in arrived] == texts
    assert [message["len"] for message in arrived] == [len(text) for text in texts]
    assert {message["dport"] for message in messages} == {port} == {message["sport"] for message in arrived}
    assert received["fields"]["ret"] == 2


def test_processes(known):
    said = known[0]
    forks = [e["fields"] for e in of(known, "sched_process_fork")]
    assert [fork["child_tid"] for fork in forks if fork["child_pid"] == fork["child_tid"]] == said["children"]
    assert [fork["child_tid"] for fork in forks if fork["child_pid"] == said["pid"]] == [said["thread"]]
    execs = [e["fields"]["tid"] for e in of(known, "sched_process_exec", filename="/bin/true")]
    assert execs == said["children"][::2]
    called = [e["context"]["tid"] for e in of(known, "syscall_entry_execve", filename="/bin/true")]
    assert called == execs
    given = [(e["fields"]["argv_texts"], e["fields"]["envp_texts"], e["fields"]["content_status"]["labels"])
             for e in of(known, "syscall_entry_execve", filename="/bin/true")]
    assert given == [(["true", str(i)], ["KNOWN=1"], ["read"]) for i in range(0, 8, 2)]
    ended = [e["context"]["tid"] for e in of(known, "sched_process_exit")]
    assert sorted(ended) == sorted([*said["children"], said["thread"], said["pid"]])
    waits = [e["fields"]["ret"] for e in of(known, "syscall_exit_wait4") if e["fields"]["ret"] > 0]
    assert waits == said["children"]
