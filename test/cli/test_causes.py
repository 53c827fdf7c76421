# SPDX-License-Identifier: MIT
"""Reports on causes: the parts of each time add up to it exactly, and programs with a known problem are explained by
it: a lock convoy whose holder sleeps, a busy program on the same CPU, sleeps, pipes and sockets."""

import collections
import json
import os
import random
import re
import shutil
import subprocess

import pytest

import critical_schedule
import kernel_trace
from conftest import ROOT
from oracle_figures import Event, tables
from test_perfetto import convert  # pylint: disable=unused-import

OFS = ["syscall", "syscall:read*", "wakeup", "preemption", "block", "irq", "softirq", "thread"]

PROGRAM = r"""
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t start;
static int fds[2];

static long now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static long cpu_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void spin(long ns)
{
	for (long end = now() + ns; now() < end;)
		;
}

static void doze(long ns)
{
	struct timespec t = {0, ns};

	clock_nanosleep(CLOCK_MONOTONIC, 0, &t, NULL);
}

static void *holder(void *data)
{
	prctl(PR_SET_NAME, "kc-holder");
	pthread_mutex_lock(&lock);
	pthread_barrier_wait(&start);
	doze(80000000);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void *waiter(void *data)
{
	prctl(PR_SET_NAME, "kc-waiter");
	pthread_barrier_wait(&start);
	doze(5000000);
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
	return NULL;
}

static void convoy(void)
{
	pthread_t threads[4];

	pthread_barrier_init(&start, NULL, 4);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, i ? waiter : holder, NULL);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
}

static void hog(void)
{
	cpu_set_t one;

	CPU_ZERO(&one);
	CPU_SET(0, &one);
	sched_setaffinity(0, sizeof(one), &one);
	for (int i = 0; i < 2; i++) {
		if (fork())
			continue;
		prctl(PR_SET_NAME, i ? "kc-victim" : "kc-hog");
		if (!i) {
			struct sched_param first = {.sched_priority = 1};

			sched_setscheduler(0, SCHED_FIFO, &first);
			doze(50000000);
		}
		spin(i ? 200000000 : 100000000);
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
}

/* The child writes after a sleep: the reader waits for it. */
static void talk(int from, int to, const char *name)
{
	char byte;

	if (!fork()) {
		prctl(PR_SET_NAME, "kc-writer");
		for (int i = 0; i < 5; i++) {
			doze(10000000);
			if (write(to, "x", 1) != 1)
				_exit(1);
		}
		_exit(0);
	}
	prctl(PR_SET_NAME, name);
	for (int i = 0; i < 5; i++)
		if (read(from, &byte, 1) != 1)
			exit(1);
	wait(NULL);
}

/* A server that sleeps before each answer. */
static int network(void)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0), fd;
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(at);
	char byte;

	if (bind(listener, (void *)&at, len) || listen(listener, 1) || getsockname(listener, (void *)&at, &len))
		return 77;
	if (!fork()) {
		prctl(PR_SET_NAME, "kc-server");
		fd = accept(listener, NULL, NULL);
		for (int i = 0; i < 5 && recv(fd, &byte, 1, 0) == 1; i++) {
			doze(10000000);
			send(fd, &byte, 1, 0);
		}
		_exit(0);
	}
	prctl(PR_SET_NAME, "kc-client");
	fd = socket(AF_INET, SOCK_STREAM, 0);
	if (connect(fd, (void *)&at, len))
		return 77;
	for (int i = 0; i < 5; i++)
		if (send(fd, "x", 1, 0) != 1 || recv(fd, &byte, 1, 0) != 1)
			return 1;
	wait(NULL);
	return 0;
}

/* For a second: some work, and a sleep. */
static void load(long work_ns)
{
	prctl(PR_SET_NAME, "kc-load");
	for (long end = now() + 1200000000; now() < end; doze(2000000))
		for (long until = cpu_now() + work_ns; cpu_now() < until;)
			getppid();
	printf("ran %ld ns\n", cpu_now());
}

/* Writes that go to the device, flushes of its cache, and page faults that read. */
static int disk(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_DIRECT | O_TRUNC, 0600);
	volatile char sum = 0;
	char *bytes, *map;

	prctl(PR_SET_NAME, "kc-disk");
	if (fd < 0 || posix_memalign((void **)&bytes, 4096, 1 << 20))
		return 77;
	memset(bytes, 1, 1 << 20);
	for (long i = 0; i < 8; i++)
		if (pwrite(fd, bytes, 1 << 20, i << 20) < 0 || fsync(fd))
			return 77;
	map = mmap(NULL, 8 << 20, PROT_READ, MAP_SHARED, fd, 0);
	for (long i = 0; i < 8 << 20; i += 1 << 20)
		sum += map[i];
	return 0;
}

int main(int argc, char **argv)
{
	if (strcmp(argv[1], "convoy") == 0)
		convoy();
	else if (strcmp(argv[1], "hog") == 0)
		hog();
	else if (strcmp(argv[1], "load") == 0)
		load(atol(argv[2]) * 1000);
	else if (strcmp(argv[1], "network") == 0)
		return network();
	else if (strcmp(argv[1], "disk") == 0)
		return disk(argv[2]);
	else if (pipe(fds) == 0)
		talk(fds[0], fds[1], "kc-reader");
	return 0;
}
"""


# Before all others, as a busy machine would be another load.
FIRST = ("chrt", "-f", "10") if shutil.which("chrt") else ()


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("causes") / "kc"
    subprocess.run(["cc", "-O1", "-pthread", "-x", "c", "-", "-o", path], input=PROGRAM, text=True,
                   check=True)
    return path


def report(kymo, name, trace, *options):
    return tables(kymo("report", "--json", name, trace, *options), name)


def of_whole(rows):
    """Times by cause, without the whole; and the whole."""
    times = {row["cause"]: row["time"] for row in rows}
    return times, times.pop("the whole", 0)


def check_sums(kymo, trace, of):
    """The parts of each member lie one after the other from its begin to its end."""
    found = report(kymo, "breakdown", trace, "--of", of, "-t", "causes", "-t", "parts", "-t",
                   "members", "-t", "log")
    by_member = collections.defaultdict(list)
    for row in found["log"]:
        assert row["end"] - row["begin"] == row["duration"] > 0
        by_member[row["member"]].append(row)
    for member in found["members"]:
        assert member["end"] - member["begin"] == member["duration"]
        parts = by_member.pop(member["member"], [])
        at = member["begin"]
        for part in parts:
            assert part["begin"] == at, (member, part)
            at = part["end"]
        assert at == member["end"], member
    assert not by_member
    times, whole = of_whole(found["causes"])
    assert sum(times.values()) == whole == sum(row["duration"] for row in found["members"])
    assert sum(row["time"] for row in found["parts"]) == whole
    in_log = collections.Counter()
    for row in found["log"]:
        in_log[row["cause"]] += row["duration"]
    assert in_log == times
    assert len(found["members"]) == next((row["members"] for row in found["causes"]
                                          if row["cause"] == "the whole"), 0)
    return found


@pytest.mark.parametrize("of", OFS)
def test_parts_are_the_whole(kymo, reference, of):
    check_sums(kymo, reference, of)


def test_members_are_those_of_other_reports(kymo, reference):
    calls = report(kymo, "syscalls", reference, "-t", "log")["log"]
    mine = report(kymo, "breakdown", reference, "--of", "syscall", "-t", "members")["members"]
    assert sorted((row["begin"], row["end"], row["process"]["tid"], row["what"]) for row in mine) == \
        sorted((row["begin"], row["end"], row["process"]["tid"], row["syscall"]) for row in calls)
    waits = report(kymo, "sched", reference, "-t", "log")["log"]
    mine = report(kymo, "breakdown", reference, "--of", "wakeup", "-t", "members")["members"]
    mine += report(kymo, "breakdown", reference, "--of", "preemption", "-t", "members")["members"]
    assert sorted(row["duration"] for row in mine) == sorted(row["duration"] for row in waits)


def test_selection(kymo, reference):
    every = report(kymo, "breakdown", reference, "--of", "syscall", "-t", "members")["members"]
    tid = every[len(every) // 2]["process"]["tid"]
    ns = sorted(row["duration"] for row in every)[len(every) // 2]
    some = report(kymo, "breakdown", reference, "--of", "syscall", "--tid", str(tid), "--min",
                  f"{ns}ns", "-t", "members")["members"]
    assert [row["begin"] for row in some] == [row["begin"] for row in every
                                              if row["process"]["tid"] == tid and row["duration"] >= ns]
    one = report(kymo, "breakdown", reference, "--of", "syscall", "--member", "7")
    assert [row["begin"] for row in one["log"]][0] == every[6]["begin"]
    assert [row["member"] for row in one["top"]] == [7]


def test_wrong_options(kymo, reference):
    for options, text in (
            (["breakdown", "--of", "zork"], "'zork' is not known"),
            (["cpu", "--of", "wakeup"], "no use for --of"),
            (["cpu,breakdown", "--tid", "3"], "needs all threads"),
            (["breakdown", "--refresh", "1s"], "has no intervals")):
        assert text in kymo("report", *options, reference, code=2).err
    both = json.loads(kymo("report", "--json", "cpu,breakdown", reference).out)
    assert [found["name"] for found in both["reports"]] == ["cpu", "breakdown"]


# ---- known causes -----------------------------------------------------------------------------------

def test_convoy(record, kymo, program):
    """Three threads wait for a lock, whose holder sleeps."""
    trace, _ = record(command=[*FIRST, program, "convoy"])
    check_sums(kymo, trace, "syscall:futex")
    found = report(kymo, "breakdown", trace, "--of", "syscall:futex", "--comm", "kc-waiter", "--min", "40ms")
    times, whole = of_whole(found["causes"])
    assert times["blocked: lock"] > 0.9 * whole > 0.9 * 3 * 60e6
    assert found["parts"][0]["cause"] == "blocked: lock"
    assert found["parts"][0]["who"]["name"] == "kc-holder"
    assert found["meanwhile"][0]["process"]["name"] == "kc-holder"
    assert (found["meanwhile"][0]["cause"], found["meanwhile"][0]["syscall"]) == \
        ("blocked: timer", "clock_nanosleep")
    assert found["meanwhile"][0]["time"] > 0.5 * whole


def test_hog(record, kymo, program):
    """A busy program of higher priority takes the CPU from another one."""
    trace, _ = record(command=[program, "hog"])
    found = report(kymo, "breakdown", trace, "--comm", "kc-victim")
    times, _ = of_whole(found["causes"])
    taken = times.get("preempted", 0) + times.get("waiting for a CPU", 0)
    assert taken > 80e6
    by = collections.Counter()
    for row in found["parts"]:
        if row["cause"] in ("preempted", "waiting for a CPU") and row["who"]:
            by[row["who"]["name"]] += row["time"]
    assert by["kc-hog"] > 80e6


def test_pipe(record, kymo, program):
    """A reader waits for a writer that sleeps."""
    trace, _ = record(command=[program, "pipe"])
    found = report(kymo, "breakdown", trace, "--of", "syscall:read", "--comm", "kc-reader", "--min", "5ms")
    times, whole = of_whole(found["causes"])
    blocked = times.get("blocked: pipe", 0) + times.get("blocked: another thread", 0)
    assert blocked > 0.5 * whole > 10e6
    assert {row["who"]["name"] for row in found["parts"]
            if row["cause"] in ("blocked: pipe", "blocked: another thread") and row["who"]} == {"kc-writer"}
    slept = [row for row in found["meanwhile"] if row["syscall"] == "clock_nanosleep"]
    assert {row["cause"] for row in slept} >= {"blocked: timer"}


def test_network(record, kymo, program, loopback):
    """A client waits for a server on the same machine, which sleeps."""
    trace, _ = record(command=[program, "network"])
    options = ("--of", "syscall:recvfrom", "--comm", "kc-client", "--min", "5ms")
    found = report(kymo, "breakdown", trace, *options)
    times, whole = of_whole(found["causes"])
    assert times["blocked: network"] > 0.8 * whole > 20e6
    assert {row["who"]["name"] for row in found["parts"] if row["cause"] == "blocked: network"} == {"kc-server"}
    assert any(row["process"]["name"] == "kc-server" and row["syscall"] == "clock_nanosleep" and
               row["cause"] == "blocked: timer" for row in found["meanwhile"])
    path = report(kymo, "critical-path", trace, *options)
    assert path["threads"][0]["process"]["name"] == "kc-server"


def union(intervals, begin, end):
    """How much of the time between the two lies in any of the intervals."""
    covered, at = 0, begin
    for first, last in sorted(intervals):
        first, last = max(first, at), min(last, end)
        if first < last:
            covered, at = covered + last - first, last
    return covered


def test_disk(record, without_losses, kymo, program, tmp_path):
    """What a direct write waits for is its requests, to the nanosecond."""
    trace, result = without_losses(record, command=[program, "disk", str(tmp_path / "file")], code=None)
    if result.code:
        pytest.skip("no direct I/O here")
    found = check_sums(kymo, trace, "syscall:pwrite64")
    rows = [row for row in report(kymo, "block", trace, "-t", "log")["log"]
            if row["process"] and row["process"]["name"] == "kc-disk"]
    if not rows:
        pytest.skip("no block device behind this file system")
    requests = [(row["end"] - row["duration"], row["end"]) for row in rows]
    members = [row for row in found["members"] if row["process"]["name"] == "kc-disk"]
    assert len(members) == 8
    for member in members:
        parts = [row for row in found["log"] if row["member"] == member["member"]]
        device = sum(row["duration"] for row in parts if row["cause"] == "blocked: disk, in the device")
        awake = sum(row["duration"] for row in parts if not row["cause"].startswith("blocked"))
        issued = union(requests, member["begin"], member["end"])
        assert issued - awake <= device <= issued, (member, parts, requests)
    parts = report(kymo, "breakdown", trace, "--comm", "kc-disk")["parts"]
    assert any(row["syscall"] == "fsync" and row["cause"].startswith("blocked: disk") for row in parts)


def perf(*args):
    return subprocess.run(["perf", *args], capture_output=True, text=True, check=False).stdout


def runs_of_perf(path):
    """By thread: the run times of perf sched timehist in ns, of threads whose switches perf has all."""
    broken, runs = set(), {}
    if re.search(r"LOST\w* events:\s*[1-9]", perf("report", "--stats", "--stdio", "-i", path)):
        return {}
    for cpu, prev, following in re.findall(r"^\s*\[(\d+)\] .*prev_pid=(\d+) .*next_pid=(\d+)",
                                           perf("script", "-F", "cpu,trace", "-i", path), re.M):
        # A switch is missing: timehist takes the time before it for the thread's, as well.
        if runs.get(cpu, prev) != prev:
            broken |= {runs[cpu], prev}
        runs[cpu] = following
    return {int(tid): float(run) * 1e6 for tid, run in re.findall(
        r"^\s*kc-load\[(\d+)[^\]]*\]\s+-?\d+\s+\d+\s+([\d.]+)", perf("sched", "timehist", "-s", "-i", path), re.M)
        if tid not in broken}


def check_running(kymo, trace, tid, run):
    times, _ = of_whole(report(kymo, "breakdown", trace, "--tid", str(tid))["causes"])
    ours = sum(times.get(cause, 0) for cause in (
        "running", "running in user space", "running in the kernel", "interrupted"))
    # Where the kernel gave no switch, the others believe to know what ran.
    slack = 0.02 * run + 1e6
    assert ours - slack <= run <= ours + times.get("unknown", 0) + slack, (tid, ours, run, times)


def test_running_equals_the_clock_of_the_thread(kymo, record, program):
    trace, result = record(command=[*FIRST, program, "load", "2000"])
    ran = int(re.search(r"^ran (\d+) ns$", result.out, re.M).group(1))
    rows = report(kymo, "cpu", trace, "-t", "threads", "--comm", "kc-load")["threads"]
    check_running(kymo, trace, max(rows, key=lambda row: row["usage"])["process"]["tid"], ran)


def test_running_equals_perf(kymo, record, program, tmp_path):
    """perf sched timehist has the same run times, of the same moments."""
    if not shutil.which("perf"):
        pytest.skip("perf is not installed: tools/install-deps test")
    data = tmp_path / "perf.data"
    # Large buffers, and before others, as a busy machine lets perf lose events.
    trace, result = record(command=["perf", "sched", "record", "-m", "16M", "-r", "20", "-o", data, "--", *FIRST,
                                    program, "load", "2000"], code=None)
    theirs = runs_of_perf(data) if result.code == 0 else {}
    if not theirs:
        pytest.skip("perf fails, lost events or switches, or sched record tells nothing here")
    for tid, run in theirs.items():
        check_running(kymo, trace, tid, run)


def test_span(kymo, tmp_path):
    """From NAME_begin to NAME_end of a thread, in a trace that has the kernel's events as well."""
    schedule = critical_schedule.Schedule(5)
    tid = next(tid for tid, parts in schedule.time.items() if sum(part[2] == "run" for part in parts) > 3)
    runs = [part for part in schedule.time[tid] if part[2] == "run" and part[1] - part[0] > 100]
    first, last = runs[0][0] + 1, runs[2][0] + 1
    cpus = {event.ns: event.cpu for event in schedule.events if event.name == "sched_switch"}
    marks = [Event(ns, cpus[ns - 1], f"shop:order_{name}", {}, {"perf_tid": tid})
             for ns, name in ((first, "begin"), (last, "end"))]
    trace = kernel_trace.write(tmp_path / "trace", sorted(schedule.events + marks, key=lambda event: event.ns))
    found = report(kymo, "breakdown", trace, "--of", "span:shop:order", "-t", "log", "-t", "members")
    assert [(row["begin"], row["end"]) for row in found["members"]] == [(first, last)]
    assert sum(row["duration"] for row in found["log"]) == last - first
    assert "1 times (span)" in kymo("report", "why", "--span", "shop:order", trace).out
    assert "no period matches" in kymo("report", "breakdown", "--of", "span:shop:nothing", trace).out


@pytest.mark.parametrize("programs", (1, 2))
def test_spans_of_a_program(record, without_losses, kymo, programs):
    """The spans of programs that were recorded beside the kernel, of two by their IDs, are times of their threads."""
    shop = os.path.join(os.path.abspath(os.environ.get("KYMO_BUILD") or os.path.join(ROOT, "build")), "examples", "shop")
    trace, _ = without_losses(record, "-k", "sched_*,syscall_*nanosleep", "--user", "shop:*", *(["--context", "vtid"] if programs == 2 else []),
                              command=["sh", "-c", f"{shop} 40 & {f'{shop} 40 & ' * (programs - 1)}wait"])
    begins, spans = {}, []
    for line in kymo("convert", "--to", "json", trace).out.splitlines():
        if '"shop:checkout_' not in line:
            continue
        event = json.loads(line)
        tid = {**event.get("stream_context", {}), **event.get("context", {})}.get("vtid")
        if event["event"].endswith("_begin"):
            begins[tid] = event["timestamp_ns"]
        else:
            spans.append((begins[tid], event["timestamp_ns"], tid))
    assert len({tid for _, _, tid in spans}) == programs
    assert len(spans) == 40 * programs
    found = check_sums(kymo, trace, "span:shop:checkout")
    assert sorted((row["begin"], row["end"], row["process"]["tid"] if programs == 2 else None)
                  for row in found["members"]) == sorted(spans)
    assert {row["process"]["name"] for row in found["members"]} == {"shop"}
    assert len({row["process"]["tid"] for row in found["members"]}) == programs
    times, whole = of_whole(found["causes"])
    assert times["blocked: timer"] > 0.8 * len(spans) * 200e3  # it sleeps 200 us in each
    axis, = report(kymo, "heatmap", trace, "--of", "span:shop:checkout", "-t", "axis")["axis"]
    assert axis["count"] == 40 * programs
    path = report(kymo, "critical-path", trace, "--of", "span:shop:checkout")
    assert path["threads"][-1]["time"] == whole
    machine = json.loads(kymo("report", "why", "--json", trace).out)["reports"][0]["tables"][0]["rows"][-1]["finding"]
    assert machine.startswith(f"The machine: {os.cpu_count()} CPU"), machine


def test_losses_are_unknown(kymo, tmp_path):
    """Nothing is claimed of a time in which events were lost."""
    schedule = critical_schedule.Schedule(7, 7000)
    whole = kernel_trace.write(tmp_path / "whole", schedule.events, whole=True)
    torn = kernel_trace.write(tmp_path / "torn", schedule.events, whole=True, lost={(0, 1)})
    of_cpu = sorted(event.ns for event in schedule.events if event.cpu == 0)
    begin, end = of_cpu[1000], of_cpu[1999]
    unknown = 0
    for tid in schedule.time:
        options = ("--tid", str(tid), "-t", "log", "-t", "causes", "-n", "0")
        true, found = (report(kymo, "breakdown", trace, *options) for trace in (whole, torn))
        times, total = of_whole(found["causes"])
        assert sum(times.values()) == total
        unknown += times.get("unknown", 0) - of_whole(true["causes"])[0].get("unknown", 0)
        # What ran on the CPU without events is not known.
        assert not any(row["cause"] == "running" and row["cpu"] == 0 and begin < row["begin"] and row["end"] < end
                       for row in found["log"])
        path = path_of(kymo, torn, "--tid", str(tid))
        check_path(path, path["log"][0]["begin"], path["log"][-1]["end"])
    assert unknown > end - begin  # of the thread that would have run there, and of those that it may have woken
    assert "lost" in kymo("report", "why", torn).out


# ---- interrupts on top of others ------------------------------------------------------------------

def switch(ns, old, new, state=1):
    names = {f"{role}_{name}": value for role, tid in (("prev", old), ("next", new))
             for name, value in (("comm", f"t{tid}"), ("tid", tid), ("prio", 20))}
    return Event(ns, 0, "sched_switch", {}, names | {"prev_state": state, "perf_tid": old})


def interrupts(steps):
    """A trace in which thread 5 runs, and interrupts: (ns, line) enters it, (ns, -line) leaves it."""
    begin, end = steps[0][0] - 1000, steps[-1][0] + 1000
    return [switch(begin, 0, 5),
            *(Event(ns, 0, "irq_handler_entry", {}, {"irq": line, "name": f"line{line}", "perf_tid": 5})
              if line > 0 else
              Event(ns, 0, "irq_handler_exit", {}, {"irq": -line, "ret": 1, "perf_tid": 5})
              for ns, line in steps),
            switch(end, 5, 0)]


@pytest.mark.parametrize("seed", range(4))
def test_nested_interrupts(kymo, tmp_path, seed):
    """At each moment the time is that of the topmost one; also where several begin or end at one moment."""
    chance = random.Random(seed)
    steps, stack, top, ns = [], [], [], 10**9
    while len(steps) < 3000 or stack:
        if stack and (len(stack) == 16 or len(steps) >= 3000 or chance.random() < 0.5):
            line = -stack.pop()
        else:
            line = chance.choice([line for line in range(1, 20) if line not in stack])
            stack.append(line)
        steps.append((ns, line))
        pause = chance.choice((0, 0, 1, 3))
        top += [stack[-1] if stack else None] * pause
        ns += pause
    trace = kernel_trace.write(tmp_path / "trace", interrupts(steps))
    found = check_sums(kymo, trace, "irq")
    for row in found["log"]:
        begin, end = row["begin"] - 10**9, row["end"] - 10**9
        assert set(top[begin:end]) == {row["irq"]["nr"]}, row
    of_thread = [None] * len(top)
    for row in report(kymo, "breakdown", trace, "--tid", "5", "-t", "log", "-n", "0")["log"]:
        begin, end = max(row["begin"] - 10**9, 0), max(row["end"] - 10**9, 0)
        if row["irq"]:
            of_thread[begin:end] = [row["irq"]["nr"]] * (end - begin)
    assert of_thread == top


def test_memory_of_nested_interrupts(kymo_bin, tmp_path, tsan):
    """What is kept grows with the number of interrupts, however deep they are."""
    with open(kymo_bin, "rb") as program:
        if tsan or b"__asan_init" in program.read():
            pytest.skip("a sanitizer multiplies memory")
    lines = [*range(1, 17), *range(-16, 0)] * 300
    trace = kernel_trace.write(tmp_path / "trace", interrupts(
        [(10**9 + 100 * i, line) for i, line in enumerate(lines)]))
    script = "import resource, subprocess, sys;" \
             "subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL);" \
             "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)"
    done = subprocess.run(["python3", "-c", script, kymo_bin, "report", "breakdown", "--of", "irq", trace],
                          stdout=subprocess.PIPE, check=True)
    assert int(done.stdout) < 40 * 1024


def test_waits_without_running(kymo, tmp_path):
    """A thread runs for no time between its waits for a CPU: far from its next run, the CPU is unknown."""
    events = [switch(10**9, 0, 7), switch(10**9 + 50, 7, 5, 0)]
    for i in range(1, 300):
        ns = 10**9 + 100 * i
        events += [switch(ns, 5, 7, 0), switch(ns, 7, 5, 0)]
    events += [switch(10**9 + 30000, 5, 7, 0), switch(10**9 + 30100, 7, 0)]
    found = check_sums(kymo, kernel_trace.write(tmp_path / "trace", events), "preemption")
    waits = [row for row in found["log"] if row["process"]["tid"] == 7]
    assert waits[0]["begin"] == 10**9 + 50 and waits[-1]["end"] == 10**9 + 30000
    assert all(row["cause"] == "preempted" for row in waits)
    assert (waits[0]["cpu"], waits[0]["who"]) == (None, None)
    assert (waits[-1]["cpu"], waits[-1]["who"]["tid"]) == (0, 5)


# ---- the critical path ---------------------------------------------------------------------------

def check_path(found, begin, end):
    """Without gaps, and each wake-up takes it from one thread to another."""
    at = begin
    for row in found["log"]:
        assert row["begin"] == at and row["end"] - row["begin"] == row["duration"] > 0
        at = row["end"]
    assert at == end
    assert sum(row["time"] for row in found["parts"]) == end - begin
    whole = found["threads"].pop()
    assert whole["time"] == end - begin == sum(row["time"] for row in found["threads"])
    for row in found["threads"]:
        assert row["time"] == row["running"] + row["cpu_wait"] + row["blocked"] + row["unknown"]
    ends = {(row["end"], row["process"]["tid"]) for row in found["log"]}
    begins = {(row["begin"], row["process"]["tid"]) for row in found["log"]}
    assert {(row["time"], row["waker"]["tid"]) for row in found["arrows"]} <= ends
    assert {(row["time"], row["process"]["tid"]) for row in found["arrows"]
            if row["time"] < end} <= begins


def path_of(kymo, trace, *options):
    return report(kymo, "critical-path", trace, *options, *(word for table in (
        "threads", "parts", "log", "arrows") for word in ("-t", table)), "-n", "0")


@pytest.mark.parametrize("seed", range(6))
def test_critical_path_of_random_schedules(kymo, tmp_path, seed):
    schedule = critical_schedule.Schedule(seed)
    trace = kernel_trace.write(tmp_path / "trace", schedule.events, whole=True)
    begin, end = schedule.events[0].ns, schedule.events[-1].ns
    for tid, parts in schedule.time.items():
        if not parts:
            continue
        since = parts[0][0]
        found = path_of(kymo, trace, "--tid", str(tid), "--begin", f"{since / 1e9:.9f}")
        check_path(found, max(since, begin), end)
        times = collections.Counter()
        for row in found["threads"]:
            times[row["process"]["tid"]] += row["time"]
        assert times == schedule.times(tid, since, end)


def test_critical_path_and_that_of_perfetto(kymo, query, convert, tmp_path):
    """Where no interrupts wake, they differ in one rule: after a wait of a waker, Kymo goes on with what the waker did
    before, and Perfetto with the waker's waker."""
    schedule = critical_schedule.Schedule(99)
    trace = kernel_trace.write(tmp_path / "trace", schedule.events, whole=True)
    exported, equal = convert(trace), 0
    # From where all threads are known; theirs ends where the thread runs last.
    since = max(parts[0][0] for parts in schedule.time.values() if parts)
    for tid, parts in schedule.time.items():
        end = max((part_end for _, part_end, kind, _ in parts if kind == "run"), default=since)
        if end <= since:
            continue
        _, theirs = query(exported, "INCLUDE PERFETTO MODULE sched.thread_executing_span",
                          "SELECT t.tid, SUM(c.dur) AS total FROM _thread_executing_span_critical_path("
                          f"(SELECT utid FROM thread WHERE tid = {tid}), {since}, {end - since}) c "
                          "JOIN thread t USING (utid) GROUP BY 1")
        theirs = {row["tid"]: row["total"] for row in theirs}
        assert theirs == schedule.times(tid, since, end, schedule.path_of_perfetto)
        for begin, last, kind, waker in parts[:8]:
            if kind != "blocked" or not waker or begin < since or last > end or \
                    schedule.path(waker, begin, last) != schedule.path_of_perfetto(tid, begin, last):
                continue
            ours = path_of(kymo, trace, "--tid", str(tid), "--begin", f"{begin / 1e9:.9f}",
                           "--end", f"{last / 1e9:.9f}")["log"]
            assert {row["process"]["tid"] for row in ours} == \
                {thread for thread, _, _ in schedule.path_of_perfetto(tid, begin, last)}
            equal += 1
    assert equal > 0


def test_critical_path_of_a_convoy(record, kymo, program):
    """The waiters' time is the sleep of the holder."""
    trace, _ = record(command=[program, "convoy"])
    found = report(kymo, "critical-path", trace, "--of", "syscall:futex", "--comm", "kc-waiter", "--min", "40ms")
    assert found["threads"][0]["process"]["name"] == "kc-holder"
    assert found["parts"][0]["cause"] == "blocked: timer"
    assert found["parts"][0]["syscall"] == "clock_nanosleep"
    one = path_of(kymo, trace, "--of", "syscall:futex", "--comm", "kc-waiter", "--min", "40ms", "--member", "1")
    check_path(one, one["log"][0]["begin"], one["log"][-1]["end"])
    assert [row["waker"]["name"] for row in one["arrows"]][-1] in ("kc-holder", "kc-waiter")


def test_critical_path_needs_a_thread(kymo, reference):
    assert "needs a thread" in kymo("report", "critical-path", reference, code=2).err


# ---- the heat map ------------------------------------------------------------------------------------

def test_heatmap_counts_members(kymo, reference):
    found = report(kymo, "heatmap", reference, "--of", "syscall", "-t", "map", "-t", "axis", "-t", "members")
    axis, = found["axis"]
    counts = collections.Counter()
    for member in found["members"]:
        column = (member["end"] - axis["begin"]) * axis["columns"] // (axis["end"] - axis["begin"] + 1)
        row, = (row["row"] for row in found["map"] if row["from"] <= member["duration"] < row["to"])
        counts[column, row] += 1
    assert {(column, row["row"]): count for row in found["map"]
            for column, count in enumerate(row["counts"]) if count} == counts
    assert axis["count"] == len(found["members"]) == sum(row["count"] for row in found["map"])
    assert axis["max"] == max(member["duration"] for member in found["members"])
    (column, row), count = counts.most_common(1)[0]
    cell = report(kymo, "heatmap", reference, "--of", "syscall", "--cell", f"{column + 1},{row}", "-t", "members")
    assert len(cell["members"]) == count
    same = report(kymo, "breakdown", reference, "--of", "syscall", "--cell", f"{column + 1},{row}", "-t", "causes")
    assert same["causes"][-1]["members"] == count


def test_heatmap_forms(kymo, reference):
    options = ("heatmap", "--of", "syscall", reference)
    text = kymo("report", *options, env={"LC_ALL": "C.UTF-8", "LANG": "C.UTF-8", "PATH": "/bin"}).out
    assert "█" in text and "░" in text
    assert '<rect x="' in kymo("report", "--html", *options).out
    lines = kymo("report", "--csv", "-t", "map", *options).out.splitlines()
    assert lines[0].endswith("counts") and len(lines[1].split(",")[-1].split()) == 48
    assert "needs --of" in kymo("report", "heatmap", reference, code=2).err
    assert "--cell: '3'" in kymo("report", *options, "--cell", "3", code=2).err


# ---- sentences ------------------------------------------------------------------------------------------

def findings(kymo, trace, *options):
    return report(kymo, "why", trace, *options)["findings"]


def test_why_names_the_holder(record, kymo, program):
    trace, _ = record(command=[program, "convoy"])
    found = findings(kymo, trace, "-n", "0")
    lock, = (row for row in found if "for the lock at" in row["finding"] and "kc-waiter" in row["finding"])
    assert "It was held by kc-holder" in lock["finding"]
    assert "Meanwhile kc-holder" in lock["finding"] and "slept in clock_nanosleep" in lock["finding"]
    assert lock["time"] > 3 * 40e6 and lock["more"].startswith("kymo report locks --pid")
    assert "the futex calls" in lock["sure"]
    text = kymo("report", "why", trace).out
    assert "What stands out\n  1. " in text and all(len(line) <= 100 for line in text.splitlines()
                                                     if line.startswith("     ") and "More:" not in line)
    # The command that it names works; in text, it has the trace.
    kymo(*lock["more"].split()[1:], trace)
    assert f"     More: {lock['more']} {trace}" in text
    assert not re.search(r"[0-9]\n +(%|[mun]?s)[ ,.]", text)


def test_why_names_the_hog(record, kymo, program):
    # On a busy machine, others may take more from the victim than the hog does.
    for _ in range(5):
        trace, _ = record(command=[program, "hog"])
        row, = (row for row in findings(kymo, trace, "--comm", "kc-victim") if "for a CPU" in row["finding"])
        if "kc-hog" in row["finding"]:
            break
    assert row["finding"].startswith("kc-victim") and "kc-hog" in row["finding"]
    assert "matches" not in kymo(*row["more"].split()[1:], trace).out
    times, _ = of_whole(report(kymo, "breakdown", trace, "--comm", "kc-victim")["causes"])
    assert row["time"] == times.get("preempted", 0) + times.get("waiting for a CPU", 0)


def test_why_names_the_writer(record, kymo, program):
    """The reader waits for the writer, which sleeps. Without a selection, that is not a finding: it may be idle."""
    trace, _ = record(command=[program, "pipe"])
    # The first of its waits is for the recorder, which lets the command start.
    row, = (row for row in findings(kymo, trace, "--comm", "kc-reader") if "until kc-writer" in row["finding"])
    assert "slept in clock_nanosleep" in row["finding"]
    assert not any("kc-reader" in row["finding"] and "until kc-writer" in row["finding"]
                   for row in findings(kymo, trace))


TIMED = r"""
import ctypes, os, select, signal
libc = ctypes.CDLL(None)
os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
child = os.fork()
if not child:
    libc.prctl(15, b"kc-spinner", 0, 0, 0)
    while os.getppid() > 1:
        pass
    os._exit(0)
libc.prctl(15, b"kc-timed", 0, 0, 0)
signal.signal(signal.SIGALRM, lambda *_: None)
timer = libc.timerfd_create(1, 0)
libc.timerfd_settime(timer, 0, (ctypes.c_long * 4)(0, 10000000, 0, 10000000), None)
epoll = select.epoll()
epoll.register(timer, select.EPOLLIN)
for _ in range(60):
    epoll.poll()
    os.read(timer, 8)
signal.setitimer(signal.ITIMER_REAL, 0.3)
select.poll().poll(400)
os.kill(child, signal.SIGKILL)
os.waitpid(child, 0)
"""


def test_why_doubts_the_interrupted(record, kymo):
    """A timer wakes on top of whoever runs: that thread is not accused for certain; and a signal is one."""
    trace, _ = record(command=["/usr/bin/python3", "-c", TIMED])
    found = findings(kymo, trace, "--comm", "kc-timed", "-n", "0")
    assert not any("epoll_wait until" in row["finding"] and row["sure"].startswith("certain") for row in found)
    signal, = (row for row in found if "in poll until a signal ended the call" in row["finding"])
    assert signal["sure"].startswith("certain") and signal["time"] > 200e6
    times, _ = of_whole(report(kymo, "breakdown", trace, "--comm", "kc-timed")["causes"])
    assert times["blocked: ended by a signal"] == signal["time"]
    # Rows differ in what is shown: the call, and an interrupt's name.
    parts = kymo("report", "critical-path", "-t", "parts", "--comm", "kc-timed", trace).out
    assert re.search("^ +TID .* In call ", parts, re.M)
    for row in report(kymo, "breakdown", trace, "--comm", "kc-timed")["parts"]:
        assert row["cause"] != "interrupted" or row["who"]["name"] == f"({row['irq']['name']})"
    if any("epoll_wait until kc-" in row["finding"] for row in found):
        assert "may not be of the thread that is named" in kymo("report", "critical-path", "--comm", "kc-timed", trace).out


def test_why_of_members(kymo, reference):
    found = findings(kymo, reference, "--of", "syscall:pread64")
    assert "in the mean, and the slowest 1 %" in found[0]["finding"]
    whole = report(kymo, "breakdown", reference, "--of", "syscall:pread64")["causes"][-1]
    assert found[0]["finding"].startswith(f"{whole['members']} times")
    for row in found:
        assert not row["more"] or row["more"].startswith(("kymo report ", "name the thread"))
    nobody = kymo("report", "why", "--comm", "nobody-is-called-so", reference).out
    assert "Nothing is selected: no thread matches; names of threads have at most 15 letters" in nobody
    assert "stands out:" not in nobody and "The machine" not in nobody


# ---- two traces -----------------------------------------------------------------------------------------

def test_compare(record, without_losses, kymo, program):
    """The same load with five times the work: its time differs, its sleep per call does not."""
    # Beside others' work, the slices of a trace may differ too much.
    for _ in range(4):
        some, _ = without_losses(record, "--follow", command=[*FIRST, program, "load", "100"])
        more, _ = without_losses(record, "--follow", command=[*FIRST, program, "load", "2000"])
        found = report(kymo, "compare", some, str(more), "--comm", "kc-load")
        if found["times"]:
            break
    assert [(row["side"], row["trace"]) for row in found["sides"]] == [("A", str(some)), ("B", str(more))]
    assert all(1.1e9 < row["duration"] < 30e9 for row in found["sides"])
    times = {row["cause"]: row for row in found["times"]}
    ran = times.get("running in the kernel") or times["running in user space"]
    assert ran["b"] > 1.5 * ran["a"] and ran["change"] == pytest.approx(ran["b"] - ran["a"])
    assert ran["factor"] == pytest.approx(ran["b"] / ran["a"])
    calls = {row["syscall"]: row for row in found["calls"]}
    assert calls["getppid"]["rate_b"] > calls["getppid"]["rate_a"]
    rows = report(kymo, "syscalls", more, "-t", "threads")["threads"]
    mean, = (row["avg"] for row in rows if (row["syscall"], row["process"]["name"]) == ("getppid", "kc-load"))
    assert calls["getppid"]["mean_b"] == pytest.approx(mean)
    # Of the thread of the command, what was before its execve (the recorder's waits) does not count.
    thread, = {row["process"]["tid"] for row in report(kymo, "breakdown", some, "--comm", "kc-load", "-t", "members")["members"]}
    log = report(kymo, "syscalls", some, "--tid", str(thread), "-t", "log", "-n", "0")["log"]
    since = max((row["begin"] for row in log if row["syscall"] == "execve"), default=0)
    assert found["sides"][0]["calls"] == sum(row["begin"] > since for row in log)


def test_compare_with_itself(kymo, reference, tmp_path):
    (tmp_path / "copy").symlink_to(reference)
    found = kymo("report", "compare", reference, tmp_path / "copy").out
    assert "nothing differs" in found or "is the other one" in found
    assert "needs two traces" in kymo("report", "compare", reference, code=2).err
    assert "whole traces" in kymo("report", "compare", "--begin", "+1ms", reference, reference, code=2).err
