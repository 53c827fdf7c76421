# SPDX-License-Identifier: MIT
"""Report why on problems that docs/solve.md has not: it names the culprit, and says no more than events support."""

import json
import os
import re
import subprocess

import pytest

import kernel_trace
from oracle_figures import Event

PROGRAM = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static volatile int over, jobs;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t ready = PTHREAD_COND_INITIALIZER;

static void doze(long ns)
{
	nanosleep(&(struct timespec){0, ns}, NULL);
}

/* So much CPU time. */
static void work(long ns)
{
	struct timespec t;
	long end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	for (end = t.tv_sec * 1000000000L + t.tv_nsec + ns; t.tv_sec * 1000000000L + t.tv_nsec < end;)
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
}

static void *piled(void *data)
{
	prctl(PR_SET_NAME, "kh-piled");
	for (int i = 0; i < 20; i++) {
		work(3000000);
		doze(500000);
	}
	return data;
}

static void *waits(void *data)
{
	prctl(PR_SET_NAME, "kh-worker");
	pthread_mutex_lock(&lock);
	while (!over) {
		while (!jobs && !over)
			pthread_cond_wait(&ready, &lock);
		jobs -= jobs > 0;
	}
	pthread_mutex_unlock(&lock);
	return data;
}

static void herd(void)
{
	prctl(PR_SET_NAME, "kh-boss");
	for (int i = 0; i < 60; i++) {
		pthread_mutex_lock(&lock);
		jobs++;
		over = i == 59;
		pthread_cond_broadcast(&ready);
		pthread_mutex_unlock(&lock);
		doze(4000000);
	}
}

/* One thread changes the address space for long; others for a moment, and again and again. */
static void *space(void *data)
{
	bool is_large = data;
	size_t bytes = is_large ? 16 << 20 : 1 << 16;

	prctl(PR_SET_NAME, is_large ? "kh-mapper" : "kh-toucher");
	for (int i = 0; is_large ? i < 20 : !over; i++) {
		char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
				 MAP_PRIVATE | MAP_ANONYMOUS | (is_large ? MAP_POPULATE : 0), -1, 0);

		if (map == MAP_FAILED)
			exit(1);
		memset(map, 1, 4096);
		munmap(map, bytes);
	}
	over |= is_large;
	return data;
}

static int timeouts(void)
{
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct timeval after = {.tv_usec = 100000};
	char answer[16];

	prctl(PR_SET_NAME, "kh-resolver");
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &after, sizeof(after));
	for (int i = 0; i < 3; i++)
		if (recv(fd, answer, sizeof(answer), 0) >= 0 || errno != EAGAIN)
			return 1;
	return 0;
}

static void *serve(void *data)
{
	int fd = accept(*(int *)data, NULL, NULL);
	char request[16];

	prctl(PR_SET_NAME, "kh-server");
	while (recv(fd, request, 16, MSG_WAITALL) == 16)
		send(fd, "ok", 2, 0);
	return data;
}

/* Two small pieces for each request: the second one waits until the first one is acknowledged. */
static int pieces(void)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	pthread_t server;
	char answer[2];

	if (bind(listener, (void *)&at, len) || listen(listener, 1) || getsockname(listener, (void *)&at, &len))
		return 77;
	pthread_create(&server, NULL, serve, &listener);
	prctl(PR_SET_NAME, "kh-client");
	if (connect(fd, (void *)&at, len))
		return 77;
	for (int i = 0; i < 20; i++)
		if (send(fd, "headhead", 8, 0) < 0 || send(fd, "bodybody", 8, 0) < 0 || recv(fd, answer, 2, 0) < 1)
			return 1;
	close(fd);
	pthread_join(server, NULL);
	return 0;
}

/* Somebody stops a process that could run. */
static int stopped(void)
{
	pid_t child = fork();

	if (!child) {
		prctl(PR_SET_NAME, "kh-runner");
		for (;;)
			work(1000000);
	}
	prctl(PR_SET_NAME, "kh-freezer");
	for (int i = 0; i < 5; i++) {
		doze(5000000);
		kill(child, SIGSTOP);
		doze(60000000);
		kill(child, SIGCONT);
	}
	kill(child, SIGKILL);
	return waitpid(child, NULL, 0) != child;
}

/* The parent waits for several children of one name: what they did is one thing. */
static void parent(void)
{
	for (int i = 0; i < 8; i++) {
		if (!fork()) {
			prctl(PR_SET_NAME, "kh-child");
			doze(30000000);
			_exit(0);
		}
		wait(NULL);
	}
}

/* A process with much memory in small pages starts others. */
static void forker(void)
{
	/* Beside a busy machine's other programs it would start too few in a second. */
	struct sched_param param = {.sched_priority = 1};
	size_t bytes = 128 << 20;
	char *map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (map == MAP_FAILED)
		_exit(1);
	madvise(map, bytes, MADV_NOHUGEPAGE);
	memset(map, 1, bytes);
	sched_setscheduler(0, SCHED_FIFO, &param);
	for (int i = 0; i < 60; i++) {
		if (!fork())
			_exit(0);
		wait(NULL);
	}
}

/* Some questions have no answer in time. */
static void asker(void)
{
	int pair[2];
	char byte;

	if (socketpair(AF_UNIX, SOCK_DGRAM, 0, pair))
		_exit(1);
	for (int i = 0; i < 9; i++) {
		struct pollfd fd = {.fd = pair[0], .events = POLLIN};

		if (i % 3 && write(pair[1], "x", 1) == 1 && poll(&fd, 1, 1000) == 1)
			recv(pair[0], &byte, 1, 0);
		else
			poll(&fd, 1, 60);
	}
}

/* A socket that can be written to is always ready. */
static void ready_always(void)
{
	struct epoll_event event = {.events = EPOLLIN | EPOLLOUT};
	int pair[2], fd = epoll_create1(0);

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) || epoll_ctl(fd, EPOLL_CTL_ADD, pair[0], &event))
		_exit(1);
	for (int i = 0; i < 40000; i++)
		epoll_wait(fd, &event, 1, -1);
}

/* Pages of a file that is not in memory. */
static void mapped(void)
{
	size_t bytes = 32 << 20;
	int fd = open("mapped", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	volatile char *map;

	for (size_t i = 0; i < bytes >> 16; i++) {
		static char block[1 << 16] = "x";

		if (write(fd, block, sizeof(block)) != sizeof(block))
			_exit(1);
	}
	fsync(fd);
	map = mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd, 0);
	madvise((void *)map, bytes, MADV_RANDOM);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	for (size_t i = 0; i < 1500; i++)
		map[(i * 7919 * 4096) % bytes];
}

static int several(void)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = {{"kh-parent", parent}, {"kh-forker", forker}, {"kh-asker", asker}, {"kh-ready", ready_always}, {"kh-mapped", mapped}};

	for (size_t i = 0; i < sizeof(all) / sizeof(*all); i++) {
		if (fork())
			continue;
		prctl(PR_SET_NAME, all[i].name);
		all[i].run();
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
	return 0;
}

/* The queue of connections is full: TCP tries again after a second. */
static int refused(void)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);

	if (bind(listener, (void *)&at, len) || listen(listener, 0) || getsockname(listener, (void *)&at, &len))
		return 77;
	for (int i = 0; i < 3; i++) {
		if (fork())
			continue;
		prctl(PR_SET_NAME, "kh-caller");
		_exit(connect(socket(AF_INET, SOCK_STREAM, 0), (void *)&at, len) != 0);
	}
	doze(700000000);
	for (int i = 0; i < 3; i++)
		accept(listener, NULL, NULL);
	while (wait(NULL) > 0)
		;
	return 0;
}

static void *compute(void *data)
{
	prctl(PR_SET_NAME, "kh-computer");
	work(80000000);
	return data;
}

int main(int argc, char **argv)
{
	const char *what = argv[1];
	void *(*run)(void *) = strcmp(what, "piled") == 0  ? piled
			       : strcmp(what, "herd") == 0 ? waits
			       : strcmp(what, "space") == 0 ? space
							    : compute;
	int n = run == waits ? 8 : run == compute ? 1 : 4;
	pthread_t threads[8];
	cpu_set_t one;

	if (strcmp(what, "timeouts") == 0)
		return timeouts();
	if (strcmp(what, "pieces") == 0)
		return pieces();
	if (strcmp(what, "several") == 0)
		return several();
	if (strcmp(what, "refused") == 0)
		return refused();
	if (strcmp(what, "stopped") == 0)
		return stopped();
	CPU_ZERO(&one);
	CPU_SET(0, &one);
	if (run == piled)
		sched_setaffinity(0, sizeof(one), &one);
	for (int i = 0; i < n; i++)
		pthread_create(&threads[i], NULL, run, i ? NULL : threads);
	if (run == waits)
		herd();
	for (int i = 0; i < n; i++)
		pthread_join(threads[i], NULL);
	return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("why") / "kh"
    subprocess.run(["cc", "-O1", "-pthread", "-x", "c", "-", "-o", path], input=PROGRAM, text=True, check=True)
    return path


@pytest.fixture
def why(record, without_losses, kymo, program):
    """why(mode, *options, enter=[], events=) -> the sentences, of a recording of the program, which `enter` starts."""
    def call(mode, *options, enter=(), events="default"):
        trace, result = without_losses(record, "-k", events, command=[*enter, program, mode], code=None)
        if result.code == 77:
            pytest.skip("no TCP at 127.0.0.1")
        assert result.code == 0, result.err
        rows = json.loads(kymo("report", "why", "--json", "-n", "0", *options, trace).out)["reports"][0]["tables"][0]["rows"]
        return [row["finding"] for row in rows]
    return call


def of(findings, pattern):
    found = [text for text in findings if re.search(pattern, text)]
    assert found, findings
    return found[0]


def busy(findings):
    """The machine's load in percent: others may use the CPUs that would be idle."""
    return float(re.search(r"busy in ([\d.]+) %", of(findings, "^The machine: ")).group(1))


def test_piled_up(why):
    if os.cpu_count() < 2:
        pytest.skip("needs two CPUs")
    findings = why("piled", "--comm", "kh-piled")
    text = of(findings, r"^kh-piled .*waited .* for a CPU")
    if busy(findings) < 75:
        assert "another CPU was idle" in text and "may be bound" in text


def test_limit_of_a_control_group(why):
    group = f"/sys/fs/cgroup/cpu/kh{os.getpid()}"
    if not os.access("/sys/fs/cgroup/cpu/cgroup.procs", os.W_OK):
        pytest.skip("needs control groups of version 1")
    os.mkdir(group)
    try:
        if not os.path.exists(f"{group}/cpu.cfs_quota_us"):
            pytest.skip("the kernel does not limit CPU time")
        with open(f"{group}/cpu.cfs_quota_us", "w", encoding="ascii") as file:
            file.write("20000")  # of each 100 ms
        findings = why("compute", "--comm", "kh-computer",
                       enter=["sh", "-c", f'echo $$ > {group}/cgroup.procs && exec "$@"', "sh"])
    finally:
        os.rmdir(group)
    text = of(findings, r"^kh-computer .*waited .* for a CPU")
    if busy(findings) < 75:
        assert "taken off a CPU that had nothing else to do" in text and "cpu.max" in text


def test_herd(why):
    text = of(why("herd"), r"^kh-boss .* woke ")
    assert float(re.search(r"woke ([\d.]+) threads in the mean", text).group(1)) > 4


def test_address_space(why):
    # Beside others' work, the mapper may have few turns.
    for _ in range(4):
        text = of(why("space", enter=["chrt", "-r", "1"], events="sched_*,irq_softirq_*,syscalls"),
                  r"waited .* for the address space of process ")
        if "kh-mapper" in text:
            break
    assert "kh-mapper" in text and "kh-" in text


def test_timeouts(why):
    assert re.search("waited [23] times in recvfrom for what did not come", of(why("timeouts", enter=["chrt", "-f", "1"]), "^kh-resolver"))


def test_delayed_acknowledgement(why, loopback):
    text = of(why("pieces"), r"^kh-(client|server) .*waited 39 ms to 48 ms in each of \d+ of \d+ calls of recv")
    assert "TCP delays an acknowledgement" in text


def test_stopped(why):
    findings = why("stopped", "--comm", "kh-runner")
    text = of(findings, "^kh-runner .*was stopped ")
    assert re.search(r"by a signal or a debugger, until it could go on by kh-freezer \(tid \d+\) 100 %", text), text
    assert not any("page fault" in text for text in findings), findings


def test_several(record, without_losses, kymo, program, tmp_path):
    """Five programs in one recording, each with its finding."""
    trace, _ = without_losses(record, "-b", "64M", command=["chrt", "-r", "1", program, "several"], cwd=tmp_path)

    def said(name, pattern):
        rows = json.loads(kymo("report", "why", "--json", "-n", "0", "--comm", name, trace).out)["reports"][0]["tables"][0]["rows"]
        text = of([row["finding"] for row in rows], pattern)
        return text, next(row["sure"] for row in rows if row["finding"] == text)

    text, _ = said("kh-parent", "or 7 others of this name woke it")
    slept = re.search(r"Meanwhile that thread slept in clock_nanosleep ([\d.]+) (ms|s)", text)
    assert float(slept.group(1)) * {"ms": 1, "s": 1000}[slept.group(2)] >= 200, text
    text, sure = said("kh-forker", " started 60 processes")
    assert "The call that starts one ran " in text and "may have much memory" in text
    assert sure.endswith("what the kernel did in them, events do not tell")
    text, sure = said("kh-asker", " times in poll for what did not come")
    assert "waited 3 times in poll" in text and "6 other calls of poll got something" in text
    assert sure.startswith("certain that nothing came in time")
    said("kh-asker", " slept .* in poll until the call's timeout")
    text, _ = said("kh-ready", " called epoll_wait ")
    assert "made no other call in between" in text and "EPOLLOUT" in text
    if os.major(os.stat(tmp_path).st_dev):
        said("kh-mapped", "in page faults, of a mapped file")


def test_connections_that_are_not_answered_at_first(why, loopback):
    text = of(why("refused", "--comm", "kh-caller"), " in connect until interrupt NET_RX woke it")
    assert "TCP sends the first packet again after 1 s" in text


def turns(turns_ns):
    """Threads that have CPU 0 in turns, (tid, ns) each, and could run all the time."""
    events, at_ns, prev = [], 10**9, 0
    for tid, ns in [*turns_ns, (0, 0)]:
        events.append(Event(at_ns, 0, "sched_switch", {}, {
            "prev_comm": f"t{prev}", "prev_tid": prev, "prev_prio": 20, "prev_state": 0, "next_comm": f"t{tid}", "next_tid": tid,
            "next_prio": 20, "perf_tid": prev}))
        at_ns, prev = at_ns + ns, tid
    return events


@pytest.mark.parametrize("case, limited", (("two others", True), ("many others", True), ("15 in turns", False), ("25 in turns", False)))
def test_limit_while_others_have_the_cpu(kymo, tmp_path, case, limited):
    """What a limit of a control group does is a rhythm; turns of the scheduler among many threads are one, too, but fair."""
    ms = 10**6
    schedule = {
        # Thread 100 may run 20 ms in 100 ms; the others share what is left.
        "two others": [turn for i in range(12) for turn in
                       [(100, 20 * ms + i * 1000), (101, 40 * ms), (102, 40 * ms - i * 1000)]],
        # The same, but each of the others is soon preempted, too. Before its limit, thread 100 waits 6 ms for each turn.
        "many others": [turn for _ in range(12) for turn in
                        [(100, 4 * ms), (101, 2 * ms), (102, 2 * ms), (103, 2 * ms)] * 5 + [(tid, 2 * ms) for tid in range(104, 129)]],
        "15 in turns": [(tid, 4 * ms) for _ in range(40) for tid in range(100, 115)],
        "25 in turns": [(tid, 4 * ms) for _ in range(24) for tid in range(100, 125)]}[case]
    trace = kernel_trace.write(tmp_path / "trace", turns(schedule), whole=True)
    rows = json.loads(kymo("report", "why", "--json", "--tid", "100", trace).out)["reports"][0]["tables"][0]["rows"]
    text = of([row["finding"] for row in rows], "^t100 .*could run, but waited")
    assert ("came back 1" in text and "at regular intervals of 100.0 ms" in text and "cpu.max" in text) == limited, text
    assert ("cpu.max" in text) == limited
