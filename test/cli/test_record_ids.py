# SPDX-License-Identifier: MIT
"""kymo record --context with users, groups, namespaces and control groups: each event has those that its
thread had at that moment, however short it lived."""

import json
import os
import subprocess

import pytest

# Each mark is a call of lseek() with a number of its own; before it, the program says what /proc knows of it.
PROGRAM = r"""
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int marks;

static void mark_thread(int base)
{
	static const char *const kinds[] = {"cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts"};
	char path[64], line[256], link[64];
	int number = base + ++marks;
	FILE *file = fopen("/proc/thread-self/status", "r");

	printf("{\"mark\": %d", number);
	while (fgets(line, sizeof(line), file)) {
		unsigned int a, b, c, d;
		char kind;

		if (sscanf(line, "%cid:\t%u\t%u\t%u\t%u", &kind, &a, &b, &c, &d) == 5) {
			kind += 'a' - 'A';
			printf(", \"%cid\": %u, \"e%cid\": %u, \"s%cid\": %u, \"fs%cid\": %u", kind, a, kind, b,
			       kind, c, kind, d);
		}
	}
	fclose(file);
	for (int i = 0; i < 8; i++) {
		snprintf(path, sizeof(path), "/proc/thread-self/ns/%s", kinds[i]);
		memset(link, 0, sizeof(link));
		if (readlink(path, link, sizeof(link) - 1) > 0)
			printf(", \"%s_ns\": %d", kinds[i], (int)strtoul(strchr(link, '[') + 1, NULL, 10));
	}
	printf("}\n");
	fflush(stdout);
	syscall(SYS_lseek, -number, 0, 0);
}

static void mark(void)
{
	mark_thread(1000);
}

static void *other_thread(void *data)
{
	mark_thread(1000); /* as its maker */
	syscall(SYS_setresuid, 71, 72, 73); /* this thread alone */
	mark_thread(1000);
	return NULL;
}

static void in_child(void (*what)(void))
{
	int pipes[2], last;

	if (pipe(pipes) < 0)
		_exit(1);
	if (fork() == 0) {
		what();
		if (write(pipes[1], &marks, sizeof(marks)) < 0)
			_exit(1);
		_exit(0);
	}
	close(pipes[1]);
	if (read(pipes[0], &last, sizeof(last)) > 0)
		marks = last;
	wait(NULL);
}

static void users(void)
{
	mark();
	setresgid(10, 20, 30);
	mark();
	setfsgid(40);
	mark();
	setfsuid(50);
	mark();
	setresuid(1000, 2000, 3000);
	mark();
	setresuid(-1, 3000, -1);
	mark();
	in_child(mark);
	if (setuid(0) == 0) /* fails: nothing changes */
		_exit(1);
	mark();
}

static void threads(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, other_thread, NULL);
	pthread_join(thread, NULL);
	mark();
}

static void namespaces(void)
{
	unshare(CLONE_NEWUTS | CLONE_NEWIPC);
	mark();
	unshare(CLONE_NEWNS);
	mark();
	unshare(CLONE_NEWNET | CLONE_NEWCGROUP);
	mark();
	in_child(mark);
	unshare(CLONE_NEWPID);
	mark();
	in_child(users); /* its first process, and the only one */
}

static void enters(void)
{
	int fd = open("/proc/self/ns/uts", O_RDONLY);

	unshare(CLONE_NEWUTS | CLONE_NEWUSER);
	mark();
	setns(fd, CLONE_NEWUTS); /* not allowed from there */
	mark();
}

static void returns(void)
{
	int fd = open("/proc/self/ns/net", O_RDONLY);

	unshare(CLONE_NEWNET);
	mark();
	setns(fd, CLONE_NEWNET);
	mark();
}

/* Marks in @dir, and of a child that begins there; then one outside again. */
static int in_group(const char *dir)
{
	struct clone_args args = {.flags = CLONE_INTO_CGROUP, .exit_signal = SIGCHLD};
	char path[4096];
	int fd, procs;

	snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
	procs = open(path, O_WRONLY);
	fd = open(dir, O_RDONLY | O_DIRECTORY);
	args.cgroup = fd;
	mark_thread(1100);
	if (syscall(SYS_clone3, &args, sizeof(args)) == 0) {
		mark_thread(1200);
		_exit(0);
	}
	wait(NULL);
	mark_thread(1100);
	if (fork() == 0) {
		if (write(procs, "0", 1) != 1)
			_exit(1);
		marks = 10;
		mark_thread(1200);
		if (fork() == 0) {
			marks = 20;
			mark_thread(1200);
			_exit(0);
		}
		wait(NULL);
		_exit(0);
	}
	wait(NULL);
	mark_thread(1100);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc > 1)
		return in_group(argv[1]);
	mark();
	in_child(users);
	in_child(threads);
	in_child(namespaces);
	in_child(enters);
	in_child(returns);
	mark();
	return 0;
}
"""

IDS = [prefix + kind for kind in ("uid", "gid") for prefix in ("", "e", "s", "fs")]
NAMESPACES = [kind + "_ns" for kind in ("cgroup", "ipc", "mnt", "net", "pid", "time", "user", "uts")]


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    path = tmp_path_factory.mktemp("ids") / "ids"
    subprocess.run(["cc", "-x", "c", "-O1", "-w", "-pthread", "-o", path, "-"], input=PROGRAM, text=True,
                   check=True)
    return path


def marks(kymo, trace):
    """Of each lseek() with a mark: the context."""
    found = {}
    for line in kymo("convert", "--to", "json", trace).out.splitlines():
        event = json.loads(line)
        mark = 2**32 - event["fields"].get("fd", 0)
        if event["event"] == "syscall_entry_lseek" and 1000 < mark < 2000:
            assert mark not in found
            found[mark] = event["context"]
    return found


def test_each_event_has_its_own(kymo, record, program, tmp_path):
    said = tmp_path / "said"
    trace, done = record("-k", "syscall_*_lseek", "--context", ",".join(["pid", *IDS, *NAMESPACES]),
                         command=["sh", "-c", f"{program} > {said}"])
    assert "some time after" not in done.err
    expected = [json.loads(line) for line in said.read_text().splitlines()]
    found = marks(kymo, trace)
    assert len(expected) > 25 and sorted(found) == sorted(e["mark"] for e in expected)
    for want in expected:
        context = found[want.pop("mark")]
        if want["uid"] == 65534:  # it sees itself so in a user namespace without a map
            want = {name: value for name, value in want.items() if "id" not in name[-3:]}
        for name, value in want.items():
            assert context[name] == value % 2**32, (name, want, context)


def test_control_groups(kymo, record, program, control_groups):
    group = os.path.join(control_groups, f"kymo-test-{os.getpid()}")
    os.mkdir(group)
    try:
        inside = os.stat(group).st_ino
        trace, _ = record("-k", "syscall_entry_lseek", "--context", "cgroup", command=[program, group])
    finally:
        os.rmdir(group)
    found = {mark: context["cgroup"] for mark, context in marks(kymo, trace).items()}
    assert sorted(found) == [1101, 1102, 1103, 1202, 1211, 1221]
    for mark, group in found.items():
        assert (group == inside) == (mark > 1200), (mark, group, inside)


def test_mistakes(kymo, tmp_path):
    for options, words in ((["--raw", "--context", "uid"], "--raw: no users"),
                           (["--clock=tsc", "--context", "net_ns"], "the clock that BPF has"),
                           (["--context", "uuid"], "'uuid' is none of")):
        assert words in kymo("record", "-o", tmp_path / "t", *options, "--", "true", code=2).err
