# SPDX-License-Identifier: MIT
"""kymo record --context with users, groups, namespaces and control groups: each event has those that its
thread had at that moment, however short it lived."""

import json
import os
import subprocess
import tempfile

import pytest

from control_groups import remove_groups

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
    group = tempfile.mkdtemp(prefix="kymo-test-", dir=control_groups)
    try:
        inside = os.stat(group).st_ino
        trace, _ = record("-k", "syscall_entry_lseek", "--context", "cgroup", command=[program, group])
    finally:
        remove_groups(group)
    found = {mark: context["cgroup"] for mark, context in marks(kymo, trace).items()}
    assert sorted(found) == [1101, 1102, 1103, 1202, 1211, 1221]
    for mark, group in found.items():
        assert (group == inside) == (mark > 1200), (mark, group, inside)


# Says in lseek()'s arguments what it is called where it lives: itself, its process, its parent.
INSIDE = r"""
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void *say(void *none)
{
	syscall(SYS_lseek, -1000, (long)syscall(SYS_gettid) << 32 | syscall(SYS_getpid), syscall(SYS_getppid));
	return none;
}

static void all(int depth)
{
	pthread_t thread;

	say(0);
	pthread_create(&thread, 0, say, 0);
	pthread_join(thread, 0);
	for (int i = 0; i < 2 && depth; i++) {
		if (i == 1 && unshare(CLONE_NEWPID))
			_exit(1);
		if (!fork()) {
			all(depth - 1);
			_exit(0);
		}
		wait(0);
	}
}

static volatile int is_over;

static long switches(void)
{
	struct rusage now;

	getrusage(RUSAGE_THREAD, &now);
	return now.ru_nvcsw + now.ru_nivcsw;
}

static void *yield(void *none)
{
	while (!is_over)
		sched_yield();
	return none;
}

int main(void)
{
	pthread_t other;
	cpu_set_t one;
	long before;

	all(2);
	/* A switch to this thread has its new priority; but some kernels lack events of some threads. */
	CPU_ZERO(&one);
	CPU_SET(sched_getcpu(), &one);
	sched_setaffinity(0, sizeof(one), &one);
	pthread_create(&other, 0, yield, 0);
	setpriority(PRIO_PROCESS, 0, 7);
	before = switches();
	while (switches() < before + 20)
		sched_yield();
	syscall(SYS_lseek, -1001, (long)getpriority(PRIO_PROCESS, 0), 0);
	is_over = 1;
	pthread_join(other, 0);
	return 0;
}
"""


@pytest.mark.parametrize("apart", [False, True])
def test_pid_namespaces(kymo, kymo_bin, needs_root_tracefs, tmp_path, apart):
    """What each namespace calls its threads; the recorder may be in one itself."""
    program = tmp_path / "inside"
    subprocess.run(["cc", "-x", "c", "-O1", "-w", "-pthread", "-o", program, "-"], input=INSIDE, text=True, check=True)
    unshare = ["unshare", "--pid", "--fork", "--mount-proc"] if apart else []
    if subprocess.run([*unshare, "true"], check=False).returncode:
        pytest.skip("needs pid namespaces")
    done = subprocess.run([*unshare, kymo_bin, "record", "-o", tmp_path / "t", "-k", "syscall_entry_lseek",
                           "--context", "tid,cpu_id,pid,ppid,vtid,vpid,vppid,nice", "--", program], capture_output=True,
                          text=True, check=False, timeout=300)
    assert done.returncode == 0 and "; 0 lost." in done.stderr, done
    events = map(json.loads, kymo("convert", "--to", "json", tmp_path / "t").out.splitlines())
    events = [(e["fields"], e["context"]) for e in events if e["event"] == "syscall_entry_lseek" and
              e["fields"]["fd"] % 2**32 in (2**32 - 1000, 2**32 - 1001)]
    said = [(e["offset"] >> 32, e["offset"] % 2**32, e["whence"]) for e, _ in events if e["fd"] % 2**32 == 2**32 - 1000]
    assert said == [(c["vtid"], c["vpid"], c["vppid"]) for e, c in events if e["fd"] % 2**32 == 2**32 - 1000]
    assert len(said) == 14 and said.count((1, 1, 0)) == 3
    first = events[0][1]
    assert (first["vtid"] == first["tid"]) != apart
    (last,) = [c for e, c in events if e["fd"] % 2**32 == 2**32 - 1001]
    assert last["nice"] == 7


# When the thread sleeps for the second time, what it did before that is in the ring.
AGAIN = r"""
slept() { sed -n 's/^voluntary_ctxt_switches:[^0-9]*//p' /proc/$0/status; }
for words in again "and again"; do
	before=$(slept)
	echo $words > /proc/$0/fd/0
	until [ $(slept) -gt $before ]; do sleep 0.01; done
done
"""


@pytest.mark.parametrize("raw", [[], ["--raw"]])
def test_nice_of_a_real_time_thread(kymo, record, raw):
    """Its priority does not tell it."""
    command = ["nice", "-n", "3", "chrt", "-f", "5", "cat"]
    if subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=False).returncode:
        pytest.skip("needs chrt and real-time priorities")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as cat:
        cat.stdin.write("it runs\n")
        cat.stdin.flush()
        assert cat.stdout.readline() == "it runs\n"
        trace, _ = record(*raw, "-k", "sched_switch", "--context", "nice,prio", command=["sh", "-c", AGAIN, str(cat.pid)])
        cat.stdin.close()
        assert cat.stdout.read() == "again\nand again\n"
    lines = kymo("convert", "--to", "json", "--event", "sched_switch", "--filter", f"$ctx.tid == {cat.pid}",
                 trace).out.splitlines()
    assert lines and {json.loads(line)["context"]["nice"] for line in lines} == {3}


def test_mistakes(kymo, tmp_path):
    for options, words in ((["--raw", "--context", "uid"], "--raw: no users"),
                           (["--clock=tsc", "--context", "net_ns"], "the clock of BPF"),
                           (["--context", "uuid"], "unknown field 'uuid'")):
        assert words in kymo("record", "-o", tmp_path / "t", *options, "--", "true", code=2).err
