/* SPDX-License-Identifier: MIT */
/* Texts of /proc, well-formed and not, and this process' own entries. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel/process/proc.h"

#define STAT_TAIL                                                                                  \
	" S 7 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 -51 0 1 0 1234 9 10 11 12 13 14 15 16 17 18 19 20 " \
	"21 22 23 24 3 26 27 28\n"

static int parse(const char *text, struct ky_proc_thread *thread)
{
	memset(thread, 0xaa, sizeof(*thread));
	return ky_proc_parse_stat(text, strlen(text), thread);
}

static void stat_line(void **state)
{
	struct ky_proc_thread thread;

	assert_int_equal(parse("42 (bash)" STAT_TAIL, &thread), 0);
	assert_int_equal(thread.tid, 42);
	assert_int_equal(thread.ppid, 7);
	assert_int_equal(thread.state, 'S');
	assert_int_equal(thread.prio, -51);
	assert_int_equal(thread.flags, 4194560);
	assert_int_equal(thread.start_ticks, 1234);
	assert_int_equal(thread.cpu, 3);
	assert_string_equal(thread.comm, "bash");
}

static void stat_names(void **state)
{
	struct ky_proc_thread thread;

	assert_int_equal(parse("42 (a) R 1 (b)" STAT_TAIL, &thread), 0);
	assert_string_equal(thread.comm, "a) R 1 (b");
	assert_int_equal(thread.ppid, 7);
	assert_int_equal(parse("42 ()" STAT_TAIL, &thread), 0);
	assert_string_equal(thread.comm, "");
	assert_int_equal(parse("42 (line\nfeed)" STAT_TAIL, &thread), 0);
	assert_string_equal(thread.comm, "line\nfeed");
	/* Longer than the kernel's own 15 characters. */
	assert_int_equal(parse("42 (0123456789abcdefXYZ)" STAT_TAIL, &thread), 0);
	assert_string_equal(thread.comm, "0123456789abcde");
}

/* The scheduler's events call them "kworker/0:1". */
static void stat_workers(void **state)
{
	static const char tail[] = " I 2 0 0 0 -1 69238880 0 0 0 0 0 0 0 0 20 0 1 0 9 0 0 0 0 0 0 "
				   "0 0 0 0 0 0 0 0 0 0 1 0 0 0\n";
	struct ky_proc_thread thread;
	char text[512];

	snprintf(text, sizeof(text), "9 (kworker/0:1-events)%s", tail);
	assert_int_equal(parse(text, &thread), 0);
	assert_string_equal(thread.comm, "kworker/0:1");
	assert_true(thread.flags & KY_PROC_KTHREAD);
	snprintf(text, sizeof(text), "9 (kworker/u4:2+flush)%s", tail);
	assert_int_equal(parse(text, &thread), 0);
	assert_string_equal(thread.comm, "kworker/u4:2");
	snprintf(text, sizeof(text), "9 (kworker/R-rcu_gp)%s", tail);
	assert_int_equal(parse(text, &thread), 0);
	assert_string_equal(thread.comm, "kworker/R-rcu_g");
}

static void stat_damaged(void **state)
{
	static const char *const texts[] = {
		"",	   "42",	 "42 (bash", "42 )bash(", "42 (bash)",	       "42 (bash) ",
		"42 () S", "42 (a) S 1", "(((((",    "))))",	  "42 (a)S 1 2 3 4 5",
	};
	struct ky_proc_thread thread;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		assert_int_equal(parse(texts[i], &thread), KYMO_E_FORMAT);
	/* A NUL inside cuts it. */
	assert_int_equal(ky_proc_parse_stat("1 (a\0b) S 1", 10, &thread), KYMO_E_FORMAT);
}

static void status(void **state)
{
	struct ky_proc_ids ids;
	char text[1024] = "NSpid:";

	ky_proc_parse_status("Name:\tUid:\nUid:\t1000\t0\t0\t0\nGid:\t5\t6\n"
			     "NStgid:\t100\t7\nNSpid:\t101\t8\nVmPeak:\t12 kB\n",
			     &ids);
	assert_int_equal(ids.uid, 1000);
	assert_int_equal(ids.gid, 5);
	assert_int_equal(ids.n_levels, 2);
	assert_int_equal(ids.nstgid[1], 7);
	assert_int_equal(ids.nspid[1], 8);
	ky_proc_parse_status("", &ids);
	assert_int_equal(ids.n_levels, 0);
	ky_proc_parse_status("NSpid:\nNStgid:\n5\n", &ids);
	assert_int_equal(ids.n_levels, 0);
	/* Deeper than the kernel nests. */
	for (int i = 0; i < 60; i++)
		strcat(text, "\t1");
	strcat(text, "\nNStgid:");
	for (int i = 0; i < 60; i++)
		strcat(text, "\t2");
	ky_proc_parse_status(text, &ids);
	assert_int_equal(ids.n_levels, KY_PROC_MAX_LEVELS);
}

static void fdinfo(void **state)
{
	uint32_t flags;

	assert_int_equal(ky_proc_parse_fdinfo("pos:\t0\nflags:\t02100002\nmnt_id:\t1\n", &flags),
			 0);
	assert_int_equal(flags, 02100002);
	assert_int_equal(ky_proc_parse_fdinfo("flags:\t0", &flags), 0);
	assert_int_equal(ky_proc_parse_fdinfo("", &flags), KYMO_E_FORMAT);
	assert_int_equal(ky_proc_parse_fdinfo("pos:\t0\nflags:", &flags), KYMO_E_FORMAT);
	assert_int_equal(ky_proc_parse_fdinfo("flags:\tx", &flags), KYMO_E_FORMAT);
}

static void self(void **state)
{
	struct ky_proc_thread thread;
	struct ky_proc_ids ids;
	struct ky_proc proc;
	struct stat st;

	prctl(PR_SET_NAME, ") R 1 (x");
	assert_int_equal(ky_proc_open(&proc, NULL), 0);
	assert_int_equal(ky_proc_read_thread(&proc, getpid(), gettid(), &thread), 0);
	assert_int_equal(thread.tid, gettid());
	assert_int_equal(thread.pid, getpid());
	assert_int_equal(thread.ppid, getppid());
	assert_int_equal(thread.state, 'R');
	assert_string_equal(thread.comm, ") R 1 (x");
	assert_int_equal(ky_proc_read_ids(&proc, getpid(), gettid(), &ids), 0);
	assert_int_equal(ids.uid, getuid());
	assert_int_equal(stat("/proc/self/ns/pid", &st), 0);
	assert_int_equal(ky_proc_ns(&proc, getpid(), gettid(), "pid"), st.st_ino);
	assert_int_equal(ky_proc_ns(&proc, getpid(), gettid(), "nonsense"), 0);
	assert_int_equal(ky_proc_read_thread(&proc, INT32_MAX, INT32_MAX, &thread),
			 KYMO_E_NOT_FOUND);
	ky_proc_close(&proc);
}

static void files(void **state)
{
	int fd = open("/dev/null", O_WRONLY | O_CLOEXEC), found = 0;
	struct ky_proc_numbers numbers;
	static struct ky_proc_fd file;
	struct ky_proc proc;
	char path[64];
	int32_t number;

	assert_int_equal(ky_proc_open(&proc, NULL), 0);
	snprintf(path, sizeof(path), "%d/task/%d/fd", getpid(), gettid());
	assert_int_equal(ky_proc_numbers_open(&proc, path, &numbers), 0);
	while ((number = ky_proc_numbers_next(&numbers)) >= 0)
		found += number == fd;
	ky_proc_numbers_close(&numbers);
	assert_int_equal(found, 1);
	assert_int_equal(ky_proc_read_fd(&proc, getpid(), gettid(), fd, &file), 0);
	assert_string_equal(file.path, "/dev/null");
	assert_int_equal(file.flags & O_ACCMODE, O_WRONLY);
	assert_true(file.flags & O_CLOEXEC);
	assert_int_equal(ky_proc_read_fd(&proc, getpid(), gettid(), 999999, &file),
			 KYMO_E_NOT_FOUND);
	close(fd);
	ky_proc_close(&proc);
}

/* The kernel does not say where it is, but it is open. */
static void a_file_too_deep_for_its_path(void **state)
{
	char name[201], top[] = "/tmp/proc-XXXXXX";
	int dirs[25], fd, depth = 0;
	struct ky_proc_fd file;
	struct ky_proc proc;

	(void)state;
	memset(name, 'x', 200);
	name[200] = '\0';
	assert_non_null(mkdtemp(top));
	dirs[0] = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (; depth < 24; depth++) {
		assert_int_equal(mkdirat(dirs[depth], name, 0700), 0);
		dirs[depth + 1] = openat(dirs[depth], name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		assert_true(dirs[depth + 1] >= 0);
	}
	fd = openat(dirs[depth], "f", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_int_equal(ky_proc_open(&proc, NULL), 0);
	assert_int_equal(ky_proc_read_fd(&proc, getpid(), gettid(), fd, &file), 0);
	assert_string_equal(file.path, "(too long)");
	assert_int_equal(file.flags & O_ACCMODE, O_WRONLY);
	ky_proc_close(&proc);
	close(fd);
	assert_int_equal(unlinkat(dirs[depth], "f", 0), 0);
	for (; depth > 0; depth--) {
		close(dirs[depth]);
		assert_int_equal(unlinkat(dirs[depth - 1], name, AT_REMOVEDIR), 0);
	}
	close(dirs[0]);
	assert_int_equal(rmdir(top), 0);
}

static void no_descriptors_left(void **state)
{
	struct rlimit had, none;
	struct kymo_error err;
	struct ky_proc proc;
	int ret;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &had), 0);
	none = (struct rlimit){.rlim_cur = 0, .rlim_max = had.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	ret = ky_proc_open(&proc, &err);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &had), 0);
	/* Not that there were none. */
	assert_true(ret < 0 && ret != KYMO_E_NOT_FOUND);
	assert_non_null(strstr(err.message, "Too many open files"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_line),
		cmocka_unit_test(stat_names),
		cmocka_unit_test(stat_workers),
		cmocka_unit_test(stat_damaged),
		cmocka_unit_test(status),
		cmocka_unit_test(fdinfo),
		cmocka_unit_test(self),
		cmocka_unit_test(files),
		cmocka_unit_test(a_file_too_deep_for_its_path),
		cmocka_unit_test(no_descriptors_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
