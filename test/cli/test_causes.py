# SPDX-License-Identifier: MIT
"""Reports on causes: the parts of each time add up to it exactly, and programs with a known problem are explained by
it: a lock convoy whose holder sleeps, a busy program on the same CPU, sleeps, pipes and sockets."""

import collections
import json
import os
import subprocess

import pytest

from oracle_figures import tables

OFS = ["syscall", "syscall:read*", "wakeup", "preemption", "block", "irq", "softirq", "thread"]

PROGRAM = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
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
		spin(150000000);
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

int main(int argc, char **argv)
{
	if (strcmp(argv[1], "convoy") == 0)
		convoy();
	else if (strcmp(argv[1], "hog") == 0)
		hog();
	else if (pipe(fds) == 0)
		talk(fds[0], fds[1], "kc-reader");
	return 0;
}
"""


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("causes") / "kc"
    subprocess.run(["cc", "-O1", "-pthread", "-x", "c", "-", "-o", path], input=PROGRAM, text=True,
                   check=True)
    return path


def report(kymo, name, trace, *options):
    return tables(kymo("report", "--json", name, *options, trace), name)


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
    trace, _ = record(command=[program, "convoy"])
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
    """Two busy programs on one CPU take it from each other."""
    trace, _ = record(command=[program, "hog"])
    found = report(kymo, "breakdown", trace, "--comm", "kc-victim")
    times, _ = of_whole(found["causes"])
    taken = times.get("preempted", 0) + times.get("waiting for a CPU", 0)
    assert taken > 40e6
    by = collections.Counter()
    for row in found["parts"]:
        if row["cause"] in ("preempted", "waiting for a CPU") and row["who"]:
            by[row["who"]["name"]] += row["time"]
    assert by["kc-hog"] > 0.1 * taken


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
