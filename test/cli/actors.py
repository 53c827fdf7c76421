# SPDX-License-Identifier: MIT
"""Programs that follow a test's commands, step by step, and the events of their steps in a recording."""

import glob
import os
import subprocess
import time

# Steps of another run of the tests, which may be under way beside this one, are others.
BASE = (os.getpid() + 1) * 1_000_000

# Obeys its lines, one after the other, and answers each. A step: ten calls of lseek() with the letter in the offset.
PROGRAM = r"""
#define _GNU_SOURCE
#include <linux/sched.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int to_thread[2], from_thread[2];

static void step(char letter)
{
	for (int i = 1; i <= 10; i++)
		syscall(SYS_lseek, -1, BASE + (long)letter * 1000 + i, 0);
}

static void *second(void *data)
{
	char letter;

	while (read(to_thread[0], &letter, 1) == 1) {
		if (letter == '!')
			execl("/proc/self/exe", "actor", (char *)0);
		step(letter);
		write(from_thread[1], "", 1);
	}
	return data;
}

static void *other(void *letter)
{
	step(*(char *)letter);
	return letter;
}

static int child(char letter, int pid)
{
	pid_t set = pid;
	struct clone_args args = {.exit_signal = 17, .set_tid = pid ? (uintptr_t)&set : 0, .set_tid_size = pid != 0};
	long made = syscall(SYS_clone3, &args, sizeof(args));

	if (made == 0) {
		step(letter);
		_exit(0);
	}
	if (made > 0)
		waitpid(made, 0, 0);
	return made;
}

int main(void)
{
	char line[100];
	pthread_t thread;
	int answer;

	pipe(to_thread);
	pipe(from_thread);
	pthread_create(&thread, 0, second, 0);
	setvbuf(stdin, 0, _IONBF, 0);
	puts("0"), fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		long number = 0;

		answer = 0;
		sscanf(line + 2, "%ld", &number);
		switch (line[0]) {
		case 's': step(line[1]); break;
		case 'c': answer = child(line[1], number); break;
		case 't':
			pthread_create(&thread, 0, other, line + 1);
			pthread_join(thread, 0);
			break;
		case '2':
			write(to_thread[1], line + 1, 1);
			read(from_thread[0], line + 1, 1);
			break;
		case 'u': answer = syscall(SYS_setresuid, number, 0, 0); break;
		}
		printf("%d\n", answer);
		fflush(stdout);
	}
	return 0;
}
"""


def build(path, *options):
    subprocess.run(["cc", "-x", "c", "-O1", "-w", "-pthread", f"-DBASE={BASE}L", *options, "-o", path, "-"],
                   input=PROGRAM, text=True, check=True)
    return path


class Actor:
    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.process.pid
        assert self.process.stdout.readline() == "0\n"

    def does(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return int(self.process.stdout.readline())

    def second_thread(self):
        return next(tid for tid in map(int, os.listdir(f"/proc/{self.pid}/task")) if tid != self.pid)

    def sleeps(self):
        """Both threads wait for what they are to do."""
        for tid in os.listdir(f"/proc/{self.pid}/task"):
            state = ""
            while state != "S":
                with open(f"/proc/{self.pid}/task/{tid}/stat", encoding="ascii") as file:
                    state = file.read().rsplit(")", 1)[1].split()[0]
                time.sleep(0.001)

    def end(self):
        self.process.communicate()


def wait_until(record, tid, is_in):
    """The recorder has seen that the thread has come or gone: the kernel's lists say so."""
    instance = next(path for path in glob.glob(f"{record.tracefs}/instances/kymo-{record.process.pid}-*")
                    if not path.endswith("-watch"))

    def lists(name):
        if not os.path.exists(f"{instance}/{name}"):
            return []
        with open(f"{instance}/{name}", encoding="ascii") as file:
            return file.read().split()

    end = time.monotonic() + 60
    while (str(tid) in lists("set_event_pid") and str(tid) not in lists("set_event_notrace_pid")) != is_in:
        assert time.monotonic() < end
        time.sleep(0.01)


def steps(events):
    """{letter: by how many threads all ten were made}"""
    found = {}
    for event, fields, context in events:
        assert event == "syscall_entry_lseek", event
        if 0 < fields["offset"] - BASE < 1_000_000:
            key = chr((fields["offset"] - BASE) // 1000), context["tid"]
            found[key] = found.get(key, 0) + 1
    assert all(count == 10 for count in found.values()), found
    letters = [letter for letter, _ in found]
    return {letter: letters.count(letter) for letter in letters}
